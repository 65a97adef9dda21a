//! What can go wrong with a snapshot; everything else in the store is an outcome, not an error.

use std::io;
use std::path::PathBuf;

/// Why a snapshot was not written or not loaded.
#[derive(Debug, thiserror::Error)]
pub enum SnapshotError {
    /// The file is not a snapshot of this program.
    #[error("not a Kirin snapshot: it begins with {found:?}; move the file away or name another")]
    Foreign {
        /// The first bytes of the file.
        found: String,
    },
    /// A snapshot of another format version.
    #[error(
        "snapshot format {found}, this program reads {supported}; start cold or use the program that wrote it"
    )]
    Version {
        /// The version in the file.
        found: u32,
        /// The version this program reads.
        supported: u32,
    },
    /// The file ends early or its checksums do not match. Nothing of it was loaded.
    #[error(
        "snapshot is damaged at byte {at_byte}: {what}; nothing was loaded, move the file away"
    )]
    Damaged {
        /// Offset of the damage.
        at_byte: u64,
        /// What was wrong there.
        what: &'static str,
    },
    /// Reading or writing failed.
    #[error("snapshot: {0}")]
    Io(#[from] io::Error),
    /// Reading, writing, syncing or renaming a snapshot file failed.
    #[error("snapshot {}: cannot {action}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried.
        action: &'static str,
        /// What the system said.
        source: io::Error,
    },
}
