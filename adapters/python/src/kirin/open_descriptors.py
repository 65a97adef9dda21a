"""Finds the descriptors that an application has opened while it was loaded.

Forked processes have the same connections. One process may read what a database answers to another.
So an application must not open these before workers are forked: sockets, except those of syslog, on
which no data arrives; pipes from other processes; files that are open for reading and writing, as
databases are; SQLite databases that are only read.

Logs, which are open for writing, may be shared. So may files that are only read, but all processes
have one common position.
"""
import os
import re
import socket
import stat

# The start of an SQLite database.
SQLITE = b"SQLite format 3\0"

_NOT_PRINTABLE = re.compile(r"[^ -~]")


def opened():
    """Returns the target of each open descriptor of this process by its number.

    Without /proc it returns nothing.
    """
    targets = {}
    try:
        numbers = os.listdir("/proc/self/fd")
    except OSError:
        return targets
    for number in map(int, numbers):
        try:
            targets[number] = os.readlink(f"/proc/self/fd/{number}")
        except OSError:
            # This was the directory itself.
            continue
    return targets


def opened_since(before):
    """Returns the numbers of the descriptors that were opened after `before` was taken."""
    now = opened()
    return sorted(number for number in now if before.get(number) != now[number])


def not_to_be_shared(before):
    """Returns a line about each new descriptor that processes cannot share after a fork."""
    now = opened()
    kinds = ((number, _kind(number, now)) for number in opened_since(before))
    return [f"descriptor {number}, {kind}" for number, kind in kinds if kind]


def _kind(number, targets):
    target = targets.get(number)
    if target is None:
        return None
    if target.startswith("socket:"):
        return _socket_kind(number)
    flags = _flags(number)
    if flags is None:
        return None
    mode = flags & os.O_ACCMODE
    if target.startswith("pipe:"):
        # With both ends here the pipe leads to no other process.
        has_other_end = any(
            other != number and other_target == target and (_flags(other) or 0) & os.O_ACCMODE
            for other, other_target in targets.items()
        )
        return "a pipe from another process" if mode == os.O_RDONLY and not has_other_end else None
    if not _is_plain_file(number) or target.endswith(" (deleted)"):
        return None
    if mode == os.O_RDWR and not flags & os.O_APPEND:
        return f"the file {target}, which is opened for reading and writing"
    if mode == os.O_RDONLY and _is_sqlite(number):
        return f"the database {target}"
    return None


def _is_plain_file(number):
    try:
        return stat.S_ISREG(os.fstat(number).st_mode)
    except OSError:
        return False


def _flags(number):
    """Returns the flags of open(2), or None if the descriptor has been closed."""
    try:
        with open(f"/proc/self/fdinfo/{number}", encoding="ascii", errors="replace") as info:
            found = re.search(r"^flags:\s*([0-7]+)", info.read(), re.MULTILINE)
    except OSError:
        return None
    return int(found[1], 8) if found else None


def _is_sqlite(number):
    try:
        with open(f"/proc/self/fd/{number}", "rb", buffering=0) as file:
            return file.read(len(SQLITE)) == SQLITE
    except OSError:
        return False


def _socket_kind(number):
    try:
        copy = socket.socket(fileno=os.dup(number))
    except OSError:
        return "a socket"
    with copy:
        try:
            own = copy.getsockname()
        except OSError:
            own = None
        try:
            peer = copy.getpeername()
        except OSError:
            peer = None
        # No peer can answer on it: syslog.
        if copy.family == socket.AF_UNIX and copy.type == socket.SOCK_DGRAM and not own:
            return None
        if peer is not None:
            return f"a connection to {_address(copy.family, peer)}"
        try:
            listens = copy.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN)
        except OSError:
            listens = 0
        what = "a listening socket" if listens else "a socket"
        return f"{what} at {_address(copy.family, own)}"


def _address(family, address):
    if family == socket.AF_UNIX:
        path = os.fsdecode(address) if address else ""
        return "unix:" + _NOT_PRINTABLE.sub("?", path) if path else "a nameless unix socket"
    if family == socket.AF_INET and address:
        return f"{address[0]}:{address[1]}"
    if family == socket.AF_INET6 and address:
        return f"[{address[0]}]:{address[1]}"
    return "an unknown address"
