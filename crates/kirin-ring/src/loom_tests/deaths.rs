//! Workers that end after any of their steps. The front notices it later, and makes up for it.

use loom::sync::atomic::Ordering::SeqCst;

use super::{Model, check_with, take_one};
use crate::claim::Claim;
use crate::layout::WAKING;
use crate::protocol;
use crate::words::Words;

/// The worker that ends, and the bits of the workers among the sleepers.
const ENDING: u16 = 0;
const ENDING_BIT: u64 = 1;
const OTHER_BIT: u64 = 2;

/// Takes at most `STEPS` steps of a worker that claims a request and wakes another worker.
fn turn<const STEPS: usize>(model: &Model) {
    let mut steps = 0;
    let mut ends = || {
        steps += 1;
        steps > STEPS
    };
    let layout = &model.layout;
    let Some((position, slot)) = protocol::first_in_queue(model, layout) else { return };
    if ends() || !protocol::take(model, layout, position, slot, Claim::Seat(ENDING)) || ends() {
        return;
    }
    protocol::pass(model, position);
    if ends() || protocol::first_in_queue(model, layout).is_none() {
        return;
    }
    let has_begun = model.word(WAKING).compare_exchange(0, 1, SeqCst, SeqCst).is_ok();
    if ends() || !has_begun {
        return;
    }
    let sleepers = model.word(layout.sleepers(0)).fetch_and(!OTHER_BIT, SeqCst);
    if ends() || sleepers & OTHER_BIT == 0 {
        return;
    }
    model.futex(layout.futex(1)).fetch_add(1, SeqCst);
    if !ends() {
        model.wake(layout.futex(1));
    }
}

/// Falls asleep, and ends while it sleeps.
fn sleep(model: &Model) {
    model.word(model.layout.sleepers(0)).fetch_or(ENDING_BIT, SeqCst);
}

/// Ends a worker. Its futex, on which it does not sleep, tells the front.
fn end(model: &Model) {
    protocol::wake_seat(model, &model.layout, ENDING);
}

/// Puts two requests into the queue, and waits for the end of the worker.
pub(super) fn two_requests(model: &Model) {
    model.publish(1);
    model.publish(2);
    let futex = model.layout.futex(ENDING);
    while model.futex(futex).load(SeqCst) == 0 {
        model.wait(futex, 0);
    }
}

/// Does what the front does when a worker has ended.
pub(super) fn after_end(model: &Model) {
    protocol::forget_sleeper(model, &model.layout, ENDING);
    protocol::make_up_for_end(model, &model.layout);
    if protocol::first_in_queue(model, &model.layout).is_some() {
        protocol::wake_sleeper(model, &model.layout);
    }
}

/// Runs two workers, of which the first ends. Each end is a preemption already.
fn check_end(workers: &'static [fn(&Model)]) {
    let nothing = |_: &Model| {};
    check_with(2, nothing, workers, |model| {
        two_requests(model);
        after_end(model);
    });
}

/// Checks that a worker that ends after `STEPS` steps leaves one of two requests for the other one.
fn check_end_after<const STEPS: usize>() {
    check_end(&[end_after::<STEPS>, |model| take_one(model, 1)]);
}

pub(super) fn end_after<const STEPS: usize>(model: &Model) {
    turn::<STEPS>(model);
    end(model);
}

#[test]
fn a_worker_that_ends_before_it_wakes_another_leaves_nobody_asleep() {
    check_end_after::<0>();
    check_end_after::<1>();
    check_end_after::<2>();
    check_end_after::<3>();
}

#[test]
fn a_worker_that_ends_while_it_wakes_another_leaves_nobody_asleep() {
    check_end_after::<4>();
    check_end_after::<5>();
    check_end_after::<6>();
}

#[test]
fn a_worker_that_ends_in_its_sleep_leaves_nobody_asleep() {
    fn end_in_sleep(model: &Model) {
        sleep(model);
        end(model);
    }
    check_end(&[end_in_sleep, |model| take_one(model, 1)]);
}
