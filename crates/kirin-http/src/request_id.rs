//! Request ids: numbers that tell requests apart in logs, workers and upstreams.

use std::cell::Cell;
use std::collections::hash_map::RandomState;
use std::fmt;
use std::hash::BuildHasher;

/// The id of a request, unique among those of all event loops. Its text has 32 hexadecimal digits,
/// so that it can be the id of a trace, too (W3C Trace Context section 3.2.2.3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestId(u128);

impl RequestId {
    /// Returns the id as a number.
    pub const fn number(self) -> u128 {
        self.0
    }

    /// Returns the id with this number.
    pub const fn from_number(number: u128) -> Self {
        Self(number)
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{:032x}", self.0)
    }
}

/// Makes the ids of one event loop.
pub struct RequestIds {
    /// A random number, the same in all ids of the loop.
    random: u64,
    /// A random number to which each request adds.
    count: Cell<u64>,
}

impl Default for RequestIds {
    fn default() -> Self {
        let keys = RandomState::new();
        Self { random: keys.hash_one(0_u8), count: Cell::new(keys.hash_one(1_u8)) }
    }
}

impl RequestIds {
    /// Returns the id of the next request.
    pub fn next_id(&self) -> RequestId {
        // An odd number, so that all 2^64 values come before one comes again.
        let count = self.count.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
        self.count.set(count);
        RequestId(u128::from(self.random) << 64 | u128::from(count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn ids_differ_within_a_loop_and_between_loops() {
        let (loops, mut seen) = ([RequestIds::default(), RequestIds::default()], HashSet::new());
        for number in 0..2000 {
            let id = loops[number % 2].next_id().to_string();
            assert_eq!(id.len(), 32, "{id}");
            assert!(seen.insert(id.clone()), "{id}");
        }
    }
}
