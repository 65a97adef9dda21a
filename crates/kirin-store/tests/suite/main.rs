//! The store through the public interface of this crate.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod commands;
mod concurrency;
mod eviction;
mod model;
mod snapshot;
mod unchanged;
mod unchanged_model;
