//! The choice of a server among the candidates that have room.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::attempt::Attempt;
use crate::candidates::SlotClaim;
use crate::fair_queue::ClientKey;
use crate::rendezvous;
use crate::round_robin::RoundRobin;
use crate::server::{Servers, UpstreamServer};
use crate::tried::TriedServers;

/// How a server is chosen among the candidates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// The servers take turns, by weight.
    #[default]
    RoundRobin,
    /// The server with the fewest requests in relation to its weight.
    LeastConnections,
    /// Of two random servers, the one that should respond earlier: the product of latency and
    /// requests in flight is smaller.
    PeakEwma,
    /// The server that belongs to the request's key.
    Hash,
}

/// The properties of a request that decide which server gets it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Criteria {
    /// The key for [`Method::Hash`]. Requests without one get the servers in turn.
    pub key: Option<u64>,
    /// The server that the visitor was sent to before (see [`Servers::id`]). It is chosen if it is
    /// available.
    pub sticky: Option<u64>,
    /// Servers at which this request has been tried.
    pub tried: TriedServers,
    /// The client. Its requests share its turns in the queue.
    pub client: ClientKey,
}

/// Chooses among the servers of an upstream, for one event loop.
#[derive(Debug)]
pub struct Balancer {
    servers: Arc<Servers>,
    method: Method,
    turns: RefCell<RoundRobin>,
    random: Cell<u64>,
}

impl Balancer {
    /// Returns a balancer. `seed` makes event loops choose differently from each other.
    pub fn new(servers: Arc<Servers>, method: Method, seed: u64) -> Self {
        let turns = RefCell::new(RoundRobin::new(servers.len()));
        Self { servers, method, turns, random: Cell::new(seed | 1) }
    }

    /// Returns the servers.
    pub fn servers(&self) -> &Arc<Servers> {
        &self.servers
    }

    /// Claims a slot of a server for a request. Requests that wait in the queue come first.
    pub fn begin(&self, criteria: &Criteria, now: Instant) -> SlotClaim {
        if self.servers.queue().has_waiting() {
            return SlotClaim::Full;
        }
        while let Some(index) = self.choose(criteria, now) {
            // Another event loop may have taken the last slot in the meantime.
            if let Some(attempt) = Attempt::begin(&self.servers, index, now) {
                return SlotClaim::Given(attempt);
            }
        }
        if self.servers.has_candidate(criteria, now) {
            SlotClaim::Full
        } else {
            SlotClaim::NoServer
        }
    }

    /// Returns the server for the next request; `None` if there is no candidate, or no candidate
    /// has room.
    pub fn choose(&self, criteria: &Criteria, now: Instant) -> Option<usize> {
        let servers = &self.servers;
        let millis = servers.millis(now);
        let candidates = servers.candidates(criteria, millis)?;
        let all = servers.all().iter().map(|server| &**server);
        let candidates = all.enumerate().filter(|(index, server)| {
            servers.is_candidate(*index, candidates, criteria, millis) && server.has_room()
        });
        let weight = |server: &UpstreamServer| servers.weight(server, millis);
        match (self.method, criteria.key) {
            (Method::Hash, Some(key)) => {
                // The slow start must not move keys to other servers.
                let draw = |server: &UpstreamServer| {
                    rendezvous::draw(key, server.id, server.present_weight())
                };
                candidates.max_by(|a, b| draw(a.1).total_cmp(&draw(b.1))).map(|(index, _)| index)
            }
            (Method::RoundRobin | Method::Hash, _) => self
                .turns
                .borrow_mut()
                .next(candidates.map(|(index, server)| (index, weight(server)))),
            (Method::LeastConnections, _) => self.least_busy(candidates, weight),
            (Method::PeakEwma, _) => self.better_of_two(candidates, weight, millis),
        }
    }

    /// Chooses the least busy server. Equally busy servers take turns.
    fn least_busy<'s>(
        &self,
        candidates: impl Iterator<Item = (usize, &'s UpstreamServer)>,
        weight: impl Fn(&UpstreamServer) -> u64,
    ) -> Option<usize> {
        let load = |server: &UpstreamServer| {
            (f64::from(server.in_flight.load(Relaxed)) + 1.0) / weight(server) as f64
        };
        let mut least = f64::INFINITY;
        let mut equals: Vec<(usize, u64)> = Vec::new();
        for (index, server) in candidates {
            let load = load(server);
            if load < least {
                least = load;
                equals.clear();
            }
            if load <= least {
                equals.push((index, weight(server)));
            }
        }
        match equals.as_slice() {
            [(only, _)] => Some(*only),
            _ => self.turns.borrow_mut().next(equals.into_iter()),
        }
    }

    fn better_of_two<'s>(
        &self,
        candidates: impl Iterator<Item = (usize, &'s UpstreamServer)> + Clone,
        weight: impl Fn(&UpstreamServer) -> u64,
        millis: u64,
    ) -> Option<usize> {
        let count = candidates.clone().count();
        let first = self.below(count)?;
        let second = match self.below(count - 1) {
            // Each of the other servers is equally likely.
            Some(other) => (first + 1 + other) % count,
            None => first,
        };
        debug_assert!(first != second || count == 1, "{first} of {count} is compared with itself");
        let load = |server: &UpstreamServer| {
            let latency = server.latency.now(millis).max(1.0);
            latency * (f64::from(server.in_flight.load(Relaxed)) + 1.0) / weight(server) as f64
        };
        let (mut one, mut two) = (candidates.clone(), candidates);
        let (one, two) = (one.nth(first)?, two.nth(second)?);
        Some(if load(two.1) < load(one.1) { two.0 } else { one.0 })
    }

    /// Returns a random number below `count`; `None` if `count` is 0. The generator is xorshift64*,
    /// because nobody gains by predicting the numbers.
    fn below(&self, count: usize) -> Option<usize> {
        let mut x = self.random.get();
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random.set(x);
        let random = x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        usize::try_from(random).ok()?.checked_rem(count)
    }
}
