"""The life of a worker with an event loop: it accepts connections, serves many requests, leaves.

docs/worker-protocol.md describes the protocol ("Several requests at the same time").
"""
import asyncio
import errno
import os
import resource

from kirin import __version__, hooks, log, request_number, stack_layout, trace
from kirin import connection as connections
from kirin.asgi.connection import Connection
from kirin.asgi.exchange import Exchange, current_environ
from kirin.asgi.hangups import Hangups
from kirin.asgi.lifespan import Lifespan, StartupFailed
from kirin.asgi.loop import new_event_loop
from kirin.end_with_parent import end_with_parent, limit_life
from kirin.signals import Signals, guard_forks

# The most connections of a worker, if the limit of descriptors allows them.
CONNECTIONS = 1024

# A worker with k connections waits k milliseconds, up to so many, before it accepts more. So
# workers that have fewer are faster.
LONGEST_WAIT_MILLISECONDS = 20

# How many more connections a worker accepts after such a wait, for each one that it has.
ACCEPTED_PART = 1 / 8

# Seconds between two looks whether the parent is there, and the handlers of signals are.
TICK_SECONDS = 1.0

# How long coroutines that have been cancelled may take to end.
CANCELLED_SECONDS = 1.0

# The most requests that the log lists when the loop hangs.
LISTED_REQUESTS = 10


