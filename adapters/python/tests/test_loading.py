"""Targets, the search path, and errors while an application is loaded."""
import os
import subprocess
import sys
import textwrap
import unittest

from fake_front import PROGRAM, FakeFront

APP = '''
import sys
def app(environ, start_response):
    start_response("200 OK", [])
    return [repr({expression}).encode()]
'''


def program(expression="__name__"):
    return APP.format(expression=expression)


class TargetTest(unittest.TestCase):
    def answer(self, target, text="", files=None, **options):
        with FakeFront(text, target=target, files=files, **options) as front:
            line = front.control_line()
            self.assertEqual(line, "ready", front.log())
            return eval(front.get("/").body)

    def failure(self, target, text="", files=None, **options):
        with FakeFront(text, target=target, files=files, **options) as front:
            line = front.control_line()
            self.assertTrue(line.startswith("failed "), line)
            self.assertIsNone(front.control_line())
            self.assertEqual(front.wait(), 1)
            self.assertEqual(front.log(), "")
            return line[7:].replace("\\n", "\n").replace("\\\\", "\\")

    def test_targets_that_name_an_application(self):
        named = program().replace("def app(", "def named(")
        factory = "def create_app():\n" + textwrap.indent(program(), "    ") + "    return app\n"
        for target, text in {
            "app.py": program(),
            "./app.py": program(),
            "app": program(),
            "app.py:app": program(),
            "app:app": program(),
            "app.py:named": named,
            "app.py:name.space": named + "class name: space = named\n",
            "app:create_app()": factory,
            "app:create_app( )": factory,
            "app.py:create_app": factory,
        }.items():
            with self.subTest(target):
                self.assertEqual(self.answer(target, text), "app")
        self.assertEqual(self.answer("app.py", factory), "app")
        self.assertEqual(self.answer("app.py", factory.replace("create_app", "make_app")), "app")
        self.assertEqual(
            self.answer("app.py", program() + "application, app = app, None\n"), "app"
        )
        self.assertEqual(self.answer("app.py", program() + "application = 'no callable'\n"), "app")

    def test_an_absolute_path_with_a_colon(self):
        self.assertEqual(self.answer("di:r/app.py", files={"di:r/app.py": program()}), "app")
        self.assertEqual(self.answer("a.b-c.wsgi", files={"a.b-c.wsgi": program()}), "a_b-c")

    def test_targets_in_packages(self):
        files = {"site1/package/__init__.py": "", "site1/package/wsgi.py": program("__name__"),
                 "site1/package/inner/__init__.py": program("__name__")}
        self.assertEqual(self.answer("site1/package/wsgi.py", files=files), "package.wsgi")
        self.assertEqual(self.answer("site1/package/inner/__init__.py", files=files),
                         "package.inner")
        files = {"package/__init__.py": "", "package/wsgi.py": program("__name__")}
        self.assertEqual(self.answer("package.wsgi", files=files), "package.wsgi")
        self.assertEqual(self.answer("package.wsgi:app", files=files), "package.wsgi")

    def test_a_file_is_one_module_only(self):
        text = "import pickle\nclass Thing: pass\n" + program(
            "(type(pickle.loads(pickle.dumps(Thing()))) is Thing, __import__('helper').main().app"
            " is app, sys.path[0], len(sys.path) == len(set(sys.path)))"
        )
        helper = "def main():\n    import main\n    return main\n"
        answer = self.answer("sub/main.py", files={"sub/main.py": text, "sub/helper.py": helper})
        self.assertEqual(answer[:2], (True, True))
        self.assertTrue(answer[2].endswith("/sub"))
        self.assertTrue(answer[3])

    def test_nothing_of_ours_but_kirin_is_importable(self):
        names = ["app_parent", "worker", "fake_front", "kirin_worker"]
        text = "import importlib.util\n" + program(
            "([importlib.util.find_spec(name) for name in %r], __import__('kirin').__file__,"
            " [path for path in sys.path if 'adapters' in path])" % names)
        found, own, paths = self.answer("app.py", text)
        self.assertEqual(found, [None] * 4)
        self.assertTrue(own.endswith("adapters/python/src/kirin/__init__.py"))
        self.assertEqual(paths, [])

    def test_an_installed_kirin_of_another_version_does_not_shadow_this_one(self):
        files = {"kirin/__init__.py": "raise SystemExit('another version')\n"}
        own = self.answer("app.py", program("__import__('kirin').__file__"), files,
                          environment={"PYTHONPATH": "."})
        self.assertIn("adapters/python", own)

    def test_the_application_does_not_see_our_options(self):
        self.assertEqual(self.answer("app.py", program("sys.argv")), ["app.py"])

    def test_targets_without_an_application(self):
        text = self.failure("app.py", "import os\ndef main(): pass\nclass Other: pass\n")
        self.assertIn("application, app, create_app(), make_app()", text)
        self.assertIn("Its callables are: Other, main.", text)
        self.assertIn("It has no callables.", self.failure("app.py", "value = 1\n"))
        self.assertIn("there is no such file", self.failure("other.py"))
        self.assertIn("this is a directory", self.failure("./", ""))
        self.assertIn("has no 'b.c'", self.failure("app.py:b.c", "b = 1\n"))
        self.assertIn("only a call without arguments", self.failure("app:make('x')"))
        self.assertIn("is no name in a module", self.failure("app:1x"))
        self.assertIn("neither a file nor the name of a module", self.failure("a-b"))
        self.assertIn("cannot be called without arguments",
                      self.failure("app:make()", "def make(x): pass\n"))
        self.assertIn("is no callable, but int", self.failure("app:value()", "value = 1\n"))
        self.assertIn("it is no callable, but int", self.failure("app:value", "value = 1\n"))
        self.assertIn("it is no callable, but NoneType",
                      self.failure("app.py", "def create_app(): pass\n"))
        self.assertIn("can be called neither with environ and start_response (WSGI) nor with",
                      self.failure("app.py", "def app(a, b, c, d): pass\n"))
        self.assertIn("rename the file", self.failure("signal.py", files={"signal.py": ""}))

    def test_asgi_applications_are_recognised(self):
        for text in (
            "async def app(scope, receive, send): pass\n",
            "class A:\n  async def __call__(self, scope, receive, send): pass\napp = A()\n",
            "async def f(scope, receive, send): pass\n"
            "def app(scope, receive, send): return f(scope, receive, send)\n",
            "class app:\n  def __init__(self, scope, receive, send): pass\n"
            "  def __await__(self): return iter(())\n",
            "import functools\nasync def f(x, scope, receive, send): pass\n"
            "app = functools.partial(f, 1)\n",
            "import functools\nasync def f(*arguments): pass\n"
            "def create_app(): return functools.partial(functools.partial(f, 1))\n",
        ):
            with self.subTest(text), FakeFront(text) as front:
                self.assertRegex(front.control_line(), "^started ")
                self.assertEqual(front.control_line(), "ready", front.log())
                self.assertIn(" connections=", front.connect())

    def test_asgi_2_is_refused_with_a_way_out(self):
        for text in (
            "class app:\n  def __init__(self, scope): pass\n"
            "  async def __call__(self, receive, send): pass\n",
            "def app(scope):\n  async def inner(receive, send): pass\n  return inner\n",
        ):
            with self.subTest(text):
                failure = self.failure("app.py", text)
                self.assertIn("app is an application of ASGI 2", failure)
                self.assertIn("asgiref.compatibility.guarantee_single_callable(app)", failure)

    def test_wsgi_applications_that_look_like_asgi_are_called_as_wsgi(self):
        text = program("1").replace("start_response)", "start_response, more=None)")
        self.assertEqual(self.answer("app.py", text), 1)
        text = ("class app:\n  def __init__(self, e, s): s('200 OK', [])\n"
                "  async def __call__(self): pass\n  def __iter__(self): yield b'1'\n")
        self.assertEqual(self.answer("app.py", text), 1)

    def test_a_failure_names_the_reason_and_the_place(self):
        text = self.failure("app.py", "x = 1\nimport no_such_module\n")
        self.assertIn("ModuleNotFoundError: No module named 'no_such_module'", text)
        self.assertIn("app.py\", line 2, in <module>\n    import no_such_module", text)
        self.assertIn(f"The interpreter is {sys.executable}, Python ", text)
        self.assertIn("virtual environment", text)
        self.assertNotIn("loading.py", text)
        self.assertNotIn("importlib", text)
        text = self.failure("app.py", "import helper\n",
                            {"helper.py": "import json\njson.loads('{')\n"})
        self.assertIn("JSONDecodeError", text)
        self.assertIn("helper.py\", line 2", text)
        self.assertNotIn("decoder.py", text)
        self.assertIn("SyntaxError", self.failure("app.py", "def (:\n"))
        self.assertIn("line 1", self.failure("app.py", "def (:\n"))
        self.assertIn("SystemExit: 3", self.failure("app.py", "raise SystemExit(3)\n"))
        self.assertIn("KeyboardInterrupt", self.failure("app.py", "raise KeyboardInterrupt\n"))
        text = self.failure("app.py", "try:\n  1/0\nexcept Exception as e:\n"
                                      "  raise ValueError('two\\nback\\\\slash\\x1b') from e\n")
        self.assertIn("ValueError: two\nback\\slash?\n", text)
        self.assertIn("caused by ZeroDivisionError", text)
        self.assertIn("Unprintable", self.failure(
            "app.py", "class Unprintable(Exception):\n  def __str__(self): raise Exception\n"
                      "raise Unprintable\n"))
        text = self.failure("app.py", "raise ValueError('\\n' * 100000 + 'x' * 100000)\n")
        self.assertLess(len(text), 16 * 1024)
        text = self.failure("no_such_package.wsgi")
        self.assertIn("No module named 'no_such_package'", text)

    def test_a_virtual_environment_is_named(self):
        with FakeFront("import no_such_module\n") as front:
            directory = os.path.join(front.directory, "venv")
            subprocess.run([sys.executable, "-m", "venv", "--without-pip", directory], check=True)
            with FakeFront("import no_such_module\n", python=directory + "/bin/python") as inner:
                self.assertIn(f"in the virtual environment {directory}", inner.control_line())

    def test_a_failure_in_the_first_worker_is_reported(self):
        with FakeFront("import no_such_module\n", preload="false") as front:
            front.started()
            line = front.control_line()
            self.assertTrue(line.startswith("failed ModuleNotFoundError"), line)
            self.assertEqual(front.wait(), 1)
        with FakeFront("import os\nos._exit(3)\n", preload="false") as front:
            front.started()
            self.assertIn("failed the worker that was to load the application has ended",
                          front.control_line())

    def test_the_program_can_be_imported_by_multiprocessing(self):
        text = program("total") + textwrap.dedent('''
            import multiprocessing, os
            def square(x):
                return x * x
            inner = app
            def app(environ, start_response):
                global total
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    total = pool.map(square, [1, 2, 3])
                return inner(environ, start_response)
        ''')
        self.assertEqual(self.answer("app.py", text, environment={"PYTHONPATH": "."}), [1, 4, 9])
        self.assertTrue(os.path.exists(PROGRAM))


