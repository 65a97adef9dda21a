//! A listener on one event loop: its handler and settings, and the state that all its connections
//! share.

use std::cell::{Cell, Ref, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use kirin_client_bytes::{ClientShare, LoopAccount};
use kirin_h2::hpack::FieldBuffer;
use kirin_http::client_watch::ClientWatch;
use kirin_http::forwarded::Forwarding;
use kirin_http::handler::{Client, Origin};
use kirin_http::listen_address::ListenAddress;
use kirin_http::peer::{Peer, address_key};
use kirin_http::request_id::RequestIds;
use kirin_http::request_notes::RequestNotes;
use kirin_http::trace_context::TraceSampling;
use tokio::sync::{Notify, mpsc};

use crate::clock::Clock;
use crate::connection::connection_facts::ConnectionFacts;
use crate::connection::counters::ConnectionCounters;
use crate::connection::idle_connection::IdleConnection;
use crate::connection::io::Io;
use crate::connection::open_connections::OpenConnections;
use crate::http1::output::Output;
use crate::http1::splicing::Pipes;
use crate::limits::Limits;
use crate::limits::admission::{AddressPermit, AddressRefusal, TooManyOfAddress};
use crate::limits::deadlines::Deadlines;
use crate::observation::Observers;
use crate::tls::Tls;
use crate::tls::challenge::ChallengeCertificates;

/// Bytes that one read takes while a connection waits for a request. A browser's head has 1 KB.
const SCRATCH_BYTES: usize = 16 * 1024;

/// One listener on one event loop as a configuration says it: the handler, the limits and all other
/// settings. A request is answered by the one that was in force when its head was read.
pub struct Server<H> {
    pub(crate) handler: Rc<H>,
    pub(crate) local: ListenAddress,
    pub(crate) limits: Limits,
    pub(crate) deadlines: Rc<Deadlines>,
    pub(crate) observers: Observers,
    pub(crate) counters: Arc<ConnectionCounters>,
    /// The share of requests whose trace is recorded. `None` if requests are not traced.
    pub(crate) trace_sampling: Option<TraceSampling>,
    /// The proxies that are trusted. `None` if there are none; then no field is looked at.
    pub(crate) forwarding: Option<Box<Forwarding>>,
    pub(crate) proxy_protocol: bool,
    pub(crate) tls: Option<Arc<Tls>>,
    /// The certificates for authorities that want proof of a name.
    pub(crate) challenge_certificates: Option<Arc<dyn ChallengeCertificates>>,
    /// This loop's reference to the account in `limits`.
    pub(crate) client_bytes: Option<Rc<LoopAccount>>,
    pub(crate) state: Rc<ListenerState>,
}

/// What the connections of a listener share on one event loop, whatever its settings are: the
/// connections, and the buffers that they borrow while they work.
pub(crate) struct ListenerState {
    pub(crate) open: Rc<OpenConnections>,
    pub(crate) scratch: RefCell<Box<[u8]>>,
    pub(crate) output: RefCell<Output>,
    /// The fields of one request of HTTP/2 or HTTP/3.
    pub(crate) header_fields: RefCell<FieldBuffer>,
    /// A field of an HTTP/3 request while it is decoded.
    pub(crate) section_scratch: RefCell<Vec<u8>>,
    pub(crate) pipes: Pipes,
    pub(crate) request_ids: RequestIds,
    pub(crate) stopping: Cell<bool>,
    /// Whether another process takes the idle connections over.
    pub(crate) has_successor: Cell<bool>,
    /// Where they go.
    pub(crate) successor: RefCell<Option<mpsc::Sender<IdleConnection>>>,
    /// Wakes the HTTP/2 connections and the waiting requests when `stopping` is set.
    pub(crate) stop: Notify,
}

impl ListenerState {
    fn new() -> Self {
        Self {
            open: Rc::default(),
            scratch: RefCell::new(vec![0; SCRATCH_BYTES].into_boxed_slice()),
            output: RefCell::default(),
            header_fields: RefCell::default(),
            section_scratch: RefCell::default(),
            pipes: Pipes::default(),
            request_ids: RequestIds::default(),
            stopping: Cell::new(false),
            has_successor: Cell::new(false),
            successor: RefCell::default(),
            stop: Notify::new(),
        }
    }

    /// Returns whether a connection ends after the response in progress.
    #[inline]
    pub(crate) fn ends(&self, io: &Io) -> bool {
        self.stopping.get() && !(self.has_successor.get() && io.can_move())
    }

    /// Waits until the program stops and this client has disconnected.
    pub(crate) async fn stops_without(&self, client: &ClientWatch) {
        let stop = self.stop.notified();
        if !self.stopping.get() {
            stop.await;
        }
        client.gone().await;
    }
}

/// The settings of a listener that are in force. Another configuration replaces them while its
/// connections stay. A request in progress keeps those with which it began.
pub struct InForce<H>(RefCell<Rc<Server<H>>>);

impl<H> InForce<H> {
    /// Puts the first settings into force.
    pub fn new(server: Server<H>) -> Rc<Self> {
        Rc::new(Self(RefCell::new(Rc::new(server))))
    }

    /// Replaces the settings by those of `server`, which continues the one that is in force. The
    /// lines that are gathered for the logs of that one are written.
    pub fn replace(&self, server: Server<H>) {
        let before = self.0.replace(Rc::new(server));
        before.observers.logs.flush();
    }

    /// Returns the settings, to keep them.
    pub fn current(&self) -> Rc<Server<H>> {
        Rc::clone(&self.0.borrow())
    }

    /// Returns the settings, to use them at once. [`InForce::replace`] must not be called
    /// meanwhile.
    pub(crate) fn borrow(&self) -> Ref<'_, Rc<Server<H>>> {
        self.0.borrow()
    }
}

