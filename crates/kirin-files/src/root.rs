//! The directory that a place serves. Only this file opens anything for a `files:DIR` place.
//!
//! Every open uses openat2(2) with RESOLVE_BENEATH. The kernel itself refuses to leave the
//! directory: by `..`, by an absolute symbolic link, or by a link that is swapped in during the
//! call. Symbolic links that stay inside work. Others work only if the configuration allows it
//! (`follow_links`).

use std::cell::{Cell, RefCell};
use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use kirin_faults::Point;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, ResolveFlags, Stat, fstat, statat};
use rustix::io::Errno;

use crate::config::{FilesError, FollowLinks};
use crate::directory::Directories;
use crate::links;

/// Flags for every open: no path leads out of the directory, and the kernel follows no magic link.
const RESOLVE: ResolveFlags = ResolveFlags::BENEATH.union(ResolveFlags::NO_MAGICLINKS);

/// NONBLOCK: opening a FIFO does not wait for a writer. NOCTTY: a terminal does not become Kirin's
/// controlling terminal.
pub(crate) const OPEN: OFlags =
    OFlags::RDONLY.union(OFlags::CLOEXEC).union(OFlags::NONBLOCK).union(OFlags::NOCTTY);

static OPEN_FILE: Point =
    Point::new("file.open", &[Errno::MFILE, Errno::NFILE, Errno::IO, Errno::NOMEM]);

/// How often an open is retried. openat2 fails with EAGAIN if something is renamed elsewhere while
/// it follows a link with `..`.
const RENAME_RETRIES: usize = 4;

/// The time after a change in which another change may get the same time stamp. The kernel's clock
/// for time stamps has ticks of up to 10 ms. (Git calls such files racily clean.)
const TICK: Duration = Duration::from_millis(20);

/// The same for directories. FAT has time stamps of two seconds.
const NAMES_TICK: Duration = Duration::from_secs(3);

/// The open root directory.
pub(crate) struct FilesRoot {
    path: PathBuf,
    follow_links: FollowLinks,
    directory: RefCell<OwnedFd>,
    identity: Cell<(u64, u64)>,
    checked: Cell<Instant>,
    directories: Directories,
}

/// An open regular file.
pub(crate) struct OpenFile {
    pub(crate) file: File,
    pub(crate) state: FileState,
}

/// The state of a file, which differs after each change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// Size in bytes.
    pub(crate) size: u64,
    /// Last change of the contents, in seconds and nanoseconds since the epoch.
    pub(crate) modified: (i64, i64),
    /// Last change of the contents or the metadata, in seconds and nanoseconds since the epoch. No
    /// program can set it.
    pub(crate) changed: (i64, i64),
}

/// The result of opening a path.
pub(crate) enum Opened {
    File(OpenFile),
    Directory,
    /// A FIFO, socket or device.
    Special,
}

/// The reason why nothing was opened.
#[derive(Debug)]
pub(crate) enum OpenError {
    /// There is no such name.
    Absent,
    /// The file may not be read, or is outside of the root.
    Refused(Errno),
    /// No descriptor or memory is left at the moment.
    Exhausted(Errno),
    /// The file system failed.
    Failed(Errno),
}

