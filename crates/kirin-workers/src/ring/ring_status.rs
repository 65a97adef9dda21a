//! What operators see of a ring.

use std::sync::Arc;
use std::time::Instant;

use kirin_ring::Claim;

use crate::ring::owner::Parked;
use crate::ring::shared_ring::SharedRing;
use crate::worker_handle::WorkerHandle;

/// What operators want to know.
impl<C: Parked> SharedRing<C> {
    /// Returns how many requests no worker has claimed.
    pub(crate) fn waiting(&self) -> usize {
        let state = self.state.lock();
        let is_waiting = |slot: &u16| {
            state.entries.is_waiting(*slot)
                && state.entries.queue.claim(&self.ring, *slot) == Claim::Nobody
        };
        state.entries.used().filter(is_waiting).count()
    }

    /// Returns the workers that have a request in the ring, each with a copy of the request and the
    /// time at which it was claimed.
    pub(crate) fn at_work(&self) -> Vec<(Arc<WorkerHandle>, Vec<u8>, Instant)> {
        let mut state = self.state.lock();
        let mut found = Vec::new();
        for slot in state.entries.used() {
            if !state.entries.is_at_work(slot) || state.entries.is_cleaning_up(slot) {
                continue;
            }
            let Claim::Seat(seat) = state.entries.queue.claim(&self.ring, slot) else { continue };
            let put_at = state.entries.put_at(slot);
            if let Some(worker) = state.seats.worker(seat) {
                let claimed_at = self.claimed_at(slot, put_at);
                found.push((Arc::clone(worker), self.ring.request(slot), claimed_at));
            }
        }
        found
    }
}

/// The state of a ring, for operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RingStatus {
    /// The generation of the application that it belongs to.
    pub generation: u64,
    /// The workers that use it.
    pub workers: usize,
    /// The requests that can be in it.
    pub slots: usize,
    /// The requests that are in it.
    pub requests: usize,
    /// The most memory that it takes, in bytes.
    pub bytes: u64,
    /// The memory that it takes now, in bytes. Slots that were never used take none.
    pub resident_bytes: u64,
}

impl<C: Parked> SharedRing<C> {
    /// Returns the state.
    pub(crate) fn status(&self) -> RingStatus {
        let blocks = rustix::fs::fstat(self.ring.file()).map_or(0, |stat| stat.st_blocks as u64);
        let state = self.state.lock();
        RingStatus {
            generation: self.generation(),
            workers: state.workers,
            slots: self.ring.sizes().slots,
            requests: state.entries.queue.used(),
            bytes: self.ring.bytes() as u64,
            resident_bytes: blocks * 512,
        }
    }
}
