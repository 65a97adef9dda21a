//! Code that the load generators share. It speaks to a memcached server, runs a crowd of HTTP
//! clients (also for the end-to-end tests), and records latencies. It makes traces of requests with
//! their objects, and random numbers that are the same in every run.
#![forbid(unsafe_code)]

pub mod address;
pub mod crowd;
pub mod latency;
pub mod objects;
pub mod random;
pub mod reply;
pub mod trace;