impl FilesRoot {
    pub(crate) fn open(path: &Path, follow_links: FollowLinks) -> Result<Self, FilesError> {
        let failed = |error| FilesError::Root { path: path.to_owned(), error };
        // The working directory may change later, so the path is made absolute.
        let path = std::path::absolute(path).map_err(failed)?;
        let (directory, identity) = open_directory(&path).map_err(|error| match error.kind() {
            io::ErrorKind::NotADirectory => FilesError::NotADirectory(path.clone()),
            _ => failed(error),
        })?;
        rustix::fs::openat2(&directory, ".", OPEN, Mode::empty(), RESOLVE)
            .map_err(|errno| FilesError::OpenAt2 { path: path.clone(), error: errno.into() })?;
        Ok(Self {
            path,
            follow_links,
            directory: RefCell::new(directory),
            identity: Cell::new(identity),
            checked: Cell::new(Instant::now()),
            directories: Directories::default(),
        })
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the directories that hold cached files.
    pub(crate) fn directories(&self) -> &Directories {
        &self.directories
    }

    /// Returns which links out of the root are followed.
    pub(crate) fn follow_links(&self) -> FollowLinks {
        self.follow_links
    }

    /// Returns the state of `name`, relative to the root, without opening it. A link is not
    /// followed, so its state is that of no file. Only the state is safe to use: the path may lead
    /// out of the root.
    pub(crate) fn state_of(&self, name: &[u8]) -> rustix::io::Result<FileState> {
        let stat = statat(&*self.directory.borrow(), name, AtFlags::SYMLINK_NOFOLLOW)?;
        Ok(FileState::of(&stat))
    }

    /// Reopens the root if another directory has taken its place. A build may have made it again,
    /// or a deployment may have changed the link. While there is none, the old one stays.
    pub(crate) fn follow_replacement(&self, now: Instant, validity: Duration) {
        if now.saturating_duration_since(self.checked.get()) < validity {
            return;
        }
        self.checked.set(now);
        let current =
            std::fs::metadata(&self.path).map(|metadata| (metadata.dev(), metadata.ino()));
        if current.is_ok_and(|identity| identity == self.identity.get()) {
            return;
        }
        if let Ok((directory, identity)) = open_directory(&self.path) {
            tracing::info!(root = %self.path.display(), "directory was replaced; serving the new one");
            self.directory.replace(directory);
            self.identity.set(identity);
        }
    }

    /// Opens `name`, relative to the root.
    pub(crate) fn open_beneath(&self, name: &[u8]) -> Result<Opened, OpenError> {
        let file = self.open_with(name, OPEN).map_err(OpenError::of)?;
        Opened::of(file.into()).map_err(|error| OpenError::of_io(&error))
    }

    /// Opens `name` with `flags`. Follows the links that the configuration allows.
    pub(crate) fn open_with(&self, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        OPEN_FILE.pass().map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        let directory = self.directory.borrow();
        let resolve = match self.follow_links {
            FollowLinks::Inside | FollowLinks::SameOwner => RESOLVE,
            FollowLinks::All => ResolveFlags::NO_MAGICLINKS,
        };
        let mut retries = RENAME_RETRIES;
        loop {
            match rustix::fs::openat2(&*directory, name, flags, Mode::empty(), resolve) {
                Err(Errno::AGAIN) if retries > 0 => retries -= 1,
                Err(Errno::INTR) => {}
                Err(Errno::XDEV) if self.follow_links == FollowLinks::SameOwner => {
                    return links::open_of_same_owner(
                        &*directory,
                        Path::new(OsStr::from_bytes(name)),
                        flags,
                    );
                }
                opened => return opened,
            }
        }
    }

    /// Describes for the log why `name` was refused.
    pub(crate) fn why_refused(&self, name: &[u8], error: Errno) -> String {
        let leaves = |name: &Path| {
            let directory = self.directory.borrow();
            let opened =
                rustix::fs::openat2(&*directory, name, OFlags::PATH, Mode::empty(), RESOLVE);
            opened.err() == Some(Errno::XDEV)
        };
        let name = Path::new(OsStr::from_bytes(name));
        let describe =
            |is_refused: &dyn Fn(&Path) -> bool| links::describe(&self.path, name, is_refused);
        let has_other_owner = |name: &Path| links::has_other_owner(&self.path.join(name));
        match (self.follow_links, error) {
            (FollowLinks::Inside, Errno::XDEV) => format!(
                "{}: it leads out of the directory; `follow_links = \"owner\"` on the route follows links whose owner owns the \
                 target, `follow_links = true` all",
                describe(&leaves).unwrap_or_default()
            ),
            (FollowLinks::SameOwner, Errno::PERM) => format!(
                "{}: `follow_links = \"owner\"` follows links only if the target has the same owner",
                describe(&has_other_owner).unwrap_or_default()
            ),
            _ => "it cannot be read, or is not a regular file".to_owned(),
        }
    }
}

impl Opened {
    /// Returns the kind of the open file.
    pub(crate) fn of(file: File) -> io::Result<Self> {
        let stat = fstat(&file)?;
        Ok(match FileType::from_raw_mode(stat.st_mode) {
            FileType::RegularFile => Opened::File(OpenFile { file, state: FileState::of(&stat) }),
            FileType::Directory => Opened::Directory,
            _ => Opened::Special,
        })
    }
}

impl FilesRoot {
    /// Opens the directory `name`, relative to the root, for a list.
    pub(crate) fn open_directory_beneath(&self, name: &[u8]) -> Result<OwnedFd, OpenError> {
        let name = if name.is_empty() { b"." } else { name };
        self.open_with(name, OPEN.union(OFlags::DIRECTORY)).map_err(OpenError::of)
    }
}

fn open_directory(path: &Path) -> io::Result<(OwnedFd, (u64, u64))> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let directory = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    let metadata = directory.metadata()?;
    Ok((directory.into(), (metadata.dev(), metadata.ino())))
}

