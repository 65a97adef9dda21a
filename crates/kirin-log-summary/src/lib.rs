#![forbid(unsafe_code)]
//! Sums up access logs by method and URL pattern, for `kirin log sum`.
//!
//! [`line`] parses a line of a log in one of several formats. [`input`] reads lines from plain or
//! compressed files. [`summary`] adds up what the lines say, in bounded memory. [`report`] writes
//! the tables. Access logs have what strangers send, so no line may make this slow or large.

pub mod filter;
pub mod histogram;
pub mod input;
pub mod line;
pub mod report;
pub mod summary;
mod tally;

#[cfg(test)]
mod doubling_tests;

pub use tally::Tally;
