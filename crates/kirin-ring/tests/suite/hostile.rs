//! A worker that writes anything anywhere, at any time. The front neither panics nor hangs, and
//! what it returns is within its bounds.

use std::sync::atomic::{AtomicBool, Ordering};

use kirin_ring::{Claim, Queue, Ring, Sizes};
use proptest::prelude::*;

const SIZES: Sizes =
    Sizes { slots: 70, seats: 6, loops: 2, request_bytes: 512, answer_bytes: 1024 };

/// A front: its queue, and the slots that are in use.
struct Front<'a> {
    ring: &'a Ring,
    queue: Queue,
    used: Vec<u16>,
}

impl<'a> Front<'a> {
    fn new(ring: &'a Ring) -> Self {
        Self { ring, queue: Queue::new(ring), used: Vec::new() }
    }

    /// Takes one of six steps.
    fn step(&mut self, step: u8, place: u64, value: u64) {
        let ring = self.ring;
        let event_loop = place as usize % SIZES.loops;
        match step % 6 {
            0 | 1 => {
                let bytes = [b'r'; 700];
                let parts = [&bytes[..place as usize % 600], &bytes[..value as usize % 600]];
                let parts = (!place.is_multiple_of(5)).then_some(parts);
                if let Ok(slot) = self.queue.put(ring, event_loop, parts) {
                    assert!(usize::from(slot) < SIZES.slots && !self.used.contains(&slot));
                    self.used.push(slot);
                }
            }
            2 => {
                if let Some(slot) = self.used.pop() {
                    let _ = self.queue.withdraw(ring, slot);
                    self.queue.free(slot);
                }
            }
            3 => {
                let mut count = 0;
                ring.finished(event_loop, |slot| {
                    count += 1;
                    self.look_at(slot);
                });
                assert!(count <= SIZES.slots);
            }
            4 => {
                let _ = ring.fall_asleep(event_loop);
                ring.wake_for_put();
                ring.wake_for_waiting();
                let _ = ring.wake_up(event_loop);
            }
            _ => {
                let seat = (value % SIZES.seats as u64) as u16;
                match place % 4 {
                    0 => ring.leave(seat),
                    1 => ring.admit(seat),
                    2 => ring.clear_seat(seat),
                    _ => ring.forget_sleeper(seat),
                }
            }
        }
        assert_eq!(self.queue.used(), self.used.len());
    }

    fn look_at(&self, slot: u16) {
        assert!(usize::from(slot) < SIZES.slots);
        let _ = (self.ring.phase(slot), self.ring.claimed_at_ns(slot));
        if let Ok(answer) = self.ring.answer(slot) {
            assert!(answer.len() <= SIZES.answer_bytes);
        }
        assert!(self.ring.request(slot).len() <= SIZES.request_bytes);
        if let Claim::Seat(seat) = self.queue.claim(self.ring, slot) {
            assert!(usize::from(seat) < SIZES.seats);
        }
    }
}

/// Writes one word. Most are near the start, where the head and the queue are, and small, since
/// small numbers are more often indexes and positions than large ones.
fn scribble(ring: &Ring, place: u64, value: u64) {
    let place = match place % 3 {
        0 => place as usize % 4096,
        1 => place as usize % 256,
        _ => place as usize,
    };
    let value = match value % 4 {
        0 => value % 300,
        1 => (value % 300) << 16 | value >> 32 & 0x7F,
        2 => !0 << (value % 64),
        _ => value,
    };
    ring.scribble(place, value);
}

proptest! {
    #[test]
    fn words_that_change_between_two_steps_do_no_harm(
        steps in prop::collection::vec((0u8..12, any::<u64>(), any::<u64>()), 1..200),
    ) {
        let ring = Ring::create("hostile", SIZES).unwrap();
        let mut front = Front::new(&ring);
        for (step, place, value) in steps {
            match step {
                0..6 => front.step(step, place, value),
                _ => scribble(&ring, place, value),
            }
        }
    }
}

/// Returns different numbers, the same in each run.
fn numbers(seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    })
}

#[test]
fn words_that_change_within_a_step_do_no_harm() {
    let ring = Ring::create("hostile", SIZES).unwrap();
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| {
            let mut numbers = numbers(1);
            while !is_over.load(Ordering::Relaxed) {
                let mut next = || numbers.next().unwrap();
                scribble(&ring, next(), next());
            }
        });
        let front = std::panic::catch_unwind(|| {
            let (mut front, mut numbers) = (Front::new(&ring), numbers(2));
            for _ in 0..20_000 {
                let mut next = || numbers.next().unwrap();
                front.step(next() as u8, next(), next());
            }
        });
        // The scope waits for the writer.
        is_over.store(true, Ordering::Relaxed);
        writer.join().unwrap();
        front.unwrap();
    });
}
