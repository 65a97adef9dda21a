"""The body of a request as `wsgi.input`.

The front has read the complete body from the client before it sends a request, so nothing here
waits for a client. A body of up to 1 MiB stays in memory. A longer one is in a file of the front,
which comes as a descriptor. If the front sends the bytes of a long body nevertheless, they go to a
file without a name in TMPDIR.
"""
import _signal
import array
import errno
import io
import os
import socket
import tempfile
from signal import SIGXFSZ

from kirin import connection as connections

# Bodies of up to this size stay in memory.
MEMORY_BYTES = 1024 * 1024
READ_BYTES = 256 * 1024


class NotKept(Exception):
    """A body that cannot be kept. It has been read to its end, so another request can follow."""


class EmptyInput(io.BytesIO):
    """The `wsgi.input` that all requests without a body share. No request can close or fill it."""

    __slots__ = ()

    def close(self):
        """Does nothing."""

    def __exit__(self, *_):
        return None

    def writable(self):
        return False

    def _refuse(self, *_):
        raise io.UnsupportedOperation("wsgi.input cannot be written")

    write = writelines = truncate = __setstate__ = _refuse


def receive(connection, length, received):
    """Returns the body of `length` bytes as a file. `received` came with the head.

    Raises `FrontGone` or `NotKept`.
    """
    if length > MEMORY_BYTES:
        return _receive_file(connection, length, received)
    if len(received) >= length:
        return io.BytesIO(received[:length])
    parts, missing = [received], length - len(received)
    while missing > 0:
        parts.append(connections.receive(connection, missing))
        missing -= len(parts[-1])
    return io.BytesIO(b"".join(parts))


def take_descriptor(ancillary):
    """Returns the body that the front has handed over as a descriptor. Raises `NotKept`."""
    found = descriptors(ancillary)
    if not found:
        raise NotKept(f"its file cannot be taken over: {os.strerror(errno.EMFILE)}")
    for number in found[1:]:
        os.close(number)
    return open(found[0], "rb")


def descriptors(ancillary):
    """Returns the descriptors of an ancillary message. The caller must close them."""
    found = array.array("i")
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            found.frombytes(data[: len(data) - len(data) % found.itemsize])
    return list(found)


def _receive_file(connection, length, received):
    # A limit on the size of files (RLIMIT_FSIZE) would end the process with this signal.
    before = _signal.getsignal(SIGXFSZ)
    if before != _signal.SIG_IGN:
        _signal.signal(SIGXFSZ, _signal.SIG_IGN)
    file, reason = None, None
    try:
        file = tempfile.TemporaryFile(buffering=0)
    except OSError as error:
        reason = error
    try:
        while True:
            if reason is None:
                reason = _written(file, received[:length])
            length -= len(received)
            if length < 1:
                break
            received = connections.receive(connection, min(length, READ_BYTES))
        if reason is None:
            file.seek(0)
            return open(os.dup(file.fileno()), "rb")
    except OSError as error:
        reason = error
    finally:
        if file is not None:
            file.close()
        if before != _signal.SIG_IGN and before is not None:
            _signal.signal(SIGXFSZ, before)
    raise NotKept(f"no room for it in a temporary file: {reason.strerror or reason}")


def _written(file, data):
    """Returns the error of writing all bytes, or None. Each error belongs to these bytes."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest):]
    except OSError as error:
        return error
    return None
