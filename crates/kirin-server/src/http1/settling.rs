//! The part of a request that must wait: a response of an application, a large file, a slow reader.
//!
//! It takes place in a box of its own, so that an idle connection does not carry its size.

use std::future::poll_fn;
use std::io;
use std::rc::Rc;
use std::task::Poll;
use std::time::Instant;

use kirin_client_bytes::{ClientShare, Reservation};
use kirin_http::client_watch::ClientWatch;
use kirin_http::handler::{Handler, Later, Origin};
use kirin_http::informational::Informational;
use kirin_http::pace::Pace;
use kirin_http::request::{BodyLength, RequestHead, Version};
use kirin_http::request_body::BodyError;
use kirin_http::request_id::RequestId;
use kirin_http::response::Response;

use crate::connection::io::{ConnectionPhase, Io};
use crate::http1::body;
use crate::http1::memory_response::{is_in_memory, write_response};
use crate::http1::output::Unsent;
use crate::http1::response_writer::Http1Exchange;
use crate::http1::sending;
use crate::observation::{RequestRecord, ResponseRecord};
use crate::server::Server;

/// A response that had to be waited for is written through the loop's own buffer up to this size. A
/// socket takes so many bytes at once.
const AT_ONCE_BYTES: u64 = 16 * 1024;

/// An unwanted request body is read and dropped up to this size, to keep the connection.
const SKIPPED_BODY_BYTES: u64 = 64 * 1024;

/// The work that follows the gathered responses.
pub(super) enum Work {
    /// None. The connection continues with the next request.
    Nothing,
    /// The last response has been written. The connection closes.
    Close,
    /// A request is refused. The rest of the input is not parsed.
    Refused,
    /// Send this response.
    Send(Response, Box<PendingRequest>),
    /// Wait for the response.
    Later(Later, Box<PendingRequest>),
}

impl Work {
    /// Returns the id of the request that it is for.
    pub(super) fn request_id(&self) -> Option<RequestId> {
        match self {
            Self::Send(_, request) | Self::Later(_, request) => Some(request.id.clone()),
            Self::Nothing | Self::Close | Self::Refused => None,
        }
    }
}

/// The parts of a request that are kept until its response has been written. Boxed, because it
/// moves from one step to the next.
pub(super) struct PendingRequest {
    exchange: Http1Exchange,
    /// The id that Kirin's own answer to a failure names.
    id: RequestId,
    body: BodyLength,
    expects_continue: bool,
    record: Option<RequestRecord>,
    /// The client for which bytes are counted until the response has been sent.
    pub(super) share: ClientShare,
    /// Counts the copy of a long head.
    pub(super) head: Option<Reservation>,
}

impl PendingRequest {
    /// Returns the parts of a request that are kept.
    pub(super) fn kept<H>(
        server: &Server<H>,
        exchange: Http1Exchange,
        head: &RequestHead<'_>,
        origin: Origin<'_>,
        started: Option<Instant>,
    ) -> Box<Self> {
        Box::new(Self {
            exchange,
            id: origin.notes.id().clone(),
            body: head.body,
            expects_continue: head.expects_continue,
            record: server.observers.record(started, head, origin),
            share: server.share(origin.peer),
            head: None,
        })
    }
}

/// Sends the bytes that the socket did not take, then does the work that must wait. Returns whether
/// the connection continues.
pub(super) async fn settle<H: Handler>(
    server: Rc<Server<H>>,
    io: &Rc<Io>,
    unsent: Option<Unsent>,
    work: Work,
) -> io::Result<bool> {
    let server = &*server;
    io.set_deadlines(&server.deadlines);
    io.phase.set(ConnectionPhase::Busy);
    let share = match &work {
        Work::Send(_, request) | Work::Later(_, request) => request.share.clone(),
        Work::Nothing | Work::Close | Work::Refused => server.share(io.client_peer()),
    };
    io.share.replace(share);
    if let Some(mut unsent) = unsent {
        sending::flush(io, &mut unsent).await?;
    }
    let refused = matches!(work, Work::Refused);
    let persistent = match work {
        Work::Nothing => true,
        Work::Close | Work::Refused => false,
        Work::Send(mut response, mut request) => {
            match Box::pin(skip_body(io, &request)).await {
                Ok(skipped) => request.exchange.persistent &= skipped,
                Err(error) => {
                    request.exchange.persistent = false;
                    if matches!(error, BodyError::Chunked(_)) {
                        response = Response::error(error.status());
                    }
                }
            }
            send(server, io, response, request).await?
        }
        Work::Later(later, mut request) => {
            io.clear_deadline();
            let mut body = body::receive(io, request.body, request.expects_continue);
            let is_current = request.exchange.version == Version::Http11;
            io.takes_informational.set(is_current);
            let client = ClientWatch::new(Rc::clone(io) as _);
            body = body.with_client(client.clone()).with_share(request.share.clone());
            if is_current {
                body = body.with_informational(Informational::new(
                    Rc::clone(io) as _,
                    Pace::new(io.deadlines().writing),
                ));
            }
            let mut response = tokio::select! {
                biased;
                response = later(body) => response,
                // The program stops, and does not wait for a response that no client will get.
                () = server.state.stops_without(&client) => {
                    tracing::info!(address = %server.local, "the client of a request has gone: it is not waited for");
                    return Ok(false);
                }
            };
            response.add_request_id(&request.id);
            request.exchange.persistent &= io.body_finished.get() && !server.state.ends(io);
            send(server, io, response, request).await?
        }
    };
    if persistent {
        io.phase.set(ConnectionPhase::Idle);
        io.set_deadline(server.deadlines.keep_alive);
    } else if refused {
        sending::linger_shortly(io).await;
    } else if !io.body_finished.get() || !io.unread.borrow().is_empty() || io.has_more() {
        sending::linger(io).await;
    } else {
        io.end_tls();
    }
    Ok(persistent)
}

