//! Sends a response on a stream: at once if it is short and in memory, or else at the pace of its
//! reader.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, SendStream};
use http::StatusCode;
use kirin_client_bytes::{ClientShare, Reservation, Resource};
use kirin_http::body::{Body, BodyStream, FileRange};
use kirin_http::pace::Pace;
use kirin_http::request_id::RequestId;
use kirin_http::response::Response;

use super::body::{BodyState, within};
use super::response;
use super::socket::Backlog;
use super::stream::{Ended, Progress};
use crate::file_pieces::FilePieces;
use crate::limits::deadlines::Deadlines;
use crate::observation::{RequestRecord, ResponseRecord};
use crate::server::Server;

/// A body of up to this size is handed over at once if the client has room for it. It fits one
/// frame.
const ONE_FRAME_BYTES: usize = 16 * 1024;

/// The size of the pieces in which a larger body is handed over.
const PIECE_BYTES: usize = 32 * 1024;

/// The parts of a request that are kept until its response has been sent.
pub(super) struct Http2Exchange {
    pub(super) is_head: bool,
    /// The id that Kirin's own answer to a failure names.
    id: RequestId,
    pub(super) record: Option<RequestRecord>,
    /// The state of the request's body. `None` if it is not read.
    pub(super) body: Option<Rc<BodyState>>,
    /// The client for which bytes are counted.
    pub(super) share: ClientShare,
    /// Counts the copy of a long head.
    pub(super) _head: Option<Reservation>,
    backlog: Rc<Backlog>,
}

impl Http2Exchange {
    pub(super) fn new(
        is_head: bool,
        id: RequestId,
        record: Option<RequestRecord>,
        share: ClientShare,
        backlog: &Rc<Backlog>,
    ) -> Self {
        Self { is_head, id, record, body: None, share, _head: None, backlog: Rc::clone(backlog) }
    }

    /// Returns whether nothing follows the head of `response`.
    fn ends_with_head(&self, response: &Response) -> bool {
        self.is_head
            || Response::is_bodiless_status(response.status)
            || response.body.length() == Some(0)
    }

    /// Tells the observers about the response.
    fn end<H>(&mut self, server: &Server<H>, mut response: ResponseRecord) {
        if let Some(record) = self.record.take() {
            server.clock().now();
            response.received_bytes =
                self.body.as_ref().map_or(0, |body| body.received_bytes.get());
            server.observers.end(record, &response);
        }
    }
}

/// A response whose body is still to be sent.
pub(super) struct Unfinished {
    stream: SendStream<Bytes>,
    body: Body,
    record: ResponseRecord,
    exchange: Http2Exchange,
}

/// Sends the head of a response, and its body if that is in memory and fits one frame.
pub(super) fn start<H>(
    server: &Server<H>,
    respond: &mut SendResponse<Bytes>,
    response: Response,
    mut exchange: Http2Exchange,
) -> Progress<Unfinished> {
    // HTTP/2 has no Upgrade, so no client has asked for one (RFC 9113 section 8.6).
    let is_switch = matches!(response.body, Body::Tunnel(_)) || response.status.is_informational();
    let mut response = if is_switch { Response::error(StatusCode::BAD_GATEWAY) } else { response };
    response.add_request_id(&exchange.id);
    let head = response::head(&response, exchange.is_head, server.clock());
    let is_empty = exchange.ends_with_head(&response);
    let summary = response.summary();
    server.observers.will_send(&mut exchange.record, &response);
    let mut record = ResponseRecord::complete(summary, 0);
    let ended = match (respond.send_response(head, is_empty), in_one_frame(response.body)) {
        (Ok(_), _) if is_empty => Ended::Answered,
        (Ok(mut stream), Ok(body)) => {
            stream.reserve_capacity(body.len());
            if stream.capacity() < body.len() {
                // h2 would keep the body for a client that does not read.
                return Progress::Waiting(Unfinished {
                    stream,
                    body: Body::Bytes(body),
                    record,
                    exchange,
                });
            }
            let body_bytes = body.len() as u64;
            match exchange.backlog.add(body.len()).map(|()| stream.send_data(body, true)) {
                Ok(Ok(())) => {
                    record.body_bytes = body_bytes;
                    Ended::Answered
                }
                Ok(Err(_)) => {
                    record = ResponseRecord::cut(summary, 0, true);
                    Ended::ResetByClient
                }
                Err(_) => {
                    record = ResponseRecord::cut(summary, 0, true);
                    stream.send_reset(Reason::ENHANCE_YOUR_CALM);
                    Ended::Cut
                }
            }
        }
        (Ok(stream), Err(body)) => {
            return Progress::Waiting(Unfinished { stream, body, record, exchange });
        }
        // The client has reset the stream in the meantime.
        (Err(_), _) => {
            record = ResponseRecord::cut(summary, 0, false);
            Ended::ResetByClient
        }
    };
    exchange.end(server, record);
    Progress::Ended(ended)
}

