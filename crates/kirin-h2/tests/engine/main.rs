//! The engine as a whole: bytes in, events and bytes out.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod budgets;
mod peer;
mod splits;
mod with_h2;
mod with_nghttp2;
