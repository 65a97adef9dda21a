#![forbid(unsafe_code)]
//! The store: items in memory under one budget.
//!
//! This is the engine behind Kirin's memcached listener (`kirin-memcache`) and behind the `store`
//! place of a route. It knows nothing of networks, threads or clocks: every call that depends on
//! time takes a [`Now`], and snapshots go through `std::io::{Read, Write}`.
//!
//! A reader can follow a `get` through three files: [`Store::get`] in `store.rs` picks the shard,
//! `shard.rs` finds the slot and marks it visited, `item.rs` is what the caller gets. A `set` goes
//! from `write.rs` through `budget.rs` (room is made before the item goes in) to `shard.rs`.
//!
//! The words are memcached's (`doc/protocol.txt` of memcached): an item has a key, a value, client
//! flags, an expiry time and a *CAS unique*, which changes each time the item changes.

mod budget;
mod clock;
mod commands;
mod config;
mod eviction;
mod invalidation;
mod items;
mod memory;
mod snapshot;
mod statistics;
mod store;
mod sweep;

pub use clock::{Expires, Now};
pub use commands::arithmetic::{ArithmeticOutcome, ArithmeticRequest, Counted, Direction};
pub use commands::delete::{DeleteOutcome, DeleteRequest};
pub use commands::meta_get::{GetRequest, MetaHit, MetaOutcome};
pub use commands::storage::{NewItem, StoreMode, StoreOutcome, StoreRequest};
pub use config::{KEY_LIMIT_BYTES, StoreConfig, TAG_LIMIT_BYTES, TAGS_PER_ITEM};
pub use invalidation::change_log::{Change, Moment};
pub use invalidation::state::Invalidation;
pub use items::item::ItemRef;
pub use items::value::{FilledBuffer, Value, ValueBuffer};
pub use snapshot::error::SnapshotError;
pub use snapshot::file::{load_snapshot_file, save_snapshot_file};
pub use snapshot::format::SnapshotSummary;
pub use snapshot::time::SnapshotTime;
pub use statistics::counters::StoreStats;
pub use statistics::stats::ItemStats;
pub use store::Store;
pub use sweep::SweepReport;
