//! A directory with the files of a site.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::wait_for;

/// A temporary site. It is removed when it is dropped.
pub struct Site {
    directory: TempDir,
    /// The directory of default admin sockets. No other Kirin of this machine is found from here.
    admin: TempDir,
}

impl Default for Site {
    fn default() -> Self {
        Self::new()
    }
}

impl Site {
    /// Creates an empty directory.
    pub fn new() -> Self {
        let directory = || tempfile::tempdir().expect("a temporary directory");
        let (directory, admin) = (directory(), directory());
        // Another user may have a directory in it.
        fs::set_permissions(admin.path(), Permissions::from_mode(0o755)).expect("a mode");
        Self { directory, admin }
    }

    /// Writes a file, and makes the directories that it needs.
    #[must_use]
    pub fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, content).expect("a file");
        self
    }

    /// Returns a path in the site.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// Waits until there are exactly `count` files whose names start with `prefix`.
    ///
    /// # Panics
    /// Panics if there are not.
    pub fn wait_for_files(&self, prefix: &str, count: usize) {
        wait_for(&format!("{count} files {prefix}*"), || {
            let entries = fs::read_dir(self.root()).expect("the site").flatten();
            let found =
                entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
            (found.count() == count).then_some(())
        });
    }

    /// Returns the value of `KIRIN_ADMIN_DIRECTORY` for this site.
    pub fn admin_directory(&self) -> &Path {
        self.admin.path()
    }

    /// Returns the directory.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }
}
