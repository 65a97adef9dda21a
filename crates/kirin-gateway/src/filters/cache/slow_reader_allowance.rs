//! The time for which the readers of one body wait for the slowest of them. Pure: the functions
//! take durations and return one.

use std::time::Duration;

/// The time for which readers always wait, because connections may stop for a moment.
pub const GRACE: Duration = Duration::from_secs(10);

/// The bytes a second that the slowest reader must read on average after that.
const BYTES_A_SECOND: u64 = 64 * 1024;

/// The time for which a slow reader may make the others wait. The others have read the body to its
/// present end, and it grows only when the slow reader reads.
#[derive(Clone, Copy, Debug)]
pub struct SlowReaderAllowance {
    grace: Duration,
    waited: Duration,
    bytes: u64,
}

impl SlowReaderAllowance {
    /// Creates the allowance of readers that have not waited yet.
    pub fn new(grace: Duration) -> Self {
        Self { grace, waited: Duration::ZERO, bytes: 0 }
    }

    /// Returns how long they wait from now on.
    pub fn left(&self) -> Duration {
        let earned = Duration::from_secs_f64(self.bytes as f64 / BYTES_A_SECOND as f64);
        (self.grace + earned).saturating_sub(self.waited)
    }

    /// Notes that they have waited.
    pub fn waited(&mut self, time: Duration) {
        self.waited += time;
    }

    /// Notes that they have got `bytes`.
    pub fn got(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns when the others stop to wait for a reader that takes `bytes` every `seconds`, if
    /// that is within an hour.
    fn ends_after(bytes: usize, seconds: u64) -> Option<u64> {
        let (mut allowance, step) = (SlowReaderAllowance::new(GRACE), Duration::from_secs(seconds));
        for number in 1..3600 / seconds {
            if allowance.left() < step {
                return Some(number * seconds);
            }
            allowance.waited(step);
            allowance.got(bytes);
        }
        None
    }

    #[test]
    fn others_wait_for_a_slow_reader_but_not_for_a_stalled_one() {
        for (bytes, seconds, expected) in [
            (0, 1, Some(11)),
            (1, 1, Some(11)),
            (1_000_000, 11, Some(11)),
            (32 * 1024, 1, Some(20)),
            (64 * 1024, 1, None),
            (9 * 64 * 1024, 9, None),
            (1_000_000, 9, None),
        ] {
            assert_eq!(ends_after(bytes, seconds), expected, "{bytes} every {seconds} s");
        }
    }
}
