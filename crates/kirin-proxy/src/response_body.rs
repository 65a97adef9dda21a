//! Response bodies that are longer than what came with the head. Nothing is read from the server
//! before the client has taken what was read: what is between them is one piece, and what the
//! kernel holds.

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

/// Bytes read at once of a body without chunks, which are read to where they stay.
const PIECE_BYTES: usize = 64 * 1024;

/// Why a body ends before its end.
struct Cut {
    reason: String,
    /// Whether it is the server's doing, and not the client's.
    is_servers: bool,
}

/// A body that a server is still sending. Dropping it ends the connection.
pub(crate) struct ResponseBody {
    pub(crate) local: Rc<LocalUpstream>,
    /// None when the body has ended.
    pub(crate) leased: Option<LeasedConnection>,
    /// For the log.
    pub(crate) request: String,
    pub(crate) decoder: BodyDecoder,
    /// Read and not given yet.
    pub(crate) data: BytesMut,
    pub(crate) buffer: PooledBuffer,
    /// The rest of the request, which a server may take while it answers.
    pub(crate) sending: Option<Sending>,
    pub(crate) length: Option<u64>,
    /// Fields that are no trailers.
    pub(crate) no_trailers: Vec<HeaderName>,
    /// For how long the server keeps the connection then.
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
        take_trailers(&mut self.decoder, &self.no_trailers)
    }
}

/// The trailers that go on to the client, when the body is complete.
pub(crate) fn take_trailers(
    decoder: &mut BodyDecoder,
    no_trailers: &[HeaderName],
) -> Option<Trailers> {
    let mut trailers = decoder.take_trailers()?;
    trailers.remove(no_trailers);
    Some(trailers).filter(|trailers| !trailers.is_empty())
}

/// A body that is here, and what follows it. Its length is not said, so that the client gets it in
/// chunks.
pub(crate) struct WithTrailers {
    data: Bytes,
    trailers: Option<Trailers>,
}

impl WithTrailers {
    pub(crate) fn new(data: Bytes, trailers: Trailers) -> Self {
        Self { data, trailers: Some(trailers) }
    }
}

impl BodyStream for WithTrailers {
    fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
        let data = std::mem::take(&mut self.data);
        Poll::Ready(if data.is_empty() { None } else { Some(Ok(data)) })
    }

    fn length(&self) -> Option<u64> {
        None
    }

    fn may_have_trailers(&self) -> bool {
        true
    }

    fn take_trailers(&mut self) -> Option<Trailers> {
        self.trailers.take()
    }
}

impl ResponseBody {
    fn poll_next(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, Cut>> {
        if let Some(sending) = &mut self.sending
            && let Poll::Ready(sent) = sending.as_mut().poll(context)
        {
            self.sending = None;
            match sent {
                Ok(()) => {}
                Err(SendError::Client(error)) => {
                    return Poll::Ready(Err(Cut { reason: error.to_string(), is_servers: false }));
                }
                // What it still has to say is read nevertheless.
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
                                return Poll::Ready(Err(Cut::by_server(error.to_string())));
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
                end => return Poll::Ready(Err(Cut::of(socket, end))),
            }
        }
    }

    /// What of the body is there, into `pipe`.
    fn poll_move(
        &mut self,
        context: &mut Context<'_>,
        pipe: BorrowedFd<'_>,
        limit: usize,
    ) -> Poll<Result<usize, Cut>> {
        let (BodyDecoder::Length { left }, Some(leased)) = (&mut self.decoder, &self.leased) else {
            return Poll::Ready(Err(Cut::by_server("it cannot be moved by the kernel")));
        };
        let socket = &leased.connection.socket;
        let count = usize::try_from(*left).unwrap_or(usize::MAX).min(limit);
        match std::task::ready!(socket.poll_splice(context, pipe, count)) {
            Ok(moved @ 1..) => {
                *left = left.saturating_sub(moved as u64);
                Poll::Ready(Ok(moved))
            }
            end => Poll::Ready(Err(Cut::of(socket, end))),
        }
    }

    /// For how long the server may be silent from now on.
    fn set_deadline(&self, is_waiting: bool) {
        let Some(leased) = &self.leased else { return };
        let deadline = &leased.connection.socket.read_deadline;
        if !is_waiting {
            deadline.set(0);
        } else if deadline.get() == 0 {
            deadline.set(self.local.deadlines.after(self.local.config().timeouts.idle));
        }
    }

    /// All of it has been read.
    fn end(&mut self) {
        let Some(leased) = self.leased.take() else { return };
        if !self.buffer.is_empty() && !leased.server.scheme().is_cgi() {
            leased.log_excess(&self.local, self.buffer.unused().len());
        } else if self.may_be_kept && self.sending.is_none() {
            leased.release(&self.local, self.keep_alive);
        }
        // The client has its response; the rest of its request is of no use to anybody.
        self.sending = None;
    }

    /// It ended before its end: the client's connection is to be cut.
    fn cut(&mut self, cut: Cut) -> StreamError {
        self.sending = None;
        if let Some(leased) = self.leased.take() {
            let upstream = self.local.config().name.as_str();
            tracing::warn!(upstream, server = %leased.server, request = self.request, error = cut.reason, "response was cut");
            if cut.is_servers {
                leased.attempt.failed(Instant::now());
            }
        }
        StreamError(cut.reason)
    }
}

impl Cut {
    /// Reading from `socket` has ended like this, and more was to come.
    fn of(socket: &Socket, end: io::Result<usize>) -> Self {
        match end {
            _ if socket.is_overdue() => Self::by_server("nothing came for too long"),
            Ok(_) => Self::by_server("the connection ended before its end"),
            Err(error) => Self::by_server(error.to_string()),
        }
    }

    fn by_server(reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), is_servers: true }
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
