//! A ring with workers in threads, and workers that lie.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kirin_ring::worker::{Turn, Worker};
use kirin_ring::{Claim, NoPlace, Phase, Queue, Ring, Sizes};
use proptest::prelude::*;

const SIZES: Sizes =
    Sizes { slots: 70, seats: 6, loops: 2, request_bytes: 512, answer_bytes: 1024 };

fn ring() -> Ring {
    let ring = Ring::create("test", SIZES).unwrap();
    (0..SIZES.seats as u16).for_each(|seat| ring.admit(seat));
    ring
}

/// Returns the slots that are finished for the first loop.
fn finished(ring: &Ring) -> Vec<u16> {
    let mut slots = Vec::new();
    ring.finished(0, |slot| slots.push(slot));
    slots
}

#[test]
fn requests_are_taken_in_their_order() {
    let (ring, worker) = (ring(), 3);
    let (mut queue, worker) = (Queue::new(&ring), Worker::new(&ring, worker));
    let put = ["first", "second", "third"]
        .map(|text| queue.put(&ring, 0, Some([text.as_bytes(), b""])).unwrap());
    for (slot, text) in put.into_iter().zip(["first", "second", "third"]) {
        let Turn::Request(taken) = worker.look() else { panic!("a request waits") };
        assert_eq!((taken.slot, ring.request(slot)), (slot, text.as_bytes().to_vec()));
        assert_eq!(queue.claim(&ring, slot), Claim::Seat(3));
        worker.write_answer(&taken, text.to_uppercase().as_bytes());
        worker.set_phase(&taken, Phase::Answered);
        assert!(!worker.report(&taken), "the loop is awake");
        assert_eq!(finished(&ring), [slot]);
        assert_eq!(
            (ring.phase(slot), ring.answer(slot).unwrap()),
            (Phase::Answered, text.to_uppercase().into_bytes())
        );
        queue.free(slot);
    }
    assert_eq!((worker.look(), queue.used()), (Turn::Empty, 0));
}

#[test]
fn a_withdrawn_request_is_taken_by_nobody_and_a_claimed_one_is_not_withdrawn() {
    let ring = ring();
    let (mut queue, worker) = (Queue::new(&ring), Worker::new(&ring, 0));
    let first = queue.put(&ring, 0, None).unwrap();
    let second = queue.put(&ring, 0, None).unwrap();
    assert!(queue.withdraw(&ring, first) && !queue.withdraw(&ring, first));
    let Turn::Request(taken) = worker.look() else { panic!("the second request waits") };
    assert_eq!((taken.slot, taken.over_connection), (second, true));
    assert!(!queue.withdraw(&ring, second));
    assert_eq!(worker.look(), Turn::Empty);
}

#[test]
fn a_worker_takes_nothing_before_it_is_admitted_and_leaves_when_it_is_told() {
    let ring = Ring::create("test", SIZES).unwrap();
    let (mut queue, worker) = (Queue::new(&ring), Worker::new(&ring, 0));
    queue.put(&ring, 0, None).unwrap();
    assert_eq!(worker.look(), Turn::Empty);
    ring.admit(0);
    let Turn::Request(taken) = worker.look() else { panic!("a request waits") };
    queue.put(&ring, 0, None).unwrap();
    worker.change_to_connection(&taken);
    assert_eq!(worker.look(), Turn::Empty, "the front has not read the answer");
    ring.leave(0);
    assert_eq!(worker.look(), Turn::Leave);
    ring.clear_seat(0);
    assert_eq!(worker.look(), Turn::Empty);
}

#[test]
fn there_are_as_many_places_as_slots() {
    let ring = ring();
    let mut queue = Queue::new(&ring);
    for _ in 0..SIZES.slots {
        queue.put(&ring, 0, None).unwrap();
    }
    assert_eq!(queue.put(&ring, 0, None), Err(NoPlace));
}

#[test]
fn an_answer_longer_than_its_room_is_refused() {
    let ring = ring();
    let (mut queue, worker) = (Queue::new(&ring), Worker::new(&ring, 0));
    let slot = queue.put(&ring, 0, None).unwrap();
    let Turn::Request(taken) = worker.look() else { panic!("a request waits") };
    worker.write_answer(&taken, &[b'x'; 5000]);
    assert_eq!(ring.answer(slot).unwrap().len(), SIZES.answer_bytes);
}

