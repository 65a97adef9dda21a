//! What all event loops know together of an upstream's servers.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::time::{Duration, Instant};

use xxhash_rust::xxh3::xxh3_64;

use crate::ejection::{Ejection, Standing};
use crate::health::Health;
use crate::latency::Latency;
use crate::queue::{Queue, QueueStatus};
use crate::slow_start;

/// A server as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerSettings {
    /// Its address as written. Keys and sticky cookies go by it, so that the order of servers makes
    /// no difference.
    pub name: String,
    /// How much it gets in relation to the others; from 1 on.
    pub weight: u32,
    /// Whether it is only asked when no other can be.
    pub backup: bool,
    /// Requests at most that it is at at the same time; none for any number.
    pub max_in_flight: Option<NonZeroU32>,
}

/// What goes for all servers of an upstream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Failures in a row after which a server is ejected; 0 for never.
    pub max_failures: u32,
    /// For how long, the first time.
    pub ejection_time: Duration,
    /// Probes in a row that make an unhealthy server healthy.
    pub healthy_after: u32,
    /// Probes in a row that make a healthy server unhealthy.
    pub unhealthy_after: u32,
    /// In which a server that has come back grows to its weight; zero for at once.
    pub slow_start: Duration,
    /// Requests at most that wait for a server below its limit.
    pub queue_length: usize,
}

/// The servers of one upstream, for all loops.
#[derive(Debug)]
pub struct Servers {
    servers: Box<[Arc<Server>]>,
    settings: Settings,
    start: Instant,
    /// The same for all that take each other's place.
    queue: Arc<Queue>,
    /// Counts the exchanges.
    pub(crate) generation: u64,
}

/// One of them.
#[derive(Debug)]
pub(crate) struct Server {
    name: String,
    pub(crate) id: u64,
    weight: u64,
    pub(crate) backup: bool,
    /// At most this many at the same time.
    max_in_flight: Option<NonZeroU32>,
    /// Each is a slot that a request has. Changed and read in one order with the number of those
    /// that wait, so that no slot is freed unseen (`queue.rs`).
    pub(crate) in_flight: AtomicU32,
    /// Whether the one request that tries an ejected server is under way.
    on_trial: AtomicBool,
    pub(crate) latency: Latency,
    ejection: Ejection,
    health: Health,
    /// Milliseconds since the start, at least 1; 0 if it was never away.
    back_at: AtomicU64,
    requests: AtomicU64,
    failures: AtomicU64,
    ejections: AtomicU64,
}

/// Whether a server gets requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Availability {
    /// It does.
    Available,
    /// It has failed too often, and gets none for a while.
    Ejected,
    /// Health checks say that it is not well.
    Unhealthy,
}

/// What has been seen of a server.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerStatus {
    /// Its address as written.
    pub name: String,
    /// Whether it gets requests.
    pub availability: Availability,
    /// Requests that it is at.
    pub in_flight: u32,
    /// Requests that it may be at.
    pub max_in_flight: Option<NonZeroU32>,
    /// Requests since the start.
    pub requests: u64,
    /// Of them, those that failed.
    pub failures: u64,
    /// Failures since the last answer.
    pub failures_in_a_row: u32,
    /// Times that it was ejected.
    pub ejections: u64,
    /// For how much longer it is ejected.
    pub ejected_for: Duration,
    /// How long it takes to begin an answer; recent bad ones count most.
    pub latency: Duration,
}

impl Servers {
    /// All available. No more than [`crate::Tried::MOST`] are ever asked.
    pub fn new(
        servers: impl IntoIterator<Item = ServerSettings>,
        settings: Settings,
        now: Instant,
    ) -> Self {
        let queue = Arc::new(Queue::new(settings.queue_length));
        let none = Self { servers: Box::default(), settings, start: now, queue, generation: 0 };
        none.exchanged(servers)
    }

    /// Other servers in their place, as names have new addresses. What is known of those that stay
    /// goes with them, and counts for both. [`Servers::begin_serving`] makes it known to those that
    /// wait.
    pub fn exchanged(&self, servers: impl IntoIterator<Item = ServerSettings>) -> Self {
        let kept = |settings: &ServerSettings| {
            self.servers.iter().find(|old| old.is_of(settings)).cloned()
        };
        let of = |settings| kept(&settings).unwrap_or_else(|| Arc::new(Server::new(settings)));
        let servers = servers.into_iter().take(crate::Tried::MOST).map(of).collect();
        let (settings, queue) = (self.settings.clone(), Arc::clone(&self.queue));
        Self { servers, settings, start: self.start, queue, generation: self.generation + 1 }
    }

    /// These are what requests get from now on: those that wait for others do so for these.
    pub fn begin_serving(&self) {
        self.queue.exchange(self.generation);
    }

    /// The requests that wait for one of them.
    pub fn queue(&self) -> &Arc<Queue> {
        &self.queue
    }

    /// What has been seen of the requests that wait.
    pub fn queue_status(&self) -> QueueStatus {
        self.queue.status()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.servers.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.servers.is_empty()
    }

    /// What stands for a server outside, such as in a sticky cookie. It does not tell the address.
    pub fn id(&self, index: usize) -> Option<u64> {
        self.servers.get(index).map(|server| server.id)
    }

