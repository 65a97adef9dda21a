//! Random values that keep no secret.

use std::hash::{BuildHasher, Hasher, RandomState};

/// Returns a name that nobody else has.
pub fn random_name() -> String {
    format!("{:016x}{:016x}", random(), random())
}

/// Returns a random factor from one half to one, so that many machines do not do the same at the
/// same moment.
pub fn jitter() -> f64 {
    0.5 + random() as f64 / u64::MAX as f64 / 2.0
}

fn random() -> u64 {
    // The keys of hash maps are the only source of randomness in the standard library.
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_differ_by_up_to_a_half() {
        let factors: Vec<f64> = (0..50).map(|_| jitter()).collect();
        assert!(factors.iter().all(|factor| (0.5..=1.0).contains(factor)), "{factors:?}");
        assert!(factors.iter().any(|factor| *factor != factors[0]), "{factors:?}");
    }

    #[test]
    fn names_differ() {
        assert!(random_name() != random_name());
    }
}
