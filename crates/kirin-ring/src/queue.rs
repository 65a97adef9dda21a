//! The front's own account of a ring: the free slots, and the end of the queue. Workers cannot
//! reach it.

use crate::claim::Claim;
use crate::layout::{LOOP_SHIFT, OVER_CONNECTION, SlotWord};
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
}

/// There is no place for a request.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("no place in the ring")]
pub struct NoPlace;

impl Queue {
    /// Returns the account of a ring that nobody has used.
    pub fn new(ring: &Ring) -> Self {
        let slots = ring.layout().sizes.slots as u16;
        Self { free: (0..slots).rev().collect(), positions: vec![0; slots.into()], next: 1 }
    }

    /// Puts a request into the queue, which consists of `parts` that follow each other. `None`
    /// stands for a request that comes over the connection of the worker that claims it. Wakes a
    /// worker if that is needed. Returns the slot.
    pub fn put(
        &mut self,
        ring: &Ring,
        event_loop: usize,
        parts: Option<[&[u8]; 2]>,
    ) -> Result<u16, NoPlace> {
        let layout = ring.layout();
        let first = protocol::first_in_queue(ring.words(), layout);
        let head = first.map_or(self.next, |(position, _)| position);
        // A head beyond the end, or far behind it, comes from a worker that lies.
        if self.next.wrapping_sub(head) >= layout.cells as u64 {
            return Err(NoPlace);
        }
        let slot = self.free.pop().ok_or(NoPlace)?;
        let position = self.next;
        self.next += 1;
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
        protocol::publish(ring.words(), layout, position, slot);
        Ok(slot)
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

    /// Takes a request back that nobody has claimed. Returns whether it was possible.
    pub fn withdraw(&mut self, ring: &Ring, slot: u16) -> bool {
        let position = self.positions[usize::from(slot)];
        protocol::take(ring.words(), ring.layout(), position, slot, Claim::Withdrawn)
    }

    /// Frees a slot that no worker will write any more. The caller must own it.
    pub fn free(&mut self, slot: u16) {
        debug_assert!(!self.free.contains(&slot), "slot {slot} is free already");
        self.free.push(slot);
    }
}
