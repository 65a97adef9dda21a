"""What an application may do to its process, while it is loaded or in a request.

In each case the parent replaces a worker, and a worker answers the next requests, takes a large
body, logs, and leaves on TERM.
"""
import os
import signal
import tempfile
import unittest

from fake_front import RECEIVES, FakeFront, system_call, wait_until

SIGNALS = ", ".join(
    f"signal.SIG{name}"
    for name in ("CHLD", "TERM", "QUIT", "PIPE", "USR2", "TTIN", "TTOU", "INT")
)

DEEDS = {
    "all signals ignored": f"for n in ({SIGNALS}): signal.signal(n, signal.SIG_IGN)",
    "signals by default": f"for n in ({SIGNALS}): signal.signal(n, signal.SIG_DFL)",
    "handlers of its own": f"for n in ({SIGNALS}): signal.signal(n, lambda *a: None)",
    "signals blocked": f"signal.pthread_sigmask(signal.SIG_BLOCK, ({SIGNALS}))",
    "a wakeup descriptor":
        "signal.set_wakeup_fd(os.open('/dev/null', os.O_WRONLY | os.O_NONBLOCK))",
    "faulthandler": "import faulthandler; faulthandler.enable(); faulthandler.unregister(12)",
    "sys.stdin closed": "sys.stdin.close()",
    "sys.stdout closed": "sys.stdout.close()",
    "all streams closed": "sys.stdin.close(); sys.stdout.close(); sys.stderr.close()",
    "streams deleted": "sys.stdin = sys.stdout = sys.stderr = None",
    "descriptors closed": "[os.close(n) for n in range(3)]",
    "descriptors replaced": "null = os.open('/dev/null', 2); [os.dup2(null, n) for n in range(3)]",
    "streams that raise": "sys.stdout = sys.stderr = Raising()",
    "streams to memory": "sys.stdout = io.StringIO(); sys.stderr = io.StringIO()",
    "the working directory": "os.chdir('/')",
    "a directory that is gone": "d = tempfile.mkdtemp(); os.chdir(d); os.rmdir(d)",
    "umask": "os.umask(0o777)",
    "the environment": "os.environ.clear()",
    "sys.path": "sys.path.clear()",
    "sys.argv": "sys.argv = None",
    "sys.modules":
        "[sys.modules.pop(n) for n in list(sys.modules) if n.startswith('kirin')]",
    "an alarm left over": "signal.alarm(1)",
    "a timer left over": "signal.setitimer(signal.ITIMER_REAL, 0.5)",
    "a random seed": "random.seed(42)",
    "a time limit for sockets": "socket.setdefaulttimeout(0.01)",
    "the class of sockets replaced": "socket.socket = None; socket.SocketType = None",
    "select replaced": "select.poll = None; select.epoll = None",
    "time replaced": "time.sleep = lambda s: None",
    "the recursion limit": "sys.setrecursionlimit(150)",
    "the collector off": "gc.disable()",
    "the collector unfrozen": "gc.unfreeze(); gc.collect()",
    "a child": "pid = os.fork()\n    if pid == 0: os._exit(0)\n    os.waitpid(pid, 0)",
    "a child that exits": "pid = os.fork()\n    if pid == 0: os._exit(5)\n    os.waitpid(pid, 0)",
    "a program": "os.system('true'); subprocess.run(['true'], check=True)",
    "multiprocessing":
        "p = multiprocessing.get_context('fork').Process(target=print)\n"
        "    p.start()\n    p.join()",
    "a child terminated":
        "p = multiprocessing.get_context('fork').Process(target=time.sleep, args=(1000,))\n"
        "    p.start()\n    p.terminate()\n    p.join()",
    "warnings as errors": "warnings.simplefilter('error')",
    "an exception hook": "sys.excepthook = None; sys.unraisablehook = None",
    "a trace function": "sys.settrace(lambda *a: None); sys.setprofile(lambda *a: None)",
    "a low descriptor limit": "resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))",
    "an event loop": "asyncio.run(asyncio.sleep(0))",
    "__main__ gone": "sys.modules.pop('__main__')",
}
# These would end a worker later, as with other servers.
ONLY_WHILE_LOADING = ("an alarm left over", "a timer left over", "signals blocked")

APP = r'''
import asyncio, gc, io, multiprocessing, os, random, resource, select, signal, socket, subprocess
import sys, tempfile, threading, time, warnings
FILE = os.path.abspath(__file__)
exists = os.path.exists

class Raising:
    def write(self, text):
        raise OSError("no")
    flush = close = write

def deed():
    %s

%s
def app(environ, start_response):
    path, stream = environ["PATH_INFO"], environ["wsgi.input"]
    if path == "/do":
        %s
    if path == "/die":
        raise ValueError("died")
    if path == "/slow":
        os.close(os.open(FILE + ".begun", os.O_CREAT | os.O_WRONLY))
        while not exists(FILE + ".go"):
            pass
    body = {"/do": b"done", "/slow": b"slow", "/length": b"%%d" %% len(stream.read())}
    start_response("200 OK", [])
    return [body.get(path, b"%%d" %% os.getpid())]
'''


