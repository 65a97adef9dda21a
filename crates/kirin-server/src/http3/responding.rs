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
use super::request::Http3Exchange;
use super::sending::{data_header, head, read_file, trailers};
use super::stream::{GivenUp, StreamState};
use crate::observation::ResponseRecord;
use crate::server::Server;
use crate::streams::response_fields::ends_with_head;

/// Bytes of a file that are read at once.
const FILE_BYTES: usize = 64 * 1024;

/// A response that is being sent to a client who may be slow.
struct Delivery<'a, H> {
    connection: &'a Http3Connection<H>,
    stream: &'a StreamState,
    exchange: &'a Http3Exchange<H>,
    pace: Pace,
    /// The time limit of the current wait.
    time_limit: Option<Pin<Box<Sleep>>>,
    /// Counts what waits for the client and has no other owner.
    held: Option<Reservation>,
}

impl<H: Handler> Http3Connection<H> {
    /// Sends a response at once if its body is in memory, or in a small file, and the client has
    /// room for it. Returns the number of bytes of its body; `None` if only its head was sent, and
    /// a part of the body waits in the outbox or is still to be brought.
    pub(super) fn send_at_once(
        &self,
        stream: &StreamState,
        response: &mut Response,
        is_head: bool,
        server: &Server<H>,
    ) -> Option<u64> {
        let has_end = ends_with_head(response, is_head);
        let length = response.body.length().filter(|_| !has_end);
        stream.put(head(response, is_head, length, server.clock()));
        if !has_end {
            match &mut response.body {
                Body::Bytes(bytes) => stream.put(std::mem::take(bytes)),
                Body::Segments(segments) => {
                    segments.drain(..).for_each(|segment| stream.put(segment));
                }
                Body::File(range) if range.length <= FILE_BYTES as u64 => {
                    // A file that cannot be read is left to the task, which cuts the stream.
                    let bytes = read_file(range, FILE_BYTES).ok()?;
                    stream.put(bytes);
                }
                _ => {
                    _ = self.flush(stream);
                    return None;
                }
            }
        }
        match self.flush(stream) {
            Ok(true) => {
                self.finish(stream);
                Some(length.unwrap_or(0))
            }
            Ok(false) | Err(GivenUp) => None,
        }
    }

    /// Sends a response.
    pub(super) async fn respond(
        self: &Rc<Self>,
        stream: &StreamState,
        mut response: Response,
        is_head: bool,
        mut exchange: Http3Exchange<H>,
    ) {
        let server = Rc::clone(&exchange.server);
        server.observers.will_send(&mut exchange.record, &response);
        match self.send_at_once(stream, &mut response, is_head, &server) {
            Some(bytes) => {
                exchange.end(stream, ResponseRecord::complete(response.summary(), bytes));
            }
            None => self.send_body(stream, response, is_head, exchange).await,
        }
    }

    /// Sends what [`Http3Connection::send_at_once`] has left of a response.
    pub(super) async fn send_body(
        self: &Rc<Self>,
        stream: &StreamState,
        response: Response,
        is_head: bool,
        exchange: Http3Exchange<H>,
    ) {
        let has_end = ends_with_head(&response, is_head);
        let record = ResponseRecord::complete(response.summary(), 0);
        let before = stream.taken_bytes.get();
        let mut delivery = Delivery {
            connection: self,
            stream,
            exchange: &exchange,
            pace: Pace::new(exchange.server.deadlines.writing),
            time_limit: None,
            held: None,
        };
        let sent = match response.body {
            _ if has_end => delivery.flush().await,
            Body::File(range) => delivery.send_file(range).await,
            Body::Stream(source) => delivery.send_source(source).await,
            // What is in memory waits in the outbox.
            Body::Bytes(_) | Body::Segments(_) => delivery.flush().await,
            // The head promised a body that is missing, so the stream cannot end well.
            Body::Withheld(_) | Body::Empty | Body::Tunnel(_) => Err(Code::Internal),
        };
        drop(delivery);
        // With the frame headers: QUIC knows no others.
        let body_bytes = stream.taken_bytes.get() - before;
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
        exchange.end(stream, ResponseRecord { body_bytes, is_cut, ..record });
    }
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
                stream.set_task(context);
                if stream.is_given_up() {
                    return Poll::Ready(Err(Code::RequestCancelled));
                }
                source.poll_chunk(context).map(Ok)
            });
            match chunk.await? {
                Some(Ok(chunk)) => {
                    total += chunk.len() as u64;
                    match expected {
                        None => stream.put(data_header(chunk.len() as u64)),
                        Some(expected) if total > expected => return Err(Code::Internal),
                        Some(_) => {}
                    }
                    stream.put(chunk);
                }
                None if expected.is_none_or(|expected| total == expected) => {
                    let fields = source.take_trailers().filter(|fields| !fields.is_empty());
                    if let Some(fields) = fields {
                        stream.put(trailers(fields));
                        self.flush().await?;
                    }
                    return Ok(());
                }
                None | Some(Err(_)) => return Err(Code::Internal),
            }
        }
    }
}
