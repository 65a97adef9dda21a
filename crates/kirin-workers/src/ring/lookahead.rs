//! How many requests may be in the ring beyond those that workers have.
//!
//! A worker that finds the next request in the ring need not wait for the front. But requests in
//! the ring are served in their order, and those in the queue of the application by turns of their
//! clients. So the ring holds only so many requests as the workers handle in a moment. For an
//! application that takes longer than that, it holds none.
//!
//! The past says how long requests take, and the next ones may take longer. So requests that have
//! waited in the ring for much longer than a moment go back to the queue (`ring/late.rs`).
//!
//! A bound for each client would not do. Behind a proxy all clients may have one address, and
//! workers would then find nothing in the ring when they need it.

use std::time::Duration;

/// The time in which workers should have taken up the requests that wait in the ring.
const AHEAD: Duration = Duration::from_millis(2);

/// The most requests that wait in the ring, for each worker.
const MOST_AHEAD: u64 = 16;

/// A new time counts for this part of the average.
const WEIGHT: u64 = 16;

/// The average before the first request.
const NO_REQUEST: u64 = u64::MAX;

/// The average time that a worker takes for a request.
#[derive(Debug)]
pub(super) struct ServiceTime {
    average_ns: u64,
}

impl Default for ServiceTime {
    /// Returns the average before the first request: no request waits in the ring.
    fn default() -> Self {
        Self { average_ns: NO_REQUEST }
    }
}

impl ServiceTime {
    /// Adds `count` requests that took `time` together.
    pub(super) fn add(&mut self, time: Duration, count: usize) {
        let each = (time.as_nanos() as u64) / (count.max(1) as u64);
        self.average_ns = match self.average_ns {
            NO_REQUEST => each,
            average => (average.saturating_mul(WEIGHT - 1).saturating_add(each)) / WEIGHT,
        };
    }

    /// Notes that requests of `workers` take longer than expected and are not at their end. None
    /// waits in the ring until some have been faster again.
    pub(super) fn note_late(&mut self, workers: usize) {
        let none_waits = 2 * workers as u64 * AHEAD.as_nanos() as u64;
        self.average_ns = self.average_ns.max(none_waits);
        debug_assert!(self.ahead(workers) == 0, "requests of slow workers still wait in the ring");
    }

    /// Returns how many requests may wait in the ring.
    pub(super) fn ahead(&self, workers: usize) -> usize {
        let workers = workers as u64;
        let ahead = workers * AHEAD.as_nanos() as u64 / self.average_ns.max(1);
        ahead.min(workers * MOST_AHEAD) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns how many requests wait for four workers after many requests of `time`.
    fn ahead(time: Duration) -> usize {
        let mut service = ServiceTime::default();
        (0..1000).for_each(|_| service.add(time, 1));
        service.ahead(4)
    }

    #[test]
    fn the_faster_the_application_the_more_requests_wait_in_the_ring() {
        assert_eq!(ahead(Duration::from_micros(5)), 64);
        assert_eq!(ahead(Duration::from_millis(1)), 8);
        assert_eq!(ahead(Duration::from_millis(9)), 0);
        assert_eq!(ahead(Duration::ZERO), 64);
    }

    #[test]
    fn after_requests_that_take_longer_than_expected_none_waits() {
        for workers in [1, 4, 300] {
            let mut service = ServiceTime::default();
            service.add(Duration::from_micros(20), 1);
            assert!(service.ahead(workers) > 0);
            service.note_late(workers);
            assert_eq!(service.ahead(workers), 0);
            service.add(Duration::from_micros(20), 1);
            assert_eq!(service.ahead(workers), 0, "one fast request is not enough");
            (0..100).for_each(|_| service.add(Duration::from_micros(20), 1));
            assert!(service.ahead(workers) > 0);
        }
    }

    #[test]
    fn before_the_first_request_none_waits() {
        assert_eq!(ServiceTime::default().ahead(5), 0);
    }

    #[test]
    fn one_slow_request_among_many_counts() {
        let mut service = ServiceTime::default();
        (0..1000).for_each(|_| service.add(Duration::from_micros(20), 1));
        service.add(Duration::from_secs(10), 1);
        assert_eq!(service.ahead(4), 0);
    }
}
