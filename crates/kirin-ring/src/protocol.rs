//! The steps of the protocol on the shared words, as both sides take them. No state, no I/O but
//! futexes.

use crate::claim::{Claim, cell, slot_of_cell};
use crate::layout::{HEAD, Layout, SlotWord, WAIT, WAKING};
use crate::words::Ordering::{Relaxed, Release, SeqCst};
use crate::words::{Words, fence};

/// Returns the position of the first request that nobody has claimed, and its slot. The head is
/// moved past requests that somebody has claimed, because their worker may have ended before it
/// could do so.
pub(crate) fn first_in_queue(words: &impl Words, layout: &Layout) -> Option<(u64, u16)> {
    // The head may come from a worker that lies. Then the loop ends after one round of the queue.
    for _ in 0..=layout.cells {
        let head = words.word(HEAD).load(SeqCst);
        let cell = words.word(layout.cell(head)).load(SeqCst);
        let Some(slot) = slot_of_cell(cell, head).filter(|slot| is_slot(layout, *slot)) else {
            if words.word(HEAD).load(SeqCst) == head {
                return None;
            }
            continue;
        };
        let claim = words.word(layout.slot(slot, SlotWord::Claim)).load(SeqCst);
        if claim == Claim::Nobody.word(head) {
            return Some((head, slot));
        }
        pass(words, head);
    }
    None
}

/// Moves the head past the request at `position`, unless it is there already.
pub(crate) fn pass(words: &impl Words, position: u64) {
    let next = position.wrapping_add(1);
    let _ = words.word(HEAD).compare_exchange(position, next, SeqCst, Relaxed);
}

/// Puts the request in a slot into the queue at `position`. Returns whether a worker must be woken
/// for it ([`wake_for_waiting`]). Otherwise one that is awake takes it or wakes another one.
#[must_use]
pub(crate) fn publish(words: &impl Words, layout: &Layout, position: u64, slot: u16) -> bool {
    let claim = words.word(layout.slot(slot, SlotWord::Claim));
    claim.store(Claim::Nobody.word(position), Release);
    words.word(layout.cell(position)).store(cell(position, slot), Release);
    // Either a worker that falls asleep sees the cell, or this sees that it sleeps.
    fence(SeqCst);
    // A worker that claims an earlier request from now on sees this one.
    first_in_queue(words, layout) == Some((position, slot))
}

/// Claims a request that no worker has. Returns whether that was possible.
pub(crate) fn take(
    words: &impl Words,
    layout: &Layout,
    position: u64,
    slot: u16,
    claim: Claim,
) -> bool {
    let word = words.word(layout.slot(slot, SlotWord::Claim));
    let (old, new) = (Claim::Nobody.word(position), claim.word(position));
    word.compare_exchange(old, new, SeqCst, SeqCst).is_ok()
}

/// Wakes the sleeping worker with the lowest number, if there is one.
pub(crate) fn wake_sleeper(words: &impl Words, layout: &Layout) -> bool {
    // The worker sets this to 0 when it looks, so it must be 1 before the worker can be woken.
    words.word(WAKING).store(1, SeqCst);
    for index in 0..layout.sleeper_words() {
        let word = words.word(layout.sleepers(index));
        // Each bit is tried once: a worker that falls asleep later looks at the queue itself, and
        // one that lies cannot keep the front here.
        let mut sleepers = word.load(SeqCst);
        while sleepers != 0 {
            let bit = sleepers & sleepers.wrapping_neg();
            sleepers &= !bit;
            let number = 64 * index + bit.trailing_zeros() as usize;
            if word.fetch_and(!bit, SeqCst) & bit != 0 && number < layout.sizes.seats {
                wake_seat(words, layout, number as u16);
                return true;
            }
        }
    }
    words.word(WAKING).store(0, SeqCst);
    false
}

/// Wakes a worker if there is a request that nobody has claimed. While one has been woken and has
/// not looked yet, that is enough: it wakes the next.
pub(crate) fn wake_for_waiting(words: &impl Words, layout: &Layout) {
    // Either this sees the cell of the next request, or the front sees that the head has moved.
    // Sequentially consistent operations suffice in C11, but loom takes only fences as such.
    fence(SeqCst);
    let waking = words.word(WAKING);
    if waking.load(SeqCst) == 0
        && first_in_queue(words, layout).is_some()
        && waking.compare_exchange(0, 1, SeqCst, SeqCst).is_ok()
    {
        wake_sleeper(words, layout);
    }
}

/// Wakes the worker in a seat if it sleeps, or keeps it from falling asleep.
pub(crate) fn wake_seat(words: &impl Words, layout: &Layout, seat: u16) {
    words.futex(layout.futex(seat)).fetch_add(1, SeqCst);
    words.wake(layout.futex(seat));
}

/// Forgets that the worker in a seat sleeps.
pub(crate) fn forget_sleeper(words: &impl Words, layout: &Layout, seat: u16) {
    let word = words.word(layout.sleepers(usize::from(seat) / 64));
    word.fetch_and(!(1 << (seat % 64)), SeqCst);
}

/// Returns whether the bit of a seat says that its worker sleeps.
pub(crate) fn is_asleep(words: &impl Words, layout: &Layout, seat: u16) -> bool {
    let word = words.word(layout.sleepers(usize::from(seat) / 64));
    word.load(SeqCst) & 1 << (seat % 64) != 0
}

/// Makes up for what a worker that has ended may have left half done: it may have been woken, or it
/// may have taken away the bit of a sleeper that it could not wake any more.
pub(crate) fn make_up_for_end(words: &impl Words, layout: &Layout) {
    words.word(WAKING).store(0, SeqCst);
    for seat in 0..layout.sizes.seats as u16 {
        // A worker that waits for the front has no part in the queue, and most seats are empty.
        if words.word(layout.command(seat)).load(SeqCst) != WAIT {
            wake_seat(words, layout, seat);
        }
    }
}

