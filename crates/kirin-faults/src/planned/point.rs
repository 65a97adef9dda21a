//! A named point, with the numbers of its calls and faults.

use std::fmt::{self, Display};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use crate::Errno;
use crate::planned::plan::{Draw, PointPlan};
use crate::planned::run::Run;

/// The longest wait, in milliseconds.
const MOST_WAIT: u64 = 20;

/// By how many seconds a clock is wrong at most.
const MOST_SKEW: u64 = 7200;

/// A point at which the plan can make an operation fail.
#[derive(Debug)]
pub struct Point {
    name: &'static str,
    errors: &'static [Errno],
    plan: OnceLock<PointPlan>,
    calls: AtomicU64,
    faults: AtomicU64,
}

impl Point {
    /// Returns a point. `name` says what is done to what, such as `file.open`; no other point has
    /// it. `errors` are those that the operation can really fail with.
    pub const fn new(name: &'static str, errors: &'static [Errno]) -> Self {
        Self {
            name,
            errors,
            plan: OnceLock::new(),
            calls: AtomicU64::new(0),
            faults: AtomicU64::new(0),
        }
    }

    /// Fails, or waits with the thread, or continues. An event loop that waits serves nobody, as
    /// if it had lost its core for this time.
    pub fn pass(&'static self) -> io::Result<()> {
        let Some((run, call, draw)) = self.draw() else { return Ok(()) };
        let (choice, draw) = draw.below(3);
        match self.error(draw) {
            Some(error) if choice > 0 => Err(self.fail(run, call, error)),
            _ => {
                let time = wait_of(draw);
                run.say(self.name, call, &format_args!("waits {} ms", time.as_millis()));
                std::thread::sleep(time);
                Ok(())
            }
        }
    }

    /// Fails, or lets the task wait, or continues.
    pub fn poll(&'static self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Some((run, call, draw)) = self.draw() else { return Poll::Ready(Ok(())) };
        let (choice, draw) = draw.below(2);
        match self.error(draw) {
            Some(error) if choice > 0 => Poll::Ready(Err(self.fail(run, call, error))),
            _ => {
                let time = wait_of(draw);
                run.say(self.name, call, &format_args!("is not ready for {} ms", time.as_millis()));
                run.wake_after(time, context.waker().clone());
                Poll::Pending
            }
        }
    }

    /// Returns how many of `length` bytes the operation moves: all, or fewer, but at least one.
    pub fn shorten(&'static self, length: usize) -> usize {
        if length < 2 {
            return length;
        }
        let Some((run, call, draw)) = self.draw() else { return length };
        // Most mistakes are at the ends.
        let (choice, draw) = draw.below(3);
        let shorter = match choice {
            0 => 1,
            1 => length - 1,
            _ => 1 + draw.below(length as u64 - 1).0 as usize,
        };
        run.say(self.name, call, &format_args!("moves {shorter} of {length}"));
        shorter
    }

    /// Returns whether something is refused.
    pub fn refuses(&'static self) -> bool {
        let Some((run, call, _)) = self.draw() else { return false };
        run.say(self.name, call, &"refuses");
        true
    }

    /// Returns by how many seconds a clock is ahead, or behind if negative.
    pub fn skew(&'static self) -> i64 {
        let Some((run, call, draw)) = self.draw() else { return 0 };
        let seconds = draw.below(2 * MOST_SKEW + 1).0.cast_signed() - MOST_SKEW.cast_signed();
        run.say(self.name, call, &format_args!("is wrong by {seconds} s"));
        seconds
    }

    /// Counts a call. Returns its number, and the fault that it has.
    fn draw(&'static self) -> Option<(&'static Run, u64, Draw)> {
        let run = Run::of_process()?;
        if !run.is_on() {
            return None;
        }
        let plan = self.plan.get_or_init(|| {
            run.add(self);
            PointPlan::new(run.seed(), self.name)
        });
        let call = self.calls.fetch_add(1, Relaxed);
        let draw = plan.draw(call)?;
        self.faults.fetch_add(1, Relaxed);
        Some((run, call, draw))
    }

    /// Returns one of the errors.
    fn error(&self, draw: Draw) -> Option<Errno> {
        let count = u64::try_from(self.errors.len()).ok().filter(|count| *count > 0)?;
        self.errors.get(draw.below(count).0 as usize).copied()
    }

    fn fail(&self, run: &Run, call: u64, error: Errno) -> io::Error {
        let error = io::Error::from(error);
        run.say(self.name, call, &format_args!("fails: {error}"));
        error
    }
}

/// The name, the calls and the faults.
impl Display for Point {
    fn fmt(&self, output: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (calls, faults) = (self.calls.load(Relaxed), self.faults.load(Relaxed));
        write!(output, "{} {calls} {faults}", self.name)
    }
}

/// Returns how long a wait lasts.
fn wait_of(draw: Draw) -> Duration {
    Duration::from_millis(1 + draw.below(MOST_WAIT).0)
}
