//! The run directory: the sockets that only Kirin's own applications use. Its mode is 0700, and it
//! is removed when Kirin ends.
//!
//! A Kirin that is killed leaves its directory, and the next Kirin removes it. A lock on a file in
//! the directory shows whether its Kirin still runs: the kernel releases the lock when the process
//! ends. A process id could be used again by another process.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// The configuration of a program that hands its application to Kirin (`Plack::Handler::Kirin`).
pub const CONFIGURATION: &str = "kirin.toml";
/// The socket on which the workers of such an application accept.
pub const WORKERS_SOCKET: &str = "workers";
/// The file that says how the program was started that loaded the application, if that can be
/// repeated.
pub const INVOCATION: &str = "invocation";
const STORE_SOCKET: &str = "store.sock";
/// The file that is locked while the directory's Kirin runs.
const LOCK: &str = "kirin.lock";
/// The name of the lock file before it is locked. Nothing looks for this name.
const NEW_LOCK: &str = "kirin.lock.new";
/// The start of the names of directories that Kirin makes.
const PREFIX: &str = "kirin-";

/// The run directory of this program. Dropping it removes it.
pub struct RunDirectory {
    path: PathBuf,
    /// The directory, if this program has made it.
    made: Option<tempfile::TempDir>,
    /// The locked file. The lock lasts until it is closed.
    _lock: File,
}

impl RunDirectory {
    /// Makes a directory below `$TMPDIR` or `/tmp`. Its path must be short, since the path of a
    /// unix socket has at most 107 bytes (unix(7)).
    pub fn create() -> io::Result<Self> {
        let private = fs::Permissions::from_mode(0o700);
        let place = std::env::temp_dir();
        let made = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir_in(&place);
        let made = made.map_err(|error| {
            let place = place.display();
            let message = format!("no directory can be made in {place} ($TMPDIR): {error}");
            io::Error::new(error.kind(), message)
        })?;
        let lock = lock(made.path())?;
        Ok(Self { path: made.path().to_owned(), made: Some(made), _lock: lock })
    }

    /// Takes over a directory that was made for this Kirin.
    pub fn take_over(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), made: None, _lock: lock(path)? })
    }

    /// Returns the path of the directory.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the files in the directory and then the directory itself: the order in which root
    /// may give them to another user.
    pub fn paths(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).chain([self.path.clone()]).collect()
    }

    /// Returns the path of the memcached socket that applications find in `KIRIN_STORE`.
    pub fn store_socket(&self) -> PathBuf {
        self.path.join(STORE_SOCKET)
    }
}

impl Drop for RunDirectory {
    fn drop(&mut self) {
        if self.made.is_none() {
            // Only known files are removed, so that a wrong path does no harm.
            for name in [CONFIGURATION, WORKERS_SOCKET, INVOCATION, STORE_SOCKET, LOCK] {
                let _ = std::fs::remove_file(self.path.join(name));
            }
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

/// Creates the lock file under a temporary name, locks it, then renames it. So the directory of a
/// running process never has an unlocked lock file.
fn lock(directory: &Path) -> io::Result<File> {
    let new = directory.join(NEW_LOCK);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.lock()?;
    fs::rename(new, directory.join(LOCK))?;
    Ok(file)
}

/// Removes the run directories of Kirins that were killed.
pub fn remove_abandoned() {
    remove_abandoned_in(&std::env::temp_dir());
}

fn remove_abandoned_in(parent: &Path) {
    let own_user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        // This does not follow a symbolic link: the metadata is that of the entry.
        let is_own = entry.metadata().is_ok_and(|of| of.is_dir() && of.uid() == own_user);
        if is_own && name.to_string_lossy().starts_with(PREFIX) {
            remove_if_abandoned(&entry.path());
        }
    }
}

fn remove_if_abandoned(directory: &Path) {
    // A directory without a lock file may be a new one, or belong to another program.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let lock = OpenOptions::new().write(true).custom_flags(flags).open(directory.join(LOCK));
    let Ok(lock) = lock else { return };
    // The lock is held until the directory is removed, since another Kirin may look at it at the
    // same time.
    if lock.try_lock().is_err() {
        return;
    }
    match fs::remove_dir_all(directory) {
        Ok(()) => tracing::info!("{} of a Kirin that was killed is removed", directory.display()),
        Err(error) => {
            tracing::debug!(%error, "{} of a Kirin that was killed stays", directory.display());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_directories_of_processes_that_have_ended_are_removed() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: &str| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join(STORE_SOCKET), "").unwrap();
            path
        };
        let (living, dead) = (make("kirin-living"), make("kirin-dead"));
        let (new, other) = (make("kirin-new"), make("other"));
        let _lock = lock(&living).unwrap();
        drop(lock(&dead).unwrap());
        drop(lock(&other).unwrap());
        let elsewhere = tempfile::tempdir().unwrap();
        drop(lock(elsewhere.path()).unwrap());
        let link = parent.path().join("kirin-link");
        std::os::unix::fs::symlink(elsewhere.path(), &link).unwrap();
        remove_abandoned_in(parent.path());
        assert!(!dead.exists());
        for path in [&living, &new, &other, &link] {
            assert!(path.exists(), "{}", path.display());
        }
        assert!(elsewhere.path().join(LOCK).exists());
    }
}
