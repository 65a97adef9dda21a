//! Tests of the choice of a side, and of the counts.

use super::*;

const MILLISECOND: Duration = Duration::from_millis(1);
const FINE: Outcome = Outcome::Answered { is_error: false, took: MILLISECOND };
const LOST: Outcome = Outcome::Lost { had_others: false };
const ERROR: Outcome = Outcome::Answered { is_error: true, took: MILLISECOND };

fn trial(share: f64) -> Arc<RunningTrial> {
    let config = TrialConfig { percent: share * 100.0, time: Duration::from_secs(120) };
    Arc::new(RunningTrial::new((2, 1), config, 5, Instant::now()))
}

/// Returns visitors of one side, each by its address.
fn visitors(trial: &Arc<RunningTrial>, generation: u64) -> impl Iterator<Item = Visitor> {
    let all = (0..).map(|address| Arc::clone(trial).visitor(None, Some(address)));
    all.filter(move |visitor| visitor.generation() == generation)
}

#[test]
fn a_share_of_the_visitors_tries_and_each_stays_on_its_side() {
    for share in [0.01, 0.05, 0.5] {
        let trial = trial(share);
        let tries = |address: u64| Arc::clone(&trial).visitor(None, Some(address)).tries();
        let chosen = (0..20_000).filter(|address| tries(*address) == Some(2)).count();
        let (expected, deviation) = (20_000.0 * share, (20_000.0 * share * (1.0 - share)).sqrt());
        assert!((chosen as f64 - expected).abs() < 6.0 * deviation, "{share}: {chosen}");
        assert!((0..100).all(|address| tries(address) == tries(address)));
    }
}

#[test]
fn the_session_decides_before_the_address_and_each_trial_chooses_others() {
    let (one, other) = (trial(0.5), trial(0.5));
    let number = |trial: &Arc<RunningTrial>, session: Option<&[u8]>, address| {
        Arc::clone(trial).visitor(session, Some(address)).number
    };
    assert_eq!(number(&one, Some(b"a"), 1), number(&one, Some(b"a"), 2));
    assert_ne!(number(&one, Some(b"a"), 1), number(&one, Some(b"b"), 1));
    assert_ne!(number(&one, None, 1), number(&one, None, 2));
    assert_ne!(number(&one, None, 1), number(&other, None, 1));
}

#[test]
fn three_failing_visitors_decide_and_one_with_many_failures_does_not() {
    let trial = trial(0.05);
    let mut new = visitors(&trial, 2);
    let one = new.next().unwrap();
    assert!((0..1000).all(|_| !one.note(2, ERROR)), "one visitor decides");
    assert!(!new.next().unwrap().note(2, ERROR));
    assert!(new.next().unwrap().note(2, ERROR), "{:?}", trial.sides());
    assert_eq!(trial.fault(), Some(Fault::Failures));
    assert!(!new.next().unwrap().note(2, ERROR), "the supervisor is told once");
}

#[test]
fn errors_of_both_sides_decide_nothing() {
    let trial = trial(0.05);
    let visitors = (0..10_000).map(|address| Arc::clone(&trial).visitor(None, Some(address)));
    for visitor in visitors {
        assert!(!visitor.note(visitor.generation(), ERROR), "{:?}", trial.sides());
    }
    let (new, old) = trial.sides();
    assert_eq!(new.errors + old.errors, 10_000);
    assert_eq!((new.errors, old.errors), (new.failing_visitors, old.failing_visitors));
}

#[test]
fn a_response_of_another_generation_is_not_counted() {
    let trial = trial(0.05);
    assert!(!visitors(&trial, 2).next().unwrap().note(1, ERROR));
    assert!(!visitors(&trial, 1).next().unwrap().note(3, ERROR));
    let (new, old) = trial.sides();
    assert_eq!((new.requests, old.requests), (0, 0));
}

