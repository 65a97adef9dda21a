"""How an ASGI worker starts, accepts connections, leaves and ends."""
import os
import signal
import socket
import time
import unittest

from asgi_front import AsgiFront, program, python_with
from fake_front import FakeFront, is_alive, wait_until

REQUESTS = program('''
path = scope["path"]
if path == "/slow":
    note("begun"); await noted("go")
elif path == "/background":
    await answer(send, b"done"); await noted("go"); note("ended"); return
elif path == "/stream":
    await answer(send, b"one", more=True); await noted("go")
    return await send({"type": "http.response.body", "body": b"two"})
elif path == "/stuck":
    async def inner(): note("begun"); await asyncio.sleep(1000)
    try: await inner()
    except asyncio.CancelledError: note("cancelled"); raise
elif path == "/stubborn":
    note("begun")
    while not os.path.exists(os.path.join(here, "go")):
        try: await noted("go")
        except asyncio.CancelledError: note("cancelled")
elif path == "/hang":
    import time
    note("begun")
    while True: time.sleep(0.01)
elif path == "/fork":
    if os.fork() == 0:
        note("forked"); await asyncio.sleep(0)
    elif os.wait()[1] != 256: return
elif path == "/fork-and-wait":
    if os.fork() == 0:
        note("waits"); await asyncio.sleep(1000)
    os.wait()
elif path == "/child":
    import subprocess, sys
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", "print(7)",
        stdout=subprocess.PIPE)
    return await answer(send, (await process.communicate())[0])
await answer(send, b"%d" % os.getpid())
''')


class LeaveTest(unittest.TestCase):
    def setUp(self):
        self.front = AsgiFront(REQUESTS)
        self.addCleanup(self.front.__exit__)
        self.pid = self.front.ready()

    def begun(self, path, name="begun"):
        connection = self.front.open()
        connection.send(PATH_INFO=path)
        wait_until(lambda: self.front.noted(name))
        return connection

    def test_a_worker_that_leaves_closes_idle_connections(self):
        busy = self.begun("/slow")
        idle, other = self.front.open(), self.front.open()
        # The end of one of them means nothing to the others.
        idle.disconnect()
        self.assertEqual(int(other.get("/").body), self.pid)
        os.kill(self.pid, signal.SIGTERM)
        self.assertTrue(other.is_closed())
        self.assertTrue(is_alive(self.pid))
        self.front.note("go")
        response = busy.response()
        self.assertEqual(response.header["connection"], "close")
        self.assertTrue(busy.is_closed())
        self.assertEqual(self.front.exited(), f"exited {self.pid} 0")
        self.assertEqual(self.front.log(), "")

    def test_a_reset_ends_only_its_connection(self):
        other = self.front.open()
        reset = self.front.open()
        reset.send(PATH_INFO="/")
        wait_until(lambda: reset.connection.recv(1, 2))
        # The response has not been read, so this is a reset.
        reset.disconnect()
        self.assertEqual(int(other.get("/").body), self.pid)
        self.assertEqual(int(self.front.get("/").body), self.pid)

    def test_term_lets_requests_end(self):
        busy, stream = self.begun("/slow"), self.front.open()
        stream.send(PATH_INFO="/stream")
        self.assertIn(b"chunked", stream.read_until(b"\r\n\r\n"))
        stream.read_until(b"one\r\n")
        idle = self.front.open()
        os.kill(self.pid, signal.SIGTERM)
        # The worker has noticed it.
        self.assertTrue(idle.is_closed())
        self.front.note("go")
        self.assertEqual(busy.response().header["connection"], "close")
        self.assertEqual(stream.read_until(b"0\r\n\r\n"), b"3\r\ntwo\r\n")
        self.assertTrue(stream.is_closed())
        self.assertEqual(self.front.exited(), f"exited {self.pid} 0")

    def test_a_worker_waits_for_coroutines_behind_their_responses(self):
        connection = self.front.open()
        self.assertEqual(connection.get("/background").body, b"done")
        os.kill(self.pid, signal.SIGTERM)
        self.assertTrue(connection.is_closed())
        self.assertTrue(is_alive(self.pid))
        self.front.note("go")
        self.assertEqual(self.front.exited(), f"exited {self.pid} 0")
        self.assertTrue(self.front.noted("ended"))

    def test_term_ends_an_idle_worker(self):
        connection = self.front.open()
        self.assertEqual(self.front.stop(), 0)
        self.assertTrue(connection.is_closed())

    def test_a_leaving_worker_answers_the_requests_that_have_come(self):
        connections = [self.front.open() for _ in range(5)]
        os.kill(self.pid, signal.SIGSTOP)
        os.kill(self.pid, signal.SIGTERM)
        for connection in connections:
            connection.send(PATH_INFO="/")
        os.kill(self.pid, signal.SIGCONT)
        for connection in connections:
            self.assertEqual(int(connection.response().body), self.pid)
            self.assertTrue(connection.is_closed())
        self.assertEqual(self.front.exited(), f"exited {self.pid} 0")

    def test_a_forked_process_does_not_answer(self):
        self.assertEqual(int(self.front.get("/fork").body), self.pid)
        self.assertTrue(self.front.noted("forked"))
        self.assertIn("has returned to the event loop; it ends", self.front.log())
        self.assertEqual(int(self.front.get("/fork-and-wait").body), self.pid)
        self.assertTrue(self.front.noted("waits"))
        self.assertEqual(self.front.get("/child").body, b"7\n")

    def test_a_worker_ends_with_its_parent(self):
        busy = self.begun("/slow")
        self.front.kill(signal.SIGKILL)
        self.front.note("go")
        self.assertEqual(busy.response().status, 200)
        wait_until(lambda: not is_alive(self.pid))


