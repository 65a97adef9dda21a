//! Errors of snapshots. All other calls of the store return outcomes and no errors.

use std::io;
use std::path::PathBuf;

/// The reason why a snapshot was not written or not loaded.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file is not a snapshot of this program.
    #[error("not a Kirin snapshot: it begins with {found:?}; move the file away or name another")]
    Foreign {
        /// The first bytes of the file.
        found: String,
    },
    /// The snapshot has another format version.
    #[error(
        "snapshot format {found}, this program reads {supported}; start cold or use the program that wrote it"
    )]
    Version {
        /// The version in the file.
        found: u32,
        /// The version that this program reads.
        supported: u32,
    },
    /// The file is cut off or its checksums do not match. Nothing was loaded.
    #[error(
        "snapshot is damaged at byte {at_byte}: {what}; nothing was loaded, move the file away"
    )]
    Damaged {
        /// The offset of the damage in bytes.
        at_byte: u64,
        /// The error at that offset.
        what: &'static str,
    },
    /// Reading or writing failed.
    #[error("snapshot: {0}")]
    Io(#[from] io::Error),
    /// Opening, writing, syncing or renaming a snapshot file failed.
    #[error("snapshot {}: cannot {action}: {source}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The action that failed.
        action: &'static str,
        /// The error of the system.
        source: io::Error,
    },
}
