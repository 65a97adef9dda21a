"""The responses of the site."""
from dataclasses import dataclass
from http import HTTPStatus

# No script, only our own styles, nothing from other sites, no framing. The pages repeat this in a
# meta element, because pages from the store come without the application's headers.
CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'self'; img-src 'self'; base-uri 'none'; form-action 'self'"
)
SAFETY = [
    ("X-Content-Type-Options", "nosniff"),
    ("X-Frame-Options", "DENY"),
    ("Referrer-Policy", "same-origin"),
    ("Content-Security-Policy", f"{CONTENT_SECURITY_POLICY}; frame-ancestors 'none'"),
]


@dataclass
class Response:
    """A response: its status as a number, its headers as pairs, its body as bytes."""

    status: int
    headers: list
    body: bytes

    def to_wsgi(self, start_response, is_head):
        """Returns the body, as a WSGI application does. A response to HEAD has none."""
        start_response(f"{self.status} {HTTPStatus(self.status).phrase}", self.headers)
        return [] if is_head else [self.body]


class Refusal(Exception):
    """Why there is no page. A handler raises it, and `Site` makes a page of it."""

    def __init__(self, status, reason, headers=()):
        super().__init__(reason)
        self.status = status
        self.reason = reason
        self.headers = headers


def public_page(html):
    """Returns a page for all visitors who are not signed in.

    It may change with the next memo, so browsers must request it again each time.
    """
    response = _response(200, "text/html; charset=UTF-8", "no-cache", html, [])
    response.headers.append(("Vary", "Cookie"))
    return response


def personal_page(html, status=200, cookies=()):
    """Returns a page for one visitor."""
    return _response(status, "text/html; charset=UTF-8", "private, no-store", html, cookies)


def see_other(path, cookies=()):
    """Returns a redirection to a page of this site."""
    response = _response(
        303, "text/plain; charset=UTF-8", "private, no-store", f"See {path}\n", cookies
    )
    response.headers.append(("Location", path))
    return response


def _response(status, media_type, cache_control, text, cookies):
    body = text.encode("utf-8")
    headers = [
        ("Content-Type", media_type),
        ("Content-Length", str(len(body))),
        ("Cache-Control", cache_control),
        *SAFETY,
        *(("Set-Cookie", cookie) for cookie in cookies),
    ]
    return Response(status, headers, body)
