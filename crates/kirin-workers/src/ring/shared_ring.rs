//! The ring of one generation, as the event loops and the supervisor share it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use kirin_ring::{BadAnswer, Claim, NoPlace, Phase, Ring, Sizes};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{ClockId, clock_gettime};

use crate::ring::entries::{Entries, Finished, Outcome};
use crate::ring::lookahead::ServiceTime;
use crate::ring::owner::{Parked, RingOwner};
use crate::ring::place::RingPlace;
use crate::ring::room::{ANSWER_BYTES, REQUEST_BYTES, SLOT_BYTES};
use crate::ring::seats::Seats;
use crate::worker_handle::WorkerHandle;

/// The most requests in a ring.
const MAX_SLOTS: u64 = 65_533;

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

/// Why a request is not in the ring.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum NotPut {
    /// All slots are in use.
    Full,
    /// Another generation serves since the place was given.
    Retired,
}

/// A ring and what is known of its requests and workers.
pub(crate) struct SharedRing<C: Parked> {
    generation: u64,
    pub(super) ring: Ring,
    pub(super) loops: Vec<LoopSide>,
    pub(super) state: Mutex<RingState<C>>,
    /// The places in the pool, and those of requests.
    pub(super) places: AtomicUsize,
    /// How many there should be.
    pub(super) most_places: AtomicUsize,
    /// Whether another generation serves.
    is_retired: AtomicBool,
    /// The same moment on two clocks: the one of `Instant`, and nanoseconds of CLOCK_MONOTONIC.
    epoch: (Instant, u64),
}

/// An event loop's side of a ring.
pub(super) struct LoopSide {
    /// Wakes the loop while it sleeps.
    pub(super) eventfd: OwnedFd,
    /// The thread and the task that collects finished slots.
    pub(super) collector: Mutex<Option<(ThreadId, Waker)>>,
}

/// What the lock protects.
pub(super) struct RingState<C> {
    pub(super) entries: Entries,
    pub(super) seats: Seats<C>,
    /// The connections of workers that have ended, over which the answer to the request in a slot
    /// has come. The one that waits for it has not read it.
    unread: Vec<(u16, C)>,
    pub(super) workers: usize,
    pub(super) service: ServiceTime,
}

impl<C> RingState<C> {
    fn take_unread(&mut self, slot: u16) -> Option<C> {
        let at = self.unread.iter().position(|(unread, _)| *unread == slot)?;
        Some(self.unread.swap_remove(at).1)
    }
}

impl<C: Parked> SharedRing<C> {
    /// Creates a ring in at most `bytes` of memory for the workers of one generation.
    pub(crate) fn create(
        app: &str,
        generation: u64,
        bytes: u64,
        loops: usize,
    ) -> io::Result<Arc<Self>> {
        let slots = (bytes / SLOT_BYTES).min(MAX_SLOTS) as usize;
        let (request_bytes, answer_bytes) = (REQUEST_BYTES, ANSWER_BYTES);
        // A worker has at most one slot. So workers beyond the number of slots need no seat.
        let sizes = Sizes { slots, seats: slots, loops, request_bytes, answer_bytes };
        let ring = Ring::create(&format!("kirin-ring-{app}"), sizes)?;
        let now = Instant::now();
        let loops = (0..loops).map(|_| LoopSide::new()).collect::<io::Result<_>>()?;
        let state = RingState {
            entries: Entries::new(&ring, now),
            seats: Seats::new(slots),
            unread: Vec::new(),
            workers: 0,
            service: ServiceTime::default(),
        };
        Ok(Arc::new(Self {
            generation,
            ring,
            loops,
            state: Mutex::new(state),
            places: AtomicUsize::new(0),
            most_places: AtomicUsize::new(0),
            is_retired: AtomicBool::new(false),
            epoch: (now, monotonic_ns()),
        }))
    }

    /// Returns the number of the generation.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.is_retired.load(Ordering::Relaxed)
    }

    /// Notes the task that collects what is finished, and the thread that runs it.
    pub(super) fn set_collector(&self, event_loop: usize, waker: &Waker) {
        let mut collector = self.loops[event_loop].collector.lock();
        match &mut *collector {
            Some((_, known)) => known.clone_from(waker),
            none => *none = Some((std::thread::current().id(), waker.clone())),
        }
    }

    /// Returns the number of the loop that runs on this thread. A request from any other thread is
    /// collected by the first loop.
    fn this_loop(&self) -> usize {
        if let [_] = &self.loops[..] {
            return 0;
        }
        let here = std::thread::current().id();
        let is_here = |side: &LoopSide| {
            side.collector.lock().as_ref().is_some_and(|(thread, _)| *thread == here)
        };
        self.loops.iter().position(is_here).unwrap_or(0)
    }
}

