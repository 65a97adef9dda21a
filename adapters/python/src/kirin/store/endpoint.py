"""The connections of this process to one address, which all its threads share."""
import collections
import os
import time

from kirin.store.connection import Connection
from kirin.store.failure import NoAnswer, StoreError

# Seconds without a retry after a timeout. A host that does not answer must not cost every request
# the time limit. A refusal costs nothing, so there is no pause after it.
PAUSE_SECONDS = 1.0

# The most connections that wait for their next use. More exist only while more threads need them.
IDLE_CONNECTIONS = 16

_endpoints = {}


def endpoint(address, timeout):
    """Returns the `Endpoint` for an address.

    Clients with the same address and time limit share their connections and their pause. Django,
    for example, makes a cache object for each thread.
    """
    found = _endpoints.get((address, timeout))
    if found is None:
        found = _endpoints.setdefault((address, timeout), Endpoint(address, timeout))
    return found


class Endpoint:
    """Lends connections to `address`, each to one thread at a time."""

    def __init__(self, address, timeout):
        self.address = address
        self._timeout = timeout
        # A deque needs no lock, which a fork in another thread could leave locked for ever.
        self._idle = collections.deque()
        self._pid = os.getpid()
        self._not_before = 0.0
        self._failure = None

    def converse(self, conversation, *arguments):
        """Returns the result of `conversation(connection, *arguments)`.

        Connects if no connection is idle. The conversation must read every reply to what it sends.
        It is called once, because the store may have carried out a command that has failed.
        """
        if self._pid != os.getpid():
            self._begin_in_child()
        if self._not_before and time.monotonic() < self._not_before:
            raise StoreError(f"{self.address}: {self._failure}; no new try for a moment")
        connection = None
        try:
            connection = self._usable() or Connection(self.address, self._timeout)
            result = conversation(connection, *arguments)
        except BaseException as error:
            # This includes exceptions of signal handlers, after which a reply is still to come.
            if connection is not None:
                connection.close()
            if not isinstance(error, StoreError):
                raise
            if isinstance(error, NoAnswer):
                self._failure = str(error)
                self._not_before = time.monotonic() + PAUSE_SECONDS
                self.close()
            raise type(error)(f"{self.address}: {error}") from error
        if len(self._idle) < IDLE_CONNECTIONS:
            self._idle.append(connection)
        else:
            connection.close()
        return result

    def close(self):
        """Closes the idle connections. The next command connects again."""
        while True:
            try:
                self._idle.pop().close()
            except IndexError:
                return

    def _usable(self):
        """Returns an idle connection, or None. Closes those that the store has closed."""
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.is_usable():
                return connection
            connection.close()

    def _begin_in_child(self):
        """Forgets the connections of the parent process, which still uses them."""
        self._pid = os.getpid()
        self._not_before = 0.0
        self.close()

    def __del__(self):
        # A socket that is only forgotten causes a ResourceWarning.
        self.close()
