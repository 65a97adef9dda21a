"""One connection of the front: reads requests, and writes their responses, without waiting."""
import collections
import itertools
import os
import socket

from kirin import request, request_body
from kirin.asgi.exchange import current
from kirin.asgi.handshake import is_websocket
from kirin.asgi.http import Http
from kirin.asgi.websocket import WebSocket
from kirin.connection import CLOSE_ON_EXEC, DESCRIPTOR_ROOM, ClientGone, FrontGone, unsent
from kirin.request_body import IncomingBody, NotKept
from kirin.store import site

_COMMA = request.COMMA
_READ_BYTES = request.READ_BYTES
_NO_SIGNAL = socket.MSG_NOSIGNAL

# The most buffers of one system call. IOV_MAX is 1,024 (writev(2)).
SENT_BUFFERS = 256


class Connection:
    """A connection, with one request at a time."""

    # The request in progress, or None.
    exchange = None
    # The bytes of an unfinished head, or None, and what came with the first of them.
    received = None
    ancillary, flags = (), 0
    # The names and values, and the body, of a request whose body is not complete.
    incoming = None
    # The buffers that did not fit into the socket, and the futures of those that wait for room.
    unsent = None
    # Whether the response, or the connection, ends with what is unsent.
    ends_with_unsent = closes_with_unsent = False
    is_reading = False
    is_closed = False

    def __init__(self, worker, own_socket):
        self.worker = worker
        self.loop = worker.loop
        self.socket = own_socket
        self.number = own_socket.fileno()
        self.writers = []
        self._receive_message = own_socket.recvmsg
        self._receive = own_socket.recv
        self._send = own_socket.send
        self.resume_reading()

    # ------------------------------------------------------------------ reading

    def resume_reading(self):
        """Lets the loop read what the front sends."""
        if not self.is_reading and not self.is_closed:
            self.is_reading = True
            self.worker.hangups.unwatch(self)
            self.loop.add_reader(self.number, self._on_readable)

    def pause_reading(self):
        """Lets the front keep what it sends, and only watches for its end."""
        if self.is_reading:
            self.is_reading = False
            self.loop.remove_reader(self.number)
            self.worker.hangups.watch(self)

    def hung_up(self):
        """Takes what is left to read when the front has ended its side while reading is paused."""
        rest = bytearray()
        try:
            while True:
                data = self._receive(_READ_BYTES)
                if not data:
                    break
                rest += data
        except OSError:
            # The connection has been reset.
            pass
        if self.exchange is not None:
            self.exchange.last_data_came(bytes(rest))
        self.lost()

    def _on_readable(self):
        if self.worker.is_forked:
            self.worker.end_forked()
        ancillary, flags = (), 0
        exchange, incoming = self.exchange, self.incoming
        try:
            if incoming is not None:
                if self._receive_body(*incoming):
                    return
                data = b""
            elif exchange is None:
                data, ancillary, flags, _ = self._receive_message(
                    _READ_BYTES, DESCRIPTOR_ROOM, CLOSE_ON_EXEC
                )
            else:
                data = self._receive(_READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            # The client has gone. Between two requests this says nothing about the worker.
            self.lost()
            return
        if exchange is not None:
            exchange.data_came(data)
        elif data:
            try:
                self._take(data, ancillary, flags)
            except FrontGone:
                self.close()
        else:
            self.close()

    def _take(self, data, ancillary, flags):
        """Takes bytes of a request. Raises `FrontGone` if they are none."""
        if self.received is None:
            # LENGTH ":" NAME NUL VALUE NUL … NAME NUL VALUE NUL "," BODY
            colon = data.find(b":", 0, 8)
            if data[-1] == _COMMA and data[:colon] == b"%d" % (len(data) - colon - 2):
                words = data.split(b"\0")
                words[0] = b"CONTENT_LENGTH"
                pairs = iter(words)
                # The word behind the last NUL has no partner and is left out.
                self._begin(dict(zip(pairs, pairs)), b"", ancillary, flags)
                return
            self.received = bytearray()
            self.ancillary, self.flags = ancillary, flags
        self.received += data
        comma = request.end_of_head(self.received)
        if comma is None:
            return
        received, self.received = bytes(self.received), None
        words = [word.encode("latin-1") for word in request.words_of(received[: comma + 1])]
        words[0] = b"CONTENT_LENGTH"
        pairs = iter(words)
        ancillary, self.ancillary = self.ancillary, ()
        self._begin(dict(zip(pairs, pairs)), received[comma + 1:], ancillary, self.flags)

    def _begin(self, environ, rest, ancillary, flags):
        """Begins a request whose head is complete. `rest` came behind the head."""
        length = environ.get(b"CONTENT_LENGTH")
        if length is None or b"REQUEST_METHOD" not in environ:
            request.refuse()
        if length == b"0" and not ancillary:
            if b"HTTP_UPGRADE" in environ and is_websocket(environ):
                self._start(WebSocket(self, environ))
            else:
                self._start(Http(self, environ))
            return
        if not length.isdigit():
            request.refuse()
        if ancillary or flags & socket.MSG_CTRUNC:
            try:
                body = request_body.take_descriptor(ancillary)
            except (NotKept, OSError) as reason:
                self._refuse_body(environ, reason)
                return
            self._start(Http(self, environ, body))
            return
        body = IncomingBody(int(length))
        body.add(rest)
        self.incoming = environ, body
        self._start_if_complete(environ, body)

    def _receive_body(self, environ, body):
        """Receives a part of a body. Returns False at the end of the connection."""
        count = body.receive(self.socket.recv_into, self._receive)
        self._start_if_complete(environ, body)
        return count > 0

    def _start_if_complete(self, environ, body):
        if body.missing:
            return
        self.incoming = None
        try:
            file = body.file()
        except (NotKept, OSError) as reason:
            self._refuse_body(environ, reason)
            return
        self._start(Http(self, environ, file))

    def _refuse_body(self, environ, reason):
        self.exchange = exchange = Http(self, environ)
        exchange.log(f"the request body is refused: {reason}")
        exchange.answer("507 Insufficient Storage")

    def _start(self, exchange):
        """Starts the application for a request that is complete."""
        self.exchange = exchange
        # The loop calls in a context of this connection, which the task gets a copy of.
        current.set(exchange)
        name = exchange.environ.get(b"KIRIN_SITE")
        site.set_in_context(None if name is None else name.decode("latin-1"))
        worker = self.worker
        worker.count_request()
        try:
            scope = exchange.scope(worker.state)
        except ValueError:
            request.refuse()
        if scope is not None:
            exchange.start(scope)

    # ------------------------------------------------------------------ writing

    async def write(self, output):
        """Writes a part of a response, and waits while the socket is full."""
        full = self.write_now(output)
        if full is not None and not await full:
            raise ClientGone

    def write_last(self, output):
        """Writes the end of a response. Returns what `write_now` returns."""
        full = self.write_now(output)
        if full is None:
            self._finish()
        else:
            self.ends_with_unsent = True
        return full

    def write_now(self, output):
        """Writes bytes, or a tuple of bytes.

        Returns a future to wait for if the socket is full, otherwise None.

        The result of the future is whether the bytes have been written. An exception in a future
        would refer to the frame that waits for it. Raises `ClientGone`.
        """
        if self.is_closed:
            raise ClientGone
        is_one = type(output) is bytes
        if self.unsent is not None:
            self.unsent += unsent((output,) if is_one else output, 0)
        else:
            try:
                if is_one:
                    count = self._send(output, _NO_SIGNAL)
                    if count == len(output):
                        return None
                else:
                    count = self.socket.sendmsg(output, (), _NO_SIGNAL)
            except (BlockingIOError, InterruptedError):
                count = 0
            except OSError:
                self.lost()
                raise ClientGone from None
            rest = unsent((output,) if is_one else output, count)
            if not rest:
                return None
            self.unsent = collections.deque(rest)
            self.loop.add_writer(self.number, self._on_writable)
        writer = self.loop.create_future()
        self.writers.append(writer)
        return writer

    def _on_writable(self):
        buffers = self.unsent
        try:
            count = self.socket.sendmsg(itertools.islice(buffers, SENT_BUFFERS), (), _NO_SIGNAL)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            self.lost()
            return
        while buffers and count >= len(buffers[0]):
            count -= len(buffers.popleft())
        if buffers:
            buffers[0] = buffers[0][count:]
            return
        self.unsent = None
        self.loop.remove_writer(self.number)
        writers, self.writers = self.writers, []
        for writer in writers:
            if not writer.done():
                writer.set_result(True)
        if self.ends_with_unsent:
            self.ends_with_unsent = False
            self._finish()
        elif self.closes_with_unsent:
            self.close()
        elif self.exchange is not None:
            self.exchange.has_room()

    def _finish(self):
        """Frees the connection for the next request."""
        exchange, self.exchange = self.exchange, None
        exchange.finished()
        if exchange.says_close:
            self.worker.has_said_close()
        if exchange.says_close or self.worker.closes_idle:
            self.leave()

    # ------------------------------------------------------------------ the end

    def leave(self):
        """Ends the connection if it is idle, because the worker leaves.

        A request that has come already is still answered: the front retries only a few times.
        """
        if self._is_idle():
            self._on_readable()
            if self._is_idle():
                self.close()

    def _is_idle(self):
        return self.exchange is None and self.received is None and self.incoming is None

    def lost(self):
        """Ends the connection at once, and tells the application that the client has gone."""
        exchange = self.exchange
        self.close()
        if exchange is not None:
            exchange.gone()

    def close_when_sent(self):
        """Ends the connection as soon as everything is sent."""
        if self.unsent is None:
            self.close()
        else:
            self.closes_with_unsent = True

    def close(self):
        """Ends the connection."""
        if self.is_closed:
            return
        self.is_closed = True
        if self.is_reading:
            self.is_reading = False
            self.loop.remove_reader(self.number)
        else:
            self.worker.hangups.unwatch(self)
        self.worker.connection_closed(self)
        if self.unsent is not None:
            self.unsent = None
            self.loop.remove_writer(self.number)
        for number in request_body.descriptors(self.ancillary):
            os.close(number)
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.closed()
            # A process of the application may have a copy of the descriptor.
            try:
                self.socket.shutdown(socket.SHUT_RDWR)
            except OSError:
                # The other side has closed it.
                pass
        self.socket.close()
        self.incoming = self.received = None
        writers, self.writers = self.writers, []
        for writer in writers:
            if not writer.done():
                writer.set_result(False)
