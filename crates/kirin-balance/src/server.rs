//! The state of an upstream's servers, which all event loops share.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use xxhash_rust::xxh3::xxh3_64;

use crate::ejection::{Ejection, EjectionState};
use crate::health::Health;
use crate::latency::Latency;
use crate::operator::{OperatedServer, OperatorState, ServerChange};
use crate::queue::{QueueStatus, RequestQueue};
use crate::slow_start;

/// The configuration of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// The address as written. Keys and sticky cookies depend on it, so that the order of the
    /// servers makes no difference.
    pub name: String,
    /// The share of requests in relation to the other servers, from 1.
    pub weight: u32,
    /// Whether the server gets requests only if no other can take them: the others have failed, or
    /// they are at their limits and the queue is full.
    pub backup: bool,
    /// The most requests at the same time; `None` for no limit.
    pub max_in_flight: Option<NonZeroU32>,
}

/// The configuration that holds for all servers of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Consecutive failures after which a server is ejected; 0 for never.
    pub max_failures: u32,
    /// How long the first ejection lasts.
    pub ejection_time: Duration,
    /// Consecutive good probes that make an unhealthy server healthy.
    pub healthy_after: u32,
    /// Consecutive bad probes that make a healthy server unhealthy.
    pub unhealthy_after: u32,
    /// How long a recovered server takes to return from 1/16 of its weight to all of it; zero for
    /// at once.
    pub slow_start: Duration,
    /// The most requests that wait for a server.
    pub queue_length: usize,
}

/// The servers of one upstream, shared by all event loops.
#[derive(Debug)]
pub struct Servers {
    servers: Box<[Arc<UpstreamServer>]>,
    settings: Settings,
    start: Instant,
    /// The queue, which later servers of the upstream take over.
    queue: Arc<RequestQueue>,
    /// How often the servers have been replaced.
    pub(crate) generation: u64,
}

/// The state of one server.
#[derive(Debug)]
pub(crate) struct UpstreamServer {
    name: String,
    pub(crate) id: u64,
    weight: u64,
    pub(crate) backup: bool,
    /// The most requests at the same time.
    max_in_flight: Option<NonZeroU32>,
    /// The slots that requests hold. All threads see its changes in one order with those of the
    /// queue's length, so that no slot is freed unseen (`queue.rs`).
    pub(crate) in_flight: AtomicU32,
    /// Whether a request that tries the ejected server is in flight.
    on_trial: AtomicBool,
    pub(crate) latency: Latency,
    ejection: Ejection,
    health: Health,
    /// When the server has recovered, in milliseconds since the start, from 1; 0 if it has always
    /// been available.
    recovered_at: AtomicU64,
    requests: AtomicU64,
    failures: AtomicU64,
    ejections: AtomicU64,
    operated: OperatedServer,
}

/// Whether a server gets requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// The server gets requests.
    Available,
    /// The server has failed too often, and gets no requests for a while.
    Ejected,
    /// The health checks have failed.
    Unhealthy,
    /// An operator lets it have only visitors that were sent to it before.
    Draining,
    /// An operator lets it have no requests.
    Disabled,
}

/// The observed state of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerStatus {
    /// The address as written.
    pub name: String,
    /// Whether it gets requests.
    pub availability: Availability,
    /// What an operator has said about it.
    pub operator: OperatorState,
    /// Requests in flight.
    pub in_flight: u32,
    /// The most requests at the same time.
    pub max_in_flight: Option<NonZeroU32>,
    /// The share of requests.
    pub weight: u64,
    /// The same as configured, if an operator has changed it.
    pub configured_weight: Option<u64>,
    /// Requests since the start.
    pub requests: u64,
    /// Failed requests since the start.
    pub failures: u64,
    /// Failures since the last response.
    pub failures_in_a_row: u32,
    /// How often the server was ejected.
    pub ejections: u64,
    /// The time until the end of the ejection.
    pub ejected_for: Duration,
    /// The time to the beginning of a response. Recent bad values count most.
    pub latency: Duration,
}

