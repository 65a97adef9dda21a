//! The removal of stored pages by key, prefix and tag.

pub mod command;
pub mod counters;
pub mod requests;
