//! The front's own account of a ring: the free slots, and the end of the queue. Workers cannot
//! reach it.

use crate::claim::{Claim, POSITION_BITS};
use crate::layout::{HEAD, LOOP_SHIFT, OVER_CONNECTION, SlotWord};
use crate::protocol;
use crate::ring::Ring;
use crate::words::Ordering::{Relaxed, SeqCst};
use crate::words::Words;

/// Which slots are free, and which positions the others have.
#[derive(Debug)]
pub struct Queue {
    /// The slot that was used last is last: its memory is warm, and slots that are not needed never
    /// take memory.
    free: Vec<u16>,
    /// The position of the request in each slot.
    positions: Vec<u64>,
    /// The position of the next request.
    next: u64,
    /// Whether a worker must be woken.
    wakes: bool,
}

/// There is no place for a request.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no place in the ring")]
pub struct NoPlace;

impl Queue {
    /// Returns the account of a ring that nobody has used.
    pub fn new(ring: &Ring) -> Self {
        let slots = ring.layout().sizes.slots as u16;
        let free = (0..slots).rev().collect();
        Self { free, positions: vec![0; slots.into()], next: 1, wakes: false }
    }

    /// Puts a request into the queue, which consists of `parts` that follow each other. `None`
    /// stands for a request that comes over the connection of the worker that claims it. Returns
    /// the slot. A worker may have to be woken for it ([`Queue::take_wake`]).
    pub fn put(
        &mut self,
        ring: &Ring,
        event_loop: usize,
        parts: Option<[&[u8]; 2]>,
    ) -> Result<u16, NoPlace> {
        let layout = ring.layout();
        debug_assert!(event_loop < layout.sizes.loops, "loop {event_loop} does not exist");
        let first = protocol::first_in_queue(ring.words(), layout);
        let head = first.map_or(self.next, |(position, _)| position);
        // A head beyond the end, or far behind it, comes from a worker that lies.
        if self.next.wrapping_sub(head) >= layout.cells as u64 {
            return Err(NoPlace);
        }
        let slot = self.free.pop().ok_or(NoPlace)?;
        let position = self.next;
        debug_assert!(position < 1 << POSITION_BITS, "position {position} fits no claim");
        self.next += 1;
        debug_assert!(self.positions[usize::from(slot)] < position, "{position} is used twice");
        self.positions[usize::from(slot)] = position;
        let word = |word| ring.words().word(layout.slot(slot, word));
        let mut request = (event_loop as u64) << LOOP_SHIFT;
        match parts {
            Some(parts) => {
                let length = ring.write_request(slot, parts);
                word(SlotWord::RequestBytes).store(length as u64, Relaxed);
            }
            None => request |= OVER_CONNECTION,
        }
        word(SlotWord::Request).store(request, Relaxed);
        word(SlotWord::Phase).store(0, Relaxed);
        word(SlotWord::ClaimedAt).store(0, Relaxed);
        word(SlotWord::AnswerBytes).store(0, Relaxed);
        self.wakes |= protocol::publish(ring.words(), layout, position, slot);
        Ok(slot)
    }

    /// Returns whether a worker must be woken for the requests that were put since the last call
    /// ([`Ring::wake_for_put`]). Several of them need only one.
    pub fn take_wake(&mut self) -> bool {
        std::mem::take(&mut self.wakes)
    }

    /// Returns how many slots are in use.
    pub fn used(&self) -> usize {
        self.positions.len() - self.free.len()
    }

    /// Returns the worker that has the request in a slot that is in use. A word that is no claim
    /// counts as that of a request that no worker has.
    pub fn claim(&self, ring: &Ring, slot: u16) -> Claim {
        let word = ring.words().word(ring.layout().slot(slot, SlotWord::Claim)).load(SeqCst);
        let claim = Claim::parse(word, self.positions[usize::from(slot)]);
        match claim {
            Some(Claim::Seat(seat)) if usize::from(seat) >= ring.layout().sizes.seats => {
                Claim::Nobody
            }
            claim => claim.unwrap_or(Claim::Nobody),
        }
    }

