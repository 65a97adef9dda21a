//! A server that has come back gets little at first: its caches are cold.

use std::time::Duration;

/// One, of a weight.
pub(crate) const WHOLE: u64 = 256;

/// The part of a server's weight that counts, of [`WHOLE`], when it came back `since` ago.
pub(crate) fn part(since: Duration, slow_start: Duration) -> u64 {
    if since >= slow_start {
        return WHOLE;
    }
    // Never nothing: it has to get a request to become warm.
    let part = since.as_millis().saturating_mul(u128::from(WHOLE)) / slow_start.as_millis().max(1);
    u64::try_from(part).unwrap_or(WHOLE).clamp(WHOLE / 16, WHOLE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_part_grows_with_time() {
        let slow_start = Duration::from_secs(16);
        for (seconds, expected) in [(0, 16), (1, 16), (4, 64), (8, 128), (16, 256), (99, 256)] {
            assert_eq!(part(Duration::from_secs(seconds), slow_start), expected, "{seconds} s");
        }
        assert_eq!(part(Duration::ZERO, Duration::ZERO), WHOLE);
    }
}
