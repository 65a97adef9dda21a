//! The servers that may get a request.
//!
//! First come the available servers, then the backups. When all of them have failed, all servers
//! that the health checks accept are candidates: one may have recovered, and the client would get
//! an error anyway. A server at its limit is a candidate too, because it will have room again. Only
//! a request that cannot wait for that, because the queue is full, goes to a backup.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::attempt::Attempt;
use crate::balancer::Criteria;
use crate::server::{Servers, UpstreamServer};

/// The result of asking for a server.
#[derive(Debug)]
pub enum SlotClaim {
    /// The request has a slot of a server.
    Given(Attempt),
    /// All candidates are at their limit, or other requests wait for them.
    Full,
    /// No server is left that could respond.
    NoServer,
}

/// The servers that may get a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Candidates {
    /// The server that the visitor was sent to before.
    Sticky(usize),
    /// All servers of a tier.
    Tier(Tier),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tier {
    Primary,
    Backup,
    LastResort,
}

impl Servers {
    /// Returns whether a server could respond, with or without room.
    pub fn has_candidate(&self, criteria: &Criteria, now: Instant) -> bool {
        self.candidates(criteria, self.millis(now)).is_some()
    }

    pub(crate) fn candidates(&self, criteria: &Criteria, millis: u64) -> Option<Candidates> {
        if let Some(index) = criteria.sticky.and_then(|id| self.with_id(id))
            && !criteria.tried.has(index)
            && self.all().get(index).is_some_and(|server| self.is_available_to_own(server, millis))
        {
            return Some(Candidates::Sticky(index));
        }
        [Tier::Primary, Tier::Backup, Tier::LastResort].map(Candidates::Tier).into_iter().find(
            |some| (0..self.len()).any(|index| self.is_candidate(index, *some, criteria, millis)),
        )
    }

    /// Returns whether the server `index` is one of `candidates`.
    pub(crate) fn is_candidate(
        &self,
        index: usize,
        candidates: Candidates,
        criteria: &Criteria,
        millis: u64,
    ) -> bool {
        let Some(server) = self.all().get(index) else { return false };
        match candidates {
            Candidates::Sticky(own) => own == index,
            Candidates::Tier(_) if criteria.tried.has(index) => false,
            Candidates::Tier(Tier::Primary) => !server.backup && self.is_available(server, millis),
            Candidates::Tier(Tier::Backup) => server.backup && self.is_available(server, millis),
            Candidates::Tier(Tier::LastResort) => self.is_last_resort(server),
        }
    }

    /// Claims a slot of the least busy candidate with room. The method does not matter here:
    /// requests that have waited rarely have a choice.
    pub(crate) fn claim(self: &Arc<Self>, criteria: &Criteria, now: Instant) -> SlotClaim {
        let millis = self.millis(now);
        let Some(candidates) = self.candidates(criteria, millis) else {
            return SlotClaim::NoServer;
        };
        match self.claim_among(candidates, criteria, millis, now) {
            Some(attempt) => SlotClaim::Given(attempt),
            None => SlotClaim::Full,
        }
    }

    /// Claims a slot of a backup for a request whose candidates have no room, and that cannot wait.
    /// A visitor with its own server gets none, because its session is at that server.
    pub(crate) fn claim_backup(
        self: &Arc<Self>,
        criteria: &Criteria,
        now: Instant,
    ) -> Option<Attempt> {
        let millis = self.millis(now);
        if self.candidates(criteria, millis) != Some(Candidates::Tier(Tier::Primary)) {
            return None;
        }
        self.claim_among(Candidates::Tier(Tier::Backup), criteria, millis, now)
    }

    /// Claims a slot of the least busy server of `candidates` with room.
    fn claim_among(
        self: &Arc<Self>,
        candidates: Candidates,
        criteria: &Criteria,
        millis: u64,
        now: Instant,
    ) -> Option<Attempt> {
        let load = |server: &UpstreamServer| {
            f64::from(server.in_flight.load(Relaxed)) / server.present_weight() as f64
        };
        loop {
            let all = self.all().iter().enumerate();
            let free = all.filter(|(index, server)| {
                server.has_room() && self.is_candidate(*index, candidates, criteria, millis)
            });
            let (index, _) = free.min_by(|a, b| load(a.1).total_cmp(&load(b.1)))?;
            if let Some(attempt) = Attempt::begin(self, index, now) {
                return Some(attempt);
            }
        }
    }

    /// Returns whether any server has room, candidate or not.
    pub(crate) fn has_room(&self) -> bool {
        self.all().iter().any(|server| server.has_room())
    }
}
