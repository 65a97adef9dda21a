"""The application of the adapter suite for Python. README.md says what each path does."""
import base64
import hashlib
import os
import random
import signal
import subprocess
import sys
import time

from suite_tools import (
    DIRECTORY,
    Unprintable,
    counted,
    fail,
    kill_self,
    load_badly,
    meet,
    pattern,
    slurp,
    spurt,
    wait_for_file,
)

TEXT = ("Content-Type", "text/plain")
LINK = ("Link", "</style.css>; rel=preload")

# The number of requests that this process has had, except for /state.
requests = 0

# Sockets that the application does not give back.
kept = []


def hang():
    """Sleeps for good, whatever signals come. The log must say that it hangs in this file."""
    while True:
        time.sleep(600)


def query(environ):
    return environ["QUERY_STRING"]


def answer(start_response, body, status="200 OK", *fields):
    """Answers with a body of bytes or text, whose length is known."""
    body = body.encode() if isinstance(body, str) else body
    start_response(status, [TEXT, ("Content-Length", str(len(body))), *fields])
    return [body]


def note(text):
    """Returns a function that writes to the log."""
    return lambda: print(text, file=sys.stderr, flush=True)


class Body:
    """A body that is made while it is read. An item may be a function that makes the part."""

    def __init__(self, parts, close=None):
        self.parts = iter(parts)
        self.at_close = close

    def __iter__(self):
        return self

    def __next__(self):
        part = next(self.parts)
        return part() if callable(part) else part

    def close(self):
        if self.at_close:
            self.at_close()


# What a request is.


def env(environ, start_response):
    lines = [
        f"{name}={value}\n"
        for name, value in sorted(environ.items())
        if name[:1].isupper() and isinstance(value, str)
    ]
    return answer(start_response, "".join(lines).encode("latin-1"))


def change_env(environ, start_response):
    environ["HTTP_X_LEFT"] = "behind"
    del environ["PATH_INFO"], environ["QUERY_STRING"]
    return answer(start_response, "changed")


def scheme(environ, start_response):
    return answer(start_response, environ["wsgi.url_scheme"])


def echo(environ, start_response):
    body = environ["wsgi.input"].read()
    media_type = environ.get("CONTENT_TYPE", "application/octet-stream")
    length = ("Content-Length", str(len(body)))
    start_response("200 OK", [("Content-Type", media_type), length])
    return [body]


def length(environ, start_response):
    return answer(start_response, counted(environ["wsgi.input"].read()))


def input_lines(environ, start_response):
    lines = list(environ["wsgi.input"])
    return answer(start_response, f"{len(lines)} {counted(b''.join(lines))}")


def input_part(environ, start_response):
    return answer(start_response, environ["wsgi.input"].read(5))


def input_beyond(environ, start_response):
    stream = environ["wsgi.input"]
    content = stream.read(int(environ["CONTENT_LENGTH"]) + 100)
    return answer(start_response, f"{len(content)} {len(stream.read(100))}")


# Bodies.


def list_body(_environ, start_response):
    start_response("200 OK", [TEXT])
    return [b"one", b"", b"two"]


def nothing(_environ, start_response):
    start_response("200 OK", [TEXT])
    return []


def wrong_length(_environ, start_response):
    start_response("200 OK", [TEXT, ("Content-Length", "1000")])
    return [b"short"]


def iterate(_environ, start_response):
    start_response("200 OK", [TEXT])
    return Body([b"one", b"", b"two"], note("the body is closed"))


def iterate_with_length(content_length):
    def action(_environ, start_response):
        start_response("200 OK", [TEXT, ("Content-Length", str(content_length))])
        return Body([b"one", b"two"])

    return action


def close_dies(_environ, start_response):
    start_response("200 OK", [TEXT])
    return Body([b"one", b"two"], lambda: fail("a bad close"))


def stream(_environ, start_response):
    start_response("200 OK", [TEXT])
    for number in range(1, 4):
        yield f"part {number}\n".encode()


def stream_wait(environ, start_response):
    start_response("200 OK", [TEXT])
    yield b"first\n"
    wait_for_file(f"go.{query(environ)}")
    yield b"last\n"


def stream_large(_environ, start_response):
    start_response("200 OK", [TEXT])
    for _ in range(20):
        yield pattern(251_000)


