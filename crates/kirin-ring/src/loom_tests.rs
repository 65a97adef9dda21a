//! All orders in which the steps of front and workers may meet, as the memory model of C11 allows
//! them (the crate `loom`). If a wake-up is lost, all threads sleep, and loom panics.
//!
//! `cargo test -p kirin-ring --features loom --lib` runs them.

use std::collections::HashMap;

use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::{AtomicU32, AtomicU64, fence};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

use crate::claim::{Claim, Phase};
use crate::layout::{GO, HEAD, Layout, Sizes, SlotWord, WAKING};
use crate::protocol;
use crate::words::Words;
use crate::worker::{Turn, WorkerOn};

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
        let mut add = |offset, value| words.insert(offset, AtomicU64::new(value));
        add(HEAD, 1);
        add(WAKING, 0);
        (0..layout.cells as u64).for_each(|cell| drop(add(layout.cell(cell), 0)));
        (0..2).for_each(|seat| drop(add(layout.command(seat), GO)));
        add(layout.sleepers(0), 0);
        add(layout.asleep(0), 0);
        add(layout.finished(0, 0), 0);
        for slot in 0..2 {
            add(layout.slot(slot, SlotWord::Claim), 0);
            add(layout.slot(slot, SlotWord::Phase), 0);
            add(layout.slot(slot, SlotWord::Request), 0);
        }
        let futex = || (AtomicU32::new(0), Mutex::new(()), Condvar::new());
        let futexes = (0..2).map(|seat| (layout.futex(seat), futex())).collect();
        Self { layout, words, futexes }
    }

    fn worker(&self, seat: u16) -> WorkerOn<'_, Self> {
        WorkerOn::new(self, &self.layout, seat)
    }

    /// Puts a request into slot `position - 1`.
    fn publish(&self, position: u64) {
        protocol::publish(self, &self.layout, position, (position - 1) as u16);
    }
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

