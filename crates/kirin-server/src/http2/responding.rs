//! Sends a response: at once if it is short and in memory, or else in turn with others. The body of
//! a source is brought piece by piece.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use kirin_h2::Reason;
use kirin_http::body::{Body, BodyStream};
use kirin_http::handler::Handler;
use kirin_http::response::Response;

use super::connection::{Engine, GATHERED_BYTES, Http2Connection};
use super::outgoing::{Outgoing, OutgoingBody, SourcePiece, append_file};
use super::response::write_head;
use super::stream::StreamState;
use crate::observation::ResponseRecord;
use crate::server::Server;
use crate::streams::exchange::Exchange;
use crate::streams::response_fields::ends_with_head;

/// A body of up to this size is sent at once if the client has room for it. It fits one frame.
const AT_ONCE_BYTES: u64 = kirin_h2::FRAME_BYTES as u64;

impl<H: Handler> Http2Connection<H> {
    /// Sends a response on an open stream, or hands its body over. Returns a body that a task must
    /// bring.
    pub(super) fn respond(
        &self,
        state: &Rc<StreamState<H>>,
        mut response: Response,
        is_head: bool,
        mut exchange: Exchange<H>,
    ) -> Option<Box<dyn BodyStream>> {
        let server = Rc::clone(&exchange.server);
        server.observers.will_send(&mut exchange.record, &response);
        // The response may own the body of the request, whose end needs the engine. So it must not
        // be dropped while the engine is borrowed.
        let sent = {
            let mut engine = self.engine.borrow_mut();
            let sent = send_at_once(&mut engine, state.id, &mut response, is_head, &server);
            if sent.is_some() {
                state.end_response(self, &mut engine);
            }
            sent
        };
        match sent {
            Some(bytes) => {
                exchange.end(
                    state.received_bytes.get(),
                    ResponseRecord::complete(response.summary(), bytes),
                );
                None
            }
            None => self.hand_over(state, response, exchange),
        }
    }

    /// Hands the body of a response over, whose head was sent. Returns a body that a task must
    /// bring.
    pub(super) fn hand_over(
        &self,
        state: &Rc<StreamState<H>>,
        response: Response,
        exchange: Exchange<H>,
    ) -> Option<Box<dyn BodyStream>> {
        let record = ResponseRecord::complete(response.summary(), 0);
        let (body, source) = match response.body {
            Body::Bytes(bytes) => (OutgoingBody::Pieces([bytes].into()), None),
            Body::Segments(segments) => (OutgoingBody::Pieces(segments.into()), None),
            Body::File(range) => (OutgoingBody::File(range), None),
            Body::Stream(source) => (OutgoingBody::Source(SourcePiece::default()), Some(source)),
            // The head promised a body that is missing, so the stream cannot end well.
            Body::Withheld(_) | Body::Empty | Body::Tunnel(_) => {
                self.give_up(state, Reason::InternalError, record, exchange);
                return None;
            }
        };
        let Ok(held) = body.reserve(&exchange.share) else {
            self.give_up(state, Reason::EnhanceYourCalm, record, exchange);
            return None;
        };
        state.outgoing.replace(Some(Outgoing::new(body, held, record, exchange)));
        self.engine.borrow_mut().set_ready(state.id, source.is_none());
        source
    }

    /// Resets a stream behind the head of its response.
    fn give_up(
        &self,
        state: &StreamState<H>,
        reason: Reason,
        record: ResponseRecord,
        exchange: Exchange<H>,
    ) {
        self.engine.borrow_mut().reset(state.id, reason);
        exchange.end(state.received_bytes.get(), ResponseRecord { is_cut: true, ..record });
        state.reset(self);
    }

    /// Brings the pieces of a body. Asks its source for more whenever the client has taken what was
    /// there.
    pub(super) async fn feed(
        self: &Rc<Self>,
        state: &StreamState<H>,
        mut source: Box<dyn BodyStream>,
    ) {
        let expected = source.length();
        let may_have_trailers = source.may_have_trailers();
        let mut total = 0;
        loop {
            let chunk = poll_fn(|context| {
                state.task.set(context);
                match &*state.outgoing.borrow() {
                    Some(outgoing) if outgoing.needs_piece() => {}
                    Some(_) => return Poll::Pending,
                    None => return Poll::Ready(None),
                }
                source.poll_chunk(context).map(Some)
            });
            let Some(chunk) = chunk.await else { return };
            let piece = match chunk {
                Some(Ok(chunk)) => {
                    total += chunk.len() as u64;
                    if expected.is_some_and(|expected| total > expected) {
                        return self.cut(state);
                    }
                    let is_last = expected == Some(total) && !may_have_trailers;
                    SourcePiece { bytes: chunk, end: is_last.then_some(None) }
                }
                None if expected.is_none_or(|expected| total == expected) => {
                    let trailers = source.take_trailers();
                    let trailers = trailers.filter(|trailers| !trailers.is_empty());
                    SourcePiece { bytes: Bytes::new(), end: Some(trailers) }
                }
                None | Some(Err(_)) => return self.cut(state),
            };
            if self.bring(state, piece) {
                return;
            }
        }
    }
}

/// Sends a response at once if its body is in memory, or in a small file, and the client has room
/// for it. Returns the number of bytes of its body; `None` if only its head was sent.
pub(super) fn send_at_once<H>(
    engine: &mut Engine<H>,
    stream: u32,
    response: &mut Response,
    is_head: bool,
    server: &Server<H>,
) -> Option<u64> {
    let clock = server.clock();
    let has_end = ends_with_head(response, is_head);
    write_head(engine, stream, response, is_head, clock);
    if has_end {
        return Some(0);
    }
    let length = response.body.length().filter(|length| *length <= AT_ONCE_BYTES)?;
    let bytes = usize::try_from(length).ok()?;
    if engine.room(stream) < bytes || engine.output_bytes() >= 2 * GATHERED_BYTES {
        return None;
    }
    match &mut response.body {
        Body::Bytes(body) => engine.data(stream, body, true),
        Body::Segments(segments) => {
            let filled = engine.fill(stream, |out, _| {
                segments.iter().for_each(|segment| out.extend_from_slice(segment));
                Ok(true)
            });
            debug_assert_eq!(filled.ok(), Some(bytes), "all of it fits");
        }
        Body::File(range) => {
            // A file that cannot be read is left to the connection, which cuts the stream.
            let mut read = range.clone();
            engine
                .fill(stream, |out, most| match append_file(&mut read, out, most)? {
                    true => Ok(true),
                    false => Err(std::io::ErrorKind::UnexpectedEof.into()),
                })
                .ok()?;
        }
        Body::Stream(_) | Body::Withheld(_) | Body::Empty | Body::Tunnel(_) => return None,
    }
    Some(length)
}
