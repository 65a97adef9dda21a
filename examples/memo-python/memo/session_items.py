"""Copies of sessions in the store, for pages that Kirin builds without a worker.

A copy is {"name":…,"user_id":…,"csrf_token":…} under the cookie's token. The sessions themselves
are in the database (`Sessions`). If a copy is missing, the page asks the application for the
visitor's part, which writes the copy again. But a copy must not live longer than its session:

- It is written inside the database's write lock, if the session still exists. Signing out first
  deletes the row and then the copy. So either the writer sees that the row is gone, or its copy is
  there before it is deleted.
- If a copy cannot be deleted, because the store is away, this process deletes it before it answers
  the next request. One case is left: a process that dies in this time. For that the copy has a
  short life.
"""
import json
import logging
import time

LIFETIME_SECS = 600

log = logging.getLogger(__name__)


class SessionItems:
    """The copies. `find` looks for the session in the database, and returns a dict or None."""

    def __init__(self, database, store):
        self._database = database
        self._store = store

    def keep(self, token, expires_at, find):
        """Extends the life of the copy, or writes it. Runs when the session was seen."""
        if not self._store.is_used:
            return
        # False means "was not there", None means "no answer".
        if self._store.client.touch(token, _lifetime(expires_at)) is False:
            self._write(token, find)

    def begin(self, token, find):
        """Writes the copy of a session that has just started."""
        if self._store.is_used:
            self._write(token, find)

    def forget(self, token):
        """Deletes the copy of a session that has ended. Its row is gone."""
        self._store.delete_surely(LIFETIME_SECS, [token])

    def _write(self, token, find):
        try:
            with self._database.exclusively():
                session = find(token)
                if session is not None:
                    lifetime = _lifetime(session.pop("expires_at"))
                    copy = json.dumps(
                        session, ensure_ascii=False, separators=(",", ":"), sort_keys=True
                    )
                    self._store.client.set(token, copy.encode(), lifetime)
        except Exception:
            # It is only a copy. A failure to store it must not affect the response.
            log.exception("a session is not stored")


def _lifetime(expires_at):
    # At least a second, because 0 would mean for ever.
    return max(1, min(LIFETIME_SECS, int(expires_at - time.time())))