/// Runs `steps` of the front, and of a worker for each of `workers`, in all orders.
fn check(workers: &'static [fn(&Model)], front: fn(&Model)) {
    let mut builder = loom::model::Builder::new();
    // More preemptions find no more, and take hours.
    builder.preemption_bound = Some(3);
    builder.check(move || {
        let model = Arc::new(Model::new());
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

/// Plants a worker that does not look again before it sleeps. It misses a request.
fn plant_sleep_at_once() {
    fn sleep_at_once(model: &Model) {
        let (worker, futex) = (model.worker(0), model.layout.futex(0));
        let value = model.futex(futex).load(SeqCst);
        if worker.look() == Turn::Empty {
            model.word(model.layout.sleepers(0)).fetch_or(1, SeqCst);
            model.wait(futex, value);
        }
    }
    check(&[sleep_at_once], |model| model.publish(1));
}

#[test]
fn two_requests_get_two_workers() {
    check(&[|model| take_one(model, 0), |model| take_one(model, 1)], |model| {
        model.publish(1);
        model.publish(2);
    });
}

/// Plants workers that wake no other one. One sleeps on beside a request.
fn plant_take_alone() {
    /// Takes a request and wakes nobody.
    fn take_alone(model: &Model, seat: u16) {
        let layout = &model.layout;
        let futex = layout.futex(seat);
        loop {
            let value = model.futex(futex).load(SeqCst);
            while let Some((position, slot)) = protocol::first_in_queue(model, layout) {
                let claim = Claim::Seat(seat);
                let is_ours = protocol::take(model, layout, position, slot, claim);
                protocol::pass(model, position);
                if is_ours {
                    return;
                }
            }
            model.word(layout.sleepers(0)).fetch_or(1 << seat, SeqCst);
            fence(SeqCst);
            if protocol::first_in_queue(model, layout).is_none() {
                model.wait(futex, value);
            }
            model.word(layout.sleepers(0)).fetch_and(!(1 << seat), SeqCst);
        }
    }
    check(&[|model| take_alone(model, 0), |model| take_alone(model, 1)], |model| {
        model.publish(1);
        model.publish(2);
    });
}

#[test]
fn a_request_is_claimed_by_one_worker() {
    fn look(model: &Model, seat: u16) {
        if let Turn::Request(taken) = model.worker(seat).look() {
            let word = model.layout.slot(taken.slot, SlotWord::Phase);
            assert_eq!(model.word(word).fetch_add(1, SeqCst), 0, "claimed twice");
        }
    }
    check(&[|model| look(model, 0), |model| look(model, 1)], |model| model.publish(1));
}

#[test]
fn a_request_is_either_claimed_or_withdrawn() {
    fn look(model: &Model) {
        if let Turn::Request(taken) = model.worker(0).look() {
            let word = model.layout.slot(taken.slot, SlotWord::Phase);
            assert_eq!(model.word(word).fetch_add(1, SeqCst), 0, "claimed and withdrawn");
        }
    }
    check(&[look], |model| {
        model.publish(1);
        if protocol::take(model, &model.layout, 1, 0, Claim::Withdrawn) {
            let word = model.layout.slot(0, SlotWord::Phase);
            assert_eq!(model.word(word).fetch_add(1, SeqCst), 0, "claimed and withdrawn");
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

/// Sleeps as an event loop does until a slot is reported. The futex of seat 1 stands for the
/// eventfd.
fn collect(model: &Model, looks_again: bool) {
    let finished = || model.word(model.layout.finished(0, 0)).load(SeqCst) != 0;
    let eventfd = model.layout.futex(1);
    while !finished() {
        let value = model.futex(eventfd).load(SeqCst);
        protocol::fall_asleep(model, &model.layout, 0);
        if !looks_again || !finished() {
            model.wait(eventfd, value);
        }
    }
}

fn answer(model: &Model) {
    let worker = model.worker(0);
    let taken = worker.next().unwrap();
    worker.set_phase(&taken, Phase::Answered);
    if worker.report(&taken) {
        protocol::wake_seat(model, &model.layout, 1);
    }
}

#[test]
fn a_loop_that_falls_asleep_misses_no_answer() {
    check(&[answer], |model| {
        model.publish(1);
        collect(model, true);
        let word = model.layout.slot(0, SlotWord::Phase);
        assert_eq!(Phase::parse(model.word(word).load(SeqCst)), Phase::Answered);
    });
}

/// Plants a loop that does not look again before it sleeps. It misses an answer.
fn plant_loop_sleeps_at_once() {
    check(&[answer], |model| {
        model.publish(1);
        collect(model, false);
    });
}

#[test]
fn a_worker_waits_until_the_front_has_read_its_answer() {
    fn two_requests(model: &Model) {
        let worker = model.worker(0);
        let first = worker.next().unwrap();
        if worker.change_to_connection(&first) {
            protocol::wake_seat(model, &model.layout, 1);
        }
        worker.next().unwrap();
        // The front has read the answer to the first.
        assert_eq!(model.word(model.layout.slot(1, SlotWord::Phase)).load(SeqCst), 7);
    }
    check(&[two_requests], |model| {
        model.publish(1);
        model.publish(2);
        collect(model, true);
        model.word(model.layout.slot(1, SlotWord::Phase)).store(7, SeqCst);
        model.word(model.layout.command(0)).store(GO, SeqCst);
        protocol::wake_seat(model, &model.layout, 0);
    });
}

/// The bugs that are planted, by the name that a process of its own gets.
const PLANTED: [(&str, fn()); 3] = [
    ("sleep at once", plant_sleep_at_once),
    ("take alone", plant_take_alone),
    ("loop sleeps at once", plant_loop_sleeps_at_once),
];

const PLANTED_VARIABLE: &str = "KIRIN_PLANTED_BUG";

/// Starts a process for each bug, since loom panics once more while it unwinds.
#[test]
fn planted_bugs_are_found() {
    if let Ok(wanted) = std::env::var(PLANTED_VARIABLE) {
        PLANTED.iter().filter(|(name, _)| *name == wanted).for_each(|(_, run)| run());
        return;
    }
    for (name, _) in PLANTED {
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "loom_tests::planted_bugs_are_found", "--nocapture"])
            .env(PLANTED_VARIABLE, name)
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains("deadlock"), "{name}: {text}");
    }
}