class LimitTest(unittest.TestCase):
    def test_a_worker_leaves_after_its_number_of_requests(self):
        with AsgiFront(REQUESTS, max_requests=3) as front:
            pid = front.ready()
            first, second, third = front.open(), front.open(), front.open()
            for connection in (first, second):
                self.assertNotIn("connection", connection.get("/").header)
            self.assertEqual(first.get("/").header["connection"], "close")
            self.assertTrue(first.is_closed())
            # A request that was on its way is answered, too.
            self.assertEqual(second.get("/").header["connection"], "close")
            self.assertTrue(second.is_closed())
            # The front closes the others.
            self.assertTrue(is_alive(pid))
            third.disconnect()
            self.assertEqual(front.exited(), f"exited {pid} 0")
            self.assertNotEqual(int(front.get("/").body), pid)

    def test_an_overdue_request_is_cancelled_and_its_place_is_logged(self):
        with AsgiFront(REQUESTS, deadline=0.2) as front:
            pid = front.ready()
            connection = front.open()
            connection.send(PATH_INFO="/stuck", REQUEST_URI="/stuck", HTTP_X_REQUEST_ID="id-1")
            wait_until(lambda: front.noted("begun"))
            # The front ends a request when the deadline is over.
            time.sleep(0.2)
            connection.connection.shutdown(1)
            self.assertTrue(connection.is_closed())
            wait_until(lambda: front.noted("cancelled"))
            self.assertRegex(
                front.log(),
                r"GET /stuck: took too long, and is cancelled; it waits here:"
                r"(?: request_id=id-1)?\n(?s:.*)in inner\n",
            )
            self.assertEqual(int(front.get("/").body), pid)

    def test_a_client_that_goes_early_cancels_nothing(self):
        with AsgiFront(REQUESTS, deadline=100) as front:
            front.ready()
            connection = front.open()
            connection.send(PATH_INFO="/stubborn")
            wait_until(lambda: front.noted("begun"))
            connection.connection.shutdown(1)
            self.assertTrue(connection.is_closed())
            self.assertEqual(front.get("/").status, 200)
            self.assertFalse(front.noted("cancelled"))
            front.note("go")

    def test_a_coroutine_that_does_not_end_cannot_keep_a_worker(self):
        with AsgiFront(REQUESTS, deadline=0.2) as front:
            pid = front.ready()
            connection = front.open()
            connection.send(PATH_INFO="/stubborn")
            wait_until(lambda: front.noted("begun"))
            os.kill(pid, signal.SIGTERM)
            # Another worker does not wait for the end of this one.
            self.assertRegex(front.control_line(), "^started [0-9]+$")
            self.assertEqual(front.exited(), f"exited {pid} 0")
            self.assertTrue(front.noted("cancelled"))

    def test_a_loop_that_hangs_is_logged_and_ended(self):
        with AsgiFront(REQUESTS) as front:
            pid = front.ready()
            connection = front.open()
            connection.send(PATH_INFO="/hang", REQUEST_URI="/hang")
            wait_until(lambda: front.noted("begun"))
            os.kill(pid, signal.SIGUSR2)
            self.assertTrue(connection.is_closed())
            self.assertEqual(front.exited(), f"exited {pid} 256")
            log = front.log()
            self.assertRegex(log, r"the event loop hangs, at .*app\.py line [0-9]+, in handle")
            self.assertIn("requests in progress: GET /hang", log)
            self.assertIn("Current thread", log)

    def test_the_number_of_connections_follows_the_limit_of_descriptors(self):
        text = "import resource\nresource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))\n" + REQUESTS
        with AsgiFront(text) as front:
            front.ready()
            connections = [front.open() for _ in range(20)]
            self.assertRegex(connections[0].greeting, r" connections=20\b")
            self.assertEqual(len({one.greeting for one in connections}), 1)
            for connection in connections:
                self.assertEqual(connection.get("/").status, 200)
            # Only when one has ended the worker accepts another.
            waiting = socket.socket(socket.AF_UNIX)
            waiting.settimeout(30)
            waiting.connect(front.path)
            self.assertEqual(connections[1].get("/").status, 200)
            ended = connections[0]
            ended.send(PATH_INFO="/slow")
            wait_until(lambda: front.noted("begun"))
            ended.disconnect()
            self.assertTrue(waiting.recv(256).startswith(b"KIRIN/1 "))
            waiting.close()
            front.note("go")

    def test_workers_share_connections(self):
        with AsgiFront(REQUESTS, workers=2) as front:
            front.ready()
            front.started()
            pids = [int(front.open().get("/").body) for _ in range(1)]
            while len(set(pids)) < 2:
                pids.append(int(front.open().get("/").body))
                self.assertLess(len(pids), 100)


