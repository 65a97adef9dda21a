//! One request: asks the handler, and sends the response at once if it is short and in memory.
//! Otherwise its stream is opened. A response that must be waited for becomes a task.

use std::rc::Rc;
use std::time::Instant;

use http::Method;
use kirin_h2::Reason;
use kirin_h2::hpack::FieldBuffer;
use kirin_http::body::Body;
use kirin_http::client_watch::ClientWatch;
use kirin_http::handler::{Answer, Handler, Later, Origin};
use kirin_http::informational::Informational;
use kirin_http::pace::Pace;
use kirin_http::request::{BodyLength, Reject, RequestHead, Version};
use kirin_http::request_body::RequestBody;
use kirin_http::request_id::RequestId;
use kirin_http::request_scope::{InRequest, RequestScope};
use kirin_http::response::Response;

use super::body::Http2Source;
use super::connection::{Engine, Http2Connection};
use super::responder::StreamClient;
use super::responding::send_at_once;
use super::stream::StreamState;
use crate::connection::proxied;
use crate::observation::ResponseRecord;
use crate::server::Server;
use crate::streams::exchange::{Exchange, Unanswered};
use crate::streams::head::{StreamHead, refused_line};
use crate::streams::kind::RequestKind;
use crate::streams::stream_task::{MOST_TASKS, wait};

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
            {
                let of_connection = (ended, self.io.is_secure);
                StreamHead::read(fields, Version::Http2, of_connection, &server.limits.head)
            }
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
        proxied::with_origin(server, &self.io.facts(), &request, |request, origin| {
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
        match answer {
            Answer::Now(response) => {
                self.answer_now(
                    server,
                    (stream, ended, kind),
                    response,
                    (request, origin),
                    started,
                );
            }
            Answer::Later(later) => {
                let exchange = Exchange::new(server, started, request, origin);
                self.begin_later(stream, ended, later, (request, origin, kind), exchange);
            }
        }
    }

    /// Sends a response that the handler gave at once.
    fn answer_now(
        self: &Rc<Self>,
        server: &Rc<Server<H>>,
        (stream, ended, kind): (u32, bool, RequestKind),
        response: Response,
        (request, origin): (&RequestHead<'_>, Origin<'_>),
        started: Option<Instant>,
    ) {
        let id = origin.notes.id();
        let mut response = kind.suitable(response);
        response.add_request_id(id);
        let sent = {
            let mut engine = self.engine.borrow_mut();
            if !ended {
                self.opened(&mut engine, stream, ended).drop_incoming(self, &mut engine);
            }
            let sent = send_at_once(&mut engine, stream, &mut response, kind.is_head, server);
            if sent.is_some()
                && let Some(state) = engine.state(stream).cloned()
            {
                state.end_response(self, &mut engine);
            }
            sent
        };
        if let Some(bytes) = sent {
            let now = server.clock().time();
            server.observers.end_at_once(started, request, origin, &response, bytes, now);
            return;
        }
        let state = self.opened(&mut self.engine.borrow_mut(), stream, ended);
        let mut exchange = Exchange::new(server, started, request, origin);
        server.observers.will_send(&mut exchange.record, &response);
        let source = self.hand_over(&state, response, exchange);
        if let Some(source) = source {
            let (connection, stream) = (Rc::clone(self), Rc::clone(&state));
            self.work(&state, id, async move { connection.feed(&stream, source).await });
        }
    }

    /// Begins the task of a request whose response must be waited for.
    fn begin_later(
        self: &Rc<Self>,
        stream: u32,
        ended: bool,
        later: Later,
        (request, origin, kind): (&RequestHead<'_>, Origin<'_>, RequestKind),
        exchange: Exchange<H>,
    ) {
        let id = origin.notes.id();
        let state = self.opened(&mut self.engine.borrow_mut(), stream, ended);
        if self.tasks.get() >= MOST_TASKS {
            self.engine.borrow_mut().reset(stream, Reason::RefusedStream);
            exchange.end(0, ResponseRecord::cut(Response::no_room().summary(), 0, false));
            return;
        }
        let unanswered = Unanswered::new(later, (request, origin, kind), exchange);
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
        let record =
            server.observers.unreadable(self.io.client_peer(), &refused_line(fields, "HTTP/2.0"));
        let exchange = Exchange::refused(server, record);
        let state = self.opened(&mut self.engine.borrow_mut(), stream, ended);
        self.respond(&state, Response::error(reject.status()), false, exchange);
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
        let Some(mut response) = wait(later, body, &state.task, || state.is_reset()).await else {
            return;
        };
        state.is_answered.set(true);
        if state.is_reset() {
            let received = state.received_bytes.get();
            return exchange.end(received, ResponseRecord::cut(response.summary(), 0, false));
        }
        if kind.is_websocket && matches!(response.body, Body::Tunnel(_)) {
            return self.tunnel(state, response, exchange).await;
        }
        response = kind.suitable(response);
        response.add_request_id(&id);
        server.clock().now();
        let source = self.respond(state, response, kind.is_head, exchange);
        self.wake();
        if let Some(source) = source {
            self.feed(state, source).await;
        }
    }
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
