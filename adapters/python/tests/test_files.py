"""wsgi.file_wrapper: files that are handed back to the front, and files that the worker sends."""
import os
import unittest

from fake_front import FakeFront

APP = r'''
import io, os, tempfile
directory = os.path.dirname(os.path.abspath(__file__))

def write(name, text="contents"):
    path = os.path.join(directory, name)
    with open(path, "w") as file:
        file.write(text)
    return path

path = write("file.txt")
write("other.txt")
write("a b")
write("ends with space ")
write("line\nend")
os.symlink(path, os.path.join(directory, "link"))

class Upper(io.BufferedReader):
    def read(self, size=-1):
        return super().read(size).upper()

def read_from():
    file = open(path, "rb")
    file.read(1)
    return file

def read_and_back():
    file = open(path, "rb")
    file.read(1)
    file.seek(0)
    return file

def own_close():
    file = open(path, "rb")
    file.close = lambda: print("own close", flush=True)
    return file

def gone():
    file = open(write("gone"), "rb")
    os.unlink(file.name)
    return file

def replaced():
    file = open(write("replaced", "old contents"), "rb")
    os.rename(write("new", "new"), file.name)
    return file

def closed():
    file = open(path, "rb")
    file.close()
    return file

def relative():
    os.chdir(directory)
    return open("file.txt", "rb")

def temporary():
    file = tempfile.NamedTemporaryFile(dir=directory)
    file.write(b"contents")
    file.seek(0)
    return file

def pipe():
    read, write = os.pipe()
    os.write(write, b"contents")
    os.close(write)
    return open(read, "rb")

class Object:
    """A file-like object without close."""
    def __init__(self):
        self.parts = [b"con", b"tents"]
    def read(self, size):
        return self.parts.pop(0) if self.parts else b""

class Field:
    """A file that passes the methods of another one on, as Django's do."""
    def __init__(self, file):
        self.file = file
    read = property(lambda self: self.file.read)
    def close(self):
        self.file.close()

class Around(Field):
    """One that changes what is read."""
    def read(self, size):
        return self.file.read(size).upper()

files = {
    "field": lambda: Field(Field(open(path, "rb"))),
    "around": lambda: Around(open(path, "rb")),
    "field-read-from": lambda: Field(read_from()),
    "plain": lambda: open(path, "rb"),
    "unbuffered": lambda: open(path, "rb", buffering=0),
    "link": lambda: open(directory + "/link", "rb"),
    "space": lambda: open(directory + "/a b", "rb"),
    "relative": relative,
    "bytes": lambda: open(os.fsencode(path), "rb"),
    "read-from": read_from,
    "read-and-back": read_and_back,
    "own-close": own_close,
    "own-read": lambda: Upper(io.FileIO(path)),
    "both-ways": lambda: open(path, "r+b"),
    "memory": lambda: io.BytesIO(b"contents"),
    "gone": gone,
    "replaced": replaced,
    "number": lambda: open(os.open(path, os.O_RDONLY), "rb"),
    "space-at-end": lambda: open(directory + "/ends with space ", "rb"),
    "line-end": lambda: open(directory + "/line\nend", "rb"),
    "temporary": temporary,
    "device": lambda: open("/dev/null", "rb"),
    "pipe": pipe,
    "object": Object,
    "closed": closed,
}

opened = []
class Wrapped:
    def __init__(self, inner):
        self.inner = inner
    def __iter__(self):
        return iter(self.inner)

def app(environ, start_response):
    name = environ["PATH_INFO"][1:]
    if name == "closed?":
        start_response("200 OK", [])
        return [repr(opened[-1].closed).encode()]
    file = files[name]()
    opened.append(file)
    query = environ["QUERY_STRING"]
    body = environ["wsgi.file_wrapper"](file, 4096)
    headers = [("Content-Type", "text/plain"), ("Kirin-File", "forged")]
    if query.startswith("length="):
        headers.append(("Content-Length", query[7:]))
    if query == "begun":
        next(body)
    if query == "user":
        os.chmod(directory, 0o755)
        os.seteuid(65534)
    status = {"304": "304 Not Modified", "404": "404 Not Found"}.get(query, "200 OK")
    write = start_response(status, headers)
    if query == "wrapped":
        return Wrapped(body)
    if query == "written":
        write(b"before ")
    if query == "leave":
        environ["kirin.leave"]()
    if query == "cleanup":
        environ["kirin.cleanup"].append(lambda: print("cleaned up", flush=True))
    return body
'''

HANDED_BACK = ("plain", "unbuffered", "link", "space", "relative", "bytes", "own-close", "field")
SENT = ("own-read", "both-ways", "memory", "gone", "replaced", "number",
        "space-at-end", "line-end", "temporary", "pipe", "object", "read-and-back",
        "around", "field-read-from")
