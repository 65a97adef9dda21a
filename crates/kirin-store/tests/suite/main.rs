//! The store through the public interface of this crate.

mod commands;
mod concurrency;
mod eviction;
mod model;
mod snapshot;
mod unchanged;
mod unchanged_model;