/// Sends many requests to workers that sleep whenever they can. A wake-up that is lost is seen as a
/// request that does not end.
#[test]
fn no_worker_sleeps_on_while_requests_wait() {
    const REQUESTS: u64 = 20_000;
    let ring = ring();
    let (is_over, sum) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for seat in 0..SIZES.seats as u16 {
            let (ring, sum) = (&ring, &sum);
            scope.spawn(move || {
                let worker = Worker::new(ring, seat);
                while let Some(taken) = worker.next() {
                    let request = ring.request(taken.slot);
                    sum.fetch_add(
                        u64::from_le_bytes(request[..8].try_into().unwrap()),
                        Ordering::Relaxed,
                    );
                    worker.write_answer(&taken, &request);
                    worker.set_phase(&taken, Phase::Answered);
                    worker.report(&taken);
                }
            });
        }
        let (mut queue, mut put, mut ended) = (Queue::new(&ring), 0u64, 0u64);
        let mut waiting = HashSet::new();
        let mut last = Instant::now();
        while ended < REQUESTS {
            // Bursts of different sizes, so that workers fall asleep in between.
            let burst = 1 + put % 7;
            while put < REQUESTS && (waiting.len() as u64) < burst {
                let number = put.to_le_bytes();
                waiting.insert(queue.put(&ring, 0, Some([&number, b"end"])).unwrap());
                put += 1;
            }
            for slot in finished(&ring) {
                assert!(waiting.remove(&slot) && ring.answer(slot).unwrap().ends_with(b"end"));
                queue.free(slot);
                ended += 1;
                last = Instant::now();
            }
            assert!(last.elapsed() < Duration::from_secs(20), "{ended} of {put} have ended");
            std::hint::spin_loop();
        }
        is_over.store(true, Ordering::Relaxed);
        (0..SIZES.seats as u16).for_each(|seat| ring.leave(seat));
    });
    assert_eq!(sum.into_inner(), REQUESTS * (REQUESTS - 1) / 2);
}

proptest! {
    #[test]
    fn two_parts_arrive_as_one_request(
        first in prop::collection::vec(any::<u8>(), 0..300),
        second in prop::collection::vec(any::<u8>(), 0..300),
    ) {
        let ring = ring();
        let slot = Queue::new(&ring).put(&ring, 0, Some([&first, &second])).unwrap();
        let mut both = [first, second].concat();
        both.truncate(SIZES.request_bytes);
        prop_assert_eq!(ring.request(slot), both);
    }

    /// Checks that the front neither panics nor hangs, whatever is written to the memory, and that
    /// what it returns is within its bounds.
    #[test]
    fn a_worker_that_writes_anything_harms_nobody(
        steps in prop::collection::vec((0u8..9, any::<u64>(), any::<u64>()), 1..200),
    ) {
        let ring = ring();
        let mut queue = Queue::new(&ring);
        let mut used = Vec::new();
        for (step, place, value) in steps {
            match step {
                0 | 1 => {
                    let bytes = [b'r'; 700];
                    let parts = [&bytes[..place as usize % 600], &bytes[..value as usize % 600]];
                    let parts = (place % 5 > 0).then_some(parts);
                    if let Ok(slot) = queue.put(&ring, value as usize % SIZES.loops, parts) {
                        prop_assert!(usize::from(slot) < SIZES.slots);
                        used.push(slot);
                    }
                }
                2 => {
                    if let Some(slot) = used.pop() {
                        let _ = queue.withdraw(&ring, slot);
                        queue.free(slot);
                    }
                }
                3 => ring.finished(place as usize % SIZES.loops, |slot| {
                    assert!(usize::from(slot) < SIZES.slots);
                    let _ = (ring.phase(slot), ring.claimed_at_ns(slot));
                    if let Ok(answer) = ring.answer(slot) {
                        assert!(answer.len() <= SIZES.answer_bytes);
                    }
                    assert!(ring.request(slot).len() <= SIZES.request_bytes);
                    if let Claim::Seat(seat) = queue.claim(&ring, slot) {
                        assert!(usize::from(seat) < SIZES.seats);
                    }
                }),
                4 => {
                    let _ = ring.fall_asleep(0);
                    ring.wake_for_waiting();
                }
                5 => ring.leave(place as u16 % SIZES.seats as u16),
                6 => {
                    // Small numbers are more often indexes and positions than large ones.
                    ring.scribble(place as usize, value % 300);
                }
                7 => ring.scribble(place as usize % 4096, value),
                _ => ring.scribble(place as usize, value),
            }
        }
    }
}
