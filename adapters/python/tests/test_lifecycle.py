"""The app parent and its workers: the control channel, signals, and how processes end."""
import os
import shutil
import signal
import subprocess
import sys
import unittest

from fake_front import RECEIVES, PROGRAM, Cut, FakeFront, is_alive, system_call, wait_until

HELLO = '''
import os, random
loaded = os.getpid()
def app(environ, start_response):
    if environ["PATH_INFO"] == "/die":
        os.kill(os.getpid(), 9)
    start_response("200 OK", [])
    return [f"{loaded} {os.getpid()} {random.random()}".encode()]
'''

SLOW = '''
import os, time
def app(environ, start_response):
    directory = os.path.dirname(__file__)
    if environ["PATH_INFO"] == "/slow":
        open(directory + "/begun", "w").close()
        while not os.path.exists(directory + "/go"):
            time.sleep(0.01)
    start_response("200 OK", [])
    return [b"done"]
'''


# The numbers of pause(2), or of ppoll(2) in its place, on x86_64 and aarch64.
PAUSES = ("34", "73")


def begin_slow_request(front):
    front.send(PATH_INFO="/slow")
    wait_until(lambda: os.path.exists(front.directory + "/begun"), "the request has begun")


def let_go(front):
    open(front.directory + "/go", "w").close()


