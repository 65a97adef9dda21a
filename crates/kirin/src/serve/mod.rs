//! The event loops, and the sockets and logs that they serve on.

mod entrance;
pub mod event_loop;
pub mod listeners;
pub mod logs;
pub mod memcached;
pub mod metrics;
pub mod sockets;
