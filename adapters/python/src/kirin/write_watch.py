"""Finds out whether an application has written to its `kirin.socket`.

An application that has written `101` to `kirin.socket` has switched protocols. Nothing that the
worker sends may follow then, because it would be data of the new protocol. The application may
write with any function of Python or of a library, so only the kernel knows that it has.
"""
import array
import fcntl
import termios
from select import EPOLLET, EPOLLOUT, epoll


class WriteWatch:
    """Watches a connection, of which the front has read everything, until it is closed."""

    def __init__(self, connection):
        """Starts to watch. Raises OSError if there is no free descriptor."""
        self._connection = connection
        self._is_written = False
        self._epoll = epoll()
        self._epoll.register(connection.fileno(), EPOLLOUT | EPOLLET)
        # The first event says that the socket was ready when the watch began.
        self._take_event()

    def has_written(self):
        """Returns whether anything has been written to the socket since the watch began."""
        if not self._is_written:
            unread = array.array("i", [0])
            try:
                # On a unix socket this counts the bytes that the other end has not read yet.
                fcntl.ioctl(self._connection.fileno(), termios.TIOCOUTQ, unread, True)
                self._is_written = unread[0] > 0 or self._take_event()
            except (OSError, ValueError):
                self._is_written = True
        return self._is_written

    def close(self):
        """Ends the watch."""
        self._epoll.close()

    def _take_event(self):
        """Returns whether the socket got room again: the other end has read something."""
        return bool(self._epoll.poll(0, 1))
