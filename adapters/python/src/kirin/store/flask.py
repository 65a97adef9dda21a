"""Sessions of Flask in Kirin's store.

    from kirin.store.flask import KirinSessionInterface

    app.session_interface = KirinSessionInterface()

The cookie has only the id, so `SECRET_KEY` is not needed for it. Its attributes come from Flask's
`SESSION_COOKIE_*`. Members are JSON. `session.change_id()` gives the session another id, and
`session.expire()` ends it, as `session.clear()` does.
"""
from flask.sessions import SessionInterface, SessionMixin

from kirin.store.client import Store
from kirin.store.session import TouchTimes, VisitorSession
from kirin.store.session_mapping import Cookie, SessionMapping


class KirinSession(SessionMapping, SessionMixin):
    """`flask.session`."""

    # Whether the client's cookie is a permanent one, or None if the session was not read.
    was_permanent = None

    def _content(self):
        content = super()._content()
        if self.was_permanent is None:
            self.was_permanent = bool(content.get("_permanent", False))
        return content


class KirinSessionInterface(SessionInterface):
    """Keeps sessions in `store`, whose default is `Store()`.

    A session lives for `ttl` seconds after it was last used. The default is Flask's
    `PERMANENT_SESSION_LIFETIME`, also for sessions that are not permanent.
    """

    session_class = KirinSession

    def __init__(self, store=None, *, ttl=None):
        self.store = Store() if store is None else store
        self.ttl = ttl
        self._times = TouchTimes()

    def open_session(self, app, request):
        """Returns the session of a request. It is not read before the application looks at it."""
        cookie = request.cookies.get(self.get_cookie_name(app))
        return self.session_class(VisitorSession(self.store, cookie))

    def save_session(self, app, session, response):
        """Writes the session if needed, and sends a cookie if the client needs new information."""
        ttl = self.ttl or app.permanent_session_lifetime.total_seconds()
        cookie = session.commit(ttl, self._times)
        if session.accessed:
            response.vary.add("Cookie")
        name = self.get_cookie_name(app)
        attributes = {
            "domain": self.get_cookie_domain(app),
            "path": self.get_cookie_path(app),
            "secure": self.get_cookie_secure(app),
            "httponly": self.get_cookie_httponly(app),
            "samesite": self.get_cookie_samesite(app),
        }
        if hasattr(self, "get_cookie_partitioned"):
            # Flask 3.1 and later.
            attributes["partitioned"] = self.get_cookie_partitioned(app)
        if cookie is Cookie.DELETE:
            response.delete_cookie(name, **attributes)
        elif cookie is Cookie.SEND or self._is_refreshed(app, session):
            response.set_cookie(
                name, session.id, expires=self.get_expiration_time(app, session), **attributes
            )

    @staticmethod
    def _is_refreshed(app, session):
        """Returns whether an existing session needs its cookie with another end."""
        if not session.accessed or not session.is_kept():
            return False
        if session.permanent != session.was_permanent:
            return True
        return session.permanent and app.config["SESSION_REFRESH_EACH_REQUEST"]
