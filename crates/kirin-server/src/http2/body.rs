//! The body of a request over HTTP/2: the data of its stream.

use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use kirin_http::field_lines::FieldLines;
use kirin_http::request_body::{BodyError, BodySource};
use kirin_http::trailers::Trailers;

use super::connection::Http2Connection;
use super::responder::StreamClient;
use super::stream::StreamState;
use crate::limits::deadlines::Deadlines;
use crate::server::Server;
use crate::streams::body_pace::BodyPace;

/// Reads a body from a stream.
pub(super) struct Http2Source<H> {
    connection: Rc<Http2Connection<H>>,
    stream: Rc<StreamState<H>>,
    deadlines: Rc<Deadlines>,
    pace: BodyPace,
    /// Sends `100 Continue` as long as that is owed.
    expects_continue: Option<Rc<StreamClient<H>>>,
}

impl<H> Drop for Http2Source<H> {
    fn drop(&mut self) {
        if self.stream.is_reset() {
            return;
        }
        self.stream.drop_incoming(&self.connection, &mut self.connection.engine.borrow_mut());
        self.connection.wake_to_send();
    }
}

impl<H> Http2Source<H> {
    /// Returns the source of a body. With `expects_continue`, the client is told to continue when
    /// the body is wanted. When the response begins, the client may be silent, because the two
    /// sides talk (a gRPC stream), and the handler sets the limit.
    pub(super) fn new(
        connection: Rc<Http2Connection<H>>,
        stream: Rc<StreamState<H>>,
        server: &Server<H>,
        expects_continue: Option<Rc<StreamClient<H>>>,
    ) -> Self {
        let deadlines = Rc::clone(&server.deadlines);
        let pace = BodyPace::new(deadlines.reading);
        Self { connection, stream, deadlines, pace, expects_continue }
    }

    /// Takes the data that is there.
    fn take_data(&mut self) -> Bytes {
        let data = self.stream.incoming.borrow_mut().data.split().freeze();
        self.connection.release(&self.stream, data.len());
        data
    }
}

impl<H> BodySource for Http2Source<H> {
    fn begin_wait(&mut self) {
        self.pace.begin_wait();
    }

    /// Returns the next data. Taking it gives the client room for as many bytes (RFC 9113 section
    /// 5.2).
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        if let Some(client) = self.expects_continue.take() {
            // If it cannot be sent, the client has disconnected, which the next read finds out.
            let _ = client.inform(StatusCode::CONTINUE, &FieldLines::new());
        }
        self.stream.task.set(context);
        if self.stream.is_reset() {
            return Poll::Ready(Err(BodyError::Ended));
        }
        let (has_data, ended, is_dropped) = {
            let incoming = self.stream.incoming.borrow();
            (!incoming.data.is_empty(), incoming.ended, incoming.is_dropped)
        };
        if is_dropped && !ended {
            return Poll::Ready(Err(BodyError::Ended));
        }
        if has_data {
            let data = self.take_data();
            self.pace.end_wait(data.len(), &self.deadlines.clock);
            return Poll::Ready(Ok(Some(data)));
        }
        if ended {
            self.pace.end_wait(0, &self.deadlines.clock);
            return Poll::Ready(Ok(None));
        }
        let clock = &self.deadlines.clock;
        if !self.stream.is_answered.get() && self.pace.poll_silence(clock, context).is_ready() {
            return Poll::Ready(Err(BodyError::Ended));
        }
        Poll::Pending
    }

    fn poll_trailers(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Trailers>, BodyError>> {
        // They have come with the end of the data.
        let fields = self.stream.incoming.borrow_mut().trailers.take();
        Poll::Ready(match fields {
            Some(fields) => Trailers::from_http2(fields).map(Some).map_err(BodyError::from),
            None => Ok(None),
        })
    }

    fn has_ended(&self) -> bool {
        let incoming = self.stream.incoming.borrow();
        incoming.ended && incoming.data.is_empty() && incoming.trailers.is_none()
    }

    fn may_have_trailers(&self) -> bool {
        let incoming = self.stream.incoming.borrow();
        !incoming.ended || incoming.trailers.is_some()
    }

    /// Does nothing: other requests have streams of their own.
    fn refuse_rest(&mut self) {}
}
