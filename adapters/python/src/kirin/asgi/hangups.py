"""Notices the end of connections from which nothing is read at the moment."""
from select import EPOLLRDHUP, epoll


class Hangups:
    """A set of connections, of which the event loop watches only the end."""

    def __init__(self, loop):
        self._epoll = epoll()
        self._connections = {}
        loop.add_reader(self._epoll.fileno(), self._on_event)
        self._loop = loop

    def watch(self, connection):
        """Calls `hung_up` of a connection when the front has ended its side."""
        self._connections[connection.number] = connection
        self._epoll.register(connection.number, EPOLLRDHUP)

    def unwatch(self, connection):
        """Ends the watch. Does nothing if there is none."""
        if self._connections.pop(connection.number, None) is not None:
            self._epoll.unregister(connection.number)

    def close(self):
        """Ends all watches."""
        self._loop.remove_reader(self._epoll.fileno())
        self._epoll.close()

    def _on_event(self):
        for number, _ in self._epoll.poll(0):
            connection = self._connections.get(number)
            if connection is not None:
                connection.hung_up()
