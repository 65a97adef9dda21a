#![forbid(unsafe_code)]
//! For tests: shows that the cost of a parser is linear in its input. The program does not depend
//! on this crate.
//!
//! [`Table::check`] runs a parser over inputs of one shape and two sizes, and compares the
//! processor time of this thread. For eight times the input, a linear parser takes eight times as
//! long, and a quadratic one 64 times. The bound lies between these.
//!
//! Each time is the shortest of several runs, so that other work on the machine does not decide.
//! The tables of parsers are in `doubling_tests.rs` of each crate.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

use std::hint::black_box;

use rustix::time::{ClockId, clock_gettime};

/// How many times larger the second input is.
const TIMES: usize = 8;

/// How many times more the second input may cost. Sorting and caches add something to [`TIMES`].
/// The square of [`TIMES`] is 64.
const MOST: f64 = 24.0;

/// The shortest time of a measurement in nanoseconds. The work is repeated until it takes this
/// long, which is much longer than a step of the clock.
const LEAST_NANOSECONDS: u64 = 300_000;

/// The number of runs, of which the fastest counts. While the bound is exceeded, more runs are
/// made, up to the second number. That removes noise.
const RUNS: (usize, usize) = (3, 25);

/// The parsers that were checked and were too slow.
#[derive(Default)]
pub struct Table {
    too_slow: Vec<String>,
}

impl Table {
    /// Creates an empty table.
    pub fn new() -> Self {
        Self::default()
    }

    /// Checks `parse` with inputs that `shape` makes: one of the size `small`, and one of eight
    /// times that size.
    pub fn check<I, R>(
        &mut self,
        name: &str,
        small: usize,
        shape: impl Fn(usize) -> I,
        mut parse: impl FnMut(&I) -> R,
    ) {
        let inputs = (shape(small), shape(small * TIMES));
        let repeats = repeats(&mut parse, &inputs.0);
        let (mut less, mut more) = (u64::MAX, u64::MAX);
        for run in 0..RUNS.1 {
            less = less.min(nanoseconds(repeats, &mut parse, &inputs.0));
            more = more.min(nanoseconds(repeats, &mut parse, &inputs.1));
            if run + 1 >= RUNS.0 && ratio(more, less) < MOST {
                return;
            }
        }
        self.too_slow.push(format!(
            "{name}: {TIMES} times the input costs {:.0} times as much ({} ns instead of {} ns)",
            ratio(more, less),
            more / repeats,
            less / repeats
        ));
    }

    /// Ends the table.
    ///
    /// # Panics
    /// Panics if a parser was too slow, and names it.
    pub fn finish(self) {
        assert!(self.too_slow.is_empty(), "not linear:\n{}", self.too_slow.join("\n"));
    }
}

/// Returns how often the work must be repeated for a measurement that takes long enough.
fn repeats<I, R>(parse: &mut impl FnMut(&I) -> R, input: &I) -> u64 {
    let mut repeats = 1;
    while nanoseconds(repeats, parse, input) < LEAST_NANOSECONDS && repeats < 1 << 20 {
        repeats *= 2;
    }
    repeats
}

#[allow(clippy::cast_precision_loss)]
fn ratio(more: u64, less: u64) -> f64 {
    more as f64 / less.max(1) as f64
}

/// Returns the processor time of this thread for the work.
fn nanoseconds<I, R>(repeats: u64, parse: &mut impl FnMut(&I) -> R, input: &I) -> u64 {
    let start = now();
    for _ in 0..repeats {
        black_box(parse(black_box(input)));
    }
    now() - start
}

fn now() -> u64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    u64::try_from(time.tv_sec).unwrap_or(0) * 1_000_000_000
        + u64::try_from(time.tv_nsec).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_quadratic_cost_is_reported() {
        let letters = |count| vec![b'a'; count];
        let mut table = Table::new();
        table.check("sum", 1000, letters, |text| {
            text.iter().map(|byte| u64::from(*byte)).sum::<u64>()
        });
        table.check("sorting", 1000, letters, |text| {
            let mut sorted = text.clone();
            sorted.sort_unstable();
            sorted
        });
        assert!(table.too_slow.is_empty(), "{:?}", table.too_slow);
        table.check("pairs", 300, letters, |text| {
            text.iter().filter(|one| text.iter().any(|other| black_box(other) > one)).count()
        });
        assert!(
            table.too_slow.len() == 1 && table.too_slow[0].starts_with("pairs"),
            "{:?}",
            table.too_slow
        );
    }
}
