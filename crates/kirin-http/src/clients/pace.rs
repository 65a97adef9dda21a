//! How slow a client may be while it sends a body or takes a response.
//!
//! There are two rules. A client may not be silent for long, and on average it must keep a minimum
//! rate. Without the second rule, one byte from time to time would hold a connection for ever.
//!
//! Pure: it takes seconds of the loop's clock and returns the second at which the time is over.

/// The minimum that is required of a client.
#[derive(Clone, Copy, Debug)]
pub struct MinimumPace {
    /// Seconds for which it may be silent.
    pub silence: u64,
    /// Bytes a second, 0 for no such minimum. It is an average over the time that the server waited
    /// for the client, without the first `silence` seconds.
    pub rate: u64,
}

/// The pace of one client, for one body or one response.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    minimum: MinimumPace,
    /// Seconds that the server has waited for it, without those since `since`.
    waited: u64,
    since: u64,
    bytes: u64,
}

impl Pace {
    /// Returns the pace of a client that has moved nothing yet.
    pub fn new(minimum: MinimumPace) -> Self {
        Self { minimum, waited: 0, since: 0, bytes: 0 }
    }

    /// Begins to wait at second `now`. Returns the second at which the time is over.
    pub fn begin(&mut self, now: u64) -> u64 {
        self.since = now;
        self.deadline(now)
    }

    /// Notes that the client has moved so many bytes. Returns the new second at which the time is
    /// over.
    pub fn moved(&mut self, bytes: u64, now: u64) -> u64 {
        self.bytes += bytes;
        self.deadline(now)
    }

    /// Ends the wait.
    pub fn end(&mut self, now: u64) {
        self.waited += now.saturating_sub(self.since);
        self.since = now;
    }

    fn deadline(&self, now: u64) -> u64 {
        let MinimumPace { silence, rate } = self.minimum;
        let silent = now + silence;
        match self.bytes.checked_div(rate) {
            None => silent,
            Some(earned) => {
                silent.min((self.since + silence + earned).saturating_sub(self.waited)).max(1)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEMAND: MinimumPace = MinimumPace { silence: 60, rate: 240 };

    /// Simulates a client that moves `bytes` every `seconds` while the server waits. Returns the
    /// second at which the server gives up, or `None` if it does not within an hour.
    fn given_up(minimum: MinimumPace, bytes: u64, seconds: u64) -> Option<u64> {
        let mut pace = Pace::new(minimum);
        let mut end = pace.begin(1000);
        for now in (1000 + seconds..4600).step_by(seconds as usize) {
            if end <= now {
                return Some(end - 1000);
            }
            end = pace.moved(bytes, now);
        }
        None
    }

    #[test]
    fn a_silent_client_is_given_up() {
        assert_eq!(given_up(DEMAND, 1_000_000, 61), Some(60));
        assert_eq!(given_up(DEMAND, 1_000_000, 59), None);
    }

    #[test]
    fn a_byte_now_and_then_is_not_enough() {
        assert_eq!(given_up(DEMAND, 1, 59), Some(60));
        assert_eq!(given_up(DEMAND, 1, 1), Some(60));
        assert_eq!(given_up(MinimumPace { rate: 0, ..DEMAND }, 1, 59), None);
    }

    #[test]
    fn the_rate_is_an_average() {
        // At 120 bytes a second, each second earns half a second.
        assert_eq!(given_up(DEMAND, 120, 1), Some(118));
        assert_eq!(given_up(DEMAND, 240, 1), None);
        assert_eq!(given_up(DEMAND, 240 * 30, 30), None);
    }

    #[test]
    fn time_in_which_nobody_waits_for_the_client_does_not_count() {
        let mut pace = Pace::new(DEMAND);
        assert_eq!(pace.begin(1000), 1060);
        pace.end(1030);
        // An application takes an hour for its next piece.
        assert_eq!(pace.begin(5000), 5030);
        assert_eq!(pace.moved(2400, 5010), 5040);
        pace.end(5010);
        assert_eq!(pace.begin(5010), 5040);
    }

    #[test]
    fn used_up_time_is_not_a_deadline_of_never() {
        let mut pace = Pace::new(DEMAND);
        pace.begin(0);
        pace.end(1000);
        assert_eq!(pace.begin(10), 1);
    }
}
