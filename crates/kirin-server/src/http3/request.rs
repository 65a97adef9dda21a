//! One request: reads its head, asks the handler, and sends the response at once if it is short and
//! in memory. A response that must be waited for becomes a task.

use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use http::Method;
use kirin_h2::hpack::FieldBuffer;
use kirin_h2::request::{check_request, check_trailers};
use kirin_h3::request_stream::Part;
use kirin_h3::{Code, Failure, qpack};
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

use super::body::Http3Source;
use super::client::StreamClient;
use super::connection::Http3Connection;
use super::early_data;
use super::priority::quic_priority;
use super::responding::AtOnce;
use super::stream::{Read, StreamState};
use crate::connection::connection_facts::ConnectionFacts;
use crate::connection::proxied;
use crate::observation::ResponseRecord;
use crate::server::Server;
use crate::streams::exchange::{Exchange, Unanswered};
use crate::streams::head::{LIST_FIELDS, StreamHead, refused_line};
use crate::streams::kind::RequestKind;
use crate::streams::stream_task::{MOST_TASKS, wait};
use crate::streams::trailers::header_map;

/// The version of TLS that QUIC has, as nginx names it.
const TLS_VERSION: &str = "TLSv1.3";

impl<H: Handler> Http3Connection<H> {
    /// Reads the head of a request, as much as has come, and begins the request when it is
    /// complete.
    pub(super) fn read_head(self: &Rc<Self>, stream: &Rc<StreamState>) {
        loop {
            let mut bytes = match self.read(stream.id) {
                Read::Bytes(bytes) => bytes,
                Read::Nothing => return,
                Read::End => {
                    self.take_end(stream);
                    let ended = stream.reader.borrow().end();
                    if let Err(failure) = ended {
                        return self.fail(failure);
                    }
                    // A request without a head has no response (RFC 9114 section 4.1).
                    self.cut(stream, Code::RequestIncomplete);
                    return self.count_early_end();
                }
                Read::Reset => {
                    self.take_end(stream);
                    self.cut(stream, Code::RequestCancelled);
                    return self.count_early_end();
                }
            };
            let part = stream.reader.borrow_mut().take(&mut bytes);
            match part {
                Ok(None) => {}
                Ok(Some(Part::Head(section))) => {
                    stream.unread.replace(bytes);
                    stream.head_deadline.set(0);
                    return self.begin_request(stream, &section);
                }
                Ok(Some(Part::TooLarge)) => {
                    stream.head_deadline.set(0);
                    return self.refuse(
                        &self.in_force.current(),
                        stream,
                        Reject::HeadTooLarge,
                        &FieldBuffer::default(),
                    );
                }
                // The reader gives the head first.
                Ok(Some(Part::Data(_) | Part::Trailers(_))) => {}
                Err(failure) => return self.fail(failure),
            }
        }
    }

    /// Notes that nothing more comes from the client.
    pub(super) fn take_end(&self, stream: &StreamState) {
        if !stream.has_ended.replace(true) {
            self.note_end_of_request();
        }
    }

    /// Finds out whether a request has a body: most end right behind their head.
    fn ends_here(&self, stream: &StreamState) -> bool {
        if !stream.unread.borrow().is_empty() {
            return false;
        }
        match self.read(stream.id) {
            Read::End => {
                self.take_end(stream);
                true
            }
            Read::Bytes(bytes) => {
                stream.unread.replace(bytes);
                false
            }
            // The reader of the body finds the reset again.
            Read::Reset | Read::Nothing => false,
        }
    }

    /// Decodes a field section into `fields`. A mistake ends the connection.
    fn decode(&self, server: &Server<H>, section: &[u8], fields: &mut FieldBuffer) -> bool {
        fields.clear();
        let most_bytes = server.limits.head.head_bytes;
        let mut scratch = server.state.section_scratch.borrow_mut();
        match qpack::decode(section, most_bytes, LIST_FIELDS, &mut scratch, fields) {
            Ok(()) => true,
            Err(_) => {
                let what = "a field section cannot be decoded";
                self.fail(Failure { code: Code::QpackDecompression, what });
                false
            }
        }
    }

    /// Takes the trailers of a request. Returns whether they are right.
    pub(super) fn take_trailers(
        &self,
        server: &Server<H>,
        stream: &StreamState,
        section: &[u8],
    ) -> bool {
        let mut fields = FieldBuffer::default();
        let is_decoded = self.decode(server, section, &mut fields);
        if !is_decoded || fields.is_too_large() || check_trailers(&fields).is_err() {
            return false;
        }
        stream.trailers.replace(Some(header_map(&fields)));
        true
    }

