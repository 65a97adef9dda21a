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
mod changes;
mod clock;
mod companion;
mod config;
mod counters;
mod error;
mod ghost;
mod invalidate;
mod item;
mod list;
mod log;
mod meta;
mod prefix;
mod record;
mod region;
mod s3fifo;
mod shard;
mod side;
mod size_class;
mod sized_fifo;
mod slab;
mod snapshot;
mod stats;
mod store;
mod sweep;
mod tag;
mod value;
mod write;

pub use changes::{Change, Moment};
pub use clock::{Expires, Now};
pub use config::{KEY_LIMIT_BYTES, StoreConfig, TAG_LIMIT_BYTES, TAGS_PER_ITEM};
pub use error::SnapshotError;
pub use invalidate::Invalidation;
pub use item::ItemRef;
pub use meta::{
    ArithmeticOutcome, ArithmeticRequest, Counted, DeleteOutcome, DeleteRequest, Direction,
    GetRequest, MetaHit, MetaOutcome,
};
pub use snapshot::{SnapshotSummary, SnapshotTime, load_snapshot_file, save_snapshot_file};
pub use stats::{ItemStats, StoreStats};
pub use store::Store;
pub use sweep::SweepReport;
pub use value::{FilledBuffer, Value, ValueBuffer};
pub use write::{NewItem, StoreMode, StoreOutcome, StoreRequest};
