//! The worker's side, for tests and for tools that play a worker. Workers of applications use
//! `adapters/ring`, which takes the same steps.

use crate::claim::{Claim, Phase};
use crate::layout::{GO, LEAVE, LOOP_SHIFT, Layout, OVER_CONNECTION, SlotWord, WAIT, WAKING};
use crate::protocol;
use crate::words::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::words::{Words, fence};

/// What a worker finds when it looks for work.
#[derive(Debug, PartialEq, Eq)]
pub enum Turn {
    /// A request.
    Request(Taken),
    /// The front says that the worker must leave.
    Leave,
    /// Nothing is there.
    Empty,
}

/// A request that this worker has claimed.
#[derive(Debug, PartialEq, Eq)]
pub struct Taken {
    /// The slot of the request.
    pub slot: u16,
    /// Whether the request comes over the connection.
    pub over_connection: bool,
    event_loop: usize,
}

/// A worker in a seat, on words of any kind.
pub(crate) struct WorkerOn<'a, W> {
    words: &'a W,
    layout: &'a Layout,
    seat: u16,
}

impl<'a, W: Words> WorkerOn<'a, W> {
    /// Returns the worker in a seat.
    pub(crate) fn new(words: &'a W, layout: &'a Layout, seat: u16) -> Self {
        Self { words, layout, seat }
    }

    /// Looks for a request, once.
    pub(crate) fn look(&self) -> Turn {
        let (words, layout) = (self.words, self.layout);
        match words.word(layout.command(self.seat)).load(SeqCst) {
            GO => {}
            LEAVE => {
                protocol::wake_for_waiting(words, layout);
                return Turn::Leave;
            }
            _ => return Turn::Empty,
        }
        while let Some((position, slot)) = protocol::first_in_queue(words, layout) {
            let has_claimed = protocol::take(words, layout, position, slot, Claim::Seat(self.seat));
            protocol::pass(words, position);
            if has_claimed {
                protocol::wake_for_waiting(words, layout);
                let request = words.word(layout.slot(slot, SlotWord::Request)).load(Acquire);
                return Turn::Request(Taken {
                    slot,
                    over_connection: request & OVER_CONNECTION != 0,
                    event_loop: (request >> LOOP_SHIFT) as usize,
                });
            }
        }
        Turn::Empty
    }

    /// Waits for a request. `None` says that the worker must leave.
    pub(crate) fn next(&self) -> Option<Taken> {
        let (words, layout) = (self.words, self.layout);
        let futex = layout.futex(self.seat);
        let sleepers = words.word(layout.sleepers(usize::from(self.seat) / 64));
        let bit = 1 << (self.seat % 64);
        loop {
            let value = words.futex(futex).load(SeqCst);
            match self.look() {
                Turn::Request(taken) => return Some(taken),
                Turn::Leave => return None,
                Turn::Empty => {}
            }
            let command = words.word(layout.command(self.seat));
            if command.load(SeqCst) == WAIT {
                words.wait(futex, value);
                continue;
            }
            sleepers.fetch_or(bit, SeqCst);
            fence(SeqCst);
            if protocol::first_in_queue(words, layout).is_none() && command.load(SeqCst) == GO {
                words.wait(futex, value);
            }
            if sleepers.fetch_and(!bit, SeqCst) & bit == 0 {
                // It was woken, and looks now.
                words.word(WAKING).store(0, SeqCst);
                fence(SeqCst);
            }
        }
    }

    /// Writes the phase of a request.
    pub(crate) fn set_phase(&self, taken: &Taken, phase: Phase) {
        let word = self.layout.slot(taken.slot, SlotWord::Phase);
        self.words.word(word).store(phase.word(), Release);
    }

    /// Says that the answer comes over the connection. The worker takes no other request before the
    /// front has read it. Returns what `report` returns.
    pub(crate) fn change_to_connection(&self, taken: &Taken) -> bool {
        let command = self.words.word(self.layout.command(self.seat));
        let _ = command.compare_exchange(GO, WAIT, SeqCst, Relaxed);
        self.set_phase(taken, Phase::OverConnection);
        self.report(taken)
    }

    /// Reports a slot to its loop. Returns whether the loop sleeps, so that the caller must add 1
    /// to its eventfd.
    pub(crate) fn report(&self, taken: &Taken) -> bool {
        let finished = self.layout.finished(taken.event_loop, usize::from(taken.slot) / 64);
        self.words.word(finished).fetch_or(1 << (taken.slot % 64), SeqCst);
        fence(SeqCst);
        self.words.word(self.layout.asleep(taken.event_loop)).swap(0, SeqCst) == 1
    }
}

#[cfg(not(feature = "loom"))]
mod on_ring {
    use super::{Phase, Taken, Turn, WorkerOn};
    use crate::copy;
    use crate::layout::SlotWord;
    use crate::mapping::Mapping;
    use crate::ring::Ring;
    use crate::words::Ordering::Relaxed;
    use crate::words::Words;

    /// A worker in a seat of a ring.
    pub struct Worker<'a>(WorkerOn<'a, Mapping>);

    impl<'a> Worker<'a> {
        /// Returns the worker in a seat.
        pub fn new(ring: &'a Ring, seat: u16) -> Self {
            Self(WorkerOn::new(ring.mapping(), ring.layout(), seat))
        }

        /// Looks for a request, once.
        pub fn look(&self) -> Turn {
            self.0.look()
        }

        /// Waits for a request. `None` says that the worker must leave.
        pub fn next(&self) -> Option<Taken> {
            self.0.next()
        }

        /// Writes the phase of a request.
        pub fn set_phase(&self, taken: &Taken, phase: Phase) {
            self.0.set_phase(taken, phase);
        }

        /// Says that the answer comes over the connection. The worker takes no other request before
        /// the front has read it. Returns what [`Worker::report`] returns.
        pub fn change_to_connection(&self, taken: &Taken) -> bool {
            self.0.change_to_connection(taken)
        }

        /// Reports a slot to its loop. Returns whether the loop sleeps, so that the caller must add
        /// 1 to its eventfd.
        pub fn report(&self, taken: &Taken) -> bool {
            self.0.report(taken)
        }

        /// Writes an answer. What does not fit is cut.
        pub fn write_answer(&self, taken: &Taken, answer: &[u8]) {
            let (words, layout) = (self.0.words, self.0.layout);
            let room = layout.sizes.answer_bytes;
            let length = copy::write(words, layout.answer(taken.slot), [answer, &[]], room);
            let word = layout.slot(taken.slot, SlotWord::AnswerBytes);
            words.word(word).store(length as u64, Relaxed);
        }
    }
}

#[cfg(not(feature = "loom"))]
pub use on_ring::Worker;