/// Marks a loop as asleep. The caller must then look at the finished slots once more.
pub(crate) fn fall_asleep(words: &impl Words, layout: &Layout, event_loop: usize) {
    // Workers swap it too, so that all changes have one order for loom as well.
    words.word(layout.asleep(event_loop)).swap(1, SeqCst);
    fence(SeqCst);
}

/// Returns whether a number is that of a slot.
pub(crate) fn is_slot(layout: &Layout, slot: u16) -> bool {
    usize::from(slot) < layout.sizes.slots
}

#[cfg(all(test, not(feature = "loom")))]
mod tests {
    use std::sync::atomic::AtomicBool;
    use std::sync::{Arc, mpsc};
    use std::time::Duration;

    use super::*;
    use crate::layout::{GO, Sizes};
    use crate::ring::Ring;

    const SIZES: Sizes =
        Sizes { slots: 2, seats: 3, loops: 1, request_bytes: 64, answer_bytes: 64 };

    #[test]
    fn bits_of_seats_that_do_not_exist_do_not_keep_the_front() {
        let ring = Arc::new(Ring::create("test", SIZES).unwrap());
        let is_over = Arc::new(AtomicBool::new(false));
        let liar = std::thread::spawn({
            let (ring, is_over) = (Arc::clone(&ring), Arc::clone(&is_over));
            move || {
                while !is_over.load(Relaxed) {
                    ring.words().word(ring.layout().sleepers(0)).store(!0 << SIZES.seats, SeqCst);
                }
            }
        });
        let (sender, receiver) = mpsc::channel();
        let front = std::thread::spawn(move || {
            let has_woken = (0..1000).any(|_| wake_sleeper(ring.words(), ring.layout()));
            sender.send(has_woken).unwrap();
        });
        let has_woken = receiver.recv_timeout(Duration::from_secs(60));
        is_over.store(true, Relaxed);
        liar.join().unwrap();
        front.join().unwrap();
        assert_eq!(has_woken, Ok(false));
    }

    #[test]
    fn the_sleeper_with_the_lowest_seat_is_woken() {
        let ring = Ring::create("test", SIZES).unwrap();
        let (words, layout) = (ring.words(), ring.layout());
        let futexes = || [0, 1, 2].map(|seat| words.futex(layout.futex(seat)).load(SeqCst));
        words.word(layout.sleepers(0)).store(0b1110, SeqCst);
        for expected in [[0, 1, 0], [0, 1, 1]] {
            assert!(wake_sleeper(words, layout));
            assert_eq!((futexes(), words.word(WAKING).load(SeqCst)), (expected, 1));
        }
        // The last bit is that of no seat.
        assert!(!wake_sleeper(words, layout));
        assert_eq!((futexes(), words.word(WAKING).load(SeqCst)), ([0, 1, 1], 0));
        assert_eq!(words.word(layout.sleepers(0)).load(SeqCst), 0);
    }

    #[test]
    fn a_worker_that_is_asked_to_look_is_awake_until_it_sleeps_again() {
        let ring = Ring::create("test", SIZES).unwrap();
        let (words, layout) = (ring.words(), ring.layout());
        words.word(layout.sleepers(0)).store(0b101, SeqCst);
        assert_eq!([0, 1, 2].map(|seat| ring.is_asleep(seat)), [true, false, true]);
        ring.ask_to_look(2);
        ring.ask_to_look(1);
        assert_eq!([0, 1, 2].map(|seat| ring.is_asleep(seat)), [true, false, false]);
        let futexes = [0, 1, 2].map(|seat| words.futex(layout.futex(seat)).load(SeqCst));
        assert_eq!(futexes, [0, 1, 1]);
    }

    #[test]
    fn an_end_wakes_the_workers_that_take_requests() {
        let ring = Ring::create("test", SIZES).unwrap();
        let (words, layout) = (ring.words(), ring.layout());
        words.word(layout.command(0)).store(GO, SeqCst);
        words.word(layout.command(2)).store(GO, SeqCst);
        words.word(layout.sleepers(0)).store(0b101, SeqCst);
        words.word(WAKING).store(1, SeqCst);
        ring.forget_sleeper(2);
        let futexes = [0, 1, 2].map(|seat| words.futex(layout.futex(seat)).load(SeqCst));
        assert_eq!(futexes, [1, 0, 1]);
        assert_eq!(words.word(layout.sleepers(0)).load(SeqCst), 0b001);
        assert_eq!(words.word(WAKING).load(SeqCst), 0);
    }

    #[test]
    fn a_head_that_lies_ends_the_search() {
        let ring = Ring::create("test", SIZES).unwrap();
        let (words, layout) = (ring.words(), ring.layout());
        for head in [5, 1 << 48, u64::MAX] {
            words.word(HEAD).store(head, SeqCst);
            assert_eq!(first_in_queue(words, layout), None, "{head}");
        }
        // All cells are for their positions, of which each has been claimed, without an end.
        words.word(HEAD).store(8, SeqCst);
        for position in 8..8 + layout.cells as u64 {
            words.word(layout.cell(position)).store(cell(position, 1), SeqCst);
        }
        assert_eq!(first_in_queue(words, layout), None);
        // A slot that does not exist.
        words.word(HEAD).store(9, SeqCst);
        words.word(layout.cell(9)).store(cell(9, 2), SeqCst);
        assert_eq!(first_in_queue(words, layout), None);
    }
}
