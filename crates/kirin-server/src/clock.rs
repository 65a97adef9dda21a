//! The clocks of an event loop: steady seconds, in which deadlines and lifetimes are counted, and
//! the wall clock for the `Date` line. The line is formatted at most once a second.

use std::cell::{Cell, RefCell};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use kirin_clock::{Offset, monotonic_offset};
use rustix::time::{ClockId, clock_gettime};

/// Length of `Date: Sun, 06 Nov 1994 08:49:37 GMT CRLF`.
const DATE_LINE_BYTES: usize = 37;

/// Where the date begins in that line, and its length.
const DATE_AT: usize = 6;
const DATE_BYTES: usize = 29;

/// The clock of one event loop. Reading it reads the kernel's coarse clock, without a system call.
pub struct Clock {
    /// The last second of the steady clock (`kirin-clock`).
    second: Cell<u64>,
    /// The difference between the kernel's clock and the steady clock. Read again each second.
    offset: Cell<Offset>,
    /// The last second of the wall clock.
    wall_second: Cell<u64>,
    date_line: RefCell<[u8; DATE_LINE_BYTES]>,
}

impl Default for Clock {
    fn default() -> Self {
        let clock = Self {
            second: Cell::new(u64::MAX),
            offset: Cell::new(monotonic_offset()),
            wall_second: Cell::new(u64::MAX),
            date_line: RefCell::new([0; DATE_LINE_BYTES]),
        };
        clock.now();
        clock
    }
}

impl Clock {
    /// Returns whole seconds since the unix epoch. They continue evenly when the wall clock is set.
    pub fn now(&self) -> u64 {
        let time = clock_gettime(ClockId::MonotonicCoarse);
        let second = self.offset.get().steady_seconds(time.tv_sec, time.tv_nsec);
        if second == self.second.get() { second } else { self.tick() }
    }

    /// Returns the second of the last call of [`Clock::now`].
    pub fn last(&self) -> u64 {
        self.second.get()
    }

    /// Begins a new second.
    fn tick(&self) -> u64 {
        // The machine may have slept since the last second.
        self.offset.set(monotonic_offset());
        let time = clock_gettime(ClockId::MonotonicCoarse);
        let second = self.offset.get().steady_seconds(time.tv_sec, time.tv_nsec);
        self.second.set(second);
        let wall = u64::try_from(clock_gettime(ClockId::RealtimeCoarse).tv_sec).unwrap_or(0);
        if wall != self.wall_second.replace(wall) {
            self.format_date(wall);
        }
        second
    }

    /// Appends the `Date` line of the last call of [`Clock::now`].
    pub fn write_date_line(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.date_line.borrow()[..]);
    }

    /// Returns the value of that line.
    pub(crate) fn date(&self) -> [u8; DATE_BYTES] {
        let line = self.date_line.borrow();
        line.get(DATE_AT..).and_then(<[u8]>::first_chunk).copied().unwrap_or([b' '; DATE_BYTES])
    }

    /// Returns the wall clock's second at the last call of [`Clock::now`].
    pub fn time(&self) -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(self.wall_second.get())
    }

    fn format_date(&self, second: u64) {
        let time = UNIX_EPOCH + Duration::from_secs(second);
        let line = format!("Date: {}\r\n", httpdate::HttpDate::from(time));
        debug_assert_eq!(line.len(), DATE_LINE_BYTES);
        let mut date_line = self.date_line.borrow_mut();
        if line.len() == date_line.len() {
            date_line.copy_from_slice(line.as_bytes());
        }
    }
}
