//! The requests in a ring: what is known of each, and what its end was.

use std::sync::Arc;
use std::task::Waker;
use std::time::Instant;

use kirin_ring::{Claim, Phase, Queue, Ring};

use crate::worker_handle::WorkerHandle;

/// How a request has left the ring.
#[derive(Clone)]
pub(crate) enum Outcome {
    /// The worker in this seat has finished it, or continues over its connection. The phase of the
    /// slot says which.
    Finished { seat: u16, worker: Option<Arc<WorkerHandle>> },
    /// The worker ended. If it had run, the application may have seen the request.
    Lost { pid: u32, has_run: bool },
    /// The worker took too long and is killed.
    Overdue { pid: u32 },
    /// No worker has claimed it in time.
    Expired,
    /// The workers take long, the generation is replaced, or the application stops. No worker has
    /// claimed it.
    Withdrawn,
}

/// The effect of a report on a slot.
pub(super) enum Finished {
    /// The slot is in use.
    InUse,
    /// The slot is free.
    Freed,
    /// The slot is free, and nobody will read what this worker sends over its connection.
    Unread { seat: u16, worker: Arc<WorkerHandle> },
}

/// The state of a slot.
enum State {
    Free,
    /// Somebody waits for the answer.
    Waiting,
    /// The request has left the ring, and the one that waits has not taken note.
    Left(Outcome),
    /// Nobody waits for the answer any more.
    Abandoned,
    /// The answer has been taken. The worker cleans up.
    CleaningUp,
    /// Nobody waits. The slot is free when the worker's process has ended: it may write until then.
    Quarantined,
}

/// A request in a slot.
struct Entry {
    state: State,
    waker: Option<Waker>,
    put_at: Instant,
    /// When its worker has claimed it, or begun to clean up, if the supervisor has looked.
    begun_at: Option<Instant>,
    /// The worker that may write to the slot, if the front has seen that. The word in the ring
    /// could change later.
    owner: Option<u16>,
    /// Whether the process of that worker has ended.
    owner_has_ended: bool,
}

impl Entry {
    fn new(state: State, now: Instant) -> Self {
        let (begun_at, owner) = (None, None);
        Self { state, waker: None, put_at: now, begun_at, owner, owner_has_ended: false }
    }
}

/// The requests in all slots.
pub(super) struct Entries {
    pub(super) queue: Queue,
    entries: Vec<Entry>,
    /// Tasks that are to be woken when the lock has been released.
    pub(super) wakers: Vec<Waker>,
}

impl Entries {
    pub(super) fn new(ring: &Ring, now: Instant) -> Self {
        let entry = || Entry::new(State::Free, now);
        Self {
            queue: Queue::new(ring),
            entries: (0..ring.sizes().slots).map(|_| entry()).collect(),
            wakers: Vec::new(),
        }
    }

    fn entry(&mut self, slot: u16) -> &mut Entry {
        &mut self.entries[usize::from(slot)]
    }

    /// Returns the slots that are in use.
    pub(super) fn used(&self) -> impl Iterator<Item = u16> + use<> {
        let used: Vec<u16> =
            (0..self.entries.len() as u16).filter(|slot| !self.is_free(*slot)).collect();
        used.into_iter()
    }

    /// Notes that a request was put into a slot.
    pub(super) fn begin(&mut self, slot: u16, now: Instant) {
        debug_assert!(self.is_free(slot), "slot {slot} is in use already");
        *self.entry(slot) = Entry::new(State::Waiting, now);
    }

    /// Returns the outcome of a request, or has `waker` called when there is one.
    pub(super) fn poll(&mut self, slot: u16, waker: &Waker) -> Option<Outcome> {
        let entry = self.entry(slot);
        if let State::Left(outcome) = &entry.state {
            return Some(outcome.clone());
        }
        debug_assert!(matches!(entry.state, State::Waiting), "slot {slot} is another request's");
        match &mut entry.waker {
            Some(known) => known.clone_from(waker),
            none => *none = Some(waker.clone()),
        }
        None
    }

    /// Returns when a request was put into its slot.
    pub(super) fn put_at(&mut self, slot: u16) -> Instant {
        self.entry(slot).put_at
    }

