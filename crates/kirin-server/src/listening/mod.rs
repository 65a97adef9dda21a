//! Listening sockets: bound here, or inherited from the process that started this one.

pub mod inherited;
pub mod listener;
