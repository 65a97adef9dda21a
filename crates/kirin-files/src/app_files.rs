//! Files that applications hand back for the front to send.
//!
//! The application has opened the file, so it may be sent. But the file at the path may no longer
//! be the file that the application has opened. So the worker reports the `fstat` of its handle,
//! and the front compares. A worker sees only whole seconds. So a file that was changed within the
//! last one or two seconds is read again for each request.

use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::rc::Rc;
use std::time::Instant;

use rustix::fs::Mode;

use crate::config::CacheLimits;
use crate::entity_tag::EntityTag;
use crate::open_file_cache::{Cacheable, Known, OpenFileCache, PlaceId};
use crate::read_file::ReadFile;
use crate::root::{FileClock, FileState, OPEN, OpenFile, Opened};

/// The files of all applications on one event loop.
pub struct AppFiles {
    cache: RefCell<OpenFileCache<Rc<AppFile>>>,
    small_file_bytes: usize,
}

/// All applications share one cache.
const PLACE: PlaceId = PlaceId(0);

/// The state of a file as a worker sees it after the application has opened it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SeenFile {
    /// Number of the device.
    pub device: u64,
    /// Number of the inode.
    pub inode: u64,
    /// Size in bytes.
    pub size: u64,
    /// Last change of the contents, in seconds since the epoch.
    pub modified: i64,
    /// Last change of the contents or the metadata, in seconds since the epoch.
    pub changed: i64,
}

/// A file that an application has handed back.
pub struct AppFile {
    pub(crate) file: ReadFile,
    pub(crate) entity_tag: EntityTag,
}

/// The reason why the front cannot send the file that the application has opened.
#[derive(Debug, thiserror::Error)]
pub enum NotThatFile {
    /// The file cannot be opened or read.
    #[error("{0}")]
    Unreadable(#[from] io::Error),
    /// The path has another file, or another state of the file.
    #[error(
        "the file at this path is not the one that the application has opened, or has changed since"
    )]
    Another,
    /// The worker runs as another user than the front, who may have fewer rights.
    #[error("the worker runs as another user than Kirin")]
    AnotherUser,
}

impl Default for AppFiles {
    fn default() -> Self {
        Self::new(&CacheLimits::default())
    }
}

impl AppFiles {
    /// Makes an empty cache.
    pub fn new(limits: &CacheLimits) -> Self {
        let cache = RefCell::new(OpenFileCache::new(limits));
        Self { cache, small_file_bytes: limits.small_file_bytes }
    }

    /// Returns the file at `path`, which an application has open in the state `seen`.
    pub fn opened(
        &self,
        path: &Path,
        seen: &SeenFile,
        now: Instant,
    ) -> Result<Rc<AppFile>, NotThatFile> {
        let previous = match self.cache.borrow_mut().get(PLACE, path.as_os_str().as_bytes(), now) {
            Some(Known::Fresh(file)) if file.is_seen(seen) => return Ok(file),
            Some(Known::Fresh(file) | Known::Stale(file)) => Some(file),
            None => None,
        };
        let looked_at = FileClock::now();
        let file = rustix::fs::open(path, OPEN, Mode::empty()).map_err(io::Error::from)?;
        let Opened::File(open) = Opened::of(file.into())? else { return Err(NotThatFile::Another) };
        if !open.state.is_seen(seen) {
            return Err(NotThatFile::Another);
        }
        let file = self.keep(path, open, previous, looked_at, now)?;
        if file.file.state().is_seen(seen) { Ok(file) } else { Err(NotThatFile::Another) }
    }

    /// Returns the file at `path`, which an application has named and the caller has opened.
    /// Returns `None` if it is not a regular file.
    pub fn named(&self, path: &Path, file: File, now: Instant) -> io::Result<Option<Rc<AppFile>>> {
        let previous = match self.cache.borrow_mut().get(PLACE, path.as_os_str().as_bytes(), now) {
            Some(Known::Fresh(file) | Known::Stale(file)) => Some(file),
            None => None,
        };
        let looked_at = FileClock::now();
        match Opened::of(file)? {
            Opened::File(open) => self.keep(path, open, previous, looked_at, now).map(Some),
            Opened::Directory | Opened::Special => Ok(None),
        }
    }

    /// Reads the opened file, unless the result would equal the previous one.
    fn keep(
        &self,
        path: &Path,
        open: OpenFile,
        previous: Option<Rc<AppFile>>,
        looked_at: FileClock,
        now: Instant,
    ) -> io::Result<Rc<AppFile>> {
        let file = match previous {
            Some(previous) if previous.file.is_still(&open.state) => {
                previous.file.confirm(looked_at);
                previous
            }
            _ => Rc::new(AppFile::read(open, self.small_file_bytes)?),
        };
        let bytes = path.as_os_str().as_bytes();
        self.cache.borrow_mut().put(PLACE, bytes, Rc::clone(&file), now);
        Ok(file)
    }
}

impl AppFile {
    fn read(open: OpenFile, small_file_bytes: usize) -> io::Result<Self> {
        let file = ReadFile::of(open, small_file_bytes)?;
        let entity_tag = EntityTag::of(file.state(), file.is_settled(), None);
        Ok(Self { file, entity_tag })
    }

    /// Returns whether these are the contents of the file that a worker has just seen.
    fn is_seen(&self, seen: &SeenFile) -> bool {
        let state = self.file.state();
        state.is_settled_in_seconds(self.file.read_at()) && state.is_seen(seen)
    }
}

impl FileState {
    fn is_seen(&self, seen: &SeenFile) -> bool {
        let (modified, changed) = (self.modified.0, self.changed.0);
        *seen
            == SeenFile {
                device: self.device,
                inode: self.inode,
                size: self.size,
                modified,
                changed,
            }
    }
}

impl Cacheable for Rc<AppFile> {
    fn bytes(&self) -> usize {
        size_of::<AppFile>() + self.file.contents_bytes()
    }

    fn descriptors(&self) -> usize {
        usize::from(self.file.holds_descriptor())
    }

    fn is_absence(&self) -> bool {
        false
    }
}

#[cfg(test)]
#[path = "app_files_tests.rs"]
mod tests;
