//! A worker that writes anything anywhere in the ring, while the front uses it. The front neither
//! panics nor hangs, and what it returns is within its bounds.
#![no_main]

use kirin_ring::{Claim, Queue, Ring, Sizes};
use libfuzzer_sys::fuzz_target;

const SIZES: Sizes = Sizes { slots: 5, seats: 3, loops: 2, request_bytes: 64, answer_bytes: 128 };

fuzz_target!(|steps: Vec<(u8, u16, u64)>| {
    let ring = Ring::create("fuzz", SIZES).unwrap();
    let mut queue = Queue::new(&ring);
    let mut used = Vec::new();
    for (step, place, value) in steps {
        match step % 7 {
            0 => {
                let bytes = [b'r'; 100];
                let parts = [&bytes[..usize::from(place) % 100], &bytes[..value as usize % 100]];
                if let Ok(slot) = queue.put(&ring, usize::from(place) % SIZES.loops, Some(parts)) {
                    used.push(slot);
                }
            }
            1 => {
                if let Some(slot) = used.pop() {
                    let _ = queue.withdraw(&ring, slot);
                    queue.free(slot);
                }
            }
            2 => ring.finished(usize::from(place) % SIZES.loops, |slot| {
                let _ = (ring.phase(slot), ring.claimed_at_ns(slot));
                if let Ok(answer) = ring.answer(slot) {
                    assert!(answer.len() <= SIZES.answer_bytes);
                }
                assert!(ring.request(slot).len() <= SIZES.request_bytes);
                if let Claim::Seat(seat) = queue.claim(&ring, slot) {
                    assert!(usize::from(seat) < SIZES.seats);
                }
            }),
            3 => {
                let _ = ring.fall_asleep(0);
                ring.wake_for_waiting();
            }
            4 => ring.scribble(place.into(), value % 300),
            5 => ring.scribble(place.into(), value << 16 | u64::from(place)),
            _ => ring.scribble(place.into(), value),
        }
    }
});
