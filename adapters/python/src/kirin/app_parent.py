"""Loads an application once, forks its workers, and replaces those that end.

One such process runs for each generation of an application. It reports each event to the front over
the control channel, one line each (docs/worker-protocol.md).
"""
import _signal
import _socket
import argparse
import gc
import os
import random
import signal
import stat
import sys
import threading
import time
from select import POLLIN, poll

from kirin import death_signal, hooks, load_error, loading, log, open_descriptors, scheduling, trace
from kirin.restart import Restart
from kirin.signals import guard_forks
from kirin.worker import DEADLINE_SECONDS, Worker

# A worker that ends sooner than this many seconds after its fork has died "at start".
SHORT_LIFE_SECONDS = 1.0

# The shortest and the longest pause between forks, in seconds, when workers keep dying at start.
SHORTEST_PAUSE_SECONDS = 0.1
LONGEST_PAUSE_SECONDS = 5.0

# Seconds between two checks whether the front is still there.
TICK_SECONDS = 1.0

# Seconds between two signals to workers that must end. A worker may have been between the check of
# its flag and its next read.
REPEAT_SECONDS = 0.2

# The most bytes that a line of the control channel has.
LINE_BYTES = 16 * 1024

# Seconds after which a worker that leaves is replaced. If all leave because the generation is
# replaced, the signal to end comes before.
REPLACE_SECONDS = 0.1

# The number of a worker that leaves, whose own number another one gets.
LEAVING = 0

# What the first worker tells the parent when the application has started, and the end of a text.
STARTED = b"started"
STARTED_ASGI = b"started asgi"
END_OF_NEWS = b"\0"

# A faster stop may follow a slower one.
_HASTE = {signal.SIGQUIT: 1, signal.SIGTERM: 2, signal.SIGINT: 3, signal.SIGKILL: 4}

# The signals that the application decides about in workers.
_FOR_APPLICATION = (signal.SIGCHLD, signal.SIGINT, signal.SIGTTIN, signal.SIGTTOU)
_TO_END = (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT)
# The signals that a worker leaves on.
_TO_LEAVE = (signal.SIGTERM, signal.SIGQUIT)


def main(arguments):
    """Runs the command line of kirin-worker. Returns the exit status."""
    options = _parse(arguments)
    return AppParent(options, Restart(arguments)).run()


def _parse(arguments):
    parser = argparse.ArgumentParser(prog="kirin-worker", allow_abbrev=False)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--generation", type=int, default=1)
    parser.add_argument("--name", default="app")
    parser.add_argument("--front", type=int, default=None)
    parser.add_argument("--deadline", type=float, default=DEADLINE_SECONDS, metavar="SECONDS")
    parser.add_argument("--max-requests", type=int, default=None)
    parser.add_argument("--preload", choices=("auto", "true", "false"), default="auto")
    # WSGI has no body that names a file without opening it, so no directory must be allowed.
    parser.add_argument("--sendfile", action="append", default=[], metavar="DIRECTORY")
    parser.add_argument("target", metavar="APPLICATION")
    return parser.parse_args(arguments)


class _CannotLoad(Exception):
    """Ends a worker that cannot load the application, and has said why."""


