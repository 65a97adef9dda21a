//! The directory of a running Kirin: sockets that only its own applications use. Mode 0700, gone when Kirin ends.

use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What a program that hands its application to Kirin puts into the directory (`Plack::Handler::Kirin`).
pub const CONFIGURATION: &str = "kirin.toml";
/// The socket on which the workers of such an application accept.
pub const WORKERS_SOCKET: &str = "workers";
/// How the program was started that had loaded the application, if that can be done again.
pub const INVOCATION: &str = "invocation";
const STORE_SOCKET: &str = "store.sock";
const STORE_FILE: &str = "store.snapshot";

/// A temporary directory; dropping it removes it.
pub struct RunDirectory {
    path: PathBuf,
    /// Unless it was there before Kirin.
    made: Option<tempfile::TempDir>,
}

impl RunDirectory {
    /// Makes one below `$TMPDIR` or `/tmp`. Its path is short: a unix socket's path has 107 bytes at most (unix(7)).
    pub fn create() -> io::Result<Self> {
        let private = std::fs::Permissions::from_mode(0o700);
        tempfile::Builder::new()
            .prefix("kirin-")
            .permissions(private)
            .tempdir()
            .map(|made| Self { path: made.path().to_owned(), made: Some(made) })
    }

    /// Takes over one that was made for this Kirin.
    pub fn take_over(path: &Path) -> Self {
        Self { path: path.to_owned(), made: None }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The directory and what is in it.
    pub fn paths(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        std::iter::once(self.path.clone()).chain(entries.map(|entry| entry.path())).collect()
    }

    /// The memcached socket that applications find in `KIRIN_STORE`.
    pub fn store_socket(&self) -> PathBuf {
        self.path.join(STORE_SOCKET)
    }

    /// Where the contents of the store are while another Kirin takes over.
    pub fn store_file(&self) -> PathBuf {
        self.path.join(STORE_FILE)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if self.made.is_none() {
            // Nothing but what is known to be in it: a wrong path must cost nobody a file.
            for name in [CONFIGURATION, WORKERS_SOCKET, INVOCATION, STORE_SOCKET, STORE_FILE] {
                let _ = std::fs::remove_file(self.path.join(name));
            }
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}
