//! One request: asks the handler, and sends the response at once if it is short and in memory.
//! Otherwise its stream is opened. A response that must be waited for becomes a task.

use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use bytes::Bytes;
use http::{Method, StatusCode};
use kirin_client_bytes::ClientShare;
use kirin_h2::Reason;
use kirin_h2::hpack::FieldBuffer;
use kirin_http::body::{Body, BodyStream};
use kirin_http::client_watch::ClientWatch;
use kirin_http::handler::{Answer, Handler, Later, Origin};
use kirin_http::informational::Informational;
use kirin_http::pace::Pace;
use kirin_http::request::{BodyLength, Reject, RequestHead};
use kirin_http::request_body::RequestBody;
use kirin_http::request_id::RequestId;
use kirin_http::request_scope::{InRequest, RequestScope};
use kirin_http::response::Response;

use super::body::Http2Source;
use super::connection::{Engine, GATHERED_BYTES, Http2Connection};
use super::head::{Http2Head, refused_line};
use super::outgoing::{Http2Exchange, Outgoing, OutgoingBody, SourcePiece, append_file};
use super::responder::StreamClient;
use super::response::{ends_with_head, write_head};
use super::stream::StreamState;
use crate::connection::proxied;
use crate::observation::ResponseRecord;
use crate::server::Server;

/// A body of up to this size is sent at once if the client has room for it. It fits one frame.
const AT_ONCE_BYTES: u64 = kirin_h2::FRAME_BYTES as u64;

/// The most streams of a connection that are tasks. A stream that the client has reset may go on as
/// a task until its application has answered.
const MOST_TASKS: usize = 256;

/// The properties of a request that decide how its response is sent.
#[derive(Clone, Copy)]
struct RequestKind {
    is_head: bool,
    /// Whether it opens a WebSocket (RFC 8441).
    is_websocket: bool,
}

impl RequestKind {
    /// Returns the response, or an error instead of one that this request cannot have.
    fn suitable(self, response: Response) -> Response {
        // HTTP/2 has no Upgrade, so no client has asked for that (RFC 9113 section 8.6).
        if matches!(response.body, Body::Tunnel(_)) || response.status.is_informational() {
            return Response::error(StatusCode::BAD_GATEWAY);
        }
        // Any 2xx would say that the WebSocket is open (RFC 8441 section 5).
        if self.is_websocket && response.status.is_success() {
            return Response::error(StatusCode::NOT_IMPLEMENTED);
        }
        response
    }
}

/// A request whose response must be waited for.
struct Unanswered<H> {
    later: Later,
    body: BodyLength,
    expects_continue: bool,
    kind: RequestKind,
    id: RequestId,
    exchange: Http2Exchange<H>,
}

impl<H: Handler> Http2Connection<H> {
    /// Answers a request, whose fields are in `fields`.
    pub(super) fn begin(
        self: &Rc<Self>,
        server: &Rc<Server<H>>,
        (stream, ended, is_too_large): (u32, bool, bool),
        fields: &FieldBuffer,
    ) {
        server.counters.http2_streams.add();
        self.io.set_deadlines(&server.deadlines);
        let head = if is_too_large {
            Err(Reject::HeadTooLarge)
        } else {
            Http2Head::read(fields, ended, self.io.is_secure, &server.limits.head)
        };
        let head = match head {
            Ok(head) => head,
            Err(reject) => return self.refuse(server, stream, ended, reject, fields),
        };
        let lines = head.field_lines();
        let request = head.as_request(&lines);
        let kind = RequestKind {
            is_head: request.method == Method::HEAD,
            is_websocket: head.is_websocket,
        };
        proxied::with_origin(server, &self.io, &request, |request, origin| {
            self.answer(server, (stream, ended, kind), request, origin);
        });
    }

