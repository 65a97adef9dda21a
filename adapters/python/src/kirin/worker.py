"""Accepts a connection from the front and answers its requests with a WSGI application.

docs/worker-protocol.md describes the protocol. The front does the waiting, the parsing of HTTP, and
the work for slow clients. So `Worker.serve` is the complete loop. For a response that is a list of
bytes it makes two system calls a request. `Worker.serve_ring` is the same for a worker that shares
memory with the front, which needs none while both are busy.

An application finds these keys in its environ besides those of PEP 3333:

`wsgi.input_terminated`
    True: reading `wsgi.input` to its end gives the complete body.
`wsgi.early_hints(headers)`
    Sends a 103 response at once, as gunicorn does.
`kirin.informational(status, headers)`
    Sends any informational response at once, for example `("103 Early Hints", [("Link", …)])`.
`kirin.cleanup`
    A list. The worker calls its elements, without arguments, when the client has its response.
`kirin.leave`
    Call it, or set it to a true value, and the worker leaves after this response.
`kirin.socket`
    A copy of the connection, only in requests for an upgrade (`Upgrade`, HTTP/1.1, no body). The
    application writes the complete 101 response to it and returns an empty list, without a call of
    `start_response`. Or it calls `start_response("101 …", …)`, which sends the head at once. Then it
    reads and writes this socket. The worker serves no other request in this time.
"""
import errno
import io
import os
import socket
import struct
from select import POLLIN, poll

from kirin import (
    __version__,
    log,
    own_response,
    request,
    request_body,
    request_number,
    response_head,
    ring,
    stack_layout,
    trace,
)
from kirin import connection as connections
from kirin.connection import CLOSE_ON_EXEC, DESCRIPTOR_ROOM, ClientGone, FrontGone
from kirin.end_with_parent import end_with_parent, limit_life
from kirin.file_handed_back import FileWrapper
from kirin.framing import SWITCHED, ResponseError, as_bytes, has_no_body, head_and_body
from kirin.request_body import EmptyInput, NotKept
from kirin.response import RESPONSE_AFTER_WRITE, Response
from kirin.signals import Signals, guard_forks
from kirin.store import site
from kirin.write_watch import WriteWatch

# How long a request may take, in seconds, if nobody has said.
DEADLINE_SECONDS = 60.0

# Milliseconds after which a worker that waits for a connection looks whether its parent is there.
TICK_MILLISECONDS = 1000

NO_TIME = struct.pack("ll", 0, 0)
SHORTEST_TIME = struct.pack("ll", 0, 1)

_COMMA = request.COMMA
_READ_BYTES = request.READ_BYTES
_NO_SIGNAL = socket.MSG_NOSIGNAL


# What `Worker.serve` returns if it was to serve one request only.
NEXT = object()


class _MustLeave(Exception):
    """Ends the wait for a connection."""


class Overdue(SystemExit):
    """Raised in an application whose request takes too long. The client has got 504 already."""


