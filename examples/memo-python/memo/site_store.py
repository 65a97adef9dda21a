"""Kirin's store as the site uses it: it may be absent, and it may be away for a while."""
import time

from kirin.store import Store

# A dead store costs a request at most this time, and then nothing for a second.
TIMEOUT_SECS = 0.5


class SiteStore:
    """The client for `address` (`unix:PATH` or `HOST:PORT`). None means that there is no store."""

    def __init__(self, address):
        self.client = Store(address, timeout=TIMEOUT_SECS) if address else None
        self._undeleted = {}

    @property
    def is_used(self):
        """Whether there is a store."""
        return self.client is not None

    def delete_surely(self, lifetime_secs, keys):
        """Deletes items that must no longer be served.

        If the store is away, they are deleted before this process answers its next request
        (`catch_up`), unless they have ended by themselves after `lifetime_secs`.
        """
        if self.is_used:
            end = time.time() + lifetime_secs
            self._undeleted.update((key, end) for key in keys)
            self.catch_up()

    def catch_up(self):
        """Deletes what could not be deleted before."""
        for key, end in list(self._undeleted.items()):
            # False means "was not there", None means "no answer".
            if self.client.delete(key) is not None or time.time() > end:
                del self._undeleted[key]
