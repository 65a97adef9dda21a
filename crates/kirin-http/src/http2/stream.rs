//! One stream: a request, its answer, and what a slow reader or one that goes away does to it.

use super::body::within;
use super::head::Head;
use super::{Http2Source, Resets, response};
use crate::access_log::{RequestRecord, ResponseRecord};
use crate::body::{Body, BodyStream, FileRange};
use crate::client_watch::ClientWatch;
use crate::file_pieces::FilePieces;
use crate::handler::{Answer, Handler, Later};
use crate::informational::Informational;
use crate::io::Io;
use crate::pace::Pace;
use crate::proxied;
use crate::request::{BodyLength, Reject};
use crate::request_body::RequestBody;
use crate::response::Response;
use crate::server::{Deadlines, Server};
use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{Method, Request, StatusCode};
use std::cell::{Cell, RefCell};
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

/// A body of up to this size is handed over without asking what the client has room for: it is one frame.
const UNASKED_BYTES: usize = 16 * 1024;

/// A request body that nobody wanted is read and dropped up to this size.
const SKIPPED_BODY_BYTES: usize = 64 * 1024;

/// Bytes of a larger one that are handed over at once.
const PIECE_BYTES: usize = 32 * 1024;

/// The sending half of a stream before its response has begun; the body of the request sends informational responses by it.
pub(crate) type Responder = Rc<RefCell<SendResponse<Bytes>>>;

/// How a stream has ended.
pub(super) enum Ended {
    /// All of the response has been handed over.
    Answered,
    /// The client wants it no more; counted where that was noticed.
    ResetByClient,
    /// The response could not be finished: its source failed, or the client read nothing for too long.
    Cut,
}

/// What is kept of a request while its response is on the way.
struct Exchange {
    is_head: bool,
    record: Option<RequestRecord>,
}

/// Answers one request.
pub(super) async fn answer<H: Handler>(
    server: &Server<H>,
    io: &Io,
    request: Request<RecvStream>,
    respond: SendResponse<Bytes>,
    resets: &Resets,
) -> Ended {
    let responder = Rc::new(RefCell::new(respond));
    let (parts, received) = request.into_parts();
    let is_head = parts.method == Method::HEAD;
    let ended = received.is_end_stream();
    let head = match Head::read(parts, ended, server.tls.is_some(), &server.limits.head) {
        Ok(head) => head,
        Err(reject) => return refuse(server, io, &responder, reject, is_head).await,
    };
    let body_length = head.body;
    let expects_continue = head.expects_continue;
    let (answer, record) = ask(server, io, &head);
    drop(head);
    let exchange = Exchange { is_head, record };
    let is_answered = Rc::new(Cell::new(false));
    let response = match answer {
        Answer::Now(response) => {
            if !skip(received, expects_continue, &server.deadlines).await {
                return Ended::ResetByClient;
            }
            response
        }
        Answer::Later(later) => {
            let body = match body_length {
                BodyLength::None => RequestBody::empty(),
                length => {
                    let owed = expects_continue.then(|| Rc::clone(&responder));
                    let source = Http2Source::new(received, &server.deadlines, owed, &is_answered);
                    RequestBody::http2(source, length)
                }
            };
            let is_gone = Rc::new(Cell::new(false));
            let body = body
                .with_informational(Informational::http2(&responder))
                .with_client(ClientWatch::http2(&is_gone));
            match wait(later, body, &responder, &is_gone, resets).await {
                Some(response) => response,
                None => return Ended::ResetByClient,
            }
        }
    };
    is_answered.set(true);
    let ended = send(server, &responder, response, exchange).await;
    if matches!(ended, Ended::ResetByClient) {
        resets.count_reset();
    }
    ended
}

