//! When items expire: seconds in the store, and milliseconds on the server.

use kirin_store::{Expires, Now};

/// The TTL of an item that never expires: 200 years. A server that evicts only keys with a TTL
/// (`volatile-*`) can evict it like any other.
const FOR_EVER_MILLISECONDS: u64 = 200 * 365 * 24 * 60 * 60 * 1000;

/// Returns when an item expires that has this time left.
pub(crate) fn expiry(milliseconds: u64, now: Now) -> Expires {
    if milliseconds > FOR_EVER_MILLISECONDS / 2 {
        return Expires::NEVER;
    }
    // The next full second: an item lives as long as its writer has said.
    Expires::after_seconds(milliseconds.div_ceil(1000), now)
}

/// Returns the milliseconds until an expiry. An item that has expired already gets the shortest
/// time.
pub(crate) fn milliseconds_left(expires: Expires, now: Now) -> u64 {
    expires.seconds_left(now).map_or(FOR_EVER_MILLISECONDS, |seconds| (seconds * 1000).max(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_expiry_is_the_same_after_the_way_to_the_server() {
        let now = Now::from_unix_seconds(1_000_000);
        for expires in
            [Expires::NEVER, Expires::after_seconds(1, now), Expires::after_seconds(1 << 31, now)]
        {
            assert_eq!(expiry(milliseconds_left(expires, now), now), expires);
        }
        assert_eq!(milliseconds_left(Expires::PAST, now), 1);
        assert_eq!(expiry(1, now), Expires::after_seconds(1, now));
        assert_eq!(expiry(1_001, now), Expires::after_seconds(2, now));
    }
}
