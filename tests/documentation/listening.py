"""The sockets of a network on which a program listens."""
TCP_LISTEN = "0A"
UNIX_ACCEPTS = 0x10000


def listening(process):
    """Returns the inodes of all listening sockets in the network of a process."""
    found = set()
    for table in ("tcp", "tcp6"):
        for row in _rows(process, table):
            if row[3] == TCP_LISTEN:
                found.add(row[9])
    for row in _rows(process, "unix"):
        if int(row[3], 16) & UNIX_ACCEPTS:
            found.add(row[6])
    return found


def _rows(process, table):
    """Returns the fields of the rows of /proc/net/TABLE (proc(5))."""
    with open(f"/proc/{process}/net/{table}", encoding="utf-8", errors="replace") as file:
        return [line.split() for line in file.readlines()[1:]]
