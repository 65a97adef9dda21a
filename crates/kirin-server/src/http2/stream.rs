//! One stream: a request, until its response was sent or the stream ended early.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use http::request::Parts;
use http::{Method, Request};
use kirin_client_bytes::ClientShare;
use kirin_http::client_watch::ClientWatch;
use kirin_http::handler::{Answer, Handler, Later};
use kirin_http::informational::Informational;
use kirin_http::pace::Pace;
use kirin_http::request::{BodyLength, Reject};
use kirin_http::request_body::RequestBody;
use kirin_http::request_id::RequestId;
use kirin_http::request_scope::{InRequest, RequestScope};
use kirin_http::response::Response;

use super::Resets;
use super::body::{BodyState, Http2Source, drop_rest, within};
use super::head::Http2Head;
use super::responder::{Responder, StreamReset};
use super::send::{Http2Exchange, Unfinished, start};
use super::socket::Backlog;
use crate::connection::io::Io;
use crate::connection::proxied;
use crate::limits::deadlines::Deadlines;
use crate::observation::RequestRecord;
use crate::server::Server;

/// An unwanted request body is read and dropped up to this size.
const SKIPPED_BODY_BYTES: usize = 64 * 1024;

/// The way in which a stream has ended.
pub(super) enum Ended {
    /// The complete response was handed over.
    Answered,
    /// The client has reset the stream.
    ResetByClient,
    /// The same. It was noticed and counted before the work for the stream ended.
    Abandoned,
    /// The response could not be finished: its source failed, or the client was silent for too
    /// long.
    Cut,
}

/// The result of a step that does not wait.
pub(super) enum Progress<T> {
    Ended(Ended),
    /// The rest must wait.
    Waiting(T),
}

/// The rest of a stream's work.
enum StreamRest {
    Answer(Unanswered),
    Send(Unfinished),
}

/// A request whose response or body must be waited for.
struct Unanswered {
    answer: Answer,
    respond: SendResponse<Bytes>,
    received: RecvStream,
    body: BodyLength,
    expects_continue: bool,
    exchange: Http2Exchange,
}

/// Answers one request: at once if its response is short and in memory, or else by the future.
pub(super) fn begin<H: Handler>(
    server: &Rc<Server<H>>,
    io: &Io,
    (request, mut respond): (Request<RecvStream>, SendResponse<Bytes>),
    resets: &Rc<Resets>,
    backlog: &Rc<Backlog>,
) -> Progress<impl Future<Output = Ended> + use<H>> {
    let (parts, received) = request.into_parts();
    let is_head = parts.method == Method::HEAD;
    let ended = received.is_end_stream();
    let (answer, body, expects_continue, exchange, scope) =
        match Http2Head::read(&parts, ended, io.is_secure, &server.limits.head) {
            Err(reject) => {
                let (response, record) = refuse(server, io, reject, &parts);
                let exchange = Http2Exchange::new(
                    is_head,
                    RequestId::default(),
                    record,
                    ClientShare::default(),
                    backlog,
                );
                (Answer::Now(response), BodyLength::Chunked, false, exchange, None)
            }
            Ok(head) => {
                let HandledRequest { mut answer, id, record, share } = ask(server, io, &head);
                let mut exchange = Http2Exchange::new(is_head, id.clone(), record, share, backlog);
                if let Answer::Later(_) = answer {
                    match exchange.share.reserve_head(head.bytes) {
                        Ok(reserved) => exchange._head = reserved,
                        Err(_) => answer = Answer::Now(Response::no_room()),
                    }
                }
                (answer, head.body, head.expects_continue, exchange, Some(id))
            }
        };
    let rest = match answer {
        Answer::Now(response) if ended => {
            start(server, &mut respond, response, exchange).map(StreamRest::Send)
        }
        answer => Progress::Waiting(StreamRest::Answer(Unanswered {
            answer,
            respond,
            received,
            body,
            expects_continue,
            exchange,
        })),
    };
    rest.map(|rest| {
        let (server, resets) = (Rc::clone(server), Rc::clone(resets));
        InRequest::new(scope, async move {
            match rest {
                StreamRest::Answer(unanswered) => unanswered.answer(&server, &resets).await,
                StreamRest::Send(unfinished) => unfinished.finish(&server).await,
            }
        })
    })
}

impl<T> Progress<T> {
    fn map<U>(self, change: impl FnOnce(T) -> U) -> Progress<U> {
        match self {
            Progress::Ended(ended) => Progress::Ended(ended),
            Progress::Waiting(rest) => Progress::Waiting(change(rest)),
        }
    }
}

