"""Measures CPU time and memory of process trees, from /proc.

The CPU time of a tree has two parts. The first is the time of its living threads
(`/proc/PID/task/*/schedstat`, nanoseconds). The second is what its living processes have inherited
from children that ended (`cutime` + `cstime` of `/proc/PID/stat`, clock ticks). A worker that is
replaced during a measurement therefore counts.

Threads that ended in a living process are missing from schedstat. For those the process's own
`utime` + `stime` is the better number, so the larger of both is taken.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterable, Sequence
from pathlib import Path

TICK_SECONDS = 1 / os.sysconf("SC_CLK_TCK")
PROC = Path("/proc")

# Fields of /proc/PID/stat after the parenthesised name, proc(5), counted from 0 at "state".
PPID, UTIME, STIME, CUTIME, CSTIME = 1, 11, 12, 13, 14


def tree(roots: Iterable[int]) -> list[int]:
    """Returns the processes `roots` and all their living descendants."""
    children: dict[int, list[int]] = {}
    for entry in PROC.iterdir():
        if entry.name.isdigit() and (fields := _stat(int(entry.name))):
            children.setdefault(int(fields[PPID]), []).append(int(entry.name))
    found, waiting = [], list(roots)
    while waiting:
        process = waiting.pop()
        found.append(process)
        waiting.extend(children.get(process, ()))
    return found


def cpu_seconds(roots: Iterable[int]) -> float:
    """Returns the CPU time that the trees have used so far, user and system."""
    total = 0.0
    for process in tree(roots):
        if fields := _stat(process):
            own = (int(fields[UTIME]) + int(fields[STIME])) * TICK_SECONDS
            threads = _threads_seconds(process)
            # The tick counter is less than two ticks behind the scheduler's, unless threads have
            # ended.
            total += own if own - threads > 2 * TICK_SECONDS else threads
            total += (int(fields[CUTIME]) + int(fields[CSTIME])) * TICK_SECONDS
    return total


def ticks(roots: Iterable[int]) -> tuple[int, int]:
    """Returns the clock ticks of the trees so far in user space, and in the kernel. The kernel
    samples them, so they divide the CPU time of seconds, not of milliseconds.
    """
    user = system = 0
    for process in tree(roots):
        if fields := _stat(process):
            user += int(fields[UTIME]) + int(fields[CUTIME])
            system += int(fields[STIME]) + int(fields[CSTIME])
    return user, system


def ended_children_seconds() -> float:
    """Returns the CPU time of this process's children that have ended, user and system."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def anonymous_bytes(roots: Iterable[int]) -> int:
    """Returns the user memory of the trees that is not backed by a file (`Pss_Anon`). Pages that
    are shared after a fork count once.

    The kernel's memory for sockets belongs to no process, so it is not included.
    """
    return _smaps_bytes(roots, "Pss_Anon")


def shared_bytes(roots: Iterable[int]) -> int:
    """Returns the shared and tmpfs memory of the trees (`Pss_Shmem`), which `anonymous_bytes`
    omits.
    """
    return _smaps_bytes(roots, "Pss_Shmem")


def settled_bytes(roots: Sequence[int]) -> int:
    """Returns `anonymous_bytes` when it has not changed for half a second. Some allocators free
    memory with a delay.
    """
    deadline = time.monotonic() + 10
    used = anonymous_bytes(roots)
    while time.monotonic() < deadline:
        time.sleep(0.5)
        before, used = used, anonymous_bytes(roots)
        if used == before:
            break
    return used


def descriptors(roots: Iterable[int]) -> int:
    """Returns how many descriptors the processes below `roots` have open."""
    return sum(len(os.listdir(f"/proc/{process}/fd")) for process in tree(roots))


def busy_seconds(cores: Iterable[int]) -> float:
    """Returns how long these cores have worked for any process, the kernel or its interrupts."""
    wanted = {f"cpu{core}" for core in cores}
    total = 0
    for line in (PROC / "stat").read_text().splitlines():
        name, *ticks = line.split()
        if name in wanted:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, ticks[:8])
            total += user + nice + system + irq + softirq + steal
    return total * TICK_SECONDS


def _smaps_bytes(roots: Iterable[int], wanted: str) -> int:
    total = 0
    for process in tree(roots):
        for line in (PROC / str(process) / "smaps_rollup").read_text().splitlines():
            name, _, value = line.partition(":")
            if name == wanted:
                total += int(value.split()[0]) * 1024
    return total


def _stat(process: int) -> list[str] | None:
    try:
        text = (PROC / str(process) / "stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    return text[text.rindex(")") + 2 :].split()


def _threads_seconds(process: int) -> float:
    total = 0
    try:
        tasks = list((PROC / str(process) / "task").iterdir())
    except (FileNotFoundError, ProcessLookupError):
        return 0.0
    for task in tasks:
        try:
            total += int((task / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass  # It has ended since the directory was read.
    return total / 1e9
