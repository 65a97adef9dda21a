"""The compiled part of the adapter: requests and answers through memory that Kirin shares.

Without it, or with `KIRIN_RING=0` in the environment of the application, everything goes over
sockets, and everything else is the same. docs/worker-protocol.md describes the ring.
"""
import os

_SOURCES = ("../../ext/_ring.c", "../../../ring/kirin_ring.c", "../../../ring/kirin_ring.h")


def is_available():
    """Returns whether the compiled part is there and wanted."""
    return _ring is not None and os.environ.get("KIRIN_RING", "1") != "0"


def attach(descriptor, parent):
    """Returns the ring that the front offers on a connection, or None if it offers none.

    Waits for the offer. The process gets TERM when the process `parent` ends.
    """
    return _ring.attach(descriptor, parent)


def end_with_parent(parent, seconds):
    """Lets this process outlive the process `parent` by a number of seconds at most."""
    _ring.end_with_parent(parent, int(1000 * seconds))


def _load():
    try:
        from kirin import _ring
    except ImportError:
        return None
    return None if _is_older_than_sources(_ring.__file__) else _ring


def _is_older_than_sources(library):
    """Returns whether the library was built from other sources: it could lack a function."""
    here = os.path.dirname(os.path.abspath(__file__))
    built = os.stat(library).st_mtime
    for source in _SOURCES:
        try:
            if os.stat(os.path.join(here, source)).st_mtime > built:
                return True
        except OSError:
            # An installed package has no sources.
            continue
    return False


# The app parent loads it before the application, which may change where modules are found. The
# workers inherit it.
_ring = _load()
