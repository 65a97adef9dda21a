"""A request, its visitor and its form."""
import functools
from urllib.parse import parse_qsl

from memo import sessions
from memo.response import Refusal

LARGEST_FORM_BYTES = 256 * 1024
FORM_TYPE = "application/x-www-form-urlencoded"


class Request:
    """The request of a WSGI environment."""

    def __init__(self, environ, site_sessions):
        self._environ = environ
        self._sessions = site_sessions
        self._has_new_token = False

    @property
    def method(self):
        """The method: GET, POST …"""
        return self._environ["REQUEST_METHOD"]

    @property
    def path(self):
        """The decoded path, whose bytes are characters (PEP 3333)."""
        return self._environ["PATH_INFO"]

    @property
    def is_https(self):
        """Whether the visitor's connection is encrypted."""
        return self._environ["wsgi.url_scheme"] == "https"

    @functools.cached_property
    def session_token(self):
        """The token of the visitor's cookie, or None."""
        cookies = {}
        for pair in self._environ.get("HTTP_COOKIE", "").split(";"):
            name, _, value = pair.strip().partition("=")
            # The first one is that of the longest path.
            cookies.setdefault(name, value)
        return sessions.token_in(cookies)

    @functools.cached_property
    def user_signed_in(self):
        """The signed-in user, or None."""
        return self._sessions.user(self.session_token)

    def csrf_token(self):
        """Returns the token for the forms of this response.

        A visitor without a cookie gets one for it (see `form_cookies`).
        """
        if self.session_token is None:
            self.session_token = sessions.new_token()
            self._has_new_token = True
        return self._sessions.csrf_token(self.session_token)

    def form_cookies(self):
        """Returns the Set-Cookie values of a page with forms."""
        if not self._has_new_token:
            return []
        return sessions.cookies_for_form(self.session_token, self.is_https)

    @functools.cached_property
    def _form(self):
        """The fields of the posted form. Bytes are characters, as in the path."""
        if not self._environ.get("CONTENT_TYPE", "").lower().startswith(FORM_TYPE):
            return {}
        body = self._environ["wsgi.input"].read(self._content_length).decode("latin-1")
        return dict(parse_qsl(body, keep_blank_values=True, encoding="latin-1"))

    @property
    def _content_length(self):
        return int(self._environ.get("CONTENT_LENGTH") or 0)

    def field(self, name):
        """Returns a field of the posted form as text."""
        try:
            return self._form.get(name, "").encode("latin-1").decode("utf-8")
        except UnicodeDecodeError:
            raise Refusal(400, "The form is not in UTF-8.") from None

    def refuse_forgeries(self):
        """Checks a POST. Every handler calls this before it uses the form."""
        if self._content_length > LARGEST_FORM_BYTES:
            raise Refusal(413, "The form is too large.")
        given = self._form.get("csrf_token")
        if not self._sessions.csrf_token_is_right(self.session_token, given):
            raise Refusal(
                403,
                "This form is not from this site, or it is too old. Go back, reload and try again.",
            )
