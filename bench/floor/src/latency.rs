//! The latencies of a run. Each one is kept, because the number of requests in a run is limited.

use std::time::Duration;

/// All latencies of a run.
#[derive(Default)]
pub struct Latencies(Vec<Duration>);

impl Latencies {
    /// Adds one latency.
    pub fn record(&mut self, latency: Duration) {
        self.0.push(latency);
    }

    /// Adds the latencies of another part of the run.
    pub fn append(&mut self, mut others: Self) {
        self.0.append(&mut others.0);
    }

    /// Returns the number of latencies.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns whether there are no latencies.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the percentiles of the report with their names, or none if nothing was recorded.
    pub fn percentiles(&mut self) -> Vec<(&'static str, Duration)> {
        self.0.sort_unstable();
        [("p50_us", 0.5), ("p90_us", 0.9), ("p99_us", 0.99), ("p999_us", 0.999), ("max_us", 1.0)]
            .into_iter()
            .filter_map(|(name, share)| Some((name, self.at(share)?)))
            .collect()
    }

    /// Returns the smallest latency that at least this share of all latencies does not exceed. The
    /// latencies must be sorted.
    fn at(&self, share: f64) -> Option<Duration> {
        let rank = (self.0.len() as f64 * share).ceil() as usize;
        self.0.get(rank.max(1) - 1).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Latencies;
    use std::time::Duration;

    #[test]
    fn percentiles_are_values_that_were_measured() {
        let mut latencies = Latencies::default();
        assert!(latencies.percentiles().is_empty());
        for milliseconds in (1..=100).rev() {
            latencies.record(Duration::from_millis(milliseconds));
        }
        let milliseconds: Vec<u128> =
            latencies.percentiles().into_iter().map(|(_, latency)| latency.as_millis()).collect();
        assert_eq!(milliseconds, [50, 90, 99, 100, 100]);
    }
}
