#!/usr/bin/python3
"""A gRPC server without a .proto: messages are bytes.

It prints its port, and that of TLS if it has a certificate.

service.py MAX_CONCURRENT_STREAMS [CHAIN.pem KEY.pem]
"""

import sys
import threading
import time
from concurrent import futures

import grpc

ended = {}  # How calls of a name have ended.
lock = threading.Lock()


def metadata(context):
    return {key: value for key, value in context.invocation_metadata()}


def note_end(context):
    """Counts the end of the call under the name that the client has chosen."""
    name = metadata(context).get("x-name")
    over = threading.Event()

    def count():
        with lock:
            ended[name] = ended.get(name, 0) + 1
        over.set()

    context.add_callback(count)
    return over


def echo(request, context):
    got = metadata(context)
    context.send_initial_metadata((("x-in", got.get("x-in", "none")), ("x-early-bin", got.get("x-blob-bin", b""))))
    context.set_trailing_metadata((("x-out", "end"), ("x-late-bin", got.get("x-blob-bin", b""))))
    return request


def fail(request, context):
    context.set_trailing_metadata((("x-out", "failed"),))
    context.abort(grpc.StatusCode.NOT_FOUND, "nicht für 100% da\n" + request.decode())


def count(request, context):
    number, size = map(int, request.split())
    for index in range(number):
        yield b"%d " % index + b"x" * size


def fail_late(request, context):
    for index in range(int(request)):
        yield b"%d" % index
    context.set_trailing_metadata((("x-out", "failed"),))
    context.abort(grpc.StatusCode.DATA_LOSS, "lost")


def join(requests, context):
    return b",".join(b"%d" % len(request) for request in requests)


def chat(requests, context):
    yield b"welcome"
    for request in requests:
        yield b"you said " + request


def interrupt(requests, context):
    yield next(requests)
    context.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "enough")


def hang(request, context):
    note_end(context).wait()
    return b""


def hang_after_one(request, context):
    over = note_end(context)
    yield b"one"
    over.wait()


def hang_reading(requests, context):
    over = note_end(context)
    next(requests)
    over.wait()
    return b""


def hang_talking(requests, context):
    over = note_end(context)
    for request in requests:
        yield request
    over.wait()


def slow(request, context):
    time.sleep(0.05)
    return request


def remaining(request, context):
    return b"%f" % context.time_remaining()


def how_ended(request, context):
    with lock:
        return b"%d" % ended.get(request.decode(), 0)


METHODS = {
    "Echo": grpc.unary_unary_rpc_method_handler(echo),
    "Fail": grpc.unary_unary_rpc_method_handler(fail),
    "Count": grpc.unary_stream_rpc_method_handler(count),
    "FailLate": grpc.unary_stream_rpc_method_handler(fail_late),
    "Join": grpc.stream_unary_rpc_method_handler(join),
    "Chat": grpc.stream_stream_rpc_method_handler(chat),
    "Interrupt": grpc.stream_stream_rpc_method_handler(interrupt),
    "Hang": grpc.unary_unary_rpc_method_handler(hang),
    "HangAfterOne": grpc.unary_stream_rpc_method_handler(hang_after_one),
    "HangReading": grpc.stream_unary_rpc_method_handler(hang_reading),
    "HangTalking": grpc.stream_stream_rpc_method_handler(hang_talking),
    "Slow": grpc.unary_unary_rpc_method_handler(slow),
    "Remaining": grpc.unary_unary_rpc_method_handler(remaining),
    "HowEnded": grpc.unary_unary_rpc_method_handler(how_ended),
}


def main():
    streams, certificate = int(sys.argv[1]), sys.argv[2:]
    server = grpc.server(
        futures.ThreadPoolExecutor(max_workers=64), options=(("grpc.max_concurrent_streams", streams),)
    )
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler("test.Test", METHODS),))
    ports = [server.add_insecure_port("127.0.0.1:0")]
    if certificate:
        chain, key = (open(path, "rb").read() for path in certificate)
        ports.append(server.add_secure_port("127.0.0.1:0", grpc.ssl_server_credentials([(key, chain)])))
    server.start()
    print(*ports, flush=True)
    sys.stdin.read()  # Until whoever has started us goes.
    server.stop(None)


main()