class PreloadTest(unittest.TestCase):
    LOADED = '''
import os, socket, sqlite3, tempfile, threading
loaded = os.getpid()
{deed}
def app(environ, start_response):
    start_response("200 OK", [])
    return [repr((loaded, os.getpid(), os.getcwd(), os.environ.get("CHANGED"))).encode()]
'''
    NOT_SHARED = {
        "socket.create_connection(listener.getsockname())": "a connection to 127.0.0.1:",
        "socket.socketpair()": "a connection to a nameless unix socket",
        "listener": "a listening socket at 127.0.0.1:",
        "socket.socket(socket.AF_INET, socket.SOCK_DGRAM)": "a socket at 0.0.0.0:0",
        "open('data.db', 'w+b')": "data.db, which is opened for reading and writing",
        "database()": "data.sqlite",
        "reading()": "the database",
        "__import__('subprocess').Popen(['sleep', '0'], stdout=-1)": "a pipe from another process",
        "thread()": "has started 1 threads, which a forked process does not have: a name",
    }
    SHARED = (
        "os.pipe()", "open('log', 'a')", "open('log', 'w')", "open(__file__)",
        "tempfile.TemporaryFile()", "open('log', 'a+')",
        "socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)", "ended_thread()",
    )
    HELPERS = '''
listener = None
if "listener" in {text!r}:
    listener = socket.socket()
    listener.bind(("127.0.0.1", 0))
    listener.listen()
def database():
    connection = sqlite3.connect("data.sqlite")
    connection.execute("create table if not exists t (x)")
    connection.commit()
    return connection
def reading():
    database().close()
    return open("data.sqlite", "rb")
def thread(**more):
    stop = threading.Event()
    thread = threading.Thread(target=stop.wait, daemon=True, name="a name")
    thread.start()
    return stop, thread
def ended_thread():
    stop, other = thread()
    stop.set()
    other.join()
'''

    def program(self, text):
        deed = self.HELPERS.format(text=text) + f"kept = {text}\n"
        deed += "os.environ['CHANGED'] = '1' if 'CHANGED' not in os.environ else 'twice'\n"
        deed += "os.chdir('/')\nos.umask(0)\n"
        return self.LOADED.format(deed=deed)

    def test_what_processes_cannot_share_makes_each_worker_load_the_application(self):
        for text, said in self.NOT_SHARED.items():
            with self.subTest(text), FakeFront(self.program(text), workers=2, name="web") as front:
                parent = front.process.pid
                pids = {front.started(), front.started()}
                loaded, pid, directory, changed = eval(front.get("/").body)
                self.assertIn(pid, pids)
                self.assertEqual(loaded, pid)
                self.assertEqual((directory, changed), ("/", "1"))
                log = front.log()
                self.assertIn(said, log)
                self.assertIn("kirin: web: workers cannot share this", log)
                self.assertEqual(front.process.pid, parent)
                self.assertEqual(front.stop(), 0)

    def test_what_processes_can_share_is_loaded_once(self):
        for text in self.SHARED:
            with self.subTest(text), FakeFront(self.program(text)) as front:
                loaded, pid, _, _ = eval(front.get("/").body)
                self.assertEqual(loaded, front.process.pid)
                self.assertNotEqual(pid, loaded)
                self.assertEqual(front.log(), "")

    def test_preload_true_does_not_look_and_false_does_not_load(self):
        text = next(iter(self.NOT_SHARED))
        with FakeFront(self.program(text), preload="true") as front:
            self.assertEqual(eval(front.get("/").body)[0], front.process.pid)
            self.assertEqual(front.log(), "")
        with FakeFront(self.program("None"), preload="false", workers=2) as front:
            front.started()
            self.assertEqual(front.control_line(), "ready")
            loaded, pid, _, _ = eval(front.get("/").body)
            self.assertEqual(loaded, pid)


if __name__ == "__main__":
    unittest.main()
