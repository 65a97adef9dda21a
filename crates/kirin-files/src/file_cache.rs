//! What all `files:DIR` places of one event loop share: the open-file cache, and the roots. So the
//! limits hold for any number of routes, and routes with the same directory open it once.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::config::{CacheLimits, FilesError, FollowLinks};
use crate::found::FileLookup;
use crate::open_file_cache::{OpenFileCache, PlaceId};
use crate::root::FilesRoot;

/// The open-file cache of one event loop.
pub struct FileCache {
    limits: CacheLimits,
    pub(crate) found: RefCell<OpenFileCache<FileLookup>>,
    roots: RefCell<HashMap<(PathBuf, FollowLinks), Rc<FilesRoot>>>,
    places: Cell<u32>,
}

impl FileCache {
    /// Makes an empty cache.
    pub fn new(limits: CacheLimits) -> Self {
        Self {
            limits,
            found: RefCell::new(OpenFileCache::new(&limits)),
            roots: RefCell::default(),
            places: Cell::default(),
        }
    }

    pub(crate) fn limits(&self) -> &CacheLimits {
        &self.limits
    }

    /// Returns a number for a new place.
    pub(crate) fn next_place(&self) -> PlaceId {
        let place = self.places.get();
        self.places.set(place + 1);
        PlaceId(place)
    }

    /// Opens the directory `path`, unless another place has it open.
    pub(crate) fn root(
        &self,
        path: &Path,
        follow_links: FollowLinks,
    ) -> Result<Rc<FilesRoot>, FilesError> {
        let key = (path.to_owned(), follow_links);
        if let Some(root) = self.roots.borrow().get(&key) {
            return Ok(Rc::clone(root));
        }
        let root = Rc::new(FilesRoot::open(path, follow_links)?);
        self.roots.borrow_mut().insert(key, Rc::clone(&root));
        Ok(root)
    }
}
