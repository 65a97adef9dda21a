//! The words of the shared memory. The steps of the protocol are written against this trait, so
//! that loom can take them on words of its own.

#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// The words of the memory, and the futexes in it.
pub(crate) trait Words {
    /// Returns the word at a byte offset, which is a multiple of 8 within the memory.
    fn word(&self, offset: usize) -> &AtomicU64;

    /// Returns the futex at a byte offset: the low 32 bits of a word that is used for nothing else.
    fn futex(&self, offset: usize) -> &AtomicU32;

    /// Wakes one process that sleeps on a futex.
    fn wake(&self, offset: usize);

    /// Sleeps while the futex has `value`. May return early.
    fn wait(&self, offset: usize, value: u32);
}
