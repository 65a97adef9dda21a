"""What goes beyond WSGI: cleanups, leaving, informational responses, upgrades, hooks."""
import os
import signal
import unittest

from fake_front import RECEIVES, Cut, FakeFront, is_alive, system_call, wait_until

APP = r'''
import os, time
import kirin
directory = os.path.dirname(os.path.abspath(__file__))
kept = []

@kirin.after_fork
def started():
    print("after_fork", flush=True)

@kirin.before_exit
def first():
    raise ValueError("in before_exit")

@kirin.before_exit
def ended():
    print("before_exit", flush=True)

def wait_for_go():
    while not os.path.exists(directory + "/go"):
        time.sleep(0.01)

def note(text):
    print(text, flush=True)

def fail():
    raise ValueError("in cleanup")

def app(environ, start_response):
    path = environ["PATH_INFO"]
    hints = environ["wsgi.early_hints"]
    inform = environ["kirin.informational"]
    cleanup = environ["kirin.cleanup"]
    if path == "/cleanup":
        cleanup += [lambda: note("one"), fail, lambda: cleanup.append(lambda: note("three"))]
    if path == "/cleanup-list":
        environ["kirin.cleanup"] = [lambda: note("replaced list")]
    if path == "/cleanup-no-list":
        environ["kirin.cleanup"] = "nothing"
    if path == "/cleanup-wait":
        cleanup.append(wait_for_go)
    if path == "/cleanup-leave":
        cleanup.append(environ["kirin.leave"])
    if path == "/cleanup-exit":
        cleanup.append(lambda: exit(1))
    if path == "/cleanup-raise":
        cleanup.append(lambda: note("after an error"))
        raise ValueError("before the head")
    if path == "/leave-call":
        environ["kirin.leave"]()
    if path == "/leave-set":
        environ["kirin.leave"] = True
    if path == "/leave-false":
        environ["kirin.leave"] = False
    if path == "/leave-delete":
        del environ["kirin.leave"], environ["kirin.cleanup"]
    if path == "/hints":
        hints([("Link", "</style.css>; rel=preload")])
        inform(102)
        inform("103 Early Hints", [("Link", "</b>")])
        inform("100 Continue", [])
    for status in ("101 Switching Protocols", "200 OK", "99"):
        if path == "/hints-" + status[:3].strip():
            inform(status, [])
    if path == "/hints-forged":
        hints([("Link", "a\r\n\r\nHTTP/1.1 200 OK")])
    write = start_response("200 OK", [])
    if path == "/hints-late":
        write(b"begun")
        hints([])
    if path == "/cleanup-late":
        def parts():
            yield b"part"
            cleanup.append(wait_for_go)
            cleanup.append(lambda: note("late cleanup"))
        return parts()
    if path == "/cleanup-undone":
        cleanup.append(lambda: note("not wanted"))
        def parts():
            yield b"part"
            cleanup.clear()
        return parts()
    if path == "/keep-hints":
        kept.append(hints)
    if path == "/use-hints":
        try:
            kept.pop()([("Link", "<secret of the request before>")])
        except Exception as error:
            return [str(error).encode()]
    if path == "/leave-late":
        def parts():
            yield b"part"
            environ["kirin.leave"] = True
        return parts()
    return [str(os.getpid()).encode()]
'''


