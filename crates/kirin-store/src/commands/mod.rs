//! The commands that clients give to the store.

pub(crate) mod arithmetic;
pub(crate) mod companion;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod meta_get;
pub(crate) mod storage;
