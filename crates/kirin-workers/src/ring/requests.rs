//! The requests in a ring: how they are put there, and how they leave it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::Instant;

use kirin_ring::{BadAnswer, Claim, NoPlace, Phase};

use crate::ring::entries::{Finished, Outcome};
use crate::ring::owner::{Parked, RingOwner};
use crate::ring::place::RingPlace;
use crate::ring::room::REQUEST_BYTES;
use crate::ring::shared_ring::SharedRing;
use crate::worker_handle::WorkerHandle;

/// The most requests that wait for the end of the loop's round before a worker is woken for them.
const MOST_UNANNOUNCED: usize = 8;

/// Why a request is not in the ring.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotPut {
    /// All slots are in use.
    Full,
    /// Another generation serves since the place was given.
    Retired,
}

impl<C: Parked> SharedRing<C> {
    /// Puts a request into the ring. `None` as `parts` stands for a request that goes over the
    /// connection of the worker that claims it. Returns the slot, and whether all workers are busy.
    pub(crate) fn put(
        &self,
        place: RingPlace<C>,
        parts: Option<[&[u8]; 2]>,
        now: Instant,
    ) -> Result<(u16, bool), NotPut> {
        debug_assert!(std::ptr::eq(Arc::as_ptr(place.ring()), self), "a place of another ring");
        debug_assert!(parts.is_none_or(|[a, b]| a.len() + b.len() <= REQUEST_BYTES), "it is cut");
        let event_loop = self.this_loop();
        let mut state = self.state.lock();
        // This is checked under the lock. `retire` sets the mark and then withdraws what it finds
        // under the lock, so one of the two sees the other.
        if self.is_retired() {
            return Err(NotPut::Retired);
        }
        let must_wait = state.entries.queue.used() >= state.workers;
        let slot = state
            .entries
            .queue
            .put(&self.ring, event_loop, parts)
            .map_err(|NoPlace| NotPut::Full)?;
        state.entries.begin(slot, now);
        let wakes = state.entries.queue.take_wake();
        drop(state);
        // It stays counted until the request has left the ring.
        place.keep_counted();
        self.note_put(event_loop, wakes);
        // The loop is awake. The collector looks again before the loop falls asleep.
        if self.ring.wake_up(event_loop)
            && let Some((_, collector)) = &*self.loops[event_loop].collector.lock()
        {
            collector.wake_by_ref();
        }
        Ok((slot, must_wait))
    }

    /// Notes that a worker must be woken, if that is so. The collector does it when the loop has
    /// read what other clients have sent: a worker that finds several requests sleeps once for all
    /// of them. On the loop's own core it would run at once, for the first of them alone.
    fn note_put(&self, event_loop: usize, wakes: bool) {
        let side = &self.loops[event_loop];
        let unannounced = side.unannounced.load(Ordering::Relaxed);
        match unannounced {
            0 if !wakes => {}
            MOST_UNANNOUNCED.. => self.announce(event_loop),
            _ => side.unannounced.store(unannounced + 1, Ordering::Relaxed),
        }
    }

    /// Wakes a worker for the requests that the loop has put into the ring.
    pub(super) fn announce(&self, event_loop: usize) {
        if self.loops[event_loop].unannounced.swap(0, Ordering::Relaxed) > 0 {
            self.ring.wake_for_put();
        }
    }

    /// Returns how a request has left the ring, or has the task woken when it has.
    pub(crate) fn poll(&self, slot: u16, context: &Context<'_>) -> Poll<Outcome> {
        match self.state.lock().entries.poll(slot, context.waker()) {
            None => Poll::Pending,
            Some(outcome) => Poll::Ready(outcome),
        }
    }

    /// Returns how far the request in a slot is.
    pub(crate) fn phase(&self, slot: u16) -> Phase {
        self.ring.phase(slot)
    }

    /// Copies the answer in a slot.
    pub(crate) fn answer(&self, slot: u16) -> Result<Vec<u8>, BadAnswer> {
        self.ring.answer(slot)
    }

    /// Learns which requests that a loop waits for are finished. Returns whether there were any.
    pub(super) fn collect(self: &Arc<Self>, app: &impl RingOwner<C>, event_loop: usize) -> bool {
        if !self.ring.has_finished(event_loop) {
            return false;
        }
        let (mut finished, mut effects) = (0, Vec::new());
        let mut oldest = u64::MAX;
        let mut locked = self.state.lock();
        let state = &mut *locked;
        self.ring.finished(event_loop, |slot| {
            oldest = oldest.min(self.ring.claimed_at_ns(slot));
            finished += 1;
            let seats = &state.seats;
            let worker = |seat| seats.worker(seat).cloned();
            match state.entries.finish(&self.ring, slot, worker) {
                Finished::InUse => {}
                effect => effects.push(effect),
            }
        });
        if finished > 0 {
            let took = self.instant(oldest, self.epoch.0).elapsed();
            state.service.add(took, finished);
        }
        Self::unlock_and_wake(locked);
        effects.into_iter().for_each(|effect| self.settle(app, effect));
        if finished > 0 {
            self.offer_places(app);
        }
        finished > 0
    }

    /// Notes that the answer to a request has been taken.
    pub(crate) fn take_note(self: &Arc<Self>, app: &impl RingOwner<C>, slot: u16) {
        let mut state = self.state.lock();
        let unread = state.take_unread(slot);
        let is_free = state.entries.take_note(&self.ring, slot);
        drop(state);
        drop(unread);
        if is_free {
            self.release_place(app);
        }
    }

    /// Notes that nobody waits for a request any more.
    pub(crate) fn abandon(self: &Arc<Self>, app: &impl RingOwner<C>, slot: u16) {
        let mut state = self.state.lock();
        let unread = state.take_unread(slot);
        let effect = state.entries.abandon(&self.ring, slot);
        drop(state);
        drop(unread);
        self.settle(app, effect);
    }

    pub(super) fn settle(self: &Arc<Self>, app: &impl RingOwner<C>, effect: Finished) {
        match effect {
            Finished::InUse => return,
            Finished::Freed => {}
            Finished::Unread { seat, worker } => {
                // The next request over this connection would get the answer.
                self.dismiss(seat, &worker);
                worker.disconnect();
            }
        }
        self.release_place(app);
    }

    /// Returns when a worker has claimed the request in a slot, as the worker says; but not before
    /// it was put there, and not later than now.
    pub(crate) fn claimed_at(&self, slot: u16, put_at: Instant) -> Instant {
        self.instant(self.ring.claimed_at_ns(slot), put_at)
    }

    /// Returns the worker that has claimed the request in a slot, and when it did so.
    pub(crate) fn claimer(&self, slot: u16) -> Option<(Arc<WorkerHandle>, Instant)> {
        let mut state = self.state.lock();
        let Claim::Seat(seat) = state.entries.queue.claim(&self.ring, slot) else { return None };
        let put_at = state.entries.put_at(slot);
        let worker = state.seats.worker(seat)?;
        Some((Arc::clone(worker), self.claimed_at(slot, put_at)))
    }
}