impl LoopSide {
    fn new() -> io::Result<Self> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { eventfd, collector: Mutex::new(None) })
    }
}

/// Requests.
impl<C: Parked> SharedRing<C> {
    /// Puts a request into the ring. `None` as `parts` stands for a request that goes over the
    /// connection of the worker that claims it. Returns the slot, and whether all workers are busy.
    pub(crate) fn put(
        &self,
        place: RingPlace<C>,
        parts: Option<[&[u8]; 2]>,
        now: Instant,
    ) -> Result<(u16, bool), NotPut> {
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
        drop(state);
        // It stays counted until the request has left the ring.
        place.keep_counted();
        // The loop is awake. The collector looks again before the loop falls asleep.
        if self.ring.wake_up(event_loop)
            && let Some((_, collector)) = &*self.loops[event_loop].collector.lock()
        {
            collector.wake_by_ref();
        }
        Ok((slot, must_wait))
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

    /// Releases the lock, and wakes those whose requests have left the ring.
    pub(super) fn unlock_and_wake(mut state: parking_lot::MutexGuard<'_, RingState<C>>) {
        let wakers = std::mem::take(&mut state.entries.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
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

    /// Tells a worker to leave, whose connection is about to be closed.
    pub(crate) fn dismiss(&self, seat: u16, worker: &Arc<WorkerHandle>) {
        // The seat may be another worker's already.
        if self.state.lock().seats.is_of(seat, worker) {
            self.ring.leave(seat);
        }
    }

    /// Returns when a worker has claimed the request in a slot, as the worker says; but not before
    /// it was put there, and not later than now.
    pub(crate) fn claimed_at(&self, slot: u16, put_at: Instant) -> Instant {
        self.instant(self.ring.claimed_at_ns(slot), put_at)
    }

    /// Returns the moment that is `ns` on CLOCK_MONOTONIC, at least `least` and at most now.
    fn instant(&self, ns: u64, least: Instant) -> Instant {
        let (epoch, epoch_ns) = self.epoch;
        let since = Duration::from_nanos(ns.saturating_sub(epoch_ns));
        let now = Instant::now();
        epoch.checked_add(since).map_or(now, |at| at.min(now)).max(least)
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

/// Workers.
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
        *connection.place() = Some(RingPlace::counted(Arc::clone(self)));
        Some(connection)
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
        self.ring.forget_sleeper(seat);
        Self::unlock_and_wake(locked);
        drop(connection);
        self.trim_places(app);
        // It may have been woken for a request that it has not claimed, or have ended before it
        // could wake a loop.
        self.ring.wake_for_waiting();
        self.wake_collectors(|_| true);
    }

    /// Wakes the loops for which `is_wanted` is true. The worker that was to wake a loop may have
    /// been stopped or killed before it could do so, even after it had said in the ring that it
    /// would.
    pub(super) fn wake_collectors(&self, is_wanted: impl Fn(usize) -> bool) {
        for (index, side) in self.loops.iter().enumerate() {
            if is_wanted(index)
                && let Some((_, collector)) = &*side.collector.lock()
            {
                collector.wake_by_ref();
            }
        }
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

    /// Takes no more requests. Those that no worker has claimed leave the ring.
    pub(crate) fn retire(self: &Arc<Self>, app: &impl RingOwner<C>) {
        self.is_retired.store(true, Ordering::Relaxed);
        self.withdraw_if(app, Outcome::Withdrawn, |_| true);
        self.trim_places(app);
    }

    /// Notes that all processes of the generation have been killed.
    pub(crate) fn end(self: &Arc<Self>, app: &impl RingOwner<C>) {
        self.retire(app);
        let workers: Vec<_> = {
            let state = self.state.lock();
            state.seats.workers().map(|(seat, worker)| (seat, Arc::clone(worker))).collect()
        };
        for (seat, worker) in workers {
            self.worker_lost(app, seat, &worker);
        }
    }
}

/// Returns the time of CLOCK_MONOTONIC, which is the clock of `Instant` on Linux.
fn monotonic_ns() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
#[path = "shared_ring_tests.rs"]
mod tests;
