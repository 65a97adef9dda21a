"""The body of a request as `wsgi.input`.

The front has read the complete body from the client before it sends a request, so nothing here
waits for a client. A body of up to 1 MiB stays in memory. A longer one is in a file of the front,
which comes as a descriptor. If the front sends the bytes of a long body nevertheless, they go to a
file without a name in TMPDIR.
"""
import _signal
import array
import errno
import functools
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
    if len(received) >= length and length <= MEMORY_BYTES:
        return io.BytesIO(received[:length])
    # A limit on the size of files (RLIMIT_FSIZE) would end the process with this signal.
    before = _signal.getsignal(SIGXFSZ)
    if before != _signal.SIG_IGN:
        _signal.signal(SIGXFSZ, _signal.SIG_IGN)
    try:
        body = IncomingBody(length)
        body.add(received)
        receive_into = functools.partial(connections.receive_into, connection)
        receive_bytes = functools.partial(connections.receive, connection)
        while body.missing:
            body.receive(receive_into, receive_bytes)
        return body.file()
    finally:
        if before != _signal.SIG_IGN and before is not None:
            _signal.signal(SIGXFSZ, before)


class IncomingBody:
    """A body that comes in pieces. A long one goes to a file without a name."""

    def __init__(self, length):
        # How many bytes have not come yet.
        self.missing = length
        self._memory = self._view = self._file = self._reason = None
        if length <= MEMORY_BYTES:
            # The socket is read straight into it. Pieces would have to be joined, and the allocator
            # gives so much memory back to the kernel and takes it again for each request.
            self._memory = io.BytesIO(bytes(length))
            self._view = self._memory.getbuffer()
            return
        try:
            self._file = tempfile.TemporaryFile(buffering=0)
        except OSError as error:
            self._reason = error

    def receive(self, receive_into, receive):
        """Adds what one call of these functions receives. Returns how many bytes that is."""
        if self._view is None:
            data = receive(min(self.missing, READ_BYTES))
            self.add(data)
            return len(data)
        count = receive_into(self._room())
        self.missing -= count
        return count

    def _room(self):
        return self._view[len(self._view) - self.missing :]

    def add(self, data):
        """Adds the next piece. Bytes behind the body are dropped."""
        data = data[: self.missing]
        if self._view is not None:
            self._room()[: len(data)] = data
        elif self._reason is None:
            self._reason = _written(self._file, data)
        self.missing -= len(data)

    def file(self):
        """Returns the complete body as a file. Raises `NotKept` if there was no room for it."""
        if self._view is not None:
            # A file with views cannot be written or closed.
            self._view.release()
            return self._memory
        try:
            if self._reason is None:
                self._file.seek(0)
                return open(os.dup(self._file.fileno()), "rb")
        except OSError as error:
            self._reason = error
        finally:
            if self._file is not None:
                self._file.close()
        reason = self._reason
        raise NotKept(f"no room for it in a temporary file: {reason.strerror or reason}")


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


def _written(file, data):
    """Returns the error of writing all bytes, or None. Each error belongs to these bytes."""
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest):]
    except OSError as error:
        return error
    return None