    /// The server with this id.
    pub fn with_id(&self, id: u64) -> Option<usize> {
        self.servers.iter().position(|server| server.id == id)
    }

    /// Takes the result of a health check. Returns whether the server is healthy now, when this one
    /// has changed that.
    pub fn probed(&self, index: usize, is_well: bool, now: Instant) -> Option<bool> {
        let server = self.servers.get(index)?;
        let needed =
            if is_well { self.settings.healthy_after } else { self.settings.unhealthy_after };
        if !server.health.probed(is_well, needed) {
            return None;
        }
        if is_well {
            // Whatever it was ejected for is over.
            server.ejection.answered(self.settings.max_failures);
            server.came_back(self.millis(now));
        }
        self.queue.serve_all(now);
        Some(is_well)
    }

    /// What has been seen, in the order of the servers.
    pub fn server_status(&self, now: Instant) -> Vec<ServerStatus> {
        let millis = self.millis(now);
        let observe = |server: &Arc<Server>| ServerStatus {
            name: server.name.clone(),
            availability: match server.ejection.standing(self.settings.max_failures, millis) {
                _ if server.health.is_down() => Availability::Unhealthy,
                Standing::In => Availability::Available,
                Standing::Trial | Standing::Out => Availability::Ejected,
            },
            in_flight: server.in_flight.load(Relaxed),
            max_in_flight: server.max_in_flight,
            requests: server.requests.load(Relaxed),
            failures: server.failures.load(Relaxed),
            failures_in_a_row: server.ejection.failures_in_a_row(),
            ejections: server.ejections.load(Relaxed),
            ejected_for: server.ejection.left(self.settings.max_failures, millis),
            latency: Duration::from_micros(server.latency.now(millis) as u64),
        };
        self.servers.iter().map(observe).collect()
    }

    pub(crate) fn all(&self) -> &[Arc<Server>] {
        &self.servers
    }

    pub(crate) fn millis(&self, now: Instant) -> u64 {
        u64::try_from(now.saturating_duration_since(self.start).as_millis()).unwrap_or(u64::MAX)
    }

    /// Whether a request may be sent there, when there are others too.
    pub(crate) fn is_in(&self, server: &Server, millis: u64) -> bool {
        !server.health.is_down()
            && match server.ejection.standing(self.settings.max_failures, millis) {
                Standing::In => true,
                Standing::Trial => !server.on_trial.load(SeqCst),
                Standing::Out => false,
            }
    }

    /// Whether a request may be sent there when there is nobody else: health checks are believed,
    /// failures only as long as somebody else can be asked.
    pub(crate) fn is_last_resort(&self, server: &Server) -> bool {
        !server.health.is_down()
    }

    /// The weight that counts now.
    pub(crate) fn weight(&self, server: &Server, millis: u64) -> u64 {
        let part = match server.back_at.load(Relaxed) {
            0 => slow_start::WHOLE,
            back_at => slow_start::part(
                Duration::from_millis(millis.saturating_sub(back_at)),
                self.settings.slow_start,
            ),
        };
        server.weight * part
    }

    /// Takes a slot of a server, if it has one. Returns whether the request is the one that tries
    /// an ejected server.
    pub(crate) fn began(&self, index: usize, now: Instant) -> Option<bool> {
        let server = self.servers.get(index).filter(|server| server.take_slot())?;
        server.requests.fetch_add(1, Relaxed);
        let standing = server.ejection.standing(self.settings.max_failures, self.millis(now));
        Some(standing == Standing::Trial && !server.on_trial.swap(true, SeqCst))
    }

    /// The request is over, and its slot is free.
    pub(crate) fn ended(&self, index: usize, is_trial: bool) {
        let Some(server) = self.servers.get(index) else { return };
        if is_trial {
            server.on_trial.store(false, SeqCst);
        }
        server.in_flight.fetch_sub(1, SeqCst);
        if self.queue.has_waiting() {
            self.queue.serve(Instant::now());
        }
    }

    /// The trial of an ejected server has come to something before its request is over.
    pub(crate) fn tried(&self, index: usize) {
        if let Some(server) = self.servers.get(index) {
            server.on_trial.store(false, SeqCst);
        }
    }

    pub(crate) fn answered(&self, index: usize, latency: Duration, now: Instant) {
        let Some(server) = self.servers.get(index) else { return };
        let millis = self.millis(now);
        server.latency.observe(latency, millis);
        if server.ejection.answered(self.settings.max_failures) {
            server.came_back(millis);
            self.queue.serve_all(now);
        }
    }

    /// A request to the server `index` has no response, or only a part of one. Returns whether the
    /// server is ejected by that.
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

impl Server {
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
            back_at: AtomicU64::new(0),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            ejections: AtomicU64::new(0),
        }
    }

    fn is_of(&self, settings: &ServerSettings) -> bool {
        self.name == settings.name
            && self.weight == u64::from(settings.weight.max(1))
            && self.backup == settings.backup
            && self.max_in_flight == settings.max_in_flight
    }

    pub(crate) fn whole_weight(&self) -> u64 {
        self.weight
    }

    /// Whether it may get another request.
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

    fn came_back(&self, millis: u64) {
        self.back_at.store(millis.max(1), Relaxed);
    }
}
