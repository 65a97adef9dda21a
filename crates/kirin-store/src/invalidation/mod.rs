//! Invalidation of many items at once: by tag, by prefix, or of all items.

pub(crate) mod change_log;
pub(crate) mod changes;
pub(crate) mod invalidate;
pub(crate) mod lookup;
pub(crate) mod prefix;
pub(crate) mod state;
pub(crate) mod tag;
