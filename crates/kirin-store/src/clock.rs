//! Time in whole seconds, as the callers of the store give it.
//!
//! Memcached's clock ticks once a second, and its expiry rules count those ticks. A finer clock
//! would answer differently. Both types are 32 bits wide because every item carries two of them.
//! They last until February 2106.

/// A point in time: whole seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Now(u32);

impl Now {
    /// Returns the time `seconds` after the Unix epoch.
    pub const fn from_unix_seconds(seconds: u64) -> Now {
        if seconds > u32::MAX as u64 { Now(u32::MAX) } else { Now(seconds as u32) }
    }

    /// Returns the time on the steady clock. The store never calls this: its callers do, and hand
    /// it the time.
    pub fn on_steady_clock() -> Now {
        Now::from_unix_seconds(kirin_clock::steady_seconds())
    }

    /// Returns the time on the wall clock.
    pub fn on_wall_clock() -> Now {
        Now::from_unix_seconds(kirin_clock::wall_seconds())
    }

    /// Returns the seconds since the Unix epoch.
    pub const fn unix_seconds(self) -> u64 {
        self.0 as u64
    }

    /// Returns the time `seconds` later.
    pub const fn plus_seconds(self, seconds: u64) -> Now {
        Now::from_unix_seconds(self.unix_seconds().saturating_add(seconds))
    }

    /// Returns the whole seconds from `earlier` to this time, or 0 if `earlier` is later.
    pub const fn seconds_since(self, earlier: Now) -> u64 {
        self.unix_seconds().saturating_sub(earlier.unix_seconds())
    }

    pub(crate) const fn raw(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_raw(raw: u32) -> Now {
        Now(raw)
    }
}

/// The time at which an item expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expires(u32);

/// The longest exptime, in seconds, that memcached takes as relative: 30 days.
const RELATIVE_LIMIT_SECONDS: i64 = 60 * 60 * 24 * 30;

impl Expires {
    /// The item stays until it is deleted or evicted.
    pub const NEVER: Expires = Expires(0);

    /// The item has expired already. A negative exptime means this.
    pub const PAST: Expires = Expires(1);

    /// Returns the expiry at `moment`. The item expires when the clock reaches it.
    pub const fn at(moment: Now) -> Expires {
        // NEVER takes the value 0. Both 0 and 1 mean a second in 1970, so 1 can stand for both.
        if moment.0 == 0 { Expires::PAST } else { Expires(moment.0) }
    }

    /// Returns the expiry `seconds` after `now`.
    pub const fn after_seconds(seconds: u64, now: Now) -> Expires {
        Expires::at(now.plus_seconds(seconds))
    }

    /// Reads a memcached exptime. 0 means never, and a negative number means that the item has
    /// expired already. Up to 30 days the number is relative to `now`. Above that it is Unix time.
    pub const fn from_exptime(exptime: i64, now: Now) -> Expires {
        match exptime {
            0 => Expires::NEVER,
            i64::MIN..=-1 => Expires::PAST,
            1..=RELATIVE_LIMIT_SECONDS => Expires::after_seconds(exptime as u64, now),
            _ => Expires::at(Now::from_unix_seconds(exptime as u64)),
        }
    }

    /// Returns whether the item has expired.
    pub const fn is_due(self, now: Now) -> bool {
        self.0 != 0 && self.0 <= now.0
    }

    /// Returns whether both times are set and this one comes first.
    pub(crate) const fn is_before(self, other: Expires) -> bool {
        self.0 != 0 && self.0 < other.0
    }

    /// Returns the time of expiry, or `None` for never.
    pub const fn time(self) -> Option<Now> {
        if self.0 == 0 { None } else { Some(Now(self.0)) }
    }

    /// Returns the seconds left, or `None` for never (meta `t`).
    pub const fn seconds_left(self, now: Now) -> Option<u64> {
        match self.time() {
            Some(moment) => Some(moment.seconds_since(now)),
            None => None,
        }
    }

    pub(crate) const fn raw(self) -> u32 {
        self.0
    }

    pub(crate) const fn from_raw(raw: u32) -> Expires {
        Expires(raw)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Now = Now::from_unix_seconds(1_700_000_000);

    #[test]
    fn an_exptime_follows_memcacheds_rules() {
        let table = [
            (0, None),
            (-1, Some(1)),
            (i64::MIN, Some(1)),
            (1, Some(1_700_000_001)),
            (2_592_000, Some(1_702_592_000)),
            (2_592_001, Some(2_592_001)),
            (1_800_000_000, Some(1_800_000_000)),
            (i64::MAX, Some(u64::from(u32::MAX))),
        ];
        for (exptime, want) in table {
            let got = Expires::from_exptime(exptime, NOW).time().map(Now::unix_seconds);
            assert_eq!(got, want, "exptime {exptime}");
        }
    }

    #[test]
    fn an_item_expires_in_the_second_that_it_names() {
        let expires = Expires::after_seconds(10, NOW);
        assert!(!expires.is_due(NOW.plus_seconds(9)));
        assert!(expires.is_due(NOW.plus_seconds(10)));
        assert!(!Expires::NEVER.is_due(Now::from_unix_seconds(u64::MAX)));
        assert_eq!(expires.seconds_left(NOW.plus_seconds(4)), Some(6));
        assert_eq!(expires.seconds_left(NOW.plus_seconds(40)), Some(0));
    }
}
