#![forbid(unsafe_code)]
//! The store: items in memory under one budget.
//!
//! This crate is behind Kirin's memcached listener (`kirin-memcache`) and behind the `store` place
//! of a route. It knows nothing of networks, threads or clocks. Every call that depends on time
//! takes a [`Now`], and snapshots go through `std::io::{Read, Write}`.
//!
//! A `get` goes through three files. [`Store::get`] in `commands/get.rs` chooses the shard.
//! `items/shard/mod.rs` finds the slot and marks it as used. `items/item.rs` is what the caller
//! gets.
//!
//! A `set` goes through three files, too: `commands/storage.rs`, then `eviction/room.rs` (room is
//! made before the item goes in), then `items/shard/mod.rs`.
//!
//! The terms are those of memcached (`doc/protocol.txt`). An item has a key, a value, client flags,
//! an expiry time and a *CAS unique*, which changes whenever the item changes.

mod budget;
mod clock;
mod commands;
mod config;
mod eviction;
mod hand_over;
mod inspect;
mod invalidation;
mod items;
#[cfg(feature = "loom")]
#[cfg(test)]
mod loom_tests;
mod memory;
mod namespace;
mod snapshot;
mod statistics;
mod store;
mod sweep;

pub use clock::{Expires, Now};
pub use commands::arithmetic::{ArithmeticOutcome, ArithmeticRequest, Counted, Direction};
pub use commands::copy::CopiedItem;
pub use commands::delete::{DeleteOutcome, DeleteRequest};
pub use commands::meta_get::{GetRequest, MetaHit, MetaOutcome};
pub use commands::storage::{NewItem, StoreMode, StoreOutcome, StoreRequest};
pub use config::{KEY_LIMIT_BYTES, StoreConfig, TAG_LIMIT_BYTES, TAGS_PER_ITEM};
pub use eviction::watch::{Eviction, EvictionObserver};
pub use hand_over::following::{Follower, HandOverStep};
pub use hand_over::giving::{HandOver, HandOverError};
pub use inspect::{KeyState, ScanCursor, ScannedItem};
pub use invalidation::change_log::{Change, Moment};
pub use invalidation::state::Invalidation;
pub use items::item::ItemRef;
pub use items::value::{FilledBuffer, NewValue, ValueBuffer};
pub use namespace::{Namespace, NamespaceNames};
pub use snapshot::error::SnapshotError;
pub use snapshot::file::{load_snapshot_file, save_snapshot_file};
pub use snapshot::format::SnapshotSummary;
pub use snapshot::time::SnapshotTime;
pub use statistics::counters::StoreStats;
pub use statistics::stats::ItemStats;
pub use store::Store;
pub use sweep::SweepReport;