impl<H> Server<H> {
    /// Returns a server that answers with `handler` the requests that arrive at `local`.
    pub fn new(handler: Rc<H>, local: ListenAddress, limits: Limits, observers: Observers) -> Self {
        let deadlines = Deadlines::new(&limits, Rc::default());
        Self {
            handler,
            local,
            client_bytes: limits.client_bytes.clone().map(|account| Rc::new(LoopAccount(account))),
            limits,
            deadlines: Rc::new(deadlines),
            observers,
            counters: Arc::default(),
            trace_sampling: None,
            forwarding: None,
            proxy_protocol: false,
            tls: None,
            challenge_certificates: None,
            state: Rc::new(ListenerState::new()),
        }
    }

    /// Returns the server for the connections of another one: a new configuration of the same
    /// listener.
    #[must_use]
    pub fn continuing(self, before: &Self) -> Self {
        let account = |limits: &Limits| limits.client_bytes.as_ref().map(Arc::as_ptr);
        let has_same_account = account(&self.limits) == account(&before.limits);
        Self {
            deadlines: Rc::new(Deadlines::new(&self.limits, Rc::clone(&before.deadlines.clock))),
            counters: Arc::clone(&before.counters),
            client_bytes: if has_same_account {
                before.client_bytes.clone()
            } else {
                self.client_bytes
            },
            state: Rc::clone(&before.state),
            ..self
        }
    }

    /// Returns the server behind trusted proxies. With `proxy_protocol`, each connection must come
    /// from one of them and must begin with a PROXY header.
    #[must_use]
    pub fn behind_proxies(self, forwarding: Forwarding, proxy_protocol: bool) -> Self {
        Self { forwarding: Some(Box::new(forwarding)), proxy_protocol, ..self }
    }

    /// Returns the server with TLS on all its connections.
    #[must_use]
    pub fn with_tls(self, tls: Arc<Tls>) -> Self {
        Self { tls: Some(tls), ..self }
    }

    /// Returns the server with certificates for authorities that want proof of a name.
    #[must_use]
    pub fn with_challenge_certificates(self, certificates: Arc<dyn ChallengeCertificates>) -> Self {
        Self { challenge_certificates: Some(certificates), ..self }
    }

    /// Returns the server with a trace for each request.
    #[must_use]
    pub fn traced(self, sampling: TraceSampling) -> Self {
        Self { trace_sampling: Some(sampling), ..self }
    }

    /// Returns the server with counters that others read.
    #[must_use]
    pub fn counting(self, counters: Arc<ConnectionCounters>) -> Self {
        Self { counters, ..self }
    }

    /// Returns the number of open connections.
    pub fn connections(&self) -> usize {
        self.state.open.count()
    }

    /// Returns whether `peer` is a proxy that is trusted to name its clients.
    pub(crate) fn trusts(&self, peer: &Peer) -> bool {
        self.forwarding.as_ref().is_some_and(|forwarding| forwarding.trusted.contains(peer))
    }

    /// Returns the share of the client `peer` in the account of held bytes. A trusted proxy that
    /// does not name its client stands for many clients, so no address is counted.
    pub(crate) fn share(&self, peer: &Peer) -> ClientShare {
        let address = if self.trusts(peer) { None } else { address_key(peer) };
        ClientShare::new(self.client_bytes.as_ref(), address)
    }

    /// Counts the connection for the address of its client, unless that is refused.
    pub(crate) fn admit_address(&self, io: &Io) -> Result<(), AddressRefusal> {
        if let Some(permit) = self.admit_client(io.client_peer())? {
            // A client is admitted once.
            _ = io.address_permit.set(permit);
        }
        Ok(())
    }

    /// Counts a connection for the address of this client, unless that is refused.
    pub(crate) fn admit_client(
        &self,
        client: &Peer,
    ) -> Result<Option<AddressPermit>, AddressRefusal> {
        if self.limits.blocked.has(client) {
            self.counters.refused_blocked.add();
            return Err(AddressRefusal::Blocked);
        }
        let Some(admission) = &self.limits.admission else { return Ok(None) };
        admission.admit_address(client).map_err(|TooManyOfAddress| {
            self.counters.refused_address.add();
            AddressRefusal::TooMany
        })
    }

    /// Returns where the requests of a connection come from, as far as the connection itself tells.
    /// Their time is the last one that was read from the clock.
    pub(crate) fn origin<'a>(
        &'a self,
        facts: &ConnectionFacts<'a>,
        notes: &'a RequestNotes,
    ) -> Origin<'a> {
        let client = match (&self.tls, facts.certificate) {
            (_, Some(certificate)) => Client::Verified(certificate),
            (Some(tls), None) if tls.asks_clients() => Client::Anonymous,
            _ => Client::NotRequested,
        };
        Origin {
            peer: facts.peer,
            local: &self.local,
            secure: facts.is_secure,
            client,
            proxy: None,
            now: self.clock().last(),
            notes,
        }
    }

    pub(crate) fn clock(&self) -> &Clock {
        &self.deadlines.clock
    }
}