impl Unanswered {
    async fn answer<H>(self, server: &Server<H>, resets: &Resets) -> Ended {
        let Self { answer, respond, received, body, expects_continue, mut exchange } = self;
        let responder = Rc::new(Responder::new(respond));
        let state = Rc::new(BodyState::default());
        exchange.body = Some(Rc::clone(&state));
        let mut unread = None;
        let response = match answer {
            Answer::Now(response) => {
                match skip(received, expects_continue, &server.deadlines).await {
                    Ok(rest) => {
                        unread = rest;
                        response
                    }
                    Err(ended) => return ended,
                }
            }
            Answer::Later(later) => {
                let body = match body {
                    BodyLength::None => RequestBody::empty(),
                    length => {
                        let owed = expects_continue.then(|| Rc::clone(&responder));
                        let source = Http2Source::new(received, &server.deadlines, owed, &state);
                        RequestBody::new(Box::new(source), length)
                    }
                };
                let is_gone = Rc::new(StreamReset::default());
                let pace = Pace::new(server.deadlines.writing);
                let body = body
                    .with_informational(Informational::new(Rc::clone(&responder) as _, pace))
                    .with_share(exchange.share.clone())
                    .with_client(ClientWatch::new(Rc::clone(&is_gone) as _));
                match wait(later, body, &responder, &is_gone, resets).await {
                    Some(response) => response,
                    None => return Ended::Abandoned,
                }
            }
        };
        state.is_answered.set(true);
        let begun = start(server, &mut responder.borrow_mut(), response, exchange);
        let ended = match begun {
            Progress::Ended(ended) => ended,
            Progress::Waiting(unfinished) => unfinished.finish(server).await,
        };
        if matches!(ended, Ended::Answered) {
            state.drop_unread().await;
            if let Some(unread) = unread {
                drop_rest(unread).await;
            }
        }
        ended
    }
}

/// A request that the handler has answered.
struct HandledRequest {
    answer: Answer,
    id: RequestId,
    record: Option<RequestRecord>,
    share: ClientShare,
}

/// Asks the handler for the answer.
fn ask<H: Handler>(server: &Server<H>, io: &Io, head: &Http2Head<'_>) -> HandledRequest {
    let fields = head.field_lines();
    let request = head.as_request(&fields);
    server.clock().now();
    proxied::with_origin(server, io, &request, |request, origin| {
        let started = server.observers.begin();
        let scope = RequestScope::enter(origin.notes.id());
        let answer = server.handler.answer(request, origin);
        drop(scope);
        let record = server.observers.record(started, request, origin);
        let (id, share) = (origin.notes.id().clone(), server.share(origin.peer));
        HandledRequest { answer, id, record, share }
    })
}

/// Answers a request that is not acceptable. Unlike in HTTP/1, it is clear where the next request
/// begins, so that the connection stays open.
fn refuse<H>(
    server: &Server<H>,
    io: &Io,
    reject: Reject,
    parts: &Parts,
) -> (Response, Option<RequestRecord>) {
    tracing::debug!(peer = %io.peer, %reject, "request refused");
    server.counters.count_reject(reject);
    let target = parts.uri.path_and_query().map_or("", |target| target.as_str());
    let line = format!("{} {target} HTTP/2.0", parts.method);
    let record = server.observers.unreadable(io.client_peer(), line.as_bytes());
    (Response::error(reject.status()), record)
}

/// Waits for the response. Returns `None` if the client has reset the stream. Even then it waits
/// for work that has begun, so that a worker can be given back. `is_gone` tells that work to stop
/// early.
async fn wait(
    later: Later,
    body: RequestBody,
    responder: &Responder,
    is_gone: &StreamReset,
    resets: &Resets,
) -> Option<Response> {
    let mut start = Some((later, body));
    let mut work = None;
    poll_fn(|context| {
        if !is_gone.get() && responder.borrow_mut().poll_reset(context).is_ready() {
            is_gone.set();
            resets.count_reset();
        }
        match start.take() {
            Some(_) if is_gone.get() => return Poll::Ready(None),
            Some((later, body)) => work = Some(later(body)),
            None => {}
        }
        match &mut work {
            Some(work) => {
                work.as_mut().poll(context).map(|response| (!is_gone.get()).then_some(response))
            }
            None => Poll::Ready(None),
        }
    })
    .await
}

/// Discards a small body that the handler did not read, as HTTP/1 does. So its errors are found
/// before the response. Returns the rest of a larger body.
async fn skip(
    mut received: RecvStream,
    expects_continue: bool,
    deadlines: &Deadlines,
) -> Result<Option<RecvStream>, Ended> {
    let mut pace = Pace::new(deadlines.reading);
    let mut skipped = 0;
    // A client that was not told to continue sends nothing.
    while !expects_continue && skipped <= SKIPPED_BODY_BYTES {
        let data = poll_fn(|context| received.poll_data(context));
        match within(deadlines, &mut pace, data).await {
            Some(Some(Ok(data))) => {
                skipped += data.len();
                pace.moved(data.len() as u64, deadlines.clock.now());
                received.flow_control().release_capacity(data.len()).map_err(|_| Ended::Cut)?;
            }
            Some(Some(Err(error))) if error.is_reset() && error.is_remote() => {
                return Err(Ended::ResetByClient);
            }
            Some(None) => return Ok(None),
            Some(Some(Err(_))) | None => return Err(Ended::Cut),
        }
    }
    Ok(Some(received))
}
