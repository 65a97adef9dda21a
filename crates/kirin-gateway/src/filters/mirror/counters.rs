//! Counters of the mirror of a route, and the memory that its copies take. All loops share them.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// The most memory that the copies of one route take, in bytes.
pub const MEMORY_LIMIT_BYTES: u64 = 8 << 20;

/// How a copy has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MirrorResult {
    /// The answers are equal.
    Equal,
    /// Their statuses differ.
    Status,
    /// The lengths of their bodies differ.
    Length,
    /// Their bodies differ.
    Body,
    /// Their bodies differ, and at least one is in a content coding.
    Coded,
    /// The mirror has not answered.
    Failed,
}

/// Why no copy of a chosen request was sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopySkip {
    /// Too many copies wait for their answers.
    Busy,
    /// The copies of the route take too much memory.
    Memory,
    /// The body of the request is too long, or the place has not read it to its end.
    RequestBody,
    /// The visitor got no complete answer.
    Cut,
    /// The place has answered 304, to which no answer without the conditions can be compared.
    NotModified,
}

/// The counters of one route.
#[derive(Debug, Default)]
pub struct MirrorCounters {
    results: [AtomicU64; MirrorResult::ALL.len()],
    skips: [AtomicU64; CopySkip::ALL.len()],
    in_flight: AtomicU64,
    held_bytes: AtomicU64,
}

/// Memory that a copy takes. Dropping this gives it back.
#[derive(Debug)]
pub struct HeldBytes {
    counters: Arc<MirrorCounters>,
    bytes: u64,
}

/// A copy that waits for its answer, until this is dropped.
#[derive(Debug)]
pub struct CountedCopy(Arc<MirrorCounters>);

impl MirrorResult {
    /// All results.
    pub const ALL: [Self; 6] =
        [Self::Equal, Self::Status, Self::Length, Self::Body, Self::Coded, Self::Failed];

    /// Returns the word in metrics and in the log.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::Status => "status",
            Self::Length => "length",
            Self::Body => "body",
            Self::Coded => "coded",
            Self::Failed => "failed",
        }
    }
}

impl CopySkip {
    /// All reasons.
    pub const ALL: [Self; 5] =
        [Self::Busy, Self::Memory, Self::RequestBody, Self::Cut, Self::NotModified];

    /// Returns the word in metrics.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Busy => "busy",
            Self::Memory => "memory",
            Self::RequestBody => "request_body",
            Self::Cut => "cut",
            Self::NotModified => "not_modified",
        }
    }
}

impl MirrorCounters {
    /// Counts a copy that has ended.
    pub fn count(&self, result: MirrorResult) {
        self.results[result as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Counts a copy that was not sent.
    pub fn skip(&self, why: CopySkip) {
        self.skips[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the results with their words.
    pub fn results(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |result: MirrorResult| self.results[result as usize].load(Ordering::Relaxed);
        MirrorResult::ALL.into_iter().map(move |result| (result.name(), count(result)))
    }

    /// Returns the copies that were not sent, with the words of the reasons.
    pub fn skips(&self) -> impl Iterator<Item = (&'static str, u64)> {
        let count = |why: CopySkip| self.skips[why as usize].load(Ordering::Relaxed);
        CopySkip::ALL.into_iter().map(move |why| (why.name(), count(why)))
    }

    /// Returns how many copies wait for their answers.
    pub fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// Returns how much memory the copies take, in bytes.
    pub fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    /// Takes memory for a copy. Returns `None` if the copies of the route take too much already.
    pub fn hold(self: &Arc<Self>, bytes: u64) -> Option<HeldBytes> {
        let held = self.held_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        let holding = HeldBytes { counters: Arc::clone(self), bytes };
        // A refused one is dropped, and so gives its bytes back.
        (held <= MEMORY_LIMIT_BYTES).then_some(holding)
    }

    /// Counts a copy that is sent now.
    pub fn begin(self: &Arc<Self>) -> CountedCopy {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        CountedCopy(Arc::clone(self))
    }
}

impl Drop for HeldBytes {
    fn drop(&mut self) {
        self.counters.held_bytes.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Drop for CountedCopy {
    fn drop(&mut self) {
        self.0.in_flight.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_take_memory_up_to_the_limit_and_give_it_back() {
        let counters = Arc::<MirrorCounters>::default();
        let half = counters.hold(MEMORY_LIMIT_BYTES / 2).unwrap();
        assert!(counters.hold(MEMORY_LIMIT_BYTES / 2 + 1).is_none());
        let rest = counters.hold(MEMORY_LIMIT_BYTES / 2).unwrap();
        assert_eq!(counters.held_bytes(), MEMORY_LIMIT_BYTES);
        assert!(counters.hold(1).is_none());
        drop((half, rest));
        assert_eq!(counters.held_bytes(), 0);
    }

    #[test]
    fn each_result_and_each_reason_has_its_count() {
        let counters = Arc::<MirrorCounters>::default();
        MirrorResult::ALL.into_iter().for_each(|result| counters.count(result));
        CopySkip::ALL.into_iter().for_each(|why| counters.skip(why));
        assert!(counters.results().chain(counters.skips()).all(|(_, count)| count == 1));
        let copy = counters.begin();
        assert_eq!(counters.in_flight(), 1);
        drop(copy);
        assert_eq!(counters.in_flight(), 0);
    }
}
