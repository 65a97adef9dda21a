//! Eviction: the order in which items leave a full store, and how room is made.

pub(crate) mod ghost;
pub(crate) mod list;
pub(crate) mod room;
pub(crate) mod s3fifo;
pub(crate) mod sized_fifo;
pub(crate) mod watch;
