"""An app parent that starts again with exec(2), without the application.

A loaded application cannot be unloaded, and its modules do not run a second time. If workers cannot
share what it has opened, the app parent starts again. It keeps its process id, its socket and its
control channel. The workers then load the application.
"""
import _signal
import os
import signal
import sys

from kirin import log


class Restart:
    """How this process was started, before the application can change any of it."""

    def __init__(self, arguments):
        self._executable = sys.executable
        self._arguments = _own_arguments(arguments)
        self._directory = os.getcwd()
        self._environment = dict(os.environb)
        self._mask = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        self._umask = os.umask(0o22)
        os.umask(self._umask)

    def without_preloading(self, listener, control, opened):
        """Starts this program again. Returns the reason if that is impossible.

        `listener` and `control` are descriptors. `opened` are those that the application has left
        open.
        """
        try:
            os.chdir(self._directory)
            os.umask(self._umask)
            signal.setitimer(signal.ITIMER_REAL, 0)
            log.flush_streams()
            for number in opened:
                _close(number)
            os.dup2(listener, 0)
            os.dup2(control, 1)
            if log.descriptor() is not None:
                os.dup2(log.descriptor(), 2)
            # An ignored signal stays ignored through exec(2).
            for number in signal.valid_signals():
                if _signal.getsignal(number) == _signal.SIG_IGN:
                    _signal.signal(number, _signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, self._mask)
            os.execve(self._executable, self._arguments, self._environment)
        except (OSError, ValueError) as error:
            return f"{self._executable}: cannot start again: {error}"


def _close(number):
    try:
        os.close(number)
    except OSError:
        pass


def _own_arguments(arguments):
    """Returns the command of this process, with `--preload false`.

    The kernel has the options of the interpreter, and in which order they were.
    """
    with open("/proc/self/cmdline", "rb") as file:
        words = file.read().split(b"\0")[:-1]
    interpreter = words[: len(words) - len(arguments)]
    own = [os.fsencode(argument) for argument in arguments]
    end = own.index(b"--") if b"--" in own else len(own)
    kept, at = [], 0
    while at < end:
        if own[at] == b"--preload":
            at += 2
            continue
        if not own[at].startswith(b"--preload="):
            kept.append(own[at])
        at += 1
    return [*interpreter, b"--preload", b"false", *kept, *own[end:]]
