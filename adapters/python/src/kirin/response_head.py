"""The head of a response: checks status and headers of an application, and makes bytes of them."""
import re

from kirin import log

# The most bytes of a head. The front accepts 64 KiB with the fields that the worker adds.
HEAD_BYTES = 63 * 1024

# The most names and statuses that are kept after they have been checked.
KNOWN_NAMES = 1000

# The kinds of names of fields.
ORDINARY = 0
# Fields about the framing of the body, the future of connection and worker, and the file that the
# front must send. An application may not set them.
DROPPED = 1
LENGTH = 2
NO_NAME = 3

_KINDS = {
    "transfer-encoding": DROPPED,
    "connection": DROPPED,
    "keep-alive": DROPPED,
    "kirin-cleanup": DROPPED,
    "kirin-file": DROPPED,
    "content-length": LENGTH,
}

# The bytes that a name may have (RFC 9110 section 5.1). The front accepts no other name.
_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_STATUS = re.compile(r"([1-9][0-9][0-9])(?: [^\x00-\x08\x0a-\x1f\x7f]*)?")
_LINE_END = re.compile(r"[\r\n\0]")
_CONTROL_CHARACTER = re.compile(r"[\x01-\x08\x0b\x0c\x0e-\x1f\x7f]")
# The length of 18 digits is more than any file has, and less than Python's limit for int().
_NUMBER = re.compile(r"[0-9]{1,18}")

_known_names = {}
_known_statuses = {}


def head(status, headers):
    """Returns the number of a status, the bytes of a head without framing, and its Content-Length.

    The length is None if the application gives none, or one that is no number. Raises `TypeError`
    or `ValueError` if the head cannot be sent.
    """
    known = _known_statuses.get(status)
    number, first_line = known or _checked_status(status)
    parts = [first_line]
    length = None
    try:
        for name, value in headers:
            kind = _known_names.get(name)
            if kind is None:
                kind = _kind(name)
            if not value.isprintable():
                value = _without_control_characters(name, value)
            if kind == ORDINARY:
                parts += (name, ": ", value, "\r\n")
            elif kind == LENGTH and _NUMBER.fullmatch(value):
                length = int(value)
    except AttributeError:
        raise TypeError(
            f"the value of the response header {name!r} is no str: {type(value).__name__}"
        ) from None
    try:
        data = "".join(parts).encode("latin-1")
    except UnicodeEncodeError:
        raise ValueError(
            "a response header has a character above U+00FF: encode it before it is sent"
        ) from None
    if len(data) > HEAD_BYTES:
        raise ValueError(f"the response headers have more than {HEAD_BYTES} bytes")
    return number, data, length


def trailers(headers):
    """Returns the lines of trailers. Raises `TypeError` or `ValueError` as `head` does."""
    return head("200", headers)[1].partition(b"\r\n")[2]


def _checked_status(status):
    if not isinstance(status, str):
        raise TypeError(f"the status of the response is no str: {status!r}")
    found = _STATUS.fullmatch(status)
    if found is None:
        raise ValueError(
            f"the status of the response is not a number of three digits and a reason: {status!r}"
        )
    if len(_known_statuses) >= KNOWN_NAMES:
        _known_statuses.clear()
    # The front ignores the reason.
    known = _known_statuses[status] = int(found[1]), f"HTTP/1.1 {found[1]}\r\n"
    return known


def _kind(name):
    """Returns the kind of a name, and keeps it. A field without a name is left out, and logged."""
    if not isinstance(name, str):
        raise TypeError(f"the name of a response header is no str: {name!r}")
    if _LINE_END.search(name):
        raise ValueError(f"line end or NUL in the name of a response header: {name!r}")
    if _NAME.fullmatch(name):
        kind = _KINDS.get(name.lower(), ORDINARY)
    else:
        kind = NO_NAME
        log.line(
            f"kirin: worker {log.pid()}: the response header {name!r} is left out:"
            " this is no name of a field"
        )
    if len(_known_names) >= KNOWN_NAMES:
        _known_names.clear()
    _known_names[name] = kind
    return kind


def _without_control_characters(name, value):
    """Returns the value with spaces for control characters (RFC 9110 section 5.5).

    A line end would add lines, or a complete response, so it is an error.
    """
    if _LINE_END.search(value):
        raise ValueError(f"line end or NUL in the response header {name!r}")
    return _CONTROL_CHARACTER.sub(" ", value)