impl Servers {
    /// Returns servers that are all available. Only the first [`crate::TriedServers::MAX`] are
    /// used.
    pub fn new(
        servers: impl IntoIterator<Item = ServerSettings>,
        settings: Settings,
        now: Instant,
    ) -> Self {
        let queue = Arc::new(RequestQueue::new(settings.queue_length));
        let none = Self { servers: Box::default(), settings, start: now, queue, generation: 0 };
        none.exchanged(servers)
    }

    /// Returns other servers for the same upstream, because names have new addresses. Servers that
    /// stay keep their state, and share it with the old set. [`Servers::begin_serving`] makes the
    /// new set known to waiting requests.
    pub fn exchanged(&self, servers: impl IntoIterator<Item = ServerSettings>) -> Self {
        let kept = |settings: &ServerSettings| {
            self.servers.iter().find(|old| old.is_of(settings)).cloned()
        };
        let of = |settings: ServerSettings| {
            kept(&settings).unwrap_or_else(|| Arc::new(self.new_server(settings)))
        };
        let servers = servers.into_iter().take(crate::TriedServers::MAX).map(of).collect();
        let (settings, queue) = (self.settings.clone(), Arc::clone(&self.queue));
        Self { servers, settings, start: self.start, queue, generation: self.generation + 1 }
    }

    /// Returns a new server. What an operator has said about one with the same name still holds.
    fn new_server(&self, settings: ServerSettings) -> UpstreamServer {
        let server = UpstreamServer::new(settings);
        if let Some(before) = self.servers.iter().find(|before| before.name == server.name) {
            server.operated.take_over(&before.operated, before.weight == server.weight);
        }
        server
    }

    /// Returns the servers for another configuration of the upstream, with a queue of its own.
    /// Servers that [`Servers::exchanged`] then keeps share their state with the old set.
    pub fn continued(&self, settings: Settings) -> Self {
        let queue = Arc::new(RequestQueue::new(settings.queue_length));
        Self { servers: self.servers.clone(), settings, start: self.start, queue, generation: 0 }
    }

    /// Gives these servers to requests from now on, including those that wait.
    pub fn begin_serving(&self) {
        self.queue.exchange(self.generation);
    }

    /// Returns the queue of requests that wait for one of the servers.
    pub fn queue(&self) -> &Arc<RequestQueue> {
        &self.queue
    }

    /// Returns the state of the queue.
    pub fn queue_status(&self) -> QueueStatus {
        self.queue.status()
    }

    /// Returns how many servers there are.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Returns whether there is no server.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// Returns the number of a server for the outside, such as in a sticky cookie. It does not
    /// reveal the address.
    pub fn id(&self, index: usize) -> Option<u64> {
        self.servers.get(index).map(|server| server.id)
    }

    /// Returns the index of the server with this number.
    pub fn with_id(&self, id: u64) -> Option<usize> {
        self.servers.iter().position(|server| server.id == id)
    }

    /// Takes the result of a health check. Returns whether the server is healthy now, if this
    /// result has changed that.
    pub fn probed(&self, index: usize, is_healthy: bool, now: Instant) -> Option<bool> {
        let server = self.servers.get(index)?;
        let needed =
            if is_healthy { self.settings.healthy_after } else { self.settings.unhealthy_after };
        if !server.health.probed(is_healthy, needed) {
            return None;
        }
        if is_healthy {
            // The reason for an ejection is over.
            server.ejection.answered(self.settings.max_failures);
            server.recovered(self.millis(now));
        }
        self.queue.serve_all(now);
        Some(is_healthy)
    }

