"""The session of one visitor, as one request sees it. The parts for the frameworks use this.

Every session is an item of the store. Its key is the value of the cookie, and its value is JSON,
so that pages can show it (docs/sessions.md). The rules are those of
Plack::Middleware::Session::Kirin (docs/perl.md):

* The store is read when the content is needed, and not before.
* An existing session is written with `cas`. If another request has written it since it was read,
  the changes of both are merged, member by member of the top level.
* A session that has ended in the meantime stays ended.
* If the store is away, nothing is written, and the visitor keeps the cookie.
"""
import enum
import logging
import re
import secrets
import time

from kirin.store.failure import InvalidArgument

# An id has as many random bits as the SHA-1 whose form it has in Perl.
ID_BYTES = 20

# How often a session is merged with the writes of other requests before this one gives up. Each
# time, another request has succeeded.
MERGES = 100

# The most sessions of which a process remembers when it has touched them.
MOST_TOUCHED = 10_000

# What stands for a moment in the place of a session whose id has changed. It is no session.
MOVED = "moved"

_ID = re.compile(r"[0-9a-f]{%d}" % (2 * ID_BYTES))

logger = logging.getLogger("kirin.store")


def is_id(text):
    """Returns whether a text from a client can be the id of a session.

    Visitors choose their cookies. No item that is not a session may be reached that way.
    """
    return isinstance(text, str) and _ID.fullmatch(text) is not None


def new_id():
    """Returns 40 hexadecimal digits that nobody can guess."""
    return secrets.token_hex(ID_BYTES)


def log(message):
    logger.warning("%s", message)


class Outcome(enum.Enum):
    """What has become of a write."""

    STORED = "stored"
    # Another session has the id.
    EXISTS = "exists"
    # There is no session with the id any more.
    GONE = "gone"
    FAILED = "failed"


class TouchTimes:
    """When this process has touched sessions.

    Where several machines share the store, each touch is a write. So a process touches a session
    once within a tenth of its life.
    """

    def __init__(self):
        self._last = {}

    def is_due(self, session_id, ttl):
        now = time.monotonic()
        last = self._last.get(session_id)
        if last is not None and now - last < ttl / 10:
            return False
        if len(self._last) >= MOST_TOUCHED:
            self._last.clear()
        self._last[session_id] = now
        return True

    def forget(self, session_id):
        self._last.pop(session_id, None)


