//! Random numbers for loads and traces.

/// The generator xorshift64* (Vigna, "An experimental exploration of Marsaglia's xorshift
/// generators, scrambled"). A benchmark needs only an even spread that is the same in every run.
pub struct Random(u64);

impl Random {
    /// Creates a generator whose sequence `seed` fixes. The seed 0 becomes 1, because the generator
    /// would stay at 0.
    pub fn new(seed: u64) -> Self {
        Self(seed.max(1))
    }

    /// Returns a number from 0 to `limit` - 1.
    pub fn below(&mut self, limit: usize) -> usize {
        // The high bits are the good ones. A widening multiplication scales them without a
        // division.
        ((u128::from(self.next()) * limit as u128) >> 64) as usize
    }

    /// Returns a number from 0 up to but not including 1.
    pub fn below_one(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn a_seed_fixes_the_sequence_and_zero_is_a_seed_too() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            (0..100).map(|_| random.below(1_000_000)).collect::<Vec<usize>>()
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert!(numbers(0).iter().any(|&number| number > 0));
    }

    #[test]
    fn fractions_spread_evenly_below_one() {
        let mut random = Random::new(7);
        let fractions: Vec<f64> = (0..10_000).map(|_| random.below_one()).collect();
        assert!(fractions.iter().all(|fraction| (0.0..1.0).contains(fraction)));
        let mean = fractions.iter().sum::<f64>() / 10_000.0;
        assert!((0.48..0.52).contains(&mean), "{mean}");
    }
}
