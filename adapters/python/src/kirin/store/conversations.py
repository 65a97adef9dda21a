"""What is sent to a memcached, and what is read. Each function is for `Endpoint.converse`.

A function reads every reply to what it sends, or raises `StoreError`. After that the connection is
closed, because it may have other bytes.
"""
import re

from kirin.store.connection import NO_REPLY
from kirin.store.failure import StoreError

# The most commands that are sent before their replies are read. The replies fit into the buffers
# of a socket.
COMMANDS_AT_ONCE = 100

_NOT_DONE = frozenset((b"NOT_FOUND", b"NOT_STORED", b"EXISTS", b"NF", b"NS", b"EX"))
_PRINTABLE = re.compile(rb"[ -~]{1,200}")
_VALUE = re.compile(rb"VALUE (\S+) ([0-9]{1,10}) ([0-9]{1,10})(?: ([0-9]{1,20}))?")
_META_VALUE = re.compile(rb"VA ([0-9]{1,10}) f([0-9]{1,10})((?: [A-Z])*)")
_NUMBER = re.compile(rb"[0-9]{1,20}")


def _refused(line):
    """Returns the failure for a line that is no expected reply."""
    if _PRINTABLE.fullmatch(line):
        return StoreError(line.decode("ascii"))
    return StoreError(NO_REPLY)


def _verdict(connection, expected):
    line = connection.line()
    if line == expected:
        return True
    if line in _NOT_DONE:
        return False
    # The connection may have other bytes after an error line, for example a part of the value.
    raise _refused(line)


def carry_out(connection, command, expected):
    connection.send(command)
    return _verdict(connection, expected)


def count(connection, command):
    connection.send(command)
    line = connection.line()
    if _NUMBER.fullmatch(line):
        return int(line)
    if line == b"NOT_FOUND":
        return False
    raise _refused(line)


def retrieve(connection, commands):
    """Returns (name, flags, number for cas, bytes) of each item that was found."""
    found = []
    for command in commands:
        connection.send(command)
        while True:
            line = connection.line()
            if line == b"END":
                break
            parts = _VALUE.fullmatch(line)
            if not parts:
                raise _refused(line)
            name, flags, length, unique = parts.groups()
            data = connection.block(int(length))
            found.append((name, int(flags), None if unique is None else int(unique), data))
    return found


def meta_retrieve(connection, command):
    """Returns (bytes, flags, whether this client has won the right to renew), or None."""
    connection.send(command)
    line = connection.line()
    if line == b"EN":
        return None
    parts = _META_VALUE.fullmatch(line)
    if not parts:
        raise _refused(line)
    length, flags, marks = parts.groups()
    return connection.block(int(length)), int(flags), b"W" in marks


def store_many(connection, commands, verdicts):
    """Adds True, or a `StoreError`, to `verdicts` for each (key, command, expected reply)."""
    connection.send(b"".join(sent for _, sent, _ in commands))
    for _, _, expected in commands:
        line = connection.line()
        if line == expected:
            verdicts.append(True)
        elif line.startswith(b"SERVER_ERROR"):
            # The store has read the value that it refuses, so the other replies follow.
            verdicts.append(_refused(line))
        else:
            raise _refused(line)


def purge_all(connection, purges):
    """Sends many commands before it waits for the first reply."""
    purged = 0
    for i in range(0, len(purges), COMMANDS_AT_ONCE):
        some = purges[i:i + COMMANDS_AT_ONCE]
        connection.send(b"".join(command for commands in some for command in commands))
        for commands in some:
            purged += any([_verdict(connection, b"HD") for _ in commands])
    return purged
