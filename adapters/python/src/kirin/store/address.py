"""Addresses of a store: `unix:PATH`, `/PATH` and `HOST:PORT`.

A relative PATH is relative to the working directory of the moment, as for Kirin itself.
"""
import re
import socket

from kirin.store.failure import StoreError

# The longest path of a unix socket (unix(7)), without the NUL at its end.
SOCKET_PATH_BYTES = 107

_HOST_AND_PORT = re.compile(r"\[?(.+?)\]?:([0-9]+)")


def candidates(address):
    """Returns (family, address for connect) for each meaning of an address.

    Raises `StoreError` if it has none. A name is resolved at each call.
    """
    path = address[len("unix:"):] if address.startswith("unix:") else address
    if path.startswith("/") or path and path is not address:
        if len(path.encode("utf-8", "surrogateescape")) > SOCKET_PATH_BYTES:
            raise StoreError("the path of the socket is too long")
        return [(socket.AF_UNIX, path)]
    parts = _HOST_AND_PORT.fullmatch(address)
    if not parts:
        raise StoreError("the address is not HOST:PORT or unix:PATH")
    host, port = parts.groups()
    try:
        found = socket.getaddrinfo(host, int(port), type=socket.SOCK_STREAM)
    except (OSError, OverflowError, UnicodeError) as error:
        raise StoreError(getattr(error, "strerror", None) or str(error)) from error
    return [(family, where) for family, _, _, _, where in found]