#[test]
fn slow_is_what_takes_more_than_twice_the_usual_time() {
    let trial = trial(0.05);
    let took = |millis| Outcome::Answered { is_error: false, took: MILLISECOND * millis };
    let mut new = visitors(&trial, 2);
    for visitor in visitors(&trial, 1).take(100) {
        visitor.note(1, took(20));
    }
    // The first responses of the new workers are not timed.
    for visitor in new.by_ref().take(50) {
        assert!(!visitor.note(2, took(1000)));
    }
    for visitor in new.by_ref().take(100) {
        assert!(!visitor.note(2, took(45)));
    }
    assert_eq!(trial.sides().0.slow_visitors, 0);
    let decided = new.take(3).map(|visitor| visitor.note(2, took(70)));
    assert_eq!(decided.collect::<Vec<_>>(), [false, false, true]);
    assert_eq!(trial.fault(), Some(Fault::Slowness));
}

#[test]
fn all_kinds_of_failures_are_counted() {
    let trial = trial(0.5);
    let visitor = visitors(&trial, 2).next().unwrap();
    for outcome in [FINE, ERROR, LOST, Outcome::Overdue, Outcome::Refused] {
        visitor.note(2, outcome);
    }
    trial.note_crash(1);
    trial.note_crash(2);
    trial.note_crash(2);
    trial.note_memory(Some((2, 1)));
    trial.note_memory(None);
    let (new, old) = trial.sides();
    assert_eq!((new.requests, new.errors, new.lost, new.overdue, new.refused), (5, 1, 1, 1, 1));
    assert_eq!((new.failing_visitors, new.crashes, old.crashes), (1, 2, 1));
    assert_eq!((new.worker_bytes, old.worker_bytes), (Some(2), Some(1)));
}

#[test]
fn what_happens_to_many_visitors_together_is_no_failing_visitor() {
    let trial = trial(0.5);
    for visitor in visitors(&trial, 2).take(100) {
        assert!(!visitor.note(2, Outcome::Lost { had_others: true }));
        assert!(!visitor.note(2, Outcome::Refused));
    }
    let (new, _) = trial.sides();
    assert_eq!((new.lost, new.refused, new.failing_visitors), (100, 100, 0));
    assert_eq!(trial.fault(), None);
}

#[test]
fn an_answer_ends_a_row_of_crashes() {
    let trial = trial(0.5);
    let visitor = visitors(&trial, 2).next().unwrap();
    (0..4).for_each(|_| trial.note_crash(2));
    visitor.note(2, FINE);
    (0..4).for_each(|_| trial.note_crash(2));
    assert_eq!(trial.fault(), None);
    visitor.note(2, LOST);
    trial.note_crash(2);
    assert_eq!(trial.fault(), Some(Fault::CrashLoop));
}

#[test]
fn the_first_responses_of_added_workers_are_not_timed() {
    let trial = trial(0.5);
    let took = |millis| Outcome::Answered { is_error: false, took: MILLISECOND * millis };
    let (mut new, old) = (visitors(&trial, 2), visitors(&trial, 1));
    old.take(100).for_each(|visitor| assert!(!visitor.note(1, took(1))));
    let mut slow = |responses: usize| {
        new.by_ref().take(responses).for_each(|visitor| assert!(!visitor.note(2, took(1000))));
        trial.sides().0.slow_visitors
    };
    assert_eq!((slow(50), slow(1)), (0, 1));
    // A worker that replaces another one adds none.
    trial.note_workers(5);
    assert_eq!(slow(1), 2);
    // They count from the time at which they are there.
    trial.resize(7);
    assert_eq!(slow(1), 3);
    trial.note_workers(7);
    assert_eq!((slow(70), slow(1)), (3, 4));
    // Those that were away are new again.
    trial.resize(6);
    trial.note_workers(6);
    trial.resize(7);
    trial.note_workers(7);
    assert_eq!((slow(70), slow(1)), (4, 5));
}

#[test]
fn a_crash_loop_has_as_many_crashes_as_there_are_workers_now() {
    for (workers, crashes) in [(5, 5), (8, 8), (4, 4), (1, 3)] {
        let trial = trial(0.05);
        trial.resize(workers);
        (1..crashes).for_each(|_| trial.note_crash(2));
        assert_eq!(trial.fault(), None, "{workers}");
        trial.note_crash(2);
        assert_eq!(trial.fault(), Some(Fault::CrashLoop), "{workers}");
    }
}

#[test]
fn the_time_of_a_trial_ends() {
    let trial = trial(0.05);
    let at = |seconds| trial.began_at + Duration::from_secs(seconds);
    assert!(!trial.is_over(at(119)) && trial.is_over(at(120)));
}
