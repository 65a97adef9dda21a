//! The body of a request over HTTP/3: the DATA of its stream. It stays in QUIC until it is read.

use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::StatusCode;
use kirin_h3::Code;
use kirin_h3::request_stream::Part;
use kirin_http::field_lines::FieldLines;
use kirin_http::handler::Handler;
use kirin_http::request_body::{BodyError, BodySource};
use kirin_http::trailers::Trailers;

use super::client::StreamClient;
use super::connection::Http3Connection;
use super::stream::{Read, StreamState};
use crate::server::Server;
use crate::streams::body_pace::BodyPace;

/// Reads a body from a stream.
pub(super) struct Http3Source<H> {
    connection: Rc<Http3Connection<H>>,
    stream: Rc<StreamState>,
    server: Rc<Server<H>>,
    pace: BodyPace,
    /// Sends `100 Continue` as long as that is owed.
    expects_continue: Option<Rc<StreamClient<H>>>,
}

impl<H> Drop for Http3Source<H> {
    fn drop(&mut self) {
        if !self.stream.is_given_up() {
            self.connection.stop_receiving(&self.stream, Code::NoError);
            self.connection.touch();
        }
    }
}

impl<H: Handler> Http3Source<H> {
    /// Returns the source of a body. With `expects_continue`, the client is told to continue when
    /// the body is wanted. When the response begins, the client may be silent, because the two
    /// sides talk (a gRPC stream), and the handler sets the limit.
    pub(super) fn new(
        connection: Rc<Http3Connection<H>>,
        stream: Rc<StreamState>,
        server: &Rc<Server<H>>,
        expects_continue: Option<Rc<StreamClient<H>>>,
    ) -> Self {
        let server = Rc::clone(server);
        let pace = BodyPace::new(server.deadlines.reading);
        Self { connection, stream, server, pace, expects_continue }
    }

    /// Ends the request because of a mistake of its client.
    fn refuse(&self, code: Code) -> BodyError {
        self.connection.cut(&self.stream, code);
        self.connection.count_early_end();
        BodyError::Ended
    }

    /// Returns the next DATA out of the bytes that are here, or out of QUIC.
    fn take_part(&mut self) -> Result<Option<Bytes>, BodyError> {
        loop {
            let mut bytes = self.stream.unread.take();
            if bytes.is_empty() {
                match self.connection.read(self.stream.id) {
                    Read::Bytes(read) => bytes = read,
                    Read::Nothing => return Ok(None),
                    Read::End => return self.take_end().map(|()| None),
                    Read::Reset => {
                        self.connection.take_end(&self.stream);
                        return Err(self.refuse(Code::RequestCancelled));
                    }
                }
            }
            let part = self.stream.reader.borrow_mut().take(&mut bytes);
            self.stream.unread.replace(bytes);
            match part {
                Ok(None) => {}
                Ok(Some(Part::Data(data))) => {
                    let received = self.stream.received_bytes.get() + data.len() as u64;
                    self.stream.received_bytes.set(received);
                    if self.stream.announced.get().is_some_and(|announced| received > announced) {
                        return Err(self.refuse(Code::Message));
                    }
                    return Ok(Some(data));
                }
                Ok(Some(Part::Trailers(section))) => {
                    if !self.connection.take_trailers(&self.server, &self.stream, &section) {
                        return Err(self.refuse(Code::Message));
                    }
                }
                Ok(Some(Part::Head(_) | Part::TooLarge)) => {
                    return Err(self.refuse(Code::ExcessiveLoad));
                }
                Err(failure) => {
                    self.connection.fail(failure);
                    return Err(BodyError::Ended);
                }
            }
        }
    }

    fn take_end(&self) -> Result<(), BodyError> {
        self.connection.take_end(&self.stream);
        let ended = self.stream.reader.borrow().end();
        if let Err(failure) = ended {
            self.connection.fail(failure);
            return Err(BodyError::Ended);
        }
        let received = self.stream.received_bytes.get();
        if self.stream.announced.get().is_some_and(|announced| received != announced) {
            return Err(self.refuse(Code::Message));
        }
        Ok(())
    }
}

impl<H: Handler> BodySource for Http3Source<H> {
    fn begin_wait(&mut self) {
        self.pace.begin_wait();
    }

    /// Returns the next data. Taking it gives the client room for as many bytes (RFC 9000 section
    /// 4.1).
    fn poll_data(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Bytes>, BodyError>> {
        if let Some(client) = self.expects_continue.take() {
            // If it cannot be sent, the client has disconnected, which the next read finds out.
            let _ = client.inform(StatusCode::CONTINUE, &FieldLines::new());
        }
        self.stream.task.set(context);
        if self.stream.is_given_up() {
            return Poll::Ready(Err(BodyError::Ended));
        }
        if self.stream.has_ended.get() && self.stream.unread.borrow().is_empty() {
            return Poll::Ready(Ok(None));
        }
        match self.take_part()? {
            Some(data) => {
                self.pace.end_wait(data.len(), self.server.clock());
                return Poll::Ready(Ok(Some(data)));
            }
            None if self.stream.has_ended.get() => {
                self.pace.end_wait(0, self.server.clock());
                return Poll::Ready(Ok(None));
            }
            None => {}
        }
        let clock = self.server.clock();
        if !self.stream.is_answered.get() && self.pace.poll_silence(clock, context).is_ready() {
            return Poll::Ready(Err(BodyError::Ended));
        }
        Poll::Pending
    }

    fn poll_trailers(&mut self, _: &mut Context<'_>) -> Poll<Result<Option<Trailers>, BodyError>> {
        // They have come with the end of the data.
        let fields = self.stream.trailers.borrow_mut().take();
        Poll::Ready(match fields {
            Some(fields) => Trailers::from_http2(fields).map(Some).map_err(BodyError::from),
            None => Ok(None),
        })
    }

    fn has_ended(&self) -> bool {
        self.stream.has_ended.get()
            && self.stream.unread.borrow().is_empty()
            && self.stream.trailers.borrow().is_none()
    }

    fn may_have_trailers(&self) -> bool {
        !self.stream.has_ended.get() || self.stream.trailers.borrow().is_some()
    }

    /// Does nothing: other requests have streams of their own.
    fn refuse_rest(&mut self) {}
}