class ProcessStateTest(unittest.TestCase):
    def check(self, program):
        with FakeFront(program) as front:
            first = front.ready()
            self.assertEqual(front.get("/die").status, 500)
            self.assertIn("GET /die: ValueError: died", front.log())
            self.assertEqual(front.get("/do").body, b"done", front.log())
            wait_until(lambda: system_call(first) in RECEIVES, "the worker waits without a limit")
            self.assertEqual(front.get("/").body, b"%d" % first, front.log())
            self.assertEqual(front.get("/length", body=b"x" * 1_200_000).body, b"1200000",
                             front.log())
            with tempfile.TemporaryFile() as file:
                file.write(b"abc")
                file.seek(0)
                self.assertEqual(front.get("/length", descriptor=file.fileno()).body, b"3")
            front.send(PATH_INFO="/slow")
            wait_until(lambda: os.path.exists(front.directory + "/app.py.begun"))
            os.kill(first, signal.SIGTERM)
            open(front.directory + "/app.py.go", "w").close()
            self.assertEqual(front.response().body, b"slow")
            self.assertEqual(front.control_line(), f"exited {first} 0", front.log())
            second = front.started()
            front.connect()
            self.assertEqual(front.get("/").body, b"%d" % second)
            front.kill(signal.SIGTTIN)
            self.assertEqual(front.control_line(), "workers 2")
            self.assertEqual(front.stop(), 0)

    def test_while_loading(self):
        for name, deed in DEEDS.items():
            with self.subTest(name):
                self.check(APP % (deed, "deed()", "pass"))

    def test_in_a_request(self):
        for name, deed in DEEDS.items():
            if name not in ONLY_WHILE_LOADING:
                with self.subTest(name):
                    self.check(APP % (deed, "", "deed()"))

    def test_workers_have_random_numbers_of_their_own(self):
        program = '''
import random
random.seed(42)
def app(environ, start_response):
    start_response("200 OK", [])
    return [repr(random.random()).encode()]
'''
        for preload in ("auto", "false"):
            with FakeFront(program, preload=preload, workers=3) as front:
                seen, kept = set(), []
                for _ in range(3):
                    front.connect()
                    seen.add(front.get("/").body)
                    kept.append(front.connection)
                    front.connection = None
                self.assertEqual(len(seen), 3, preload)
                for one in kept:
                    one.close()

    def test_handlers_from_loading_are_there_in_the_workers(self):
        program = '''
import signal
for n in (signal.SIGCHLD, signal.SIGUSR1, signal.SIGINT):
    signal.signal(n, signal.SIG_IGN)
def app(environ, start_response):
    start_response("200 OK", [])
    return [repr([int(signal.getsignal(n)) for n in (
        signal.SIGCHLD, signal.SIGUSR1, signal.SIGINT, signal.SIGHUP, signal.SIGTTIN)]).encode()]
'''
        with FakeFront(program) as front:
            self.assertEqual(front.get("/").body, b"[1, 1, 1, 0, 0]")

    def test_atexit_runs_once_in_each_process_that_ends_normally(self):
        program = '''
import atexit, os
def app(environ, start_response):
    if environ["PATH_INFO"] == "/kill":
        os.kill(os.getpid(), 9)
    start_response("200 OK", [])
    return [b"%d" % os.getpid()]
atexit.register(lambda: print("atexit", os.getpid(), flush=True))
'''
        with FakeFront(program, max_requests=1) as front:
            pid = int(front.get("/").body)
            wait_until(lambda: f"atexit {pid}\n" in front.log())
            front.connect()
            front.send(PATH_INFO="/kill")
            self.assertTrue(front.is_closed())
            self.assertEqual(front.log().count("atexit"), 1)
            self.assertEqual(front.stop(), 0)
            lines = [line for line in front.log().splitlines() if line.startswith("atexit")]
            self.assertIn(f"atexit {front.process.pid}", lines)
            self.assertEqual(len(lines), len(set(lines)))

    def test_what_is_printed_while_loading_is_printed_once(self):
        program = '''
import sys
print("no line end", end="")
sys.stdout.buffer.write(b"; bytes")
def app(environ, start_response):
    start_response("200 OK", [])
    print("\\nin a request")
    return []
'''
        with FakeFront(program, workers=2) as front:
            front.get("/")
            front.stop()
            self.assertEqual(front.log().count("no line end"), 1)
            self.assertEqual(front.log().count("; bytes"), 1)
            self.assertIn("\nin a request\n", front.log())


if __name__ == "__main__":
    unittest.main()
