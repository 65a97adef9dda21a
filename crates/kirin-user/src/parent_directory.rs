//! The directory of a file that root opens on a path which another user may have changed.
//!
//! Kirin that is started as root opens its logs before it becomes the `user` of the configuration.
//! The directories of these files often belong to that user. Root must not follow a symbolic link
//! that another user has put there: it may lead to any file of the machine. So each directory of
//! the path is opened one after the other, and a link is followed only in a directory that root
//! alone can write.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Component, Path};

use rustix::fs::{AtFlags, FileType, Mode, OFlags, fstat, open, openat, readlinkat, statat};
use rustix::io::Errno;

use crate::user::{self, User};

/// The most links on one path, which is the kernel's limit (path_resolution(7)).
const MAX_LINKS: usize = 40;

/// The mode of new access logs. They contain query strings and names of users.
const LOG_MODE: Mode = Mode::RUSR.union(Mode::WUSR).union(Mode::RGRP);

const DIRECTORY: OFlags =
    OFlags::PATH.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// The opened directory of a file, and the file's name in it.
#[derive(Debug)]
pub struct ParentDirectory {
    directory: OwnedFd,
    name: OsString,
    /// Whether only root can change the directory's entries.
    is_roots: bool,
}

impl ParentDirectory {
    /// Opens the directory of `path`. Fails at a symbolic link that another user than root could
    /// have made.
    pub fn open(path: &Path) -> io::Result<Self> {
        let path = std::path::absolute(path)?;
        let mut rest: VecDeque<OsString> = names(&path).collect();
        let mut directory = open("/", DIRECTORY, Mode::empty())?;
        let mut links = 0;
        while let Some(name) = rest.pop_front() {
            let is_roots = is_roots(&directory)?;
            match readlinkat(&directory, &name, Vec::new()) {
                Ok(target) if is_roots && links < MAX_LINKS => {
                    links += 1;
                    let target = OsString::from_vec(target.into_bytes());
                    if Path::new(&target).is_absolute() {
                        directory = open("/", DIRECTORY, Mode::empty())?;
                    }
                    for name in names(Path::new(&target)).collect::<Vec<_>>().into_iter().rev() {
                        rest.push_front(name);
                    }
                }
                Ok(_) => return Err(refused_link(&directory, &name)),
                // It is no link, or does not exist.
                Err(Errno::INVAL | Errno::NOENT) if rest.is_empty() && name != ".." => {
                    return Ok(Self { directory, name, is_roots });
                }
                Err(Errno::INVAL) => {
                    directory = openat(&directory, &name, DIRECTORY, Mode::empty())?
                }
                Err(error) => return Err(error.into()),
            }
        }
        Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"))
    }

