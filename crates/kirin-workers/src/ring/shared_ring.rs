//! The ring of one generation, as the event loops and the supervisor share it.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::Waker;
use std::thread::ThreadId;
use std::time::{Duration, Instant};

use kirin_ring::{Ring, Sizes};
use parking_lot::Mutex;
use rustix::event::{EventfdFlags, eventfd};
use rustix::time::{ClockId, clock_gettime};

use crate::ring::entries::{Entries, Outcome};
use crate::ring::lookahead::ServiceTime;
use crate::ring::owner::{Parked, RingOwner};
use crate::ring::room::{ANSWER_BYTES, REQUEST_BYTES, SLOT_BYTES};
use crate::ring::seats::Seats;

/// The most requests in a ring.
const MAX_SLOTS: u64 = 65_533;

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
    pub(super) epoch: (Instant, u64),
}

/// An event loop's side of a ring.
pub(super) struct LoopSide {
    /// Wakes the loop while it sleeps.
    pub(super) eventfd: OwnedFd,
    /// The thread and the task that collects finished slots.
    pub(super) collector: Mutex<Option<(ThreadId, Waker)>>,
    /// How many requests the loop has put into the ring since a worker was to be woken for them; 0
    /// if none must be woken.
    pub(super) unannounced: AtomicUsize,
}

/// What the lock protects.
pub(super) struct RingState<C> {
    pub(super) entries: Entries,
    pub(super) seats: Seats<C>,
    /// The connections of workers that have ended, over which the answer to the request in a slot
    /// has come. The one that waits for it has not read it.
    pub(super) unread: Vec<(u16, C)>,
    pub(super) workers: usize,
    pub(super) service: ServiceTime,
}

impl<C> RingState<C> {
    pub(super) fn take_unread(&mut self, slot: u16) -> Option<C> {
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
    pub(super) fn this_loop(&self) -> usize {
        if let [_] = &self.loops[..] {
            return 0;
        }
        let here = std::thread::current().id();
        let is_here = |side: &LoopSide| {
            side.collector.lock().as_ref().is_some_and(|(thread, _)| *thread == here)
        };
        self.loops.iter().position(is_here).unwrap_or(0)
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

    /// Releases the lock, and wakes those whose requests have left the ring.
    pub(super) fn unlock_and_wake(mut state: parking_lot::MutexGuard<'_, RingState<C>>) {
        let wakers = std::mem::take(&mut state.entries.wakers);
        drop(state);
        wakers.into_iter().for_each(Waker::wake);
    }

    /// Returns the moment that is `ns` on CLOCK_MONOTONIC, at least `least` and at most now.
    pub(super) fn instant(&self, ns: u64, least: Instant) -> Instant {
        let (epoch, epoch_ns) = self.epoch;
        let since = Duration::from_nanos(ns.saturating_sub(epoch_ns));
        let now = Instant::now();
        epoch.checked_add(since).map_or(now, |at| at.min(now)).max(least)
    }
}

impl LoopSide {
    fn new() -> io::Result<Self> {
        let eventfd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { eventfd, collector: Mutex::new(None), unannounced: AtomicUsize::new(0) })
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
