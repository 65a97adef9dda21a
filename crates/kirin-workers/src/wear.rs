//! Workers that have served long enough: by age and by resident memory.
//!
//! The supervisor looks at each worker now and then, whatever language it is written in, and never
//! ends one inside a request: a worn worker gets no further one, and its place is taken by the next
//! that its parent forks.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Workers that came together do not all leave together: up to this part of the age is taken off by
/// lot.
const JITTER: f64 = 0.1;

/// Why a worker is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wear {
    /// It is so old.
    Age(Duration),
    /// It has so many bytes in memory.
    Memory(u64),
}

/// The age at which one worker is to be replaced. `lot` is from 0 to 1.
pub(crate) fn lifetime(max_age: Duration, lot: f64) -> Duration {
    max_age.mul_f64(1.0 - JITTER * lot.clamp(0.0, 1.0))
}

/// A number from 0 to 1 by lot.
pub(crate) fn draw() -> f64 {
    // The standard library's only source of randomness: the keys of its hash maps.
    RandomState::new().hash_one(0u8) as f64 / u64::MAX as f64
}

/// The resident memory of a process in bytes, as `ps` tells it: with the pages that it shares with
/// its parent.
pub(crate) fn resident_bytes(pid: u32) -> Option<u64> {
    let pages = parse_statm(&std::fs::read_to_string(format!("/proc/{pid}/statm")).ok()?)?;
    Some(pages.saturating_mul(rustix::param::page_size() as u64))
}

/// The second number of `/proc/PID/statm` (proc_pid_statm(5)).
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
        fn a_lifetime_is_at_most_a_tenth_less_than_the_age(seconds in 1u64..1_000_000, lot in 0.0f64..=1.0) {
            let age = Duration::from_secs(seconds);
            let drawn = lifetime(age, lot);
            prop_assert!(drawn <= age && drawn >= age.mul_f64(0.899), "{drawn:?} of {age:?}");
        }
    }

    #[test]
    fn lots_differ() {
        let lots: Vec<f64> = (0..20).map(|_| draw()).collect();
        assert!(lots.iter().all(|lot| (0.0..=1.0).contains(lot)), "{lots:?}");
        assert!(lots.iter().any(|lot| *lot != lots[0]), "{lots:?}");
    }
}
