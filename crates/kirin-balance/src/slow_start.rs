//! Slow start: a recovered server gets few requests at first, because its caches are cold.

use std::time::Duration;

/// The part that stands for all of a weight.
pub(crate) const WHOLE: u64 = 256;

/// Returns the part of a server's weight that counts, of [`WHOLE`]. The server has recovered
/// `since` ago.
pub(crate) fn part(since: Duration, slow_start: Duration) -> u64 {
    if since >= slow_start {
        return WHOLE;
    }
    // A server must get requests to become warm, so the part is never 0.
    let part = since.as_millis().saturating_mul(u128::from(WHOLE)) / slow_start.as_millis().max(1);
    u64::try_from(part).unwrap_or(WHOLE).clamp(WHOLE / 16, WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_of_the_weight_grows_with_time() {
        let slow_start = Duration::from_secs(16);
        for (seconds, expected) in [(0, 16), (1, 16), (4, 64), (8, 128), (16, 256), (99, 256)] {
            assert_eq!(part(Duration::from_secs(seconds), slow_start), expected, "{seconds} s");
        }
        assert_eq!(part(Duration::ZERO, Duration::ZERO), WHOLE);
    }
}