    fn begin_request(self: &Rc<Self>, stream: &Rc<StreamState>, section: &Bytes) {
        let server = &self.in_force.current();
        server.counters.http3_streams.add();
        let ended = self.ends_here(stream);
        let state = Rc::clone(&server.state);
        let mut fields = state.header_fields.borrow_mut();
        if !self.decode(server, section, &mut fields) {
            return;
        }
        if fields.is_too_large() {
            return self.refuse(server, stream, Reject::HeadTooLarge, &fields);
        }
        // Until the handshake ends, an attacker may have recorded what comes.
        let is_early = self.quic.borrow().is_handshaking();
        let may_be_answered = !is_early || early_data::mark(&mut fields);
        match check_request(&fields, ended, true) {
            Ok(facts) => {
                stream.announced.set(facts.content_length);
                if let Some(priority) = facts.priority {
                    let priority = quic_priority(priority, stream.id.index());
                    // The response has not begun, so the stream is there.
                    _ = self.quic.borrow_mut().send_stream(stream.id).set_priority(priority);
                }
            }
            Err(_) => {
                self.cut(stream, Code::Message);
                return self.count_early_end();
            }
        }
        let head = StreamHead::read(&fields, Version::Http3, (ended, true), &server.limits.head);
        let head = match head {
            Ok(head) => head,
            Err(reject) => return self.refuse(server, stream, reject, &fields),
        };
        if is_early {
            // Rules may ask for the address, which everybody could have forged until it is shown.
            let sender = self.quic.borrow().remote_address();
            let is_proven = self.address.borrow().is_proven(sender);
            if !may_be_answered || !is_proven || !head.is_safe() {
                return self.refuse(server, stream, Reject::TooEarly, &fields);
            }
            server.counters.http3_early_requests.add();
        }
        let lines = head.field_lines();
        let request = head.as_request(&lines);
        let kind = RequestKind {
            is_head: request.method == Method::HEAD,
            is_websocket: head.is_websocket,
        };
        let peer = self.peer();
        let facts = ConnectionFacts {
            peer: &peer,
            certificate: self.certificate.get().map(|certificate| &**certificate),
            is_secure: true,
            tls_version: Some(TLS_VERSION),
        };
        server.clock().now();
        proxied::with_origin(server, &facts, &request, |request, origin| {
            self.answer(server, stream, kind, request, origin);
        });
    }

    fn answer(
        self: &Rc<Self>,
        server: &Rc<Server<H>>,
        stream: &Rc<StreamState>,
        kind: RequestKind,
        request: &RequestHead<'_>,
        origin: Origin<'_>,
    ) {
        let started = server.observers.begin();
        let scope = RequestScope::enter(origin.notes.id());
        let answer = server.handler.answer(request, origin);
        drop(scope);
        match answer {
            Answer::Now(response) => {
                self.answer_now(server, stream, kind, response, (request, origin, started));
            }
            Answer::Later(later) => {
                let exchange = Exchange::new(server, started, request, origin);
                self.begin_later(stream, later, (request, origin, kind), exchange);
            }
        }
    }

    /// Sends a response that the handler gave at once.
    fn answer_now(
        self: &Rc<Self>,
        server: &Rc<Server<H>>,
        stream: &Rc<StreamState>,
        kind: RequestKind,
        response: Response,
        (request, origin, started): (&RequestHead<'_>, Origin<'_>, Option<Instant>),
    ) {
        let id = origin.notes.id();
        let mut response = kind.suitable(response);
        response.add_request_id(id);
        stream.is_answered.set(true);
        let left = match self.send_at_once(stream, &response, kind.is_head, server) {
            AtOnce::Sent(bytes) => {
                let now = server.clock().time();
                let observers = &server.observers;
                return observers.end_at_once(started, request, origin, &response, bytes, now);
            }
            left => left,
        };
        let mut exchange = Exchange::new(server, started, request, origin);
        server.observers.will_send(&mut exchange.record, &response);
        let (connection, state) = (Rc::clone(self), Rc::clone(stream));
        self.work(stream, id, async move {
            connection.send_rest(&state, response, left, exchange).await;
        });
    }