class AsgiWorker:
    """One process that serves requests of an ASGI application."""

    def __init__(self, application, listener, *, generation, parent, deadline, tell_leaving,
                 max_requests=None):
        """`listener` is a non-blocking `_socket.socket`, and `deadline` has seconds.

        `tell_leaving` is called when the worker begins to leave, perhaps with long requests.
        """
        self.application = application
        self.tell_leaving = tell_leaving
        self.listener = listener
        self.parent = parent
        self.deadline = deadline
        self.requests_left = request_number.drawn(max_requests)
        limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        # The application needs descriptors, too.
        most = CONNECTIONS if limit == resource.RLIM_INFINITY else min(CONNECTIONS, limit // 2)
        self.most_connections = max(most, 1)
        stacks = stack_layout.greeting_word(self.run, Exchange._run)
        self.greeting = (
            f"KIRIN/1 pid={os.getpid()} generation={generation} adapter=python/{__version__}"
            f" body=descriptor connections={self.most_connections}"
            f"{' ' + stacks if stacks else ''}\n"
        ).encode("ascii")
        self.is_prepared = False
        # Whether the worker accepts no more connections and ends when its requests have ended.
        self.is_leaving = False
        # Whether it also closes idle connections, and does not wait until the front does.
        self.closes_idle = False
        # Whether TERM has come.
        self.must_leave = False
        # Whether this process was forked by the application.
        self.is_forked = False
        self.is_limited = False
        self.has_accepted_last = False
        self.loop = None
        self.hangups = None
        self.state = {}
        self.connections = set()
        # The requests whose coroutines run.
        self.exchanges = set()
        # Completed when nothing is left to do.
        self.done = None
        # The handlers are compared by identity, and each access to a method makes another object.
        self.signals = Signals(self._on_stop, self._on_hang)

    # ------------------------------------------------------------------ the life of a worker

    def prepare(self):
        """Makes this process a worker, before code of the application runs in it."""
        if not self.is_prepared:
            self.is_prepared = True
            log.current_request = current_environ
            guard_forks(self._after_fork_of_application)
        self.signals.install()
        end_with_parent(self.parent, self.deadline)

    def run(self, started):
        """Serves until the worker must leave. Calls `started` when the application has started.

        Raises `StartupFailed`.
        """
        self.prepare()
        self.loop = loop = new_event_loop()
        asyncio.set_event_loop(loop)
        try:
            loop.run_until_complete(self._serve(started))
        finally:
            try:
                self._cancel_tasks()
                loop.run_until_complete(loop.shutdown_asyncgens())
                loop.run_until_complete(loop.shutdown_default_executor())
            finally:
                self.loop = None
                asyncio.set_event_loop(None)
                loop.close()

    async def _serve(self, started):
        loop = self.loop
        self.done = loop.create_future()
        self.hangups = Hangups(loop)
        self._tick()
        lifespan = Lifespan(self.application, loop)
        if self.must_leave:
            self.leave()
        await asyncio.wait([lifespan.started, self.done], return_when=asyncio.FIRST_COMPLETED)
        if lifespan.started.done():
            lifespan.check()
            self.state = lifespan.state
            started()
            if not self.is_leaving:
                self._watch_listener()
            await self.done
            await self._end_exchanges()
        await lifespan.stop()
        self.hangups.close()

    async def _end_exchanges(self):
        """Cancels the coroutines that have taken too long after the worker began to leave."""
        tasks = [exchange.task for exchange in self.exchanges]
        for exchange in list(self.exchanges):
            exchange.cancel_overdue()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCELLED_SECONDS)
        for connection in list(self.connections):
            connection.lost()

    def _cancel_tasks(self):
        """Cancels what the application has started in the background, and waits for its end."""
        tasks = asyncio.all_tasks(self.loop)
        for task in tasks:
            task.cancel()
        if tasks:
            self.loop.run_until_complete(asyncio.wait(tasks, timeout=CANCELLED_SECONDS))

    def leave(self):
        """Accepts no more connections, and ends the worker when its requests have ended."""
        self.begin_to_leave()
        if self.closes_idle:
            return
        self.closes_idle = True
        self.loop.call_later(self.deadline, self._stop_waiting)
        for connection in list(self.connections):
            if connection.exchange is not None:
                connection.exchange.leave()
            else:
                connection.leave()
        self._end_if_done()

    def begin_to_leave(self):
        """Accepts no more connections, and says in each response that this worker leaves.

        The front closes the idle connections then. If the worker did that, requests that are on
        their way would have to be retried.
        """
        if not self.is_leaving:
            self.is_leaving = True
            self.tell_leaving()
            self.loop.remove_reader(self.listener.fileno())
            self.loop.call_later(self.deadline, self.leave)

    def has_said_close(self):
        """Closes what is left, WebSockets for example, a moment after the front knows."""
        self.loop.call_later(TICK_SECONDS, self.leave)

    def count_request(self):
        """Counts a request. The worker leaves after the last one that it may serve."""
        self.requests_left -= 1
        if not self.requests_left:
            self.begin_to_leave()

    def exchange_ended(self, exchange):
        """Takes note that the application's coroutine of a request has ended."""
        self.exchanges.discard(exchange)
        if self.is_leaving:
            self._end_if_done()

    def connection_closed(self, connection):
        """Takes note of the end of a connection."""
        self.connections.discard(connection)
        if self.is_leaving:
            self._end_if_done()
        elif self.has_accepted_last:
            self.has_accepted_last = False
            self._watch_listener()

    def _end_if_done(self):
        if not self.exchanges and not self.connections:
            self._stop_waiting()

    def _stop_waiting(self):
        if not self.done.done():
            self.done.set_result(None)

    def _tick(self):
        if self.is_forked:
            self.end_forked()
        if os.getppid() != self.parent:
            self.leave()
        self.signals.restore()
        self.loop.call_later(TICK_SECONDS, self._tick)

    # ------------------------------------------------------------------ connections

    def _watch_listener(self):
        self.loop.add_reader(self.listener.fileno(), self._on_waiting)

    def _on_waiting(self):
        """Takes note that a connection waits."""
        count = len(self.connections)
        if not count:
            self._accept()
            return
        self.loop.remove_reader(self.listener.fileno())
        self.loop.call_later(min(count, LONGEST_WAIT_MILLISECONDS) / 1000, self._accept_after_wait)

    def _accept_after_wait(self):
        if self.is_leaving:
            return
        for _ in range(1 + int(len(self.connections) * ACCEPTED_PART)):
            if not self._accept():
                break
        if self.is_leaving:
            return
        if len(self.connections) < self.most_connections:
            self._watch_listener()
        else:
            self.has_accepted_last = True

    def _accept(self):
        """Accepts a connection. Returns whether there may be more."""
        if len(self.connections) >= self.most_connections:
            return False
        try:
            accepted = connections.accept(self.listener)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                log.line(f"kirin: worker {log.pid()}: leaves: no descriptor is left")
                self.leave()
            # Otherwise another worker was faster.
            return False
        accepted.setblocking(False)
        try:
            accepted.send(self.greeting, connections.MSG_NOSIGNAL)
        except OSError:
            accepted.close()
            return True
        self.connections.add(Connection(self, accepted))
        return True

    # ------------------------------------------------------------------ signals and forks

    def _on_stop(self, _number, _frame):
        if os.getppid() != self.parent and not self.is_limited:
            self.is_limited = True
            limit_life(self.deadline)
        self.must_leave = True
        # Without a loop the hooks of the application run.
        if self.loop is not None:
            self.loop.call_soon_threadsafe(self.leave)

    def _on_hang(self, _number, frame):
        """Logs what the loop does in place of its work, and ends this process at once."""
        requests = [trace.request_line(exchange.names()) for exchange in self.exchanges]
        listed = ", ".join(requests[:LISTED_REQUESTS]) or "none"
        if len(requests) > LISTED_REQUESTS:
            listed += f" and {len(requests) - LISTED_REQUESTS} more"
        trace.log_hanging_loop(frame, listed)
        log.flush_streams()
        os._exit(1)

    def _after_fork_of_application(self):
        """Takes the connections away from a process that the application has forked.

        Otherwise the front could not see that the worker has closed them. The descriptors stay in
        use, so that no other file gets their numbers.
        """
        self.is_forked = True
        self.signals.give_up()
        try:
            null = os.open("/dev/null", os.O_RDWR)
            for own in (self.listener, *(each.socket for each in self.connections)):
                if own.fileno() >= 0:
                    os.dup2(null, own.fileno(), inheritable=False)
            os.close(null)
        except OSError:
            return

    def end_forked(self, names=None, error=None):
        """Ends a process that the application has forked and that has not ended by itself."""
        if isinstance(error, SystemExit):
            log.flush_streams()
            status = error.code
            os._exit(0 if status is None else status & 0xFF if isinstance(status, int) else 1)
        if error is not None:
            trace.log_failure(names, error)
        log.line(
            f"kirin: process {log.pid()}: a process that the application has forked has returned"
            " to the event loop; it ends"
        )
        log.flush_streams()
        os._exit(1)


def run_worker(worker, tell):
    """Runs a worker with the hooks of the application. Returns its exit status.

    Calls `tell` when the application has started, or else with the reason why it has not.
    """
    status = 0
    try:
        # The hooks may hang or fork, too.
        worker.prepare()
        hooks.run_after_fork()
        worker.run(tell)
    except StartupFailed as error:
        tell(f"lifespan.startup.failed: {error}")
        status = 1
    except BaseException as error:
        tell(trace.text(error))
        status = 1
    hooks.run_before_exit()
    return status