def stream_endless(environ, start_response):
    start_response("200 OK", [TEXT])
    parts = iter(lambda: b"x" * 65_536, None)
    return Body(parts, lambda: spurt(f"closed.{query(environ)}", os.getpid()))


def writer(_environ, start_response):
    write = start_response("200 OK", [TEXT])
    for part in (b"one", b"", b"two"):
        write(part)
    return []


def writer_endless(_environ, start_response):
    write = start_response("200 OK", [TEXT])
    while True:
        write(b"x" * 65_536)


def replaced_head(_environ, start_response):
    start_response("200 OK", [TEXT, ("X-First", "1")])
    try:
        fail("an error that the application handles")
    except RuntimeError:
        start_response("503 Service Unavailable", [TEXT], sys.exc_info())
    return [b"replaced"]


def status(environ, start_response):
    code = environ["PATH_INFO"].removeprefix("/status/")
    start_response(f"{code} Reason", [TEXT])
    return [f"status {code}".encode()]


# Fields of responses.


def with_fields(body, *fields):
    def action(_environ, start_response):
        start_response("200 OK", [TEXT, *fields])
        return [body]

    return action


MANY = [(f"X-Field-{number}", "v" * 300) for number in range(1, 101)]
FORGED = [("Kirin-File", "1 2 3 4 5 /etc/passwd"), ("Kirin-Cleanup", "1")]


# Responses that the interface does not allow.


def returning(response):
    def action(_environ, start_response):
        start_response("200 OK", [TEXT])
        return response

    return action


def wide_later(_environ, start_response):
    start_response("200 OK", [TEXT])
    yield b"part"
    yield "\u263a"


def no_fields(_environ, start_response):
    start_response("200 OK")
    return [b"a"]


def never(_environ, _start_response):
    return [b"a"]


# Failures.


def die_before(_environ, _start_response):
    raise RuntimeError("a bad day")


def die_object(_environ, _start_response):
    raise Unprintable()


def die_first_part(_environ, start_response):
    start_response("200 OK", [TEXT])
    return Body([lambda: fail("no first part")])


def die_in(_environ, start_response):
    start_response("200 OK", [TEXT])
    yield b"part"
    raise RuntimeError("too late")


def die_in_iterator(_environ, start_response):
    start_response("200 OK", [TEXT])
    return Body([b"part", lambda: fail("too late")])


def die_caught(_environ, start_response):
    try:
        fail("caught by the application")
    except RuntimeError:
        return answer(start_response, "caught")


def exit_worker(_environ, _start_response):
    sys.exit(3)


def kill(_environ, _start_response):
    kill_self()


def kill_once(environ, start_response):
    path = os.path.join(DIRECTORY, f"killed.{query(environ)}")
    try:
        open(path, "x", encoding="utf-8").close()
    except FileExistsError:
        return answer(start_response, "survived")
    return kill_self()


def kill_in(_environ, start_response):
    start_response("200 OK", [TEXT])
    yield b"part"
    kill_self()


# Requests that wait or take too long.


def wait(environ, start_response):
    meet(query(environ))
    return answer(start_response, str(os.getpid()))


def hang_begun(environ, _start_response):
    spurt(f"begun.{query(environ)}", os.getpid())
    hang()


def hang_loop(_environ, _start_response):
    while True:
        pass


# The worker.


VERSION = slurp("version") or "none"


def version(_environ, start_response):
    return answer(start_response, VERSION)


def pid(_environ, start_response):
    return answer(start_response, str(os.getpid()))


def parent(_environ, start_response):
    return answer(start_response, str(os.getppid()))


def random_number(_environ, start_response):
    return answer(start_response, str(random.random()))


def leave(environ, start_response):
    environ["kirin.leave"]()
    return pid(environ, start_response)


def log(environ, start_response):
    environ["wsgi.errors"].write(f"a line for the log: {query(environ)}\n")
    environ["wsgi.errors"].flush()
    return answer(start_response, "logged")


def print_line(environ, start_response):
    print(f"a line on standard output: {query(environ)}", flush=True)
    return answer(start_response, "printed")


def close_streams(_environ, start_response):
    for number in range(3):
        os.close(number)
    return answer(start_response, "closed")


def ignore_signals(environ, start_response):
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR2, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    return pid(environ, start_response)


def program(_environ, start_response):
    return answer(start_response, subprocess.check_output(["echo", "hello"]))


