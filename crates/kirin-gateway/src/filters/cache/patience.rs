//! How long readers of one body wait for the slowest of them. Pure: durations in, a duration out.

use std::time::Duration;

/// What they wait in any case: connections come to a stand now and then.
pub const GRACE: Duration = Duration::from_secs(10);

/// Bytes a second that they can expect on the average after that.
const BYTES_A_SECOND: u64 = 64 * 1024;

/// With one reader at the end of a body that grows no further until another has read.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    grace: Duration,
    waited: Duration,
    bytes: u64,
}

impl Patience {
    /// Of readers that have not waited yet.
    pub fn new(grace: Duration) -> Self {
        Self { grace, waited: Duration::ZERO, bytes: 0 }
    }

    /// For how long they wait now.
    pub fn left(&self) -> Duration {
        let earned = Duration::from_secs_f64(self.bytes as f64 / BYTES_A_SECOND as f64);
        (self.grace + earned).saturating_sub(self.waited)
    }

    /// They have waited.
    pub fn waited(&mut self, time: Duration) {
        self.waited += time;
    }

    /// They have got something.
    pub fn got(&mut self, bytes: usize) {
        self.bytes += bytes as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A slowest reader that has `bytes` taken every `seconds`; when the others have had enough, if
    /// within an hour.
    fn ends_after(bytes: usize, seconds: u64) -> Option<u64> {
        let (mut patience, step) = (Patience::new(GRACE), Duration::from_secs(seconds));
        for number in 1..3600 / seconds {
            if patience.left() < step {
                return Some(number * seconds);
            }
            patience.waited(step);
            patience.got(bytes);
        }
        None
    }

    #[test]
    fn others_wait_for_a_reader_that_is_slow_and_not_for_one_that_stands_still() {
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
