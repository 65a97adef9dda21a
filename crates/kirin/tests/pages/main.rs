//! What is answered from memory: store, cache, includes, scripts, sessions.
//!
//! Each module is a topic. All start the built program and talk to it as its clients do.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod cache;
mod cache_conformance;
mod cache_poisoning;
mod cache_streaming;
mod compression;
mod esi;
mod include_targets;
mod lua;
mod lua_limits;
mod lua_subrequests;
mod memo_private;
mod memo_sessions;
mod purge;
mod push;
mod sessions;
mod ssi;
mod ssi_like_nginx;
mod ssi_routes;
mod store_life;
mod store_pages;
