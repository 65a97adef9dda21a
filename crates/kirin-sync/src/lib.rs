#![forbid(unsafe_code)]
//! The locks and atomics of code whose threads are tested in all their orders.
//!
//! They are those of `parking_lot` and of the standard library. With the feature `loom` they are
//! those of the crate `loom`, which runs a test once for each order of the steps of its threads, as
//! the memory model of C11 allows them. Then they work within `model::check` only, so a crate runs
//! only its modules `loom_tests` with this feature:
//!
//! `cargo test -p kirin-store --features loom --lib loom_tests`
//!
//! A step is an operation of a lock or an atomic of this crate. Code that uses others, such as a
//! channel of tokio, runs from one step to the next without an interruption.

#[cfg(feature = "loom")]
pub mod atomic;
#[cfg(feature = "loom")]
mod locks;
#[cfg(feature = "loom")]
pub mod model;

#[cfg(not(feature = "loom"))]
pub use std::sync::atomic;

#[cfg(feature = "loom")]
pub use locks::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
#[cfg(not(feature = "loom"))]
pub use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
