//! A histogram of durations with a known relative error.

/// The buckets of each power of two.
const BUCKETS: u64 = 32;

/// The longest duration in microseconds, about 12 days. Longer ones count as this.
const LONGEST: u64 = 1 << 40;

/// Durations in microseconds. Buckets are 1/32 of their start wide at most, so a percentile is at
/// most 1.6 % away from the exact one. Memory grows with the longest duration, up to 10 KB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DurationHistogram {
    counts: Vec<u64>,
}

impl DurationHistogram {
    /// Counts a duration.
    pub fn add(&mut self, micros: u64) {
        let bucket = bucket_of(micros.min(LONGEST));
        if bucket >= self.counts.len() {
            self.grow(bucket);
        }
        if let Some(count) = self.counts.get_mut(bucket) {
            *count = count.saturating_add(1);
        }
    }

    /// Makes room for a bucket, and for all of its power of two.
    #[cold]
    fn grow(&mut self, bucket: usize) {
        let length = (bucket + 1).next_multiple_of(BUCKETS as usize);
        self.counts.reserve_exact(length - self.counts.len());
        self.counts.resize(length, 0);
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Self) {
        if let Some(last) = other.counts.len().checked_sub(1)
            && self.counts.len() <= last
        {
            self.grow(last);
        }
        for (count, added) in self.counts.iter_mut().zip(&other.counts) {
            *count = count.saturating_add(*added);
        }
    }

    /// Returns the duration that `percent` of all durations do not exceed. Returns `None` if there
    /// are none.
    pub fn percentile(&self, percent: u64) -> Option<u64> {
        let total: u128 = self.counts.iter().map(|count| u128::from(*count)).sum();
        // The nearest rank.
        let rank = (total * u128::from(percent)).div_ceil(100).max(1);
        let mut before = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            before += u128::from(*count);
            if before >= rank {
                return Some(middle_of(bucket as u64));
            }
        }
        None
    }
}

/// Returns the bucket of a duration. The first buckets are one microsecond wide.
fn bucket_of(micros: u64) -> usize {
    let bucket = if micros < BUCKETS {
        micros
    } else {
        let power = u64::from(micros.ilog2() - BUCKETS.ilog2());
        // `micros >> power` is from 32 to 63.
        BUCKETS * power + (micros >> power)
    };
    usize::try_from(bucket).unwrap_or(0)
}

/// Returns the duration in the middle of a bucket.
fn middle_of(bucket: u64) -> u64 {
    if bucket < 2 * BUCKETS {
        return bucket;
    }
    let power = bucket / BUCKETS - 1;
    let start = (bucket % BUCKETS + BUCKETS) << power;
    start + ((1 << power) >> 1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn histogram(durations: &[u64]) -> DurationHistogram {
        let mut histogram = DurationHistogram::default();
        for duration in durations {
            histogram.add(*duration);
        }
        histogram
    }

    #[test]
    fn no_durations_have_no_percentile() {
        assert_eq!(DurationHistogram::default().percentile(50), None);
    }

    #[test]
    fn the_longest_duration_takes_less_than_10_kb() {
        let histogram = histogram(&[u64::MAX]);
        assert!(histogram.counts.capacity() * 8 < 10_000, "{}", histogram.counts.capacity());
    }

    proptest! {
        #[test]
        fn percentiles_are_within_the_error(
            mut durations in proptest::collection::vec(0..LONGEST, 1..50),
            shift in 0_u32..40,
            percent in 0_u64..=100,
        ) {
            for duration in &mut durations {
                *duration >>= shift;
            }
            let found = histogram(&durations).percentile(percent).expect("a percentile");
            durations.sort_unstable();
            let rank = (durations.len() as u64 * percent).div_ceil(100).max(1);
            let exact = durations[rank as usize - 1];
            let most = exact.div_ceil(64);
            prop_assert!(found.abs_diff(exact) <= most, "{found} for {exact}");
        }

        #[test]
        fn a_merged_histogram_is_that_of_all_durations(
            one in proptest::collection::vec(any::<u64>(), 0..20),
            other in proptest::collection::vec(any::<u64>(), 0..20),
        ) {
            let mut merged = histogram(&one);
            merged.merge(&histogram(&other));
            prop_assert_eq!(merged, histogram(&[one, other].concat()));
        }
    }
}
