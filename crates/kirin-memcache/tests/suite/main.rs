//! The protocol over connections, with real clients, and beside memcached itself.

mod clients;
mod connections;
mod conversation;
mod differential;
mod doubling;
mod lists_and_watchers;
mod peer;
mod split_input;
mod watch_like_memcached;
