//! Scripts through the public interface of this crate.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod allowance;
mod limits;
mod sandbox;
mod scripts;
mod support;
mod waiting;
