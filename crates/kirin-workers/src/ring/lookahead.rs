//! How many requests may be in the ring beyond those that workers have.
//!
//! A worker that finds the next request in the ring need not wait for the front. But requests in
//! the ring are served in their order, and those in the queue of the application by turns of their
//! clients. So the ring holds only so many requests as the workers handle in a moment. For an
//! application that takes longer than that, it holds none.

use std::time::Duration;

/// The time in which workers should have taken up the requests that wait in the ring.
const AHEAD: Duration = Duration::from_millis(2);

/// The most requests that wait in the ring, for each worker.
const MOST_AHEAD: u64 = 16;

/// A new time counts for this part of the average.
const WEIGHT: u64 = 16;

/// The average time that a worker takes for a request.
#[derive(Debug)]
pub(super) struct ServiceTime {
    average_ns: u64,
}

impl Default for ServiceTime {
    /// Returns the average before the first request: one request a worker may wait.
    fn default() -> Self {
        Self { average_ns: AHEAD.as_nanos() as u64 }
    }
}

impl ServiceTime {
    /// Adds `count` requests that took `time` together.
    pub(super) fn add(&mut self, time: Duration, count: usize) {
        let each = (time.as_nanos() as u64) / (count.max(1) as u64);
        self.average_ns = (self.average_ns * (WEIGHT - 1) + each) / WEIGHT;
    }

    /// Returns how many requests may be in the ring.
    pub(super) fn places(&self, workers: usize) -> usize {
        let workers = workers as u64;
        let ahead = workers * AHEAD.as_nanos() as u64 / self.average_ns.max(1);
        (workers + ahead.min(workers * MOST_AHEAD)) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the places of four workers after many requests of `time`.
    fn places(time: Duration) -> usize {
        let mut service = ServiceTime::default();
        (0..1000).for_each(|_| service.add(time, 1));
        service.places(4)
    }

    #[test]
    fn the_faster_the_application_the_more_requests_wait_in_the_ring() {
        assert_eq!(places(Duration::from_micros(5)), 4 + 64);
        assert_eq!(places(Duration::from_millis(1)), 4 + 8);
        assert_eq!(places(Duration::from_millis(9)), 4);
        assert_eq!(places(Duration::ZERO), 4 + 64);
    }

    #[test]
    fn before_the_first_request_one_waits_for_each_worker() {
        assert_eq!(ServiceTime::default().places(5), 10);
        assert_eq!(ServiceTime::default().places(0), 0);
    }

    #[test]
    fn one_slow_request_among_many_counts() {
        let mut service = ServiceTime::default();
        (0..1000).for_each(|_| service.add(Duration::from_micros(20), 1));
        service.add(Duration::from_secs(10), 1);
        assert_eq!(service.places(4), 4);
    }
}
