//! Watchers: connections that are shown what other connections do (`watch`).
//!
//! Each watcher has a ring of lines of limited size. Event loops write into it, and the watcher's
//! connection sends from it. If the ring is full, lines are skipped and counted.

pub(crate) mod event;
mod observed;
mod ring;
mod watchers;

pub(crate) use observed::{ObservedBits, ObservedFlags};
pub(crate) use ring::RING_LIMIT_BYTES;
pub use watchers::Watcher;
pub(crate) use watchers::Watchers;
