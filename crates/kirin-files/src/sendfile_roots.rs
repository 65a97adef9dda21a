//! The directories for files that an application or an upstream names in its response
//! (`X-Sendfile`, `X-Accel-Redirect`).

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use kirin_http::StatusCode;
use rustix::fs::{Mode, OFlags, ResolveFlags};

use crate::app_files::{AppFile, AppFiles};
use crate::root::OpenError;

/// The open directories.
#[derive(Debug)]
pub struct SendfileRoots(Vec<Root>);

#[derive(Debug)]
struct Root {
    /// Without symbolic links.
    path: PathBuf,
    /// As the configuration has it.
    written: PathBuf,
    directory: OwnedFd,
}

/// The reason why a file is not sent.
#[derive(Debug, thiserror::Error)]
pub enum NotSent {
    /// The configuration does not allow its directory.
    #[error("{} is not below any directory of `sendfile`", .0.display())]
    Outside(PathBuf),
    /// The file cannot be opened or read.
    #[error("{}: {error}", path.display())]
    Unreadable {
        /// The path that was named.
        path: PathBuf,
        /// The error of the system.
        error: io::Error,
    },
    /// It is a directory, a socket or a device.
    #[error("{} is not a file", .0.display())]
    NotAFile(PathBuf),
}

impl NotSent {
    /// Returns the status for the client: the program has named a wrong file, or Kirin has no
    /// descriptor or memory left.
    pub fn status(&self) -> StatusCode {
        match self {
            NotSent::Unreadable { error, .. }
                if matches!(OpenError::of_io(error), OpenError::Exhausted(_)) =>
            {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// Returns whether there is no such file.
    pub fn is_missing(&self) -> bool {
        matches!(self, NotSent::Unreadable { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

impl SendfileRoots {
    /// Opens the directories.
    pub fn open(paths: &[PathBuf]) -> io::Result<Self> {
        let open = |written: &PathBuf| {
            let path = written.canonicalize()?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = rustix::fs::open(&path, flags, Mode::empty())?;
            Ok(Root { path, written: written.clone(), directory })
        };
        paths.iter().map(open).collect::<io::Result<Vec<Root>>>().map(Self)
    }

    /// Returns the paths of the directories, without symbolic links.
    pub fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|root| root.path.as_path())
    }

    /// Opens `path` if it is below one of the directories.
    fn open_below(&self, path: &Path) -> Result<File, NotSent> {
        let unreadable = |error: io::Error| NotSent::Unreadable { path: path.to_owned(), error };
        // The directories are canonical. So a path through a symbolic link to the same place is
        // found to be below.
        let canonical = path.canonicalize().map_err(|error| {
            // A path outside says nothing about what is there.
            match self
                .0
                .iter()
                .any(|root| path.starts_with(&root.path) || path.starts_with(&root.written))
            {
                true => unreadable(error),
                false => NotSent::Outside(path.to_owned()),
            }
        })?;
        let below =
            self.0.iter().find_map(|root| Some((root, canonical.strip_prefix(&root.path).ok()?)));
        let Some((root, relative)) = below else { return Err(NotSent::Outside(path.to_owned())) };
        // A symbolic link that was created since the check above cannot lead out either. With
        // NONBLOCK, a named pipe does not block the event loop.
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        let file = rustix::fs::openat2(&root.directory, relative, flags, Mode::empty(), resolve)
            .map_err(|error| unreadable(error.into()))?;
        Ok(File::from(file))
    }

    /// Finds the file at `path`, which must be below one of the directories, in the cache `files`
    /// or on the disk.
    pub fn find(
        &self,
        files: &AppFiles,
        path: &Path,
        now: Instant,
    ) -> Result<Rc<AppFile>, NotSent> {
        let opened = self.open_below(path)?;
        match files.named(path, opened, now) {
            Ok(Some(file)) => Ok(file),
            Ok(None) => Err(NotSent::NotAFile(path.to_owned())),
            Err(error) => Err(NotSent::Unreadable { path: path.to_owned(), error }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_files_below_a_root_are_sent() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::create_dir_all(at("root/sub")).unwrap();
        std::fs::write(at("root/sub/file"), "hello").unwrap();
        std::fs::write(at("secret"), "no").unwrap();
        std::os::unix::fs::symlink(at("secret"), at("root/link")).unwrap();
        std::os::unix::fs::symlink(at("root"), at("alias")).unwrap();
        let roots = SendfileRoots::open(&[at("alias")]).unwrap();

        for inside in ["root/sub/file", "alias/sub/file", "root/sub/../sub/file"] {
            assert_eq!(
                std::io::read_to_string(roots.open_below(&at(inside)).unwrap()).unwrap(),
                "hello",
                "{inside}"
            );
        }
        for outside in ["secret", "root/link", "root/../secret"] {
            assert!(
                matches!(roots.open_below(&at(outside)), Err(NotSent::Outside(_))),
                "{outside}"
            );
        }
        assert!(matches!(roots.open_below(&at("root/none")), Err(NotSent::Unreadable { .. })));
    }
}