class Worker:
    """One process that serves requests, one at a time."""

    def __init__(self, application, listener, *, generation=1, parent=None,
                 deadline=DEADLINE_SECONDS, is_one_of_many=True, max_requests=None):
        """`listener` is a non-blocking `_socket.socket`, and `deadline` has seconds.

        With `max_requests` the worker leaves after this number, less a random part of a tenth.
        """
        self.application = application
        self.listener = listener
        self.generation = generation
        self.parent = os.getppid() if parent is None else parent
        self.deadline = deadline
        self.requests_left = request_number.drawn(max_requests)
        self.is_prepared = False
        self.connection = None
        # The memory that this worker shares with the front, if it does.
        self.ring = None

        # Whether the worker must leave after the request in progress.
        self.stopping = False
        # Whether this process was forked by the application within a request.
        self.is_forked = False
        # Whether the handler of TERM may raise an exception: nothing can be lost.
        self.is_waiting = False
        self.is_limited = False

        # These belong to the request in progress. `environ` is None between requests.
        self.environ = None
        self.response = None
        self.method = ""
        # Whether the answer can go through the ring. If not, it goes over the connection.
        self.is_in_ring = False
        self.may_switch = False
        self.watch = None
        # The files and sockets that must be closed after the response.
        self.held = []
        # Whether there is work after the response.
        self.is_unfinished = False

        self.errors = log.ErrorStream()
        # The handlers are compared by identity, and each access to a method makes another object.
        self.leave = self._leave
        self.signals = Signals(self._on_stop, self._on_overdue)
        self.constant = {
            "wsgi.version": (1, 0),
            "wsgi.url_scheme": "http",
            "wsgi.input": EmptyInput(),
            "wsgi.input_terminated": True,
            "wsgi.errors": self.errors,
            "wsgi.multithread": False,
            "wsgi.multiprocess": is_one_of_many,
            "wsgi.run_once": False,
            "wsgi.file_wrapper": FileWrapper,
            "kirin.leave": self.leave,
            "SERVER_SOFTWARE": "Kirin",
        }

    # ------------------------------------------------------------------ the life of a worker

    def prepare(self):
        """Makes this process a worker, before code of the application runs in it.

        That code may change the user and the handlers, so `run` does this again.
        """
        if not self.is_prepared:
            self.is_prepared = True
            log.current_request = lambda: self.environ
            guard_forks(self._after_fork_of_application)
        self.signals.install()
        end_with_parent(self.parent, self.deadline)

    def run(self):
        """Accepts connections and serves them, until the worker must leave."""
        self.prepare()
        while True:
            connection = self._accept()
            if connection is None:
                return
            self.connection = connection
            try:
                serve = self.serve if self.ring is None else self.serve_ring
                goes_on = serve(connection)
            except Overdue:
                goes_on = False
            finally:
                # This gives the shared memory back, too.
                self.connection = self.ring = None
                self.environ = self.response = None
                connection.close()
            if not goes_on:
                return

    def is_leaving(self):
        """Returns whether the worker leaves after the request in progress."""
        if not self.stopping:
            asked = self.environ.get("kirin.leave")
            if asked is not self.leave and asked:
                self.stopping = True
        return self.stopping

    def _leave(self):
        """Makes the worker leave after the request in progress (`kirin.leave`)."""
        self.stopping = True

    def _on_stop(self, _number, _frame):
        self.stopping = True
        if os.getppid() != self.parent and not self.is_limited:
            self.is_limited = True
            limit_life(self.deadline)
        if self.is_waiting:
            self.is_waiting = False
            raise _MustLeave
        # Python repeats the call that this signal has interrupted, and it would wait for a request
        # again. A request that is there already is still read.
        if self.environ is None and self.connection is not None:
            self._limit_reads(SHORTEST_TIME)

    def _limit_reads(self, limit):
        try:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, limit)
        except OSError:
            pass

    def _on_overdue(self, number, frame):
        if self.environ is None:
            self._on_stop(number, frame)
            return
        self.stopping = True
        trace.log_overdue(self.environ, frame)
        raise Overdue(1)

    def _after_fork_of_application(self):
        """Takes the connection away from a process that the application has forked.

        Otherwise the front could not see that the worker has ended. The descriptors stay in use, so
        that no other file gets their numbers.
        """
        self.is_forked = self.stopping = True
        self.signals.give_up()
        try:
            null = os.open("/dev/null", os.O_RDWR)
            for own in (self.connection, self.listener):
                if own is not None and own.fileno() >= 0:
                    os.dup2(null, own.fileno(), inheritable=False)
            os.close(null)
        except OSError:
            return

    def _accept(self):
        """Returns the next connection of the front, or None when it is time to leave."""
        waiting = poll()
        waiting.register(self.listener.fileno(), POLLIN)
        stacks = stack_layout.greeting_word(self.serve, self.serve_ring, self._call)
        greeting = (
            f"KIRIN/1 pid={os.getpid()} generation={self.generation}"
            f" adapter=python/{__version__} body=descriptor"
            f"{' speaks=2' if ring.is_available() else ''}"
            f"{' ' + stacks if stacks else ''}\n"
        ).encode("ascii")
        while not self.stopping and os.getppid() == self.parent:
            try:
                self.is_waiting = True
                if self.stopping:
                    self.is_waiting = False
                    break
                found = waiting.poll(TICK_MILLISECONDS)
                self.is_waiting = False
            except _MustLeave:
                break
            if not found:
                continue
            try:
                connection = connections.accept(self.listener)
            except OSError as error:
                if error.errno in (errno.EMFILE, errno.ENFILE):
                    log.line(f"kirin: worker {log.pid()}: leaves: no descriptor is left")
                    break
                # Another worker was faster.
                continue
            connection.setblocking(True)
            try:
                connection.send(greeting, _NO_SIGNAL)
            except OSError:
                connection.close()
                continue
            if ring.is_available() and not self._attach(connection):
                break
            return connection
        return None

    def _attach(self, connection):
        """Attaches to the ring that the front offers, if any. Returns False if it must leave."""
        try:
            self.is_waiting = True
            if not self.stopping:
                self.ring = ring.attach(connection.fileno(), self.parent)
            self.is_waiting = False
        except _MustLeave:
            pass
        if self.stopping:
            connection.close()
        return not self.stopping

    # ------------------------------------------------------------------ requests

    def serve_ring(self, connection):
        """Serves the requests that come through the ring. Returns what `serve` returns.

        A request that does not fit into the ring comes over the connection.
        """
        shared, constant = self.ring, self.constant
        take, begin, answer_bytes, call = shared.take, shared.begin, shared.answer_bytes, self._call
        while not self.stopping:
            environ = take(constant)
            if type(environ) is not dict:
                # None: a signal has come, or nothing for a minute.
                if environ is False:
                    return False
                if environ is True:
                    result = self.serve(connection, only_one=True)
                    if result is not NEXT:
                        return result
                continue
            if environ["CONTENT_LENGTH"] != "0":
                environ["wsgi.input"] = io.BytesIO(shared.body())
            self._prepare(environ)
            self.is_in_ring = True
            self.environ = environ
            begin()
            output = call(environ)
            if output is None:
                return self._hang_up()
            is_answered, cleans_up = self.is_in_ring and not output, False
            if output:
                if self.is_in_ring and type(output) is bytes:
                    cleans_up = bool(self.cleanups())
                    is_answered = answer_bytes(output, cleans_up)
                    cleans_up = cleans_up and is_answered
                if not is_answered:
                    try:
                        self.take_connection()
                        connections.write_all(connection, output)
                    except ClientGone:
                        return self._hang_up()
            self.is_in_ring = False
            if self.is_unfinished or cleans_up:
                if not self._finish_request(shared if is_answered else None, cleans_up):
                    return self._hang_up()
            # Objects of the application must go before the next request comes.
            environ = self.environ = self.response = site.of_process = None
        return False

    def take_connection(self):
        """Lets the answer to the request in progress go over the connection."""
        if not self.is_in_ring:
            return
        if not self.ring.over_connection():
            # The application has forked this process.
            self._end_if_forked()
            raise ResponseError("the request has its response already")
        self.is_in_ring = False

    def serve(self, connection, only_one=False):
        """Serves the requests of one connection, or the next one only.

        Returns True if the connection has ended in a way after which the worker can serve another
        one, False if the worker must leave, and NEXT after one request.
        """
        receive, send, answer = connection.recvmsg, connection.send, self.answer
        while not self.stopping:
            try:
                data, ancillary, flags, _ = receive(_READ_BYTES, DESCRIPTOR_ROOM, CLOSE_ON_EXEC)
            except BlockingIOError:
                # The handler of TERM has set a time limit.
                continue
            except OSError:
                return False
            if not data:
                return False
            try:
                output = answer(data, ancillary, flags)
            except FrontGone:
                return False
            if output is None:
                return self._hang_up()
            if output:
                try:
                    if type(output) is tuple:
                        connections.write_all(connection, output)
                    else:
                        count = send(output, _NO_SIGNAL)
                        if count != len(output):
                            connections.write_all(connection, output[count:])
                except OSError:
                    return self._hang_up()
            if self.is_unfinished and not self._finish_request():
                return self._hang_up()
            # Objects of the application must go before the next request comes.
            self.environ = self.response = site.of_process = None
            if only_one:
                return NEXT
        return False

    def answer(self, data, ancillary=(), flags=0):
        """Returns the complete response to a request, or what is left to send of it.

        `data` has the bytes that came first, which nearly always are the complete request. Returns
        None if the connection must be closed. Raises `FrontGone` if there is no request.
        """
        # LENGTH ":" NAME NUL VALUE NUL … NAME NUL VALUE NUL "," BODY
        colon = data.find(b":", 0, 8)
        if data[-1] == _COMMA and data[:colon] == b"%d" % (len(data) - colon - 2):
            words = data.decode("latin-1").split("\0")
            rest = b""
        else:
            data, comma = request.complete_head(self.connection, data)
            words = request.words_of(data[: comma + 1])
            rest = data[comma + 1 :]
        words[0] = "CONTENT_LENGTH"
        pairs = iter(words)
        environ = self.constant.copy()
        # The word behind the last NUL has no partner and is left out.
        environ.update(zip(pairs, pairs))
        self._prepare(environ)
        if words[1] != "0" or ancillary:
            if not words[1].isdecimal():
                request.refuse()
            is_lost = flags & socket.MSG_CTRUNC and not ancillary
            refusal = self._take_body(environ, int(words[1]), rest, ancillary, is_lost)
            if refusal is not None:
                return refusal
        if "HTTP_UPGRADE" in environ:
            self._prepare_switch(environ)
        self.environ = environ
        return self._call(environ)

    def _prepare(self, environ):
        """Completes an environ and makes its response, before the application sees it."""
        environ["kirin.cleanup"] = []
        # The keys of kirin.store are those of the site.
        site.of_process = environ.get("KIRIN_SITE")
        if "HTTPS" in environ:
            environ["wsgi.url_scheme"] = "https"
        if "HTTP_CONTENT_LENGTH" in environ or "HTTP_CONTENT_TYPE" in environ:
            # PEP 3333 has other names for them, and an application must not see two values.
            environ.pop("HTTP_CONTENT_LENGTH", None)
            environ.pop("HTTP_CONTENT_TYPE", None)
        self.method = environ.get("REQUEST_METHOD")
        if self.method is None:
            request.refuse()
        self.response = response = Response()
        response.worker = self
        # A thread that outlives its request must not reach the response to another one.
        environ["wsgi.early_hints"] = response.early_hints
        environ["kirin.informational"] = response.informational
        if self.method == "HEAD":
            response.is_head = True
        self.requests_left -= 1
        if not self.requests_left:
            self.stopping = True

    def _call(self, environ):
        """Calls the application. Returns what `answer` returns.

        An answer that has gone through the ring already is empty.
        """
        response = self.response
        try:
            result = self.application(environ, response.start)
            self.signals.restore()
            kind = type(result)
            if (
                (kind is list or kind is tuple)
                and not self.may_switch
                and not response.is_sent
                and response.head is not None
            ):
                body = result[0] if len(result) == 1 else b"".join(result)
                if type(body) is not bytes:
                    body = as_bytes(body)
                if (
                    self.stopping
                    or response.length is not None
                    or response.is_head
                    or environ.get("kirin.leave") is not self.leave
                    or environ.get("kirin.cleanup")
                    or has_no_body(response.status)
                ):
                    output = self._unusual(body)
                else:
                    response.is_over = True
                    if self.is_in_ring and self.ring.answer(response.head, body):
                        output = b""
                    else:
                        output = head_and_body(response.head, body)
            else:
                output = self._stream(result)
                self.signals.restore()
        except BaseException as error:
            output = self._after_failure(error)
        if self.errors.unfinished:
            self.errors.finish_line()
        return output

    def _unusual(self, body):
        """Returns the response with a body that is known, and some other circumstance."""
        self._end_if_forked()
        output = self.response.whole(body)
        if self.response.has_announced_cleanup:
            self.is_unfinished = True
        return output

    def _stream(self, result):
        """Sends a response that is not a list. Returns what `answer` returns."""
        self._end_if_forked()
        response = self.response
        output = response.send(result)
        self._end_if_forked()
        if output and self.has_written():
            raise ResponseError(RESPONSE_AFTER_WRITE)
        # Without a watch nobody knows whether the application has switched protocols.
        if response.framing is SWITCHED or self.may_switch and self.watch is None:
            if output:
                connections.write_all(self.connection, output)
            return None
        self.is_leaving()
        # The front waits for the end of a cleanup that was announced, also if it was taken back.
        if self.cleanups() or response.has_announced_cleanup:
            self.is_unfinished = True
        return output

    def call_close(self, close):
        """Calls the `close` of a result. The client has its response, even if this fails."""
        if close is None:
            return
        try:
            close()
        except Overdue:
            raise
        except BaseException as error:
            self._end_if_forked(error)
            trace.log_failure(self.environ, error)

    def _after_failure(self, error):
        """Returns the response after an exception, or None if it must be cut."""
        self._end_if_forked(error)
        self.response.is_over = True
        if isinstance(error, Overdue):
            self.stopping = True
            return None
        self.signals.restore()
        if isinstance(error, ClientGone):
            return None
        trace.log_failure(self.environ, error)
        if self.response.is_sent or self.may_switch and (self.watch is None or self.has_written()):
            return None
        return self._own_response("500 Internal Server Error")

    def _end_if_forked(self, error=None):
        """Ends a process that the application has forked and that has not ended by itself.

        It must not answer in the place of the worker.
        """
        if not self.is_forked:
            return
        if error is None:
            log.line(
                f"kirin: process {log.pid()}: {trace.request_line(self.environ)}: a process that"
                " the application has forked returned from the application; it ends"
            )
        elif not isinstance(error, SystemExit):
            trace.log_failure(self.environ, error)
        log.flush_streams()
        status = error.code if isinstance(error, SystemExit) else 1
        if status is None:
            status = 0
        os._exit(status & 0xFF if isinstance(status, int) else 1)

    def _own_response(self, status):
        """Returns a response of the worker itself."""
        headers, text = own_response.parts(status, self.environ.get("HTTP_X_REQUEST_ID"))
        response = self.response = Response()
        response.worker = self
        response.is_head = self.method == "HEAD"
        response.status, response.head, _ = response_head.head(status, headers)
        output = response.whole(text)
        if self.cleanups():
            self.is_unfinished = True
        return output

    # ------------------------------------------------------------------ bodies and upgrades

    def _take_body(self, environ, length, rest, ancillary, is_lost):
        """Sets `wsgi.input`. Returns a response instead if the body cannot be kept.

        `is_lost` says that the kernel had no descriptor for the body.
        """
        try:
            if ancillary or is_lost:
                body = request_body.take_descriptor(ancillary)
            else:
                body = request_body.receive(self.connection, length, rest)
        except (NotKept, OSError) as reason:
            self.environ = environ
            log.line(
                f"kirin: worker {log.pid()}: {trace.request_line(environ)}:"
                f" the request body is refused: {reason}"
            )
            return self._own_response("507 Insufficient Storage")
        environ["wsgi.input"] = body
        if type(body) is not io.BytesIO:
            self.held.append(body)
            self.is_unfinished = True
        return None

    def _prepare_switch(self, environ):
        """Gives the application a copy of the connection if it may switch protocols."""
        if environ["CONTENT_LENGTH"] != "0" or environ["SERVER_PROTOCOL"] != "HTTP/1.1":
            return
        try:
            copy = socket.socket(fileno=log.above_standard(self.connection.fileno()))
        except OSError as error:
            log.line(f"kirin: worker {log.pid()}: no kirin.socket: {error}")
            return
        copy.settimeout(None)
        # The handler of TERM may have set a limit for an idle worker.
        self._limit_reads(NO_TIME)
        environ["kirin.socket"] = copy
        self.held.append(copy)
        self.may_switch = self.is_unfinished = True
        try:
            self.watch = WriteWatch(self.connection)
        except OSError:
            self.watch = None

    def end_watch(self):
        """Ends the watch: it could not tell what the worker writes from what the application does."""
        if self.watch is not None:
            self.watch.close()
            self.watch = None

    def has_written(self):
        """Returns whether the application has written to `kirin.socket`, as far as is known."""
        return self.watch is not None and self.watch.has_written()

    # ------------------------------------------------------------------ after the response

    def cleanups(self):
        """Returns the functions that the application wants to be called after its response."""
        found = self.environ.get("kirin.cleanup")
        return found if isinstance(found, list) else None

    def _finish_request(self, shared=None, cleans_up=False):
        """Does the work after a response. Returns False if the connection must be closed first.

        `shared` is the ring, if the answer has gone through it. `cleans_up` says that the front
        knows of a cleanup by the ring.
        """
        if self.cleanups() or self.response.has_announced_cleanup or cleans_up:
            if shared is None and not self.response.has_announced_cleanup:
                return False
            # The front counts the time until this reports the end, or until the worker leaves.
            self._clean_up()
            self._release()
            if shared is not None:
                if cleans_up:
                    shared.cleaned_up()
            elif not self.is_leaving():
                try:
                    self.connection.send(b"\n", _NO_SIGNAL)
                except OSError:
                    return False
        else:
            self._release()
        return True

    def _clean_up(self):
        """Calls the functions in `kirin.cleanup`, in their order. A function may add others."""
        while True:
            functions = self.cleanups()
            if not functions:
                return
            function = functions.pop(0)
            try:
                function()
            except Overdue:
                raise
            except BaseException as error:
                self._end_if_forked(error)
                trace.log_failure(self.environ, error)
            self._end_if_forked()
            self.signals.restore()

    def _release(self):
        """Closes what the request has opened, also if the application still refers to it."""
        self.is_unfinished = self.may_switch = False
        self.end_watch()
        while self.held:
            try:
                self.held.pop().close()
            except OSError as error:
                trace.log_failure(self.environ, error)

    def _hang_up(self):
        """Ends the connection, and returns whether the worker accepts another one.

        The front cannot know then that the worker is not idle yet, so cleanups come afterwards.
        """
        environ = self.environ
        connections.hang_up(self.connection)
        if environ is not None:
            self._clean_up()
            self._release()
            self.is_leaving()
            self.environ = self.response = None
        return not self.stopping