class VisitorSession:
    """A session in a store. `cookie` is the id that the client has sent, or None."""

    def __init__(self, store, cookie=None):
        self.store = store
        self.cookie = cookie if is_id(cookie) else None
        # The members, or None before `load`.
        self.content = None
        # The id. A session that the store does not have has none, or one that is `reserved`.
        self.id = None
        # The id of a session that is not stored yet, or None.
        self.reserved = None
        # Whether the store could not be read or written. Then nothing more is written.
        self.is_lost = False
        # The number for `cas`, or None if it is not known.
        self._unique = None
        # The fingerprints of the members that were read.
        self._before = {}

    def load(self):
        """Reads the content, once."""
        if self.content is not None:
            return
        self.content = {}
        if self.cookie is None:
            return
        found, outcome = self._fetch(self.cookie)
        if outcome is Outcome.FAILED:
            # The visitor must not lose the session because the store is away.
            self.is_lost = True
            self.id = self.cookie
        elif outcome is Outcome.STORED:
            self.id = self.cookie
            self.content = found
            self._before = self._fingerprints(found)
        # An id that the store does not know is never accepted. Otherwise an attacker could choose
        # the id of a session.

    def is_changed(self):
        """Returns whether the content differs from what was read, at any depth."""
        return self.content is not None and self._fingerprints(self.content) != self._before

    def reserve_id(self):
        """Returns the id of the session, or the one that it gets when it is stored."""
        if self.id is None:
            self.id = self.reserved = new_id()
        return self.id

    def is_stored(self):
        """Returns whether the store had the session when it was read or written last."""
        return self.id is not None and self.reserved is None

    def create(self, ttl, session_id=None):
        """Stores a session that the store does not have, under a new id or a given one."""
        session_id = session_id or self.reserve_id()
        is_stored = self.store.add(session_id, self.content, ttl)
        if is_stored is None:
            return self._failed("session is not stored")
        if not is_stored:
            return Outcome.EXISTS
        self._has_written(session_id)
        return Outcome.STORED

    def update(self, ttl):
        """Writes an existing session. Keeps the changes that other requests have made."""
        for _ in range(MERGES):
            if self._unique is not None:
                is_stored = self.store.cas(self.id, self._unique, self.content, ttl)
                if is_stored:
                    self._has_written(self.id)
                    return Outcome.STORED
                if is_stored is None:
                    return self._failed("session is not stored")
            outcome = self._reread(self.id)
            if outcome is not Outcome.STORED:
                return outcome
        log(f"session is not stored: other requests have written it {MERGES} times meanwhile")
        return Outcome.FAILED

    def move(self, ttl):
        """Gives an existing session another id.

        The old session is removed only in the state in which it was copied. So writes of other
        requests until then are not lost, and a session that ends in this time does not continue
        under the new id.
        """
        old_id, session_id = self.id, new_id()
        outcome = Outcome.FAILED
        for _ in range(MERGES):
            if self._unique is None:
                outcome = self._reread(old_id)
                if outcome is not Outcome.STORED:
                    break
            if not self.store.set(session_id, self.content, ttl):
                # If the old one were removed as well, there would be none.
                return self._failed("session is not stored")
            is_moved = self.store.cas(old_id, self._unique, MOVED, 1)
            if is_moved:
                # `delete` checks no number. A value that is stored for a second is no session.
                self._remove(old_id)
                self._has_written(session_id)
                return Outcome.STORED
            if is_moved is None:
                outcome = self._failed("session is not removed")
                break
            self._unique = None
            outcome = Outcome.FAILED
        self._remove(session_id)
        return outcome

    def remove(self):
        """Ends the session."""
        session_id = self.id if self.is_stored() else self.cookie
        if session_id is not None:
            self._remove(session_id)
        self.id = self.cookie = self.reserved = self._unique = None
        self.content = {}
        self._before = {}
        self.is_lost = False

    def touch(self, ttl, times):
        """Starts the life of the session again, if that is due. Returns whether it has done so."""
        if not self.is_stored() or self.is_lost or not times.is_due(self.id, ttl):
            return False
        if self.store.touch(self.id, ttl) is None:
            times.forget(self.id)
            log(f"session is not touched: {self.store.error}")
            return False
        return True

    def _fetch(self, session_id):
        """Returns (content, Outcome)."""
        found = self.store.gets(session_id)
        if found is None:
            if self.store.error is None:
                return None, Outcome.GONE
            log(f"session is not read: {self.store.error}")
            return None, Outcome.FAILED
        self._unique, content = found
        # Any other value under this key is not a session.
        if not isinstance(content, dict):
            return None, Outcome.GONE
        return content, Outcome.STORED

    def _reread(self, session_id):
        """Merges the content that another request has stored into this session.

        For a member that both have changed, the value of this request stays.
        """
        theirs, outcome = self._fetch(session_id)
        if outcome is not Outcome.STORED:
            return outcome
        before, now = self._before, self._fingerprints(self.content)
        mine = dict(self.content)
        # From here on, the other content is the one that this request has read.
        self._before = self._fingerprints(theirs)
        # The application may have kept this dict.
        self.content.clear()
        self.content.update(theirs)
        for name in {**before, **now}:
            if before.get(name) == now.get(name):
                continue
            if name in now:
                self.content[name] = mine[name]
            else:
                self.content.pop(name, None)
        return Outcome.STORED

    def _has_written(self, session_id):
        self.id = session_id
        self.reserved = None
        # The store has given the item another number.
        self._unique = None
        self._before = self._fingerprints(self.content)

    def _remove(self, session_id):
        if self.store.delete(session_id) is None:
            log(f"session is not removed: {self.store.error}")

    def _failed(self, what):
        failure = self.store.failure
        if isinstance(failure, InvalidArgument):
            # This is a mistake in the application, and not in the store.
            raise TypeError(f"{what}: {failure}") from failure
        log(f"{what}: {failure}")
        self.is_lost = True
        return Outcome.FAILED

    def _fingerprints(self, content):
        fingerprint = self.store.fingerprint
        return {name: fingerprint(value) for name, value in content.items()}
