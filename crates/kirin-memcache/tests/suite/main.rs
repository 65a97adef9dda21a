//! The protocol over connections, with real clients, and beside memcached itself.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

mod clients;
mod connections;
mod conversation;
mod differential;
mod doubling;
mod handed_over;
mod lists_and_watchers;
mod peer;
mod split_input;
mod watch_like_memcached;
