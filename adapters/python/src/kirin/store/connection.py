"""One connection to a memcached. Every method raises `StoreError` if it fails.

After a failure, the next bytes on a connection would be the answer to another command. So its user
must close it.
"""
import select
import socket
import time

from kirin.store.address import candidates
from kirin.store.failure import NoAnswer, StoreError

READ_BYTES = 64 * 1024

# A reply line is shorter. Only a peer that is not a memcached sends more.
LINE_BYTES = 8 * 1024

# The application may have changed what SIGPIPE does. Not every system has this flag.
NO_SIGNAL = getattr(socket, "MSG_NOSIGNAL", 0)

NO_REPLY = "what came is no reply of a memcached"


class Connection:
    """A connection to `address`. `timeout` has the seconds for connecting and for each wait."""

    def __init__(self, address, timeout):
        self._timeout = timeout
        self._received = bytearray()
        self._socket = self._connect(address)

    def _connect(self, address):
        end = time.monotonic() + self._timeout
        failure = "the name has no address"
        for family, where in candidates(address):
            # All meanings of a name together have the time of one.
            left = end - time.monotonic()
            if left <= 0:
                raise self._no_answer()
            try:
                opened = socket.socket(family, socket.SOCK_STREAM)
            except OSError as error:
                raise StoreError(_text(error)) from error
            try:
                opened.settimeout(left)
                opened.connect(where)
                opened.settimeout(self._timeout)
                if family != socket.AF_UNIX:
                    opened.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                return opened
            except (socket.timeout, BlockingIOError) as error:
                # EAGAIN means that the queue of a unix socket is full.
                opened.close()
                raise self._no_answer() from error
            except OSError as error:
                opened.close()
                failure = _text(error)
            except BaseException:
                opened.close()
                raise
        raise StoreError(failure)

    def is_usable(self):
        """Returns whether a connection without a command in progress is open and has no bytes."""
        if self._received:
            return False
        waiting = select.poll()
        try:
            waiting.register(self._socket.fileno(), select.POLLIN)
            return not waiting.poll(0)
        except (OSError, ValueError):
            return False

    def send(self, data):
        """Sends all bytes. The time limit holds for each part that the kernel takes."""
        try:
            count = self._socket.send(data, NO_SIGNAL)
            if count < len(data):
                rest = memoryview(data)[count:]
                while rest:
                    rest = rest[self._socket.send(rest, NO_SIGNAL):]
        except socket.timeout as error:
            raise self._no_answer() from error
        except OSError as error:
            raise StoreError(f"write: {_text(error)}") from error

    def line(self):
        """Returns the next line, without its end."""
        received = self._received
        searched = 0
        while True:
            end = received.find(b"\r\n", searched)
            if end >= 0:
                break
            if len(received) > LINE_BYTES:
                raise StoreError(NO_REPLY)
            # The end may be in two parts.
            searched = max(0, len(received) - 1)
            self._fill()
        line = bytes(received[:end])
        del received[:end + 2]
        return line

    def block(self, length):
        """Returns a block of data of this length. A line end must follow it."""
        received = self._received
        while len(received) < length + 2:
            self._fill()
        if received[length:length + 2] != b"\r\n":
            raise StoreError(NO_REPLY)
        block = bytes(received[:length])
        del received[:length + 2]
        return block

    def close(self):
        self._socket.close()
        self._received.clear()

    def _fill(self):
        try:
            data = self._socket.recv(READ_BYTES)
        except socket.timeout as error:
            raise self._no_answer() from error
        except OSError as error:
            raise StoreError(f"read: {_text(error)}") from error
        if not data:
            raise StoreError("it has closed the connection")
        self._received += data

    def _no_answer(self):
        return NoAnswer(f"no answer within {self._timeout:g} s")


def _text(error):
    return error.strerror or str(error) or type(error).__name__
