"""The application of the adapter suite for ASGI. README.md says what each path does."""
import asyncio
import collections
import os
import random
import signal
import sys

import suite_tools
from suite_tools import (
    DIRECTORY,
    TABLE,
    Unprintable,
    counted,
    fail,
    is_there,
    kill_self,
    load_badly,
    pattern,
    slurp,
    spurt,
)

TEXT = (b"content-type", b"text/plain")
LINK = b"</style.css>; rel=preload"

# The number of requests that this process has had, except for /state.
requests = 0

# How many requests for /together have come with each name, and the WebSockets of /upgrade/room.
together = collections.Counter()
room = set()

# Tasks that the application has started. Otherwise asyncio could lose them.
tasks = set()


async def wait_for_file(name):
    while not is_there(name):
        await asyncio.sleep(0.01)


async def hang():
    """Waits for good."""
    while True:
        await asyncio.sleep(600)


async def meet(name):
    """Tells a test that this point is reached, and waits until the test goes on."""
    spurt(f"begun.{name}", os.getpid())
    await wait_for_file(f"go.{name}")


def query(scope):
    return scope["query_string"].decode("latin-1")


def path_of(scope):
    """Returns the path below the mount point."""
    return scope["path"].removeprefix(scope["root_path"])


async def start(send, *fields, status=200):
    headers = [TEXT, *fields]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def part(send, body):
    await send({"type": "http.response.body", "body": body, "more_body": True})


async def last(send, body=b""):
    await send({"type": "http.response.body", "body": body})


async def answer(send, body, status=200):
    """Answers with a body of bytes or text, whose length is known."""
    body = body.encode() if isinstance(body, str) else body
    await start(send, (b"content-length", b"%d" % len(body)), status=status)
    await last(send, body)


async def answer_pid(send):
    await answer(send, str(os.getpid()))


async def read(receive):
    """Returns the body of a request."""
    body, more = b"", True
    while more:
        event = await receive()
        body += event["body"]
        more = event["more_body"]
    return body


def note(text):
    """Writes a line to the log."""
    print(text, file=sys.stderr, flush=True)


# What a request is.


def cgi_name(field):
    name = field.decode("latin-1").upper().replace("-", "_")
    return name if name in ("CONTENT_TYPE", "CONTENT_LENGTH") else f"HTTP_{name}"


async def env(scope, receive, send):
    target = scope["raw_path"] + (b"?" if scope["query_string"] else b"") + scope["query_string"]
    names = {
        "CONTENT_LENGTH": b"0",
        "PATH_INFO": path_of(scope).encode(),
        "QUERY_STRING": scope["query_string"],
        "REMOTE_ADDR": scope["client"][0].encode(),
        "REQUEST_METHOD": scope["method"].encode(),
        "REQUEST_URI": target,
        "SCRIPT_NAME": scope["root_path"].encode(),
        "SERVER_NAME": scope["server"][0].encode(),
        "SERVER_PORT": str(scope["server"][1]).encode(),
        "SERVER_PROTOCOL": b"HTTP/" + scope["http_version"].encode(),
    }
    names.update((cgi_name(name), value) for name, value in scope["headers"])
    if scope["scheme"] == "https":
        names["HTTPS"] = b"on"
    lines = [name.encode() + b"=" + value + b"\n" for name, value in sorted(names.items())]
    await answer(send, b"".join(lines))


async def change_env(scope, receive, send):
    scope["headers"].append((b"x-left", b"behind"))
    scope["asgi"].clear()
    scope["extensions"].clear()
    scope["state"].clear()
    del scope["path"], scope["query_string"]
    await answer(send, "changed")


async def scheme(scope, receive, send):
    await answer(send, scope["scheme"])


async def echo(scope, receive, send):
    body = await read(receive)
    media_type = dict(scope["headers"]).get(b"content-type", b"application/octet-stream")
    headers = [(b"content-type", media_type), (b"content-length", b"%d" % len(body))]
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    await last(send, body)


async def length(scope, receive, send):
    await answer(send, counted(await read(receive)))


async def input_part(scope, receive, send):
    event = await receive()
    await answer(send, event["body"][:5])


