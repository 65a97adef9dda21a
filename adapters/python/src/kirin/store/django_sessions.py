"""A session engine of Django that keeps sessions in Kirin's store.

    SESSION_ENGINE = "kirin.store.django_sessions"

    [store]                             # kirin.toml: pages can show the session
    session_cookie = "sessionid"

The address is the setting `KIRIN_STORE`, or the environment variable of this name. Sessions are
JSON. With a `SESSION_SERIALIZER` other than Django's JSONSerializer they are what that returns, and
pages cannot show them.
"""
from asgiref.sync import sync_to_async
from django.conf import settings
from django.contrib.sessions.backends.base import CreateError, SessionBase, UpdateError
from django.contrib.sessions.serializers import JSONSerializer

from kirin.store.client import Store
from kirin.store.session import Outcome, VisitorSession, is_id, log, new_id

# How often an id is made before creation gives up. No id is ever made twice by chance.
CREATIONS = 3


class SessionStore(SessionBase):
    """The session of a request."""

    def __init__(self, session_key=None):
        self._visitor = None
        self._is_modified = False
        super().__init__(session_key)
        is_json = self.serializer is JSONSerializer
        self._store = Store(
            getattr(settings, "KIRIN_STORE", None),
            serializer=None if is_json else self.serializer(),
        )

    def _validate_session_key(self, key):
        # Visitors choose their cookies. No item that is not a session may be reached that way.
        return is_id(key)

    def _get_new_session_key(self):
        # Whether it is used is found out when the session is stored.
        return new_id()

    async def _aget_new_session_key(self):
        return new_id()

    @property
    def modified(self):
        """Whether the session must be written. Changes are noticed at any depth."""
        visitor = self._visitor
        if visitor is None or visitor.content is not getattr(self, "_session_cache", None):
            return self._is_modified
        # Nothing is written when the store could not be read.
        return not visitor.is_lost and (self._is_modified or visitor.is_changed())

    @modified.setter
    def modified(self, is_modified):
        self._is_modified = is_modified

    def load(self):
        """Returns the members of the session in the store."""
        visitor = VisitorSession(self._store, self.session_key)
        visitor.load()
        self._visitor = visitor
        if visitor.id is None:
            # The store does not know the id, so it is never accepted.
            self._session_key = None
        return visitor.content

    def exists(self, session_key):
        return is_id(session_key) and isinstance(self._store.get(session_key), dict)

    def create(self):
        """Stores a session with a new id."""
        for _ in range(CREATIONS):
            self._session_key = new_id()
            try:
                self.save(must_create=True)
            except CreateError:
                continue
            self.modified = True
            return
        raise RuntimeError("Unable to create a new session key.")

    def save(self, must_create=False):
        """Writes the session.

        An existing session keeps the changes that other requests have made since it was read. If
        it has ended in the meantime, this raises `UpdateError`, and it stays ended. Nothing is
        written if the store is away.
        """
        if self.session_key is None:
            return self.create()
        members = self._get_session(no_load=must_create)
        if must_create:
            visitor = VisitorSession(self._store)
            visitor.content = members
            outcome = visitor.create(self._ttl(), self.session_key)
            if outcome is Outcome.EXISTS:
                raise CreateError
            self._visitor = visitor
            return
        visitor = self._visitor
        if visitor is None or visitor.id != self.session_key:
            # The members were not read, for example because of `clear`.
            visitor = VisitorSession(self._store, self.session_key)
            visitor.load()
            if visitor.id is None:
                raise UpdateError
        if visitor.is_lost:
            return
        visitor.content = members
        if visitor.update(self._ttl()) is Outcome.GONE:
            raise UpdateError
        self._visitor = visitor

    def cycle_key(self):
        """Gives the session another id. The changes of other requests until then move with it.

        If it has ended in the meantime, the new session begins empty.
        """
        members = self._session
        visitor = self._visitor
        if self.session_key is None or visitor is None or visitor.id != self.session_key:
            super().cycle_key()
            return
        if visitor.is_lost:
            return
        visitor.content = members
        outcome = visitor.move(self._ttl())
        if outcome is Outcome.STORED:
            self._session_key = visitor.id
            self.modified = True
        elif outcome is Outcome.GONE:
            self._session_cache = {}
            self.create()

    async def acycle_key(self):
        await sync_to_async(self.cycle_key)()

    def delete(self, session_key=None):
        """Ends the session, or the one with the given id."""
        if session_key is None:
            session_key = self.session_key
        if is_id(session_key) and self._store.delete(session_key) is None:
            log(f"session is not removed: {self._store.error}")

    @classmethod
    def clear_expired(cls):
        """Does nothing: the store removes expired items itself."""

    @classmethod
    async def aclear_expired(cls):
        """Does nothing, as `clear_expired`."""

    def _ttl(self):
        age = self.get_expiry_age()
        # An age of 0 has ended. In the protocol, 0 has no end.
        return age if age > 0 else -1
