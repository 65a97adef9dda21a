#![forbid(unsafe_code)]
//! A Redis or Valkey server behind the store, which then is a near cache of it.
//!
//! Several machines have one such server, the *origin* of their stores. A hit is a hit of the local
//! store and never comes here. Three files are behind everything else: `reading.rs` asks for items
//! and keeps copies, `writing.rs` writes one, and `purging.rs` purges many with one write.
//!
//! # Why no copy is older than it may be
//!
//! - The server reports each change of a key that was read over a connection (`CLIENT TRACKING` of
//!   RESP3), and the report comes before any later reply. `origin.rs` drops the copy in the task
//!   that reads the connection, so no later reply is seen before that.
//! - A reply that crosses a report of its key is used once and not kept: the reader takes a
//!   [`Moment`](kirin_store::Moment) of the store before it asks.
//! - A connection that does not report any more is noticed by what is missing: the store forgets
//!   its copies a while after the last trip to the server that has succeeded (`keeper.rs`). A new
//!   connection begins without copies.
//!
//! # Why a purge reaches what is still being made
//!
//! Each purge draws a number from one counter on the server. Each item carries the number that its
//! writer knew when it began. The item is dead if all items, a prefix of its key or one of its tags
//! were purged under a greater number (`numbers.rs`). So a page that was begun before a purge is
//! dead wherever it is stored, and a purge of a tag is one write, whatever the number of its items.
//!
//! # In a cluster
//!
//! There is a connection to each master (`servers.rs`), and all end together (`cluster.rs`). No
//! script changes names of two slots, so writes and purges have parts (`cluster_writing.rs`,
//! `cluster_purging.rs`). The counter shows a purge only when all names have it. The reports of two
//! masters have no order, so a page or a change begins under a number that all have passed.
//!
//! # Why this client
//!
//! Of the crates `redis`, `fred` and `rustis` only `redis` hands over reports and replies in their
//! order, in one task, with the node that they come from, and never sends a command twice. That
//! holds for its `MultiplexedConnection` alone. Its connection manager, its cluster connection and
//! its own cache pass reports through further channels. `fred` drops the report of `FLUSHALL` and
//! sends commands again. So this crate makes its own connections, and uses `redis` for the
//! protocol.
//!
//! Redis before 6.2.14 writes reports inside replies, which no client can repair; it is refused.

mod absent_keys;
pub mod address;
mod cluster;
mod cluster_purging;
mod cluster_writing;
mod config;
mod connection;
mod counters;
mod counting;
pub mod encoding;
mod engine_clock;
mod engine_scripts;
mod error;
mod expiry;
mod keeper;
mod lease;
mod machines;
pub mod names;
mod near_store;
mod numbers;
mod origin;
mod page_begin;
mod page_writing;
mod purging;
mod random;
mod reading;
mod records;
mod replies;
mod scratch;
mod sentinel;
mod server_facts;
mod servers;
mod slots;
mod state;
mod turns;
mod watching;
mod writing;

pub use config::{
    DEFAULT_STALE_LIMIT, DEFAULT_TIMEOUT, OriginConfig, StaleLimitError, check_stale_limit,
};
pub use counters::OriginCounters;
pub use counting::BucketName;
pub use error::OriginError;
pub use lease::{Lease, LeaseAnswer};
pub use near_store::{Begun, Look, NearStore, NotLoaded};
pub use origin::StoreOrigin;
pub use page_begin::PageBegin;
pub use page_writing::NotStored;
pub use purging::{Purge, PurgeFound};
pub use random::{jitter, random_name};
pub use reading::{Loaded, LoadedItem};
pub use records::RECORD_LIMIT_BYTES;
pub use scratch::Scratch;
pub use server_facts::ServerFacts;
pub use state::OriginState;
pub use writing::{Condition, Content, Write, Written};

#[cfg(test)]
mod doubling_tests;