    fn answer(
        self: &Rc<Self>,
        server: &Rc<Server<H>>,
        (stream, ended, kind): (u32, bool, RequestKind),
        request: &RequestHead<'_>,
        origin: Origin<'_>,
    ) {
        let started = server.observers.begin();
        let scope = RequestScope::enter(origin.notes.id());
        let answer = server.handler.answer(request, origin);
        drop(scope);
        let kept = || Http2Exchange {
            server: Rc::clone(server),
            record: server.observers.record(started, request, origin),
            share: server.share(origin.peer),
            head: None,
        };
        let id = origin.notes.id();
        let later = match answer {
            Answer::Now(response) => {
                let mut response = kind.suitable(response);
                response.add_request_id(id);
                let mut engine = self.engine.borrow_mut();
                if !ended {
                    let state = StreamState::new(stream, false);
                    engine.open(Rc::clone(&state));
                    state.drop_incoming(self, &mut engine);
                }
                if let Some(bytes) =
                    send_at_once(&mut engine, stream, &mut response, kind.is_head, server)
                {
                    let now = server.clock().time();
                    server.observers.end_at_once(started, request, origin, &response, bytes, now);
                    if let Some(state) = engine.state(stream).cloned() {
                        state.end_response(self, &mut engine);
                    }
                    return;
                }
                let state = self.opened(&mut engine, stream, ended);
                let mut exchange = kept();
                server.observers.will_send(&mut exchange.record, &response);
                let source = self.hand_over(&mut engine, &state, response, exchange);
                drop(engine);
                if let Some(source) = source {
                    let (connection, stream) = (Rc::clone(self), Rc::clone(&state));
                    self.work(&state, id, async move { connection.feed(&stream, source).await });
                }
                return;
            }
            Answer::Later(later) => later,
        };
        let mut exchange = kept();
        let state = self.opened(&mut self.engine.borrow_mut(), stream, ended);
        if self.tasks.get() >= MOST_TASKS {
            self.engine.borrow_mut().reset(stream, Reason::RefusedStream);
            exchange.end(&state, ResponseRecord::cut(Response::no_room().summary(), 0, false));
            return;
        }
        let later = match exchange.share.reserve_head(request.len_bytes()) {
            Ok(reserved) => {
                exchange.head = reserved;
                later
            }
            Err(_) => Box::new(|_| Box::pin(async { Response::no_room() }) as _),
        };
        let unanswered = Unanswered {
            later,
            body: request.body,
            expects_continue: request.expects_continue,
            kind,
            id: id.clone(),
            exchange,
        };
        let (connection, stream) = (Rc::clone(self), Rc::clone(&state));
        self.work(&state, id, async move { connection.answer_later(&stream, unanswered).await });
    }

    /// Answers a request that is not acceptable. Unlike in HTTP/1, it is clear where the next
    /// request begins, so that the connection stays open.
    fn refuse(
        &self,
        server: &Rc<Server<H>>,
        stream: u32,
        ended: bool,
        reject: Reject,
        fields: &FieldBuffer,
    ) {
        tracing::debug!(peer = %self.io.peer, %reject, "request refused");
        server.counters.count_reject(reject);
        let record = server.observers.unreadable(self.io.client_peer(), &refused_line(fields));
        let share = ClientShare::default();
        let exchange = Http2Exchange { server: Rc::clone(server), record, share, head: None };
        let mut engine = self.engine.borrow_mut();
        let state = self.opened(&mut engine, stream, ended);
        self.respond(&mut engine, &state, Response::error(reject.status()), false, exchange);
    }

    /// Sends a response on an open stream, or hands its body over. Returns a body that a task must
    /// bring.
    fn respond(
        &self,
        engine: &mut Engine<H>,
        state: &Rc<StreamState<H>>,
        mut response: Response,
        is_head: bool,
        mut exchange: Http2Exchange<H>,
    ) -> Option<Box<dyn BodyStream>> {
        let server = Rc::clone(&exchange.server);
        server.observers.will_send(&mut exchange.record, &response);
        match send_at_once(engine, state.id, &mut response, is_head, &server) {
            Some(bytes) => {
                exchange.end(state, ResponseRecord::complete(response.summary(), bytes));
                state.end_response(self, engine);
                None
            }
            None => self.hand_over(engine, state, response, exchange),
        }
    }

    /// Returns the state of a stream, which is opened if it is not open yet.
    fn opened(&self, engine: &mut Engine<H>, stream: u32, ended: bool) -> Rc<StreamState<H>> {
        if let Some(state) = engine.state(stream) {
            return Rc::clone(state);
        }
        let state = StreamState::new(stream, ended);
        engine.open(Rc::clone(&state));
        state
    }

    /// Hands the body of a response over, whose head was sent. Returns a body that a task must
    /// bring.
    pub(super) fn hand_over(
        &self,
        engine: &mut Engine<H>,
        state: &Rc<StreamState<H>>,
        response: Response,
        exchange: Http2Exchange<H>,
    ) -> Option<Box<dyn BodyStream>> {
        let record = ResponseRecord::complete(response.summary(), 0);
        let (body, source) = match response.body {
            Body::Bytes(bytes) => (OutgoingBody::Pieces([bytes].into()), None),
            Body::Segments(segments) => (OutgoingBody::Pieces(segments.into()), None),
            Body::File(range) => (OutgoingBody::File(range), None),
            Body::Stream(source) => (OutgoingBody::Source(SourcePiece::default()), Some(source)),
            // The head promised a body that is missing, so the stream cannot end well.
            Body::Withheld(_) | Body::Empty | Body::Tunnel(_) => {
                engine.cut(state.id);
                exchange.end(state, ResponseRecord { is_cut: true, ..record });
                state.reset(self);
                return None;
            }
        };
        let Ok(held) = body.reserve(&exchange.share) else {
            engine.reset(state.id, Reason::EnhanceYourCalm);
            exchange.end(state, ResponseRecord { is_cut: true, ..record });
            state.reset(self);
            return None;
        };
        state.outgoing.replace(Some(Outgoing::new(body, held, record, exchange)));
        self.timed.set(self.timed.get() + 1);
        engine.set_ready(state.id, source.is_none());
        source
    }

