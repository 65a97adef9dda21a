//! All orders in which the steps of front and workers may meet, as the memory model of C11 allows
//! them (the crate `loom`). If a wake-up is lost, all threads sleep, and loom panics.
//!
//! `cargo test -p kirin-ring --features loom --lib` runs them.

mod deaths;
mod planted;

use std::collections::HashMap;

use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::{AtomicU32, AtomicU64};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use crate::claim::{Claim, Phase};
use crate::layout::{GO, HEAD, LEAVE, Layout, Sizes, SlotWord, WAKING};
use crate::protocol;
use crate::words::Words;
use crate::worker::{Taken, Turn, WorkerOn};

const SIZES: Sizes = Sizes { slots: 2, seats: 2, loops: 1, request_bytes: 64, answer_bytes: 64 };

/// Words of loom. A futex is a number with a condition variable.
struct Model {
    layout: Layout,
    words: HashMap<usize, AtomicU64>,
    futexes: HashMap<usize, (AtomicU32, Mutex<()>, Condvar)>,
}

impl Model {
    /// Returns an empty ring whose workers may take requests.
    fn new() -> Self {
        let layout = Layout::new(SIZES).unwrap();
        let mut words = HashMap::new();
        let mut add = |offset, value| {
            words.insert(offset, AtomicU64::new(value));
        };
        add(HEAD, 1);
        add(WAKING, 0);
        (0..layout.cells as u64).for_each(|cell| add(layout.cell(cell), 0));
        (0..2).for_each(|seat| add(layout.command(seat), GO));
        add(layout.sleepers(0), 0);
        add(layout.asleep(0), 0);
        add(layout.finished(0, 0), 0);
        for slot in 0..2 {
            add(layout.slot(slot, SlotWord::Claim), 0);
            add(layout.slot(slot, SlotWord::Phase), 0);
            add(layout.slot(slot, SlotWord::Request), 0);
        }
        let futex = || (AtomicU32::new(0), Mutex::new(()), Condvar::new());
        let futexes = (0..2).map(|seat| layout.futex(seat)).chain([eventfd(&layout)]);
        let futexes = futexes.map(|offset| (offset, futex())).collect();
        Self { layout, words, futexes }
    }

    fn worker(&self, seat: u16) -> WorkerOn<'_, Self> {
        WorkerOn::new(self, &self.layout, seat)
    }

    /// Puts a request into slot `position - 1`, and wakes a worker if that is needed.
    fn publish(&self, position: u64) {
        if protocol::publish(self, &self.layout, position, (position - 1) as u16) {
            protocol::wake_for_waiting(self, &self.layout);
        }
    }

    fn tell(&self, seat: u16, command: u64) {
        self.word(self.layout.command(seat)).store(command, SeqCst);
        protocol::wake_seat(self, &self.layout, seat);
    }

    /// Counts those that have the request in a slot.
    fn have(&self, slot: u16, error: &str) {
        let word = self.layout.slot(slot, SlotWord::Phase);
        assert_eq!(self.word(word).fetch_add(1, SeqCst), 0, "{error}");
    }
}

/// Returns the offset of the futex that stands for the eventfd of the loop.
fn eventfd(layout: &Layout) -> usize {
    layout.asleep(0) + 8
}

impl Words for Model {
    fn word(&self, offset: usize) -> &AtomicU64 {
        &self.words[&offset]
    }

    fn futex(&self, offset: usize) -> &AtomicU32 {
        &self.futexes[&offset].0
    }

    fn wake(&self, offset: usize) {
        let (_, lock, condition) = &self.futexes[&offset];
        drop(lock.lock().unwrap());
        condition.notify_one();
    }

    fn wait(&self, offset: usize, value: u32) {
        let (futex, lock, condition) = &self.futexes[&offset];
        let guard = lock.lock().unwrap();
        if futex.load(SeqCst) == value {
            drop(condition.wait(guard).unwrap());
        }
    }
}

/// Runs the steps of the front, and of a worker for each of `workers`, in all orders.
fn check(workers: &'static [fn(&Model)], front: fn(&Model)) {
    check_after(|_| {}, workers, front);
}

/// Does what `check` does after the steps of `before`, which run alone.
fn check_after(before: fn(&Model), workers: &'static [fn(&Model)], front: fn(&Model)) {
    // More preemptions find no more, and take hours.
    check_with(3, before, workers, front);
}

/// Does what `check_after` does, with at most so many preemptions.
fn check_with(
    preemptions: usize,
    before: fn(&Model),
    workers: &'static [fn(&Model)],
    front: fn(&Model),
) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(move || {
        let model = Arc::new(Model::new());
        before(&model);
        let threads: Vec<_> = workers
            .iter()
            .map(|worker| {
                let model = Arc::clone(&model);
                thread::spawn(move || worker(&model))
            })
            .collect();
        front(&model);
        threads.into_iter().for_each(|thread| thread.join().unwrap());
    });
}

fn take_one(model: &Model, seat: u16) {
    model.worker(seat).next().unwrap();
}

#[test]
fn a_worker_that_falls_asleep_misses_no_request() {
    check(&[|model| take_one(model, 0)], |model| model.publish(1));
}

