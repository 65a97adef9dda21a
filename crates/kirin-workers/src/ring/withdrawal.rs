//! Requests that are taken back from the ring before a worker has claimed them.

use std::sync::Arc;
use std::time::Instant;

use kirin_ring::Claim;

use crate::ring::entries::{Entries, Outcome};
use crate::ring::owner::{Parked, RingOwner};
use crate::ring::shared_ring::SharedRing;

impl<C: Parked> SharedRing<C> {
    /// Takes requests back that no worker has claimed. Returns how many.
    pub(super) fn withdraw_if(
        self: &Arc<Self>,
        app: &impl RingOwner<C>,
        outcome: Outcome,
        wanted: impl Fn(Instant) -> bool,
    ) -> usize {
        let wanted = |entries: &mut Entries| {
            let mut slots: Vec<u16> = entries.used().collect();
            slots.retain(|slot| entries.is_waiting(*slot) && wanted(entries.put_at(*slot)));
            slots
        };
        self.withdraw(app, outcome, wanted)
    }

    /// Takes those requests back that `wanted` chooses and that no worker has claimed. Returns how
    /// many.
    pub(super) fn withdraw(
        self: &Arc<Self>,
        app: &impl RingOwner<C>,
        outcome: Outcome,
        wanted: impl FnOnce(&mut Entries) -> Vec<u16>,
    ) -> usize {
        let mut state = self.state.lock();
        let (mut withdrawn, mut freed) = (0, 0);
        for slot in wanted(&mut state.entries) {
            if let Some(is_free) = state.entries.withdraw(&self.ring, slot, outcome.clone()) {
                withdrawn += 1;
                freed += usize::from(is_free);
                continue;
            }
            let has_worker = match state.entries.queue.claim(&self.ring, slot) {
                Claim::Seat(seat) => state.seats.worker(seat).is_some(),
                _ => false,
            };
            if !has_worker {
                // A worker that lies has written the claim.
                state.entries.give_up(slot);
            }
        }
        Self::unlock_and_wake(state);
        (0..freed).for_each(|_| self.release_place(app));
        withdrawn
    }
}
