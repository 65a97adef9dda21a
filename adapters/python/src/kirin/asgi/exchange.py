"""What a request and a WebSocket have in common: the task of the application, and how it ends."""
import contextvars

from kirin import log, trace
from kirin.connection import ClientGone

# The front counts the deadline from its sending, so this side finds a little less. A request that
# has taken this part of the deadline is overdue when the front ends it.
OVERDUE_PART = 0.9

# The exchange that the present context belongs to, or None.
current = contextvars.ContextVar("kirin_request", default=None)


def current_environ():
    """Returns the names and values of the present request as text, or None."""
    exchange = current.get()
    return None if exchange is None else exchange.names()


class Exchange:
    """One request, from its head to the end of the application's coroutine."""

    # Whether the client has gone, or the request is overdue.
    is_gone = False
    # Whether this worker has cancelled the task.
    is_cancelled = False
    # Whether the response has said that the worker leaves.
    says_close = False
    # The task of the application's coroutine while it runs.
    task = None

    def __init__(self, connection, environ):
        self.connection = connection
        self.worker = connection.worker
        self.loop = connection.loop
        self.environ = environ
        self.begun = self.loop.time()
        # Futures of coroutines that wait in `receive`.
        self.waiters = []

    def names(self):
        """Returns the names and values of the request as text."""
        return {
            name.decode("latin-1"): value.decode("latin-1") for name, value in self.environ.items()
        }

    def start(self, scope):
        """Starts the application's coroutine in the present context."""
        self.worker.exchanges.add(self)
        self.task = self.loop.create_task(self._run(scope))

    async def _run(self, scope):
        try:
            await self.worker.application(scope, self.receive, self.send)
            error = None
        except BaseException as raised:
            error = raised
        worker = self.worker
        if worker.is_forked:
            worker.end_forked(self.names(), error)
        try:
            if error is None:
                self.returned()
            elif not self.is_cancelled and not self.is_gone:
                self.failed(error)
            elif not self.is_cancelled and not _is_due_to_client(error):
                trace.log_failure(self.names(), error)
        except ClientGone:
            # In this moment.
            return
        finally:
            # The traceback of the exception refers to this frame, and the context of the task to
            # this object. The collector would have to free them.
            error = self.task = None
            worker.exchange_ended(self)

    async def wait(self):
        """Waits until `wake` is called."""
        waiter = self.loop.create_future()
        self.waiters.append(waiter)
        try:
            await waiter
        finally:
            if waiter in self.waiters:
                self.waiters.remove(waiter)

    def wake(self):
        """Wakes the coroutines that wait in `receive`."""
        waiters, self.waiters = self.waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    def gone(self):
        """Tells the application that the client has gone."""
        self.is_gone = True
        self.wake()

    def data_came(self, data):
        """Takes bytes that the front has sent within the exchange. No bytes are its end."""
        if data:
            self.log("the front has sent bytes behind the request")
        self.connection.lost()

    def has_room(self):
        """Takes note that the socket has room again."""

    def closed(self):
        """Takes note of the end of the connection."""

    def leave(self):
        """Takes note that the worker leaves. A request is answered before that."""

    def is_overdue(self):
        """Returns whether the request has taken as long as a request may take."""
        return self.loop.time() - self.begun >= self.worker.deadline * OVERDUE_PART

    def cancel_overdue(self):
        """Logs where the coroutine waits, and cancels it."""
        if self.task is None:
            return
        trace.log_overdue_task(self.names(), self.task)
        self.is_cancelled = True
        self.task.cancel()

    def log(self, text):
        """Logs something about this request."""
        log.line(f"kirin: worker {log.pid()}: {trace.request_line(self.names())}: {text}")

    async def receive(self):
        raise NotImplementedError

    async def send(self, message):
        raise NotImplementedError

    def returned(self):
        """Ends the exchange when the application has returned."""
        raise NotImplementedError

    def failed(self, error):
        """Ends the exchange when the application has raised an exception."""
        raise NotImplementedError


def _is_due_to_client(error):
    """Returns whether an exception comes from `send` to a client that has gone."""
    seen = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, ClientGone):
            return True
        seen.add(id(error))
        error = error.__cause__ or error.__context__
    return False
