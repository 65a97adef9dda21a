"""Reads from and writes to the connection to the front."""
import _socket
import os
import socket
from select import POLLIN, poll
from socket import MSG_NOSIGNAL, SHUT_RDWR

from kirin import log

# recvmsg(2): the room for one descriptor, which exec(2) must close.
DESCRIPTOR_ROOM = socket.CMSG_SPACE(4)
CLOSE_ON_EXEC = getattr(socket, "MSG_CMSG_CLOEXEC", 0x40000000)


class ClientGone(ConnectionError):
    """The front has closed the connection within a response: the client has disconnected."""

    def __init__(self):
        super().__init__("the client has disconnected")


class FrontGone(Exception):
    """The front has closed the connection within a request."""


def accept(listener):
    """Returns the next connection of the front as a `_socket.socket`, or raises OSError.

    It never has the descriptor of a standard stream.
    """
    number, _ = listener._accept()
    if number < log.FIRST_DESCRIPTOR:
        low, number = number, log.above_standard(number)
        os.close(low)
    return _socket.socket(fileno=number)


def receive(connection, size):
    """Returns up to `size` bytes that the front sends as the rest of a request."""
    while True:
        try:
            data = connection.recv(size)
        except BlockingIOError:
            # The handler of TERM has set a time limit for an idle worker.
            waiting = poll()
            waiting.register(connection.fileno(), POLLIN)
            waiting.poll()
            continue
        except OSError:
            raise FrontGone from None
        if not data:
            raise FrontGone
        return data


def write_all(connection, data):
    """Writes all bytes, or raises `ClientGone`."""
    try:
        # The application may have changed what SIGPIPE does.
        count = connection.send(data, MSG_NOSIGNAL)
        if count == len(data):
            return
        rest = memoryview(data)[count:]
        while rest:
            rest = rest[connection.send(rest, MSG_NOSIGNAL):]
    except OSError:
        raise ClientGone from None


def hang_up(connection):
    """Ends a connection, also if the application or a process of it has kept a copy of it."""
    try:
        connection.shutdown(SHUT_RDWR)
    except OSError:
        pass
    connection.close()
