//! Requests in the ring that the workers do not take up as soon as expected.
//!
//! Requests in the ring are served in their order, whoever sent them. So a client with many slow
//! requests would have all workers until the ring is empty. Those that would be in the ring only
//! because workers were fast go back to the queue of the application, where clients take turns.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_ring::Claim;

use crate::ring::entries::{Entries, Outcome};
use crate::ring::owner::{Parked, RingOwner};
use crate::ring::shared_ring::SharedRing;

/// How long a request may wait in the ring before those behind it go back. That is ten times what
/// is expected, because the system may also be busy with other processes.
const LATE: Duration = Duration::from_millis(20);

impl<C: Parked> SharedRing<C> {
    /// Takes requests back if workers have not claimed the oldest one for too long, until there are
    /// only as many as workers. A collector calls this while requests wait.
    pub(super) fn withdraw_late(self: &Arc<Self>, app: &impl RingOwner<C>) {
        self.withdraw_later_than(app, LATE, Instant::now());
    }

    fn withdraw_later_than(
        self: &Arc<Self>,
        app: &impl RingOwner<C>,
        limit: Duration,
        now: Instant,
    ) {
        let Some(oldest) = self.ring.first_waiting() else { return };
        let workers = {
            let mut state = self.state.lock();
            let is_late = state.entries.is_waiting(oldest)
                && now.saturating_duration_since(state.entries.put_at(oldest)) > limit;
            let workers = state.workers;
            if !is_late || self.places() <= workers {
                return;
            }
            state.service.note_late(workers);
            workers
        };
        // Places that no request has go first.
        self.trim_places(app);
        let surplus = self.places().saturating_sub(workers);
        let newest = |entries: &mut Entries| {
            let is_unclaimed = |slot: &u16| {
                entries.is_waiting(*slot) && entries.queue.claim(&self.ring, *slot) == Claim::Nobody
            };
            let mut slots: Vec<u16> = entries.used().filter(is_unclaimed).collect();
            slots.sort_by_key(|slot| entries.put_at(*slot));
            slots.split_off(slots.len().saturating_sub(surplus))
        };
        self.withdraw(app, Outcome::Withdrawn, newest);
    }
}
