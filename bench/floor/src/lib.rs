//! What the load generators share: speaking to a memcached server, a crowd of HTTP clients (which
//! the end-to-end tests use too), latencies, traces of requests and the objects they are about, and
//! numbers that are random but the same in every run.
#![forbid(unsafe_code)]

pub mod address;
pub mod crowd;
pub mod latency;
pub mod objects;
pub mod random;
pub mod reply;
pub mod trace;
