//! The crate against a real redis-server.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod certificates;
mod cluster;
mod counting;
mod engine;
mod machine;
mod machines;
mod near_copies;
mod origin_away;
mod pages;
mod records;
mod scripts;
mod sentinel;
