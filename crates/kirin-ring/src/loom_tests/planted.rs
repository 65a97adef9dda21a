//! Bugs that are planted, to show that these tests find such.

use loom::sync::atomic::Ordering::SeqCst;
use loom::sync::atomic::fence;

use super::{Model, answer, check, check_with, deaths, eventfd, take_one, wake_loop};
use crate::claim::{Claim, Phase, cell};
use crate::layout::{HEAD, LEAVE, SlotWord, WAKING};
use crate::protocol;
use crate::words::Words;
use crate::worker::Turn;

/// The bugs, by the name that a process of its own gets, and what it prints.
const PLANTED: [(&str, fn(), &str); 10] = [
    ("a worker that does not look again before it sleeps", sleep_at_once, "deadlock"),
    ("a worker that wakes no other one", take_alone, "deadlock"),
    ("a worker that leaves and wakes no other one", leave_alone, "deadlock"),
    ("a front that looks before it puts a request", publish_blindly, "deadlock"),
    ("a front that notes too late that it wakes a worker", note_too_late, "deadlock"),
    ("a front that does not make up for an end", forget_end, "deadlock"),
    ("a loop that does not look again before it sleeps", loop_sleeps_at_once, "deadlock"),
    ("a claim in two steps", claim_in_two_steps, "claimed twice"),
    ("a head that only its worker moves", move_head_alone, "blocked"),
    ("a worker that does not wait for the front", do_not_wait, "not read yet"),
];

