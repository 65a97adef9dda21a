//! The budget of the store: how much memory it may take, and how much it takes.

use kirin_sync::atomic::{AtomicUsize, Ordering};

/// The bytes that the store may take, and the bytes that it takes.
#[derive(Debug)]
pub(crate) struct Budget {
    limit: AtomicUsize,
    used: AtomicUsize,
}

impl Budget {
    pub(crate) fn new(limit_bytes: usize) -> Budget {
        Budget { limit: AtomicUsize::new(limit_bytes), used: AtomicUsize::new(0) }
    }

    pub(crate) fn limit(&self) -> usize {
        self.limit.load(Ordering::Relaxed)
    }

    pub(crate) fn set_limit(&self, bytes: usize) {
        self.limit.store(bytes, Ordering::Relaxed);
    }

    pub(crate) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    /// Takes `bytes` if they are available. Returns whether it did.
    pub(crate) fn reserve(&self, bytes: usize) -> bool {
        let limit = self.limit();
        let take = |used: usize| used.checked_add(bytes).filter(|&used| used <= limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Notes that something that took `from` bytes takes `to` bytes now.
    pub(crate) fn change(&self, from: usize, to: usize) {
        if to > from {
            self.used.fetch_add(to - from, Ordering::Relaxed);
        } else if from > to {
            let used = self.used.fetch_sub(from - to, Ordering::Relaxed);
            debug_assert!(used >= from - to, "{used} bytes are taken, {from} become {to}");
        }
    }
}