/// Returns a body that is in memory and fits one frame as one piece. A frame for each of many
/// pieces would cost more than copying them.
fn in_one_frame(body: Body) -> Result<Bytes, Body> {
    if body.length().is_none_or(|length| length > ONE_FRAME_BYTES as u64) {
        return Err(body);
    }
    match body {
        Body::Bytes(bytes) => Ok(bytes),
        Body::Segments(segments) => Ok(Bytes::from(segments.concat())),
        other => Err(other),
    }
}

impl Unfinished {
    /// Sends the body at the pace of its reader.
    pub(super) async fn finish<H>(self, server: &Server<H>) -> Ended {
        let Self { stream, body, mut record, mut exchange } = self;
        let pace = Pace::new(server.deadlines.writing);
        let mut sending = SendingBody {
            stream,
            deadlines: &server.deadlines,
            pace,
            sent: 0,
            held: 0,
            exchange: &exchange,
        };
        let result = match body {
            Body::Bytes(bytes) => sending.owned(bytes, true).await,
            Body::Segments(segments) => sending.segments(segments).await,
            Body::File(range) => sending.file(range).await,
            Body::Stream(stream) => sending.stream(stream).await,
            // The head promised a body that is missing, so the stream cannot end well.
            Body::Withheld(_) | Body::Empty | Body::Tunnel(_) => Err(Ended::Cut),
        };
        if matches!(result, Err(Ended::Cut)) {
            sending.stream.send_reset(Reason::INTERNAL_ERROR);
        }
        record.body_bytes = sending.sent;
        record.is_cut = result.is_err();
        exchange.end(server, record);
        result.err().unwrap_or(Ended::Answered)
    }
}

/// A response body that is being sent.
struct SendingBody<'a> {
    stream: SendStream<Bytes>,
    deadlines: &'a Deadlines,
    pace: Pace,
    sent: u64,
    /// Number of bytes that are still to be handed over and have no other owner.
    held: u64,
    exchange: &'a Http2Exchange,
}

