//! Response bodies that have not arrived together with the head.
//!
//! Kirin reads from the server only when the client has taken what was read before. So at most one
//! piece is in memory; the rest waits in the kernel.

use std::io;
use std::os::fd::BorrowedFd;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use bytes::{Bytes, BytesMut};
use http::header::HeaderName;
use kirin_http::{BodyDecoder, BodyStream, StreamError, Trailers};

use crate::leased_connection::LeasedConnection;
use crate::local_upstream::LocalUpstream;
use crate::pooled_buffer::PooledBuffer;
use crate::sending::{SendError, Sending};
use crate::socket::Socket;

/// Bytes read at once from a body without chunks. They are read to their final place.
const PIECE_BYTES: usize = 64 * 1024;

/// The reason why a body ended too early.
struct BodyFailure {
    reason: String,
    /// Whether the server caused it, and not the client.
    is_server_fault: bool,
}

/// A body that a server is still sending. Dropping it closes the connection.
pub(crate) struct ResponseBody {
    pub(crate) local: Rc<LocalUpstream>,
    /// The connection, until the body has ended.
    pub(crate) leased: Option<LeasedConnection>,
    /// Method and target, for the log.
    pub(crate) request: String,
    pub(crate) decoder: BodyDecoder,
    /// Bytes that have been decoded and not been given to the client yet.
    pub(crate) data: BytesMut,
    pub(crate) buffer: PooledBuffer,
    /// Sends the rest of the request. A server may read it while it responds.
    pub(crate) sending: Option<Sending>,
    pub(crate) length: Option<u64>,
    /// Fields that must not be passed on as trailers.
    pub(crate) no_trailers: Vec<HeaderName>,
    /// How long the server says that it keeps an idle connection.
    pub(crate) keep_alive: Option<Duration>,
    pub(crate) may_be_kept: bool,
}

impl BodyStream for ResponseBody {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        let chunk = self.poll_next(context);
        self.set_deadline(chunk.is_pending());
        chunk.map(|chunk| match chunk {
            Ok(chunk) => chunk.map(Ok),
            Err(cut) => Some(Err(self.cut(cut))),
        })
    }

    fn spliceable(&self) -> u64 {
        match (&self.decoder, &self.leased) {
            (BodyDecoder::Length { left }, Some(leased))
                if self.data.is_empty()
                    && self.sending.is_none()
                    && leased.connection.socket.is_plain() =>
            {
                *left
            }
            _ => 0,
        }
    }

    fn poll_splice(
        &mut self,
        context: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        limit: usize,
    ) -> Poll<Result<usize, StreamError>> {
        let moved = self.poll_move(context, pipe, limit);
        self.set_deadline(moved.is_pending());
        moved.map_err(|cut| self.cut(cut))
    }

    fn length(&self) -> Option<u64> {
        self.length
    }

    fn may_have_trailers(&self) -> bool {
        matches!(self.decoder, BodyDecoder::Chunked(_))
    }

    fn take_trailers(&mut self) -> Option<Trailers> {
        self.decoder.take_trailers_without(&self.no_trailers)
    }
}

impl ResponseBody {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyFailure>> {
        if let Some(sending) = &mut self.sending
            && let Poll::Ready(sent) = sending.as_mut().poll(context)
        {
            self.sending = None;
            match sent {
                Ok(()) => {}
                Err(SendError::Client(error)) => {
                    return Poll::Ready(Err(BodyFailure {
                        reason: error.to_string(),
                        is_server_fault: false,
                    }));
                }
                // The server may still send its response.
                Err(SendError::Server(_)) => self.may_be_kept = false,
            }
        }
        loop {
            if !self.data.is_empty() {
                return Poll::Ready(Ok(Some(self.data.split().freeze())));
            }
            if self.decoder.is_done() {
                self.end();
            }
            let Some(leased) = &self.leased else { return Poll::Ready(Ok(None)) };
            let socket = &leased.connection.socket;
            let read = match &mut self.decoder {
                BodyDecoder::Chunked(_) => {
                    let Poll::Ready(read) = socket.poll_read(context, self.buffer.room()) else {
                        self.buffer.release_if_empty();
                        return Poll::Pending;
                    };
                    if let Ok(count) = read {
                        self.buffer.add(count);
                        let decoded = self.decoder.decode(self.buffer.unused(), &mut self.data);
                        match decoded {
                            Ok(used) => self.buffer.consume(used),
                            Err(error) => {
                                return Poll::Ready(Err(BodyFailure::by_server(error.to_string())));
                            }
                        }
                    }
                    read
                }
                BodyDecoder::Length { left } => {
                    let room = usize::try_from(*left).unwrap_or(usize::MAX).min(PIECE_BYTES);
                    let read = std::task::ready!(read_piece(leased, context, room, &mut self.data));
                    *left -= read.as_ref().map_or(0, |count| *count as u64);
                    read
                }
                BodyDecoder::UntilClose => {
                    std::task::ready!(read_piece(leased, context, PIECE_BYTES, &mut self.data))
                }
            };
            match read {
                Ok(1..) => {}
                Ok(_)
                    if socket.has_ended_response()
                        && matches!(self.decoder, BodyDecoder::UntilClose) =>
                {
                    self.end();
                }
                Ok(_)
                    if matches!(self.decoder, BodyDecoder::UntilClose) && !socket.is_overdue() =>
                {
                    self.leased = None;
                }
                end => return Poll::Ready(Err(BodyFailure::from_read(socket, end))),
            }
        }
    }

