//! The file with the process id of the program.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use kirin_user::{ParentDirectory, User, is_root};
use rustix::fs::OFlags;

/// The process id cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write the process id to {}: {source}{hint}", path.display(), hint = kirin_user::permission_hint(path, source))]
pub struct PidFileError {
    path: PathBuf,
    source: io::Error,
}

/// A file with the id of this process. Dropping it removes the file, unless another Kirin has
/// written its own id there.
#[derive(Debug)]
pub struct PidFile {
    path: PathBuf,
}

impl PidFile {
    /// Writes the file. A reader sees the old content or the complete number. Root follows no link
    /// of `user`, who will serve, and gives the file to that user.
    pub fn write(path: &Path, user: Option<&User>) -> Result<Self, PidFileError> {
        write_own_id(path, user)?;
        Ok(Self { path: path.to_owned() })
    }

    /// Writes the file again if another process has written its own id there, or has removed it.
    pub fn write_again(&self) -> Result<(), PidFileError> {
        if self.is_own() { Ok(()) } else { write_own_id(&self.path, None) }
    }

    fn is_own(&self) -> bool {
        let content = std::fs::read_to_string(&self.path).unwrap_or_default();
        content.trim_end() == std::process::id().to_string()
    }
}

fn write_own_id(path: &Path, user: Option<&User>) -> Result<(), PidFileError> {
    let text = format!("{}\n", std::process::id());
    let directory = path.parent().filter(|directory| !directory.as_os_str().is_empty());
    if let Some(directory) = directory.filter(|directory| !directory.is_dir()) {
        let message = format!("there is no directory {}: create it", directory.display());
        let source = io::Error::new(io::ErrorKind::NotFound, message);
        return Err(PidFileError { path: path.to_owned(), source });
    }
    ParentDirectory::check(path, user)
        .and_then(|()| match replace_file_for(path, &text, user) {
            // Root has started the program that this one takes over from, and only root can
            // make files in the directory. The file itself belongs to the user that serves.
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                overwrite(path, &text).map_err(|_| error)
            }
            written => written,
        })
        .map_err(|source| PidFileError { path: path.to_owned(), source })
}

/// Writes a file beside `path` and renames it, so that `path` never has a part of `text`. A link at
/// `path` is replaced and not followed.
pub fn replace_file(path: &Path, text: &str) -> io::Result<()> {
    replace_file_for(path, text, None)
}

/// Writes into the file that is there. A reader that is fast sees a line of the old file behind the
/// new one.
fn overwrite(path: &Path, text: &str) -> io::Result<()> {
    let no_links = OFlags::NOFOLLOW.bits().cast_signed();
    let file = OpenOptions::new().write(true).custom_flags(no_links).open(path)?;
    file.write_all_at(text.as_bytes(), 0)?;
    file.set_len(text.len() as u64)
}

fn replace_file_for(path: &Path, text: &str, user: Option<&User>) -> io::Result<()> {
    let directory =
        path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut temporary = tempfile::Builder::new()
        .prefix(".kirin-pid-")
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(directory)?;
    // Not by its path: the directory may belong to another user, who could have replaced the file
    // by a link.
    temporary.write_all(text.as_bytes())?;
    if let Some(user) = user.filter(|_| is_root()) {
        user.give_file(temporary.as_file())?;
    }
    temporary.persist(path).map_err(|error| error.error)?;
    Ok(())
}

impl Drop for PidFile {
    fn drop(&mut self) {
        if self.is_own() {
            // Nothing depends on the file any more. In a directory of root it stays and is empty.
            if std::fs::remove_file(&self.path).is_err() {
                let _ = overwrite(&self.path, "");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pid_file_is_removed_at_the_end_if_it_is_unchanged() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pid");
        let file = PidFile::write(&path, None).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            1,
            "no temporary file is left"
        );
        drop(file);
        assert!(!path.exists());

        let file = PidFile::write(&path, None).unwrap();
        std::fs::write(&path, "1\n").unwrap();
        file.write_again().unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
        std::fs::write(&path, "1\n").unwrap();
        drop(file);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "1\n");
    }

    #[test]
    fn the_pid_file_replaces_an_existing_one() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("pid");
        std::fs::write(&path, "1234567890123\n").unwrap();
        let _file = PidFile::write(&path, None).unwrap();
        assert_eq!(std::fs::read_to_string(&path).unwrap(), format!("{}\n", std::process::id()));
    }
}
