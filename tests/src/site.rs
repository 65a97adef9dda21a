//! A directory with the files of a site.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::wait_for;

/// A temporary site. It is removed when it is dropped.
pub struct Site {
    directory: TempDir,
    /// The directory for the sockets of this site's user session. Tests run beside each other.
    session: TempDir,
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
        Self { directory: directory(), session: directory() }
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

    /// Returns the directory that takes the place of `$XDG_RUNTIME_DIR`.
    pub fn session(&self) -> &Path {
        self.session.path()
    }

    /// Returns the directory.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }
}