CONTENTS = {"own-read": b"CONTENTS", "around": b"CONTENTS", "field-read-from": b"ontents",
            "replaced": b"old contents"}


class FileTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.front = FakeFront(APP, sendfile="/usr")
        cls.front.ready()

    @classmethod
    def tearDownClass(cls):
        cls.front.__exit__()

    def get(self, name, query="", **values):
        return self.front.get("/" + name, QUERY_STRING=query, **values)

    def state(self, name):
        found = os.stat(os.path.join(self.front.directory, name))
        return " ".join(str(int(number)) for number in (
            found.st_dev, found.st_ino, found.st_size, found.st_mtime, found.st_ctime))

    def is_handed_back(self, response):
        return "kirin-file" in response.header

    def test_an_unread_file_is_handed_back(self):
        for kind in HANDED_BACK:
            for method in ("GET", "HEAD"):
                with self.subTest(kind, method=method):
                    name = {"link": "link", "space": "a b"}.get(kind, "file.txt")
                    response = self.get(kind, REQUEST_METHOD=method)
                    self.assertEqual(response.header.get("kirin-file"),
                                     f"{self.state(name)} {self.front.directory}/{name}")
                    self.assertEqual(response.header["content-length"], "0")
                    self.assertEqual(response.header["content-type"], "text/plain")
                    self.assertEqual([name for name, _ in response.headers].count("Kirin-File"), 1)
        self.assertEqual(self.get("closed?").body if self.get("plain") else None, b"True")
        # As often as it was asked for: by GET and by HEAD.
        self.assertEqual(self.front.log().count("own close\n"), 2)

    def test_any_other_file_is_sent_by_the_worker(self):
        for kind in SENT:
            with self.subTest(kind):
                response = self.get(kind)
                self.assertFalse(self.is_handed_back(response), response)
                self.assertEqual(response.body, CONTENTS.get(kind, b"contents"))
        self.assertEqual(self.get("read-from").body, b"ontents")
        self.assertEqual(self.get("device").body, b"")
        self.assertEqual(self.get("closed").status, 500)

    def test_a_plain_file_has_a_length(self):
        for kind, length in {"read-from": "7", "gone": "8", "line-end": "8", "number": "8"}.items():
            self.assertEqual(self.get(kind).header.get("content-length"), length, kind)
        self.assertEqual(self.get("pipe").header.get("transfer-encoding"), "chunked")

    def test_only_get_and_head_and_only_if_the_front_can(self):
        for values in ({"REQUEST_METHOD": "POST"}, {"KIRIN_SENDFILE": "0"}):
            response = self.get("plain", **values)
            self.assertFalse(self.is_handed_back(response))
            self.assertEqual(response.body, b"contents")

    def test_the_length_of_the_application_must_be_that_of_the_file(self):
        self.assertTrue(self.is_handed_back(self.get("plain", "length=8")))
        response = self.get("plain", "length=3")
        self.assertFalse(self.is_handed_back(response))
        self.assertEqual(response.body, b"con")

    def test_the_body_must_be_the_wrapper_itself_and_unread(self):
        bodies = {"wrapped": b"contents", "begun": b"", "written": b"before contents"}
        for query, body in bodies.items():
            with self.subTest(query):
                response = self.get("plain", query)
                self.assertFalse(self.is_handed_back(response))
                self.assertEqual(response.body, body)

    def test_statuses(self):
        self.assertFalse(self.is_handed_back(self.get("plain", "304")))
        response = self.get("plain", "404")
        self.assertEqual(response.status, 404)
        self.assertTrue(self.is_handed_back(response))

    def test_a_file_with_a_cleanup(self):
        response = self.get("plain", "cleanup")
        self.assertEqual(response.header["kirin-cleanup"], "1")
        self.assertEqual(self.front.read_bytes(1), b"\n")
        self.assertIn("cleaned up\n", self.front.log())


class LeavingFileTest(unittest.TestCase):
    def test_a_worker_that_leaves_says_so_with_a_file(self):
        with FakeFront(APP) as front:
            front.ready()
            response = front.get("/plain", QUERY_STRING="leave")
            self.assertIn("kirin-file", response.header)
            self.assertEqual(response.header["connection"], "close")

    @unittest.skipIf(os.geteuid() != 0, "only root can become another user")
    def test_a_worker_of_another_user_sends_the_file_itself(self):
        with FakeFront(APP) as front:
            front.ready()
            response = front.get("/plain", QUERY_STRING="user")
            self.assertNotIn("kirin-file", response.header)
            self.assertEqual(response.body, b"contents")


if __name__ == "__main__":
    unittest.main()
