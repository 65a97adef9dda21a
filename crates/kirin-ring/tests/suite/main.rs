//! The hand-over through the public interface of this crate.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod hostile;
mod model;
mod ring;