def child_dies(_environ, start_response):
    child = os.fork()
    if not child:
        raise RuntimeError("a bad child")
    os.waitpid(child, 0)
    return answer(start_response, "parent")


def child_answers(_environ, start_response):
    child = os.fork()
    if not child:
        return answer(start_response, "child")
    os.waitpid(child, 0)
    return answer(start_response, "parent")


def background(environ, start_response):
    name = query(environ)
    if not os.fork():
        meet(name)
        spurt(f"done.{name}", "")
        os._exit(0)
    return pid(environ, start_response)


# After the response.


def note_cleanup(name):
    """Returns a handler that a test can hold up."""

    def handler():
        meet(name)
        print(f"cleaned up after {name}", file=sys.stderr, flush=True)

    return handler


def cleanup(environ, start_response):
    environ["kirin.cleanup"].append(note_cleanup(query(environ)))
    return pid(environ, start_response)


def cleanup_stream(environ, start_response):
    environ["kirin.cleanup"].append(note_cleanup(query(environ)))
    start_response("200 OK", [TEXT])
    return Body([str(os.getpid()).encode()])


def cleanup_late(environ, start_response):
    start_response("200 OK", [TEXT])
    yield str(os.getpid()).encode()
    environ["kirin.cleanup"].append(note_cleanup(query(environ)))


def cleanup_die(environ, start_response):
    environ["kirin.cleanup"].append(lambda: fail("a bad handler"))
    environ["kirin.cleanup"].append(note("the next handler runs"))
    return answer(start_response, "answered")


def cleanup_leave(environ, start_response):
    environ["kirin.leave"]()
    return cleanup(environ, start_response)


def cleanup_after_die(environ, _start_response):
    environ["kirin.cleanup"].append(note("cleaned up after a failure"))
    raise RuntimeError("a bad day")


def cleanup_hang(environ, start_response):
    environ["kirin.cleanup"].append(hang)
    return pid(environ, start_response)


def cleanup_kill(environ, start_response):
    environ["kirin.cleanup"].append(kill_self)
    return pid(environ, start_response)


# Informational responses.


def hints(environ, start_response):
    inform = environ["kirin.informational"]
    inform(103, [LINK, ("Connection", "close")])
    wait_for_file(f"go.{query(environ)}")
    inform(103, [("Link", "</more.css>; rel=preload")])
    return answer(start_response, "hinted")


def hints_refused(environ, start_response):
    refused = []
    for code in (101, 200, 99):
        try:
            environ["kirin.informational"](code, [])
        except Exception:
            refused.append(str(code))
    return answer(start_response, "refused: " + " ".join(refused))


def hints_continue(environ, start_response):
    environ["kirin.informational"](100, [])
    return answer(start_response, "continued")


def hints_die(environ, _start_response):
    environ["kirin.informational"](103, [LINK])
    raise RuntimeError("a bad day after a hint")


def hints_line_end(environ, start_response):
    try:
        environ["kirin.informational"](103, [("Link", "</a>\r\nX-Evil: b")])
    except Exception:
        return answer(start_response, "refused")
    return answer(start_response, "sent")


# Upgrades.


def switch_protocols(connection, *fields):
    lines = ["HTTP/1.1 101 Switching Protocols", "Connection: Upgrade", *fields, "", ""]
    connection.sendall("\r\n".join(lines).encode())


def receive_exactly(connection, size):
    content = b""
    while len(content) < size:
        part = connection.recv(size - len(content))
        if not part:
            raise EOFError
        content += part
    return content


def socket(environ, start_response):
    return answer(start_response, "socket" if environ.get("kirin.socket") else "none")


def upgrade(environ, start_response):
    connection = environ.get("kirin.socket")
    if not connection:
        start_response("426 Upgrade Required", [TEXT, ("Upgrade", "echo")])
        return [b"upgrade"]
    switch_protocols(connection, "Upgrade: echo", f"X-Worker: {os.getpid()}")
    while content := connection.recv(65_536):
        connection.sendall(content)
    return []