/// Writes a response of any kind.
async fn send<H>(
    server: &Server<H>,
    io: &Io,
    response: Response,
    mut request: Box<PendingRequest>,
) -> io::Result<bool> {
    server.observers.will_send(&mut request.record, &response);
    if is_in_memory(&response.body)
        && response.body.length().is_some_and(|length| length <= AT_ONCE_BYTES)
    {
        return send_at_once(server, io, response, request).await;
    }
    // Boxed, so that a waiting request does not carry the size of everything that may be sent.
    Box::pin(send_in_time(server, io, response, request)).await
}

/// Writes a response at the client's pace.
async fn send_in_time<H>(
    server: &Server<H>,
    io: &Io,
    response: Response,
    mut request: Box<PendingRequest>,
) -> io::Result<bool> {
    let summary = response.summary();
    let before = io.sent.get();
    let sent = sending::send(io, &server.state.pipes, response, &mut request.exchange).await;
    if let Some(record) = request.record {
        let mut response = match sent {
            Ok(body_bytes) => ResponseRecord::complete(summary, body_bytes),
            Err(_) => {
                // For a chunked body, this counts the framing as well, as nginx does.
                let taken = io.sent.get() - before;
                let body_bytes = taken.saturating_sub(request.exchange.head_bytes as u64);
                ResponseRecord::cut(summary, body_bytes, taken > 0)
            }
        };
        response.received_bytes = io.received_body.get();
        server.clock().now();
        server.observers.end(record, &response);
    }
    sent.map(|_| request.exchange.persistent)
}

/// Writes a small response through the loop's own buffer, like a response that needed no waiting.
async fn send_at_once<H>(
    server: &Server<H>,
    io: &Io,
    response: Response,
    mut request: Box<PendingRequest>,
) -> io::Result<bool> {
    server.clock().now();
    let mut response = Some(response);
    let unsent = poll_fn(|context| {
        let mut output = server.state.output.borrow_mut();
        if let Some(response) = response.take() {
            let body_bytes = write_response(server, &mut output, &response, &mut request.exchange);
            let flushed = output.flush(io, context);
            if let Some(record) = request.record.take() {
                let summary = response.summary();
                let mut written = match flushed {
                    Ok(_) => ResponseRecord::complete(summary, body_bytes),
                    Err(_) => ResponseRecord::cut(summary, 0, false),
                };
                written.received_bytes = io.received_body.get();
                server.observers.end(record, &written);
            }
            return Poll::Ready(flushed);
        }
        Poll::Ready(output.flush(io, context))
    });
    if let Some(mut unsent) = unsent.await? {
        sending::flush(io, &mut unsent).await?;
    }
    Ok(request.exchange.persistent)
}

/// Discards a small body that the handler did not read. Returns whether the next request can be
/// found behind it.
async fn skip_body(io: &Rc<Io>, request: &PendingRequest) -> Result<bool, BodyError> {
    // A client that was not told to continue may or may not send the body, so the next bytes can be
    // either.
    if request.expects_continue {
        io.body_finished.set(false);
        return Ok(false);
    }
    let mut body = body::receive(io, request.body, false);
    body.limit(SKIPPED_BODY_BYTES);
    while body.chunk().await?.is_some() {}
    Ok(true)
}