impl OpenError {
    pub(crate) fn of_io(error: &io::Error) -> Self {
        Self::of(error.raw_os_error().map_or(Errno::IO, Errno::from_raw_os_error))
    }

    fn of(errno: Errno) -> Self {
        match errno {
            // INVAL: a name that this file system cannot have.
            Errno::NOENT | Errno::NOTDIR | Errno::NAMETOOLONG | Errno::INVAL => OpenError::Absent,
            // XDEV: it leads outside. LOOP: links in a circle, or a magic link. NXIO, NODEV: a
            // socket or device.
            Errno::ACCESS
            | Errno::PERM
            | Errno::XDEV
            | Errno::LOOP
            | Errno::NXIO
            | Errno::NODEV => OpenError::Refused(errno),
            Errno::MFILE | Errno::NFILE | Errno::NOMEM | Errno::AGAIN => {
                OpenError::Exhausted(errno)
            }
            _ => OpenError::Failed(errno),
        }
    }
}

impl FileState {
    /// Returns the present state of an open file or directory.
    pub(crate) fn of_open(file: impl AsFd) -> rustix::io::Result<Self> {
        Ok(Self::of(&fstat(file)?))
    }

    fn of(stat: &Stat) -> Self {
        let nanoseconds = |part| i64::try_from(part).unwrap_or_default();
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            size: u64::try_from(stat.st_size).unwrap_or_default(),
            modified: (stat.st_mtime, nanoseconds(stat.st_mtime_nsec)),
            changed: (stat.st_ctime, nanoseconds(stat.st_ctime_nsec)),
        }
    }

    /// Returns whether any change of the names in this directory after `read_at` is certain to have
    /// another time stamp than this. A name must not stay unseen, so this also holds for file
    /// systems whose time stamps have whole or even seconds.
    pub(crate) fn is_settled_for_names(&self, read_at: FileClock) -> bool {
        let last = nanoseconds(self.modified).max(nanoseconds(self.changed));
        nanoseconds(read_at.0) - last > NAMES_TICK.as_nanos() as i128
    }

    /// Returns whether any change after `read_at` is certain to have another time stamp than this.
    pub(crate) fn is_settled(&self, read_at: FileClock) -> bool {
        nanoseconds(read_at.0) - nanoseconds(self.modified) > TICK.as_nanos() as i128
    }

    /// Returns the same for a worker that sees only whole seconds.
    pub(crate) fn is_settled_in_seconds(&self, read_at: FileClock) -> bool {
        let (changed, _) = self.changed;
        nanoseconds(read_at.0) - nanoseconds((changed.saturating_add(1), 0))
            > TICK.as_nanos() as i128
    }
}

fn nanoseconds((seconds, rest): (i64, i64)) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(rest)
}

/// The clock of the kernel's time stamps on files, in seconds and nanoseconds since the epoch.
#[derive(Clone, Copy)]
pub(crate) struct FileClock((i64, i64));

impl FileClock {
    pub(crate) fn now() -> Self {
        let now = rustix::time::clock_gettime(rustix::time::ClockId::RealtimeCoarse);
        Self((now.tv_sec, now.tv_nsec))
    }

    /// Returns the whole seconds since the epoch.
    pub(crate) fn seconds(self) -> i64 {
        self.0.0
    }
}