    /// Returns when the request was claimed or the cleanup began, as far as the supervisor knows.
    /// The first time, that is `since`.
    pub(super) fn begun_at(&mut self, slot: u16, since: impl FnOnce() -> Instant) -> Instant {
        *self.entry(slot).begun_at.get_or_insert_with(since)
    }

    /// Returns whether somebody waits for the answer, and whether the worker cleans up.
    pub(super) fn is_waiting(&self, slot: u16) -> bool {
        matches!(self.entries[usize::from(slot)].state, State::Waiting)
    }

    pub(super) fn is_cleaning_up(&self, slot: u16) -> bool {
        matches!(self.entries[usize::from(slot)].state, State::CleaningUp)
    }

    fn is_free(&self, slot: u16) -> bool {
        matches!(self.entries[usize::from(slot)].state, State::Free)
    }

    /// Returns whether a worker may be at work on the slot.
    pub(super) fn is_at_work(&self, slot: u16) -> bool {
        let state = &self.entries[usize::from(slot)].state;
        matches!(state, State::Waiting | State::Abandoned | State::CleaningUp)
    }

    /// Notes that a request has left the ring. Returns true if nobody takes note of it.
    fn leave(&mut self, slot: u16, outcome: Outcome) -> bool {
        debug_assert!(self.is_at_work(slot), "the request in slot {slot} has left before");
        let entry = self.entry(slot);
        match entry.state {
            State::Waiting => {
                entry.state = State::Left(outcome);
                let waker = entry.waker.take();
                self.wakers.extend(waker);
                false
            }
            State::Abandoned | State::CleaningUp => true,
            State::Free | State::Left(_) | State::Quarantined => false,
        }
    }

    fn free(&mut self, slot: u16) {
        debug_assert!(!self.is_free(slot), "slot {slot} is free already");
        self.entry(slot).state = State::Free;
        self.entry(slot).waker = None;
        self.queue.free(slot);
    }

    /// Notes that a worker has reported a slot.
    pub(super) fn finish(
        &mut self,
        ring: &Ring,
        slot: u16,
        worker: impl FnOnce(u16) -> Option<Arc<WorkerHandle>>,
    ) -> Finished {
        if !self.is_at_work(slot) {
            return Finished::InUse;
        }
        let Claim::Seat(seat) = self.queue.claim(ring, slot) else { return Finished::InUse };
        match (ring.phase(slot), self.is_cleaning_up(slot)) {
            // The worker lies, or a late report is about an earlier request.
            (Phase::Queued | Phase::Running, _) => Finished::InUse,
            (Phase::AnsweredBeforeCleanup, true) => Finished::InUse,
            (Phase::AnsweredBeforeCleanup, false) if !self.is_waiting(slot) => {
                self.begin_cleanup(slot);
                self.entry(slot).owner = Some(seat);
                Finished::InUse
            }
            (phase, _) => {
                self.entry(slot).owner = Some(seat);
                let worker = worker(seat);
                if !self.leave(slot, Outcome::Finished { seat, worker: worker.clone() }) {
                    return Finished::InUse;
                }
                self.free(slot);
                match (phase, worker) {
                    (Phase::OverConnection, Some(worker)) => Finished::Unread { seat, worker },
                    _ => Finished::Freed,
                }
            }
        }
    }

    /// Notes that the answer has been taken. Returns whether the slot is free.
    pub(super) fn take_note(&mut self, ring: &Ring, slot: u16) -> bool {
        let entry = self.entry(slot);
        debug_assert!(matches!(entry.state, State::Left(_)), "slot {slot} has no outcome");
        let ends_later = match &entry.state {
            State::Left(Outcome::Finished { .. }) => {
                ring.phase(slot) == Phase::AnsweredBeforeCleanup
            }
            State::Left(Outcome::Lost { .. } | Outcome::Overdue { .. }) => true,
            _ => false,
        };
        if !ends_later || entry.owner_has_ended {
            self.free(slot);
            return true;
        }
        match &entry.state {
            State::Left(Outcome::Finished { .. }) => {
                debug_assert!(entry.owner.is_some(), "the end of no process frees slot {slot}");
                self.begin_cleanup(slot);
            }
            _ => entry.state = State::Quarantined,
        }
        false
    }

