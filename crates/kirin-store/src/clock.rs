//! Time as the store sees it: whole seconds, given by the caller.
//!
//! Memcached's clock ticks once a second, and its expiry rules are written in those ticks; finer
//! time would answer differently. Both types are 32 bits wide because every item carries two of
//! them; that is good until February 2106.

/// A moment: whole seconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Now(u32);

impl Now {
    /// The moment `seconds` after the Unix epoch.
    pub const fn from_unix_seconds(seconds: u64) -> Now {
        if seconds > u32::MAX as u64 { Now(u32::MAX) } else { Now(seconds as u32) }
    }

    /// Seconds since the Unix epoch.
    pub const fn unix_seconds(self) -> u64 {
        self.0 as u64
    }

    /// The moment `seconds` later.
    pub const fn plus_seconds(self, seconds: u64) -> Now {
        Now::from_unix_seconds(self.unix_seconds().saturating_add(seconds))
    }

    /// Whole seconds from `earlier` to this moment; 0 when `earlier` is later.
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

/// When an item stops being served.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Expires(u32);

/// The longest exptime that memcached takes as relative: 30 days.
const RELATIVE_LIMIT_SECONDS: i64 = 60 * 60 * 24 * 30;

impl Expires {
    /// The item stays until it is deleted or evicted.
    pub const NEVER: Expires = Expires(0);

    /// In the past already: what a negative exptime means.
    pub const PAST: Expires = Expires(1);

    /// At `moment`. An item is gone when the clock reaches it.
    pub const fn at(moment: Now) -> Expires {
        // 0 is taken by NEVER; the first second of 1970 is as far in the past as the second one.
        if moment.0 == 0 { Expires::PAST } else { Expires(moment.0) }
    }

    /// `seconds` from `now`.
    pub const fn after_seconds(seconds: u64, now: Now) -> Expires {
        Expires::at(now.plus_seconds(seconds))
    }

    /// A memcached exptime: 0 is never, negative is past already, up to 30 days is relative, more
    /// is Unix time.
    pub const fn from_exptime(exptime: i64, now: Now) -> Expires {
        match exptime {
            0 => Expires::NEVER,
            i64::MIN..=-1 => Expires::PAST,
            1..=RELATIVE_LIMIT_SECONDS => Expires::after_seconds(exptime as u64, now),
            _ => Expires::at(Now::from_unix_seconds(exptime as u64)),
        }
    }

    /// Whether the time has come.
    pub const fn is_due(self, now: Now) -> bool {
        self.0 != 0 && self.0 <= now.0
    }

    /// Whether both times are set and this one comes first.
    pub(crate) const fn is_before(self, other: Expires) -> bool {
        self.0 != 0 && self.0 < other.0
    }

    /// The moment, or `None` for never.
    pub const fn time(self) -> Option<Now> {
        if self.0 == 0 { None } else { Some(Now(self.0)) }
    }

    /// Seconds left, or `None` for never (meta `t`).
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
    fn an_item_is_due_in_the_second_it_names() {
        let expires = Expires::after_seconds(10, NOW);
        assert!(!expires.is_due(NOW.plus_seconds(9)));
        assert!(expires.is_due(NOW.plus_seconds(10)));
        assert!(!Expires::NEVER.is_due(Now::from_unix_seconds(u64::MAX)));
        assert_eq!(expires.seconds_left(NOW.plus_seconds(4)), Some(6));
        assert_eq!(expires.seconds_left(NOW.plus_seconds(40)), Some(0));
    }
}