# Bodies.


async def list_body(scope, receive, send):
    await start(send)
    await last(send, b"".join([b"one", b"", b"two"]))


async def nothing(scope, receive, send):
    await start(send)
    await send({"type": "http.response.body"})


async def wrong_length(scope, receive, send):
    await start(send, (b"content-length", b"1000"))
    await last(send, b"short")


async def send_parts(send):
    for item in (b"one", b"", b"two"):
        await part(send, item)
    await last(send)


async def iterate(scope, receive, send):
    await start(send)
    try:
        await send_parts(send)
    finally:
        note("the body is closed")


def iterate_with_length(content_length):
    async def action(scope, receive, send):
        await start(send, (b"content-length", b"%d" % content_length))
        await send_parts(send)

    return action


async def close_dies(scope, receive, send):
    await start(send)
    await send_parts(send)
    fail("a bad close")


async def stream(scope, receive, send):
    await start(send)
    for number in range(1, 4):
        await part(send, f"part {number}\n".encode())
    await last(send)


async def stream_wait(scope, receive, send):
    await start(send)
    await part(send, b"first\n")
    await wait_for_file(f"go.{query(scope)}")
    await last(send, b"last\n")


async def stream_large(scope, receive, send):
    await start(send)
    for _ in range(20):
        await part(send, pattern(251_000))
    await last(send)


async def stream_endless(scope, receive, send):
    await start(send)
    try:
        while True:
            await part(send, b"x" * 65_536)
    finally:
        spurt(f"closed.{query(scope)}", os.getpid())


async def writer(scope, receive, send):
    await start(send)
    await send_parts(send)


async def delayed(scope, receive, send):
    async def later():
        await start(send, (b"x-delayed", b"1"), status=201)
        await last(send, b"delayed")

    await asyncio.create_task(later())


async def twice(scope, receive, send):
    await answer(send, "first")
    await answer(send, "second")


async def replaced_head(scope, receive, send):
    await start(send, (b"x-first", b"1"))
    try:
        fail("an error that the application handles")
    except RuntimeError:
        await start(send, status=503)
    await last(send, b"replaced")


async def status(scope, receive, send):
    code = path_of(scope).removeprefix("/status/")
    await start(send, status=int(code) if code.isdigit() else code)
    await last(send, f"status {code}".encode())


# Fields of responses.


def with_fields(body, *fields):
    async def action(scope, receive, send):
        await start(send, *fields)
        await last(send, body)

    return action


MANY = [(b"X-Field-%d" % number, b"v" * 300) for number in range(1, 101)]
FORGED = [(b"Kirin-File", b"1 2 3 4 5 /etc/passwd"), (b"Kirin-Cleanup", b"1")]


# Responses that the interface does not allow.


def returning(body):
    async def action(scope, receive, send):
        await start(send)
        await last(send, body)

    return action


async def wide_later(scope, receive, send):
    await start(send)
    await part(send, b"part")
    await last(send, "\u263a")


async def no_response(scope, receive, send):
    return


async def never(scope, receive, send):
    await last(send, b"a")


# Failures.


async def die_before(scope, receive, send):
    raise RuntimeError("a bad day")


async def die_object(scope, receive, send):
    raise Unprintable()


async def die_first_part(scope, receive, send):
    await start(send)
    raise RuntimeError("no first part")


async def die_in(scope, receive, send):
    await start(send)
    await part(send, b"part")
    raise RuntimeError("too late")


async def die_in_iterator(scope, receive, send):
    async def parts():
        yield b"part"
        fail("too late")

    await start(send)
    async for item in parts():
        await part(send, item)


async def die_caught(scope, receive, send):
    try:
        fail("caught by the application")
    except RuntimeError:
        await answer(send, "caught")


async def exit_worker(scope, receive, send):
    sys.exit(3)


async def kill(scope, receive, send):
    kill_self()


async def kill_once(scope, receive, send):
    path = os.path.join(DIRECTORY, f"killed.{query(scope)}")
    try:
        open(path, "x", encoding="utf-8").close()
    except FileExistsError:
        await answer(send, "survived")
        return
    kill_self()