def websocket(environ, _start_response):
    connection = environ["kirin.socket"]
    key = environ["HTTP_SEC_WEBSOCKET_KEY"] + "258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
    accept = base64.b64encode(hashlib.sha1(key.encode()).digest()).decode()
    switch_protocols(connection, "Upgrade: websocket", f"Sec-WebSocket-Accept: {accept}")
    try:
        first = 0
        while first & 15 != 8:
            first, size = receive_exactly(connection, 2)
            size &= 127
            mask = receive_exactly(connection, 4)
            data = receive_exactly(connection, size)
            data = bytes(byte ^ mask[at % 4] for at, byte in enumerate(data))
            connection.sendall(bytes([first, size]) + data)
    except EOFError:
        pass
    return []


def say_bye(environ):
    connection = environ["kirin.socket"]
    switch_protocols(connection, "Upgrade: echo")
    connection.sendall(b"bye")


def upgrade_die(environ, _start_response):
    say_bye(environ)
    raise RuntimeError("a bad day after the switch")


def upgrade_response(environ, start_response):
    say_bye(environ)
    return answer(start_response, "late")


def upgrade_keep(environ, _start_response):
    kept.append(environ["kirin.socket"])
    say_bye(environ)
    return []


def upgrade_decline(_environ, _start_response):
    raise RuntimeError("declined")


def upgrade_unasked(_environ, start_response):
    start_response("101 Switching Protocols", [("Upgrade", "echo")])
    return []


def upgrade_writer(_environ, start_response):
    start_response("101 Switching Protocols", [("Upgrade", "echo")])
    yield b"hello "
    yield b"and bye"


def upgrade_kill(environ, _start_response):
    say_bye(environ)
    kill_self()


# Files.


def small(environ):
    file = open(os.path.join(DIRECTORY, "static/small.txt"), "rb")
    return environ["wsgi.file_wrapper"](file)


def file_with(*fields, code="200 OK"):
    def action(environ, start_response):
        start_response(code, [TEXT, *fields])
        return small(environ)

    return action


def file_large(environ, start_response):
    start_response("200 OK", [TEXT])
    path = os.path.join(DIRECTORY, "static/large.bin")
    return environ["wsgi.file_wrapper"](open(path, "rb"))


def file_read(environ, start_response):
    start_response("200 OK", [TEXT])
    file = open(os.path.join(DIRECTORY, "static/small.txt"), "rb")
    file.read(4)
    return environ["wsgi.file_wrapper"](file)


def file_gone(environ, start_response):
    spurt("static/temporary", "temporary")
    path = os.path.join(DIRECTORY, "static/temporary")
    file = open(path, "rb")
    os.unlink(path)
    start_response("200 OK", [TEXT])
    return environ["wsgi.file_wrapper"](file)


def file_unnamed(_environ, start_response):
    start_response("200 OK", [TEXT])
    return open(os.path.join(DIRECTORY, "static/small.txt"), "rb")


def file_cleanup(environ, start_response):
    environ["kirin.cleanup"].append(note("cleaned up after a file"))
    start_response("200 OK", [TEXT])
    return small(environ)


def file_leave(environ, start_response):
    environ["kirin.leave"]()
    start_response("200 OK", [TEXT])
    return small(environ)


def sendfile(environ, start_response):
    path = os.path.join(DIRECTORY, query(environ))
    start_response("200 OK", [TEXT, ("X-Sendfile", path)])
    return []


