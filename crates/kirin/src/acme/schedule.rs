//! When to ask the authority. Pure: time and chance come in as arguments.

use super::lifetime::Lifetime;
use std::collections::hash_map::RandomState;
use std::hash::BuildHasher;
use std::time::{Duration, SystemTime};

/// From one certificate to the next at least, whatever dates the authority puts into them.
pub const BETWEEN_CERTIFICATES: Duration = Duration::from_secs(3600);

/// After the first failure. Let's Encrypt allows five failed proofs of a name in an hour.
const FIRST_WAIT: Duration = Duration::from_secs(5 * 60);
const LONGEST_WAIT: Duration = Duration::from_secs(12 * 3600);
/// After a failure because too much was asked for.
const RATE_LIMIT_WAIT: Duration = Duration::from_secs(2 * 3600);

/// When a certificate is renewed: at two thirds of its life, or up to a tenth of the rest earlier, so that those who got
/// theirs together do not come together. `lot` is from 0 to 1.
pub fn renewal(lifetime: Lifetime, lot: f64) -> SystemTime {
    let life = lifetime.until.duration_since(lifetime.from).unwrap_or_default();
    let share = 2.0 / 3.0 - lot.clamp(0.0, 1.0) / 30.0;
    lifetime.from + life.mul_f64(share)
}

/// How long to wait after `failures` of them in a row.
pub fn wait_after(failures: u32, is_rate_limit: bool, lot: f64) -> Duration {
    let doubled = FIRST_WAIT.saturating_mul(1 << failures.saturating_sub(1).min(16));
    let least = if is_rate_limit { RATE_LIMIT_WAIT } else { FIRST_WAIT };
    doubled.clamp(least, LONGEST_WAIT).mul_f64(1.0 + lot.clamp(0.0, 1.0) / 4.0)
}

/// A number from 0 to 1 by lot.
pub fn draw() -> f64 {
    // The standard library's only source of randomness: the keys of its hash maps.
    RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_certificate_is_renewed_at_two_thirds_of_its_life_or_a_little_earlier() {
        let day = Duration::from_secs(86_400);
        let from = SystemTime::UNIX_EPOCH + day * 20_000;
        for (days, lot, after) in [(90, 0.0, 60), (90, 1.0, 57), (6, 0.0, 4), (0, 0.5, 0)] {
            let lifetime = Lifetime { from, until: from + day * days };
            let due = renewal(lifetime, lot).duration_since(from).unwrap();
            assert!(due.abs_diff(day * after) < Duration::from_secs(1), "{days} days: {due:?}");
        }
        let never = Lifetime { from, until: from - day };
        assert_eq!(renewal(never, 0.5), from, "dates that make no sense are no reason to wait");
    }

    #[test]
    fn failures_are_followed_by_longer_and_longer_waits() {
        let minutes = |failures, is_rate_limit, lot| wait_after(failures, is_rate_limit, lot).as_secs() / 60;
        assert_eq!([1, 2, 3, 4].map(|failures| minutes(failures, false, 0.0)), [5, 10, 20, 40]);
        assert_eq!((minutes(1, true, 0.0), minutes(6, true, 0.0)), (120, 160));
        assert_eq!((minutes(100, false, 0.0), minutes(100, false, 1.0)), (720, 900));
        assert_eq!(minutes(1, false, 1.0), 6);
    }

    #[test]
    fn lots_differ() {
        assert!(draw() != draw());
    }
}