async def kill_in(scope, receive, send):
    await start(send)
    await part(send, b"part")
    kill_self()


# Requests that wait or take too long.


async def wait(scope, receive, send):
    await meet(query(scope))
    await answer_pid(send)


async def wait_together(scope, receive, send):
    body = await read(receive)
    count, name = int(path_of(scope).removeprefix("/together/")), query(scope)
    together[name] += 1
    while together[name] < count:
        await asyncio.sleep(0.01)
    await answer(send, f"{os.getpid()} {counted(body)}")


async def hang_begun(scope, receive, send):
    spurt(f"begun.{query(scope)}", os.getpid())
    await hang()


async def hang_loop(scope, receive, send):
    while True:
        pass


async def hang_stubborn(scope, receive, send):
    try:
        await hang()
    except asyncio.CancelledError:
        await meet(query(scope))
    spurt(f"done.{query(scope)}", "")


async def disconnect(scope, receive, send):
    await read(receive)
    spurt(f"begun.{query(scope)}", os.getpid())
    event = await receive()
    note(f"{query(scope)} got {event['type']}")


async def disconnect_after(scope, receive, send):
    await answer_pid(send)
    event = await receive()
    note(f"{query(scope)} got {event['type']}")


async def disconnect_send(scope, receive, send):
    await start(send)
    spurt(f"begun.{query(scope)}", os.getpid())
    try:
        while True:
            await part(send, b"part")
            await asyncio.sleep(0.01)
    except OSError:
        note(f"{query(scope)} got an error when it sent")
        raise


# The worker.


VERSION = slurp("version") or "none"
ON_LOAD = slurp("on-load") or ""


async def version(scope, receive, send):
    await answer(send, VERSION)


async def pid(scope, receive, send):
    await answer_pid(send)


async def parent(scope, receive, send):
    await answer(send, str(os.getppid()))


async def random_number(scope, receive, send):
    await answer(send, str(random.random()))


async def started(scope, receive, send):
    await answer(send, scope["state"]["started"])


async def ask_to_leave():
    """Asks the worker to leave. It notices that when the loop runs, and says so in responses."""
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(0)


async def leave(scope, receive, send):
    await ask_to_leave()
    await answer_pid(send)


async def log(scope, receive, send):
    note(f"a line for the log: {query(scope)}")
    await answer(send, "logged")


async def print_line(scope, receive, send):
    print(f"a line on standard output: {query(scope)}", flush=True)
    await answer(send, "printed")


async def close_streams(scope, receive, send):
    for number in range(3):
        os.close(number)
    await answer(send, "closed")


async def ignore_signals(scope, receive, send):
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGUSR2, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    await answer_pid(send)


async def signals(scope, receive, send):
    is_ignored = signal.getsignal(signal.SIGTERM) == signal.SIG_IGN
    await answer(send, "ignored" if is_ignored else "handled")


async def program(scope, receive, send):
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec("echo", "hello", stdout=pipe)
    output, _ = await process.communicate()
    await answer(send, output)


async def child_dies(scope, receive, send):
    child = os.fork()
    if not child:
        raise RuntimeError("a bad child")
    os.waitpid(child, 0)
    await answer(send, "parent")


async def child_answers(scope, receive, send):
    child = os.fork()
    if not child:
        await answer(send, "child")
        return
    os.waitpid(child, 0)
    await answer(send, "parent")


async def background(scope, receive, send):
    name = query(scope)
    if not os.fork():
        suite_tools.meet(name)
        spurt(f"done.{name}", "")
        os._exit(0)
    await answer_pid(send)


# After the response.


async def clean_up(name):
    await meet(name)
    note(f"cleaned up after {name}")


async def cleanup(scope, receive, send):
    await answer_pid(send)
    await clean_up(query(scope))


async def cleanup_stream(scope, receive, send):
    await start(send)
    await part(send, str(os.getpid()).encode())
    await last(send)
    await clean_up(query(scope))


async def cleanup_late(scope, receive, send):
    await start(send)
    await part(send, str(os.getpid()).encode())
    task = asyncio.create_task(clean_up(query(scope)))
    tasks.add(task)
    task.add_done_callback(tasks.discard)
    await last(send)