    /// Does the work of a stream as a task. It begins when all frames that came together have been
    /// seen, so that no work is done for a request that was reset right behind its head.
    fn work(
        self: &Rc<Self>,
        state: &Rc<StreamState<H>>,
        id: &RequestId,
        work: impl Future<Output = ()> + 'static,
    ) {
        let running = Running { connection: Rc::clone(self), state: Rc::clone(state) };
        self.tasks.set(self.tasks.get() + 1);
        tokio::task::spawn_local(InRequest::new(Some(id.clone()), async move {
            let running = running;
            work.await;
            drop(running);
        }));
    }

    /// Waits for a response and sends it.
    async fn answer_later(self: &Rc<Self>, state: &Rc<StreamState<H>>, unanswered: Unanswered<H>) {
        let Unanswered { later, body, expects_continue, kind, id, exchange } = unanswered;
        let server = Rc::clone(&exchange.server);
        let client =
            Rc::new(StreamClient { connection: Rc::clone(self), stream: Rc::clone(state) });
        let body = match body {
            BodyLength::None => RequestBody::empty(),
            length => {
                let owed = expects_continue.then(|| Rc::clone(&client));
                let source = Http2Source::new(Rc::clone(self), Rc::clone(state), &server, owed);
                RequestBody::new(Box::new(source), length)
            }
        };
        let pace = Pace::new(server.deadlines.writing);
        let body = body
            .with_informational(Informational::new(Rc::clone(&client) as _, pace))
            .with_share(exchange.share.clone())
            .with_client(ClientWatch::new(client as _));
        let Some(response) = wait(later, body, state).await else {
            return;
        };
        state.is_answered.set(true);
        if kind.is_websocket && matches!(response.body, Body::Tunnel(_)) && !state.is_reset() {
            return self.tunnel(state, response, exchange).await;
        }
        let mut response = kind.suitable(response);
        response.add_request_id(&id);
        let source = if state.is_reset() {
            exchange.end(state, ResponseRecord::cut(response.summary(), 0, false));
            None
        } else {
            server.clock().now();
            let mut engine = self.engine.borrow_mut();
            self.respond(&mut engine, state, response, kind.is_head, exchange)
        };
        self.wake();
        if let Some(source) = source {
            self.feed(state, source).await;
        }
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
                state.set_task(context);
                match &*state.outgoing.borrow() {
                    Some(outgoing) if outgoing.needs_piece() => {}
                    Some(_) => return Poll::Pending,
                    None => return Poll::Ready(None),
                }
                // A client that has no room gets nothing more from the source.
                if self.engine.borrow().room(state.id) == 0 {
                    return Poll::Pending;
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
fn send_at_once<H>(
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
            let filled = engine.fill(stream, bytes, |out, _| {
                segments.iter().for_each(|segment| out.extend_from_slice(segment));
                Ok(true)
            });
            debug_assert_eq!(filled.ok(), Some(bytes), "all of it fits");
        }
        Body::File(range) => {
            // A file that cannot be read is left to the connection, which cuts the stream.
            let mut read = range.clone();
            engine
                .fill(stream, bytes, |out, most| match append_file(&mut read, out, most)? {
                    true => Ok(true),
                    false => Err(std::io::ErrorKind::UnexpectedEof.into()),
                })
                .ok()?;
        }
        Body::Stream(_) | Body::Withheld(_) | Body::Empty | Body::Tunnel(_) => return None,
    }
    Some(length)
}

/// Waits for the response. Returns `None` if the client has reset the stream before the work for it
/// has begun. Work that has begun is waited for, so that a worker can be given back; the watch over
/// the client tells it to stop early.
async fn wait<H>(later: Later, body: RequestBody, state: &StreamState<H>) -> Option<Response> {
    let mut start = Some((later, body));
    let mut work = None;
    poll_fn(|context| {
        state.set_task(context);
        match start.take() {
            Some(_) if state.is_reset() => return Poll::Ready(None),
            Some((later, body)) => work = Some(later(body)),
            None => {}
        }
        match &mut work {
            Some(work) => work.as_mut().poll(context).map(Some),
            None => Poll::Ready(None),
        }
    })
    .await
}

/// A stream whose work is not done. If it ends by a panic, the stream is reset.
struct Running<H> {
    connection: Rc<Http2Connection<H>>,
    state: Rc<StreamState<H>>,
}

impl<H> Drop for Running<H> {
    fn drop(&mut self) {
        let connection = &self.connection;
        connection.tasks.set(connection.tasks.get() - 1);
        if std::thread::panicking() && !self.state.is_reset() {
            // The engine may be in use where the panic began.
            if let Ok(mut engine) = connection.engine.try_borrow_mut() {
                engine.cut(self.state.id);
            }
            self.state.reset(connection);
        }
        connection.wake();
    }
}