ACTIONS = {
    "/change-env": change_env,
    "/scheme": scheme,
    "/echo": echo,
    "/length": length,
    "/input/lines": input_lines,
    "/input/part": input_part,
    "/input/beyond": input_beyond,
    "/list": list_body,
    "/nothing": nothing,
    "/wrong-length": wrong_length,
    "/iterate": iterate,
    "/iterate/length": iterate_with_length(6),
    "/iterate/long": iterate_with_length(3),
    "/iterate/short": iterate_with_length(9),
    "/iterate/close-dies": close_dies,
    "/stream": stream,
    "/stream/wait": stream_wait,
    "/stream/large": stream_large,
    "/stream/endless": stream_endless,
    "/writer": writer,
    "/writer/endless": writer_endless,
    "/replaced-head": replaced_head,
    "/fields/bytes": with_fields(
        b"caf\xe9", ("X-Latin", "caf\xe9"), ("X-UTF-8", "café".encode().decode("latin-1"))
    ),
    "/fields/repeated": with_fields(b"cookies", ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")),
    "/fields/empty": with_fields(b"empty", ("X-Empty", "")),
    "/fields/many": with_fields(b"many", *MANY),
    "/fields/hop-by-hop": with_fields(b"kept", ("Connection", "close"), ("Keep-Alive", "x")),
    "/fields/forged": with_fields(b"forged", *FORGED),
    "/fields/line-end": with_fields(b"a", ("X-A", "a\r\nX-Evil: b")),
    "/fields/line-feed": with_fields(b"a", ("X-A", "a\nX-Evil: b")),
    "/fields/return": with_fields(b"a", ("X-A", "a\rb")),
    "/fields/nul": with_fields(b"a", ("X-A", "a\0b")),
    "/fields/control": with_fields(b"a", ("X-A", "a\x01b")),
    "/fields/name-line-end": with_fields(b"a", ("X-A: 1\r\nX-Evil", "b")),
    "/fields/name-space": with_fields(b"a", ("X Evil", "b"), ("X-A", "a")),
    "/fields/name-colon": with_fields(b"a", ("X:Evil", "b"), ("X-A", "a")),
    "/fields/name-empty": with_fields(b"a", ("", "b"), ("X-A", "a")),
    "/fields/wide": with_fields(b"a", ("X-A", "\u263a")),
    "/odd/wide-body": returning(["\u263a"]),
    "/odd/wide-later": wide_later,
    "/odd/no-response": returning(None),
    "/odd/text-body": returning("text"),
    "/odd/number-body": returning(5),
    "/odd/no-fields": no_fields,
    "/odd/never": never,
    "/die/before": die_before,
    "/die/object": die_object,
    "/die/first-part": die_first_part,
    "/die/in": die_in,
    "/die/in-iterator": die_in_iterator,
    "/die/caught": die_caught,
    "/exit": exit_worker,
    "/kill": kill,
    "/kill/once": kill_once,
    "/kill/in": kill_in,
    "/wait": wait,
    "/hang": hang_begun,
    "/hang/loop": hang_loop,
    "/version": version,
    "/pid": pid,
    "/parent": parent,
    "/random": random_number,
    "/leave": leave,
    "/log": log,
    "/print": print_line,
    "/close-streams": close_streams,
    "/ignore-signals": ignore_signals,
    "/program": program,
    "/fork/child-dies": child_dies,
    "/fork/child-answers": child_answers,
    "/fork/background": background,
    "/cleanup": cleanup,
    "/cleanup/stream": cleanup_stream,
    "/cleanup/late": cleanup_late,
    "/cleanup/die": cleanup_die,
    "/cleanup/leave": cleanup_leave,
    "/cleanup/after-die": cleanup_after_die,
    "/cleanup/hang": cleanup_hang,
    "/cleanup/kill": cleanup_kill,
    "/hints": hints,
    "/hints/refused": hints_refused,
    "/hints/continue": hints_continue,
    "/hints/die": hints_die,
    "/hints/line-end": hints_line_end,
    "/socket": socket,
    "/upgrade": upgrade,
    "/upgrade/websocket": websocket,
    "/upgrade/die": upgrade_die,
    "/upgrade/response": upgrade_response,
    "/upgrade/keep": upgrade_keep,
    "/upgrade/decline": upgrade_decline,
    "/upgrade/unasked": upgrade_unasked,
    "/upgrade/writer": upgrade_writer,
    "/upgrade/kill": upgrade_kill,
    "/file": file_with(),
    "/file/large": file_large,
    "/file/missing": file_with(code="404 Not Found"),
    "/file/exact": file_with(("Content-Length", "10")),
    "/file/shorter": file_with(("Content-Length", "4")),
    "/file/tagged": file_with(("ETag", '"mine"')),
    "/file/read": file_read,
    "/file/gone": file_gone,
    "/file/unnamed": file_unnamed,
    "/file/cleanup": file_cleanup,
    "/file/leave": file_leave,
    "/sendfile": sendfile,
}


def application(environ, start_response):
    global requests
    path = environ["PATH_INFO"]
    if path == "/state":
        return answer(start_response, f"{os.getpid()} {requests}")
    requests += 1
    # Paths with a value in them.
    if path.startswith("/env"):
        return env(environ, start_response)
    if path.startswith("/bytes/"):
        return answer(start_response, pattern(int(path.removeprefix("/bytes/"))))
    if path.startswith("/status/"):
        return status(environ, start_response)
    action = ACTIONS.get(path)
    if action is None:
        return answer(start_response, "no such action", "404 Not Found")
    return action(environ, start_response)


load_badly(slurp("on-load") or "")