    /// Begins the task of a request whose response must be waited for.
    fn begin_later(
        self: &Rc<Self>,
        stream: &Rc<StreamState>,
        later: Later,
        (request, origin, kind): (&RequestHead<'_>, Origin<'_>, RequestKind),
        exchange: Exchange<H>,
    ) {
        let id = origin.notes.id();
        if self.tasks.get() >= MOST_TASKS {
            self.cut(stream, Code::RequestRejected);
            exchange.end(
                stream.received_bytes.get(),
                ResponseRecord::cut(Response::no_room().summary(), 0, false),
            );
            return;
        }
        let unanswered = Unanswered::new(later, (request, origin, kind), exchange);
        let (connection, state) = (Rc::clone(self), Rc::clone(stream));
        self.work(stream, id, async move { connection.answer_later(&state, unanswered).await });
    }

    /// Answers a request that is not acceptable.
    fn refuse(
        self: &Rc<Self>,
        server: &Rc<Server<H>>,
        stream: &Rc<StreamState>,
        reject: Reject,
        fields: &FieldBuffer,
    ) {
        let peer = self.peer();
        tracing::debug!(%peer, %reject, "request refused");
        server.counters.count_reject(reject);
        let record = server.observers.unreadable(&peer, &refused_line(fields, "HTTP/3.0"));
        let mut exchange = Exchange::refused(server, record);
        let response = Response::error(reject.status());
        exchange.server.observers.will_send(&mut exchange.record, &response);
        let summary = response.summary();
        let record = match self.send_at_once(stream, &response, false, server) {
            AtOnce::Sent(bytes) => ResponseRecord::complete(summary, bytes),
            // The client has no room for the few bytes of an error.
            AtOnce::Waits | AtOnce::Begun => {
                self.cut(stream, Code::ExcessiveLoad);
                ResponseRecord::cut(summary, 0, false)
            }
        };
        exchange.end(stream.received_bytes.get(), record);
    }

    /// Does the work of a stream as a task.
    fn work(
        self: &Rc<Self>,
        stream: &Rc<StreamState>,
        id: &RequestId,
        work: impl Future<Output = ()> + 'static,
    ) {
        let running = Running { connection: Rc::clone(self), stream: Rc::clone(stream) };
        self.tasks.set(self.tasks.get() + 1);
        tokio::task::spawn_local(InRequest::new(Some(id.clone()), async move {
            let running = running;
            work.await;
            drop(running);
        }));
    }

    /// Waits for a response and sends it.
    async fn answer_later(self: &Rc<Self>, stream: &Rc<StreamState>, unanswered: Unanswered<H>) {
        let Unanswered { later, body, expects_continue, kind, id, exchange } = unanswered;
        let server = Rc::clone(&exchange.server);
        let client =
            Rc::new(StreamClient { connection: Rc::clone(self), stream: Rc::clone(stream) });
        let body = match body {
            BodyLength::None => RequestBody::empty(),
            length => {
                let owed = expects_continue.then(|| Rc::clone(&client));
                let source = Http3Source::new(Rc::clone(self), Rc::clone(stream), &server, owed);
                RequestBody::new(Box::new(source), length)
            }
        };
        let pace = Pace::new(server.deadlines.writing);
        let body = body
            .with_informational(Informational::new(Rc::clone(&client) as _, pace))
            .with_share(exchange.share.clone())
            .with_client(ClientWatch::new(client as _));
        let Some(mut response) = wait(later, body, &stream.task, || stream.is_given_up()).await
        else {
            return;
        };
        stream.is_answered.set(true);
        if stream.is_given_up() {
            return exchange.end(
                stream.received_bytes.get(),
                ResponseRecord::cut(response.summary(), 0, false),
            );
        }
        if kind.is_websocket && matches!(response.body, Body::Tunnel(_)) {
            return self.tunnel(stream, response, exchange).await;
        }
        response = kind.suitable(response);
        response.add_request_id(&id);
        server.clock().now();
        self.respond(stream, response, kind.is_head, exchange).await;
    }
}

/// A stream whose work is not done. If it ends by a panic, the stream is cut.
struct Running<H> {
    connection: Rc<Http3Connection<H>>,
    stream: Rc<StreamState>,
}

impl<H> Drop for Running<H> {
    fn drop(&mut self) {
        let connection = &self.connection;
        connection.tasks.set(connection.tasks.get() - 1);
        // QUIC may be in use where the panic began.
        if std::thread::panicking() && connection.quic.try_borrow_mut().is_ok() {
            connection.cut(&self.stream, Code::Internal);
        }
        connection.touch();
    }
}
