//! Symbolic links that leave the root, for places that follow a link if its owner also owns the
//! target.
//!
//! `follow_links = "owner"` is `disable_symlinks if_not_owner` in nginx and `SymLinksIfOwnerMatch`
//! in Apache. A user who may write below the root cannot use a link to show files of other users.
//! Every component of the path is opened by itself, and stays open while the next one is looked up.
//! The owners are read from the open descriptors. So a link that is swapped in this time is either
//! followed and checked, or not followed.

use std::ffi::OsStr;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path};

use rustix::fs::{
    CWD, FileType, Mode, OFlags, PROC_SUPER_MAGIC, fstat, fstatfs, open, openat, readlinkat,
};
use rustix::io::Errno;

/// The number of links that the kernel follows on one path (path_resolution(7)).
const MAX_LINKS: usize = 40;

const STEP: OFlags = OFlags::PATH.union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens `name` below `directory` with `flags`. Follows a link only if the owner of the link also
/// owns the target.
pub(crate) fn open_of_same_owner(
    directory: impl AsFd,
    name: &Path,
    flags: OFlags,
) -> Result<OwnedFd, Errno> {
    let mut links = 0;
    walk(directory.as_fd().try_clone_to_owned().map_err(|_| Errno::MFILE)?, name, flags, &mut links)
}

fn walk(start: OwnedFd, path: &Path, flags: OFlags, links: &mut usize) -> Result<OwnedFd, Errno> {
    let mut here = start;
    let mut components = path.components().peekable();
    let mut is_opened = false;
    while let Some(component) = components.next() {
        let is_last = components.peek().is_none();
        let wanted = if is_last { flags } else { STEP | OFlags::DIRECTORY };
        is_opened = is_last;
        here = match component {
            Component::RootDir | Component::Prefix(_) => open("/", wanted, Mode::empty())?,
            Component::CurDir => openat(&here, ".", wanted, Mode::empty())?,
            Component::ParentDir => openat(&here, "..", wanted, Mode::empty())?,
            Component::Normal(name) => {
                match open_unless_link(&here, name, wanted) {
                    // This is a link, or a file where a directory is wanted.
                    Err(error @ (Errno::LOOP | Errno::NOTDIR)) => {
                        let link = openat(&here, name, STEP, Mode::empty())?;
                        let stat = fstat(&link)?;
                        if fstatfs(&link)?.f_type == PROC_SUPER_MAGIC {
                            // The text of such a link is not its target.
                            return Err(Errno::LOOP);
                        }
                        if FileType::from_raw_mode(stat.st_mode) != FileType::Symlink {
                            return Err(error);
                        }
                        *links += 1;
                        if *links > MAX_LINKS {
                            return Err(Errno::LOOP);
                        }
                        let target = readlinkat(&link, "", Vec::new())?;
                        let target = Path::new(OsStr::from_bytes(target.to_bytes()));
                        let opened = walk(here, target, wanted, links)?;
                        if fstat(&opened)?.st_uid != stat.st_uid {
                            return Err(Errno::PERM);
                        }
                        opened
                    }
                    opened => opened?,
                }
            }
        };
    }
    if is_opened { Ok(here) } else { openat(&here, ".", flags, Mode::empty()) }
}

/// Opens `name`, or fails with LOOP or NOTDIR if it is a link.
fn open_unless_link(here: &OwnedFd, name: &OsStr, flags: OFlags) -> Result<OwnedFd, Errno> {
    let opened = openat(here, name, flags | OFlags::NOFOLLOW, Mode::empty())?;
    // PATH opens the link itself, unless a directory is wanted.
    let is_link = flags.contains(OFlags::PATH)
        && FileType::from_raw_mode(fstat(&opened)?.st_mode) == FileType::Symlink;
    if is_link { Err(Errno::LOOP) } else { Ok(opened) }
}

/// Returns whether `path` is a link whose owner does not own the target.
pub(crate) fn has_other_owner(path: &Path) -> bool {
    match (std::fs::symlink_metadata(path), std::fs::metadata(path)) {
        (Ok(link), Ok(target)) => link.is_symlink() && link.uid() != target.uid(),
        _ => false,
    }
}

/// Describes for the log the first link on the way to `name` below `directory` that `is_refused`
/// matches.
pub(crate) fn describe(
    directory: &Path,
    name: &Path,
    is_refused: impl Fn(&Path) -> bool,
) -> Option<String> {
    let mut parts = name.components();
    let mut prefixes = vec![name.to_owned()];
    while parts.next_back().is_some() && !parts.as_path().as_os_str().is_empty() {
        prefixes.push(parts.as_path().to_owned());
    }
    let link = directory.join(prefixes.iter().rev().find(|prefix| is_refused(prefix))?);
    let owner = |metadata: std::io::Result<std::fs::Metadata>| {
        metadata.map_or("nobody".to_owned(), |metadata| format!("uid {}", metadata.uid()))
    };
    let target = readlinkat(CWD, &link, Vec::new()).ok()?;
    Some(format!(
        "{} is a symbolic link of {} to {}, which belongs to {}",
        link.display(),
        owner(std::fs::symlink_metadata(&link)),
        target.to_string_lossy(),
        owner(std::fs::metadata(&link)),
    ))
}
