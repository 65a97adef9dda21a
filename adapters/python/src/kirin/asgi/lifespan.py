"""The lifespan of an ASGI application: what it does before the first request and after the last."""
import asyncio

from kirin import log, trace
from kirin.asgi.scope import ASGI
from kirin.framing import ResponseError


class StartupFailed(Exception):
    """The application has said that it cannot start, and why."""


class Lifespan:
    """The lifespan protocol in one worker."""

    def __init__(self, application, loop):
        """Starts the application's coroutine."""
        self._application = application
        # What the application keeps for its requests. Each of them gets a copy.
        self.state = {}
        self._events = ["lifespan.startup"]
        # Completed when the application has answered the first event, and the second.
        self.started = loop.create_future()
        self._stopped = loop.create_future()
        # Completed when the worker leaves.
        self._leaves = loop.create_future()
        self._failure = None
        self._task = loop.create_task(self._run())

    def check(self):
        """Raises `StartupFailed` if the application cannot start."""
        if self._failure is not None:
            raise StartupFailed(self._failure)

    async def stop(self):
        """Waits until the application has ended its work."""
        if self.started.done():
            self._leaves.set_result(None)
            await self._stopped
        else:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _run(self):
        scope = {"type": "lifespan", "asgi": ASGI.copy(), "state": self.state}
        try:
            await self._application(scope, self._receive, self._send)
        except BaseException as error:
            # An application that raises an exception at once does not know this protocol.
            if self._leaves.done():
                log.line(f"kirin: worker {log.pid()}: lifespan.shutdown: {trace.text(error)}")
        finally:
            for answered in (self.started, self._stopped):
                if not answered.done():
                    answered.set_result(None)

    async def _receive(self):
        if self._events:
            return {"type": self._events.pop()}
        # Several coroutines may wait, and one may be cancelled.
        await asyncio.shield(self._leaves)
        return {"type": "lifespan.shutdown"}

    async def _send(self, message):
        kind = message["type"]
        if kind in ("lifespan.startup.complete", "lifespan.startup.failed"):
            if self.started.done():
                raise ResponseError(f"{kind!r} has come before")
            if kind == "lifespan.startup.failed":
                self._failure = message.get("message") or "lifespan.startup.failed"
            self.started.set_result(None)
        elif kind in ("lifespan.shutdown.complete", "lifespan.shutdown.failed"):
            if kind == "lifespan.shutdown.failed":
                text = message.get("message") or ""
                log.line(f"kirin: worker {log.pid()}: {kind}: {text}")
            if not self._stopped.done():
                self._stopped.set_result(None)
        else:
            raise ResponseError(f"{kind!r} is no message of the lifespan")
