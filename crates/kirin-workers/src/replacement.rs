//! The replacement of workers because of their age or their resident memory.
//!
//! The supervisor checks each worker now and then, in whatever language it is written. It never
//! ends a worker inside a request. The worker gets no further request, and the parent forks another
//! one in its place.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// The largest part of the age that is taken off at random, so that workers of the same age do not
/// leave together.
const JITTER: f64 = 0.1;

/// Why a worker is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplaceReason {
    /// The worker has reached this age.
    Age(Duration),
    /// The worker has this many bytes in memory.
    Memory(u64),
}

/// Returns the age at which one worker is replaced. `fraction` is a random number from 0 to 1.
pub(crate) fn lifetime(max_age: Duration, fraction: f64) -> Duration {
    max_age.mul_f64(1.0 - JITTER * fraction.clamp(0.0, 1.0))
}

/// Returns a random number from 0 to 1.
pub(crate) fn random_fraction() -> f64 {
    // The keys of hash maps are the only source of randomness in the standard library.
    RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64
}

/// Returns the resident memory of a process in bytes, as `ps` shows it. Pages that are shared with
/// the parent count.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let pages = parse_statm(&std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?)?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// Parses the second number of `/proc/PID/statm` (proc_pid_statm(5)).
fn parse_statm(text: &str) -> Option<u64> {
    text.split_ascii_whitespace().nth(1)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_second_number_of_statm_is_the_resident_pages() {
        assert_eq!(parse_statm("3141 592 65 1 0 35 0\n"), Some(592));
        assert_eq!(parse_statm(""), None);
    }

    #[test]
    fn our_own_memory_is_more_than_a_page() {
        let bytes = resident_bytes(std::process::id()).unwrap();
        assert!(bytes > 4096, "{bytes}");
    }

    proptest! {
        #[test]
        fn a_lifetime_is_at_most_a_tenth_less_than_the_age(seconds in 1u64..1_000_000, fraction in 0.0f64..=1.0) {
            let age = Duration::from_secs(seconds);
            let drawn = lifetime(age, fraction);
            prop_assert!(drawn <= age && drawn >= age.mul_f64(0.899), "{drawn:?} of {age:?}");
        }
    }

    #[test]
    fn lots_differ() {
        let lots: Vec<f64> = (0..20).map(|_| random_fraction()).collect();
        assert!(lots.iter().all(|fraction| (0.0..=1.0).contains(fraction)), "{lots:?}");
        assert!(lots.iter().any(|fraction| *fraction != lots[0]), "{lots:?}");
    }
}
