//! The kinds of events that a watcher can choose.

use std::ops::BitOr;

/// A set of kinds of events (`watch`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventKinds(u8);

impl EventKinds {
    /// Each lookup of a key (`fetchers`).
    pub const FETCHERS: EventKinds = EventKinds(1);
    /// Each storage command (`mutations`).
    pub const MUTATIONS: EventKinds = EventKinds(2);
    /// Each item that leaves to make room (`evictions`).
    pub const EVICTIONS: EventKinds = EventKinds(4);
    /// Connections that open and close (`connevents`).
    pub const CONNECTIONS: EventKinds = EventKinds(8);

    /// Returns whether the sets have a kind in common.
    pub fn overlaps(self, other: EventKinds) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns whether there is no kind.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the set as bits, of which the lowest four are used.
    pub(crate) fn bits(self) -> u8 {
        self.0
    }
}

impl BitOr for EventKinds {
    type Output = EventKinds;

    fn bitor(self, other: EventKinds) -> EventKinds {
        EventKinds(self.0 | other.0)
    }
}
