//! Choosing a server among the candidates that have room.

use std::cell::{Cell, RefCell};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::attempt::Attempt;
use crate::candidates::Claim;
use crate::fair_queue::ClientKey;
use crate::rendezvous;
use crate::round_robin::RoundRobin;
use crate::server::{Server, Servers};
use crate::tried::Tried;

/// How a server is chosen among those that could be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Method {
    /// One after the other, by weight.
    #[default]
    RoundRobin,
    /// The one with the fewest requests under way for its weight.
    LeastConnections,
    /// Of two at random, the one that is expected to answer earlier: latency × requests under way.
    PeakEwma,
    /// By the request's key: the same key to the same server.
    Hash,
}

/// What a request says about the choice.
#[derive(Clone, Copy, Debug, Default)]
pub struct Criteria {
    /// The key for [`Method::Hash`]; a request without one is sent by turns.
    pub key: Option<u64>,
    /// The server that the visitor was sent to before ([`Servers::id`]). It is taken if it is
    /// available.
    pub sticky: Option<u64>,
    /// Servers that this request has been to.
    pub tried: Tried,
    /// The client, whose requests share its turns in the queue.
    pub client: ClientKey,
}

/// One loop's choice among the servers of an upstream.
#[derive(Debug)]
pub struct Balancer {
    servers: Arc<Servers>,
    method: Method,
    turns: RefCell<RoundRobin>,
    random: Cell<u64>,
}

impl Balancer {
    /// `seed` makes loops choose differently from each other.
    pub fn new(servers: Arc<Servers>, method: Method, seed: u64) -> Self {
        let turns = RefCell::new(RoundRobin::new(servers.len()));
        Self { servers, method, turns, random: Cell::new(seed | 1) }
    }

    /// The servers.
    pub fn servers(&self) -> &Arc<Servers> {
        &self.servers
    }

    /// Begins a request to the server that is to get it. Those that wait come first.
    pub fn begin(&self, criteria: &Criteria, now: Instant) -> Claim {
        if self.servers.queue().has_waiting() {
            return Claim::Full;
        }
        while let Some(index) = self.choose(criteria, now) {
            // Unless another loop has taken the last slot meanwhile.
            if let Some(attempt) = Attempt::begin(&self.servers, index, now) {
                return Claim::Given(attempt);
            }
        }
        if self.servers.has_candidate(criteria, now) { Claim::Full } else { Claim::NoServer }
    }

    /// The server to ask next; `None` when there is none left that could answer, or none of them
    /// has room.
    pub fn choose(&self, criteria: &Criteria, now: Instant) -> Option<usize> {
        let servers = &self.servers;
        let millis = servers.millis(now);
        let candidates = servers.candidates(criteria, millis)?;
        let all = servers.all().iter().map(|server| &**server);
        let candidates = all.enumerate().filter(|(index, server)| {
            servers.is_candidate(*index, candidates, criteria, millis) && server.has_room()
        });
        let weight = |server: &Server| servers.weight(server, millis);
        match (self.method, criteria.key) {
            (Method::Hash, Some(key)) => {
                // Without the slow start: keys are not to move for it.
                let draw =
                    |server: &Server| rendezvous::draw(key, server.id, server.whole_weight());
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

    /// Equals take turns.
    fn least_busy<'s>(
        &self,
        candidates: impl Iterator<Item = (usize, &'s Server)>,
        weight: impl Fn(&Server) -> u64,
    ) -> Option<usize> {
        let load = |server: &Server| {
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
        candidates: impl Iterator<Item = (usize, &'s Server)> + Clone,
        weight: impl Fn(&Server) -> u64,
        millis: u64,
    ) -> Option<usize> {
        let count = candidates.clone().count();
        let first = self.below(count)?;
        let second = match self.below(count - 1) {
            // One of the others, each as likely.
            Some(other) => (first + 1 + other) % count,
            None => first,
        };
        let load = |server: &Server| {
            let latency = server.latency.now(millis).max(1.0);
            latency * (f64::from(server.in_flight.load(Relaxed)) + 1.0) / weight(server) as f64
        };
        let (mut one, mut two) = (candidates.clone(), candidates);
        let (one, two) = (one.nth(first)?, two.nth(second)?);
        Some(if load(two.1) < load(one.1) { two.0 } else { one.0 })
    }

    /// A number below `count`, if there is one (xorshift64*; nobody gains by foreseeing it).
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
