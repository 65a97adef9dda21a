//! A connection: what QUIC tells of it, and its streams.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::time::Instant;

use bytes::Bytes;
use kirin_client_bytes::Reservation;
use kirin_h3::frame::write_goaway;
use kirin_h3::settings::Settings;
use kirin_h3::{Code, Failure};
use kirin_http::ClientCertificate;
use kirin_http::handler::Handler;
use kirin_http::peer::Peer;
use quinn_proto::{
    ConnectionError, ConnectionHandle, Dir, Event, Side, StreamEvent, StreamId, VarInt,
};
use rustls::pki_types::CertificateDer;

use super::address_proof::AddressProof;
use super::client_streams::ClientStreams;
use super::stream::StreamState;
use super::transport::UNCONFIRMED_BYTES;
use crate::limits::admission::{AddressPermit, Permit};
use crate::server::{InForce, Server};
use crate::streams::stream_task::TaskWaker;
use crate::streams::{CONNECTION_WINDOW_BYTES, STREAM_WINDOW_BYTES, held_bytes};
use crate::tls::client_certificate;

/// The most requests that a client may end early in excess of those that end well.
const MOST_EARLY_ENDS: u32 = 100;

/// How often a client is asked for a sign of life while its requests are answered, at least.
/// Without it, the time for a connection without requests would end them.
const PING_SECONDS: u64 = 10;

/// The connections of an endpoint that have something to do, and the endpoint's task.
#[derive(Default)]
pub(super) struct Touched {
    pub(super) numbers: RefCell<Vec<usize>>,
    pub(super) task: TaskWaker,
    /// Number of handshakes in progress.
    pub(super) handshakes: Cell<usize>,
}

/// A connection, as the endpoint and the tasks of its streams share it.
pub(super) struct Http3Connection<H> {
    handle: ConnectionHandle,
    pub(super) quic: RefCell<quinn_proto::Connection>,
    pub(super) in_force: Rc<InForce<H>>,
    touched: Rc<Touched>,
    is_touched: Cell<bool>,
    /// The time for which the endpoint's timers have it.
    pub(super) timer: Cell<Option<Instant>>,
    /// The second at which its handshake must have ended. 0 when it has.
    handshake_deadline: Cell<u64>,
    /// What the client may get at its address.
    pub(super) address: RefCell<AddressProof>,
    /// How many requests the client may still end early in excess of those that end well.
    early_ends: Cell<u32>,
    /// The certificate that the client has presented.
    pub(super) certificate: OnceCell<Box<ClientCertificate>>,
    pub(super) streams: RefCell<HashMap<StreamId, Rc<StreamState>>>,
    pub(super) client_streams: RefCell<ClientStreams>,
    /// The server's control stream.
    control: Cell<Option<StreamId>>,
    /// The lowest stream of a request that has not come yet.
    next_request: Cell<u64>,
    /// Whether no further requests are accepted.
    pub(super) is_going: Cell<bool>,
    /// Number of streams that are tasks.
    pub(super) tasks: Cell<usize>,
    /// Number of requests that their clients have not ended.
    unended_requests: Cell<u64>,
    /// Number of bytes of responses that QUIC has taken, on streams that are not confirmed.
    pub(super) unconfirmed_bytes: Cell<u64>,
    held: RefCell<Option<Reservation>>,
    _permit: Option<Permit>,
    _address_permit: Option<AddressPermit>,
}

impl<H> Http3Connection<H> {
    pub(super) fn new(
        (handle, quic): (ConnectionHandle, quinn_proto::Connection),
        in_force: Rc<InForce<H>>,
        touched: Rc<Touched>,
        (permit, address_permit): (Option<Permit>, Option<AddressPermit>),
        (handshake_deadline, address): (u64, AddressProof),
    ) -> Self {
        touched.handshakes.set(touched.handshakes.get() + 1);
        Self {
            handle,
            quic: RefCell::new(quic),
            in_force,
            touched,
            is_touched: Cell::new(false),
            timer: Cell::default(),
            handshake_deadline: Cell::new(handshake_deadline),
            address: RefCell::new(address),
            early_ends: Cell::new(MOST_EARLY_ENDS),
            certificate: OnceCell::new(),
            streams: RefCell::default(),
            client_streams: RefCell::default(),
            control: Cell::default(),
            next_request: Cell::new(0),
            is_going: Cell::new(false),
            tasks: Cell::new(0),
            unended_requests: Cell::new(0),
            unconfirmed_bytes: Cell::new(0),
            held: RefCell::default(),
            _permit: permit,
            _address_permit: address_permit,
        }
    }

