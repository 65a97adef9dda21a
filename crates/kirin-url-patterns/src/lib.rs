#![forbid(unsafe_code)]
//! Patterns such as `/memo/{id}` for the paths of requests.
//!
//! [`UrlPatterns`] finds the patterns from the paths that it sees. Segments that are numbers,
//! hexadecimal strings, UUIDs or dates become `{id}` at once. Other segments stay as they are until
//! a directory has too many of them. Then those that are rare or have digits become `{name}`. The
//! operator may also give patterns ([`ConfiguredPattern`]), which have precedence.
//! [`pattern_at_first_sight`] is for callers without such a table.
//!
//! Strangers choose the paths. So the memory is bounded ([`PatternLimits`]), and the cost of a path
//! is linear in its length. This crate does no input or output.

mod configured;
mod first_sight;
mod nodes;
mod parameters;
mod pattern_part;
mod segment;
mod tree;
mod url_patterns;

#[cfg(test)]
mod bounds_tests;
#[cfg(test)]
mod doubling_tests;

pub use configured::{ConfiguredPattern, PatternError};
pub use first_sight::pattern_at_first_sight;
pub use tree::PatternLimits;
pub use url_patterns::{Merge, PatternId, UrlPatterns};
