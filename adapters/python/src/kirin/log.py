"""The log of Kirin's own modules, whatever the application does to its standard streams.

A full disk, a closed terminal or a missing reader loses lines, and nothing else happens: no process
waits, fails or dies because of its log.
"""
import _signal
import fcntl
import io
import os
import re
import stat
import sys
import time
from signal import SIGPIPE

# Standard streams have the descriptors below this one.
FIRST_DESCRIPTOR = 3

# fcntl(2) F_SETPIPE_SZ, and the bytes of the largest pipe that every user may have.
F_SETPIPE_SZ = 1031
PIPE_BYTES = 1024 * 1024

# The most bytes of an unfinished line that `wsgi.errors` keeps.
UNFINISHED_BYTES = 64 * 1024

# A text may come from a visitor. It must not control a terminal.
_CONTROL_CHARACTERS = {
    code: "?" for code in (*range(0, 9), *range(11, 32), 127, *range(128, 160))
}
# A line within an entry that could look like one of Kirin.
_NEXT_LINE = re.compile(r"\n(?=[^\n\t ])")

_descriptor = None

# A function that returns the environ of the request that is being served, or None.
current_request = None

pid = os.getpid


def keep():
    """Keeps the present STDERR for the messages of Kirin's own modules."""
    global _descriptor
    try:
        kept = above_standard(2)
    except OSError:
        kept = None
    if _descriptor is not None:
        os.close(_descriptor)
    _descriptor = kept


def descriptor():
    """Returns the descriptor of the log, or None if there is none."""
    return _descriptor


def above_standard(number):
    """Returns a copy of a descriptor that is not a standard stream and is closed by exec(2).

    Programs that the application starts write to the standard streams.
    """
    return fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, FIRST_DESCRIPTOR)


def never_wait():
    """Makes writes to STDERR return at once if it is a pipe or a terminal.

    The file is opened again, because other programs share the open file and must not find it
    non-blocking. A pipe of another user cannot be opened, so it stays unchanged.
    """
    try:
        is_pipe = stat.S_ISFIFO(os.fstat(2).st_mode)
        if not is_pipe and not os.isatty(2):
            return
        own = os.open(
            "/proc/self/fd/2", os.O_WRONLY | os.O_APPEND | os.O_NONBLOCK | os.O_NOCTTY
        )
    except OSError:
        return
    if is_pipe:
        try:
            # A larger pipe has more room before lines are lost.
            fcntl.fcntl(own, F_SETPIPE_SZ, PIPE_BYTES)
        except OSError:
            pass
    os.dup2(own, 2)
    os.close(own)


def occupy_closed_streams():
    """Opens closed standard descriptors.

    Otherwise the next file or connection would get their numbers, and with them the output of the
    application.
    """
    for number in range(FIRST_DESCRIPTOR):
        try:
            os.fstat(number)
            continue
        except OSError:
            pass
        try:
            null = os.open("/dev/null", os.O_RDWR)
            source = null if number == 0 or _descriptor is None else _descriptor
            if source != number:
                os.dup2(source, number)
            else:
                os.set_inheritable(number, True)
            if null != number:
                os.close(null)
        except OSError:
            return


def write_or_lose(number, data):
    """Writes bytes to a descriptor. Bytes that cannot be written at once are lost."""
    if _signal.getsignal(SIGPIPE) != _signal.SIG_DFL:
        _write(number, data)
        return
    # The application wants to die of SIGPIPE, but not because of its log.
    before = _signal.pthread_sigmask(_signal.SIG_BLOCK, {SIGPIPE})
    try:
        if not _write(number, data):
            _signal.sigtimedwait({SIGPIPE}, 0)
    finally:
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)


def _write(number, data):
    """Returns whether all bytes have been written."""
    try:
        count = os.write(number, data)
        while count < len(data):
            data = data[count:]
            count = os.write(number, data)
    except (OSError, ValueError):
        # The disk is full, or no process reads. There is no other place to report that.
        return False
    return True


def line(text):
    """Writes one entry with the time, and with the id of the request that is being served.

    Lines after the first one are indented. Never waits and never raises an exception.
    """
    if _descriptor is None:
        return
    try:
        environ = current_request() if current_request is not None else None
        request_id = environ.get("HTTP_X_REQUEST_ID") if environ else None
        text = str(text).rstrip("\n")
        if request_id is not None:
            first, end, rest = text.partition("\n")
            text = f"{first} request_id={request_id}{end}{rest}"
        text = _NEXT_LINE.sub("\n  ", text.translate(_CONTROL_CHARACTERS))
        write_or_lose(_descriptor, f"{now()} {text}\n".encode("utf-8", "backslashreplace"))
    except Exception:
        # The application may have put anything into its environ.
        return


def now():
    """Returns the time as Kirin's own lines have it."""
    seconds, nanoseconds = divmod(time.time_ns(), 1_000_000_000)
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds)) + f".{nanoseconds // 1000:06d}Z"


class ErrorStream(io.TextIOBase):
    """The text stream `wsgi.errors`: writes whole lines to the log as they are."""

    def __init__(self):
        super().__init__()
        self.unfinished = []
        self._unfinished_size = 0

    def writable(self):
        return True

    def write(self, text):
        """Writes the complete lines and keeps the rest of the text. Returns its length."""
        if not isinstance(text, str):
            raise TypeError(f"wsgi.errors takes str, not {type(text).__name__}")
        if not text:
            return 0
        lines, end, rest = text.rpartition("\n")
        if end:
            self._send("".join((*self.unfinished, lines, end)))
            self._clear()
        if rest:
            self.unfinished.append(rest)
            self._unfinished_size += len(rest)
            if self._unfinished_size > UNFINISHED_BYTES:
                self.finish_line()
        return len(text)

    def flush(self):
        """Does nothing: complete lines have been written, and only complete lines are written."""

    def close(self):
        """Does nothing: all requests share this stream."""

    def finish_line(self):
        """Writes the rest that no line end followed, with a line end."""
        if self.unfinished:
            self._send("".join(self.unfinished) + "\n")
            self._clear()

    def _clear(self):
        # The worker knows this list.
        self.unfinished.clear()
        self._unfinished_size = 0

    @staticmethod
    def _send(text):
        if _descriptor is not None:
            write_or_lose(_descriptor, text.encode("utf-8", "backslashreplace"))


class LosingFile(io.RawIOBase):
    """A standard stream of which bytes are lost that cannot be written at once."""

    def __init__(self, number, name):
        super().__init__()
        self._number = number
        self.name = name
        self.mode = "wb"

    def writable(self):
        return True

    def fileno(self):
        return self._number

    def isatty(self):
        try:
            return os.isatty(self._number)
        except OSError:
            return False

    def write(self, data):
        data = bytes(data)
        write_or_lose(self._number, data)
        return len(data)


def replace_streams():
    """Makes sys.stdout and sys.stderr streams that never fail. Both write each line at once."""
    for number, name in ((1, "stdout"), (2, "stderr")):
        stream = io.TextIOWrapper(
            io.BufferedWriter(LosingFile(number, f"<{name}>")),
            encoding="utf-8",
            errors="backslashreplace",
            line_buffering=True,
        )
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)


def flush_streams():
    """Flushes sys.stdout and sys.stderr. Returns the names of those that raise an exception.

    The application may have replaced or closed them.
    """
    failing = []
    for name in ("stdout", "stderr"):
        try:
            getattr(sys, name).flush()
        except Exception:
            failing.append(name)
    return failing


def drop_failing_streams():
    """Flushes both streams, and drops those with which Python would end with status 120."""
    for name in flush_streams():
        setattr(sys, name, None)
