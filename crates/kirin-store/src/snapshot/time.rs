//! Times in a snapshot: the wall clock in the file, the store's clock in memory.

use crate::clock::{Expires, Now};

/// The time of writing or loading a snapshot, on the two clocks that it translates between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotTime {
    /// The time on the clock that the callers of the store use. It may be a clock that is never
    /// set.
    pub now: Now,
    /// The time on the wall clock, which a program that reads the file has, too.
    pub wall: Now,
}

impl From<Now> for SnapshotTime {
    /// Converts the time of a store whose clock is the wall clock.
    fn from(now: Now) -> Self {
        Self { now, wall: now }
    }
}

impl SnapshotTime {
    /// Returns the time of a store whose callers use the steady clock, as Kirin's do.
    pub fn on_steady_clock() -> Self {
        Self { now: Now::on_steady_clock(), wall: Now::on_wall_clock() }
    }

    pub(crate) fn wall_moment_of(self, moment: Now) -> Now {
        translate(moment, self.now, self.wall)
    }

    pub(crate) fn store_moment_of(self, moment: Now) -> Now {
        translate(moment, self.wall, self.now)
    }
}

/// Translates `moment` from the clock that shows `from` to the clock that shows `to`. The last
/// possible time stands for all later ones and stays the same.
fn translate(moment: Now, from: Now, to: Now) -> Now {
    let last = u64::from(u32::MAX);
    match moment.unix_seconds() {
        seconds if seconds == last => moment,
        seconds => Now::from_unix_seconds(
            (seconds + to.unix_seconds()).saturating_sub(from.unix_seconds()),
        ),
    }
}

/// Translates an expiry in the same way.
pub(crate) fn translate_expiry(expires: Expires, shift: impl Fn(Now) -> Now) -> Expires {
    expires.time().map_or(Expires::NEVER, |moment| Expires::at(shift(moment)))
}
