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
    return _received(connection.recv, connection, size)


def receive_into(connection, buffer):
    """Does the same into `buffer`. Returns how many bytes came."""
    return _received(connection.recv_into, connection, buffer)


def _received(receiving, connection, argument):
    while True:
        try:
            result = receiving(argument)
        except BlockingIOError:
            # The handler of TERM has set a time limit for an idle worker.
            waiting = poll()
            waiting.register(connection.fileno(), POLLIN)
            waiting.poll()
            continue
        except OSError:
            raise FrontGone from None
        if not result:
            raise FrontGone
        return result


def write_all(connection, output):
    """Writes bytes, or a tuple of bytes, or raises `ClientGone`."""
    buffers = output if type(output) is tuple else (output,)
    try:
        # The application may have changed what SIGPIPE does.
        count = connection.sendmsg(buffers, (), MSG_NOSIGNAL)
        for rest in unsent(buffers, count):
            while rest:
                rest = rest[connection.send(rest, MSG_NOSIGNAL):]
    except OSError:
        raise ClientGone from None


def unsent(buffers, count):
    """Returns what is left of buffers when `count` bytes have been sent."""
    rest = []
    for buffer in buffers:
        if count < len(buffer):
            rest.append(memoryview(buffer)[count:])
        count = max(count - len(buffer), 0)
    return rest


def hang_up(connection):
    """Ends a connection, also if the application or a process of it has kept a copy of it."""
    try:
        connection.shutdown(SHUT_RDWR)
    except OSError:
        pass
    connection.close()
