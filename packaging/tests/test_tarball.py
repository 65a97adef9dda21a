"""The release archive serves where it is unpacked, and where it is installed."""
import filecmp
import os
import re
import subprocess
import unittest
import urllib.request

import support
from check_links import dead_links

PERL = """sub { [200, ['Content-Type' => 'text/plain'],
    ["perl $INC{'Kirin/Worker.pm'} ring ", Kirin::Ring::is_available()]] }"""
PYTHON = """import kirin, kirin.ring
def application(environ, start_response):
    start_response('200 OK', [])
    return [f'python {kirin.__file__} ring {kirin.ring.is_available()}'.encode()]
"""


def build(name):
    output = os.path.join(support.temporary_directory(), name)
    command = ["packaging/build-tarball", "--program", support.PROGRAM, "--output", output]
    return support.run(*command).strip()


class TestTarball(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.archive = build("first-archive")
        cls.place = os.path.join(support.temporary_directory(), "elsewhere")
        os.makedirs(cls.place)
        support.run("tar", "-xf", cls.archive, "-C", cls.place)
        (name,) = os.listdir(cls.place)
        cls.unpacked = os.path.join(cls.place, name)
        for name, text in (("app.psgi", PERL), ("app.py", PYTHON)):
            with open(os.path.join(cls.place, name), "w", encoding="utf-8") as file:
                file.write(text)

    def answer(self, prefix, app):
        """Returns what an application says behind the program of this prefix."""
        command = [f"{prefix}/bin/kirin", "serve", app, "--listen", "127.0.0.1:0"]
        command += ["--workers", "1"]
        log_path = os.path.join(self.place, "log")
        with open(log_path, "w", encoding="utf-8") as log:
            kirin = subprocess.Popen(command, cwd=self.place, stdout=log, stderr=log)

        def address():
            with open(log_path, encoding="utf-8") as log:
                text = log.read()
            if kirin.poll() is not None:
                self.fail(text)
            return re.search(r"serving on (http://[0-9.:]+/)", text)

        try:
            found = support.wait_for("the server", address)
            return urllib.request.urlopen(found.group(1)).read().decode()
        finally:
            kirin.terminate()
            kirin.wait()

    def check_answers(self, prefix):
        adapters = f"{prefix}/share/kirin/adapters"
        perl = f"perl {adapters}/perl/lib/Kirin/Worker.pm ring 1"
        self.assertEqual(self.answer(prefix, "app.psgi"), perl)
        python = f"python {adapters}/python/src/kirin/__init__.py ring True"
        self.assertEqual(self.answer(prefix, "app.py"), python)

    def test_it_serves_where_it_is_unpacked(self):
        self.check_answers(self.unpacked)

    def test_it_serves_where_it_is_installed(self):
        prefix = os.path.join(self.place, "prefix")
        # The second time replaces the files of the first.
        for _ in range(2):
            said = support.run("./install.sh", prefix, cwd=self.unpacked)
        self.assertIn(f"{prefix}/bin/kirin", said)
        self.check_answers(prefix)
        with open(f"{prefix}/lib/systemd/system/kirin.service", encoding="utf-8") as file:
            self.assertIn(f"ExecStart={prefix}/bin/kirin serve", file.read())
        config = f"{prefix}/share/kirin/kirin.toml"
        # Directories of the service.
        support.run("sed", "-i", f"s|/var/lib/kirin/|{prefix}/|; s|/var/log/kirin/|{prefix}/|", config)
        support.run(f"{prefix}/bin/kirin", "check", "--config", config)

    def test_links_of_the_documentation_lead_somewhere(self):
        self.assertEqual(dead_links(self.unpacked), [])

    def test_the_same_inputs_give_the_same_bytes(self):
        self.assertTrue(filecmp.cmp(self.archive, build("second-archive"), shallow=False))


if __name__ == "__main__":
    unittest.main()
