//! Snapshot files. A new one is written beside the old one and then renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::snapshot::error::SnapshotError;
use crate::snapshot::format::SnapshotSummary;
use crate::snapshot::time::SnapshotTime;
use crate::store::Store;

/// Writes a snapshot to `path`.
///
/// The snapshot is written to `path.tmp`, synced, and then renamed. So `path` is a complete
/// snapshot at any time, the new one or the old one. `may_replace` is called just before the
/// rename. If it returns false, the old file stays and the result is `None`.
///
/// The temporary file always has the same name, so a process that is killed leaves at most one. A
/// lock on it makes other writers of the same path wait, in this process and in others.
pub fn save_snapshot_file(
    store: &Store,
    path: &Path,
    time: impl Into<SnapshotTime>,
    may_replace: impl FnOnce() -> bool,
) -> Result<Option<SnapshotSummary>, SnapshotError> {
    let temporary = path.with_added_extension("tmp");
    let cannot = |action| {
        let path = temporary.clone();
        move |source| SnapshotError::File { path, action, source }
    };
    let file = open_locked(&temporary).map_err(cannot("create it"))?;
    let written = write_and_rename(store, path, &temporary, &file, time.into(), may_replace);
    if !matches!(written, Ok(Some(_))) {
        // The error that is returned tells more than a failed clean-up would.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Opens the temporary file for this process alone and empties it. Waits until no other process has
/// it.
fn open_locked(temporary: &Path) -> io::Result<File> {
    loop {
        // Other users must not read the file, because items can be sessions and pages of one
        // visitor. Opening must not wait for the reader of a FIFO, and must not follow a link.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let file = file.open(temporary)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        file.lock()?;
        // The process that had the lock before has renamed or removed the file.
        let is_same = |there: fs::Metadata| {
            file.metadata().is_ok_and(|ours| (ours.dev(), ours.ino()) == (there.dev(), there.ino()))
        };
        if fs::symlink_metadata(temporary).is_ok_and(is_same) {
            file.set_len(0)?;
            return Ok(file);
        }
    }
}

fn write_and_rename(
    store: &Store,
    path: &Path,
    temporary: &Path,
    file: &File,
    time: SnapshotTime,
    may_replace: impl FnOnce() -> bool,
) -> Result<Option<SnapshotSummary>, SnapshotError> {
    let cannot = |action| {
        move |source| SnapshotError::File { path: temporary.to_path_buf(), action, source }
    };
    let mut to = BufWriter::with_capacity(1 << 20, file);
    let summary = store.write_snapshot(&mut to, time)?;
    to.into_inner().map_err(|error| cannot("write it")(error.into_error()))?;
    file.sync_all().map_err(cannot("sync it"))?;
    if !may_replace() {
        return Ok(None);
    }
    fs::rename(temporary, path).map_err(cannot("rename it"))?;
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    File::open(directory)
        .and_then(|directory| directory.sync_all())
        .map_err(cannot("sync its directory"))?;
    Ok(Some(summary))
}

/// Loads the snapshot at `path`.
pub fn load_snapshot_file(
    store: &Store,
    path: &Path,
    time: impl Into<SnapshotTime>,
) -> Result<SnapshotSummary, SnapshotError> {
    let open = |source| SnapshotError::File { path: path.to_path_buf(), action: "open it", source };
    // Opening must not wait for the writer of a FIFO.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(open)?;
    let mut from = BufReader::with_capacity(1 << 20, file);
    store.read_snapshot(&mut from, time)
}
