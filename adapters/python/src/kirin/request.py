"""Reads the head of a request that did not come complete with one read."""
import re

from kirin import connection as connections
from kirin import log
from kirin.connection import FrontGone

# The bytes that one call reads. The front sends a head and a body of up to this size with one
# write.
READ_BYTES = 64 * 1024

# The longest request head. The front's own limit is lower.
HEAD_BYTES = 256 * 1024

# The most characters of the decimal length of a head, and its colon.
LENGTH_BYTES = 8

COMMA = ord(",")

_LENGTH = re.compile(rb"[1-9][0-9]{0,6}")


def complete_head(connection, data):
    """Reads until the head is complete. `data` is what came first.

    Returns all bytes that were read, and the index of the comma that ends the head. Raises
    `FrontGone` if the front closes the connection, or sends no request head.
    """
    received = bytearray(data)
    while True:
        comma = end_of_head(received)
        if comma is not None:
            return bytes(received), comma
        received += connections.receive(connection, READ_BYTES)


def end_of_head(received):
    """Returns the index of the comma that ends a head, or None if bytes are missing.

    Raises `FrontGone` if this is no request head.
    """
    colon = received.find(b":", 0, LENGTH_BYTES)
    digits = received[: LENGTH_BYTES if colon < 0 else colon]
    if not _LENGTH.fullmatch(digits) or int(digits) > HEAD_BYTES:
        refuse()
    if colon > 0:
        comma = colon + 1 + int(digits)
        if len(received) > comma:
            if received[comma] != COMMA:
                refuse()
            return comma
    return None


def words_of(head):
    """Returns the words of a complete head, or raises `FrontGone` if it has no names and values."""
    words = str(head, "latin-1").split("\0")
    if len(words) < 3 or len(words) % 2 == 0 or not words[0].endswith(":CONTENT_LENGTH"):
        refuse()
    return words


def refuse():
    """Logs that the front has sent no request head, and raises `FrontGone`."""
    log.line(f"kirin: worker {log.pid()}: the front has sent something that is no request head")
    raise FrontGone