class CleanupTest(unittest.TestCase):
    def setUp(self):
        self.front = FakeFront(APP)
        self.pid = self.front.ready()

    def tearDown(self):
        self.front.__exit__()

    def test_functions_run_after_the_response_in_their_order(self):
        response = self.front.get("/cleanup")
        self.assertEqual(response.header["kirin-cleanup"], "1")
        self.assertEqual(self.front.read_bytes(1), b"\n")
        log = self.front.log()
        self.assertLess(log.index("one\n"), log.index("ValueError: in cleanup"))
        self.assertIn("three\n", log)
        self.assertEqual(self.front.get("/").body, str(self.pid).encode())

    def test_the_client_has_the_response_before(self):
        self.front.send(PATH_INFO="/cleanup-wait")
        self.assertEqual(self.front.response().body, str(self.pid).encode())
        self.assertEqual(self.front.unread, b"")
        open(self.front.directory + "/go", "w").close()
        self.assertEqual(self.front.read_bytes(1), b"\n")

    def test_the_end_of_a_cleanup_that_was_taken_back_is_reported(self):
        response = self.front.get("/cleanup-undone")
        self.assertEqual((response.header["kirin-cleanup"], response.body), ("1", b"part"))
        self.assertEqual(self.front.read_bytes(1), b"\n")
        self.assertEqual(self.front.get("/").body, str(self.pid).encode())
        self.assertNotIn("not wanted", self.front.log())

    def test_the_list_may_be_another(self):
        self.assertEqual(self.front.get("/cleanup-list").header["kirin-cleanup"], "1")
        self.assertEqual(self.front.read_bytes(1), b"\n")
        self.assertIn("replaced list\n", self.front.log())
        for path in ("/cleanup-no-list", "/leave-delete", "/leave-false", "/"):
            response = self.front.get(path)
            self.assertNotIn("kirin-cleanup", response.header)
            self.assertNotIn("connection", response.header)
        self.assertEqual(response.body, str(self.pid).encode())

    def test_a_cleanup_that_exits_ends_no_worker(self):
        self.front.get("/cleanup-exit")
        self.assertEqual(self.front.read_bytes(1), b"\n")
        self.assertIn("SystemExit: 1", self.front.log())
        self.assertEqual(self.front.get("/").body, str(self.pid).encode())

    def test_a_cleanup_runs_after_an_error(self):
        response = self.front.get("/cleanup-raise")
        self.assertEqual((response.status, response.header["kirin-cleanup"]), (500, "1"))
        self.assertEqual(self.front.read_bytes(1), b"\n")
        self.assertIn("after an error\n", self.front.log())

    def test_a_cleanup_that_the_head_has_not_announced_closes_the_connection(self):
        response = self.front.get("/cleanup-late")
        self.assertEqual((response.body, response.is_cut), (b"part", False))
        self.assertTrue(self.front.is_closed())
        self.assertNotIn("late cleanup", self.front.log())
        open(self.front.directory + "/go", "w").close()
        self.front.connect()
        self.assertEqual(self.front.get("/").body, str(self.pid).encode())
        self.assertIn("late cleanup\n", self.front.log())

    def test_term_within_a_cleanup_lets_the_worker_leave(self):
        self.front.send(PATH_INFO="/cleanup-wait")
        self.front.response()
        os.kill(self.pid, signal.SIGTERM)
        open(self.front.directory + "/go", "w").close()
        self.assertEqual(self.front.control_line(), f"exited {self.pid} 0")
        self.assertTrue(self.front.is_closed())


class LeaveTest(unittest.TestCase):
    def test_an_application_may_end_its_worker(self):
        for path in ("/leave-call", "/leave-set", "/leave-late", "/cleanup-leave"):
            with self.subTest(path), FakeFront(APP) as front:
                pid = front.ready()
                response = front.get(path)
                if path in ("/leave-call", "/leave-set"):
                    self.assertEqual(response.header["connection"], "close")
                self.assertEqual(front.control_line(), f"exited {pid} 0")
                self.assertNotEqual(front.started(), pid)


class InformationalTest(unittest.TestCase):
    def test_informational_responses_come_before_the_final_one(self):
        with FakeFront(APP) as front:
            pid = front.ready()
            front.send(PATH_INFO="/hints")
            early = front.response()
            self.assertEqual((early.status, early.header["link"]),
                             (103, "</style.css>; rel=preload"))
            self.assertEqual(front.response().status, 102)
            self.assertEqual(front.response().header["link"], "</b>")
            self.assertEqual(front.response().body, str(pid).encode())
            for path in ("/hints-101", "/hints-200", "/hints-99", "/hints-forged"):
                with self.subTest(path):
                    self.assertEqual(front.get(path).status, 500)
            front.send(PATH_INFO="/hints-late")
            self.assertTrue(front.response().is_cut)
            front.connect()
            self.assertEqual(front.get("/").body, str(pid).encode())


    def test_hints_of_a_request_do_not_reach_another_one(self):
        with FakeFront(APP) as front:
            front.ready()
            front.get("/keep-hints")
            response = front.get("/use-hints")
            self.assertEqual(response.status, 200)
            self.assertIn(b"before the final one", response.body)