async def cleanup_die(scope, receive, send):
    await answer(send, "answered")
    try:
        fail("a bad handler")
    finally:
        note("the next handler runs")


async def cleanup_leave(scope, receive, send):
    await ask_to_leave()
    await cleanup(scope, receive, send)


async def cleanup_after_die(scope, receive, send):
    try:
        raise RuntimeError("a bad day")
    finally:
        note("cleaned up after a failure")


async def cleanup_hang(scope, receive, send):
    await answer_pid(send)
    await hang()


async def cleanup_kill(scope, receive, send):
    await answer_pid(send)
    kill_self()


# Informational responses.


async def hint(send, *links):
    await send({"type": "http.response.early_hint", "links": list(links)})


async def hints(scope, receive, send):
    await hint(send, LINK)
    await wait_for_file(f"go.{query(scope)}")
    await hint(send, b"</more.css>; rel=preload")
    await answer(send, "hinted")


async def hints_die(scope, receive, send):
    await hint(send, LINK)
    raise RuntimeError("a bad day after a hint")


async def hints_late(scope, receive, send):
    await start(send)
    await part(send, b"part")
    await hint(send, LINK)


async def hints_line_end(scope, receive, send):
    try:
        await hint(send, b"</a>\r\nX-Evil: b")
    except Exception:
        await answer(send, "refused")
        return
    await answer(send, "sent")


# Trailers.


async def start_before_trailers(send, *fields, status=200):
    headers = [TEXT, *fields]
    message = {"type": "http.response.start", "status": status, "headers": headers}
    await send({**message, "trailers": True})


async def trailers(send, *fields, more=False):
    await send({"type": "http.response.trailers", "headers": fields, "more_trailers": more})


def trailers_with(*fields, status=200, head=()):
    async def action(scope, receive, send):
        await start_before_trailers(send, *head, status=status)
        await last(send, b"" if status == 204 else b"body")
        await trailers(send, *fields)

    return action


async def trailers_stream(scope, receive, send):
    await start_before_trailers(send)
    for _ in range(10):
        await part(send, b"part" * 10_000)
    await last(send)
    await trailers(send, (b"X-One", b"1"), more=True)
    await trailers(send, (b"X-Two", b"2"), (b"X-Two", b"3"))


async def trailers_forgotten(scope, receive, send):
    await start_before_trailers(send)
    await last(send, b"body")


async def trailers_unannounced(scope, receive, send):
    await start(send)
    await part(send, b"part")
    await trailers(send, (b"X-Sum", b"4"))


# Upgrades. All others are in WEBSOCKETS.


async def upgrade(scope, receive, send):
    await start(send, (b"upgrade", b"echo"), status=426)
    await last(send, b"upgrade")


async def upgrade_unasked(scope, receive, send):
    await start(send, (b"upgrade", b"echo"), status=101)
    await last(send)


# WebSockets.


async def accept(receive, send, **more):
    """Answers the handshake."""
    event = await receive()
    assert event["type"] == "websocket.connect", event
    await send({"type": "websocket.accept", **more})


async def messages(receive):
    """Gives the events with messages, up to the end of the WebSocket."""
    while (event := await receive())["type"] == "websocket.receive":
        yield event


async def say(send, text):
    await send({"type": "websocket.send", "text": text})


async def websocket(scope, receive, send):
    await accept(receive, send)
    async for event in messages(receive):
        await send({**event, "type": "websocket.send"})


async def websocket_env(scope, receive, send):
    protocols = scope["subprotocols"]
    await accept(receive, send, subprotocol=protocols[-1], headers=[(b"x-worker", b"mine")])
    words = (scope["scheme"], path_of(scope), query(scope), *protocols)
    await say(send, " ".join(words))


async def websocket_room(scope, receive, send):
    await accept(receive, send)
    room.add(send)
    try:
        async for event in messages(receive):
            for other in room:
                await say(other, event["text"])
    finally:
        room.discard(send)