#[test]
fn two_requests_get_two_workers() {
    check(&[|model| take_one(model, 0), |model| take_one(model, 1)], |model| {
        model.publish(1);
        model.publish(2);
    });
}

#[test]
fn a_request_is_claimed_by_one_worker() {
    fn look(model: &Model, seat: u16) {
        if let Turn::Request(taken) = model.worker(seat).look() {
            model.have(taken.slot, "claimed twice");
        }
    }
    check(&[|model| look(model, 0), |model| look(model, 1)], |model| model.publish(1));
}

#[test]
fn a_request_is_either_claimed_or_withdrawn() {
    fn look(model: &Model) {
        if let Turn::Request(taken) = model.worker(0).look() {
            model.have(taken.slot, "claimed and withdrawn");
        }
    }
    check(&[look], |model| {
        model.publish(1);
        if protocol::take(model, &model.layout, 1, 0, Claim::Withdrawn) {
            model.have(0, "claimed and withdrawn");
        }
    });
}

#[test]
fn a_worker_that_stops_after_its_claim_blocks_nobody() {
    /// Claims a request, and ends before it can move the head.
    fn stop_after_claim(model: &Model) {
        if let Some((position, slot)) = protocol::first_in_queue(model, &model.layout) {
            protocol::take(model, &model.layout, position, slot, Claim::Seat(0));
        }
    }
    check(&[stop_after_claim], |model| {
        model.publish(1);
        model.publish(2);
        // At least one request is left for the second worker.
        assert!(matches!(model.worker(1).look(), Turn::Request(_)));
    });
}

/// Sleeps as an event loop does until `slots` are reported.
fn collect(model: &Model, slots: u64) {
    let mut left = slots;
    while left != 0 {
        let value = model.futex(eventfd(&model.layout)).load(SeqCst);
        protocol::fall_asleep(model, &model.layout, 0);
        let word = model.word(model.layout.finished(0, 0));
        if word.load(SeqCst) == 0 {
            model.wait(eventfd(&model.layout), value);
        }
        left &= !word.swap(0, SeqCst);
    }
}

/// Reports a slot, and wakes the loop if it sleeps.
fn report(model: &Model, worker: &WorkerOn<Model>, taken: &Taken) {
    if worker.report(taken) {
        wake_loop(model);
    }
}

fn wake_loop(model: &Model) {
    model.futex(eventfd(&model.layout)).fetch_add(1, SeqCst);
    model.wake(eventfd(&model.layout));
}

fn answer(model: &Model, seat: u16) {
    let worker = model.worker(seat);
    let taken = worker.next().unwrap();
    worker.set_phase(&taken, Phase::Answered);
    report(model, &worker, &taken);
}

#[test]
fn a_loop_that_falls_asleep_misses_no_answer() {
    check(&[|model| answer(model, 0)], |model| {
        model.publish(1);
        collect(model, 1);
        let word = model.layout.slot(0, SlotWord::Phase);
        assert_eq!(Phase::parse(model.word(word).load(SeqCst)), Phase::Answered);
    });
}

#[test]
fn a_loop_that_falls_asleep_misses_neither_of_two_answers() {
    fn answer_at_once(model: &Model, seat: u16) {
        let worker = model.worker(seat);
        let Turn::Request(taken) = worker.look() else { panic!("two requests wait") };
        worker.set_phase(&taken, Phase::Answered);
        report(model, &worker, &taken);
    }
    let before = |model: &Model| {
        model.publish(1);
        model.publish(2);
    };
    check_after(
        before,
        &[|model| answer_at_once(model, 0), |model| answer_at_once(model, 1)],
        |model| {
            collect(model, 3);
            for slot in 0..2 {
                let word = model.layout.slot(slot, SlotWord::Phase);
                assert_eq!(Phase::parse(model.word(word).load(SeqCst)), Phase::Answered);
            }
        },
    );
}

#[test]
fn a_worker_that_leaves_wakes_another_one() {
    // The first worker takes a request or none. In both cases one is left for the other worker.
    check_with(
        2,
        |_| {},
        &[|model| _ = model.worker(0).next(), |model| take_one(model, 1)],
        |model| {
            model.publish(1);
            model.publish(2);
            model.tell(0, LEAVE);
        },
    );
}

/// The word of a slot whose answer the front has read.
const IS_READ: u64 = 7;

/// Puts two requests into the queue, and reads the answer to the first from the connection.
fn read_one_of_two(model: &Model) {
    model.publish(1);
    model.publish(2);
    collect(model, 1);
    model.word(model.layout.slot(1, SlotWord::Phase)).store(IS_READ, SeqCst);
    model.tell(0, GO);
}

#[test]
fn a_worker_waits_until_the_front_has_read_its_answer() {
    fn two_requests(model: &Model) {
        let worker = model.worker(0);
        let first = worker.next().unwrap();
        if worker.change_to_connection(&first) {
            wake_loop(model);
        }
        worker.next().unwrap();
        let word = model.layout.slot(1, SlotWord::Phase);
        assert_eq!(model.word(word).load(SeqCst), IS_READ);
    }
    check(&[two_requests], read_one_of_two);
}
