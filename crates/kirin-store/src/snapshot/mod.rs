//! Snapshots: the items of the store in a file, for a warm start.

pub(crate) mod error;
pub(crate) mod file;
pub(crate) mod format;
pub(crate) mod time;
pub(crate) mod transfer;
