//! Invalidation of many items at once: by tag, by prefix, of all.

pub(crate) mod change_log;
pub(crate) mod changes;
pub(crate) mod invalidate;
pub(crate) mod lookup;
pub(crate) mod prefix;
pub(crate) mod state;
pub(crate) mod tag;
