//! A counter of one event loop.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A counter that one thread writes and any thread reads.
///
/// Adding is a load and a store and not one atomic instruction, which costs more: only the loop
/// itself writes.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds one.
    pub fn add(&self) {
        self.add_many(1);
    }

    /// Adds `number`.
    pub fn add_many(&self, number: u64) {
        self.set(self.get().wrapping_add(number));
    }

    /// Replaces the number, for what goes up and down.
    pub fn set(&self, number: u64) {
        self.0.store(number, Relaxed);
    }

    /// Returns the number.
    pub fn get(&self) -> u64 {
        self.0.load(Relaxed)
    }
}
