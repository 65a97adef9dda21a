//! The file that tells others the program's process id.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// A file with this process's id; dropping it removes the file, unless another Kirin has written
/// its own there meanwhile.
pub struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes it. Whoever reads it sees the whole number or what was there before.
    pub fn write(path: &Path) -> io::Result<Self> {
        let directory =
            path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let mut temporary = tempfile::Builder::new()
            .prefix(".kirin-pid-")
            .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
            .tempfile_in(directory)?;
        // Not by its path: the directory may be another user's, who could have put a link in its
        // place.
        writeln!(temporary, "{}", std::process::id())?;
        temporary.persist(path).map_err(|error| error.error)?;
        Ok(Self { path: path.to_owned() })
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let content = std::fs::read_to_string(&self.path).unwrap_or_default();
        if content.trim_end() == std::process::id().to_string() {
            // Nothing depends on it any more.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_removed_at_the_end_if_it_is_still_ours() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pid");
        let file = PidFile::write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            1,
            "no temporary file is left"
        );
        drop(file);
        assert!(!path.exists());

        let file = PidFile::write(&path).unwrap();
        std::fs::write(&path, "1\n").unwrap();
        drop(file);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n");
    }

    #[test]
    fn it_replaces_what_is_there() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pid");
        std::fs::write(&path, "1234567890123\n").unwrap();
        let _file = PidFile::write(&path).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    }
}