class AppParent:
    """The parent process of the workers of one generation."""

    def __init__(self, options, restart):
        self._name = options.name
        self._target = options.target
        self._generation = options.generation
        self._workers = max(1, options.workers)
        self._deadline = options.deadline
        self._max_requests = options.max_requests
        self._preload = options.preload
        self._front = os.getppid() if options.front is None else options.front
        self._restart = restart
        self._application = None
        self._has_asgi_workers = False
        # Whether a fork is that of a worker, and whether this process is a worker.
        self._forks_worker = self._is_worker = False

        self._listener = None
        self._control = None
        # Signals that have arrived, and a pipe that wakes this process when one does.
        self._noted = []
        self._wake_read = self._wake_write = None
        # A pipe from workers that leave while they have requests: a line with the process id.
        self._leaving_read = self._leaving_write = None
        self._application_signals = {}

        # The number of a worker and the time of its fork, by its process id.
        self._alive = {}
        self._short_lives = 0
        self._fork_after = 0.0
        # The signal with which workers must end, or None.
        self._stopping = None

    def run(self):
        """Returns the exit status."""
        death_signal.set_process_name(f"kirin {self._name}")
        self._take_channels()
        # Until the application is loaded, only signals to end matter.
        self._handle(_TO_END)
        guard_forks(self._after_fork, lambda: self._forks_worker or self._is_worker)
        if self._preload != "false" and not self._load():
            return 1
        self._take_process_back()
        if not self._starts_in_parent() and not self._start_first_worker():
            return 1
        if self._stopping is None:
            self._report("ready")
        while self._stopping is None:
            self._take_signals()
            self._take_leaving()
            self._reap()
            if self._front_is_gone():
                self._stop(signal.SIGTERM)
            if self._stopping is None:
                self._fork_missing()
            self._dismiss_surplus()
            if self._stopping is None:
                self._pause(min(max(self._fork_after - time.monotonic(), 0) or TICK_SECONDS,
                                TICK_SECONDS), self._leaving_read)
        self._wait_for_workers()
        if self._front_is_gone():
            self._remove_socket()
        return self._last_steps(0)

    # ------------------------------------------------------------------ the process

    def _take_channels(self):
        """Moves the channels out of the application's reach. Its output goes to the log."""
        try:
            if not stat.S_ISSOCK(os.fstat(0).st_mode):
                sys.exit("kirin-worker: STDIN is not a socket; kirin starts this program")
            listener = log.above_standard(0)
            self._control = log.above_standard(1)
        except OSError as error:
            sys.exit(f"kirin-worker: STDIN and STDOUT: {error}")
        self._listener = _socket.socket(fileno=listener)
        # Several workers wait for the same connection, and only one gets it.
        self._listener.setblocking(False)
        null = os.open("/dev/null", os.O_RDWR)
        os.dup2(null, 0)
        log.never_wait()
        log.keep()
        if log.descriptor() is None:
            # There is no STDERR.
            os.dup2(null, 2)
            os.set_inheritable(2, True)
        os.dup2(2, 1)
        if null > 2:
            os.close(null)
        log.replace_streams()

    def _take_process_back(self):
        """Undoes changes by the application that would prevent the parent's work."""
        # The workers restore these.
        self._application_signals = {
            number: _signal.getsignal(number)
            for number in _FOR_APPLICATION
            if _signal.getsignal(number) not in (None, self._note, signal.default_int_handler)
        }
        # An alarm that is still pending would end this process.
        signal.setitimer(signal.ITIMER_REAL, 0)
        log.occupy_closed_streams()
        self._wake_read, self._wake_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._leaving_read, self._leaving_write = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(self._wake_write, warn_on_full_buffer=False)
        _signal.signal(_signal.SIGPIPE, _signal.SIG_IGN)
        self._handle((*_TO_END, *_FOR_APPLICATION))

    def _handle(self, numbers):
        for number in numbers:
            # The method of this module does not convert its arguments, and no library that changes
            # `signal` takes part.
            _signal.signal(number, self._note)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, numbers)

    def _after_fork(self):
        """Takes handlers and channels away from a process that the application has forked.

        Otherwise TERM would not end it, and it would keep the control channel open.
        """
        for number in (*_TO_END, *_FOR_APPLICATION):
            if _signal.getsignal(number) == self._note:
                _signal.signal(number, _signal.SIG_DFL)
        try:
            null = os.open("/dev/null", os.O_RDWR)
            for own in (self._control, self._listener.fileno()):
                os.dup2(null, own, inheritable=False)
            os.close(null)
        except OSError:
            return

    def _note(self, number, _frame):
        self._noted.append(number)

    def _take_signals(self):
        while self._noted:
            number = self._noted.pop(0)
            if number in _HASTE:
                self._stop(number)
            elif number == signal.SIGTTIN:
                self._resize(1)
            elif number == signal.SIGTTOU:
                self._resize(-1)

    def _pause(self, seconds, *descriptors):
        """Waits until a signal arrives, a descriptor has something to read, or the time is over."""
        waiting = poll()
        for number in (self._wake_read, *descriptors):
            waiting.register(number, POLLIN)
        waiting.poll(max(1, seconds * 1000))
        try:
            while os.read(self._wake_read, 512):
                pass
        except OSError:
            # It is empty.
            return

    def _front_is_gone(self):
        return os.getppid() != self._front

    def _report(self, word, *rest):
        """Sends one line to the front. Line ends inside become `\\n`."""
        text = " ".join((word, *map(str, rest)))
        line = text.replace("\\", "\\\\").replace("\n", "\\n").encode("utf-8", "backslashreplace")
        try:
            os.write(self._control, line[: LINE_BYTES - 1] + b"\n")
        except OSError:
            # The front may have gone. The next tick finds out.
            return

    def _remove_socket(self):
        """Removes the socket and its directory, which a front that is killed cannot do."""
        try:
            path = self._listener.getsockname()
            os.unlink(path)
            os.rmdir(os.path.dirname(path))
        except (OSError, TypeError, ValueError):
            return

    def _last_steps(self, status):
        """Returns the status of a process that ends normally.

        The parent sends TERM repeatedly, and there are no handlers while Python ends its
        interpreter. A signal must not look like a violent end then.
        """
        _signal.pthread_sigmask(_signal.SIG_BLOCK, _TO_LEAVE)
        log.drop_failing_streams()
        # Python 3.9 crashes if it finds an open socket late.
        self._listener.close()
        return status

    # ------------------------------------------------------------------ loading

    def _load(self):
        """Loads the application. Returns False if that is impossible, and has reported why."""
        before = open_descriptors.opened()
        # The application decides about signals until it is loaded.
        death_signal.set_death_signal(_signal.SIGKILL)
        if self._front_is_gone():
            self._last_steps(1)
            return False
        try:
            application = self._load_target()
        except BaseException as error:
            return self._cannot_load(load_error.text(error))
        death_signal.set_death_signal(0)
        if self._preload == "auto":
            shared = [
                f"has opened {what}" for what in open_descriptors.not_to_be_shared(before)
            ] + _threads()
            if shared:
                return self._cannot_load(self._load_again(shared, before))
        self._application = application
        # The workers share what is there now. The collector would write into each of these objects.
        gc.collect()
        gc.freeze()
        return True

    def _load_again(self, shared, before):
        """Starts this process again, so that each worker loads the application itself."""
        for what in shared:
            log.line(f"kirin: {self._name}: while it was loaded, the application {what}")
        log.line(
            f"kirin: {self._name}: workers cannot share this: each loads the application itself"
            " (preload in adapters/python/README.md)"
        )
        opened = open_descriptors.opened_since(before)
        return self._restart.without_preloading(self._listener.fileno(), self._control, opened)

    def _load_target(self):
        # The application must not take our options for its own.
        sys.argv[:] = [self._target]
        return loading.load(self._target)

    def _cannot_load(self, reason):
        """Kirin logs the reason."""
        self._report("failed", reason)
        self._last_steps(1)
        return False

    def _starts_in_parent(self):
        """Returns whether loading, which this process has done, is all that can fail at the start.

        An ASGI application may fail in its lifespan, which begins in each worker.
        """
        return self._application is not None and not self._application.is_asgi

    def _start_first_worker(self):
        """Has the first worker load or start the application. The others follow.

        Returns False if it cannot, and has reported why.
        """
        read, write = os.pipe2(os.O_CLOEXEC)
        try:
            self._fork_worker(1, write)
        except OSError as error:
            return self._cannot_load(f"cannot fork: {error.strerror}")
        os.close(write)
        news = b""
        while not news.endswith(END_OF_NEWS):
            self._take_signals()
            if self._front_is_gone():
                self._stop(signal.SIGTERM)
            if self._stopping is not None:
                break
            self._pause(TICK_SECONDS, read)
            if not _is_readable(read):
                continue
            part = os.read(read, 64 * 1024)
            if not part:
                break
            news += part
        os.close(read)
        news = news.rstrip(END_OF_NEWS)
        self._has_asgi_workers = news == STARTED_ASGI
        if news in (STARTED, STARTED_ASGI) or self._stopping is not None:
            return True
        text = news.decode("utf-8", "replace")
        return self._cannot_load(
            text or "the worker that was to load the application has ended"
        )

    # ------------------------------------------------------------------ workers

    def _fork_missing(self):
        taken = {number for number, _ in self._alive.values()}
        for number in range(1, self._workers + 1):
            if number in taken:
                continue
            if time.monotonic() < self._fork_after:
                return
            try:
                self._fork_worker(number)
            except OSError as error:
                log.line(f"kirin: {self._name}: cannot fork: {error.strerror}")
                self._back_off()
                return

    def _fork_worker(self, number, news=None):
        """Forks a worker. In the worker this does not return, but raises SystemExit.

        The worker writes to the pipe `news` whether it could load and start the application.
        """
        # What is in a buffer now would be written twice.
        log.flush_streams()
        parent = os.getpid()
        # A signal that comes before the worker has its handlers must not be lost.
        before = _signal.pthread_sigmask(_signal.SIG_BLOCK, _TO_LEAVE)
        self._forks_worker = True
        try:
            pid = os.fork()
        except OSError:
            _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
            raise
        finally:
            self._forks_worker = False
        if pid == 0:
            self._is_worker = True
            status = 1
            try:
                status = self._be_worker(number, parent, _News(news))
            except _CannotLoad:
                status = 1
            except BaseException as error:
                log.line(f"kirin: worker {log.pid()}: {trace.text(error)}")
            raise SystemExit(self._last_steps(status))
        _signal.pthread_sigmask(_signal.SIG_SETMASK, before)
        self._alive[pid] = number, time.monotonic()
        self._report("started", pid)

    def _resize(self, difference):
        """Adds or removes one worker. The front waits for the answer before the next signal."""
        self._workers = max(1, self._workers + difference)
        self._report("workers", self._workers)

    def _take_leaving(self):
        """Lets others take the places of workers that leave, which may have long requests."""
        try:
            pids = os.read(self._leaving_read, 64 * 1024).split()
        except OSError:
            # It is empty.
            return
        leaving = sum(number == LEAVING for number, _ in self._alive.values())
        # Long requests must not multiply processes: others are replaced when they have ended.
        for pid in map(int, pids[: max(self._workers - leaving, 0)]):
            if pid in self._alive:
                self._alive[pid] = LEAVING, self._alive[pid][1]
        self._fork_after = max(self._fork_after, time.monotonic() + REPLACE_SECONDS)

    def _dismiss_surplus(self):
        """Sends TERM to workers too many. This repeats in each tick, as in _wait_for_workers."""
        self._signal_workers(
            signal.SIGTERM,
            [pid for pid, (number, _) in self._alive.items() if number > self._workers],
        )

    def _reap(self):
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            worker = self._alive.pop(pid, None)
            if worker is None:
                continue
            self._report("exited", pid, status)
            if time.monotonic() - worker[1] >= SHORT_LIFE_SECONDS:
                self._short_lives = 0
            # Status 0: the worker left normally, for example after its number of requests, however
            # soon that was.
            elif status != 0:
                self._short_lives += 1
                if self._short_lives > self._workers:
                    self._back_off()

    def _back_off(self):
        """Delays the next fork. Every worker may die young once; then the pause doubles."""
        doubled = min(max(self._short_lives - self._workers, 0), 6)
        pause = min(SHORTEST_PAUSE_SECONDS * 2**doubled, LONGEST_PAUSE_SECONDS)
        self._fork_after = time.monotonic() + pause

    def _stop(self, number):
        if self._stopping is None or _HASTE[number] > _HASTE[self._stopping]:
            self._stopping = number

    def _wait_for_workers(self):
        """Waits until all workers have ended. The front limits this time while it exists."""
        gone_since = None
        while True:
            self._take_signals()
            self._reap()
            if not self._alive:
                return
            if self._front_is_gone():
                now = time.monotonic()
                gone_since = now if gone_since is None else gone_since
                self._stop(
                    signal.SIGKILL if now - gone_since > self._deadline else signal.SIGTERM
                )
            if self._stopping != signal.SIGQUIT:
                self._signal_workers(self._stopping, list(self._alive))
            elif self._has_asgi_workers:
                # A worker whose connections are all WebSockets cannot see that it must leave. A
                # signal interrupts nothing in its event loop.
                self._signal_workers(signal.SIGTERM, list(self._alive))
            # Otherwise QUIT is only for this process.
            self._pause(REPEAT_SECONDS)

    @staticmethod
    def _signal_workers(number, pids):
        for pid in pids:
            try:
                os.kill(pid, number)
            except OSError:
                continue

    # ------------------------------------------------------------------ in a worker

    def _be_worker(self, number, parent, news):
        """Serves until this process must end. Returns its exit status."""
        signal.set_wakeup_fd(-1)
        self._noted.clear()
        for own in (self._control, self._wake_read, self._wake_write, self._leaving_read):
            os.close(own)
        for other in _FOR_APPLICATION:
            _signal.signal(other, self._application_signals.get(other, _signal.SIG_DFL))
        scheduling.give_way()
        suffix = f" {number}"
        name = f"kirin {self._name}".encode()[: death_signal.NAME_BYTES - len(suffix)]
        death_signal.set_process_name(name.decode("utf-8", "ignore") + suffix)
        if self._preload == "false":
            self._load_in_worker(parent, news)
        application, self._application = self._application, None
        # The application may have seeded the generator while it was loaded. No two workers may draw
        # the same numbers.
        random.seed()
        options = {
            "generation": self._generation,
            "parent": parent,
            "deadline": self._deadline,
            "max_requests": self._max_requests,
        }
        if application.is_asgi:
            return self._be_asgi_worker(application.call, news, options)
        news.tell()
        worker = Worker(
            application.call, self._listener, is_one_of_many=self._workers > 1, **options
        )
        status = 0
        # The hooks may hang or fork, too.
        worker.prepare()
        try:
            hooks.run_after_fork()
            worker.run()
        except BaseException as error:
            log.line(f"kirin: worker {log.pid()}: {trace.text(error)}")
            status = 1
        hooks.run_before_exit()
        return status

    def _be_asgi_worker(self, application, news, options):
        """Serves an ASGI application. Returns the exit status of this process."""
        # WSGI applications need no event loop.
        from kirin.asgi.worker import AsgiWorker, run_worker

        news.started = STARTED_ASGI
        worker = AsgiWorker(application, self._listener, tell_leaving=self._tell_leaving, **options)
        return run_worker(worker, news.tell)

    def _tell_leaving(self):
        """Tells the parent that this worker leaves."""
        try:
            os.write(self._leaving_write, b"%d\n" % os.getpid())
        except OSError:
            # The parent has gone, or has not read for long.
            return

    def _load_in_worker(self, parent, news):
        """Loads the application. Ends this process if that is impossible."""
        # Until the application is loaded, no request waits for this worker.
        for number in _TO_LEAVE:
            _signal.signal(number, _signal.SIG_DFL)
        _signal.pthread_sigmask(_signal.SIG_UNBLOCK, _TO_LEAVE)
        death_signal.set_death_signal(_signal.SIGKILL)
        if os.getppid() != parent:
            raise _CannotLoad
        reason = None
        try:
            self._application = self._load_target()
        except BaseException as error:
            reason = load_error.text(error)
        death_signal.set_death_signal(0)
        if reason is not None:
            news.tell(reason)
            raise _CannotLoad
        signal.setitimer(signal.ITIMER_REAL, 0)
        log.occupy_closed_streams()
        gc.collect()
        gc.freeze()


class _News:
    """What a worker tells about the start of the application."""

    # What it tells when the application has started.
    started = STARTED

    def __init__(self, pipe):
        """`pipe` leads to the parent in the first worker, and is None in others."""
        self._pipe = pipe

    def tell(self, reason=None):
        """Says that the application has started, or why it has not. Later reasons are logged."""
        pipe, self._pipe = self._pipe, None
        if pipe is not None:
            told = self.started if reason is None else reason.encode("utf-8", "replace")
            os.write(pipe, told.replace(END_OF_NEWS, b"?") + END_OF_NEWS)
            os.close(pipe)
        elif reason is not None:
            log.line(f"kirin: worker {log.pid()}: {reason}")


def _threads():
    """Returns what the log says about threads, of which a forked process has only one."""
    others = [thread for thread in threading.enumerate() if thread is not threading.main_thread()]
    if not others:
        return []
    names = ", ".join(thread.name for thread in others)
    return [f"has started {len(others)} threads, which a forked process does not have: {names}"]


def _is_readable(number):
    waiting = poll()
    waiting.register(number, POLLIN)
    return bool(waiting.poll(0))
