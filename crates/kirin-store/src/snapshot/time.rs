//! Times in a snapshot: the wall clock in the file, the store's clock in memory.

use crate::clock::{Expires, Now};

/// The moment of writing or loading a snapshot, by the two clocks that it translates between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotTime {
    /// By the clock that the store's callers use. It may be one that nobody sets.
    pub now: Now,
    /// By the wall clock, which another program that reads the file has too.
    pub wall: Now,
}

impl From<Now> for SnapshotTime {
    /// For a store whose clock is the wall clock.
    fn from(now: Now) -> Self {
        Self { now, wall: now }
    }
}

impl SnapshotTime {
    pub(crate) fn wall_moment_of(self, moment: Now) -> Now {
        translate(moment, self.now, self.wall)
    }

    pub(crate) fn store_moment_of(self, moment: Now) -> Now {
        translate(moment, self.wall, self.now)
    }
}

/// `moment` of the clock that shows `from`, by the clock that shows `to`. The last moment of all
/// stands for all later ones and stays.
fn translate(moment: Now, from: Now, to: Now) -> Now {
    let last = u64::from(u32::MAX);
    match moment.unix_seconds() {
        seconds if seconds == last => moment,
        seconds => Now::from_unix_seconds(
            (seconds + to.unix_seconds()).saturating_sub(from.unix_seconds()),
        ),
    }
}

/// The same for the end of an item's life.
pub(crate) fn translate_expiry(expires: Expires, shift: impl Fn(Now) -> Now) -> Expires {
    expires.time().map_or(Expires::NEVER, |moment| Expires::at(shift(moment)))
}
