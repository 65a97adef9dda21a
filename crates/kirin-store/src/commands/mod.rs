//! The commands of clients, as protocol.txt of memcached has them.

pub(crate) mod arithmetic;
pub(crate) mod companion;
pub(crate) mod copy;
pub(crate) mod delete;
pub(crate) mod get;
pub(crate) mod meta_get;
pub(crate) mod storage;
