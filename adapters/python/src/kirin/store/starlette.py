"""Sessions of Starlette, FastAPI and other ASGI applications in Kirin's store.

    from kirin.store.starlette import SessionMiddleware

    app = Starlette(routes=…, middleware=[Middleware(SessionMiddleware, https_only=True)])

It takes the place of `starlette.middleware.sessions.SessionMiddleware` and has its options, but no
`secret_key`: the cookie has only the id. It needs asyncio, and nothing of Starlette.

`request.session` is read before the application runs, if the client has sent the id of a session,
because an application cannot wait for it later. The store is used in threads, so a store that is
slow or away does not stop the event loop. `request.session.change_id()` gives the session another
id, and `request.session.expire()` ends it, as `clear()` does.
"""
import asyncio

from kirin.store.client import Store
from kirin.store.session import TouchTimes, VisitorSession, is_id
from kirin.store.session_mapping import Cookie, SessionMapping

# The life of a session whose cookie ends with the browser.
DEFAULT_SECONDS = 14 * 24 * 60 * 60

# The messages with which an application begins a response. Their fields can still be changed.
STARTS = ("http.response.start", "websocket.accept")


class Session(SessionMapping):
    """`request.session`."""

    def mark_accessed(self):
        """Starlette calls this when the application asks for the session."""
        self.accessed = True

    def replace(self, members):
        """Takes the members of a dict that the application has put in place of this session."""
        content = self._content()
        members = dict(members)
        content.clear()
        content.update(members)


class SessionMiddleware:
    """Adds `scope["session"]`, and writes it when the response begins.

    A session lives for `ttl` seconds after it was last used. The default is `max_age`, and 14 days
    if that is None. Then the cookie ends with the browser.
    """

    def __init__(self, app, store=None, *, session_cookie="session", max_age=DEFAULT_SECONDS,
                 path="/", same_site="lax", https_only=False, domain=None, partitioned=False,
                 ttl=None):
        self.app = app
        self.store = Store() if store is None else store
        self.session_cookie = session_cookie
        self.max_age = max_age
        self.ttl = ttl or max_age or DEFAULT_SECONDS
        self._times = TouchTimes()
        self._attributes = f"path={path}; httponly; samesite={same_site}"
        if https_only:
            self._attributes += "; secure"
        if domain is not None:
            self._attributes += f"; domain={domain}"
        if partitioned:
            self._attributes += "; partitioned"

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        cookie = first_cookie(scope.get("headers", ()), self.session_cookie)
        visitor = VisitorSession(self.store, cookie)
        if is_id(cookie):
            await asyncio.to_thread(visitor.load)
        scope["session"] = session = Session(visitor)
        is_committed = False

        async def send_with_session(message):
            nonlocal is_committed
            if message["type"] in STARTS and not is_committed:
                is_committed = True
                message = await self._committed(scope, session, message)
            await send(message)

        await self.app(scope, receive, send_with_session)

    async def _committed(self, scope, session, message):
        """Writes the session. Returns the message with the fields that the client needs."""
        present = scope.get("session")
        if present is not session and present is not None:
            session.replace(present)
        if not session.has_work():
            return message
        cookie = await asyncio.to_thread(session.commit, self.ttl, self._times)
        headers = with_vary_cookie(list(message.get("headers", ())))
        if cookie is Cookie.DELETE:
            headers.append(self._field("null", "expires=Thu, 01 Jan 1970 00:00:00 GMT"))
        elif cookie is Cookie.SEND or session.was_prolonged and self.max_age is not None:
            life = None if self.max_age is None else f"max-age={self.max_age}"
            headers.append(self._field(session.id, life))
        return {**message, "headers": headers}

    def _field(self, value, life):
        parts = [f"{self.session_cookie}={value}", self._attributes] + ([life] if life else [])
        return b"set-cookie", "; ".join(parts).encode("latin-1")


def first_cookie(headers, name):
    """Returns the value of the first cookie with this name, or None. Pages use the first, too."""
    for field, line in headers:
        if field == b"cookie":
            for pair in line.decode("latin-1").split(";"):
                found, equals, value = pair.partition("=")
                if equals and found.strip() == name:
                    return value.strip()
    return None


def with_vary_cookie(headers):
    """Adds `Vary: Cookie` if the fields of a response do not say that yet."""
    for field, value in headers:
        if field.lower() == b"vary":
            names = {name.strip().lower() for name in value.split(b",")}
            if names & {b"cookie", b"*"}:
                return headers
    return headers + [(b"vary", b"Cookie")]
