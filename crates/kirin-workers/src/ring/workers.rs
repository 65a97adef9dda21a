//! The workers of a ring: their attachment, their connections, and their end.

use std::sync::Arc;

use kirin_ring::Claim;

use crate::ring::owner::{Parked, RingOwner};
use crate::ring::place::RingPlace;
use crate::ring::shared_ring::SharedRing;
use crate::worker_handle::WorkerHandle;

/// A worker's number in a ring.
pub(crate) struct RingSeat<C: Parked> {
    pub(crate) ring: Arc<SharedRing<C>>,
    pub(crate) number: u16,
}

impl<C: Parked> Clone for RingSeat<C> {
    fn clone(&self) -> Self {
        Self { ring: Arc::clone(&self.ring), number: self.number }
    }
}

impl<C: Parked> SharedRing<C> {
    /// Takes a seat for a process that has greeted. If the process had one, its connection has
    /// ended.
    pub(super) fn take_seat(
        self: &Arc<Self>,
        app: &impl RingOwner<C>,
        pid: u32,
    ) -> Option<RingSeat<C>> {
        self.process_ended(app, pid);
        let number = self.state.lock().seats.take(pid)?;
        self.ring.clear_seat(number);
        Some(RingSeat { ring: Arc::clone(self), number })
    }

    /// Keeps the connection of an attached worker that no request uses.
    pub(crate) fn park(self: &Arc<Self>, app: &impl RingOwner<C>, seat: u16, mut connection: C) {
        let place = connection.place().take();
        let worker = Arc::clone(connection.handle());
        let mut state = self.state.lock();
        let parked = state.seats.park(seat, connection);
        if let Ok(true) = parked {
            state.workers += 1;
            debug_assert!(state.workers <= self.ring.sizes().seats, "more workers than seats");
        }
        drop(state);
        if parked.is_ok() {
            self.ring.admit(seat);
            // The mark may have come before.
            if worker.is_leaving() {
                self.ring.leave(seat);
            }
        }
        // A connection that is not kept ends here.
        drop(parked);
        drop(place);
        self.offer_places(app);
    }

    /// Takes the connection of a worker out, over which a request or its answer goes. The slot is
    /// free then. The place stays counted until the connection is given back.
    pub(crate) fn check_out(
        self: &Arc<Self>,
        app: &impl RingOwner<C>,
        slot: u16,
        seat: u16,
        worker: &Arc<WorkerHandle>,
    ) -> Option<C> {
        let mut state = self.state.lock();
        let connection = state.seats.check_out(seat, worker).or_else(|| state.take_unread(slot));
        let is_free = state.entries.take_note(&self.ring, slot);
        drop(state);
        if !is_free {
            return connection;
        }
        let Some(mut connection) = connection else {
            self.release_place(app);
            return None;
        };
        debug_assert!(connection.place().is_none(), "an idle connection has a place");
        *connection.place() = Some(RingPlace::counted(Arc::clone(self)));
        Some(connection)
    }

    /// Tells a worker to leave, whose connection is about to be closed.
    pub(crate) fn dismiss(&self, seat: u16, worker: &Arc<WorkerHandle>) {
        // The seat may be another worker's already.
        if self.state.lock().seats.is_of(seat, worker) {
            self.ring.leave(seat);
        }
    }

    /// Notes that the connection of a worker has ended.
    pub(super) fn worker_lost(
        self: &Arc<Self>,
        app: &impl RingOwner<C>,
        seat: u16,
        worker: &Arc<WorkerHandle>,
    ) {
        let mut locked = self.state.lock();
        let state = &mut *locked;
        worker.note_hang_up();
        let Some(mut connection) = state.seats.lose(seat, worker) else { return };
        debug_assert!(state.workers > 0, "worker {} was never counted", worker.pid);
        state.workers -= 1;
        for slot in state.entries.used() {
            if state.entries.queue.claim(&self.ring, slot) != Claim::Seat(seat) {
                continue;
            }
            if state.entries.is_at_work(slot) {
                state.entries.lose(&self.ring, slot, seat, worker);
            }
            if state.entries.continues(&self.ring, slot, worker) {
                state.unread.extend(connection.take().map(|connection| (slot, connection)));
            }
        }
        debug_assert!(state.unread.len() <= state.entries.queue.used(), "a free slot is unread");
        self.ring.forget_sleeper(seat);
        Self::unlock_and_wake(locked);
        drop(connection);
        self.trim_places(app);
        // It may have been woken for a request that it has not claimed, or have ended before it
        // could wake a loop.
        self.ring.wake_for_waiting();
        self.wake_collectors(|_| true);
    }

    /// Notes that a process has ended, or that it does not use its seat any more.
    pub(crate) fn process_ended(self: &Arc<Self>, app: &impl RingOwner<C>, pid: u32) {
        let (mut state, seat) = loop {
            let state = self.state.lock();
            let Some(seat) = state.seats.of_process(pid) else { return };
            let Some(worker) = state.seats.worker(seat).cloned() else { break (state, seat) };
            drop(state);
            self.worker_lost(app, seat, &worker);
        };
        let freed = state.entries.end_owner(seat);
        let connection = state.seats.free(seat);
        drop(state);
        drop(connection);
        (0..freed).for_each(|_| self.release_place(app));
    }

    /// Tells the workers that are marked as leaving.
    pub(crate) fn let_leaving_go(&self) {
        let leaving: Vec<u16> = {
            let state = self.state.lock();
            let leaving = state.seats.workers().filter(|(_, worker)| worker.is_leaving());
            leaving.map(|(seat, _)| seat).collect()
        };
        leaving.into_iter().for_each(|seat| self.ring.leave(seat));
        self.ring.wake_for_waiting();
    }
}