    /// Moves bytes of the body into `pipe`, without copying them to user space.
    fn poll_move(
        &mut self,
        context: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        limit: usize,
    ) -> Poll<Result<usize, BodyFailure>> {
        let (BodyDecoder::Length { left }, Some(leased)) = (&mut self.decoder, &self.leased) else {
            return Poll::Ready(Err(BodyFailure::by_server("it cannot be moved by the kernel")));
        };
        let socket = &leased.connection.socket;
        let count = usize::try_from(*left).unwrap_or(usize::MAX).min(limit);
        match std::task::ready!(socket.poll_splice(context, pipe, count)) {
            Ok(moved @ 1..) => {
                *left = left.saturating_sub(moved as u64);
                Poll::Ready(Ok(moved))
            }
            end => Poll::Ready(Err(BodyFailure::from_read(socket, end))),
        }
    }

    /// Sets or removes the deadline for the next bytes from the server.
    fn set_deadline(&self, is_waiting: bool) {
        let Some(leased) = &self.leased else { return };
        let deadline = &leased.connection.socket.read_deadline;
        if !is_waiting {
            deadline.set(0);
        } else if deadline.get() == 0 {
            deadline.set(self.local.deadlines.after(self.local.config().timeouts.idle));
        }
    }

    /// Releases the connection after the complete body.
    fn end(&mut self) {
        let Some(leased) = self.leased.take() else { return };
        if !self.buffer.is_empty() && !leased.server.scheme().is_cgi() {
            leased.log_excess(&self.local, self.buffer.unused().len());
        } else if self.may_be_kept && self.sending.is_none() {
            leased.release(&self.local, self.keep_alive);
        }
        // The client has its response. The rest of its request is not needed.
        self.sending = None;
    }

    /// Logs that the body ended too early. The client's connection must be cut.
    fn cut(&mut self, cut: BodyFailure) -> StreamError {
        self.sending = None;
        if let Some(leased) = self.leased.take() {
            let upstream = self.local.config().name.as_str();
            leased.attempt.warnings.warn("cut", || {
                tracing::warn!(upstream, server = %leased.server, request = self.request, error = cut.reason, "response was cut");
            });
            if cut.is_server_fault {
                leased.attempt.failed(Instant::now());
            }
        }
        StreamError(cut.reason)
    }
}

impl BodyFailure {
    /// Returns the failure for a read from `socket` that gave `end` before the body was complete.
    fn from_read(socket: &Socket, end: io::Result<usize>) -> Self {
        match end {
            _ if socket.is_overdue() => Self::by_server("nothing came for too long"),
            Ok(_) => Self::by_server("the connection ended before its end"),
            Err(error) => Self::by_server(error.to_string()),
        }
    }

    fn by_server(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_server_fault: true }
    }
}

fn read_piece(
    leased: &LeasedConnection,
    context: &mut Context<'_>,
    room: usize,
    data: &mut BytesMut,
) -> Poll<io::Result<usize>> {
    if data.capacity() == 0 {
        *data = BytesMut::with_capacity(room);
    }
    let mut limited = bytes::BufMut::limit(std::mem::take(data), room);
    let read = leased.connection.socket.poll_read_behind(context, &mut limited);
    *data = limited.into_inner();
    read
}
