"""The site of the request that this code serves. Keys and tags in the store begin with its name.

A worker that serves one request at a time sets `of_process` before each request:

    site.of_process = environ.get("KIRIN_SITE")

So threads that the application starts within a request have its site, too. A worker that serves
several requests at the same time calls `set_in_context` in the context of each request. That value
comes first. docs/store.md describes sites.
"""
import contextlib
import contextvars
import re

# The site of the only request in progress, or None.
of_process = None

# A comma would divide a tag, and a control character could make it one of the store's own.
_NAME = re.compile(r"[A-Za-z0-9._-]*")

_NOT_SET = object()
_of_context = contextvars.ContextVar("kirin_site", default=_NOT_SET)


def current_site():
    """Returns the name of the site, or "" for the routes that belong to no site."""
    name = _of_context.get()
    return (of_process if name is _NOT_SET else name) or ""


def set_in_context(name):
    """Sets the site for the present context (contextvars) and for the tasks that it starts."""
    return _of_context.set(name or "")


@contextlib.contextmanager
def in_site(name):
    """Makes a block of code use the items of a site: `with in_site("example.org"): …`.

    This is for programs and background threads. "" means the items of no site.
    """
    check_site(name)
    token = _of_context.set(name)
    try:
        yield
    finally:
        _of_context.reset(token)


def check_site(name):
    """Raises `ValueError` for a text that cannot be the name of a site."""
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        raise ValueError(f"the name of a site has letters, digits, '-', '_' and '.': {name!r}")
