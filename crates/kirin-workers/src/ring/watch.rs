//! The supervision of workers between their requests. A worker that has claimed a slot is watched
//! by that slot; a worker that has claimed none is watched by its seat.

use std::sync::Arc;
use std::time::{Duration, Instant};

use kirin_ring::{Claim, Ring};

use crate::ring::entries::{Entries, Outcome};
use crate::ring::liveness::{Found, Verdict};
use crate::ring::owner::{Parked, RingOwner};
use crate::ring::shared_ring::SharedRing;
use crate::worker_handle::WorkerHandle;

/// The seats of the workers that have a request or clean up after one.
pub(super) struct SeatsAtWork(Vec<u16>);

impl SeatsAtWork {
    pub(super) fn of(entries: &Entries, ring: &Ring) -> Self {
        let seat = |slot| match entries.queue.claim(ring, slot) {
            Claim::Seat(seat) => Some(seat),
            Claim::Nobody | Claim::Withdrawn => None,
        };
        let at_work = entries.used().filter(|slot| entries.is_at_work(*slot));
        Self(at_work.filter_map(seat).collect())
    }

    /// Returns what the worker in a seat does at this moment, of which the front has the
    /// connection.
    pub(super) fn find(&self, ring: &Ring, seat: u16) -> Found {
        if self.0.contains(&seat) {
            Found::Working
        } else if ring.is_asleep(seat) {
            Found::Asleep
        } else {
            Found::Silent
        }
    }
}

impl<C: Parked> SharedRing<C> {
    /// Returns the workers that have not looked for a request for longer than `limit` although they
    /// have none. Each is returned once. Asks others to look.
    pub(crate) fn condemn_silent(
        &self,
        app: &impl RingOwner<C>,
        now: Instant,
        limit: Duration,
    ) -> Vec<Arc<WorkerHandle>> {
        let mut condemned = Vec::new();
        let mut state = self.state.lock();
        let at_work = SeatsAtWork::of(&state.entries, &self.ring);
        for (seat, worker, connection, liveness) in state.seats.attached_mut() {
            let found = match connection {
                // The connection has its own deadline while it is in use.
                None => Found::Working,
                Some(_) => at_work.find(&self.ring, seat),
            };
            match liveness.look(found, worker.current.requests(), now, limit) {
                Verdict::Wait => {}
                Verdict::Ask => self.ring.ask_to_look(seat),
                Verdict::Condemn => {
                    // If it looks after all, it must not claim a request any more.
                    self.ring.leave(seat);
                    if worker.condemn() {
                        app.log_silent(worker.pid);
                        condemned.push(Arc::clone(worker));
                    }
                }
            }
        }
        condemned
    }

    /// Returns the workers that still sleep. The application has told all to end some time ago, so
    /// these have been stopped.
    pub(crate) fn condemn_sleepers(&self) -> Vec<Arc<WorkerHandle>> {
        let state = self.state.lock();
        let asleep = state.seats.workers().filter(|(seat, _)| self.ring.is_asleep(*seat));
        let condemned = asleep.filter(|(_, worker)| worker.condemn());
        condemned.map(|(_, worker)| Arc::clone(worker)).collect()
    }

    /// Returns the workers that have no request, and for how long each has not looked for one. That
    /// is `None` for those that are idle.
    pub(crate) fn free_workers(&self, now: Instant) -> Vec<(Arc<WorkerHandle>, Option<Duration>)> {
        let state = self.state.lock();
        let at_work = SeatsAtWork::of(&state.entries, &self.ring);
        let free = state.seats.attached().filter_map(|(seat, worker, connection, liveness)| {
            let found = at_work.find(&self.ring, seat);
            let is_free = connection.is_some() && found != Found::Working;
            is_free.then(|| (Arc::clone(worker), liveness.silent_for(found, now)))
        });
        free.collect()
    }

    /// Mends the queue if workers do not find a request that waits in it: an application has
    /// overwritten the memory. The requests go back to the application's own queue. Returns how
    /// many.
    pub(crate) fn mend_queue(self: &Arc<Self>, app: &impl RingOwner<C>) -> usize {
        let state = self.state.lock();
        if state.entries.queue.is_intact(&self.ring, state.entries.used()) {
            return 0;
        }
        // Requests that are put into the ring from now on are found.
        state.entries.queue.restart(&self.ring);
        drop(state);
        self.withdraw_if(app, Outcome::Withdrawn, |_| true)
    }
}
