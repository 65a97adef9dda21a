//! The directories for files that an application names in `X-Sendfile`.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

use kirin_http::StatusCode;
use kirin_spool::is_out_of_descriptors;
use rustix::fs::{Mode, OFlags, ResolveFlags};

/// The open directories.
pub(crate) struct SendfileRoots(Vec<Root>);

struct Root {
    path: PathBuf,
    directory: OwnedFd,
}

/// Why a file is not sent.
#[derive(Debug, thiserror::Error)]
pub(crate) enum NotSent {
    #[error("X-Sendfile: {} is not below any of the app's sendfile roots", .0.display())]
    Outside(PathBuf),
    #[error("X-Sendfile: {}: {error}", path.display())]
    Unreadable { path: PathBuf, error: io::Error },
    #[error("X-Sendfile: {} is not a file", .0.display())]
    NotAFile(PathBuf),
}

impl NotSent {
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            NotSent::Unreadable { error, .. } if is_out_of_descriptors(error) => {
                StatusCode::SERVICE_UNAVAILABLE
            }
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

impl SendfileRoots {
    /// Opens the directories.
    pub(crate) fn open(paths: &[PathBuf]) -> io::Result<Self> {
        let open = |path: &PathBuf| {
            let path = path.canonicalize()?;
            let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
            let directory = rustix::fs::open(&path, flags, Mode::empty())?;
            Ok(Root { path, directory })
        };
        paths.iter().map(open).collect::<io::Result<Vec<Root>>>().map(Self)
    }

    /// Returns the paths of the directories, without symbolic links.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Path> {
        self.0.iter().map(|root| root.path.as_path())
    }

    /// Opens `path` if it is below one of the directories.
    pub(crate) fn open_below(&self, path: &Path) -> Result<File, NotSent> {
        let unreadable = |error: io::Error| NotSent::Unreadable { path: path.to_owned(), error };
        // The directories are canonical. So a path through a symbolic link to the same place is
        // found to be below.
        let canonical = path.canonicalize().map_err(unreadable)?;
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
