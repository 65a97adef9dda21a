"""What applications and servers do on the wire, by cases: Kirin, gunicorn and uvicorn."""
import os
import re
import unittest

import software
from project import Project
from raw_http import exchange
from served import Served
from wire_cases import ASGI_CASES, CASES, WSGI_CASES


class Wire(unittest.TestCase):
    def both(self, target, start_other):
        project = Project(os.path.join(software.APPS, "wire"))
        self.addCleanup(project.remove)
        servers = []
        for start in (Served.by_kirin, start_other):
            servers.append(start(project.made, target))
            self.addCleanup(servers[-1].stop)
        return servers

    def run_cases(self, cases, kirin, other):
        for case in cases:
            with self.subTest(case.what):
                ours = exchange(kirin.port, case.pieces, len(case.statuses))
                said = f"{kirin.name}:\n{ours}\n{kirin.log()[-2000:]}"
                self.assertEqual(ours.statuses(), case.statuses, said)
                self.assertEqual(ours.is_open, case.is_open, said)
                if case.body is not None:
                    self.assertRegex(ours.answers[-1].body, re.compile(case.body.encode()), said)
                expected = case.elsewhere.get(other.name, (case.statuses, case.is_open))
                if expected is None:
                    continue
                theirs = exchange(other.port, case.pieces, len(expected[0]))
                said += f"\n{other.name}, {case.reason or 'which does the same'}:\n{theirs}"
                self.assertEqual((theirs.statuses(), theirs.is_open), expected, said)
                if other.name not in case.elsewhere and case.statuses[-1] < 400:
                    self.assertEqual(ours.answers[-1].body, theirs.answers[-1].body, said)

    def test_wsgi(self):
        servers = self.both("wsgi_app:application", Served.by_gunicorn)
        self.run_cases(CASES + WSGI_CASES, *servers)

    def test_asgi(self):
        servers = self.both("asgi_app:application", Served.by_uvicorn)
        self.run_cases(CASES + ASGI_CASES, *servers)
        for server in servers:
            server.has_logged("read after the end")


if __name__ == "__main__":
    unittest.main()
