"""The stored form of a page: a media type and a body, or a complete response (docs/pages.md)."""
import re

from kirin.store.failure import InvalidArgument
from kirin.store.names import to_bytes

_MEDIA_TYPE = re.compile(rb"[!-.0-~]+/[\t -~]+")
_STATUS = re.compile(r"([1-9][0-9][0-9])(?: .*)?", re.DOTALL)
_LINE_END = re.compile(r"[\r\n\0]")

# Kirin writes the framing itself. It acts on its own fields only in a response of a worker.
_LEFT_OUT = re.compile(
    r"(?:connection|content-length|keep-alive|kirin-\w+|transfer-encoding)", re.IGNORECASE
)


def page(media_type, body):
    """Returns the value of an item that is a page with this media type."""
    media_type = to_bytes(media_type, "a media type")
    if not _MEDIA_TYPE.fullmatch(media_type):
        raise InvalidArgument("a page needs a media type, such as text/html; charset=UTF-8")
    return media_type + b"\r\n" + _body(body)


def response(status, headers, body):
    """Returns the value of an item that is a complete response.

    `status` is a number, or a text as of WSGI. `headers` is a list of pairs, or a mapping.
    """
    found = _STATUS.fullmatch(str(status))
    if not found:
        raise InvalidArgument(f"status is no number of three digits: {status!r}")
    lines = [f"HTTP/1.1 {found[1]}\r\n"]
    try:
        pairs = [(n, v) for n, v in (headers.items() if hasattr(headers, "items") else headers)]
    except (TypeError, ValueError) as error:
        raise InvalidArgument("the headers are no list of pairs") from error
    for name, value in pairs:
        if not isinstance(name, str) or not isinstance(value, (str, int)):
            raise InvalidArgument("the name and the value of a response header are str")
        if _LINE_END.search(f"{name}{value}"):
            raise InvalidArgument("line end or NUL in a response header")
        if not _LEFT_OUT.fullmatch(name):
            lines.append(f"{name}: {value}\r\n")
    lines.append("\r\n")
    try:
        return "".join(lines).encode("latin-1") + _body(body)
    except UnicodeEncodeError as error:
        raise InvalidArgument("a response header is no latin-1") from error


def _body(body):
    if isinstance(body, (list, tuple)):
        return b"".join(to_bytes(part, "a part of a body") for part in body)
    return to_bytes(body, "a body")
