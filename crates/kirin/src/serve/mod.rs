//! The event loops, and the sockets and logs that they serve on.

pub mod datagram_sockets;
mod entrance;
pub mod event_loop;
pub mod handed;
pub mod http_listeners;
pub mod listener_settings;
pub mod listeners;
pub mod logs;
pub mod loop_reload;
pub mod memcached;
pub mod metrics;
pub mod sockets;
