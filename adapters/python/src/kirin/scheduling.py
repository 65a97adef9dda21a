"""Workers give way to the front."""
import os


def give_way():
    """Makes this process a batch process (sched(7)). Returns whether the kernel has done so.

    When a request wakes it, it waits for its turn and does not preempt the running process. On a
    busy core that is the front, which is handing out requests.
    """
    try:
        os.sched_setscheduler(0, os.SCHED_BATCH, os.sched_param(0))
    except (OSError, AttributeError):
        return False
    return True
