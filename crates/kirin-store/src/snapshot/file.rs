//! Snapshot files: written beside the old one, then renamed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufReader, BufWriter};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;

use crate::snapshot::error::SnapshotError;
use crate::snapshot::format::SnapshotSummary;
use crate::snapshot::time::SnapshotTime;
use crate::store::Store;

/// Writes a snapshot to `path`: to `path.tmp` first, which is synced and then renamed, so that
/// `path` is at any time a whole snapshot or the one before. `may_replace` is asked right before
/// that: what is there stays if it says no, and the result is `None`.
///
/// The name of the temporary file is always the same, so that a process that is killed leaves at
/// most one. A lock on it makes others that write to the same path wait, in this process and in
/// others.
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
        // Best effort: the error that is returned says more than a failing clean-up could.
        let _ = fs::remove_file(&temporary);
    }
    written
}

/// Opens the temporary file for this process alone, empty. Waits until nobody else has it.
fn open_locked(temporary: &Path) -> io::Result<File> {
    loop {
        // For nobody else to read: items are sessions and pages of one visitor, too. It does not
        // wait for the reader of a FIFO, and does not write where a link leads.
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(false).mode(0o600).custom_flags(flags);
        let file = file.open(temporary)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::other("it is not a regular file"));
        }
        file.lock()?;
        // Whoever had it before has renamed or removed it.
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
    // A FIFO that nobody writes to would be waited for.
    let flags = OFlags::NONBLOCK.bits().cast_signed();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(open)?;
    let mut from = BufReader::with_capacity(1 << 20, file);
    store.read_snapshot(&mut from, time)
}
