"""One test, or one program of tests: how it is run, and what its output says."""
import contextlib
import dataclasses
import os
import re
import select
import shutil
import signal
import subprocess
import tempfile
import time

# Lines that a unit test program prints (libtest), and prove.
RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored", re.M)
FAILED = re.compile(r"^test (\S+)(?: - should panic)? \.\.\. FAILED$", re.M)
PROVED = re.compile(r"^Files=\d+, Tests=(\d+)", re.M)
# Whoever waits for a job sees the end of this pipe when all jobs are to end.
STOPPED, STOP = os.pipe()
# Seconds that a worker has to see that its Kirin has been killed.
LAST_MOMENT = 2.0
SKIPPED = re.compile(r"\.\. skipped: (.*)$", re.M)


@dataclasses.dataclass
class Job:
    """A command that passes or fails.

    `form` says how its output is read: `one` test of a Rust program, all tests of a `program`, a
    file of `perl` tests, or a `command` of which only the exit status counts.
    """

    suite: str
    name: str
    command: list
    directory: str
    form: str = "command"
    environment: dict = dataclasses.field(default_factory=dict)
    limit: float = 180.0
    # Whether it runs cargo or git, which find the user's settings there.
    needs_home: bool = False

    @property
    def title(self):
        """Returns the name by which a person finds the test: `SUITE NAME`."""
        return f"{self.suite} {self.name}"


@dataclasses.dataclass
class Result:
    """How a job has ended."""

    job: Job
    seconds: float
    passed: int
    # The names of the tests that failed, or the name of the job.
    failed: list
    output: str
    # Why a file of Perl tests did nothing.
    skipped: str = ""
    # Processes that the job has started and not ended.
    left: list = dataclasses.field(default_factory=list)

    @property
    def ok(self):
        """Returns whether everything in it passed."""
        return not self.failed


def run(job, base_environment, wait_factor):
    """Runs a job in a session of its own, and ends what is left of it.

    It has a directory of its own for temporary files, which is removed, and for the default sockets
    of Kirin, so that it finds no other Kirin of the machine. Only checks have the user's HOME.
    """
    start = time.monotonic()
    # The path is short, because that of a unix socket has 107 bytes at most. Each Kirin of the
    # machine looks at /tmp/kirin-*.
    temporary = tempfile.mkdtemp(prefix="ktest-", dir="/tmp")
    # Programs that serve as another user write here, too.
    os.chmod(temporary, 0o1777)
    admin, home = (os.path.join(temporary, name) for name in ("admin", "home"))
    for directory in (admin, home):
        os.mkdir(directory)
    own = {"TMPDIR": temporary, "KIRIN_ADMIN_DIRECTORY": admin}
    if not job.needs_home:
        own["HOME"] = home
    with tempfile.TemporaryFile() as output:
        process = subprocess.Popen(
            job.command,
            cwd=job.directory,
            env={**base_environment, **own, **job.environment},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        ended = wait_for_end(process.pid, job.limit * wait_factor)
        # The number of the session is its own until the process is reaped.
        left = end_processes(process.pid, temporary, ended)
        status = process.wait()
        output.seek(0)
        text = output.read().decode("utf-8", "replace")
    if not ended:
        text += f"\n{job.title}: ended after its limit of {job.limit * wait_factor:.0f} s\n"
        status, left = None, []
    shutil.rmtree(temporary, ignore_errors=True)
    return judge(job, status, text, time.monotonic() - start, left)


def wait_for_end(pid, limit):
    """Waits until a child has ended, without reaping it. Returns whether it has within `limit`."""
    descriptor = os.pidfd_open(pid)
    try:
        readable, _, _ = select.select([descriptor, STOPPED], [], [], limit)
        return descriptor in readable
    finally:
        os.close(descriptor)


def stop_all():
    """Ends all jobs, which have failed then."""
    os.close(STOP)


def end_processes(session, temporary, ended):
    """Kills the processes of a job, and returns the command lines of those that it found.

    They are in its session, or have its directory in the environment: a daemon leaves its session.
    If the job has `ended`, they have a moment to end by themselves.
    """
    left = {}
    mark = b"=" + temporary.encode()
    deadline = time.monotonic() + (LAST_MOMENT if ended else 0)
    while time.monotonic() < deadline:
        if not [pid for pid in running() if pid != session and belongs(pid, session, mark)]:
            break
        time.sleep(0.1)
    while found := [pid for pid in running() if belongs(pid, session, mark)]:
        for pid in found:
            command = read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").decode("utf-8", "replace")
            if pid != session:
                # One that is about to end has no command line any more.
                left.setdefault(pid, command.strip() or f"process {pid}")
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.01)
    return sorted(set(left.values()))


def running():
    """Returns the numbers of all processes."""
    return [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]


def belongs(pid, session, mark):
    """Returns whether a process runs and belongs to a job."""
    # The name of the program is in parentheses, and may have spaces.
    fields = read(f"/proc/{pid}/stat").rpartition(b")")[2].split()
    if len(fields) < 4 or fields[0] in (b"Z", b"X"):
        return False
    return int(fields[3]) == session or mark in read(f"/proc/{pid}/environ")


def read(path):
    """Returns what a file of /proc has, or nothing if its process has ended."""
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return b""


def judge(job, status, output, seconds, left):
    """Reads the output of a job that has ended with `status`; None if it was killed."""
    passed, failed, skipped = 1, [], ""
    if job.form in ("one", "program"):
        found = RESULT.findall(output)
        passed = sum(int(row[0]) for row in found)
        failed = FAILED.findall(output) if job.form == "program" else []
        # A filter that matches nothing passes, too.
        if status == 0 and job.form == "one" and passed != 1:
            status = 1
    elif job.form == "perl":
        count = PROVED.search(output)
        passed = 1 if status == 0 and count and int(count[1]) > 0 else 0
        reason = SKIPPED.search(output)
        skipped = reason[1] if reason and status == 0 else ""
        if status == 0 and not passed and not skipped:
            status = 1
    if status != 0 and not failed:
        failed, passed = [job.name], 0 if job.form != "program" else passed
    if status != 0 and job.form == "program":
        failed = [f"{job.name} {name}" if name != job.name else name for name in failed]
    return Result(job, seconds, passed, failed, output, skipped, left)
