//! The event loops, and the sockets and logs that they serve on.

pub mod client_accounts;
mod entrance;
pub mod event_loop;
pub mod listeners;
pub mod logs;
pub mod memcached;
pub mod sockets;
pub mod stage;
