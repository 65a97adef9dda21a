//! The place itself: it asks the cache, then the file system, and answers.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use http::StatusCode;
use kirin_http::{RequestHead, Response};

use crate::config::{FilesConfig, FilesError};
use crate::file_cache::FileCache;
use crate::file_name::FileName;
use crate::found::FileLookup;
use crate::listing;
use crate::lookup::Lookup;
use crate::open_file_cache::{Known, PlaceId};
use crate::respond::refusal;
use crate::root::{FilesRoot, OpenError};

/// The shortest time between two log lines about missing descriptors.
const EXHAUSTION_LOG_INTERVAL: Duration = Duration::from_secs(1);

/// One `files:DIR` place on one event loop.
pub struct Files {
    config: FilesConfig,
    root: Rc<FilesRoot>,
    cache: Rc<FileCache>,
    id: PlaceId,
    /// Keeps the entries of the place in the cache.
    _in_use: Rc<()>,
    /// The number of variants that threads are making.
    underway: Rc<Cell<usize>>,
    exhaustion_logged: Cell<Option<Instant>>,
}

impl Files {
    /// Opens the directory and checks the configuration. `cache` is the one of the event loop.
    pub fn open(config: FilesConfig, cache: &Rc<FileCache>) -> Result<Self, FilesError> {
        if let Some(name) = config.index.iter().find(|name| !FilesConfig::is_index_name(name)) {
            return Err(FilesError::IndexName(name.clone()));
        }
        let root = cache.root(&config.root, config.follow_links)?;
        let (id, in_use) = cache.place(&config);
        Ok(Self {
            config,
            root,
            cache: Rc::clone(cache),
            id,
            _in_use: in_use,
            underway: Rc::default(),
            exhaustion_logged: Cell::new(None),
        })
    }

    pub(crate) fn cache(&self) -> &Rc<FileCache> {
        &self.cache
    }

    pub(crate) fn id(&self) -> PlaceId {
        self.id
    }

    pub(crate) fn underway(&self) -> &Rc<Cell<usize>> {
        &self.underway
    }

    /// Answers `request`. Returns `None` if the next place must answer it, as for every method but
    /// GET and HEAD (see [`Files::has`]). Call this on an event loop if files are to be compressed.
    pub fn answer(&self, request: &RequestHead<'_>, now: Instant) -> Option<Response> {
        if !request.is_get_or_head() {
            return None;
        }
        match self.find(request.path, now) {
            Ok(FileLookup::File(file)) => Some(self.respond(&file, request)),
            Ok(FileLookup::Redirect(redirect)) => Some(redirect.respond(request.query)),
            Ok(FileLookup::Absent) if self.config.listing => listing::answer(&self.root, request),
            Ok(FileLookup::Absent) => None,
            Ok(FileLookup::Refused) => Some(refusal(StatusCode::FORBIDDEN)),
            Err(status) => Some(refusal(status)),
        }
    }

    /// Returns whether a GET of this path would be answered with a file or a redirect. If no place
    /// answered a request with another method, this decides between 404 and 405.
    pub fn has(&self, request: &RequestHead<'_>, now: Instant) -> bool {
        match self.find(request.path, now) {
            Ok(FileLookup::File(_) | FileLookup::Redirect(_)) => true,
            Ok(FileLookup::Absent) => {
                self.config.listing && listing::answer(&self.root, request).is_some()
            }
            _ => false,
        }
    }

    /// Returns what `path` leads to, or the status code of a refusal that the cache does not keep.
    fn find(&self, path: &str, now: Instant) -> Result<FileLookup, StatusCode> {
        let mut known = self.cache.found.borrow_mut().get(self.id, path.as_bytes(), now);
        if let Some(Known::Fresh(found)) = known {
            return Ok(found);
        }
        let name = match FileName::parse(path) {
            Ok(name) if name.is_hidden() => return Ok(FileLookup::Absent),
            Ok(name) => name,
            Err(no_file) => return no_file.refusal().map_or(Ok(FileLookup::Absent), Err),
        };
        let key = name.cache_key(path);
        if known.is_none() && *key != *path {
            known = self.cache.found.borrow_mut().get(self.id, key.as_bytes(), now);
        }
        let previous = match known {
            Some(Known::Fresh(found)) => return Ok(found),
            Some(Known::Stale(found)) => Some(found),
            None => None,
        };
        self.root.follow_replacement(now, self.cache.limits().validity);
        let found = match self.lookup(now).look_up(&name, previous.as_ref()) {
            Ok(found) => found,
            Err(OpenError::Absent) => FileLookup::Absent,
            Err(OpenError::Refused(error)) => {
                let (root, why) =
                    (self.root.path().display(), self.root.why_refused(&name.name, error));
                tracing::warn!(%root, path, %error, "refused: {why}");
                FileLookup::Refused
            }
            Err(OpenError::Exhausted(error)) => {
                self.log_exhaustion(&error, now);
                // An old entry is better than nothing.
                return previous.ok_or(StatusCode::SERVICE_UNAVAILABLE);
            }
            Err(OpenError::Failed(error)) => {
                tracing::error!(root = %self.root.path().display(), path, %error, "file cannot be read");
                return Err(StatusCode::INTERNAL_SERVER_ERROR);
            }
        };
        self.cache.found.borrow_mut().put(self.id, key.as_bytes(), found.clone(), now);
        Ok(found)
    }

    pub(crate) fn lookup(&self, now: Instant) -> Lookup<'_> {
        Lookup { root: &self.root, config: &self.config, limits: self.cache.limits(), now }
    }

    fn log_exhaustion(&self, error: &rustix::io::Errno, now: Instant) {
        let last = self.exhaustion_logged.get();
        if last.is_none_or(|last| now.saturating_duration_since(last) >= EXHAUSTION_LOG_INTERVAL) {
            self.exhaustion_logged.set(Some(now));
            let root = self.root.path().display();
            tracing::warn!(%root, %error, "files cannot be opened; raise `ulimit -n` or lower the connection limit");
        }
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
