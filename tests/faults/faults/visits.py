"""What visitors do. Each visit checks its answer, whatever faults happen."""
import functools
import itertools

from .content import named, text
from .http2 import Http2Connection
from .memcached import Memcached
from .site import FILES, PART_PATHS
from .wire import Broken, Connection, WrongFraming

# The statuses that say: not now. Anything else must be the right answer.
NOT_NOW = (500, 502, 503, 504, 507)
BAD_REQUEST = b"400 Bad Request\n"
PART_ERROR = b"[an error occurred while processing the directive]"
UPGRADE = (
    b"GET /socket HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
)
# Lengths of pages: those of one packet, of a buffer, of more than a slot of the ring.
LENGTHS = (1, 100, 4000, 16_000, 70_000, 300_000)


class Wrong(Exception):
    """A promise is broken."""


class Visitor:
    """One visitor, with its connections and its choices."""

    def __init__(self, number, addresses, store, random, loses_items):
        self.number = number
        # Without TLS, and with it.
        self.addresses = addresses
        self.store = store
        self.random = random
        self.counter = itertools.count()
        self.connection = None
        self.memcached = None
        # Whether an item may be lost: a program that takes over may have no room for it.
        self.loses_items = loses_items
        # The value that each item must have, or None.
        self.items = {}
        # How often a command for an item had no answer. It may be carried out later, at any time,
        # so the item is given up and gets another key.
        self.unanswered = {}
        # How often a body was not read to its end.
        self.bad_requests = 0
        self.answered = {}
        self.refused = {}

    def close(self):
        """Ends the connections."""
        for connection in (self.connection, self.memcached):
            if connection:
                connection.close()
        self.connection = self.memcached = None

    def visit(self, kind=None):
        """Makes one visit. Returns whether it got what it wanted."""
        kind = kind or self.random.choice(KINDS)
        try:
            done = getattr(self, kind)()
        except Broken:
            self.close()
            done = False
        except (Wrong, WrongFraming) as error:
            raise Wrong(f"{kind}: {error}") from error
        counts = self.answered if done else self.refused
        counts[kind] = counts.get(kind, 0) + 1
        return done

    def name(self, word):
        """Returns a name that no other visit has."""
        return f"{word}{self.number}x{next(self.counter)}-{self.random.choice(LENGTHS)}"

    def connected(self):
        """Returns a connection to the program."""
        if self.connection and self.random.random() < 0.1:
            self.close()
        if not self.connection:
            tls = self.random.random() < 0.4
            self.connection = Connection(self.addresses[tls], tls)
        return self.connection

    def is_bad_request(self, answer):
        """Returns whether the program has not got the whole body. It does not know that the visitor is
        still there."""
        is_bad = answer.status == 400 and answer.body == BAD_REQUEST
        self.bad_requests += is_bad
        return is_bad

    def judge(self, what, answer, content, status=200):
        """Checks an answer. Returns whether it is the content."""
        if answer.is_last():
            self.close()
        if answer.status in NOT_NOW:
            return False
        if answer.status != status:
            raise Wrong(f"{what}: status {answer.status}, body {answer.body[:200]!r}")
        if answer.body != content:
            raise Wrong(
                f"{what}: another body: {len(answer.body)} bytes for {len(content)}, "
                f"{answer.body[:80]!r} for {content[:80]!r}"
            )
        return True

    def get(self, path, content):
        """Gets a path."""
        return self.judge(f"GET {path}", self.connected().get(path), content)

    def file(self):
        """A file, whole or a part of it, or its head."""
        name = self.random.choice(FILES)
        content = named(name)
        path = f"/files/{name}"
        choice = self.random.random()
        if choice < 0.2:
            answer = self.connected().head(path)
            if answer.status == 200 and answer.field("content-length") != str(len(content)):
                raise Wrong(f"HEAD {path}: {answer.fields}")
            return self.judge(f"HEAD {path}", answer, b"")
        if choice < 0.5 and len(content) > 1:
            start = self.random.randrange(len(content))
            end = self.random.randrange(start, len(content))
            answer = self.connected().get(path, f"Range: bytes={start}-{end}\r\n")
            return self.judge(f"GET {path} {start}-{end}", answer, content[start : end + 1], 206)
        return self.get(path, content)

    def missing(self):
        """A file that is not there."""
        answer = self.connected().get("/files/none")
        if answer.status in NOT_NOW:
            return self.judge("GET /files/none", answer, b"")
        return self.judge("GET /files/none", answer, answer.body, 404)

    def page(self, place, word):
        """A page of an application, of a server or of a program."""
        name = self.name(word)
        return self.get(f"/{place}/{name}", named(name))

    def post(self, place, chunked):
        """A request that must be carried out at most once, and whose body comes back."""
        name = self.name("post")
        length = self.random.choice((0, 1, 5000, 100_000, 1_200_000))
        content = text("body" + name, length)
        head = f"POST {place}/{name} HTTP/1.1\r\nHost: a\r\n"
        connection = self.connected()
        if chunked:
            parts = [content[start : start + 40_000] for start in range(0, length, 40_000)]
            body = b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + b"0\r\n\r\n"
            connection.send(f"{head}Transfer-Encoding: chunked\r\n\r\n".encode() + body)
        else:
            connection.send(f"{head}Content-Length: {length}\r\n\r\n".encode() + content)
        answer = connection.answer()
        if self.is_bad_request(answer):
            self.close()
            return False
        return self.judge(f"POST {place}/{name}", answer, content)

    def cached(self):
        """A page that the cache may have."""
        name = f"shared{self.random.randrange(10)}-{self.random.choice(LENGTHS)}"
        return self.get(f"/cached/{name}", named(name))

    def pipelined(self):
        """Several requests at once: each answer is that of its own request, in their order."""
        connection = self.connected()
        places = [self.random.choice(("api", "app", "app/stream")) for _ in range(self.random.randrange(2, 8))]
        paths = [f"/{place}/{self.name('line')}" for place in places]
        connection.send("".join(f"GET {path} HTTP/1.1\r\nHost: a\r\n\r\n" for path in paths).encode())
        done = True
        for path in paths:
            if self.connection is None:
                return False
            done &= self.judge(f"GET {path}, pipelined", connection.answer(), named(path))
        return done

    def http2(self):
        """Several requests on one HTTP/2 connection."""
        tls = self.random.random() < 0.5
        connection = Http2Connection(self.addresses[tls], tls)
        try:
            return self.exchange(connection)
        finally:
            connection.close()

    def exchange(self, connection):
        """Makes the requests of an HTTP/2 connection."""
        requests, contents = [], []
        for _ in range(self.random.randrange(1, 6)):
            name = self.name("two")
            place = self.random.choice(("app", "app/stream", "api", "api/chunked", "program", "post"))
            if place == "post":
                contents.append(text("body" + name, self.random.choice((1, 5000, 100_000))))
                requests.append(("POST", f"/{self.random.choice(('app', 'api'))}/{name}", contents[-1]))
            else:
                contents.append(named(name))
                requests.append(("GET", f"/{place}/{name}", b""))
        answers = connection.exchange(requests, self.random)
        # A visit is judged as a whole, so each answer is looked at.
        done = True
        for (method, path, _), content, answer in zip(requests, contents, answers, strict=True):
            what = f"{method} {path} by HTTP/2"
            is_cut = answer is None or method == "POST" and self.is_bad_request(answer)
            done &= not is_cut and self.judge(what, answer, content)
        return done

    def parts(self):
        """A page with parts of an application, a server and a file."""
        answer = self.connected().get("/parts/page.html")
        whole = [named(path) for path in PART_PATHS]
        if answer.status != 200:
            return self.judge("GET /parts/page.html", answer, b"")
        found = answer.body.removeprefix(b"begin").removesuffix(b"end").split(b"|")
        if answer.body != b"begin" + b"|".join(found) + b"end" or len(found) != len(whole):
            raise Wrong(f"a page with parts: {answer.body[:200]!r}")
        for part, right in zip(found, whole, strict=True):
            if part not in (right, PART_ERROR):
                raise Wrong(f"a part of a page is {shown(part)}, and should be {shown(right)}")
        if answer.is_last():
            self.close()
        return found == whole

    def tunnel(self):
        """A WebSocket, as far as Kirin knows: what goes in comes out in the same order."""
        tls = self.random.random() < 0.3
        connection = Connection(self.addresses[tls], tls)
        try:
            connection.send(UPGRADE)
            answer = connection.answer()
            if answer.status in NOT_NOW:
                return False
            if answer.status != 101:
                raise Wrong(f"an upgrade has status {answer.status}")
            for _ in range(self.random.randrange(1, 10)):
                message = text(str(self.random.random()), self.random.choice((1, 50, 20_000, 100_000)))
                connection.send(message)
                if connection.take(len(message)) != message:
                    raise Wrong("a tunnel returns other bytes")
            return True
        finally:
            connection.close()

    def stored_page(self):
        """A page that is pushed into the store: visitors get what was acknowledged last."""
        key = self.key(f"/page/p{self.number}-{self.random.randrange(3)}")
        value = self.items.setdefault(key, None)
        if self.random.random() < 0.4:
            if not self.memcached:
                self.memcached = Memcached(self.store)
            return self.set_item(key, b"text/plain\r\n")
        answer = self.connected().get(key.decode())
        if answer.is_last():
            self.close()
        if answer.status in NOT_NOW:
            return False
        found = None if answer.status == 404 else b"text/plain\r\n" + answer.body
        if answer.status not in (200, 404) or not self.may_be(found, value):
            raise Wrong(f"page {key!r} is {answer.status} {shown(found)}, not {shown(value)}")
        self.items[key] = found
        return True

    def given_up(self):
        """A visitor that goes before the answer is there, or before the request is whole."""
        connection = self.connected()
        name = self.name("gone")
        if self.random.random() < 0.5:
            connection.send(f"GET /app/{name} HTTP/1.1\r\nHost: a\r\n\r\n".encode())
        else:
            head = f"POST /app/{name} HTTP/1.1\r\nHost: a\r\nContent-Length: 100000\r\n\r\n"
            connection.send(head.encode() + b"x" * self.random.randrange(90_000))
        self.close()
        return True

    def stored(self):
        """An item of the store: it has the last value that was acknowledged."""
        if not self.memcached:
            self.memcached = Memcached(self.store)
        key = self.key(f"item{self.number}-{self.random.randrange(20)}")
        value = self.items.setdefault(key, None)
        choice = self.random.random()
        if choice < 0.45:
            return self.set_item(key)
        if choice < 0.55:
            return self.delete_item(key, value)
        found = self.memcached.get(key)
        if not self.may_be(found, value):
            raise Wrong(f"item {key!r} is {shown(found)}, and not {shown(value)}")
        self.items[key] = found
        return True

    def check_items(self):
        """Gets all items. Returns whether the connection has lasted so long."""
        try:
            self.memcached = Memcached(self.store)
            for key, value in self.items.items():
                if not self.may_be(self.memcached.get(key), value):
                    raise Wrong(f"item {key!r} has another value in the end")
            return True
        except Broken:
            self.close()
            return False

    def may_be(self, found, value):
        """Returns whether an item that must have a value may have what was found."""
        return found == value or found is None and self.loses_items

    def key(self, name):
        """Returns the key that an item has now."""
        return f"{name}x{self.unanswered.get(name, 0)}".encode()

    def command(self, key, command, *values):
        """Carries out a command that changes an item. Returns the answer."""
        try:
            return command(key, *values)
        except Broken:
            name = key.decode().rpartition("x")[0]
            self.unanswered[name] = self.unanswered.get(name, 0) + 1
            del self.items[key]
            raise

    def set_item(self, key, start=b""):
        """Sets an item."""
        value = start + text(f"value{next(self.counter)}", self.random.choice(LENGTHS))
        said = self.command(key, self.memcached.set, value)
        if said == b"STORED":
            self.items[key] = value
            return True
        if not said.startswith(b"SERVER_ERROR out of memory"):
            raise Wrong(f"set: {said!r}")
        # protocol.txt: an item of before would be out of date.
        self.items[key] = None
        return False

    def delete_item(self, key, value):
        """Deletes an item."""
        said = self.command(key, self.memcached.delete)
        if said not in (b"DELETED", b"NOT_FOUND"):
            raise Wrong(f"delete: {said!r}")
        if said == b"NOT_FOUND" and not self.may_be(None, value):
            raise Wrong(f"item {key!r} is lost")
        self.items[key] = None
        return True


def shown(value):
    """Returns the beginning of a value."""
    return value if value is None else f"{value[:20]!r} ({len(value)} bytes)"


for kind, place, word in (
    ("app", "app", "app"),
    ("stream", "app/stream", "stream"),
    ("program", "program", "program"),
    ("api", "api", "api"),
    ("chunked", "api/chunked", "chunked"),
):
    setattr(Visitor, kind, functools.partialmethod(Visitor.page, place, word))
for kind, place, is_chunked in (
    ("app_post", "/app", False),
    ("api_post", "/api", False),
    ("api_chunks", "/api", True),
):
    setattr(Visitor, kind, functools.partialmethod(Visitor.post, place, is_chunked))

KINDS = (
    "file file file missing app app stream program api chunked app_post api_post api_chunks cached "
    "pipelined http2 http2 parts tunnel stored_page given_up stored stored stored"
).split()
