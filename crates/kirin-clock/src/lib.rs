#![forbid(unsafe_code)]
//! The steady clock: Unix seconds that continue evenly when the wall clock is set.
//!
//! Times to live, ages and deadlines are durations. If an administrator or NTP sets the wall clock,
//! that must not shorten or prolong them. So the process reads the wall clock once, and continues
//! from there with `CLOCK_BOOTTIME`, which also counts while the machine sleeps. Memcached does the
//! same.
//!
//! Times that leave the process follow the wall clock: `Date`, logs and snapshots.

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kirin_faults::Point;
use rustix::time::{ClockId, clock_gettime};

static WALL: Point = Point::new("clock.wall", &[]);

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The offset of the steady clock from another clock: the time to add to that of the other clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offset {
    seconds: i64,
    /// The nanoseconds, from 0 to 999,999,999.
    nanos: i64,
}

impl Offset {
    /// Returns the offset between two clocks that show `steady` and `other` at the same time.
    pub fn between(steady: Duration, other: Duration) -> Self {
        let seconds = steady.as_secs().cast_signed() - other.as_secs().cast_signed();
        let nanos = i64::from(steady.subsec_nanos()) - i64::from(other.subsec_nanos());
        Self {
            seconds: seconds + nanos.div_euclid(NANOS_PER_SECOND),
            nanos: nanos.rem_euclid(NANOS_PER_SECOND),
        }
    }

    /// Returns the whole seconds of the steady clock at this time of the other clock.
    pub fn steady_seconds(self, other_seconds: i64, other_nanos: i64) -> u64 {
        let carry = i64::from(self.nanos + other_nanos >= NANOS_PER_SECOND);
        u64::try_from(self.seconds + other_seconds + carry).unwrap_or(0)
    }
}

/// Returns the offset from `CLOCK_BOOTTIME` to the steady clock. The first caller reads the wall
/// clock.
fn boot_offset() -> Offset {
    static OFFSET: OnceLock<Offset> = OnceLock::new();
    *OFFSET.get_or_init(|| Offset::between(wall(), read(ClockId::Boottime)))
}

/// Returns by how many nanoseconds the steady clock of this process is ahead of `CLOCK_BOOTTIME`,
/// which is the same in all processes.
pub fn nanos_ahead_of_boot() -> i64 {
    let Offset { seconds, nanos } = boot_offset();
    seconds.saturating_mul(NANOS_PER_SECOND).saturating_add(nanos)
}

/// Returns the whole seconds of the steady clock. It is the same in all threads.
pub fn steady_seconds() -> u64 {
    let boot = clock_gettime(ClockId::Boottime);
    boot_offset().steady_seconds(boot.tv_sec, boot.tv_nsec)
}

/// Returns the whole seconds of the wall clock since the Unix epoch.
pub fn wall_seconds() -> u64 {
    wall().as_secs()
}

/// Returns the wall clock's time since the Unix epoch.
pub fn wall() -> Duration {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let seconds = now.as_secs().saturating_add_signed(WALL.skew());
    Duration::new(seconds, now.subsec_nanos())
}

fn read(clock: ClockId) -> Duration {
    let time = clock_gettime(clock);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Returns the offset from `CLOCK_MONOTONIC` to the steady clock at this moment. It changes only
/// when the machine sleeps. So a loop may keep it for a second and read a cheaper clock meanwhile.
pub fn monotonic_offset() -> Offset {
    let (boot, monotonic) = (read(ClockId::Boottime), read(ClockId::Monotonic));
    let steady = Offset::between(boot, monotonic);
    let boot_offset = boot_offset();
    let nanos = steady.nanos + boot_offset.nanos;
    Offset {
        seconds: steady.seconds + boot_offset.seconds + nanos / NANOS_PER_SECOND,
        nanos: nanos % NANOS_PER_SECOND,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_steady_clock_starts_at_the_wall_clock_and_continues_evenly() {
        let start =
            Offset::between(Duration::new(1_700_000_000, 900_000_000), Duration::new(50, 100));
        // Setting the wall clock has no effect any more.
        assert_eq!(start.steady_seconds(50, 100), 1_700_000_000);
        assert_eq!(start.steady_seconds(50, 100_000_099), 1_700_000_000);
        assert_eq!(start.steady_seconds(50, 100_000_100), 1_700_000_001);
        assert_eq!(start.steady_seconds(3650, 0), 1_700_003_600);
        let borrowed = Offset::between(Duration::new(100, 100), Duration::new(50, 900_000_000));
        assert_eq!(borrowed.steady_seconds(50, 900_000_000), 100);
        assert_eq!(borrowed.steady_seconds(51, 899_999_899), 100);
    }

    #[test]
    fn all_ways_to_read_the_steady_clock_agree() {
        let monotonic = clock_gettime(ClockId::Monotonic);
        let cheap = monotonic_offset().steady_seconds(monotonic.tv_sec, monotonic.tv_nsec);
        assert!(steady_seconds().abs_diff(cheap) <= 1, "{cheap} {}", steady_seconds());
        assert!(steady_seconds().abs_diff(wall_seconds()) <= 1);
    }
}
