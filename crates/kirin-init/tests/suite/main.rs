//! Projects of many kinds through the public interface of this crate.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod hostile;
mod perl;
mod php;
mod servers;
mod sites;
mod support;
mod written_file;