class LifecycleTest(unittest.TestCase):
    def test_the_parent_loads_once_and_reports_it(self):
        with FakeFront(HELLO, workers=2, generation=7, name="a_long_name_of_it") as front:
            first, second = front.ready(), front.started()
            greeting = front.connect()
            self.assertRegex(
                greeting,
                r"^KIRIN/1 pid=[0-9]+ generation=7 adapter=python/[0-9.]+ body=descriptor"
                r"(?: speaks=2)?(?: stacks=python:[0-9a-f,]+)?$",
            )
            loaded, pid, number = front.get("/").body.split()
            self.assertEqual(int(loaded), front.process.pid)
            self.assertIn(int(pid), (first, second))
            self.assertIn(f"pid={int(pid)} ", greeting)
            kept, front.connection = front.connection, None
            front.connect()
            _, other, other_number = front.get("/").body.split()
            self.assertNotEqual(pid, other)
            self.assertNotEqual(number, other_number)
            names = set()
            for one in (front.process.pid, first, second):
                with open(f"/proc/{one}/comm", encoding="utf-8") as file:
                    names.add(file.read().strip())
            self.assertEqual(names, {"kirin a_long_na", "kirin a_long_ 1", "kirin a_long_ 2"})
            kept.close()
            self.assertEqual(front.stop(), 0)
            self.assertFalse(is_alive(first) or is_alive(second))

    def test_a_worker_that_ends_is_replaced(self):
        with FakeFront(HELLO) as front:
            pid = front.ready()
            os.kill(pid, signal.SIGKILL)
            self.assertEqual(front.control_line(), f"exited {pid} 9")
            following = front.started()
            self.assertEqual(int(front.get("/").body.split()[1]), following)

    def test_ttin_and_ttou_change_the_number_of_workers(self):
        with FakeFront(HELLO) as front:
            first = front.ready()
            front.kill(signal.SIGTTIN)
            self.assertEqual(front.control_line(), "workers 2")
            second = front.started()
            front.kill(signal.SIGTTOU)
            self.assertEqual(front.control_line(), "workers 1")
            self.assertEqual(front.control_line(), f"exited {second} 0")
            front.kill(signal.SIGTTOU)
            self.assertEqual(front.control_line(), "workers 1")
            self.assertEqual(int(front.get("/").body.split()[1]), first)

    def test_term_lets_a_request_end(self):
        with FakeFront(SLOW) as front:
            pid = front.ready()
            begin_slow_request(front)
            os.kill(pid, signal.SIGTERM)
            let_go(front)
            response = front.response()
            self.assertEqual(response.body, b"done")
            self.assertEqual(response.header["connection"], "close")
            self.assertEqual(front.control_line(), f"exited {pid} 0")

    def test_term_ends_an_idle_worker_at_once(self):
        for is_connected in (True, False):
            with self.subTest(connected=is_connected), FakeFront(HELLO) as front:
                pid = front.ready()
                if is_connected:
                    front.get("/")
                os.kill(pid, signal.SIGTERM)
                self.assertEqual(front.control_line(), f"exited {pid} 0")
                if is_connected:
                    self.assertTrue(front.is_closed())

    def test_a_request_that_is_there_when_term_comes_is_answered(self):
        with FakeFront(HELLO) as front:
            pid = front.ready()
            front.get("/")
            wait_until(lambda: system_call(pid) in RECEIVES, "the worker waits")
            os.kill(pid, signal.SIGSTOP)
            front.send()
            os.kill(pid, signal.SIGTERM)
            os.kill(pid, signal.SIGCONT)
            response = front.response()
            self.assertEqual(response.header["connection"], "close")
            self.assertEqual(front.control_line(), f"exited {pid} 0")

    def test_a_request_after_term_is_left_unread(self):
        # Whichever comes first, the front must be able to tell what has happened.
        for _ in range(20):
            with FakeFront(HELLO) as front:
                pid = front.ready()
                front.get("/")
                os.kill(pid, signal.SIGTERM)
                try:
                    front.send()
                    data = front.connection.recv(65536)
                except (ConnectionResetError, BrokenPipeError):
                    continue
                self.assertTrue(data.startswith(b"HTTP/1.1 200"), data)
                self.assertIn(b"Connection: close", data)

    def test_quit_waits_until_workers_have_left_by_themselves(self):
        with FakeFront(HELLO) as front:
            pid = front.ready()
            front.get("/")
            front.kill(signal.SIGQUIT)
            self.assertEqual(int(front.get("/").body.split()[1]), pid)
            front.disconnect()
            self.assertEqual(front.control_line(), f"exited {pid} 0")
            self.assertIsNone(front.control_line())
            self.assertEqual(front.wait(), 0)

    def test_term_may_follow_quit(self):
        with FakeFront(HELLO) as front:
            front.ready()
            front.get("/")
            front.kill(signal.SIGQUIT)
            self.assertEqual(front.get("/").status, 200)
            self.assertEqual(front.stop(signal.SIGTERM), 0)

    def test_int_ends_workers_at_once(self):
        with FakeFront(SLOW) as front:
            front.ready()
            begin_slow_request(front)
            self.assertEqual(front.stop(signal.SIGINT), 0)
            self.assertRaises(Cut, front.response)

    def test_a_worker_leaves_after_its_number_of_requests(self):
        with FakeFront(HELLO, max_requests=2) as front:
            pid = front.ready()
            self.assertNotIn("connection", front.get("/").header)
            self.assertEqual(front.get("/").header["connection"], "close")
            self.assertEqual(front.control_line(), f"exited {pid} 0")
            front.disconnect()
            self.assertNotEqual(int(front.get("/").body.split()[1]), pid)

    def test_the_number_of_requests_is_reduced_at_random(self):
        counts = set()
        with FakeFront(HELLO, max_requests=100) as front:
            for _ in range(6):
                front.connect()
                count = 1
                while "connection" not in front.get("/").header:
                    count += 1
                counts.add(count)
                front.disconnect()
        self.assertTrue(all(90 <= count <= 100 for count in counts), counts)
        self.assertGreater(len(counts), 1)

    def test_workers_that_leave_normally_are_replaced_at_once_and_others_after_pauses(self):
        with FakeFront(HELLO, max_requests=1) as front:
            seen = set()
            for _ in range(15):
                front.connect()
                seen.add(front.get("/").body.split()[1])
                front.disconnect()
            self.assertEqual(len(seen), 15)
            for _ in range(4):
                front.connect()
                front.send(PATH_INFO="/die")
                self.assertRaises(Cut, front.response)
            front.connect()
            self.assertEqual(front.get("/").status, 200)

    def test_a_front_that_lets_an_idle_worker_go_has_it_replaced(self):
        with FakeFront(HELLO) as front:
            pid = front.ready()
            front.get("/")
            front.disconnect()
            self.assertEqual(front.control_line(), f"exited {pid} 0")
            self.assertNotEqual(front.started(), pid)
            self.assertEqual(front.get("/").status, 200)

    def test_all_processes_end_when_the_front_has_gone(self):
        for preload in ("auto", "false"):
            with self.subTest(preload=preload):
                read, write = os.pipe()
                middle = os.fork()
                if middle == 0:
                    front = FakeFront(HELLO, workers=2, preload=preload)
                    pid = front.get("/").body.split()[1].decode()
                    os.write(write, f"{front.process.pid} {pid} {front.path}".encode())
                    os.kill(os.getpid(), signal.SIGKILL)
                os.waitpid(middle, 0)
                parent, pid, path = os.read(read, 1000).decode().split()
                wait_until(lambda: not is_alive(parent) and not is_alive(pid), "all have ended")
                self.assertFalse(os.path.exists(path), "the parent removes the socket")
                shutil.rmtree(os.path.dirname(path))
                os.close(read)
                os.close(write)

    def test_a_worker_in_a_request_ends_after_the_deadline_without_front_and_parent(self):
        with FakeFront(SLOW, deadline=0.2) as front:
            pid = front.ready()
            begin_slow_request(front)
            front.kill(signal.SIGKILL)
            front.wait()
            # The front still holds the connection, and the application never returns.
            wait_until(lambda: not is_alive(pid), "the worker has been killed")
            self.assertRaises(Cut, front.response)

    def test_a_worker_in_a_request_answers_before_the_deadline_without_its_parent(self):
        with FakeFront(SLOW) as front:
            pid = front.ready()
            begin_slow_request(front)
            front.kill(signal.SIGKILL)
            front.wait()
            let_go(front)
            self.assertEqual(front.response().body, b"done")
            wait_until(lambda: not is_alive(pid), "the worker has left")

    def test_wrong_arguments_are_refused(self):
        for arguments in ([], ["--preload", "maybe", "app.py"], ["--work", "1", "app.py"]):
            done = subprocess.run([sys.executable, PROGRAM, *arguments], capture_output=True,
                                  check=False)
            self.assertEqual(done.returncode, 2)
            self.assertIn(b"usage: kirin-worker", done.stderr)
        done = subprocess.run([sys.executable, PROGRAM, "app.py"], stdin=subprocess.DEVNULL,
                              capture_output=True, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn(b"STDIN is not a socket", done.stderr)


class OverdueTest(unittest.TestCase):
    APP = '''
import os, threading, time
def app(environ, start_response):
    if environ["PATH_INFO"] == "/slow":
        print("begun", flush=True)
        try:
            hang()
        finally:
            print("undone", flush=True)
    if environ["PATH_INFO"] == "/stubborn":
        print("begun", flush=True)
        import ctypes
        # A call that Python cannot interrupt.
        ctypes.PyDLL(None).pause()
    start_response("200 OK", [])
    return [b"done"]
def hang():
    time.sleep(1000)
'''

    def test_usr2_logs_where_the_request_is_and_the_worker_leaves(self):
        with FakeFront(self.APP) as front:
            pid = front.ready()
            front.send(PATH_INFO="/slow", REQUEST_URI="/slow?x", HTTP_X_REQUEST_ID="id-2")
            wait_until(lambda: "begun" in front.log())
            os.kill(pid, signal.SIGUSR2)
            self.assertEqual(front.control_line(), f"exited {pid} 0")
            self.assertRaises(Cut, front.response)
            log = front.log()
            self.assertRegex(
                log,
                r"GET /slow\?x: took too long, at \S+app\.py line [0-9]+, in hang;"
                r".* request_id=id-2",
            )
            self.assertRegex(log, r'File ".*app\.py", line [0-9]+ in hang')
            self.assertIn("undone", log)

    def test_usr2_writes_the_stack_even_if_python_does_not_run(self):
        with FakeFront(self.APP) as front:
            pid = front.ready()
            front.send(PATH_INFO="/stubborn")
            wait_until(lambda: "begun" in front.log())
            # The first signal interrupts pause(2), so it must come while the call runs.
            wait_until(lambda: system_call(pid) in PAUSES, "the call of pause")
            os.kill(pid, signal.SIGUSR2)
            wait_until(lambda: 'app.py", line' in front.log(), "the stack")

    def test_usr2_between_requests_makes_the_worker_leave(self):
        with FakeFront(self.APP) as front:
            pid = front.ready()
            front.get("/")
            wait_until(lambda: system_call(pid) in RECEIVES, "the worker waits")
            os.kill(pid, signal.SIGUSR2)
            self.assertEqual(front.control_line(), f"exited {pid} 0")
            self.assertNotIn("too long", front.log())


if __name__ == "__main__":
    unittest.main()
