//! A histogram of times in fixed memory, from which percentiles are read.

/// The buckets of one octave. A percentile is off by at most half of a bucket: 6 %.
const BUCKETS_PER_OCTAVE: usize = 8;

/// The first octave whose buckets are wider than a microsecond: 8 µs and more.
const FIRST_OCTAVE: usize = 3;

/// The last octave: 67 s to 134 s. Longer times count as such.
const LAST_OCTAVE: usize = 26;

const BUCKETS: usize = BUCKETS_PER_OCTAVE * (LAST_OCTAVE - FIRST_OCTAVE + 2);

/// Counts of times, in buckets whose width grows with the time.
#[derive(Clone)]
pub struct LiveHistogram([u32; BUCKETS]);

impl Default for LiveHistogram {
    fn default() -> Self {
        Self([0; BUCKETS])
    }
}

impl FromIterator<(u64, u32)> for LiveHistogram {
    fn from_iter<T: IntoIterator<Item = (u64, u32)>>(times: T) -> Self {
        let mut histogram = Self::default();
        times.into_iter().for_each(|(micros, count)| histogram.add(micros, count));
        histogram
    }
}

impl LiveHistogram {
    /// Counts a time `weight` times.
    #[inline]
    pub fn add(&mut self, micros: u64, weight: u32) {
        let count = &mut self.0[bucket_of(micros)];
        *count = count.saturating_add(weight);
    }

    /// Adds the counts of another histogram.
    pub fn merge(&mut self, other: &Self) {
        for (count, more) in self.0.iter_mut().zip(&other.0) {
            *count = count.saturating_add(*more);
        }
    }

    /// Returns the times that were counted, in microseconds, and how often. Each is the middle of
    /// its bucket.
    pub fn times(&self) -> Vec<(u64, u32)> {
        let counts = self.0.iter().enumerate().filter(|(_, count)| **count > 0);
        counts.map(|(bucket, count)| (middle_of(bucket), *count)).collect()
    }

    /// Returns the time in microseconds that a share of all times does not exceed. Returns 0 if
    /// there are no times.
    pub fn percentile(&self, share: f64) -> u64 {
        let total: u64 = self.0.iter().map(|count| u64::from(*count)).sum();
        let rank = ((total as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        for (bucket, count) in self.0.iter().enumerate() {
            seen += u64::from(*count);
            if seen >= rank {
                return middle_of(bucket);
            }
        }
        0
    }
}

/// Returns the index of the bucket of a time.
fn bucket_of(micros: u64) -> usize {
    let octave = micros.max(1).ilog2() as usize;
    if octave < FIRST_OCTAVE {
        return micros as usize;
    }
    if octave > LAST_OCTAVE {
        return BUCKETS - 1;
    }
    let part = (micros >> (octave - FIRST_OCTAVE)) as usize % BUCKETS_PER_OCTAVE;
    (octave - FIRST_OCTAVE + 1) * BUCKETS_PER_OCTAVE + part
}

/// Returns the time in the middle of a bucket.
fn middle_of(bucket: usize) -> u64 {
    let (octaves, part) = (bucket / BUCKETS_PER_OCTAVE, bucket % BUCKETS_PER_OCTAVE);
    if octaves == 0 {
        return part as u64;
    }
    let width = 1 << (octaves - 1);
    ((BUCKETS_PER_OCTAVE + part) as u64) * width + width / 2
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn each_bucket_has_its_own_middle() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(middle_of(bucket)), bucket, "middle {}", middle_of(bucket));
        }
    }

    #[test]
    fn percentiles_are_ranks() {
        let mut histogram = LiveHistogram::default();
        assert_eq!(histogram.percentile(0.5), 0);
        (1..=4).for_each(|micros| histogram.add(micros, 1));
        histogram.add(7, 96);
        let ranks = [0.01, 0.02, 0.04, 0.05, 1.0].map(|share| histogram.percentile(share));
        assert_eq!(ranks, [1, 2, 4, 7, 7]);
    }

    #[test]
    fn a_histogram_is_made_again_from_its_times() {
        let times = [(0, 2), (7, 1), (1000, 5), (u64::MAX, 3)];
        let histogram: LiveHistogram = times.into_iter().collect();
        let again: LiveHistogram = histogram.times().into_iter().collect();
        assert_eq!(again.0, histogram.0);
        assert_eq!(again.times().len(), times.len());
    }

    #[test]
    fn times_of_minutes_count_as_the_longest() {
        let mut histogram = LiveHistogram::default();
        histogram.add(u64::MAX, u32::MAX);
        histogram.add(u64::MAX, 1);
        assert_eq!(histogram.percentile(0.5), middle_of(BUCKETS - 1));
    }

    proptest! {
        #[test]
        fn a_percentile_is_at_most_a_sixteenth_off(micros in 0u64..134_000_000) {
            let mut histogram = LiveHistogram::default();
            histogram.add(micros, 3);
            let read = histogram.percentile(0.99);
            prop_assert!(read.abs_diff(micros) * 16 <= micros, "{micros} reads as {read}");
        }
    }
}
