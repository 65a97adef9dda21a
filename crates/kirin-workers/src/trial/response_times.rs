//! Times of responses, counted in buckets.

use std::time::Duration;

/// Buckets for each doubling of the time.
const A_DOUBLING: f64 = 4.0;

/// The last bucket has everything from 18 minutes on.
const BUCKETS: usize = 121;

/// How often each time was seen. A bucket's upper end is 19 % above its lower one.
#[derive(Clone, Debug)]
pub(crate) struct ResponseTimes {
    buckets: [u64; BUCKETS],
    count: u64,
}

impl Default for ResponseTimes {
    fn default() -> Self {
        Self { buckets: [0; BUCKETS], count: 0 }
    }
}

impl ResponseTimes {
    pub(crate) fn add(&mut self, time: Duration) {
        let microseconds = time.as_micros().max(1) as f64;
        let bucket = (microseconds.log2() * A_DOUBLING) as usize;
        self.buckets[bucket.min(BUCKETS - 1)] += 1;
        self.count += 1;
    }

    /// Returns how many times were seen.
    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// Returns a time that this share of the responses did not exceed. `None` without responses.
    pub(crate) fn quantile(&self, share: f64) -> Option<Duration> {
        let wanted = ((self.count as f64 * share).ceil() as u64).max(1);
        let mut seen = 0;
        let bucket = self.buckets.iter().position(|count| {
            seen += count;
            seen >= wanted
        })?;
        let microseconds = ((bucket + 1) as f64 / A_DOUBLING).exp2();
        Some(Duration::from_micros(microseconds.ceil() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn without_responses_there_is_no_quantile() {
        assert_eq!(ResponseTimes::default().quantile(0.5), None);
    }

    #[test]
    fn a_quantile_ignores_the_slower_rest() {
        let mut times = ResponseTimes::default();
        (0..90).for_each(|_| times.add(Duration::from_millis(10)));
        (0..10).for_each(|_| times.add(Duration::from_secs(3600)));
        let quantile = times.quantile(0.9).unwrap();
        assert!((10..=12).contains(&quantile.as_millis()), "{quantile:?}");
        assert!(times.quantile(0.91).unwrap() > Duration::from_secs(600));
    }

    proptest! {
        #[test]
        fn a_quantile_is_at_most_a_fifth_above_the_time(microseconds in 10u64..1_000_000_000) {
            let mut times = ResponseTimes::default();
            times.add(Duration::from_micros(microseconds));
            let found = times.quantile(0.5).unwrap().as_micros() as f64 / microseconds as f64;
            prop_assert!((0.99..1.3).contains(&found), "{found}");
        }
    }
}