LIFESPAN = '''
import os, asyncio
here = os.path.dirname(os.path.abspath(__file__))
import kirin
order = []
@kirin.after_fork
def forked(): order.append("forked")
@kirin.before_exit
def ended(): print("hook", flush=True)
async def app(scope, receive, send):
    if scope["type"] == "lifespan":
        order.append("startup")
        assert (await receive())["type"] == "lifespan.startup"
        scope["state"]["order"] = order
        {startup}
        await send({{"type": "lifespan.startup.complete"}})
        assert (await receive())["type"] == "lifespan.shutdown"
        print("shutdown", flush=True)
        {shutdown}
        await send({{"type": "lifespan.shutdown.complete"}})
        return
    body = repr(scope["state"]).encode()
    scope["state"]["other"] = 1
    await send({{"type": "http.response.start", "status": 200}})
    await send({{"type": "http.response.body", "body": body}})
'''


def lifespan(startup="pass", shutdown="pass"):
    return LIFESPAN.format(startup=startup, shutdown=shutdown)


class LifespanTest(unittest.TestCase):
    def test_an_application_starts_before_its_first_request_and_ends_after_the_last(self):
        for preload in ("auto", "true", "false"):
            with self.subTest(preload), AsgiFront(lifespan(), preload=preload) as front:
                pid = front.ready()
                for _ in range(2):
                    self.assertEqual(front.get("/").body, b"{'order': ['forked', 'startup']}")
                os.kill(pid, signal.SIGTERM)
                self.assertRegex(front.exited(), "^exited [0-9]+ 0$")
                self.assertEqual(front.log(), "shutdown\nhook\n")

    def test_an_application_that_cannot_start_is_reported_once(self):
        for preload in ("auto", "false"):
            text = lifespan('return await send({"type": "lifespan.startup.failed", "message":'
                            ' "no database\\nat all"})')
            with self.subTest(preload), FakeFront(text, preload=preload) as front:
                front.started()
                self.assertEqual(front.control_line(),
                                 "failed lifespan.startup.failed: no database\\nat all")
                self.assertIsNone(front.control_line())
                self.assertEqual(front.wait(), 1)

    def test_a_hook_that_fails_is_reported(self):
        text = lifespan().replace('order.append("forked")', '1 / 0')
        with FakeFront(text) as front:
            front.started()
            self.assertRegex(front.control_line(), "^failed ZeroDivisionError: ")

    def test_a_failing_shutdown_is_logged(self):
        for shutdown, logged in (
            ('await send({"type": "lifespan.shutdown.failed", "message": "why"}); return',
             "lifespan.shutdown.failed: why"),
            ('raise RuntimeError("on purpose")', "lifespan.shutdown: RuntimeError: on purpose"),
        ):
            with self.subTest(shutdown), AsgiFront(lifespan(shutdown=shutdown)) as front:
                front.ready()
                self.assertEqual(front.stop(), 0)
                self.assertIn(logged, front.log())

    def test_applications_without_a_lifespan_are_served(self):
        for startup in ("raise ValueError", "return", "raise SystemExit(1)"):
            with self.subTest(startup), AsgiFront(lifespan(startup)) as front:
                front.ready()
                self.assertEqual(front.get("/").status, 200)
                self.assertEqual(front.stop(), 0)

    def test_term_while_an_application_starts_ends_the_worker(self):
        text = lifespan('open(here + "/begun", "w").close(); await asyncio.sleep(1000)')
        with AsgiFront(text) as front:
            pid = front.started()
            wait_until(lambda: front.noted("begun"))
            self.assertEqual(front.stop(), 0)
            self.assertFalse(is_alive(pid))


class LoopTest(unittest.TestCase):
    def test_uvloop_is_used_if_the_application_has_it(self):
        text = program("await answer(send, type(asyncio.get_running_loop()).__module__.encode())")
        with AsgiFront(text, python=python_with("uvloop")) as front:
            front.ready()
            self.assertEqual(front.get("/").body, b"uvloop")
            self.assertEqual(front.stop(), 0)
        with AsgiFront(text, files={"uvloop.py": "raise ImportError\n"}) as front:
            front.ready()
            self.assertIn(b"asyncio", front.get("/").body)


if __name__ == "__main__":
    unittest.main()
