"""Finds the file behind a body, for the front to send.

A body from `wsgi.file_wrapper` need not go through the worker. The front opens the file itself, or
has it open already. docs/worker-protocol.md has the form of `Kirin-File`.

The worker hands a file back only if the front is certain to send the same bytes. The body is a
plain binary file that has not been read from, and has no method of its own but `close`, which is
called in any case (Django puts one there). Its path leads to the file that it has open.
`Content-Length`, if there is one, is its size. The location of the file does not matter then,
because the application has opened it.
"""
import io
import os
import re
import stat

# The bytes that a worker reads at once of a file that it sends itself.
READ_BYTES = 64 * 1024

# How many objects around a file are looked through. A field of Django has two.
MOST_WRAPPERS = 4

# The user that loads this module, before an application may change the user. It is the front's.
_USER = os.geteuid()

# A path with these cannot be in a field.
_IMPOSSIBLE_PATH = re.compile(rb"[\x00-\x1f\x7f]| \Z")


class FileWrapper:
    """The `wsgi.file_wrapper` of PEP 3333: an iterable of the blocks of a file."""

    def __init__(self, filelike, blksize=READ_BYTES):
        self.filelike = filelike
        self.blksize = blksize
        self._has_begun = False
        if hasattr(filelike, "close"):
            self.close = filelike.close

    def __iter__(self):
        return self

    def __next__(self):
        self._has_begun = True
        data = self.filelike.read(max(self.blksize, READ_BYTES))
        if data:
            return data
        raise StopIteration

    def plain_file(self):
        """Returns the file if reading it gives the bytes of a file of the system, else None.

        The file must be from the built-in `open`, in binary mode for reading only, and nobody may
        have changed its methods but `close`. It may be in a file of Django.
        """
        file = _unwrapped(self.filelike)
        if self._has_begun or type(self) is not FileWrapper:
            return None
        raw = file.raw if type(file) is io.BufferedReader else file
        if type(raw) is not io.FileIO or raw.mode != "rb":
            return None
        if vars(file).keys() - _KNOWN_ATTRIBUTES or vars(raw).keys() - _KNOWN_ATTRIBUTES:
            return None
        if vars(self).keys() - _OWN_ATTRIBUTES:
            return None
        return file

    def remaining_bytes(self):
        """Returns how many bytes a plain file has from its present position, else None."""
        file = self.plain_file()
        try:
            if file is None or file.closed:
                return None
            state = os.fstat(file.fileno())
            if not stat.S_ISREG(state.st_mode):
                return None
            return max(state.st_size - file.tell(), 0)
        except OSError:
            return None


def _unwrapped(file):
    """Returns the file whose methods an object passes on, as Django's `File` does in its fields."""
    for _ in range(MOST_WRAPPERS):
        inner = getattr(file, "file", None)
        if inner is None or getattr(file, "read", None) != getattr(inner, "read", None):
            break
        file = inner
    return file


_KNOWN_ATTRIBUTES = {"name", "close"}
_OWN_ATTRIBUTES = {"filelike", "blksize", "close", "_has_begun"}


def field_value(wrapper, length):
    """Returns the value of `Kirin-File` in bytes, or None if only the worker can send the body.

    `length` is the application's length of the body, or None.
    """
    # The front may be allowed to read files that this user may not.
    if os.geteuid() != _USER:
        return None
    file = wrapper.plain_file()
    if file is None or file.closed:
        return None
    name = file.name
    if not isinstance(name, (str, bytes)) or not name:
        return None
    try:
        path = os.path.join(os.getcwdb(), os.fsencode(name))
        if _IMPOSSIBLE_PATH.search(path):
            return None
        own, named = os.fstat(file.fileno()), os.stat(path)
        raw = file.raw if type(file) is io.BufferedReader else file
        if file.tell() != 0 or raw.tell() != 0:
            return None
    except (OSError, ValueError):
        return None
    state = _state(own)
    # Another file may have this name now.
    if not stat.S_ISREG(own.st_mode) or state != _state(named):
        return None
    if length is not None and length != own.st_size:
        return None
    return state + path


def _state(found):
    """Returns what distinguishes one state of a file from all others. Times are whole seconds."""
    return b"%d %d %d %d %d " % (
        found.st_dev,
        found.st_ino,
        found.st_size,
        found.st_mtime_ns // 1_000_000_000,
        found.st_ctime_ns // 1_000_000_000,
    )
