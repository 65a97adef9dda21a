//! The body of an HTTP/1 request: removes the framing from the bytes that the client sends.

use std::rc::Rc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use kirin_http::chunked::{ChunkedDecoder, Event};
use kirin_http::pace::Pace;
use kirin_http::request::BodyLength;
use kirin_http::request_body::{BodyError, BodySource, RequestBody};
use kirin_http::trailers::Trailers;

use crate::connection::io::Io;
use crate::http1::output::Unsent;

/// The most bytes of one read. A body of this size comes in one piece.
const READ_BYTES: usize = 64 * 1024;

/// Reads a body from a connection.
struct Http1Source {
    io: Rc<Io>,
    framing: RequestFraming,
    pace: Pace,
    /// Whether the server waits for the client.
    is_waiting: bool,
    /// Whether `100 Continue` must still be sent.
    expects_continue: bool,
    /// The part of it that the socket has not taken yet.
    unsent: Option<Unsent>,
}

enum RequestFraming {
    Exact { left: u64 },
    Chunked(ChunkedDecoder),
}

/// Returns the body of the request whose head the connection has just received.
pub(crate) fn receive(io: &Rc<Io>, length: BodyLength, expects_continue: bool) -> RequestBody {
    let framing = match length {
        BodyLength::None => return RequestBody::empty(),
        BodyLength::Exact(left) => RequestFraming::Exact { left },
        BodyLength::Chunked => RequestFraming::Chunked(ChunkedDecoder::new()),
    };
    io.body_finished.set(false);
    let source = Http1Source {
        io: Rc::clone(io),
        framing,
        pace: Pace::new(io.deadlines().reading),
        is_waiting: false,
        expects_continue,
        unsent: None,
    };
    RequestBody::new(Box::new(source), length)
}

impl BodySource for Http1Source {
    fn begin_wait(&mut self) {
        self.is_waiting = false;
    }

    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        loop {
            if let Some(taken) = self.take_unread()? {
                self.io.received_body.set(self.io.received_body.get() + taken.len() as u64);
                return Poll::Ready(Ok(Some(taken)));
            }
            if self.io.body_finished.get() {
                return Poll::Ready(Ok(None));
            }
            ready!(self.poll_fill(context))?;
        }
    }

    fn poll_trailers(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Trailers>, BodyError>> {
        Poll::Ready(Ok(match &mut self.framing {
            RequestFraming::Chunked(decoder) => decoder.take_trailers(),
            RequestFraming::Exact { .. } => None,
        }))
    }

    fn has_ended(&self) -> bool {
        matches!(self.framing, RequestFraming::Exact { left: 0 })
    }

    fn may_have_trailers(&self) -> bool {
        matches!(self.framing, RequestFraming::Chunked(_))
    }

    fn refuse_rest(&mut self) {
        self.io.body_finished.set(false);
    }
}

impl Http1Source {
    /// Takes data of the body out of the bytes that were read already.
    fn take_unread(&mut self) -> Result<Option<Bytes>, BodyError> {
        let mut unread = self.io.unread.borrow_mut();
        match &mut self.framing {
            RequestFraming::Exact { left } => {
                let taken = usize::try_from(*left).unwrap_or(usize::MAX).min(unread.len());
                *left -= taken as u64;
                self.io.body_finished.set(*left == 0);
                Ok((taken > 0).then(|| take_front(&mut unread, taken)))
            }
            RequestFraming::Chunked(decoder) => {
                let mut data = Vec::new();
                let mut at = 0;
                loop {
                    match decoder.decode(&unread[at..])? {
                        Event::Data { start, end } => {
                            data.extend_from_slice(&unread[at + start..at + end]);
                            at += end;
                        }
                        Event::NeedMore => {
                            at = unread.len();
                            break;
                        }
                        Event::End { consumed } => {
                            at += consumed;
                            self.io.body_finished.set(true);
                            break;
                        }
                    }
                }
                drop(take_front(&mut unread, at));
                Ok((!data.is_empty()).then(|| Bytes::from(data)))
            }
        }
    }

    /// Reads more. A client that waits for `100 Continue` gets it first.
    fn poll_fill(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BodyError>> {
        if !self.is_waiting {
            self.is_waiting = true;
            self.io.begin_wait(&mut self.pace);
        }
        if std::mem::take(&mut self.expects_continue) {
            self.unsent = Some(Unsent::one(Bytes::from_static(b"HTTP/1.1 100 Continue\r\n\r\n")));
        }
        if let Some(unsent) = &mut self.unsent {
            ready!(unsent.poll_flush(&self.io, context))?;
            self.unsent = None;
        }
        // The buffer has the size of the part that is missing. So a large body is not read through
        // a small buffer, nor a small body through a large one.
        let wanted = match self.framing {
            RequestFraming::Exact { left } => {
                usize::try_from(left).unwrap_or(READ_BYTES).min(READ_BYTES)
            }
            RequestFraming::Chunked(_) => READ_BYTES,
        };
        // No memory is held while the server waits for the client.
        let mut buffer = vec![0; wanted];
        let read = ready!(self.io.poll_read(context, &mut buffer))?;
        self.io.progress(&mut self.pace, read);
        self.io.end_wait(&mut self.pace);
        self.is_waiting = false;
        if read == 0 {
            return Poll::Ready(Err(BodyError::Ended));
        }
        buffer.truncate(read);
        let mut unread = self.io.unread.borrow_mut();
        debug_assert!(unread.is_empty(), "only an empty buffer is filled");
        *unread = buffer;
        Poll::Ready(Ok(()))
    }
}

/// Takes `count` bytes from the front, without a copy if these are all.
fn take_front(unread: &mut Vec<u8>, count: usize) -> Bytes {
    if count == unread.len() {
        return Bytes::from(std::mem::take(unread));
    }
    let rest = unread.split_off(count);
    Bytes::from(std::mem::replace(unread, rest))
}
