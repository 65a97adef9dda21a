//! The server's clock, as this machine knows it between two looks at it.
//!
//! Versions of items are times of the server in microseconds, so that all Kirins agree on which is
//! newer. A look takes a trip, so the server's time is only known to lie between two bounds. The
//! version of a write is the upper one. A page that is begun is known by the lower one.

use std::time::Instant;

/// The last look at the server's clock.
#[derive(Clone, Copy, Debug)]
pub struct EngineClock {
    /// The server's time since the Unix epoch.
    micros: u64,
    /// When this machine has asked for it.
    asked_at: Instant,
    /// When it had the answer.
    answered_at: Instant,
}

impl EngineClock {
    /// Returns the clock after a look.
    pub fn new(micros: u64, asked_at: Instant, answered_at: Instant) -> Self {
        Self { micros, asked_at, answered_at }
    }

    /// Returns a time that the server has passed at `now`.
    pub fn at_least(&self, now: Instant) -> u64 {
        self.micros.saturating_add(micros(now.saturating_duration_since(self.answered_at)))
    }

    /// Returns a time that the server has not passed at `now`.
    pub fn at_most(&self, now: Instant) -> u64 {
        self.micros.saturating_add(micros(now.saturating_duration_since(self.asked_at)))
    }
}

fn micros(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX >> 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_time_of_the_server_lies_between_two_bounds() {
        let asked_at = Instant::now();
        let clock = EngineClock::new(1_000_000, asked_at, asked_at + Duration::from_secs(1));
        let now = asked_at + Duration::from_secs(2);
        assert_eq!((clock.at_least(now), clock.at_most(now)), (2_000_000, 3_000_000));
    }
}
