//! The tally: right answers and faults by kind, points, and the verdict.

use std::collections::BTreeMap;
use std::time::Duration;

use kirin_floor::latency::Latencies;
use serde::Serialize;

use crate::judge::Fault;
use crate::kind::{KINDS, Kind, PENALTY};

/// The share of all requests that may be slips. With more of them a contestant is disqualified.
const SLIPS_ALLOWED: f64 = 0.01;

/// The kinds that need at least one right answer. Without it the most important properties have not
/// been checked.
const MUST_HAPPEN: [Kind; 7] = [
    Kind::Front,
    Kind::SignIn,
    Kind::SignedIn,
    Kind::PostPublic,
    Kind::OwnPrivate,
    Kind::OthersPrivate,
    Kind::SignedOut,
];

/// The counts of one run.
#[derive(Default)]
pub struct Tally {
    kinds: [OfKind; KINDS.len()],
    appeared: Latencies,
    slips: BTreeMap<String, u64>,
    breaches: BTreeMap<String, u64>,
}

#[derive(Default)]
struct OfKind {
    latencies: Latencies,
    faults: u64,
}

/// The result of one run, for `bench/contest.py`.
#[derive(Serialize)]
pub struct Verdict {
    /// The length of the run in seconds.
    pub seconds: f64,
    /// The points less the penalties, or 0 for a disqualified contestant.
    pub score: u64,
    /// The reason why the contestant is disqualified.
    pub disqualified: Option<String>,
    /// The points for right answers.
    pub points: u64,
    /// The number of wrong and missing answers.
    pub faults: u64,
    /// The number of faults that disqualify alone: data of another visitor, or out of date.
    pub breaches: u64,
    /// The number of right answers and faults.
    pub requests: u64,
    /// The results of each kind, in the order of `KINDS`.
    pub kinds: Vec<KindVerdict>,
    /// The times until public memos appeared on `/`. They begin with the answer to the author.
    pub appeared: Latency,
    /// The faults by their description, with the number of each.
    pub reasons: BTreeMap<String, u64>,
}

/// The result of one kind of request in a run.
#[derive(Serialize)]
pub struct KindVerdict {
    /// The name of the kind.
    pub name: &'static str,
    /// The points for a right answer.
    pub worth: u64,
    /// The latencies and the number of right answers.
    #[serde(flatten)]
    pub latency: Latency,
    /// The number of wrong answers.
    pub faults: u64,
}

/// A number of requests and their latencies.
#[derive(Serialize)]
pub struct Latency {
    /// The number of requests.
    pub count: u64,
    /// The median in milliseconds.
    pub p50_ms: f64,
    /// The 99th percentile in milliseconds.
    pub p99_ms: f64,
    /// The longest latency in milliseconds.
    pub max_ms: f64,
}

impl Tally {
    /// Counts a right answer.
    pub fn right(&mut self, kind: Kind, took: Duration) {
        self.kinds[kind as usize].latencies.record(took);
    }

    /// Counts a wrong or missing answer.
    pub fn wrong(&mut self, kind: Kind, fault: Fault) {
        self.kinds[kind as usize].faults += 1;
        let (reasons, what) = match fault {
            Fault::Slip(what) => (&mut self.slips, what),
            Fault::Breach(what) => (&mut self.breaches, what),
        };
        *reasons.entry(format!("{}: {what}", kind.name())).or_default() += 1;
    }

    /// Records that a public memo has appeared on the front page.
    pub fn appeared(&mut self, after: Duration) {
        self.appeared.record(after);
    }

    /// Computes the verdict.
    pub fn verdict(mut self, elapsed: Duration) -> Verdict {
        let kinds: Vec<KindVerdict> = KINDS
            .iter()
            .zip(&mut self.kinds)
            .map(|(&(kind, name, _), of_kind)| KindVerdict {
                name,
                worth: kind.points(),
                latency: Latency::of(&mut of_kind.latencies),
                faults: of_kind.faults,
            })
            .collect();
        let right: u64 = kinds.iter().map(|kind| kind.latency.count).sum();
        let faults: u64 = kinds.iter().map(|kind| kind.faults).sum();
        let points = kinds.iter().map(|kind| kind.latency.count * kind.worth).sum();
        let disqualified = self.disqualification(&kinds, right + faults, faults);
        let score =
            if disqualified.is_some() { 0 } else { u64::saturating_sub(points, faults * PENALTY) };
        let breaches = self.breaches.values().sum();
        let reasons = self.slips.into_iter().chain(self.breaches).collect();
        Verdict {
            seconds: elapsed.as_secs_f64(),
            score,
            disqualified,
            points,
            faults,
            breaches,
            requests: right + faults,
            kinds,
            appeared: Latency::of(&mut self.appeared),
            reasons,
        }
    }

