//! Which servers come into question for a request.
//!
//! First those that are available, then the backups, and when all of them have failed, all that
//! health checks do not speak against: somebody may be back, and a client that gets an error has
//! lost nothing by the attempt. A server that is at its limit is a candidate as any other; it will
//! have room again.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::attempt::Attempt;
use crate::balancer::Criteria;
use crate::server::{Server, Servers};

/// What asking for a server came to.
#[derive(Debug)]
pub enum Claim {
    /// The request has one.
    Given(Attempt),
    /// All that could take it are at their limit, or others wait for them.
    Full,
    /// None is left that could answer.
    NoServer,
}

/// The servers that a request may be sent to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Candidates {
    /// The one that the visitor was sent to before.
    Own(usize),
    /// All of a tier.
    Of(Tier),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    Primary,
    Backup,
    LastResort,
}

impl Servers {
    /// Whether there is a server that could answer, with room or without.
    pub fn has_candidate(&self, criteria: &Criteria, now: Instant) -> bool {
        self.candidates(criteria, self.millis(now)).is_some()
    }

    pub(crate) fn candidates(&self, criteria: &Criteria, millis: u64) -> Option<Candidates> {
        if let Some(index) = criteria.sticky.and_then(|id| self.with_id(id))
            && !criteria.tried.has(index)
            && self.all().get(index).is_some_and(|server| self.is_in(server, millis))
        {
            return Some(Candidates::Own(index));
        }
        [Tier::Primary, Tier::Backup, Tier::LastResort].map(Candidates::Of).into_iter().find(
            |some| (0..self.len()).any(|index| self.is_candidate(index, *some, criteria, millis)),
        )
    }

    /// Whether the server `index` is one of `candidates`.
    pub(crate) fn is_candidate(
        &self,
        index: usize,
        candidates: Candidates,
        criteria: &Criteria,
        millis: u64,
    ) -> bool {
        let Some(server) = self.all().get(index) else { return false };
        match candidates {
            Candidates::Own(own) => own == index,
            Candidates::Of(_) if criteria.tried.has(index) => false,
            Candidates::Of(Tier::Primary) => !server.backup && self.is_in(server, millis),
            Candidates::Of(Tier::Backup) => server.backup && self.is_in(server, millis),
            Candidates::Of(Tier::LastResort) => self.is_last_resort(server),
        }
    }

    /// Begins a request to the least busy of its candidates that have room, whatever the method:
    /// for those that have waited, which nearly always have no choice.
    pub(crate) fn claim(self: &Arc<Self>, criteria: &Criteria, now: Instant) -> Claim {
        let millis = self.millis(now);
        let Some(candidates) = self.candidates(criteria, millis) else { return Claim::NoServer };
        let load = |server: &Server| {
            f64::from(server.in_flight.load(Relaxed)) / server.whole_weight() as f64
        };
        loop {
            let all = self.all().iter().enumerate();
            let free = all.filter(|(index, server)| {
                server.has_room() && self.is_candidate(*index, candidates, criteria, millis)
            });
            let least = free.min_by(|a, b| load(a.1).total_cmp(&load(b.1)));
            let Some((index, _)) = least else { return Claim::Full };
            if let Some(attempt) = Attempt::begin(self, index, now) {
                return Claim::Given(attempt);
            }
        }
    }

    /// Whether any server has room, candidate or not.
    pub(crate) fn has_room(&self) -> bool {
        self.all().iter().any(|server| server.has_room())
    }
}