/// Sleeps once, without the second look.
fn sleep_at_once() {
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

/// Takes a request as `WorkerOn::next` does, but wakes nobody. Returns false if it must leave.
fn take_silently(model: &Model, seat: u16) -> bool {
    let layout = &model.layout;
    let (futex, command) = (layout.futex(seat), model.word(layout.command(seat)));
    loop {
        let value = model.futex(futex).load(SeqCst);
        if command.load(SeqCst) == LEAVE {
            return false;
        }
        while let Some((position, slot)) = protocol::first_in_queue(model, layout) {
            let is_ours = protocol::take(model, layout, position, slot, Claim::Seat(seat));
            protocol::pass(model, position);
            if is_ours {
                return true;
            }
        }
        let sleepers = model.word(layout.sleepers(0));
        sleepers.fetch_or(1 << seat, SeqCst);
        fence(SeqCst);
        if protocol::first_in_queue(model, layout).is_none() && command.load(SeqCst) != LEAVE {
            model.wait(futex, value);
        }
        if sleepers.fetch_and(!(1 << seat), SeqCst) & (1 << seat) == 0 {
            model.word(WAKING).store(0, SeqCst);
            fence(SeqCst);
        }
    }
}

fn take_alone() {
    check(&[|model| _ = take_silently(model, 0), |model| _ = take_silently(model, 1)], |model| {
        model.publish(1);
        model.publish(2);
    });
}

fn leave_alone() {
    fn leave_alone(model: &Model) {
        if take_silently(model, 0) {
            protocol::wake_for_waiting(model, &model.layout);
        }
    }
    check_with(
        2,
        |_| {},
        &[leave_alone, |model| take_one(model, 1)],
        |model| {
            model.publish(1);
            model.publish(2);
            model.tell(0, LEAVE);
        },
    );
}

/// Puts a request into slot `position - 1`. Returns its slot if the queue was empty before.
fn publish_blindly_at(model: &Model, position: u64) {
    let (layout, slot) = (&model.layout, (position - 1) as u16);
    let was_empty = protocol::first_in_queue(model, layout).is_none();
    model.word(layout.slot(slot, SlotWord::Claim)).store(Claim::Nobody.word(position), SeqCst);
    model.word(layout.cell(position)).store(cell(position, slot), SeqCst);
    fence(SeqCst);
    if was_empty {
        protocol::wake_sleeper(model, layout);
    }
}

fn publish_blindly() {
    check(&[|model| take_one(model, 0), |model| take_one(model, 1)], |model| {
        publish_blindly_at(model, 1);
        publish_blindly_at(model, 2);
    });
}

/// Puts a request into slot `position - 1`, and sets the word for woken workers last.
fn publish_and_note_too_late(model: &Model, position: u64) {
    let (layout, slot) = (&model.layout, (position - 1) as u16);
    model.word(layout.slot(slot, SlotWord::Claim)).store(Claim::Nobody.word(position), SeqCst);
    model.word(layout.cell(position)).store(cell(position, slot), SeqCst);
    fence(SeqCst);
    if protocol::first_in_queue(model, layout) != Some((position, slot)) {
        return;
    }
    let sleepers = model.word(layout.sleepers(0));
    for seat in 0..2 {
        if sleepers.fetch_and(!(1 << seat), SeqCst) & (1 << seat) != 0 {
            model.word(WAKING).store(1, SeqCst);
            protocol::wake_seat(model, layout, seat);
            return;
        }
    }
}

fn note_too_late() {
    check(&[|model| take_one(model, 0), |model| take_one(model, 1)], |model| {
        publish_and_note_too_late(model, 1);
        publish_and_note_too_late(model, 2);
    });
}

fn forget_end() {
    check_with(
        2,
        |_| {},
        &[deaths::end_after::<4>, |model| take_one(model, 1)],
        |model| {
            deaths::two_requests(model);
            protocol::forget_sleeper(model, &model.layout, 0);
            if protocol::first_in_queue(model, &model.layout).is_some() {
                protocol::wake_sleeper(model, &model.layout);
            }
        },
    );
}

fn loop_sleeps_at_once() {
    check(&[|model| answer(model, 0)], |model| {
        model.publish(1);
        let eventfd = eventfd(&model.layout);
        let value = model.futex(eventfd).load(SeqCst);
        if model.word(model.layout.finished(0, 0)).load(SeqCst) == 0 {
            protocol::fall_asleep(model, &model.layout, 0);
            model.wait(eventfd, value);
        }
    });
}

fn claim_in_two_steps() {
    fn claim(model: &Model, seat: u16) {
        let Some((position, slot)) = protocol::first_in_queue(model, &model.layout) else { return };
        let word = model.word(model.layout.slot(slot, SlotWord::Claim));
        if word.load(SeqCst) == Claim::Nobody.word(position) {
            word.store(Claim::Seat(seat).word(position), SeqCst);
            model.have(slot, "claimed twice");
        }
    }
    check(&[|model| claim(model, 0), |model| claim(model, 1)], |model| model.publish(1));
}

fn move_head_alone() {
    fn claim_at_head(model: &Model, seat: u16) -> bool {
        let head = model.word(HEAD).load(SeqCst);
        protocol::take(model, &model.layout, head, (head - 1) as u16, Claim::Seat(seat))
    }
    check(&[|model| _ = claim_at_head(model, 0)], |model| {
        model.publish(1);
        model.publish(2);
        assert!(claim_at_head(model, 1), "blocked");
    });
}

fn do_not_wait() {
    fn two_requests(model: &Model) {
        let worker = model.worker(0);
        let first = worker.next().unwrap();
        worker.set_phase(&first, Phase::OverConnection);
        if worker.report(&first) {
            wake_loop(model);
        }
        worker.next().unwrap();
        let word = model.layout.slot(1, SlotWord::Phase);
        assert_eq!(model.word(word).load(SeqCst), super::IS_READ, "not read yet");
    }
    check(&[two_requests], super::read_one_of_two);
}

const VARIABLE: &str = "KIRIN_PLANTED_BUG";

#[test]
fn planted_bugs_are_found() {
    if let Ok(wanted) = std::env::var(VARIABLE) {
        PLANTED.iter().filter(|(name, ..)| *name == wanted).for_each(|(_, run, _)| run());
        return;
    }
    for (name, _, error) in PLANTED {
        // A lost wake-up ends the process, since loom panics while it unwinds.
        let output = std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "loom_tests::planted::planted_bugs_are_found", "--nocapture"])
            .env(VARIABLE, name)
            .env("RUST_BACKTRACE", "0")
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success() && text.contains(error), "{name}: {text}");
    }
}
