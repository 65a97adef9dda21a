//! The times of orders. The functions are pure: time and randomness come in as arguments.

use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

use crate::lifetime::Lifetime;

/// The shortest time between two certificates, whatever dates the authority puts into them.
pub const BETWEEN_CERTIFICATES: Duration = Duration::from_secs(3600);

/// The shortest time between two attempts, even if an operator asks for one.
pub const BETWEEN_ATTEMPTS: Duration = Duration::from_secs(5);

/// The number of failures in a row after which a restart no longer means an attempt at once. An
/// operator who repairs something may restart a few times. A program that restarts again and again
/// must not ask each time.
const PATIENCE_WITH_STARTS: u32 = 3;

/// The most by which the clocks of two machines differ.
const CLOCK_DIFFERENCE: Duration = Duration::from_secs(60);

/// The pause after the first failure. Let's Encrypt allows five failed proofs of a name in an hour.
const FIRST_WAIT: Duration = Duration::from_secs(5 * 60);
const LONGEST_WAIT: Duration = Duration::from_secs(12 * 3600);
/// The pause after a failure because of the authority's rate limit.
const RATE_LIMIT_WAIT: Duration = Duration::from_secs(2 * 3600);

/// Returns when a certificate is renewed: at two thirds of its life, or up to a tenth of the rest
/// earlier. So certificates that were issued together are not renewed together. `random` is
/// from 0 to 1.
pub fn renewal(lifetime: Lifetime, random: f64) -> SystemTime {
    let life = lifetime.until.duration_since(lifetime.from).unwrap_or_default();
    let share = 2.0 / 3.0 - random.clamp(0.0, 1.0) / 30.0;
    lifetime.from + life.mul_f64(share)
}

/// Returns from when on a machine orders a certificate without a word from the origin that machines
/// share certificates on: in the middle between the renewal and the end.
pub fn renewal_alone(lifetime: Lifetime) -> SystemTime {
    let life = lifetime.until.duration_since(lifetime.from).unwrap_or_default();
    lifetime.from + life.mul_f64(5.0 / 6.0)
}

/// The failures in a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failures {
    /// The number of failures.
    pub count: u32,
    /// The time of the last failure.
    pub last: SystemTime,
    /// Whether the last failure was the authority's rate limit.
    #[serde(default)]
    pub is_rate_limit: bool,
}

impl Default for Failures {
    fn default() -> Self {
        Self { count: 0, last: SystemTime::UNIX_EPOCH, is_rate_limit: false }
    }
}

/// The last reason to try at once, whatever has failed before.
#[derive(Clone, Copy, Debug)]
pub struct Occasion {
    /// The time of it.
    pub at: SystemTime,
    /// Whether it is the word of an operator, and not the start of the program.
    pub is_by_operator: bool,
}

/// Returns how long a machine waits because an attempt of any machine has failed, if at all. What
/// was tried since the occasion is not tried again: the others had the same one.
pub fn wait_after_others(
    failures: Failures,
    occasion: Occasion,
    now: SystemTime,
) -> Option<Duration> {
    let is_new = failures.last < occasion.at;
    if is_new && (occasion.is_by_operator || failures.count < PATIENCE_WITH_STARTS) {
        return None;
    }
    // A clock of a machine that is wrong by more than that does not hold the others.
    let gone = match now.duration_since(failures.last) {
        Ok(gone) => gone,
        Err(ahead) if ahead.duration() < CLOCK_DIFFERENCE => Duration::ZERO,
        Err(_) => return None,
    };
    let wait = wait_after(failures.count, failures.is_rate_limit, 0.0).saturating_sub(gone);
    Some(wait).filter(|wait| failures.count > 0 && !wait.is_zero())
}

/// Returns how long to wait at the start because of earlier failures, if at all.
pub fn wait_at_start(failures: Failures, now: SystemTime) -> Option<Duration> {
    if failures.count < PATIENCE_WITH_STARTS {
        return None;
    }
    // A clock that was set back does not make the wait longer than that.
    let gone = now.duration_since(failures.last).unwrap_or_default();
    Some(wait_after(failures.count, false, 0.0).saturating_sub(gone)).filter(|wait| !wait.is_zero())
}