    /// Has the endpoint send what others have given to QUIC.
    pub(super) fn touch(&self) {
        if !self.is_touched.replace(true) {
            self.touched.numbers.borrow_mut().push(self.handle.0);
            self.touched.task.wake();
        }
    }

    /// Notes that the endpoint looks at it now.
    pub(super) fn clear_touch(&self) {
        self.is_touched.set(false);
    }

    /// Returns the address that the client has now.
    pub(super) fn peer(&self) -> Peer {
        Peer::Tcp(self.quic.borrow().remote_address())
    }

    /// Ends the connection.
    pub(super) fn close(&self, code: Code) {
        let number = VarInt::from_u32(code.number());
        self.quic.borrow_mut().close(Instant::now(), number, Bytes::new());
        self.give_up_streams();
        self.touch();
    }

    /// Counts a request that ended early, by the doing of its client: a "rapid reset"
    /// (CVE-2023-44487), or a mistake for which the server resets (CVE-2025-8671).
    pub(super) fn count_early_end(&self) {
        self.early_ends.set(self.early_ends.get().saturating_sub(1));
        if self.early_ends.get() == 0 {
            let what = "too many requests end early";
            self.fail(Failure { code: Code::ExcessiveLoad, what });
        }
    }

    /// Counts a response that was sent.
    pub(super) fn count_good_end(&self) {
        self.early_ends.set(MOST_EARLY_ENDS.min(self.early_ends.get() + 1));
    }

    /// Ends the connection because of a mistake of its client.
    pub(super) fn fail(&self, failure: Failure) {
        if self.is_closed() {
            return;
        }
        let peer = self.peer();
        if failure.code == Code::ExcessiveLoad {
            self.in_force.borrow().counters.http3_floods.add();
            tracing::info!(%peer, error = %failure, "HTTP/3 connection is ended because of its client");
        } else {
            tracing::debug!(%peer, error = %failure, "HTTP/3 connection ended");
        }
        self.close(failure.code);
    }

    /// Notes that nothing can be sent any more.
    fn give_up_streams(&self) {
        let streams: Vec<_> = self.streams.borrow_mut().drain().map(|(_, state)| state).collect();
        for stream in streams {
            stream.has_ended.set(true);
            stream.give_up();
        }
        self.unended_requests.set(0);
        self.unconfirmed_bytes.set(0);
    }

    /// Forgets a stream that has ended in both directions.
    pub(super) fn forget(&self, id: StreamId) {
        let removed = self.streams.borrow_mut().remove(&id);
        if let Some(stream) = removed {
            let bytes = stream.taken_bytes.get();
            self.unconfirmed_bytes.set(self.unconfirmed_bytes.get().saturating_sub(bytes));
        }
    }

    /// Notes that the client has ended a request.
    pub(super) fn note_end_of_request(&self) {
        self.unended_requests.set(self.unended_requests.get().saturating_sub(1));
    }

    /// Returns whether nothing is in progress.
    pub(super) fn is_idle(&self) -> bool {
        self.tasks.get() == 0 && self.streams.borrow().is_empty()
    }

    /// Returns whether the connection has ended.
    pub(super) fn is_closed(&self) -> bool {
        self.quic.borrow().is_closed()
    }

    /// Tells the client to send its next requests on another connection. Those that are on their
    /// way are still answered (RFC 9114 section 5.2).
    pub(super) fn warn_of_end(&self) {
        self.send_goaway(StreamId::new(Side::Client, Dir::Bi, (1 << 60) - 1).into());
    }

