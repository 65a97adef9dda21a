//! The commands that clients give to the store.

pub(crate) mod companion;
pub(crate) mod meta;
pub(crate) mod write;