class HooksTest(unittest.TestCase):
    def test_a_process_that_a_hook_forks_ends_on_term(self):
        program = (
            "import kirin, os, time\n@kirin.after_fork\ndef start():\n"
            "    global child\n    child = os.fork()\n"
            "    while not child:\n        time.sleep(0.01)\n"
            "def app(environ, start_response):\n    start_response('200 OK', [])\n"
            "    return [str(child).encode()]\n"
        )
        with FakeFront(program) as front:
            front.ready()
            child = int(front.get("/").body)
            os.kill(child, signal.SIGTERM)
            wait_until(lambda: not is_alive(child))

    def test_hooks_run_at_the_start_and_the_end_of_a_worker(self):
        for preload in ("auto", "false"):
            with self.subTest(preload=preload), FakeFront(APP, preload=preload) as front:
                front.get("/leave-call")
                wait_until(lambda: "before_exit\n" in front.log())
                log = front.log()
                self.assertIn("after_fork\n", log)
                self.assertIn("before_exit: ValueError: in before_exit", log)

    def test_a_worker_whose_hook_fails_does_not_serve(self):
        program = (
            "import kirin\n@kirin.after_fork\ndef connect():\n"
            "    raise OSError('no database')\ndef app(environ, start_response): pass\n"
        )
        with FakeFront(program) as front:
            pid = front.ready()
            self.assertEqual(front.control_line(), f"exited {pid} 256")
            self.assertIn("OSError: no database", front.log())


