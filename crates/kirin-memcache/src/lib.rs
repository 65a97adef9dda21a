//! The memcached text and meta protocols over [`kirin_store`].
//!
//! A `get` goes through four files. `connection.rs` reads the bytes. `session.rs` takes one command
//! after another off them with [`codec`]. `execute/` calls the store and writes the answer into an
//! `output.rs`, which the connection sends. Only `connection.rs` and `serve.rs` do I/O.
//!
//! The program spawns [`serve`] on its event loops.
#![forbid(unsafe_code)]

pub mod codec;
mod connection;
mod counters;
mod execute;
mod output;
mod pause;
mod prefix_statistics;
mod serve;
mod server;
mod session;
mod snapshot_file;
mod text_key;
mod watch;

pub use counters::MemcachedCounters;
pub use execute::{Executed, Executor, Listing, VERSION};
pub use output::{OUTPUT_LIMIT_BYTES, OutputBuffer};
pub use serve::{MemcachedSocket, serve, serve_adopted};
pub use server::{Description, MemcachedServer, ServerOptions};
pub use session::{Flow, MemcachedSession, SessionEnding};
pub use snapshot_file::{Saving, SnapshotFile, SnapshotFileError};
pub use watch::Watcher;