/// Has the handler answer.
fn ask<H: Handler>(server: &Server<H>, io: &Io, head: &Head) -> (Answer, Option<RequestRecord>) {
    let fields = head.field_lines();
    let request = head.as_request(&fields);
    proxied::with_origin(server, io, &request, |request, origin| {
        let record = server.log.as_ref().map(|log| log.begin(origin.peer, request, Instant::now()));
        (server.handler.answer(request, origin), record)
    })
}

/// Answers what is no acceptable request. Unlike in HTTP/1 it is clear where the next one begins, so that the connection
/// stays.
async fn refuse<H>(
    server: &Server<H>,
    io: &Io,
    responder: &Responder,
    reject: Reject,
    is_head: bool,
) -> Ended {
    tracing::debug!(peer = %io.peer, %reject, "request refused");
    let record = server.log.as_ref().map(|_| RequestRecord::unreadable(io.client_peer()));
    send(server, responder, Response::error(reject.status()), Exchange { is_head, record }).await
}

/// Waits for the response; none when the client wants it no more. Work that has begun is waited for all the same, so that a
/// worker can be given back; `is_gone` keeps it from going further than it must.
async fn wait(
    later: Later,
    body: RequestBody,
    responder: &Responder,
    is_gone: &Cell<bool>,
    resets: &Resets,
) -> Option<Response> {
    let mut start = Some((later, body));
    let mut work = None;
    poll_fn(|context| {
        if !is_gone.get() && responder.borrow_mut().poll_reset(context).is_ready() {
            is_gone.set(true);
            resets.count_reset();
        }
        match start.take() {
            Some(_) if is_gone.get() => return Poll::Ready(None),
            Some((later, body)) => work = Some(later(body)),
            None => {}
        }
        match &mut work {
            Some(work) => work.as_mut().poll(context).map(|response| (!is_gone.get()).then_some(response)),
            None => Poll::Ready(None),
        }
    })
    .await
}

/// Drops a small body that no place wanted, as HTTP/1 does, so that what is wrong with it is found before the answer. Returns
/// whether there is somebody to answer.
async fn skip(mut received: RecvStream, expects_continue: bool, deadlines: &Deadlines) -> bool {
    let mut pace = Pace::new(deadlines.reading);
    let mut skipped = 0;
    // A client that was not told to continue sends nothing.
    while !expects_continue && skipped <= SKIPPED_BODY_BYTES {
        let data = poll_fn(|context| received.poll_data(context));
        match within(deadlines, &mut pace, data).await {
            Some(Some(Ok(data))) => {
                skipped += data.len();
                pace.moved(data.len() as u64, deadlines.clock.now());
                if received.flow_control().release_capacity(data.len()).is_err() {
                    return false;
                }
            }
            Some(None) => return true,
            Some(Some(Err(_))) | None => return false,
        }
    }
    true
}

/// Sends a response of any kind and writes its log line.
async fn send<H>(server: &Server<H>, responder: &Responder, response: Response, exchange: Exchange) -> Ended {
    // There is no Upgrade in HTTP/2, so nobody asked for one (RFC 9113 section 8.6).
    let is_switch = matches!(response.body, Body::Tunnel(_)) || response.status.is_informational();
    let response = if is_switch { Response::error(StatusCode::BAD_GATEWAY) } else { response };
    let (status, place) = (response.status, response.place);
    let mut sent = 0;
    let ended = send_parts(server, responder, response, exchange.is_head, &mut sent).await;
    if let (Some(log), Some(record)) = (&server.log, &exchange.record) {
        server.clock().now();
        log.end(record, &ResponseRecord { status, body_bytes: sent, place }, server.clock().time());
    }
    ended
}

