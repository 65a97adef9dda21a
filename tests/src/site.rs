//! A directory with what a site is made of.

use std::fs;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// A temporary site; gone when dropped.
pub struct Site {
    directory: TempDir,
}

impl Default for Site {
    fn default() -> Self {
        Self::new()
    }
}

impl Site {
    /// An empty directory.
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().expect("a temporary directory") }
    }

    /// Writes a file, making the directories it needs.
    #[must_use]
    pub fn with(self, name: &str, content: impl AsRef<[u8]>) -> Self {
        let path = self.path(name);
        fs::create_dir_all(path.parent().expect("a parent")).expect("directories");
        fs::write(&path, content).expect("a file");
        self
    }

    /// A path in it.
    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    /// The directory.
    pub fn root(&self) -> &Path {
        self.directory.path()
    }
}
