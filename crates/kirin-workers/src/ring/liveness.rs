//! Whether a worker still looks for requests: the decision of the supervisor about one seat.
//!
//! A worker that is free sleeps within microseconds, and then its bit is among the sleepers. A
//! worker that neither has a request nor sleeps is silent: it was told to look and has not done so,
//! or it still does something after its last answer. It may do so for as long as a request may
//! take.
//!
//! A stopped worker leaves its bit behind. So a worker that has slept for that time is asked to
//! look, which takes its bit away until it has done so.

use std::time::{Duration, Instant};

/// How long a worker may be silent before it counts as busy. It gets ready for the next request in
/// that time.
const UNNOTICED: Duration = Duration::from_millis(100);

/// The shortest time between two questions to one worker.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);

/// How often a worker is found silent before it is overdue, at least. If Kirin itself was stopped,
/// the time alone says nothing.
const SILENT_LOOKS: u32 = 3;

/// What the supervisor finds in a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The worker has a request, or its connection is in use.
    Working,
    /// The worker says that it sleeps.
    Asleep,
    /// Neither.
    Silent,
}

/// What the supervisor does about a seat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// All is well, or it is too early to say.
    Wait,
    /// The worker is asked to look.
    Ask,
    /// The worker is killed.
    Condemn,
}

/// What is known of a worker between its requests.
#[derive(Debug, Default)]
pub(super) struct Liveness {
    /// When the worker has last shown that it lives, or was asked to. `None` before the first look.
    seen_at: Option<Instant>,
    silence: Option<Silence>,
}

/// A time in which a worker is silent.
#[derive(Debug)]
struct Silence {
    since: Instant,
    looks: u32,
    /// The requests that the worker has had. If there are more now, this silence is over.
    requests: u64,
}

impl Liveness {
    /// Decides about a worker that has had `requests`, and that may be silent for `limit`.
    pub(super) fn look(
        &mut self,
        found: Found,
        requests: u64,
        now: Instant,
        limit: Duration,
    ) -> Verdict {
        match (found, &mut self.silence) {
            (Found::Working, _) => {
                *self = Self { seen_at: Some(now), silence: None };
                Verdict::Wait
            }
            (Found::Asleep, _) => {
                self.silence = None;
                let pause = limit.max(SHORTEST_PAUSE);
                let seen_at = self.seen_at.get_or_insert(now);
                if now.saturating_duration_since(*seen_at) < pause {
                    return Verdict::Wait;
                }
                *seen_at = now;
                self.silence = Some(Silence { since: now, looks: 0, requests });
                Verdict::Ask
            }
            (Found::Silent, Some(silence)) if silence.requests == requests => {
                silence.looks += 1;
                let is_over = now.saturating_duration_since(silence.since) > limit;
                match is_over && silence.looks >= SILENT_LOOKS {
                    true => Verdict::Condemn,
                    false => Verdict::Wait,
                }
            }
            (Found::Silent, silence) => {
                *silence = Some(Silence { since: now, looks: 1, requests });
                // It sleeps without its bit if its application has overwritten that.
                Verdict::Ask
            }
        }
    }

    /// Returns for how long a worker has been silent that is `found` so at this moment, if that is
    /// long enough to count it as busy.
    pub(super) fn silent_for(&self, found: Found, now: Instant) -> Option<Duration> {
        let silence = self.silence.as_ref().filter(|_| found == Found::Silent)?;
        let silent = now.saturating_duration_since(silence.since);
        (silent >= UNNOTICED).then_some(silent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(4);
    const SECOND: Duration = Duration::from_secs(1);

    /// Returns the verdicts about a worker that is found so once a second.
    fn verdicts(found: &[(Found, u64)]) -> Vec<Verdict> {
        let start = Instant::now();
        let mut liveness = Liveness::default();
        let looks = found.iter().zip(1..);
        looks
            .map(|((found, requests), second)| {
                liveness.look(*found, *requests, start + SECOND * second, LIMIT)
            })
            .collect()
    }

    #[test]
    fn a_worker_that_stays_silent_for_the_limit_is_condemned() {
        use Verdict::{Ask, Condemn, Wait};
        let silent = [(Found::Silent, 1); 7];
        assert_eq!(verdicts(&silent), [Ask, Wait, Wait, Wait, Wait, Condemn, Condemn]);
    }

    #[test]
    fn a_worker_that_answers_or_sleeps_in_between_is_not_condemned() {
        let busy: Vec<_> = (0..20).map(|requests| (Found::Silent, requests)).collect();
        assert!(!verdicts(&busy).contains(&Verdict::Condemn));
        for between in [Found::Asleep, Found::Working] {
            let found: Vec<_> =
                [Found::Silent, Found::Silent, between].into_iter().cycle().take(30).collect();
            let found: Vec<_> = found.into_iter().map(|found| (found, 1)).collect();
            assert!(!verdicts(&found).contains(&Verdict::Condemn), "{between:?}");
        }
    }

    #[test]
    fn a_worker_that_sleeps_is_asked_once_in_the_limit_and_must_sleep_again() {
        use Found::{Asleep, Silent};
        use Verdict::{Ask, Condemn, Wait};
        let healthy = [(Asleep, 1); 9];
        assert_eq!(verdicts(&healthy), [Wait, Wait, Wait, Wait, Ask, Wait, Wait, Wait, Ask]);
        let mut stopped = [(Asleep, 1); 10];
        stopped[5..].fill((Silent, 1));
        let expected = [Wait, Wait, Wait, Wait, Ask, Wait, Wait, Wait, Wait, Condemn];
        assert_eq!(verdicts(&stopped), expected);
    }

    #[test]
    fn a_pause_of_the_supervisor_condemns_nobody() {
        let start = Instant::now();
        let mut liveness = Liveness::default();
        assert_eq!(liveness.look(Found::Silent, 1, start, LIMIT), Verdict::Ask);
        let later = start + 100 * SECOND;
        assert_eq!(liveness.look(Found::Silent, 1, later, LIMIT), Verdict::Wait);
        assert_eq!(liveness.look(Found::Asleep, 1, later + SECOND, LIMIT), Verdict::Wait);
        assert_eq!(liveness.look(Found::Silent, 1, later + 2 * SECOND, LIMIT), Verdict::Ask);
    }

    #[test]
    fn a_silent_worker_counts_as_busy_until_it_sleeps() {
        let start = Instant::now();
        let mut liveness = Liveness::default();
        liveness.look(Found::Silent, 1, start, LIMIT);
        assert_eq!(liveness.silent_for(Found::Silent, start), None);
        assert_eq!(liveness.silent_for(Found::Silent, start + SECOND), Some(SECOND));
        assert_eq!(liveness.silent_for(Found::Asleep, start + SECOND), None);
    }
}
