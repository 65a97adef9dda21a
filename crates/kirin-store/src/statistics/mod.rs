//! Numbers that the store counts.

pub(crate) mod counters;
pub(crate) mod stats;
