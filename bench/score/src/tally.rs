//! The referee's notes: right answers and faults by kind, points, and the verdict.

use std::collections::BTreeMap;
use std::time::Duration;

use kirin_floor::latency::Latencies;
use serde::Serialize;

use crate::judge::Fault;
use crate::kind::{KINDS, Kind, PENALTY};

/// More slips than this share of all requests, and the answers are not worth counting.
const SLIPS_ALLOWED: f64 = 0.01;

/// Without one right answer of each of these, what matters most has not been checked.
const MUST_HAPPEN: [Kind; 7] = [
    Kind::Front,
    Kind::SignIn,
    Kind::SignedIn,
    Kind::PostPublic,
    Kind::OwnPrivate,
    Kind::OthersPrivate,
    Kind::SignedOut,
];

/// Notes of one run.
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

/// One run, for `bench/contest.py`.
#[derive(Serialize)]
pub struct Verdict {
    /// Length of the run.
    pub seconds: f64,
    /// Points less penalties, or 0 for who is disqualified.
    pub score: u64,
    /// Why a contestant is disqualified.
    pub disqualified: Option<String>,
    /// Points for right answers.
    pub points: u64,
    /// Answers that were wrong or did not come.
    pub faults: u64,
    /// Right answers and faults.
    pub requests: u64,
    /// In the order of the points' table.
    pub kinds: Vec<KindVerdict>,
    /// Public memos, from the answer to their author until they were seen on `/`.
    pub appeared: Latency,
    /// What was wrong, and how often.
    pub reasons: BTreeMap<String, u64>,
}

/// One kind of request in a run.
#[derive(Serialize)]
pub struct KindVerdict {
    /// What it is called.
    pub name: &'static str,
    /// What a right answer is worth.
    pub worth: u64,
    /// Latency and number of right answers.
    #[serde(flatten)]
    pub latency: Latency,
    /// Wrong ones.
    pub faults: u64,
}

/// How many, and how long it took.
#[derive(Serialize)]
pub struct Latency {
    /// Number.
    pub count: u64,
    /// Median, milliseconds.
    pub p50_ms: f64,
    /// 99th percentile, milliseconds.
    pub p99_ms: f64,
    /// The longest, milliseconds.
    pub max_ms: f64,
}

impl Tally {
    /// Notes a right answer.
    pub fn right(&mut self, kind: Kind, took: Duration) {
        self.kinds[kind as usize].latencies.record(took);
    }

    /// Notes a wrong one, or none.
    pub fn wrong(&mut self, kind: Kind, fault: Fault) {
        self.kinds[kind as usize].faults += 1;
        let (reasons, what) = match fault {
            Fault::Slip(what) => (&mut self.slips, what),
            Fault::Breach(what) => (&mut self.breaches, what),
        };
        *reasons.entry(format!("{}: {what}", kind.name())).or_default() += 1;
    }

    /// Notes that a public memo was seen on the front page.
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
        let reasons = self.slips.into_iter().chain(self.breaches).collect();
        Verdict {
            seconds: elapsed.as_secs_f64(),
            score,
            disqualified,
            points,
            faults,
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
    fn who_was_never_checked_has_not_won() {
        let mut tally = Tally::default();
        tally.right(Kind::Front, Duration::from_millis(1));
        let verdict = tally.verdict(Duration::from_secs(1));
        assert_eq!(verdict.disqualified.as_deref(), Some("nobody got as far as: sign-in"));
    }
}
