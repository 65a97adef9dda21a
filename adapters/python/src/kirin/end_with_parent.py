"""Ends a worker some time after its app parent has ended."""
import _signal
import os

from kirin import death_signal, ring

# How many seconds more than a request a worker that has lost its parent has.
LAST_SECONDS = 1.0


def end_with_parent(parent, deadline):
    """Lets this process get TERM when its parent ends. A request in progress may take its time."""
    # With the compiled part the kernel sees to that, also if Python runs no handler any more.
    if ring.is_available():
        ring.end_with_parent(parent, deadline + LAST_SECONDS)
        return
    death_signal.set_death_signal(_signal.SIGTERM)
    # The parent may have ended before.
    if os.getppid() != parent:
        os.kill(os.getpid(), _signal.SIGTERM)


def limit_life(deadline):
    """Has the kernel kill this process, whose parent has ended, after the request deadline."""
    death_signal.kill_after(deadline + LAST_SECONDS)
