//! What all `files:DIR` places of one event loop share: the open-file cache, and the roots. So the
//! limits hold for any number of routes, and routes with the same directory open it once.

use std::cell::{Cell, RefCell};
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::rc::{Rc, Weak};

use crate::config::{CacheLimits, FilesConfig, FilesError, FollowLinks};
use crate::found::{FileLookup, StaticFile};
use crate::open_file_cache::{OpenFileCache, PlaceId};
use crate::root::FilesRoot;

/// The open-file cache of one event loop.
pub struct FileCache {
    limits: CacheLimits,
    pub(crate) found: RefCell<OpenFileCache<FileLookup>>,
    roots: RefCell<HashMap<(PathBuf, FollowLinks), Weak<FilesRoot>>>,
    /// The places, by their directories.
    places: RefCell<HashMap<PathBuf, Vec<KnownPlace>>>,
    next_place: Cell<u32>,
}

/// A place that has entries in the cache.
struct KnownPlace {
    config: FilesConfig,
    id: PlaceId,
    in_use: Weak<()>,
}

impl FileCache {
    /// Makes an empty cache.
    pub fn new(limits: CacheLimits) -> Self {
        Self {
            limits,
            found: RefCell::new(OpenFileCache::new(&limits)),
            roots: RefCell::default(),
            places: RefCell::default(),
            next_place: Cell::default(),
        }
    }

    /// Returns its limits.
    pub fn limits(&self) -> &CacheLimits {
        &self.limits
    }

    /// Returns the number of a place with these settings, and what says that it is in use. Places
    /// with the same settings have one number, so that they share their entries: also one of
    /// another configuration.
    pub(crate) fn place(&self, config: &FilesConfig) -> (PlaceId, Rc<()>) {
        let mut places = self.places.borrow_mut();
        let of_directory = places.entry(config.root.clone()).or_default();
        let mut same = of_directory.iter().filter(|known| known.config == *config);
        if let Some(place) = same.find_map(|known| Some((known.id, known.in_use.upgrade()?))) {
            return place;
        }
        let id = PlaceId(self.next_place.get());
        self.next_place.set(id.0 + 1);
        let in_use = Rc::new(());
        let known = KnownPlace { config: config.clone(), id, in_use: Rc::downgrade(&in_use) };
        of_directory.push(known);
        (id, in_use)
    }

    /// Returns whether `file` is in the cache at `path`, which is a cache key.
    pub(crate) fn keeps(&self, place: PlaceId, path: &str, file: &Rc<StaticFile>) -> bool {
        let found = self.found.borrow();
        let known = found.peek(place, path.as_bytes());
        matches!(known, Some(FileLookup::File(kept)) if Rc::ptr_eq(kept, file))
    }

    /// Drops the entries of places that are gone, and their directories.
    pub fn forget_gone_places(&self) {
        let mut places = self.places.borrow_mut();
        let mut used = HashSet::new();
        places.retain(|_, of_directory| {
            of_directory.retain(|known| known.in_use.strong_count() > 0);
            used.extend(of_directory.iter().map(|known| known.id));
            !of_directory.is_empty()
        });
        self.roots.borrow_mut().retain(|_, root| root.strong_count() > 0);
        self.found.borrow_mut().retain_places(|place| used.contains(&place));
    }

    /// Opens the directory `path`, unless another place has it open.
    pub(crate) fn root(
        &self,
        path: &Path,
        follow_links: FollowLinks,
    ) -> Result<Rc<FilesRoot>, FilesError> {
        let key = (path.to_owned(), follow_links);
        if let Some(root) = self.roots.borrow().get(&key).and_then(Weak::upgrade) {
            return Ok(root);
        }
        let root = Rc::new(FilesRoot::open(path, follow_links)?);
        self.roots.borrow_mut().insert(key, Rc::downgrade(&root));
        Ok(root)
    }
}
