//! Sites on one listener with TLS. What belongs to one of them must never reach another.

mod certificates;
mod hosts;
mod logs;
mod pages;
mod purging;
mod sessions;
mod shared_cache;
mod world;
