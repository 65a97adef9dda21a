//! Sends a response: at once if it is in memory and the client has room for it, or else as the
//! client takes it.

use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::Duration;

use kirin_client_bytes::{Reservation, Resource};
use kirin_h3::Code;
use kirin_http::body::{Body, BodyStream, FileRange};
use kirin_http::handler::Handler;
use kirin_http::pace::Pace;
use kirin_http::response::Response;
use tokio::time::Sleep;

use super::connection::Http3Connection;
use super::sending::{data_header, head, read_file, trailers};
use super::stream::{GivenUp, StreamState};
use crate::observation::ResponseRecord;
use crate::server::Server;
use crate::streams::exchange::Exchange;
use crate::streams::response_fields::ends_with_head;

/// Bytes of a file that are read at once.
const FILE_BYTES: usize = 64 * 1024;

/// A response that is being sent to a client who may be slow.
struct Delivery<'a, H> {
    connection: &'a Http3Connection<H>,
    stream: &'a StreamState,
    exchange: &'a Exchange<H>,
    pace: Pace,
    /// The time limit of the current wait.
    time_limit: Option<Pin<Box<Sleep>>>,
    /// Counts what waits for the client and has no other owner.
    held: Option<Reservation>,
}

impl<H: Handler> Http3Connection<H> {
    /// Sends a response at once if its body is in memory, or in a small file, and the client has
    /// room for it.
    pub(super) fn send_at_once(
        &self,
        stream: &StreamState,
        response: &Response,
        is_head: bool,
        server: &Server<H>,
    ) -> AtOnce {
        let has_end = ends_with_head(response, is_head);
        let length = response.body.length().filter(|_| !has_end);
        stream.put_frame(head(response, is_head, length, server.clock()));
        let is_whole = has_end || put_body(stream, &response.body);
        match self.flush(stream) {
            Ok(true) if is_whole => {
                self.finish(stream);
                AtOnce::Sent(length.unwrap_or(0))
            }
            _ if is_whole => AtOnce::Waits,
            _ => AtOnce::Begun,
        }
    }

    /// Sends a response.
    pub(super) async fn respond(
        self: &Rc<Self>,
        stream: &StreamState,
        response: Response,
        is_head: bool,
        mut exchange: Exchange<H>,
    ) {
        exchange.server.observers.will_send(&mut exchange.record, &response);
        match self.send_at_once(stream, &response, is_head, &exchange.server) {
            AtOnce::Sent(bytes) => {
                let record = ResponseRecord::complete(response.summary(), bytes);
                exchange.end(stream.received_bytes.get(), record);
            }
            left => self.send_rest(stream, response, left, exchange).await,
        }
    }

    /// Sends what [`Http3Connection::send_at_once`] has left of a response.
    pub(super) async fn send_rest(
        self: &Rc<Self>,
        stream: &StreamState,
        response: Response,
        left: AtOnce,
        exchange: Exchange<H>,
    ) {
        let record = ResponseRecord::complete(response.summary(), 0);
        let mut delivery = Delivery {
            connection: self,
            stream,
            exchange: &exchange,
            pace: Pace::new(exchange.server.deadlines.writing),
            time_limit: None,
            held: None,
        };
        let sent = match (left, response.body) {
            (AtOnce::Begun, Body::File(range)) => delivery.send_file(range).await,
            (AtOnce::Begun, Body::Stream(source)) => delivery.send_source(source).await,
            // The head promised a body that is missing, so the stream cannot end well.
            (AtOnce::Begun, _) => Err(Code::Internal),
            // The outbox is to be the only owner of what waits there.
            (AtOnce::Waits | AtOnce::Sent(_), body) => {
                drop(body);
                delivery.flush().await
            }
        };
        drop(delivery);
        let body_bytes = stream.body_bytes();
        let is_cut = match sent {
            Ok(()) => {
                self.finish(stream);
                false
            }
            Err(code) => {
                self.cut(stream, code);
                true
            }
        };
        let record = ResponseRecord { body_bytes, is_cut, ..record };
        exchange.end(stream.received_bytes.get(), record);
    }
}

/// What [`Http3Connection::send_at_once`] has done.
#[derive(Clone, Copy)]
pub(super) enum AtOnce {
    /// All of the response, with so many bytes of its body.
    Sent(u64),
    /// QUIC has not taken all of it. The rest is in the outbox.
    Waits,
    /// The body is still to be brought.
    Begun,
}

