//! The time and memory that a call of a script may take, and how the limits are enforced.
//!
//! LuaJIT calls a hook after a number of instructions, but only in its interpreter, not in compiled
//! code. So the code of scripts counts itself (`counted_source.rs`), and looks at the clock from
//! time to time (`look.rs`). A call of a library function counts little there. So functions written
//! in Rust count their work with [`Allowance::spend`], and look at the clock, too. Lua's own
//! functions on long values look at it in `prelude.lua`.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

/// Units of work of a Rust function between two looks at the clock. A unit is a step of some
/// nanoseconds, such as one of the pattern matcher.
const UNITS_PER_CLOCK_CHECK: u32 = 4096;

/// Bytes that a function copies, compares or encodes for one unit.
const UNIT_BYTES: usize = 16;

/// Bytes that a function processes at once. They cost about as much as a look at the clock.
pub(crate) const SLICE_BYTES: usize = UNIT_BYTES * UNITS_PER_CLOCK_CHECK as usize;

/// Time to make a state and load a script.
pub(crate) const LOAD_TIME: Duration = Duration::from_secs(5);

/// The message of the error that ends a call whose time is up.
pub(crate) const TIME_IS_UP: &str = "the time limit is reached";

/// The limits of scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The longest running time of one call. Waiting does not count.
    pub time: Duration,
    /// Memory of a script's state on one event loop, in bytes. The limit also holds for a response.
    pub memory_bytes: usize,
    /// The largest request body, and the largest body of a subrequest's response, in bytes.
    pub body_bytes: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { time: Duration::from_millis(100), memory_bytes: 64 << 20, body_bytes: 1 << 20 }
    }
}

/// The time of the running call. A state's functions share it.
#[derive(Clone)]
pub(crate) struct Allowance(Rc<CallClock>);

struct CallClock {
    begun: Cell<Instant>,
    /// How long the call may run.
    time: Cell<Duration>,
    /// The processor time of the thread at the first look at the clock.
    first_look: Cell<Option<Duration>>,
    looked: Cell<Instant>,
    deadline: Cell<Instant>,
    is_up: Cell<bool>,
    /// Units of work until the next look at the clock.
    units: Cell<u32>,
    limit_bytes: usize,
}

impl Allowance {
    pub fn new(limits: &Limits) -> Self {
        let now = Instant::now();
        Self(Rc::new(CallClock {
            begun: Cell::new(now),
            time: Cell::new(LOAD_TIME),
            first_look: Cell::new(None),
            looked: Cell::new(now),
            deadline: Cell::new(now + LOAD_TIME),
            is_up: Cell::new(false),
            units: Cell::new(UNITS_PER_CLOCK_CHECK),
            limit_bytes: limits.memory_bytes,
        }))
    }

    /// Starts the time of a call, which ends after `time`.
    pub fn begin(&self, time: Duration) {
        let now = Instant::now();
        self.0.begun.set(now);
        self.0.time.set(time);
        self.0.first_look.set(None);
        self.0.looked.set(now);
        self.0.deadline.set(now + time);
        self.0.is_up.set(false);
    }

    /// Returns the remaining time.
    pub fn left(&self) -> Duration {
        self.0.deadline.get().saturating_duration_since(Instant::now())
    }

    /// Returns how long the call had run at its last look at the clock. A short call has not
    /// looked.
    pub fn ran(&self) -> Duration {
        self.0.looked.get().duration_since(self.0.begun.get())
    }

    /// Returns whether a look has found that the time is up.
    pub fn is_up(&self) -> bool {
        self.0.is_up.get()
    }

    /// Looks at the clock.
    pub fn check(&self) -> mlua::Result<()> {
        let now = Instant::now();
        self.0.looked.set(now);
        self.0.units.set(UNITS_PER_CLOCK_CHECK);
        let begun_at = self.first_look();
        if now >= self.0.deadline.get() && !self.0.is_up.get() {
            // On a busy machine the thread may not have run all the time.
            let ran = processor_time().saturating_sub(begun_at);
            let left = self.0.time.get().saturating_sub(ran);
            self.0.deadline.set(now + left);
            self.0.is_up.set(left.is_zero());
        }
        if self.0.is_up.get() {
            return Err(mlua::Error::runtime(TIME_IS_UP));
        }
        Ok(())
    }

    /// Returns the processor time of the thread at the first look at the clock. Short calls, which
    /// do not look, need not read it.
    fn first_look(&self) -> Duration {
        let first = self.0.first_look.get().unwrap_or_else(processor_time);
        self.0.first_look.set(Some(first));
        first
    }

    /// Counts a step, and looks at the clock from time to time.
    pub fn step(&self) -> mlua::Result<()> {
        self.spend(1).map(|_| ())
    }

    /// Counts work before it is done, and looks at the clock from time to time. Returns whether it
    /// has looked.
    pub fn spend(&self, units: u32) -> mlua::Result<bool> {
        match self.0.units.get().checked_sub(units) {
            Some(left) => {
                self.0.units.set(left);
                Ok(false)
            }
            None => self.check().map(|_| true),
        }
    }

    /// Counts bytes that are copied, compared or encoded at once.
    pub fn spend_bytes(&self, count: usize) -> mlua::Result<bool> {
        self.spend(u32::try_from(count / UNIT_BYTES).unwrap_or(u32::MAX))
    }

    /// Calls `work` for `bytes` slice by slice. Counts each slice before the call.
    pub fn slices<'a>(
        &self,
        bytes: &'a [u8],
        mut work: impl FnMut(&'a [u8]) -> mlua::Result<()>,
    ) -> mlua::Result<()> {
        bytes.chunks(SLICE_BYTES).try_for_each(|slice| {
            self.spend_bytes(slice.len())?;
            work(slice)
        })
    }

    /// Checks that memory outside of Lua is not larger than the limit.
    pub fn size(&self, bytes: usize) -> mlua::Result<()> {
        if bytes > self.0.limit_bytes {
            return Err(out_of_memory());
        }
        Ok(())
    }

    /// Returns the most memory that a state may have, in bytes.
    pub fn limit_bytes(&self) -> usize {
        self.0.limit_bytes
    }
}

/// Returns the processor time that this thread has used.
fn processor_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::try_from(time).unwrap_or_default()
}

/// Returns the error that Lua itself raises when memory runs out.
pub(crate) fn out_of_memory() -> mlua::Error {
    mlua::Error::MemoryError("not enough memory".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_in_which_the_thread_does_not_run_is_no_time_of_the_call() {
        let allowance = Allowance::new(&Limits::default());
        let time = Duration::from_millis(20);
        allowance.begin(time);
        allowance.check().expect("time is left");
        let begun = Instant::now();
        while begun.elapsed() < 2 * time {
            std::thread::sleep(time);
        }
        allowance.check().expect("the thread has slept");
        let begun = processor_time();
        while allowance.check().is_ok() {
            assert!(processor_time() - begun < 2 * time, "the time is up");
        }
        assert!(allowance.is_up());
        assert!(allowance.check().is_err(), "it stays up");
    }
}