/// Returns how long to wait after `failures` in a row.
pub fn wait_after(failures: u32, is_rate_limit: bool, random: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let least = if is_rate_limit { RATE_LIMIT_WAIT } else { FIRST_WAIT };
    doubled.clamp(least, LONGEST_WAIT).mul_f64(1.0 + random.clamp(0.0, 1.0) / 4.0)
}

/// Returns a random number from 0 to 1.
pub fn random_fraction() -> f64 {
    // The keys of hash maps are the only source of randomness in the standard library.
    RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failures(count: u32, last: SystemTime) -> Failures {
        Failures { count, last, is_rate_limit: false }
    }

    #[test]
    fn a_machine_tries_again_after_the_wait_or_on_an_occasion_of_its_own() {
        let second =
            |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000 + seconds);
        let wait = |failures, occasion, is_by_operator, now| {
            let occasion = Occasion { at: second(occasion), is_by_operator };
            wait_after_others(failures, occasion, second(now)).map(|wait| wait.as_secs())
        };
        let one = failures(1, second(500));
        assert_eq!(wait(Failures::default(), 0, false, 0), None);
        assert_eq!((wait(one, 400, false, 501), wait(one, 400, true, 501)), (Some(299), Some(299)));
        assert_eq!((wait(one, 400, false, 800), wait(one, 600, false, 601)), (None, None));
        let three = failures(3, second(500));
        assert_eq!((wait(three, 600, false, 700), wait(three, 600, true, 700)), (Some(1000), None));
        let limited = Failures { is_rate_limit: true, ..one };
        assert_eq!(wait(limited, 400, false, 501), Some(7199));
        assert_eq!((wait(one, 400, false, 490), wait(one, 400, false, 400)), (Some(300), None));
    }

    #[test]
    fn a_certificate_is_renewed_at_two_thirds_of_its_life_or_a_little_earlier() {
        let day = Duration::from_secs(86_400);
        let from = SystemTime::UNIX_EPOCH + day * 20_000;
        for (days, random, after) in [(90, 0.0, 60), (90, 1.0, 57), (6, 0.0, 4), (0, 0.5, 0)] {
            let lifetime = Lifetime { from, until: from + day * days };
            let due = renewal(lifetime, random).duration_since(from).unwrap();
            assert!(due.abs_diff(day * after) < Duration::from_secs(1), "{days} days: {due:?}");
        }
        let lifetime = Lifetime { from, until: from + day * 90 };
        assert_eq!(renewal_alone(lifetime), from + day * 75);
        let never = Lifetime { from, until: from - day };
        assert_eq!(renewal(never, 0.5), from, "dates that make no sense are no reason to wait");
    }

    #[test]
    fn the_wait_grows_with_each_failure() {
        let minutes = |failures, is_rate_limit, random| {
            wait_after(failures, is_rate_limit, random).as_secs() / 60
        };
        assert_eq!([1, 2, 3, 4].map(|failures| minutes(failures, false, 0.0)), [5, 10, 20, 40]);
        assert_eq!((minutes(1, true, 0.0), minutes(6, true, 0.0)), (120, 160));
        assert_eq!((minutes(100, false, 0.0), minutes(100, false, 1.0)), (720, 900));
        assert_eq!(minutes(1, false, 1.0), 6);
    }

    #[test]
    fn repeated_starts_ask_no_more_often_than_one_long_run() {
        let last = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000);
        let wait = |count, seconds| {
            let now = last + Duration::from_secs(seconds);
            wait_at_start(failures(count, last), now).map(|wait| wait.as_secs())
        };
        assert_eq!((wait(0, 0), wait(2, 0), wait(3, 0)), (None, None, Some(1200)));
        assert_eq!((wait(3, 1000), wait(3, 1200), wait(4, 1200)), (Some(200), None, Some(1200)));
        assert_eq!(wait_at_start(failures(3, last), SystemTime::UNIX_EPOCH), Some(FIRST_WAIT * 4));
    }

    #[test]
    fn two_random_fractions_differ() {
        assert!(random_fraction() != random_fraction());
    }
}