async def websocket_die(scope, receive, send):
    await accept(receive, send)
    await say(send, "bye")
    raise RuntimeError("a bad day after the switch")


async def websocket_decline(scope, receive, send):
    raise RuntimeError("declined")


async def websocket_close(scope, receive, send):
    await accept(receive, send)
    await send({"type": "websocket.close", "code": 4000, "reason": "bye"})
    event = await receive()
    note(f"{query(scope)} got {event['code']} {event['reason']}")


async def websocket_return(scope, receive, send):
    await accept(receive, send)


async def websocket_closed(scope, receive, send):
    await accept(receive, send)
    event = await receive()
    while event["type"] != "websocket.disconnect":
        event = await receive()
    try:
        await say(send, "too late")
    except OSError:
        note(f"{query(scope)} got {event['code']}, and an error when it sent")


async def websocket_refuse(scope, receive, send):
    await receive()
    await send({"type": "websocket.close"})


async def websocket_response(scope, receive, send):
    fields = [TEXT, (b"x-reason", b"full")]
    await send({"type": "websocket.http.response.start", "status": 409, "headers": fields})
    await send({"type": "websocket.http.response.body", "body": b"the room is full"})


async def websocket_hang(scope, receive, send):
    await hang()


async def websocket_kill(scope, receive, send):
    await accept(receive, send)
    await say(send, "bye")
    kill_self()


# Files.


async def send_file(send, name):
    path = os.path.join(DIRECTORY, name)
    await send({"type": "http.response.pathsend", "path": path})


def file_with(*fields, code=200, name="static/small.txt"):
    async def action(scope, receive, send):
        await start(send, *fields, status=code)
        await send_file(send, name)

    return action


async def file_cleanup(scope, receive, send):
    await file_with()(scope, receive, send)
    note("cleaned up after a file")


async def file_leave(scope, receive, send):
    await ask_to_leave()
    await file_with()(scope, receive, send)


async def sendfile(scope, receive, send):
    path = os.path.join(DIRECTORY, query(scope))
    await start(send, (b"x-sendfile", path.encode()))
    await last(send)