    /// Returns whether workers find the oldest request in `slots` that nobody has claimed. They do
    /// not if an application has overwritten the head or a cell.
    pub fn is_intact(&self, ring: &Ring, slots: impl Iterator<Item = u16>) -> bool {
        let waits = |slot: &u16| {
            let word = ring.words().word(ring.layout().slot(*slot, SlotWord::Claim)).load(SeqCst);
            word == Claim::Nobody.word(self.positions[usize::from(*slot)])
        };
        let position = |slot: &u16| self.positions[usize::from(*slot)];
        let Some(oldest) = slots.filter(waits).min_by_key(position) else { return true };
        let first = protocol::first_in_queue(ring.words(), ring.layout());
        let is_found = first.is_some_and(|(first, _)| first <= position(&oldest));
        // A worker may have claimed it in between.
        is_found || !waits(&oldest)
    }

    /// Moves the head to the end of the queue. The caller has withdrawn the requests that nobody
    /// has claimed.
    pub fn restart(&self, ring: &Ring) {
        ring.words().word(HEAD).store(self.next, SeqCst);
    }

    /// Takes a request back that nobody has claimed. Returns whether it was possible.
    pub fn withdraw(&mut self, ring: &Ring, slot: u16) -> bool {
        let position = self.positions[usize::from(slot)];
        debug_assert!(position < self.next, "slot {slot} has position {position}");
        debug_assert!(position > 0, "slot {slot} was never used");
        protocol::take(ring.words(), ring.layout(), position, slot, Claim::Withdrawn)
    }

    /// Frees a slot that no worker will write any more. The caller must own it.
    pub fn free(&mut self, slot: u16) {
        debug_assert!(!self.free.contains(&slot), "slot {slot} is free already");
        self.free.push(slot);
        debug_assert!(self.free.len() <= self.positions.len(), "more free slots than slots");
    }
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use super::*;
    use crate::layout::Sizes;
    use crate::worker::{Turn, Worker};

    const SIZES: Sizes =
        Sizes { slots: 4, seats: 2, loops: 1, request_bytes: 64, answer_bytes: 64 };

    fn admitted(ring: &Ring) -> Worker<'_> {
        ring.admit(0);
        Worker::new(ring, 0)
    }

    #[test]
    fn an_overwritten_head_or_cell_is_noticed_and_a_restart_mends_it() {
        let ring = Ring::create("test", SIZES).unwrap();
        let worker = admitted(&ring);
        let mut queue = Queue::new(&ring);
        for round in 0..20_u64 {
            let slots = [0, 1].map(|_| queue.put(&ring, 0, Some([b"a", b"b"])).unwrap());
            assert!(queue.is_intact(&ring, slots.into_iter()), "round {round}");
            let place = match round % 4 {
                0 => HEAD,
                _ => ring.layout().cell(queue.positions[usize::from(slots[0])]),
            };
            ring.words().word(place).store(u64::MAX - round, SeqCst);
            assert!(!queue.is_intact(&ring, slots.into_iter()), "round {round}");
            assert_eq!(worker.look(), Turn::Empty, "round {round}");
            for slot in slots {
                assert!(queue.withdraw(&ring, slot), "round {round}");
                queue.free(slot);
            }
            queue.restart(&ring);
            let slot = queue.put(&ring, 0, None).unwrap();
            assert!(queue.is_intact(&ring, [slot].into_iter()), "round {round}");
            let Turn::Request(taken) = worker.look() else { panic!("no request, round {round}") };
            assert_eq!(taken.slot, slot, "round {round}");
            assert!(queue.is_intact(&ring, [slot].into_iter()), "round {round}");
            queue.free(slot);
        }
    }

    #[test]
    fn a_head_behind_the_oldest_request_is_intact_and_one_before_it_is_not() {
        let ring = Ring::create("test", SIZES).unwrap();
        let worker = admitted(&ring);
        let mut queue = Queue::new(&ring);
        let slots = [0, 1, 2].map(|_| queue.put(&ring, 0, None).unwrap());
        assert!(matches!(worker.look(), Turn::Request(taken) if taken.slot == slots[0]));
        ring.words().word(HEAD).store(1, SeqCst);
        assert!(queue.is_intact(&ring, slots.into_iter()));
        // The head is past the second request.
        ring.words().word(HEAD).store(3, SeqCst);
        assert!(!queue.is_intact(&ring, slots.into_iter()));
    }
}
