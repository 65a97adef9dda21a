//! Histograms of durations, with fixed buckets.

use std::time::Duration;

use crate::count::Count;

/// The upper bounds of the buckets in nanoseconds, with the value of `le`. A page from memory is in
/// the first two. Applications and upstreams take milliseconds to seconds. One more bucket has all
/// longer times.
pub const BOUNDS: [(u64, &str); 19] = [
    (25_000, "0.000025"),
    (100_000, "0.0001"),
    (250_000, "0.00025"),
    (500_000, "0.0005"),
    (1_000_000, "0.001"),
    (2_500_000, "0.0025"),
    (5_000_000, "0.005"),
    (10_000_000, "0.01"),
    (25_000_000, "0.025"),
    (50_000_000, "0.05"),
    (100_000_000, "0.1"),
    (250_000_000, "0.25"),
    (500_000_000, "0.5"),
    (1_000_000_000, "1.0"),
    (2_500_000_000, "2.5"),
    (5_000_000_000, "5.0"),
    (10_000_000_000, "10.0"),
    (30_000_000_000, "30.0"),
    (60_000_000_000, "60.0"),
];

/// The number of buckets, with the last one, which has no bound.
const BUCKETS: usize = BOUNDS.len() + 1;

/// A histogram that one thread writes and any thread reads.
#[derive(Debug, Default)]
pub struct Histogram {
    buckets: [Count; BUCKETS],
    sum_nanoseconds: Count,
}

/// The contents of histograms at one moment. The contents of several loops can be added up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HistogramValues {
    buckets: [u64; BUCKETS],
    sum_nanoseconds: u64,
}

impl Histogram {
    /// Counts one duration.
    pub fn observe(&self, duration: Duration) {
        let nanoseconds = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        let index = BOUNDS.partition_point(|(bound, _)| *bound < nanoseconds);
        if let Some(bucket) = self.buckets.get(index) {
            bucket.add();
        }
        self.sum_nanoseconds.add_many(nanoseconds);
    }

    /// Adds the contents to `values`.
    pub fn add_to(&self, values: &mut HistogramValues) {
        for (sum, bucket) in values.buckets.iter_mut().zip(&self.buckets) {
            *sum = sum.wrapping_add(bucket.get());
        }
        values.sum_nanoseconds = values.sum_nanoseconds.wrapping_add(self.sum_nanoseconds.get());
    }
}

impl HistogramValues {
    /// Returns the number of durations.
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Returns the sum of the durations in seconds.
    pub fn sum_seconds(&self) -> f64 {
        self.sum_nanoseconds as f64 / 1e9
    }

    /// Returns each bound, as `le` has it, with the number of durations up to it.
    pub fn cumulative(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let bounds = BOUNDS.iter().map(|(_, text)| *text).chain(["+Inf"]);
        let mut sum = 0;
        bounds.zip(&self.buckets).map(move |(bound, count)| {
            sum += count;
            (bound, sum)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn values(durations: &[Duration]) -> HistogramValues {
        let histogram = Histogram::default();
        durations.iter().for_each(|duration| histogram.observe(*duration));
        let mut values = HistogramValues::default();
        histogram.add_to(&mut values);
        values
    }

    #[test]
    fn the_text_of_each_bound_is_its_number_and_bounds_grow() {
        for (nanoseconds, text) in BOUNDS {
            assert_eq!(text.parse::<f64>().unwrap(), nanoseconds as f64 / 1e9, "{text}");
            assert!(text.contains('.'), "{text} is not a float as OpenMetrics writes it");
        }
        assert!(BOUNDS.is_sorted_by(|one, next| one.0 < next.0));
    }

    #[test]
    fn a_duration_at_a_bound_belongs_to_its_bucket() {
        for (index, (nanoseconds, text)) in BOUNDS.iter().enumerate() {
            let at = values(&[Duration::from_nanos(*nanoseconds)]);
            assert_eq!(at.buckets[index], 1, "{text}");
            let above = values(&[Duration::from_nanos(nanoseconds + 1)]);
            assert_eq!(above.buckets[index + 1], 1, "above {text}");
        }
        assert_eq!(values(&[Duration::MAX]).cumulative().last(), Some(("+Inf", 1)));
    }

    proptest! {
        #[test]
        fn buckets_count_the_durations_up_to_their_bounds(
            nanoseconds in prop::collection::vec(0u64..100_000_000_000, 0..50)
        ) {
            let durations: Vec<_> = nanoseconds.iter().copied().map(Duration::from_nanos).collect();
            let values = values(&durations);
            prop_assert_eq!(values.count(), nanoseconds.len() as u64);
            for ((_, count), (bound, _)) in values.cumulative().zip(BOUNDS) {
                let expected = nanoseconds.iter().filter(|time| **time <= bound).count();
                prop_assert_eq!(count, expected as u64);
            }
            let sum = nanoseconds.iter().sum::<u64>() as f64 / 1e9;
            prop_assert!((values.sum_seconds() - sum).abs() < 1e-9);
        }
    }
}