impl SendingBody<'_> {
    /// Sends `bytes`. They are counted for the client while they wait, unless the store has them
    /// too.
    async fn owned(&mut self, bytes: Bytes, last: bool) -> Result<(), Ended> {
        self.held = if bytes.is_unique() { bytes.len() as u64 } else { 0 };
        self.bytes(bytes, last).await
    }

    /// Sends `bytes`; `last` ends the stream.
    async fn bytes(&mut self, mut bytes: Bytes, last: bool) -> Result<(), Ended> {
        debug_assert!(!last || !bytes.is_empty(), "nothing would end the stream");
        while !bytes.is_empty() {
            let room = self.room(bytes.len().min(PIECE_BYTES)).await?;
            let piece = bytes.split_to(room.min(bytes.len()));
            self.hand_over(piece, last && bytes.is_empty())?;
        }
        Ok(())
    }

    async fn segments(&mut self, segments: Vec<Bytes>) -> Result<(), Ended> {
        let last = segments.iter().rposition(|segment| !segment.is_empty());
        self.held =
            segments.iter().filter(|segment| segment.is_unique()).map(|s| s.len() as u64).sum();
        for (index, segment) in segments.into_iter().enumerate() {
            self.bytes(segment, Some(index) == last).await?;
        }
        Ok(())
    }

    /// Reads a piece whenever the client has room for it.
    async fn file(&mut self, range: FileRange) -> Result<(), Ended> {
        let length = range.length;
        let mut pieces = FilePieces::new(range);
        while self.sent < length {
            let room = self.room(PIECE_BYTES).await?;
            let Ok(Some(piece)) = pieces.next(room) else { return Err(Ended::Cut) };
            let last = self.sent + piece.len() as u64 >= length;
            debug_assert!(self.sent + piece.len() as u64 <= length, "more than {length} bytes");
            self.hand_over(piece, last)?;
        }
        Ok(())
    }

    /// Asks the source for more whenever the client has room for some bytes.
    async fn stream(&mut self, mut source: Box<dyn BodyStream>) -> Result<(), Ended> {
        let expected = source.length();
        let may_have_trailers = source.may_have_trailers();
        loop {
            self.room(1).await?;
            let chunk = poll_fn(|context| {
                if self.stream.poll_reset(context).is_ready() {
                    return Poll::Ready(Err(Ended::ResetByClient));
                }
                source.poll_chunk(context).map(Ok)
            });
            match chunk.await? {
                Some(Ok(chunk)) => {
                    let total = self.sent + chunk.len() as u64;
                    if expected.is_some_and(|expected| total > expected) {
                        return Err(Ended::Cut);
                    }
                    let is_last = expected == Some(total) && !may_have_trailers;
                    self.owned(chunk, is_last).await?;
                    if is_last {
                        return Ok(());
                    }
                }
                None if expected.is_none_or(|expected| self.sent == expected) => {
                    return match source.take_trailers() {
                        Some(trailers) if !trailers.is_empty() => self
                            .stream
                            .send_trailers(trailers.into_fields())
                            .map_err(|_| Ended::ResetByClient),
                        _ => self.hand_over(Bytes::new(), true),
                    };
                }
                None | Some(Err(_)) => return Err(Ended::Cut),
            }
        }
    }

    /// Waits until the client has room. Returns for how many bytes, at most `wanted`.
    async fn room(&mut self, wanted: usize) -> Result<usize, Ended> {
        self.stream.reserve_capacity(wanted);
        let stream = &mut self.stream;
        let mut capacity = poll_fn(|context| match stream.capacity() {
            0 => match stream.poll_capacity(context) {
                Poll::Ready(Some(Ok(capacity))) => Poll::Ready(Ok(capacity)),
                Poll::Ready(Some(Err(_)) | None) => Poll::Ready(Err(Ended::ResetByClient)),
                Poll::Pending => Poll::Pending,
            },
            capacity => Poll::Ready(Ok(capacity)),
        });
        // Usually there is room, and no timer is needed.
        let now =
            poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut capacity).poll(context))).await;
        match now {
            Poll::Ready(capacity) => capacity,
            Poll::Pending => {
                let share = &self.exchange.share;
                let _held = share.reserve(Resource::Memory, self.held).map_err(|_| Ended::Cut)?;
                within(self.deadlines, &mut self.pace, capacity).await.unwrap_or(Err(Ended::Cut))
            }
        }
    }

    fn hand_over(&mut self, bytes: Bytes, last: bool) -> Result<(), Ended> {
        let length = bytes.len() as u64;
        self.held = self.held.saturating_sub(length);
        self.exchange.backlog.add(bytes.len()).map_err(|_| Ended::Cut)?;
        self.stream.send_data(bytes, last).map_err(|_| Ended::ResetByClient)?;
        self.sent += length;
        self.pace.moved(length, self.deadlines.clock.now());
        Ok(())
    }
}