/// Puts a body that is in memory, or in a small file. Returns whether it has.
fn put_body(stream: &StreamState, body: &Body) -> bool {
    match body {
        Body::Bytes(bytes) => stream.put(bytes.clone()),
        Body::Segments(segments) => {
            segments.iter().for_each(|segment| stream.put(segment.clone()));
        }
        // A file that cannot be read is left to the task, which cuts the stream.
        Body::File(range) if range.length <= FILE_BYTES as u64 => {
            let Ok(bytes) = read_file(&mut range.clone(), FILE_BYTES) else { return false };
            stream.put(bytes);
        }
        _ => return false,
    }
    true
}

impl<H: Handler> Delivery<'_, H> {
    /// Waits until the client has taken what waits. A client that is too slow gets no more.
    async fn flush(&mut self) -> Result<(), Code> {
        poll_fn(|context| self.poll_flush(context)).await
    }

    fn poll_flush(&mut self, context: &mut Context<'_>) -> Poll<Result<(), Code>> {
        let before = self.stream.taken_bytes.get();
        let flushed = self.connection.poll_flush(self.stream, context);
        let clock = self.exchange.server.clock();
        let taken = self.stream.taken_bytes.get() - before;
        if let Poll::Ready(flushed) = flushed {
            self.held = None;
            self.pace.moved(taken, clock.last());
            if self.time_limit.take().is_some() {
                self.pace.end(clock.now());
            }
            return Poll::Ready(flushed.map_err(|GivenUp| Code::RequestCancelled));
        }
        let now = clock.now();
        let deadline = match &self.time_limit {
            None => {
                let waiting = self.stream.waiting_bytes();
                match self.exchange.share.reserve(Resource::Memory, waiting) {
                    Ok(held) => self.held = Some(held),
                    Err(_) => return Poll::Ready(Err(Code::ExcessiveLoad)),
                }
                self.pace.moved(taken, now);
                Some(self.pace.begin(now))
            }
            Some(_) => (taken > 0).then(|| self.pace.moved(taken, now)),
        };
        if let Some(deadline) = deadline {
            let limit = Duration::from_secs(deadline.saturating_sub(now));
            self.time_limit = Some(Box::pin(tokio::time::sleep(limit)));
        }
        let time_limit = self.time_limit.as_mut().map(|limit| limit.as_mut().poll(context));
        match time_limit {
            Some(Poll::Ready(())) => Poll::Ready(Err(Code::RequestCancelled)),
            _ => Poll::Pending,
        }
    }

    async fn send_file(&mut self, mut range: FileRange) -> Result<(), Code> {
        self.flush().await?;
        while range.length > 0 {
            // The file may have become shorter while it was read.
            let bytes = read_file(&mut range, FILE_BYTES).map_err(|_| Code::Internal)?;
            self.stream.put(bytes);
            self.flush().await?;
        }
        Ok(())
    }

    /// Sends the pieces of a body, which its source brings.
    async fn send_source(&mut self, mut source: Box<dyn BodyStream>) -> Result<(), Code> {
        let expected = source.length();
        let may_have_trailers = source.may_have_trailers();
        let mut total = 0;
        loop {
            self.flush().await?;
            if expected == Some(total) && !may_have_trailers {
                return Ok(());
            }
            let stream = self.stream;
            let chunk = poll_fn(|context| {
                stream.task.set(context);
                if stream.is_given_up() {
                    return Poll::Ready(Err(Code::RequestCancelled));
                }
                source.poll_chunk(context).map(Ok)
            });
            match chunk.await? {
                Some(Ok(chunk)) => {
                    total += chunk.len() as u64;
                    match expected {
                        None => stream.put_frame(data_header(chunk.len() as u64)),
                        Some(expected) if total > expected => return Err(Code::Internal),
                        Some(_) => {}
                    }
                    stream.put(chunk);
                }
                None if expected.is_none_or(|expected| total == expected) => {
                    let fields = source.take_trailers().filter(|fields| !fields.is_empty());
                    if let Some(fields) = fields {
                        stream.put_frame(trailers(fields));
                        self.flush().await?;
                    }
                    return Ok(());
                }
                None | Some(Err(_)) => return Err(Code::Internal),
            }
        }
    }
}
