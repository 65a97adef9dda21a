//! The file that keeps a store's items while the program is stopped. It is loaded at the start, and
//! written at the end and on command.
//!
//! `kirin serve`, `kirin memcached` and the `snapshot` command use it.

use std::fs::{self, FileType};
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kirin_store::{SnapshotError, SnapshotTime, Store, load_snapshot_file, save_snapshot_file};
use parking_lot::Mutex;

/// The snapshot file of one store.
#[derive(Debug)]
pub struct SnapshotFile {
    path: PathBuf,
    being_written: AtomicBool,
    /// Whether the file belongs to the store of this process.
    is_owner: Mutex<bool>,
}

/// The answer to a request for a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Saving {
    /// The snapshot is being written. The log will tell the result.
    Begun,
    /// The previous snapshot is still being written.
    Busy,
    /// No thread could be started.
    Failed,
    /// The contents of the store belong to another process, or this process does not have them yet.
    NotOwner,
}

/// The reason why a path cannot be a snapshot file.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotFileError {
    /// Opening it would wait, or saving would replace something that is not a file.
    #[error("snapshot {}: it is {kind}; name a regular file, which need not exist", path.display())]
    NotAFile {
        /// The file.
        path: PathBuf,
        /// The kind of the file.
        kind: &'static str,
    },
    /// The file cannot be examined. The cause is usually its directory.
    #[error("snapshot {}: {source}", path.display())]
    Unreachable {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl SnapshotFile {
    /// Creates the snapshot file for `path`, which need not exist. It is not written before
    /// [`SnapshotFile::load`] or [`SnapshotFile::own`] is called.
    pub fn new(path: PathBuf) -> Result<Self, SnapshotFileError> {
        match fs::metadata(&path) {
            Ok(metadata) if metadata.is_file() => {}
            Ok(metadata) => {
                let kind = kind(metadata.file_type());
                return Err(SnapshotFileError::NotAFile { path, kind });
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(SnapshotFileError::Unreachable { path, source: error }),
        }
        Ok(Self { path, being_written: AtomicBool::new(false), is_owner: Mutex::new(false) })
    }

    /// Loads the file into `store`, which owns the file from then on.
    ///
    /// A file that cannot be used is renamed, and the store stays empty, so that the program can
    /// start. If it cannot be renamed either, no snapshot is ever written.
    pub fn load(&self, store: &Store) {
        let path = &self.path;
        if !path.exists() {
            return self.own();
        }
        match load_snapshot_file(store, path, SnapshotTime::on_steady_clock()) {
            Ok(summary) => {
                tracing::info!(items = summary.items, path = %path.display(), "snapshot loaded");
                self.own();
            }
            Err(error) => match set_aside(path) {
                Ok(aside) => {
                    let (path, aside) = (path.display(), aside.display());
                    tracing::warn!(%error, %path, %aside, "snapshot not loaded, set aside");
                    self.own();
                }
                Err(reason) => tracing::error!(
                    %error,
                    %reason,
                    path = %path.display(),
                    "snapshot not loaded, and it cannot be renamed: no snapshot is written until it is moved away"
                ),
            },
        }
    }

    /// Notes that the file belongs to the store of this process from now on.
    pub fn own(&self) {
        *self.is_owner.lock() = true;
    }

    /// Notes that the file belongs to the store of another process from now on. A save in progress
    /// replaces nothing.
    pub fn disown(&self) {
        *self.is_owner.lock() = false;
    }

    /// Writes the items of `store` if it owns the file. The file is a complete snapshot at any
    /// time, the new one or the old one.
    pub fn save(&self, store: &Store) -> Result<(), SnapshotError> {
        if !*self.is_owner.lock() {
            return Ok(());
        }
        // The lock is held while the file is renamed, but not while it is written, which takes
        // long.
        let mut owner = None;
        let may_replace = || **owner.insert(self.is_owner.lock());
        let written =
            save_snapshot_file(store, &self.path, SnapshotTime::on_steady_clock(), may_replace)?;
        drop(owner);
        if let Some(summary) = written {
            tracing::info!(items = summary.items, path = %self.path.display(), "snapshot written");
        }
        Ok(())
    }

    /// Writes the items of `store` on a thread of its own.
    pub fn save_in_background(self: &Arc<Self>, store: &Arc<Store>) -> Saving {
        if !*self.is_owner.lock() {
            return Saving::NotOwner;
        }
        if self.being_written.swap(true, Ordering::AcqRel) {
            return Saving::Busy;
        }
        let (file, store) = (Arc::clone(self), Arc::clone(store));
        let spawned = std::thread::Builder::new().name("snapshot".into()).spawn(move || {
            let _done = Done(&file.being_written);
            if let Err(error) = file.save(&store) {
                tracing::error!(%error, "snapshot not written; the one before is kept");
            }
        });
        if spawned.is_err() {
            self.being_written.store(false, Ordering::Release);
            return Saving::Failed;
        }
        Saving::Begun
    }
}

/// Lets the next save begin, even after a panic.
struct Done<'a>(&'a AtomicBool);

impl Drop for Done<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

fn kind(of: FileType) -> &'static str {
    match of {
        _ if of.is_dir() => "a directory",
        _ if of.is_fifo() => "a FIFO",
        _ if of.is_socket() => "a socket",
        _ => "a device",
    }
}