    /// Returns the state of each server, in their order.
    pub fn server_status(&self, now: Instant) -> Vec<ServerStatus> {
        let millis = self.millis(now);
        let observe = |server: &Arc<UpstreamServer>| ServerStatus {
            name: server.name.clone(),
            availability: match server.ejection.state(self.settings.max_failures, millis) {
                _ if server.operated.state() == OperatorState::Disabled => Availability::Disabled,
                _ if server.health.is_down() => Availability::Unhealthy,
                EjectionState::Active if server.is_enabled() => Availability::Available,
                EjectionState::Active => Availability::Draining,
                EjectionState::Trial | EjectionState::Ejected => Availability::Ejected,
            },
            operator: server.operated.state(),
            in_flight: server.in_flight.load(Relaxed),
            max_in_flight: server.max_in_flight,
            weight: server.present_weight(),
            configured_weight: server.operated.weight().map(|_| server.weight),
            requests: server.requests.load(Relaxed),
            failures: server.failures.load(Relaxed),
            failures_in_a_row: server.ejection.failures_in_a_row(),
            ejections: server.ejections.load(Relaxed),
            ejected_for: server.ejection.left(self.settings.max_failures, millis),
            latency: Duration::from_micros(server.latency.now(millis) as u64),
        };
        self.servers.iter().map(observe).collect()
    }

    pub(crate) fn all(&self) -> &[Arc<UpstreamServer>] {
        &self.servers
    }

    pub(crate) fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }

    /// Returns whether the server may get a request while there are others.
    pub(crate) fn is_available(&self, server: &UpstreamServer, millis: u64) -> bool {
        server.is_enabled() && self.is_up(server, millis)
    }

    /// Returns whether the server may get a request of a visitor that was sent to it before.
    pub(crate) fn is_available_to_own(&self, server: &UpstreamServer, millis: u64) -> bool {
        server.operated.state() != OperatorState::Disabled && self.is_up(server, millis)
    }

    fn is_up(&self, server: &UpstreamServer, millis: u64) -> bool {
        !server.health.is_down()
            && match server.ejection.state(self.settings.max_failures, millis) {
                EjectionState::Active => true,
                EjectionState::Trial => !server.on_trial.load(SeqCst),
                EjectionState::Ejected => false,
            }
    }

    /// Returns whether the server may get a request when there is no other. Health checks are
    /// trusted. Failures count only while another server can be asked.
    pub(crate) fn is_last_resort(&self, server: &UpstreamServer) -> bool {
        server.is_enabled() && !server.health.is_down()
    }

    /// Makes an operator's change to the servers with a name: all addresses of a name are its
    /// servers. Returns how many there are.
    pub fn change(&self, name: &str, change: ServerChange, now: Instant) -> usize {
        let named = self.servers.iter().filter(|server| server.is_called(name));
        let count = named.inspect(|server| server.operated.change(change)).count();
        self.queue.serve_all(now);
        count
    }

    /// Returns the present weight.
    pub(crate) fn weight(&self, server: &UpstreamServer, millis: u64) -> u64 {
        let part = match server.recovered_at.load(Relaxed) {
            0 => slow_start::WHOLE,
            recovered_at => slow_start::part(
                Duration::from_millis(millis.saturating_sub(recovered_at)),
                self.settings.slow_start,
            ),
        };
        debug_assert!(part > 0, "{} would never get a request", server.name);
        server.present_weight() * part
    }

    /// Takes a slot of a server, if there is one. Returns whether the request is the one that tries
    /// an ejected server.
    pub(crate) fn began(&self, index: usize, now: Instant) -> Option<bool> {
        let server = self.servers.get(index).filter(|server| server.take_slot())?;
        server.requests.fetch_add(1, Relaxed);
        let state = server.ejection.state(self.settings.max_failures, self.millis(now));
        Some(state == EjectionState::Trial && !server.on_trial.swap(true, SeqCst))
    }

    /// Frees the slot of a request that has ended.
    pub(crate) fn ended(&self, index: usize, is_trial: bool) {
        let Some(server) = self.servers.get(index) else { return };
        if is_trial {
            debug_assert!(server.on_trial.load(SeqCst), "{}: another trial", server.name);
            server.on_trial.store(false, SeqCst);
        }
        let in_flight = server.in_flight.fetch_sub(1, SeqCst);
        debug_assert!(in_flight > 0, "{}: a slot is freed that nobody has taken", server.name);
        if self.queue.has_waiting() {
            self.queue.serve(Instant::now());
        }
    }

    /// Notes that the request that tried an ejected server has had a response.
    pub(crate) fn tried(&self, index: usize) {
        if let Some(server) = self.servers.get(index) {
            debug_assert!(server.on_trial.load(SeqCst), "{}: another trial", server.name);
            server.on_trial.store(false, SeqCst);
        }
    }

    pub(crate) fn answered(&self, index: usize, latency: Duration, now: Instant) {
        let Some(server) = self.servers.get(index) else { return };
        let millis = self.millis(now);
        server.latency.observe(latency, millis);
        if server.ejection.answered(self.settings.max_failures) {
            server.recovered(millis);
            self.queue.serve_all(now);
        }
    }

    /// Counts a request without a complete response. Returns whether that has ejected the server.
    pub fn failed(&self, index: usize, now: Instant) -> bool {
        let Some(server) = self.servers.get(index) else { return false };
        server.failures.fetch_add(1, Relaxed);
        let Settings { max_failures, ejection_time, .. } = self.settings;
        let is_ejected = server.ejection.failed(max_failures, ejection_time, self.millis(now));
        if is_ejected {
            server.ejections.fetch_add(1, Relaxed);
            self.queue.serve_all(now);
        }
        is_ejected
    }
}

