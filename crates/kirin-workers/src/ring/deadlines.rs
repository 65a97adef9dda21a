//! Requests and workers that take too long. The supervisor looks for them now and then.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_ring::{Claim, Phase};

use crate::ring::entries::Outcome;
use crate::ring::owner::{Parked, RingOwner};
use crate::ring::shared_ring::SharedRing;
use crate::worker_handle::WorkerHandle;

impl<C: Parked> SharedRing<C> {
    /// Refuses requests that no worker has claimed within `limit`. Returns how many.
    pub(crate) fn expire(
        self: &Arc<Self>,
        app: &impl RingOwner<C>,
        now: Instant,
        limit: Duration,
    ) -> usize {
        let mended = self.mend_queue(app);
        if mended > 0 {
            let generation = self.generation();
            tracing::error!(
                generation,
                requests = mended,
                "the application has overwritten the memory of the ring; its queue starts again"
            );
        }
        // A worker that was woken for a request may have been stopped before it claimed it.
        self.ring.wake_for_waiting();
        self.wake_collectors(|event_loop| self.ring.has_finished(event_loop));
        self.withdraw_if(app, Outcome::Expired, |put_at| now.duration_since(put_at) > limit)
    }

    /// Returns the workers whose request or cleanup takes longer than `limit`. Each is returned
    /// once.
    pub(crate) fn condemn_overdue(
        self: &Arc<Self>,
        app: &impl RingOwner<C>,
        limit: Duration,
    ) -> Vec<Arc<WorkerHandle>> {
        let (mut condemned, mut effects) = (Vec::new(), Vec::new());
        let mut locked = self.state.lock();
        let state = &mut *locked;
        for slot in state.entries.used() {
            if !state.entries.is_at_work(slot) {
                continue;
            }
            let Claim::Seat(seat) = state.entries.queue.claim(&self.ring, slot) else { continue };
            let Some(worker) = state.seats.worker(seat).cloned() else { continue };
            let is_cleaning_up = state.entries.is_cleaning_up(slot);
            let phase = self.ring.phase(slot);
            if !is_cleaning_up && !matches!(phase, Phase::Queued | Phase::Running) {
                // The worker may have been stopped before it could report the slot.
                let finished =
                    state.entries.finish(&self.ring, slot, |_| Some(Arc::clone(&worker)));
                effects.push(finished);
                continue;
            }
            let put_at = state.entries.put_at(slot);
            let since = match is_cleaning_up {
                true => Instant::now(),
                false => self.claimed_at(slot, put_at),
            };
            if state.entries.begun_at(slot, || since).elapsed() > limit && worker.condemn() {
                state.entries.condemn(slot, seat, worker.pid);
                if is_cleaning_up {
                    app.log_slow_cleanup(worker.pid);
                }
                condemned.push(worker);
            }
        }
        Self::unlock_and_wake(locked);
        effects.into_iter().for_each(|effect| self.settle(app, effect));
        condemned
    }
}
