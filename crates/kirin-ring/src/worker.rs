//! The worker's side, for tests and for tools that play a worker. Workers of applications use
//! `adapters/ring`, which takes the same steps.

use crate::claim::{Claim, Phase};
use crate::layout::{SlotWord, WAKING};
use crate::protocol;
use crate::queue::{LOOP_SHIFT, OVER_CONNECTION};
use crate::ring::{GO, LEAVE, Ring, WAIT};
use crate::words::Ordering::{Acquire, Relaxed, Release, SeqCst};
use crate::words::Words;

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

/// A worker in a seat.
pub struct Worker<'a> {
    ring: &'a Ring,
    seat: u16,
}

impl<'a> Worker<'a> {
    /// Returns the worker in a seat.
    pub fn new(ring: &'a Ring, seat: u16) -> Self {
        Self { ring, seat }
    }

    /// Looks for a request, once.
    pub fn look(&self) -> Turn {
        let (words, layout) = (self.ring.words(), self.ring.layout());
        match words.word(layout.command(self.seat)).load(SeqCst) {
            GO => {}
            LEAVE => {
                self.wake_another();
                return Turn::Leave;
            }
            _ => return Turn::Empty,
        }
        while let Some((position, slot)) = protocol::first_in_queue(words, layout) {
            let has_claimed = protocol::take(words, layout, position, slot, Claim::Seat(self.seat));
            protocol::pass(words, position);
            if has_claimed {
                self.wake_another();
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
    pub fn next(&self) -> Option<Taken> {
        let (words, layout) = (self.ring.words(), self.ring.layout());
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
            let is_empty =
                protocol::first_in_queue(words, layout).is_none() && command.load(SeqCst) == GO;
            if is_empty {
                words.wait(futex, value);
            }
            if sleepers.fetch_and(!bit, SeqCst) & bit == 0 {
                // It was woken, and looks now.
                words.word(WAKING).store(0, SeqCst);
            }
        }
    }

    /// Writes the phase of a request.
    pub fn set_phase(&self, taken: &Taken, phase: Phase) {
        let word = self.ring.layout().slot(taken.slot, SlotWord::Phase);
        self.ring.words().word(word).store(phase.word(), Release);
    }

    /// Says that the answer comes over the connection. The worker takes no other request before the
    /// front has read it.
    pub fn change_to_connection(&self, taken: &Taken) -> bool {
        let command = self.ring.words().word(self.ring.layout().command(self.seat));
        let _ = command.compare_exchange(GO, WAIT, SeqCst, Relaxed);
        self.set_phase(taken, Phase::OverConnection);
        self.report(taken)
    }

    /// Writes an answer. What does not fit is cut.
    pub fn write_answer(&self, taken: &Taken, answer: &[u8]) {
        let layout = self.ring.layout();
        let room = layout.sizes.answer_bytes;
        let length = self.ring.write(layout.answer(taken.slot), [answer, &[]], room);
        let word = layout.slot(taken.slot, SlotWord::AnswerBytes);
        self.ring.words().word(word).store(length as u64, Relaxed);
    }

    /// Reports a slot to its loop. Returns whether the loop sleeps, so that the caller must add 1 to
    /// its eventfd.
    pub fn report(&self, taken: &Taken) -> bool {
        let (words, layout) = (self.ring.words(), self.ring.layout());
        let finished = layout.finished(taken.event_loop, usize::from(taken.slot) / 64);
        words.word(finished).fetch_or(1 << (taken.slot % 64), SeqCst);
        words.word(layout.asleep(taken.event_loop)).swap(0, SeqCst) == 1
    }

    fn wake_another(&self) {
        protocol::wake_for_waiting(self.ring.words(), self.ring.layout());
    }
}
