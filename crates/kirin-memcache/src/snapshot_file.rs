//! The file that keeps a store's items while it is stopped: loaded at the start, written at the end and on command.
//!
//! Used by both ways of starting a store, `kirin serve` and `kirin memcached`, and by the `snapshot` command.

use kirin_store::{Now, SnapshotError, Store, load_snapshot_file, save_snapshot_file};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A snapshot file of one store.
#[derive(Debug)]
pub struct SnapshotFile {
    path: PathBuf,
    being_written: AtomicBool,
}

/// What asking for a snapshot came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saving {
    /// It is being written; the log says how it ended.
    Begun,
    /// The one before is still being written.
    Busy,
    /// There is no thread to be had.
    Failed,
}

impl SnapshotFile {
    /// The file `path`, which need not exist.
    pub fn new(path: PathBuf) -> Self {
        Self { path, being_written: AtomicBool::new(false) }
    }

    /// Fills `store`. A file that cannot be used is set aside and the store stays empty: a cache has to start.
    pub fn load(&self, store: &Store) {
        let path = &self.path;
        if !path.exists() {
            return;
        }
        match load_snapshot_file(store, path, now()) {
            Ok(summary) => tracing::info!(items = summary.items, path = %path.display(), "snapshot loaded"),
            Err(error) => {
                tracing::warn!(%error, path = %path.display(), "snapshot not loaded, set aside");
                set_aside(path);
            }
        }
    }

    /// Writes the items of `store`; the file is at any time a whole snapshot, this one or the one before.
    pub fn save(&self, store: &Store) -> Result<(), SnapshotError> {
        let summary = save_snapshot_file(store, &self.path, now())?;
        tracing::info!(items = summary.items, path = %self.path.display(), "snapshot written");
        Ok(())
    }

    /// Writes the items of `store` on a thread of its own.
    pub fn save_in_background(self: &Arc<Self>, store: &Arc<Store>) -> Saving {
        if self.being_written.swap(true, Ordering::AcqRel) {
            return Saving::Busy;
        }
        let (file, store) = (Arc::clone(self), Arc::clone(store));
        let spawned = std::thread::Builder::new().name("snapshot".into()).spawn(move || {
            if let Err(error) = file.save(&store) {
                tracing::error!(%error, "snapshot not written; the one before is kept");
            }
            file.being_written.store(false, Ordering::Release);
        });
        if spawned.is_err() {
            self.being_written.store(false, Ordering::Release);
            return Saving::Failed;
        }
        Saving::Begun
    }
}

fn set_aside(path: &Path) {
    let mut aside = path.as_os_str().to_owned();
    aside.push(".bad");
    if let Err(error) = std::fs::rename(path, &aside) {
        tracing::warn!(%error, path = %path.display(), "and it cannot be renamed");
    }
}

fn now() -> Now {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or(Duration::ZERO);
    Now::from_unix_seconds(since.as_secs())
}