    /// Checks the path of a file that root will create for `user`: a socket, a directory or the pid
    /// file. Checks nothing if the program is not root or will serve as root, or if a directory of
    /// the path does not exist yet.
    pub fn check(path: &Path, user: Option<&User>) -> io::Result<()> {
        if user.is_none() || !user::is_root() {
            return Ok(());
        }
        match Self::open(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// Opens the file for appending, and creates it if it does not exist. The second value is
    /// whether it was created.
    pub fn open_log(&self) -> io::Result<(File, bool)> {
        let flags =
            OFlags::WRONLY | OFlags::APPEND | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NOCTTY;
        let new = flags | OFlags::CREATE | OFlags::EXCL;
        match openat(&self.directory, &self.name, new, LOG_MODE) {
            Ok(file) => return Ok((file.into(), true)),
            Err(Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
        // A FIFO is opened for reading as well, because it may have no reader yet. NONBLOCK keeps
        // root from waiting if the file has been replaced by a FIFO meanwhile.
        let stat = statat(&self.directory, &self.name, AtFlags::SYMLINK_NOFOLLOW)?;
        let is_fifo = FileType::from_raw_mode(stat.st_mode) == FileType::Fifo;
        let access = if is_fifo { OFlags::RDWR } else { OFlags::WRONLY };
        let flags = flags.difference(OFlags::RWMODE) | access | OFlags::NONBLOCK;
        let file = File::from(openat(&self.directory, &self.name, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        let is_log = metadata.is_file() || metadata.file_type().is_fifo();
        if !self.is_roots && (!is_log || metadata.nlink() != 1) {
            return Err(io::Error::other(
                "it lies in a directory that others than root can write, and there root appends only to a regular file or \
                 a FIFO that has no second name (hard link)",
            ));
        }
        Ok((file, false))
    }
}

fn names(path: &Path) -> impl Iterator<Item = OsString> + '_ {
    let is_name = |component: &Component<'_>| {
        matches!(component, Component::Normal(_) | Component::ParentDir)
    };
    path.components().filter(is_name).map(|component| component.as_os_str().to_owned())
}

/// Returns whether only root can make and rename files in `directory`. A sticky directory such as
/// `/tmp` is writable for all.
fn is_roots(directory: impl AsFd) -> io::Result<bool> {
    let stat = fstat(directory)?;
    let (others, group) =
        (stat.st_mode & 0o002 != 0, stat.st_mode & 0o020 != 0 && stat.st_gid != 0);
    Ok(stat.st_uid == 0 && !others && !group)
}

fn refused_link(directory: impl AsFd, name: &OsStr) -> io::Error {
    let owner = statat(directory, name, AtFlags::SYMLINK_NOFOLLOW).map_or(0, |stat| stat.st_uid);
    io::Error::other(format!(
        "`{}` on its path is a symbolic link of uid {owner} in a directory that others than root can write, which root \
         does not follow: configure the path that the link leads to, or start Kirin as the user that serves",
        Path::new(name).display()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    /// Creates a site below a directory that everybody can write, as the tests may not be root.
    fn site() -> tempfile::TempDir {
        let site = tempfile::tempdir().unwrap();
        fs::set_permissions(site.path(), fs::Permissions::from_mode(0o777)).unwrap();
        fs::create_dir(site.path().join("logs")).unwrap();
        fs::write(site.path().join("target"), "before").unwrap();
        site
    }

    fn open_log(path: &Path) -> io::Result<bool> {
        ParentDirectory::open(path)?.open_log().map(|(_, is_new)| is_new)
    }

    #[test]
    fn a_log_is_created_for_its_owner_and_group_and_then_appended_to() {
        let site = site();
        let path = site.path().join("logs/../logs/access.log");
        assert!(open_log(&path).unwrap());
        assert!(!open_log(&path).unwrap());
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
    }

    #[test]
    fn links_that_other_users_own_are_not_followed() {
        let site = site();
        let at = |name: &str| site.path().join(name);
        symlink(at("target"), at("link")).unwrap();
        symlink(at("gone"), at("dangling")).unwrap();
        symlink(at("logs"), at("directory")).unwrap();
        fs::hard_link(at("target"), at("second")).unwrap();
        rustix::fs::mknodat(rustix::fs::CWD, at("fifo"), rustix::fs::FileType::Fifo, Mode::RWXU, 0)
            .unwrap();
        for (name, why) in [
            ("link", "is a symbolic link"),
            ("dangling", "is a symbolic link"),
            ("directory/access.log", "`directory` on its path is a symbolic link"),
            ("second", "regular file"),
        ] {
            let error = open_log(&at(name)).unwrap_err().to_string();
            assert!(error.contains(why), "{name}: {error}");
        }
        // A FIFO does not keep root waiting for its reader.
        assert!(!open_log(&at("fifo")).unwrap());
        assert!(open_log(&at("none/access.log")).is_err());
        assert!(!at("gone").exists() && !at("logs/access.log").exists());
        assert_eq!(fs::read(at("target")).unwrap(), b"before");
    }
}