impl UpstreamServer {
    fn new(settings: ServerSettings) -> Self {
        Self {
            id: xxh3_64(settings.name.as_bytes()),
            name: settings.name,
            weight: u64::from(settings.weight.max(1)),
            backup: settings.backup,
            max_in_flight: settings.max_in_flight,
            in_flight: AtomicU32::new(0),
            on_trial: AtomicBool::new(false),
            latency: Latency::default(),
            ejection: Ejection::default(),
            health: Health::default(),
            recovered_at: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            ejections: AtomicU64::new(0),
            operated: OperatedServer::default(),
        }
    }

    /// Returns whether the server is the one that an operator names: as the status shows it, or by
    /// its address alone if it has several.
    fn is_called(&self, name: &str) -> bool {
        let address = self.name.split(' ').next().unwrap_or_default();
        let without_scheme = address.split_once("://").map_or(address, |(_, rest)| rest);
        [self.name.as_str(), address, without_scheme].contains(&name)
    }

    fn is_enabled(&self) -> bool {
        self.operated.state() == OperatorState::Enabled
    }

    fn is_of(&self, settings: &ServerSettings) -> bool {
        self.name == settings.name
            && self.weight == u64::from(settings.weight.max(1))
            && self.backup == settings.backup
            && self.max_in_flight == settings.max_in_flight
    }

    /// Returns the weight that an operator has given, or else that of the configuration.
    pub(crate) fn present_weight(&self) -> u64 {
        self.operated.weight().unwrap_or(self.weight)
    }

    /// Returns whether the server can take another request.
    pub(crate) fn has_room(&self) -> bool {
        self.max_in_flight.is_none_or(|most| self.in_flight.load(SeqCst) < most.get())
    }

    fn take_slot(&self) -> bool {
        let Some(most) = self.max_in_flight else {
            self.in_flight.fetch_add(1, SeqCst);
            return true;
        };
        let below = |count: u32| (count < most.get()).then_some(count + 1);
        self.in_flight.fetch_update(SeqCst, SeqCst, below).is_ok()
    }

    fn recovered(&self, millis: u64) {
        self.recovered_at.store(millis.max(1), Relaxed);
    }
}