class UpgradeTest(unittest.TestCase):
    APP = r'''
import os, time
kept = []
HEAD = b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: echo\r\n\r\n"
def echo(sock):
    while True:
        data = sock.recv(100)
        if not data:
            break
        sock.sendall(data.upper())
def app(environ, start_response):
    path, sock = environ["PATH_INFO"], environ.get("kirin.socket")
    if path == "/self":
        sock.sendall(HEAD)
        echo(sock)
        return []
    if path == "/none":
        sock.sendall(HEAD)
        echo(sock)
        return None
    if path == "/called":
        start_response("101 Switching Protocols", [("Upgrade", "echo")])
        echo(sock)
        return []
    if path == "/written":
        write = start_response("101 Switching Protocols", [("Upgrade", "echo")])
        write(b"raw")
        return [b" bytes"]
    if path == "/also":
        sock.sendall(HEAD)
        start_response("200 OK", [])
        return [b"a response"]
    if path == "/raise":
        sock.sendall(HEAD)
        raise ValueError("within the protocol")
    if path == "/late":
        write = start_response("200 OK", [])
        sock.sendall(HEAD)
        write(b"a response")
    if path == "/generator":
        def parts():
            sock.sendall(HEAD)
            echo(sock)
            yield b""
        return parts()
    if path == "/write":
        start_response("200 OK", [])(repr((os.getpid(), sock is not None)).encode())
        return [b""]
    if path == "/both":
        sock.sendall(HEAD)
        start_response("101 Switching Protocols", [])
        return []
    if path == "/nothing":
        return []
    if path == "/keep":
        kept.append(sock)
    if path == "/hints":
        environ["wsgi.early_hints"]([])
    if path == "/kept":
        start_response("200 OK", [])
        return [repr([one.fileno() for one in kept]).encode()]
    start_response("200 OK", [])
    return [repr((os.getpid(), sock is not None)).encode()]
'''

    def setUp(self):
        self.front = FakeFront(self.APP)
        self.pid = self.front.ready()

    def tearDown(self):
        self.front.__exit__()

    def upgrade(self, path, **values):
        self.front.send(PATH_INFO=path, HTTP_UPGRADE="echo", **values)
        return self.front.response()

    def check_worker(self):
        self.front.connect()
        self.assertEqual(eval(self.front.get("/").body), (self.pid, False))

    def test_the_application_may_speak_another_protocol(self):
        for path in ("/self", "/none", "/called", "/generator"):
            with self.subTest(path):
                response = self.upgrade(path)
                self.assertEqual((response.status, response.header["upgrade"]), (101, "echo"))
                self.front.connection.sendall(b"abc")
                self.assertEqual(self.front.read_bytes(3), b"ABC")
                self.front.connection.shutdown(1)
                self.assertTrue(self.front.is_closed())
                self.front.connect()
        self.assertNotIn("kirin", self.front.log())

    def test_the_bytes_of_a_response_101_are_raw(self):
        self.assertEqual(self.upgrade("/written").status, 101)
        self.assertEqual(self.front.read_bytes(9), b"raw bytes")
        self.assertTrue(self.front.is_closed())
        self.check_worker()

    def test_nothing_follows_what_the_application_has_written(self):
        for path, text in {"/also": "its response is not sent", "/raise": "within the protocol",
                           "/both": "its response is not sent",
                           "/late": "its response is not sent"}.items():
            with self.subTest(path):
                self.assertEqual(self.upgrade(path).status, 101)
                self.assertTrue(self.front.is_closed())
                self.assertIn(text, self.front.log())
                self.check_worker()

    def test_another_response_is_sent_as_usual_and_the_connection_stays(self):
        self.assertEqual(eval(self.upgrade("/").body), (self.pid, True))
        self.assertEqual(eval(self.upgrade("/write").body), (self.pid, True))
        self.assertEqual(self.upgrade("/nothing").status, 500)
        self.upgrade("/keep")
        self.assertEqual(self.front.get("/kept").body, b"[-1]")
        self.assertEqual(eval(self.front.get("/").body), (self.pid, False))

    def test_after_an_informational_response_the_connection_ends(self):
        self.assertEqual(self.upgrade("/hints").status, 103)
        self.assertEqual(self.front.response().status, 200)
        self.assertTrue(self.front.is_closed())
        self.check_worker()

    def test_only_upgrades_over_http_1_1_without_a_body_have_a_socket(self):
        for values in ({"SERVER_PROTOCOL": "HTTP/2"}, {"SERVER_PROTOCOL": "HTTP/1.0"},
                       {"body": b"abc"}):
            self.assertEqual(eval(self.upgrade("/", **values).body), (self.pid, False))
            self.assertEqual(self.upgrade("/called", **values).status, 500)

    def test_term_lets_a_protocol_go_on(self):
        self.upgrade("/self")
        os.kill(self.pid, signal.SIGTERM)
        self.front.connection.sendall(b"abc")
        self.assertEqual(self.front.read_bytes(3), b"ABC")
        self.front.connection.shutdown(1)
        self.assertEqual(self.front.control_line(), f"exited {self.pid} 0")
        self.assertRaises(Cut, self.front.response)

    def test_term_before_a_protocol_sets_no_time_limit(self):
        self.front.get("/")
        wait_until(lambda: system_call(self.pid) in RECEIVES, "the worker waits")
        os.kill(self.pid, signal.SIGSTOP)
        self.front.send(PATH_INFO="/self", HTTP_UPGRADE="echo")
        os.kill(self.pid, signal.SIGTERM)
        os.kill(self.pid, signal.SIGCONT)
        self.assertEqual(self.front.response().status, 101)
        # With a limit the call would end within one of the looks.
        seen = []
        wait_until(lambda: seen.append(system_call(self.pid)) or seen[-5:] == seen[-1:] * 5)
        self.front.connection.sendall(b"abc")
        self.assertEqual(self.front.read_bytes(3), b"ABC")


if __name__ == "__main__":
    unittest.main()