    fn begin_cleanup(&mut self, slot: u16) {
        let entry = self.entry(slot);
        entry.state = State::CleaningUp;
        entry.begun_at = None;
    }

    /// Notes that nobody waits for a request any more.
    pub(super) fn abandon(&mut self, ring: &Ring, slot: u16) -> Finished {
        if !self.is_waiting(slot) {
            let unread = match &self.entry(slot).state {
                State::Left(Outcome::Finished { seat, worker: Some(worker) })
                    if ring.phase(slot) == Phase::OverConnection =>
                {
                    Some(Finished::Unread { seat: *seat, worker: Arc::clone(worker) })
                }
                _ => None,
            };
            return match (self.take_note(ring, slot), unread) {
                (true, Some(unread)) => unread,
                (true, None) => Finished::Freed,
                (false, _) => Finished::InUse,
            };
        }
        if self.queue.withdraw(ring, slot) {
            self.free(slot);
            return Finished::Freed;
        }
        self.entry(slot).state = State::Abandoned;
        self.entry(slot).waker = None;
        Finished::InUse
    }

    /// Takes a request back that no worker has claimed. Returns whether that freed the slot; `None`
    /// if a worker has claimed it.
    pub(super) fn withdraw(&mut self, ring: &Ring, slot: u16, outcome: Outcome) -> Option<bool> {
        if !self.queue.withdraw(ring, slot) {
            return None;
        }
        let is_free = self.leave(slot, outcome);
        if is_free {
            self.free(slot);
        }
        Some(is_free)
    }

    /// Notes that the worker that has claimed a slot is lost.
    pub(super) fn lose(&mut self, ring: &Ring, slot: u16, seat: u16, worker: &Arc<WorkerHandle>) {
        let pid = worker.pid;
        let outcome = match ring.phase(slot) {
            Phase::Queued => Outcome::Lost { pid, has_run: false },
            Phase::Running => Outcome::Lost { pid, has_run: true },
            // The answer is complete, or its connection says that the worker has ended.
            _ => Outcome::Finished { seat, worker: Some(Arc::clone(worker)) },
        };
        self.quarantine(slot, seat, outcome);
    }

    /// Returns whether somebody is about to read the answer in a slot over the connection of
    /// `worker`.
    pub(super) fn continues(&self, ring: &Ring, slot: u16, worker: &Arc<WorkerHandle>) -> bool {
        match &self.entries[usize::from(slot)].state {
            State::Left(Outcome::Finished { worker: Some(finisher), .. }) => {
                Arc::ptr_eq(finisher, worker) && ring.phase(slot) == Phase::OverConnection
            }
            _ => false,
        }
    }

    fn quarantine(&mut self, slot: u16, seat: u16, outcome: Outcome) {
        debug_assert!(!self.entry(slot).owner_has_ended, "nothing ends to free slot {slot}");
        self.entry(slot).owner = Some(seat);
        if self.leave(slot, outcome) {
            self.entry(slot).state = State::Quarantined;
        }
    }

    /// Notes that no worker will answer a request, since its claim is none. The slot is not used
    /// again.
    pub(super) fn give_up(&mut self, slot: u16) {
        if self.leave(slot, Outcome::Lost { pid: 0, has_run: true }) {
            self.entry(slot).state = State::Quarantined;
        }
    }

    /// Notes that the worker of a slot takes too long and is killed.
    pub(super) fn condemn(&mut self, slot: u16, seat: u16, pid: u32) {
        self.quarantine(slot, seat, Outcome::Overdue { pid });
    }

    /// Notes that the process in a seat has ended, after its slots were noted as lost. Returns how
    /// many slots that freed.
    pub(super) fn end_owner(&mut self, seat: u16) -> usize {
        let mut freed = 0;
        for slot in self.used() {
            let entry = self.entry(slot);
            if entry.owner != Some(seat) {
                continue;
            }
            match entry.state {
                State::Quarantined | State::CleaningUp => {
                    self.free(slot);
                    freed += 1;
                }
                _ => {
                    debug_assert!(matches!(entry.state, State::Left(_)), "{slot} has an owner");
                    entry.owner_has_ended = true;
                }
            }
        }
        freed
    }
}