async fn send_parts<H>(
    server: &Server<H>,
    responder: &Responder,
    response: Response,
    is_head: bool,
    sent: &mut u64,
) -> Ended {
    let head = response::head(&response, server.clock());
    let bodiless = is_head || Response::is_bodiless_status(response.status);
    let is_empty = bodiless || response.body.length() == Some(0);
    let stream = match responder.borrow_mut().send_response(head, is_empty) {
        Ok(stream) => stream,
        // The client has reset it meanwhile.
        Err(_) => return Ended::ResetByClient,
    };
    if is_empty {
        return Ended::Answered;
    }
    let mut sending =
        Sending { stream, deadlines: &server.deadlines, pace: Pace::new(server.deadlines.writing), sent };
    let result = match response.body {
        Body::Bytes(bytes) => sending.bytes(bytes, true).await,
        Body::Segments(segments) => sending.segments(segments).await,
        Body::File(range) => sending.file(range).await,
        Body::Stream(stream) => sending.stream(stream).await,
        // What was promised and is not there cannot end well.
        Body::Withheld(_) | Body::Empty | Body::Tunnel(_) => Err(Ended::Cut),
    };
    match result {
        Ok(()) => Ended::Answered,
        Err(ended) => {
            if matches!(ended, Ended::Cut) {
                sending.stream.send_reset(Reason::INTERNAL_ERROR);
            }
            ended
        }
    }
}

/// A response body on its way.
struct Sending<'a> {
    stream: SendStream<Bytes>,
    deadlines: &'a Deadlines,
    pace: Pace,
    sent: &'a mut u64,
}

impl Sending<'_> {
    /// Sends `bytes`; `last` ends the stream.
    async fn bytes(&mut self, mut bytes: Bytes, last: bool) -> Result<(), Ended> {
        if bytes.len() <= UNASKED_BYTES && last && *self.sent == 0 {
            return self.hand_over(bytes, true);
        }
        while !bytes.is_empty() {
            let room = self.room(bytes.len().min(PIECE_BYTES)).await?;
            let piece = bytes.split_to(room.min(bytes.len()));
            self.hand_over(piece, last && bytes.is_empty())?;
        }
        Ok(())
    }

    async fn segments(&mut self, segments: Vec<Bytes>) -> Result<(), Ended> {
        let last = segments.iter().rposition(|segment| !segment.is_empty());
        for (index, segment) in segments.into_iter().enumerate() {
            self.bytes(segment, Some(index) == last).await?;
        }
        Ok(())
    }

    /// A piece is read when there is room for it.
    async fn file(&mut self, range: FileRange) -> Result<(), Ended> {
        let length = range.length;
        let mut pieces = FilePieces::new(range);
        while *self.sent < length {
            let room = self.room(PIECE_BYTES).await?;
            let Ok(Some(piece)) = pieces.next(room) else { return Err(Ended::Cut) };
            let last = *self.sent + piece.len() as u64 >= length;
            self.hand_over(piece, last)?;
        }
        Ok(())
    }

    /// The source is asked for more when there is room for some.
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
                    let total = *self.sent + chunk.len() as u64;
                    if expected.is_some_and(|expected| total > expected) {
                        return Err(Ended::Cut);
                    }
                    let is_last = expected == Some(total) && !may_have_trailers;
                    self.bytes(chunk, is_last).await?;
                    if is_last {
                        return Ok(());
                    }
                }
                None if expected.is_none_or(|expected| *self.sent == expected) => {
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

    /// Waits until the client has room for up to `wanted` bytes, and for some at least.
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
        // Mostly there is room, and no need for a timer.
        let now = poll_fn(|context| Poll::Ready(std::pin::Pin::new(&mut capacity).poll(context))).await;
        match now {
            Poll::Ready(capacity) => capacity,
            Poll::Pending => {
                within(self.deadlines, &mut self.pace, capacity).await.unwrap_or(Err(Ended::Cut))
            }
        }
    }

    fn hand_over(&mut self, bytes: Bytes, last: bool) -> Result<(), Ended> {
        let length = bytes.len() as u64;
        self.stream.send_data(bytes, last).map_err(|_| Ended::ResetByClient)?;
        *self.sent += length;
        self.pace.moved(length, self.deadlines.clock.now());
        Ok(())
    }
}
