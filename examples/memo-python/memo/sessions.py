"""Who is signed in, and CSRF tokens.

Sessions are in the database and not in the store. The store may be restarted, may evict items, and
may be switched off, and that should sign nobody out. The store has copies (`SessionItems`).

The cookie is a random token that every visitor of a form gets. Only a signed-in visitor's token has
a row. The CSRF token of a form is a MAC of the cookie's token. So the sign-in form is protected
too, and nothing has to be kept for visitors who only read.
"""
import functools
import hashlib
import hmac
import re
import secrets
import time

COOKIE = "memo_session"
# A cookie for pages from the store. If the copy of the session is missing, it shows that a request
# to the application is useful.
HINT_COOKIE = "memo_signed_in"
TOKEN = re.compile(r"[0-9a-f]{36}")
LIFETIME_SECS = 30 * 24 * 3600


def new_token():
    """Returns 144 unguessable bits as 36 hexadecimal digits."""
    return secrets.token_hex(18)


def token_in(cookies):
    """Returns the token of a visitor with these cookies, or None."""
    token = cookies.get(COOKIE, "")
    return token if TOKEN.fullmatch(token) else None


class Sessions:
    """The sessions of a database. `items` are their copies in the store."""

    def __init__(self, database, items):
        self._database = database
        self.items = items

    def user(self, token):
        """Returns the user who is signed in under this token, or None."""
        session = self.find(token) if token else None
        if session is None:
            return None
        self.items.keep(token, session["expires_at"], self.find)
        return {"id": session["user_id"], "name": session["name"]}

    def find(self, token):
        """Returns the content of a copy, and when the session ends, or None."""
        row = self._database.execute(
            """SELECT user.id AS user_id, user.name, session.expires_at
                 FROM session JOIN user ON user.id = session.user_id
                WHERE session.token_digest = ? AND session.expires_at > ?""",
            (_digest(token), int(time.time())),
        ).fetchone()
        return None if row is None else {**dict(row), "csrf_token": self.csrf_token(token)}

    def start(self, user, old_token):
        """Signs the user in under a new token, so that one planted by an attacker is worthless."""
        token = new_token()
        if old_token:
            self.end(old_token)
        now = int(time.time())
        with self._database.exclusively():
            self._database.execute("DELETE FROM session WHERE expires_at <= ?", (now,))
            self._database.execute(
                "INSERT INTO session (token_digest, user_id, expires_at) VALUES (?, ?, ?)",
                (_digest(token), user["id"], now + LIFETIME_SECS),
            )
        self.items.begin(token, self.find)
        return token

    def end(self, token):
        """Ends the session with this token, if there is one."""
        self._database.execute("DELETE FROM session WHERE token_digest = ?", (_digest(token),))
        self.items.forget(token)

    @functools.cached_property
    def _csrf_key(self):
        return self._database.setting("csrf_key").encode("ascii")

    def csrf_token(self, token):
        """Returns the token for the forms of the visitor with this token."""
        return hmac.new(self._csrf_key, token.encode("ascii"), hashlib.sha256).hexdigest()

    def csrf_token_is_right(self, token, given):
        """Returns whether `given`, which came with a form, is the visitor's."""
        if token is None or given is None:
            return False
        return hmac.compare_digest(given.encode("utf-8"), self.csrf_token(token).encode("ascii"))


def cookies_for_form(token, is_https):
    """Returns the Set-Cookie values for a visitor who gets a form."""
    return [_cookie(COOKIE, token, "HttpOnly", is_https)]


def cookies_for_sign_in(token, is_https):
    """Returns the Set-Cookie values for the response to a sign-in."""
    attributes = f"Max-Age={LIFETIME_SECS}; HttpOnly"
    return [
        _cookie(COOKIE, token, attributes, is_https),
        _cookie(HINT_COOKIE, "1", attributes, is_https),
    ]


def cookies_for_sign_out(is_https):
    """Returns the Set-Cookie values for the response to a sign-out."""
    return [_cookie(name, "", "Max-Age=0; HttpOnly", is_https) for name in (COOKIE, HINT_COOKIE)]


def _digest(token):
    return hashlib.sha256(token.encode("ascii")).hexdigest()


def _cookie(name, value, attributes, is_https):
    secure = "; Secure" if is_https else ""
    return f"{name}={value}; Path=/; SameSite=Lax; {attributes}{secure}"