ACTIONS = {
    "/change-env": change_env,
    "/scheme": scheme,
    "/echo": echo,
    "/length": length,
    "/input/part": input_part,
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
    "/delayed": delayed,
    "/twice": twice,
    "/replaced-head": replaced_head,
    "/fields/bytes": with_fields(
        b"caf\xe9", (b"X-Latin", b"caf\xe9"), (b"X-UTF-8", "café".encode())
    ),
    "/fields/repeated": with_fields(b"cookies", (b"Set-Cookie", b"a=1"), (b"Set-Cookie", b"b=2")),
    "/fields/empty": with_fields(b"empty", (b"X-Empty", b"")),
    "/fields/many": with_fields(b"many", *MANY),
    "/fields/hop-by-hop": with_fields(b"kept", (b"Connection", b"close"), (b"Keep-Alive", b"x")),
    "/fields/forged": with_fields(b"forged", *FORGED),
    "/fields/line-end": with_fields(b"a", (b"X-A", b"a\r\nX-Evil: b")),
    "/fields/line-feed": with_fields(b"a", (b"X-A", b"a\nX-Evil: b")),
    "/fields/return": with_fields(b"a", (b"X-A", b"a\rb")),
    "/fields/nul": with_fields(b"a", (b"X-A", b"a\0b")),
    "/fields/control": with_fields(b"a", (b"X-A", b"a\x01b")),
    "/fields/name-line-end": with_fields(b"a", (b"X-A: 1\r\nX-Evil", b"b")),
    "/fields/name-space": with_fields(b"a", (b"X Evil", b"b"), (b"X-A", b"a")),
    "/fields/name-colon": with_fields(b"a", (b"X:Evil", b"b"), (b"X-A", b"a")),
    "/fields/name-empty": with_fields(b"a", (b"", b"b"), (b"X-A", b"a")),
    "/fields/wide": with_fields(b"a", (b"X-A", "\u263a")),
    "/odd/wide-body": returning("\u263a"),
    "/odd/wide-later": wide_later,
    "/odd/no-response": no_response,
    "/odd/text-body": returning("text"),
    "/odd/number-body": returning(5),
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
    "/hang/stubborn": hang_stubborn,
    "/disconnect": disconnect,
    "/disconnect/after": disconnect_after,
    "/disconnect/send": disconnect_send,
    "/version": version,
    "/pid": pid,
    "/parent": parent,
    "/random": random_number,
    "/started": started,
    "/leave": leave,
    "/log": log,
    "/print": print_line,
    "/close-streams": close_streams,
    "/ignore-signals": ignore_signals,
    "/signals": signals,
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
    "/hints/die": hints_die,
    "/hints/late": hints_late,
    "/hints/line-end": hints_line_end,
    "/trailers/one": trailers_with((b"X-Sum", b"4"), head=[(b"trailer", b"X-Sum")]),
    "/trailers/none": trailers_with(),
    "/trailers/empty": trailers_with((b"X-Sum", b"0"), status=204),
    "/trailers/length": trailers_with((b"X-Sum", b"4"), head=[(b"content-length", b"4")]),
    "/trailers/forbidden": trailers_with(
        (b"Content-Length", b"3"), (b"Set-Cookie", b"a=b"), (b"X-Kept", b"1"), (b"Host", b"evil")
    ),
    "/trailers/line-end": trailers_with((b"X-Sum", b"4\r\nX-Evil: 1")),
    "/trailers/stream": trailers_stream,
    "/trailers/forgotten": trailers_forgotten,
    "/trailers/unannounced": trailers_unannounced,
    "/upgrade": upgrade,
    "/upgrade/unasked": upgrade_unasked,
    "/file": file_with(),
    "/file/large": file_with(name="static/large.bin"),
    "/file/missing": file_with(code=404),
    "/file/exact": file_with((b"content-length", b"10")),
    "/file/shorter": file_with((b"content-length", b"4")),
    "/file/tagged": file_with((b"etag", b'"mine"')),
    "/file/gone": file_with(name="static/gone"),
    "/file/cleanup": file_cleanup,
    "/file/leave": file_leave,
    "/sendfile": sendfile,
}

WEBSOCKETS = {
    "/upgrade/websocket": websocket,
    "/upgrade/env": websocket_env,
    "/upgrade/room": websocket_room,
    "/upgrade/die": websocket_die,
    "/upgrade/decline": websocket_decline,
    "/upgrade/close": websocket_close,
    "/upgrade/return": websocket_return,
    "/upgrade/closed": websocket_closed,
    "/upgrade/refuse": websocket_refuse,
    "/upgrade/response": websocket_response,
    "/upgrade/hang": websocket_hang,
    "/upgrade/kill": websocket_kill,
}


async def lifespan(scope, receive, send):
    event = await receive()
    assert event["type"] == "lifespan.startup", event
    if ON_LOAD == "startup":
        await send({"type": "lifespan.startup.failed", "message": f"no such table: {TABLE}"})
        return
    scope["state"]["started"] = f"started in {os.getpid()}"
    await send({"type": "lifespan.startup.complete"})
    event = await receive()
    assert event["type"] == "lifespan.shutdown", event
    note(f"shut down in {os.getpid()}")
    await send({"type": "lifespan.shutdown.complete"})


async def application(scope, receive, send):
    global requests
    if scope["type"] == "lifespan":
        await lifespan(scope, receive, send)
        return
    path = path_of(scope)
    if path == "/state":
        await answer(send, f"{os.getpid()} {requests}")
        return
    requests += 1
    if scope["type"] == "websocket":
        await WEBSOCKETS[path](scope, receive, send)
        return
    # Paths with a value in them.
    if path.startswith("/env"):
        await env(scope, receive, send)
    elif path.startswith("/bytes/"):
        await answer(send, pattern(int(path.removeprefix("/bytes/"))))
    elif path.startswith("/status/"):
        await status(scope, receive, send)
    elif path.startswith("/together/"):
        await wait_together(scope, receive, send)
    elif path in ACTIONS:
        await ACTIONS[path](scope, receive, send)
    else:
        await answer(send, "no such action", 404)


load_badly(ON_LOAD)
