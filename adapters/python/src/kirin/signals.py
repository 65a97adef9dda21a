"""A worker's signal handlers, which survive changes by the application.

An application may use any signal within a request. Its handlers for TERM, QUIT, USR2 and PIPE do
not stay after the request. Without the worker's own handlers, the worker would end in the middle of
a later request.
"""
import _signal
import faulthandler
import os
import threading
from _signal import SIG_IGN, SIGPIPE, SIGQUIT, SIGTERM, SIGUSR2

from kirin import log

# The function of `_signal` does not convert its result, as that of `signal` does, and takes a third
# of the time.
_get = _signal.getsignal


def guard_forks(take_away, is_own=lambda: False):
    """Calls `take_away` in each process that the application forks, before it gets a signal.

    `is_own` tells forks of the app parent itself from those of the application. A signal to end
    that arrives in between would go to a handler that is not meant for that process.
    """
    masks = threading.local()

    def before():
        if not is_own():
            masks.present = _signal.pthread_sigmask(_signal.SIG_BLOCK, (SIGTERM, SIGQUIT))

    def after():
        if not is_own():
            _signal.pthread_sigmask(_signal.SIG_SETMASK, masks.present)

    def in_child():
        if not is_own():
            take_away()
            after()

    os.register_at_fork(before=before, after_in_parent=after, after_in_child=in_child)


class Signals:
    """The handlers of one worker."""

    def __init__(self, stop, overdue):
        """`stop` handles TERM and QUIT, `overdue` handles USR2."""
        self._stop = stop
        self._overdue = overdue

    def install(self):
        """Installs the handlers, and lets the kernel deliver these signals."""
        self._install()
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (SIGTERM, SIGQUIT, SIGUSR2))

    def restore(self):
        """Installs the handlers again if the application has replaced one of them."""
        if (
            _get(SIGTERM) is not self._stop
            or _get(SIGUSR2) is not self._overdue
            or _get(SIGQUIT) is not self._stop
            or _get(SIGPIPE) != SIG_IGN
        ):
            self._install()

    def give_up(self):
        """Removes the handlers in a process that is not a worker, but has been forked by one."""
        faulthandler.unregister(SIGUSR2)
        for number, handler in (
            (SIGTERM, self._stop),
            (SIGQUIT, self._stop),
            (SIGUSR2, self._overdue),
        ):
            if _get(number) is handler:
                _signal.signal(number, _signal.SIG_DFL)

    def _install(self):
        # This restores what was there before, so it comes first.
        faulthandler.unregister(SIGUSR2)
        _signal.signal(SIGTERM, self._stop)
        _signal.signal(SIGQUIT, self._stop)
        _signal.signal(SIGUSR2, self._overdue)
        # Python ignores this signal from its start.
        _signal.signal(SIGPIPE, SIG_IGN)
        if log.descriptor() is not None:
            # A handler in C writes the stacks even if Python code does not get to run.
            faulthandler.register(SIGUSR2, file=log.descriptor(), all_threads=True, chain=True)
