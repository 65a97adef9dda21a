//! What `kirin-memload` and `kirin-memtrace` share: speaking to a memcached server, and numbers that are
//! random but the same in every run.
#![forbid(unsafe_code)]

pub mod address;
pub mod random;
pub mod reply;
