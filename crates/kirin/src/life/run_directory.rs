//! The directory of a running Kirin: sockets that only its own applications use. Mode 0700, gone
//! when Kirin ends.
//!
//! A Kirin that is killed leaves its directory. The next one removes it. Whether a directory's
//! Kirin still runs is told by a lock on a file in it: the kernel releases the lock when the
//! process ends, and a process id that is used again does not mislead.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// What a program that hands its application to Kirin puts into the directory
/// (`Plack::Handler::Kirin`).
pub const CONFIGURATION: &str = "kirin.toml";
/// The socket on which the workers of such an application accept.
pub const WORKERS_SOCKET: &str = "workers";
/// How the program was started that had loaded the application, if that can be done again.
pub const INVOCATION: &str = "invocation";
const STORE_SOCKET: &str = "store.sock";
const STORE_FILE: &str = "store.snapshot";
/// Locked while the directory's Kirin runs.
const LOCK: &str = "kirin.lock";
/// The lock file before it is locked: nobody looks at this name.
const NEW_LOCK: &str = "kirin.lock.new";
/// Names of directories that Kirin makes begin so.
const PREFIX: &str = "kirin-";

/// A temporary directory; dropping it removes it.
pub struct RunDirectory {
    path: PathBuf,
    /// Unless it was there before Kirin.
    made: Option<tempfile::TempDir>,
    /// Keeps the lock for as long as the process has it open.
    _lock: File,
}

impl RunDirectory {
    /// Makes one below `$TMPDIR` or `/tmp`. Its path is short: a unix socket's path has 107 bytes
    /// at most (unix(7)).
    pub fn create() -> io::Result<Self> {
        let private = fs::Permissions::from_mode(0o700);
        let made = tempfile::Builder::new().prefix(PREFIX).permissions(private).tempdir()?;
        let lock = lock(made.path())?;
        Ok(Self { path: made.path().to_owned(), made: Some(made), _lock: lock })
    }

    /// Takes over one that was made for this Kirin.
    pub fn take_over(path: &Path) -> io::Result<Self> {
        Ok(Self { path: path.to_owned(), made: None, _lock: lock(path)? })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the files in the directory and then the directory itself: the order in which root
    /// may give them to another user.
    pub fn paths(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(&self.path).into_iter().flatten().flatten();
        entries.map(|entry| entry.path()).chain([self.path.clone()]).collect()
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
            for name in [CONFIGURATION, WORKERS_SOCKET, INVOCATION, STORE_SOCKET, STORE_FILE, LOCK]
            {
                let _ = std::fs::remove_file(self.path.join(name));
            }
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

/// Makes the lock file of a directory. It has its name only when it is locked, so that no directory
/// of a living process ever has a lock file that is free.
fn lock(directory: &Path) -> io::Result<File> {
    let new = directory.join(NEW_LOCK);
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&new)?;
    file.lock()?;
    fs::rename(new, directory.join(LOCK))?;
    Ok(file)
}

/// Removes the directories, beside those of running Kirins, that killed ones have left.
pub fn remove_abandoned() {
    remove_abandoned_in(&std::env::temp_dir());
}

fn remove_abandoned_in(parent: &Path) {
    let own_user = rustix::process::geteuid().as_raw();
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        // Not through a symbolic link: the metadata is that of the entry.
        let is_own = entry.metadata().is_ok_and(|of| of.is_dir() && of.uid() == own_user);
        if is_own && name.to_string_lossy().starts_with(PREFIX) {
            remove_if_abandoned(&entry.path());
        }
    }
}

fn remove_if_abandoned(directory: &Path) {
    // A directory without a lock file may be one that is being made, or somebody else's.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let lock = OpenOptions::new().write(true).custom_flags(flags).open(directory.join(LOCK));
    let Ok(lock) = lock else { return };
    // Held until the directory is gone: another Kirin may be looking at it, too.
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
