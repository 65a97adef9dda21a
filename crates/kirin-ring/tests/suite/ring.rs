//! A ring with a front and workers in threads.

use std::collections::HashSet;
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

/// Takes requests until the worker must leave. Returns the sum of the numbers in them.
fn answer_all(ring: &Ring, seat: u16) -> u64 {
    let worker = Worker::new(ring, seat);
    let mut sum = 0;
    while let Some(taken) = worker.next() {
        let request = ring.request(taken.slot);
        sum += u64::from_le_bytes(request[..8].try_into().unwrap());
        worker.write_answer(&taken, &request);
        worker.set_phase(&taken, Phase::Answered);
        worker.report(&taken);
    }
    sum
}

/// Puts so many requests in bursts of different sizes, so that workers fall asleep in between.
/// Returns the state as an error if a request does not end.
fn put_all(ring: &Ring, requests: u64) -> Result<(), String> {
    let (mut queue, mut put, mut ended) = (Queue::new(ring), 0u64, 0u64);
    let mut waiting = HashSet::new();
    let mut last = Instant::now();
    while ended < requests {
        let burst = 1 + put % 7;
        while put < requests && (waiting.len() as u64) < burst {
            let number = put.to_le_bytes();
            waiting.insert(queue.put(ring, 0, Some([&number, b"end"])).unwrap());
            put += 1;
        }
        if queue.take_wake() {
            ring.wake_for_put();
        }
        for slot in finished(ring) {
            if !waiting.remove(&slot) || !ring.answer(slot).unwrap().ends_with(b"end") {
                return Err(format!("slot {slot} is not answered"));
            }
            queue.free(slot);
            ended += 1;
            last = Instant::now();
        }
        if last.elapsed() > Duration::from_secs(20) {
            let state = |slot: &u16| (*slot, queue.claim(ring, *slot), ring.phase(*slot));
            let slots: Vec<_> = waiting.iter().map(state).collect();
            return Err(format!("{ended} of {put} have ended; the others: {slots:?}"));
        }
        std::hint::spin_loop();
    }
    Ok(())
}

#[test]
fn no_worker_sleeps_on_while_requests_wait() {
    // A wake-up that is lost is seen as a request that does not end.
    const REQUESTS: u64 = 20_000;
    let ring = ring();
    let (result, sum) = std::thread::scope(|scope| {
        let ring = &ring;
        let seats = 0..SIZES.seats as u16;
        let workers: Vec<_> =
            seats.clone().map(|seat| scope.spawn(move || answer_all(ring, seat))).collect();
        let result = put_all(ring, REQUESTS);
        // They leave also if a request has not ended, since the scope waits for them.
        seats.for_each(|seat| ring.leave(seat));
        let sum: u64 = workers.into_iter().map(|worker| worker.join().unwrap()).sum();
        (result, sum)
    });
    assert_eq!(result, Ok(()));
    assert_eq!(sum, REQUESTS * (REQUESTS - 1) / 2);
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
}