    /// Accepts no more requests, and tells the client which were the last.
    pub(super) fn go_away(&self) {
        if !self.is_going.replace(true) {
            self.send_goaway(self.next_request.get());
        }
    }

    fn send_goaway(&self, first_refused: u64) {
        if let Some(control) = self.control.get() {
            let mut frame = Vec::new();
            write_goaway(first_refused, &mut frame);
            // A client that takes nothing has no need to know.
            _ = self.quic.borrow_mut().send_stream(control).write(&frame);
            self.touch();
        }
    }

    /// Notes that the handshake has ended, well or not.
    fn end_handshake(&self) {
        if self.handshake_deadline.replace(0) != 0 {
            self.touched.handshakes.set(self.touched.handshakes.get() - 1);
        }
    }

    /// Opens the server's control stream with the settings.
    fn begin(&self) {
        let server = self.in_force.current();
        self.end_handshake();
        self.address.borrow_mut().prove(self.quic.borrow().remote_address());
        // QUIC does not say whether a session was resumed.
        server.counters.handshakes.count(true, false);
        server.counters.http3_connections.add();
        let mut bytes = Vec::new();
        let field_section_bytes = server.limits.head.head_bytes as u64;
        Settings { field_section_bytes, extended_connect: true }.write(&mut bytes);
        let mut quic = self.quic.borrow_mut();
        let stream = quic.streams().open(Dir::Uni);
        if let Some(stream) = stream {
            // Every client allows that much (RFC 9114 section 6.2).
            _ = quic.send_stream(stream).write(&bytes);
            _ = quic.send_stream(stream).set_priority(i32::MAX);
        }
        self.control.set(stream);
        let identity = quic.crypto_session().peer_identity();
        drop(quic);
        let certificates = identity
            .and_then(|identity| identity.downcast::<Vec<CertificateDer<'static>>>().ok())
            .unwrap_or_default();
        let authorities = server.tls.as_ref().and_then(|tls| tls.client_authorities());
        if let (Some(certificate), Some(authorities)) = (certificates.first(), authorities)
            && let Some(read) = client_certificate::read(certificate, &authorities)
        {
            // A connection has one handshake.
            _ = self.certificate.set(Box::new(read));
        }
    }

    /// Counts what is held for the client: an upper limit, because QUIC does not say how much of
    /// its windows is in use.
    pub(super) fn count_held(&self, server: &Server<H>) -> Result<(), Failure> {
        let unread = self.unended_requests.get() * u64::from(STREAM_WINDOW_BYTES);
        let unread = unread.min(u64::from(CONNECTION_WINDOW_BYTES));
        let partial: usize = match unread {
            0 => 0,
            _ => {
                let streams = self.streams.borrow();
                streams.values().map(|stream| stream.reader.borrow().held_bytes()).sum()
            }
        };
        let bytes = unread + partial as u64 + self.unconfirmed_bytes.get().min(UNCONFIRMED_BYTES);
        let share = || server.share(&self.peer());
        held_bytes::count(&mut self.held.borrow_mut(), bytes, share).map_err(|_| Failure {
            code: Code::ExcessiveLoad,
            what: "there is no room for what the client keeps waiting",
        })
    }

    /// Ends what has waited for the client for too long. Called once a second.
    pub(super) fn check_time(&self, now: u64) {
        if (1..=now).contains(&self.handshake_deadline.get()) {
            self.in_force.borrow().counters.handshakes.failed.add();
            self.end_handshake();
            return self.close(Code::NoError);
        }
        let overdue: Vec<_> = {
            let streams = self.streams.borrow();
            let is_overdue =
                |stream: &&Rc<StreamState>| (1..=now).contains(&stream.head_deadline.get());
            streams.values().filter(is_overdue).cloned().collect()
        };
        for stream in overdue {
            self.in_force.borrow().counters.timed_out.http3.add();
            self.cut(&stream, Code::RequestIncomplete);
        }
        let keep_alive = self.in_force.borrow().deadlines.keep_alive;
        if self.tasks.get() > 0 && now.is_multiple_of(PING_SECONDS.min(keep_alive / 2).max(1)) {
            self.quic.borrow_mut().ping();
            self.touch();
        }
    }
}

impl<H: Handler> Http3Connection<H> {
    /// Carries out what QUIC has to tell.
    pub(super) fn take_events(self: &Rc<Self>) {
        loop {
            let event = self.quic.borrow_mut().poll();
            let Some(event) = event else { return };
            match event {
                Event::Stream(_) if self.is_closed() => {}
                Event::Connected => self.begin(),
                Event::ConnectionLost { reason } => self.lose(&reason),
                Event::Stream(event) => self.take_stream_event(event),
                Event::HandshakeDataReady | Event::DatagramReceived | Event::DatagramsUnblocked => {
                }
            }
        }
    }

