//! Listening sockets: bound by this process, or inherited from the process that started it.

mod accepting;
pub mod datagrams;
pub mod inherited;
pub mod listener;