    fn disqualification(
        &self,
        kinds: &[KindVerdict],
        requests: u64,
        faults: u64,
    ) -> Option<String> {
        if let Some((what, count)) = self.breaches.iter().max_by_key(|(_, count)| **count) {
            return Some(format!("{what} ({count} times)"));
        }
        if faults as f64 > requests as f64 * SLIPS_ALLOWED {
            let (what, count) = self.slips.iter().max_by_key(|(_, count)| **count)?;
            return Some(format!(
                "{faults} of {requests} answers were wrong, most often: {what} ({count} times)"
            ));
        }
        let unchecked = MUST_HAPPEN.iter().find(|&&kind| kinds[kind as usize].latency.count == 0);
        if let Some(kind) = unchecked {
            return Some(format!("nobody got as far as: {}", kind.name()));
        }
        self.appeared.is_empty().then(|| "no public memo was seen on the front page".to_owned())
    }
}

impl Latency {
    fn of(latencies: &mut Latencies) -> Self {
        let count = latencies.len() as u64;
        let percentiles = latencies.percentiles();
        let at = |wanted: &str| {
            let found = percentiles.iter().find(|(name, _)| *name == wanted);
            found.map_or(0.0, |(_, latency)| latency.as_secs_f64() * 1e3)
        };
        Self { count, p50_ms: at("p50_us"), p99_ms: at("p99_us"), max_ms: at("max_us") }
    }
}

#[cfg(test)]
mod tests {
    use super::{MUST_HAPPEN, Tally};
    use crate::judge::Fault;
    use crate::kind::{Kind, PENALTY};
    use std::time::Duration;

    /// Creates a tally with one right answer of each kind that must happen, and a hundred front
    /// pages.
    fn tally() -> Tally {
        let mut tally = Tally::default();
        for kind in MUST_HAPPEN.into_iter().chain([Kind::Front; 100]) {
            tally.right(kind, Duration::from_millis(1));
        }
        tally.appeared(Duration::from_millis(3));
        tally
    }

    #[test]
    fn points_are_of_right_answers_and_a_slip_takes_some_away() {
        let clean = tally().verdict(Duration::from_secs(1));
        assert_eq!((clean.disqualified, clean.score), (None, clean.points));
        let mut tally = tally();
        tally.wrong(Kind::Front, Fault::Slip("status 502".to_owned()));
        let verdict = tally.verdict(Duration::from_secs(1));
        assert_eq!((verdict.disqualified, verdict.score), (None, clean.points - PENALTY));
    }

    #[test]
    fn one_breach_disqualifies_and_says_why() {
        let mut tally = tally();
        tally.wrong(Kind::OthersPrivate, Fault::Breach("shown".to_owned()));
        let verdict = tally.verdict(Duration::from_secs(1));
        assert_eq!(verdict.score, 0);
        assert_eq!(
            verdict.disqualified.as_deref(),
            Some("private memo, others (404): shown (1 times)")
        );
    }

    #[test]
    fn many_slips_disqualify() {
        let mut tally = tally();
        for _ in 0..2 {
            tally.wrong(Kind::Memo, Fault::Slip("status 502".to_owned()));
        }
        let reason = tally.verdict(Duration::from_secs(1)).disqualified.unwrap_or_default();
        assert!(
            reason.starts_with("2 of 109 answers were wrong, most often: memo: status 502"),
            "{reason}"
        );
    }

    #[test]
    fn a_contestant_that_was_never_checked_has_not_won() {
        let mut tally = Tally::default();
        tally.right(Kind::Front, Duration::from_millis(1));
        let verdict = tally.verdict(Duration::from_secs(1));
        assert_eq!(verdict.disqualified.as_deref(), Some("nobody got as far as: sign-in"));
    }
}
