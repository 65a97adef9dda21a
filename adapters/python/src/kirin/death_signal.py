"""Ends a process with its parent, and names it: system calls for which Python has no functions."""
import math
import os
import signal
import struct

try:
    import ctypes

    _libc = ctypes.CDLL(None, use_errno=True)
except (ImportError, OSError):
    # A Python without libffi. Then processes find the end of their parent out by themselves.
    _libc = None

PR_SET_PDEATHSIG = 1
PR_SET_NAME = 15

# The most bytes of a process name, without its NUL.
NAME_BYTES = 15

# The numbers of timer_create(2) and timer_settime(2) by architecture.
_TIMER_CALLS = {"x86_64": (222, 223), "aarch64": (107, 110)}

CLOCK_MONOTONIC = 1
SIGEV_SIGNAL = 0
SIGEVENT_BYTES = 64


def set_death_signal(number):
    """Tells the kernel to send this process a signal when its parent ends. 0 removes the signal.

    Returns whether the kernel does so.
    """
    if _libc is None:
        return False
    return _libc.prctl(PR_SET_PDEATHSIG, ctypes.c_ulong(number), 0, 0, 0) == 0


def set_process_name(name):
    """Sets the name of this process in /proc/PID/comm: the first 15 bytes of `name`."""
    if _libc is not None:
        _libc.prctl(PR_SET_NAME, ctypes.c_char_p(name.encode("utf-8", "replace")[:NAME_BYTES]))


def kill_after(seconds):
    """Has the kernel kill this process after a number of seconds, whatever it does then."""
    if _start_kill_timer(seconds):
        return
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGALRM})
    signal.alarm(math.ceil(seconds))


def _start_kill_timer(seconds):
    """Returns whether a timer of the kernel, which sends KILL, has been started."""
    calls = _TIMER_CALLS.get(os.uname().machine)
    if _libc is None or calls is None or struct.calcsize("P") != 8:
        return False
    create, set_time = calls
    event = struct.pack("Pii", 0, signal.SIGKILL, SIGEV_SIGNAL).ljust(SIGEVENT_BYTES, b"\0")
    timer = ctypes.c_int()
    if _libc.syscall(create, CLOCK_MONOTONIC, ctypes.c_char_p(event), ctypes.byref(timer)) != 0:
        return False
    whole = int(seconds)
    # A time of 0 would stop the timer.
    nanoseconds = int((seconds - whole) * 1_000_000_000) or 1
    limit = struct.pack("llll", 0, 0, whole, nanoseconds)
    return _libc.syscall(set_time, timer, 0, ctypes.c_char_p(limit), None) == 0
