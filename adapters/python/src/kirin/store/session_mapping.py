"""The session that an application of Flask or Starlette sees. It is written at the end."""
import collections.abc
import enum

from kirin.store.session import Outcome


class Cookie(enum.Enum):
    """What the client must be told."""

    UNCHANGED = "unchanged"
    SEND = "send"
    DELETE = "delete"


class SessionMapping(collections.abc.MutableMapping):
    """The members of a session. It behaves like a dict, and is read at its first use.

    Changes are noticed at any depth. `modified = True` makes sure that it is written.
    """

    def __init__(self, visitor):
        self.accessed = False
        # Whether `commit` has started the life of an existing session again.
        self.was_prolonged = False
        self._visitor = visitor
        self._is_modified = False
        self._must_change_id = False
        self._must_end = False

    @property
    def modified(self):
        """Whether the session must be written."""
        return self._is_modified or self._visitor.is_changed()

    @modified.setter
    def modified(self, is_modified):
        self._is_modified = is_modified

    @property
    def new(self):
        """Whether the store does not have the session yet."""
        self._content()
        return not self._visitor.is_stored()

    @property
    def id(self):
        """The id that the session has, or will have. A session whose id was read is kept."""
        self._content()
        return self._visitor.reserve_id()

    def change_id(self):
        """Gives the session another id at the end of the request.

        Call this when a visitor signs in, so that an id known before becomes worthless.
        """
        self.accessed = True
        self._must_change_id = True

    def expire(self):
        """Ends the session and its cookie at the end of the request."""
        self.accessed = True
        self._must_end = True

    def commit(self, ttl, times):
        """Writes what must be written. Returns what the client must be told.

        `times` is a `TouchTimes`. A session that is written or touched lives for `ttl` seconds.
        Changes that are lost because the session has ended do not touch the cookie.
        """
        visitor = self._visitor
        if self._must_end:
            had_cookie = visitor.cookie is not None
            visitor.remove()
            return Cookie.DELETE if had_cookie else Cookie.UNCHANGED
        if not self.accessed:
            return Cookie.UNCHANGED
        visitor.load()
        if visitor.is_lost:
            return Cookie.UNCHANGED
        if not visitor.is_stored():
            if not visitor.content and visitor.reserved is None:
                return Cookie.UNCHANGED
            return _sent_if_stored(visitor.create(ttl))
        if not visitor.content and visitor.is_changed():
            # An application signs a visitor out by clearing the session.
            visitor.remove()
            return Cookie.DELETE
        if self._must_change_id:
            return _sent_if_stored(visitor.move(ttl))
        if self.modified:
            outcome = visitor.update(ttl)
            self.was_prolonged = outcome is Outcome.STORED
            if outcome is Outcome.GONE:
                # The changes are lost, and the client's cookie stays as it is.
                visitor.id = None
        else:
            self.was_prolonged = visitor.touch(ttl, times)
        return Cookie.UNCHANGED

    def is_kept(self):
        """Returns whether the store has the session after `commit`, as far as is known."""
        return self._visitor.is_stored() and not self._visitor.is_lost

    def has_work(self):
        """Returns whether `commit` may need the store."""
        return self._must_end or self.accessed

    def _content(self):
        self.accessed = True
        visitor = self._visitor
        if visitor.content is None:
            visitor.load()
        return visitor.content

    def copy(self):
        """Returns a plain dict."""
        return dict(self._content())

    def __getitem__(self, name):
        return self._content()[name]

    def __setitem__(self, name, value):
        self._content()[name] = value

    def __delitem__(self, name):
        del self._content()[name]

    def __contains__(self, name):
        return name in self._content()

    def __iter__(self):
        return iter(self._content())

    def __len__(self):
        return len(self._content())

    def clear(self):
        self._content().clear()

    def __repr__(self):
        return f"<{type(self).__name__} {self._visitor.content!r}>"


def _sent_if_stored(outcome):
    return Cookie.SEND if outcome is Outcome.STORED else Cookie.UNCHANGED
