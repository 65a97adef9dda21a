"""One session with two servers that serve the same application: they must answer the same.

    session = Differential(self, kirin, gunicorn, random=[r'csrfmiddlewaretoken" value="(\\w+)'])
    session.step("the form", "GET", "/login", 200, body="<form")

Every step also has its expected status, and most have a pattern of the body, because two servers
that fail alike would prove nothing.
"""
import difflib
import hashlib
import re

from browser import Browser
from differences import ADDED_BY_KIRIN, comparable_fields


class Differential:
    def __init__(self, case, kirin, other, random=()):
        self.case = case
        self.servers = (kirin, other)
        self.random = random
        self.browsers = [Browser(server.port) for server in self.servers]
        for browser in self.browsers:
            case.addCleanup(browser.close)

    def step(
        self, what, method, target, status, *, content=None, fields=(), body=None, field=None,
        ignored=(), other_status=None,
    ):
        """Sends the same request to both, and compares the responses.

        `content` is a content, or a function of the browser that returns one. `target` may be a
        function of the browser, too. `body` is a pattern that the body must have, and `field` a
        pair of a name and a value. `ignored` are fields that are not compared. `other_status` is
        for a request that the other server answers with another status, so nothing is compared.
        Returns Kirin's response.
        """
        answers = []
        for browser in self.browsers:
            made = content(browser) if callable(content) else content
            where = target(browser) if callable(target) else target
            answers.append(browser.request(method, where, made, fields))
        kirin, other = answers
        with self.case.subTest(what):
            self._check_expected(kirin, status, body, field)
            if other_status is not None:
                self.case.assertEqual(other.status, other_status, f"{self._of_both(kirin, other)}")
            else:
                self._compare(kirin, other, ignored)
        return kirin

    def _check_expected(self, kirin, status, body, field):
        said = f"{kirin}\n{self.servers[0].log()[-3000:]}"
        self.case.assertEqual(kirin.status, status, said)
        if body is not None:
            self.case.assertRegex(kirin.body, re.compile(body.encode(), re.DOTALL), said)
        if field is not None:
            self.case.assertEqual(kirin.field(field[0]), field[1], said)

    def _compare(self, kirin, other, ignored):
        said = self._of_both(kirin, other)
        self.case.assertEqual(kirin.status, other.status, said)
        our_body, their_body = (self._without_random(a.content()) for a in (kirin, other))
        if our_body != their_body:
            self.case.fail(f"the bodies differ:\n{_difference(our_body, their_body)}\n{said}")
        ours, theirs = (
            {
                name: [self._without_random(value.encode()) for value in values]
                for name, values in comparable_fields(answer, ignored).items()
            }
            for answer in (kirin, other)
        )
        if our_body != kirin.content():
            # What is random can have another length. The client has checked its own length.
            ours.pop("content-length", None)
            theirs.pop("content-length", None)
        for name in ADDED_BY_KIRIN:
            if name not in theirs:
                ours.pop(name, None)
        self.case.assertEqual(ours, theirs, said)

    def _without_random(self, text):
        for pattern in self.random:
            text = re.sub(pattern.encode(), b"RANDOM", text)
        return text

    def _of_both(self, *answers):
        return "\n".join(f"{s.name}: {a}" for s, a in zip(self.servers, answers))


def _difference(ours, theirs):
    if b"\0" in ours + theirs:
        return "\n".join(
            f"{len(body)} bytes, SHA-1 {hashlib.sha1(body).hexdigest()}" for body in (ours, theirs)
        )
    lines = [body.decode("utf-8", "replace").splitlines() for body in (ours, theirs)]
    return "\n".join(list(difflib.unified_diff(*lines, "kirin", "the other", lineterm=""))[:40])
