//! A profile of an application: where its requests spend their time.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use crate::stacks::StackError;

/// The longest profile.
pub const MAX_PROFILE_TIME: Duration = Duration::from_secs(600);

/// The most ticks of a profile in a second.
pub const MAX_PROFILE_HZ: u32 = 1000;

/// The most different stacks of a profile, and their bytes. Further ones are counted together.
const MAX_STACKS: usize = 20_000;
const MAX_STACK_BYTES: usize = 8 << 20;

/// The stack under which those beyond the limits are counted.
const OTHER_STACKS: &str = "(other stacks)";

/// How long and how often the stacks are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProfileOptions {
    /// How long, up to [`MAX_PROFILE_TIME`].
    pub time: Duration,
    /// How often in a second, from 1 to [`MAX_PROFILE_HZ`].
    pub hz: u32,
}

/// Where the requests of an application spent their time.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Profile {
    /// How many times all stacks were read. If the machine is busy, there are fewer than asked for.
    pub ticks: u64,
    /// How many stacks of requests were read.
    pub samples: u64,
    /// How many stacks of requests could not be read.
    pub missed: u64,
    /// How many workers had a request.
    pub workers: usize,
    /// The stacks with their numbers of samples, the most frequent first. The calls are separated
    /// by `;`, the outermost first.
    pub stacks: Vec<(String, u64)>,
}

/// Why there is no profile.
#[derive(Clone, Debug, thiserror::Error)]
pub enum ProfileError {
    /// Another profile of the application is running.
    #[error("app `{app}` is being profiled already, for {seconds_left} more seconds")]
    Running {
        /// The application's name.
        app: String,
        /// How long the other profile takes.
        seconds_left: u64,
    },
    /// No stack of a worker can be read.
    #[error("app `{app}`: the stack of worker {pid} cannot be read: {reason}")]
    Unreadable {
        /// The application's name.
        app: String,
        /// The process id of the worker.
        pid: u32,
        /// Why not.
        reason: StackError,
    },
}

/// What others may know of a profile that is being made.
#[derive(Clone, Copy)]
pub(crate) struct RunningProfile {
    /// When it ends.
    pub(crate) until: Instant,
    /// How many samples it has.
    pub(crate) samples: u64,
}

/// The numbers of samples by stack, in bounded memory.
#[derive(Default)]
pub(crate) struct StackCounts {
    counts: HashMap<String, u64>,
    bytes: usize,
}

impl StackCounts {
    /// Counts one sample.
    pub(crate) fn count(&mut self, stack: String) {
        if let Some(count) = self.counts.get_mut(&stack) {
            *count += 1;
            return;
        }
        self.bytes += stack.len();
        let has_room = self.counts.len() < MAX_STACKS && self.bytes <= MAX_STACK_BYTES;
        let stack = if has_room { stack } else { OTHER_STACKS.to_owned() };
        *self.counts.entry(stack).or_default() += 1;
    }

    /// Returns the stacks, the most frequent first.
    pub(crate) fn sorted(self) -> Vec<(String, u64)> {
        let mut stacks: Vec<_> = self.counts.into_iter().collect();
        stacks.sort_unstable_by(|(a, of_a), (b, of_b)| of_b.cmp(of_a).then_with(|| a.cmp(b)));
        stacks
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_frequent_stack_comes_first() {
        let mut stacks = StackCounts::default();
        for stack in ["a;b", "a", "a;b", "c", "a;b", "c"] {
            stacks.count(stack.into());
        }
        assert_eq!(stacks.sorted(), [("a;b".into(), 3), ("c".into(), 2), ("a".into(), 1)]);
    }

    #[test]
    fn stacks_beyond_the_limits_are_counted_together() {
        let mut stacks = StackCounts::default();
        for number in 0..MAX_STACKS + 5 {
            stacks.count(number.to_string());
        }
        stacks.count("7".into());
        let sorted = stacks.sorted();
        assert_eq!(sorted[0], (OTHER_STACKS.into(), 5));
        assert_eq!(sorted[1], ("7".into(), 2));

        let mut stacks = StackCounts::default();
        for letter in ["a", "b", "c"] {
            stacks.count(letter.repeat(MAX_STACK_BYTES / 2));
        }
        assert!(stacks.sorted().contains(&(OTHER_STACKS.to_owned(), 1)));
    }
}
