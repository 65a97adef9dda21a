//! The directory of a running Kirin: sockets that only its own applications use. Mode 0700, gone when Kirin ends.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// A temporary directory; dropping it removes it.
pub struct RunDirectory(tempfile::TempDir);

impl RunDirectory {
    /// Makes one below `$TMPDIR` or `/tmp`. Its path is short: a unix socket's path has 107 bytes at most (unix(7)).
    pub fn create() -> io::Result<Self> {
        let private = std::fs::Permissions::from_mode(0o700);
        tempfile::Builder::new().prefix("kirin-").permissions(private).tempdir().map(Self)
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.0.path()
    }

    /// The memcached socket that applications find in `KIRIN_STORE`.
    pub fn store_socket(&self) -> PathBuf {
        self.0.path().join("store.sock")
    }
}