    fn lose(&self, reason: &ConnectionError) {
        let server = self.in_force.current();
        let was_connected = self.control.get().is_some();
        match reason {
            ConnectionError::TimedOut if was_connected => server.counters.timed_out.http3.add(),
            _ if self.handshake_deadline.get() != 0 => server.counters.handshakes.failed.add(),
            _ => {}
        }
        self.end_handshake();
        tracing::debug!(peer = %self.peer(), %reason, "HTTP/3 connection is over");
        self.give_up_streams();
    }

    fn take_stream_event(self: &Rc<Self>, event: StreamEvent) {
        match event {
            StreamEvent::Opened { dir: Dir::Bi } => self.accept_requests(),
            StreamEvent::Opened { dir: Dir::Uni } => loop {
                let stream = self.quic.borrow_mut().streams().accept(Dir::Uni);
                let Some(stream) = stream else { break };
                self.client_streams.borrow_mut().open(stream);
                self.read_client_stream(stream);
            },
            StreamEvent::Readable { id } if id.dir() == Dir::Uni => self.read_client_stream(id),
            StreamEvent::Readable { id } => {
                let Some(stream) = self.stream(id) else { return };
                if stream.head_deadline.get() != 0 {
                    self.read_head(&stream);
                } else {
                    stream.task.wake();
                }
            }
            StreamEvent::Writable { id } => {
                if let Some(stream) = self.stream(id) {
                    stream.task.wake();
                }
            }
            StreamEvent::Finished { id } => {
                if let Some(stream) = self.stream(id)
                    && stream.is_sent()
                {
                    self.forget(id);
                }
            }
            StreamEvent::Stopped { id, .. } if self.control.get() == Some(id) => {
                let code = Code::ClosedCriticalStream;
                self.fail(Failure { code, what: "the client has closed the control stream" });
            }
            StreamEvent::Stopped { id, .. } => {
                let Some(stream) = self.stream(id) else { return };
                let is_early = !stream.is_sent();
                self.cut(&stream, Code::RequestCancelled);
                if is_early {
                    self.count_early_end();
                }
            }
            StreamEvent::Available { .. } => {}
        }
    }

    fn stream(&self, id: StreamId) -> Option<Rc<StreamState>> {
        self.streams.borrow().get(&id).cloned()
    }

    fn accept_requests(self: &Rc<Self>) {
        loop {
            let id = self.quic.borrow_mut().streams().accept(Dir::Bi);
            let Some(id) = id else { return };
            let server = self.in_force.current();
            let deadline = server.clock().now() + server.deadlines.head;
            let most = server.limits.head.head_bytes as u64;
            let stream = Rc::new(StreamState::new(id, most, deadline));
            self.unended_requests.set(self.unended_requests.get() + 1);
            if self.is_going.get() {
                self.cut(&stream, Code::RequestRejected);
                continue;
            }
            let next = StreamId::new(Side::Client, Dir::Bi, id.index() + 1);
            self.next_request.set(next.into());
            self.streams.borrow_mut().insert(id, Rc::clone(&stream));
            self.read_head(&stream);
        }
    }
}

impl<H> Drop for Http3Connection<H> {
    fn drop(&mut self) {
        self.end_handshake();
        self.give_up_streams();
    }
}