/// Renames the file to `NAME.bad`, or `NAME.bad.2` and so on. Files that were set aside before are
/// kept.
fn set_aside(path: &Path) -> io::Result<PathBuf> {
    let bad = path.with_added_extension("bad");
    let numbered = (2..).map(|number: u32| bad.with_added_extension(number.to_string()));
    let aside = std::iter::once(bad.clone()).chain(numbered).find(|path| !path.exists());
    let aside = aside.unwrap_or(bad);
    fs::rename(path, &aside)?;
    Ok(aside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_store::{NewItem, StoreConfig};

    #[test]
    fn only_the_program_with_the_store_contents_writes_the_snapshot() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("snapshot");
        let store = Arc::new(Store::new(StoreConfig::default()));
        store.set(b"key", NewItem::new(b"value"), SnapshotTime::on_steady_clock().now);
        let file = Arc::new(SnapshotFile::new(path.clone()).expect("a file"));
        file.save(&store).expect("no error");
        assert_eq!(file.save_in_background(&store), Saving::NotOwner);
        assert!(!path.exists(), "it may be another program's");
        file.own();
        file.save(&store).expect("saved");
        let kept = fs::read(&path).expect("a snapshot");
        file.disown();
        store.delete(b"key", SnapshotTime::on_steady_clock().now);
        file.save(&store).expect("no error");
        assert_eq!(fs::read(&path).expect("a snapshot"), kept);
    }

    #[test]
    fn a_snapshot_that_cannot_be_loaded_is_never_overwritten() {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("snapshot");
        let store = Store::new(StoreConfig::default());
        for content in ["first", "second", "third"] {
            fs::write(&path, content).expect("a file");
            let file = SnapshotFile::new(path.clone()).expect("a file");
            file.load(&store);
            file.save(&store).expect("saved");
        }
        for (name, content) in [("bad", "first"), ("bad.2", "second"), ("bad.3", "third")] {
            let aside = fs::read(path.with_added_extension(name)).expect("set aside");
            assert_eq!(aside, content.as_bytes());
        }
    }

    #[test]
    fn a_path_that_is_not_a_file_is_refused() {
        let directory = tempfile::tempdir().expect("a directory");
        let socket = directory.path().join("socket");
        let _socket = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
        for (path, what) in [
            (directory.path(), "a directory"),
            (Path::new("/dev/null"), "a device"),
            (&socket, "a socket"),
        ] {
            let error = SnapshotFile::new(path.to_owned()).expect_err(what).to_string();
            assert!(error.contains(what) && error.contains("name a regular file"), "{error}");
        }
    }
}
