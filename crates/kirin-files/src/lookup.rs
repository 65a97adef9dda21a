//! Looks up a path in the file system.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Instant;

use kirin_compress::Coding;
use rustix::io::Errno;

use crate::config::{CacheLimits, FilesConfig, FollowLinks};
use crate::directory::{ChangeCount, Directory, MAX_CONFIRMED};
use crate::file_name::FileName;
use crate::found::{FileLookup, OpenedFile, StaticFile};
use crate::redirect::DirectoryRedirect;
use crate::representation::Representation;
use crate::root::{FilesRoot, OpenError, OpenFile, Opened};
use crate::variant_names::file_suffix;

/// A lookup at a moment.
pub(crate) struct Lookup<'a> {
    pub(crate) root: &'a FilesRoot,
    pub(crate) config: &'a FilesConfig,
    pub(crate) limits: &'a CacheLimits,
    pub(crate) now: Instant,
}

/// The name under which a file was opened, and what tells later that the name still leads to it.
pub(crate) struct OpenedName {
    name: Box<[u8]>,
    directory: Rc<Directory>,
    opened: Cell<OpenedAt>,
}

/// The moment of the last complete lookup of a file.
#[derive(Clone, Copy)]
struct OpenedAt {
    at: Instant,
    /// The change count of the directory before the lookup. `None` if an unchanged directory does
    /// not mean the same result.
    change_count: Option<ChangeCount>,
}

impl OpenedName {
    /// Returns the memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.name.len() + self.directory.bytes()
    }

    /// Returns whether `other` is the same name. Then takes the time of its lookup.
    pub(crate) fn takes(&self, other: &Self) -> bool {
        let is_same = self.name == other.name && Rc::ptr_eq(&self.directory, &other.directory);
        if is_same {
            self.opened.set(other.opened.get());
        }
        is_same
    }
}

impl Lookup<'_> {
    /// Looks up `path`. Keeps the known result (`previous`) if the file has not changed.
    pub(crate) fn look_up(
        &self,
        path: &FileName,
        previous: Option<&FileLookup>,
    ) -> Result<FileLookup, OpenError> {
        if let Some(FileLookup::File(file)) = previous
            && self.is_confirmed(file)
        {
            return Ok(FileLookup::File(Rc::clone(file)));
        }
        if path.directory {
            return match self.open_index(path)? {
                Some((name, original)) => self.read(name, original, previous),
                None => Ok(FileLookup::Absent),
            };
        }
        let directory = self.root.directories().of_file(&path.name);
        let change_count = self.change_count(&directory);
        match self.open(&path.name)? {
            Some(Opened::File(original)) => {
                let name = self.opened_name(path.name.clone(), directory, change_count);
                self.read(name, original, previous)
            }
            // Only a directory with an index page or a list belongs to this place, because a route
            // of an application may have the same name.
            Some(Opened::Directory) => Ok(match self.open_index(path)? {
                Some(_) => FileLookup::Redirect(Rc::new(DirectoryRedirect::to(path))),
                None => FileLookup::Absent,
            }),
            Some(Opened::Special) => Err(OpenError::Refused(Errno::NXIO)),
            None => Ok(FileLookup::Absent),
        }
    }

    /// Returns whether a complete lookup would find `file` again, by a look at its state only. A
    /// file behind a link is never confirmed.
    pub(crate) fn is_confirmed(&self, file: &StaticFile) -> bool {
        let OpenedName { name, directory, opened } = &file.name;
        let opened = opened.get();
        let has_state = |name: &[u8], file: &Representation| {
            self.root.state_of(name).is_ok_and(|state| file.file.is_still(&state))
        };
        opened.change_count.is_some()
            && self.now.saturating_duration_since(opened.at) < MAX_CONFIRMED
            && self.change_count(directory) == opened.change_count
            && has_state(name, file.original())
            && Coding::ALL.into_iter().all(|coding| match file.variant(coding) {
                Some(variant) => has_state(&[name, file_suffix(coding)].concat(), variant),
                None => true,
            })
    }

    /// Returns the change count of the names in `directory`. Returns `None` for the first lookup in
    /// a directory: many sites have one directory for each page, and only a page that is requested
    /// again needs the count. Also returns `None` if links depend on their owners, which each
    /// lookup must check.
    fn change_count(&self, directory: &Directory) -> Option<ChangeCount> {
        let depends_on_owners = self.root.follow_links() == FollowLinks::SameOwner;
        (!depends_on_owners && !directory.is_first_lookup())
            .then(|| directory.change_count(self.root, self.now, self.limits.validity))
    }

    /// Returns the first index file in the directory `path`, with its name.
    fn open_index(&self, path: &FileName) -> Result<Option<(OpenedName, OpenFile)>, OpenError> {
        let mut in_directory = path.name.clone();
        if !in_directory.is_empty() {
            in_directory.push(b'/');
        }
        let directory = self.root.directories().of_file(&in_directory);
        let mut change_count = self.change_count(&directory);
        for index in &self.config.index {
            let name = [&in_directory, index.as_bytes()].concat();
            match self.open(&name)? {
                Some(Opened::File(file)) => {
                    return Ok(Some((self.opened_name(name, directory, change_count), file)));
                }
                Some(Opened::Special) => return Err(OpenError::Refused(Errno::NXIO)),
                Some(Opened::Directory) => change_count = None,
                None if self.has_name(&name) => change_count = None,
                None => {}
            }
        }
        Ok(None)
    }

    fn opened_name(
        &self,
        name: Vec<u8>,
        directory: Rc<Directory>,
        change_count: Option<ChangeCount>,
    ) -> OpenedName {
        let opened = Cell::new(OpenedAt { at: self.now, change_count });
        OpenedName { name: name.into(), directory, opened }
    }

    /// Reads the file and the variants beside it.
    fn read(
        &self,
        name: OpenedName,
        original: OpenFile,
        previous: Option<&FileLookup>,
    ) -> Result<FileLookup, OpenError> {
        let mut variants = [None, None, None];
        // A file that is requested by the name of a variant is an original, and seldom has its own
        // variants.
        let is_variant = Coding::ALL.iter().any(|coding| name.name.ends_with(file_suffix(*coding)));
        if self.config.precompressed && !is_variant && !self.is_without_variants(&name) {
            for (variant, coding) in variants.iter_mut().zip(Coding::ALL) {
                *variant = self.open_variant(&name, coding, &original)?;
            }
        }
        let content_type = self.config.media_types.content_type(&name.name);
        let opened = OpenedFile { name, content_type, original, variants };
        if let Some(FileLookup::File(file)) = previous
            && file.is_unchanged(&opened)
        {
            return Ok(FileLookup::File(Rc::clone(file)));
        }
        match StaticFile::read(opened, self.config, self.limits.small_file_bytes) {
            Ok(file) => Ok(FileLookup::File(Rc::new(file))),
            Err(error) => Err(OpenError::of_io(&error)),
        }
    }

    /// Returns whether the directory of `name` is known to have no variants. Then the lookup counts
    /// as one of the moment when the names in the directory were read.
    fn is_without_variants(&self, name: &OpenedName) -> bool {
        let opened = name.opened.get();
        let since = opened.change_count.and_then(|change_count| {
            name.directory.without_variants_since(self.root, change_count, self.now)
        });
        if let Some(at) = since {
            name.opened.set(OpenedAt { at, ..opened });
        }
        since.is_some()
    }

    /// Returns the variant of `name` in `coding`, unless it is older than the file. An older one
    /// was not updated when the file changed.
    fn open_variant(
        &self,
        name: &OpenedName,
        coding: Coding,
        original: &OpenFile,
    ) -> Result<Option<OpenFile>, OpenError> {
        let variant_name = [&name.name, file_suffix(coding)].concat();
        if !self.has_name(&variant_name) {
            return Ok(None);
        }
        match self.root.open_beneath(&variant_name) {
            Ok(Opened::File(variant))
                if is_current(variant.state.modified, original.state.modified) =>
            {
                Ok(Some(variant))
            }
            Err(error @ OpenError::Exhausted(_)) => Err(error),
            // Any other error is no reason not to send the original. But what is wrong with the
            // variant may end without a change of the directory.
            Ok(_) | Err(_) => {
                name.opened.set(OpenedAt { change_count: None, ..name.opened.get() });
                Ok(None)
            }
        }
    }

    /// Returns whether the directory of `name` has such a name, even if it leads to no file.
    fn has_name(&self, name: &[u8]) -> bool {
        !matches!(self.root.state_of(name), Err(Errno::NOENT | Errno::NAMETOOLONG))
    }

    /// Returns `None` for a missing file.
    fn open(&self, name: &[u8]) -> Result<Option<Opened>, OpenError> {
        match self.root.open_beneath(name) {
            Ok(opened) => Ok(Some(opened)),
            Err(OpenError::Absent) => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// Returns whether a variant with this time was made of the original with that one, both in seconds
/// and nanoseconds. Some programs (brotli 1.0.9) give the variant the time of the file without the
/// nanoseconds.
fn is_current(variant: (i64, i64), original: (i64, i64)) -> bool {
    variant >= original || variant == (original.0, 0)
}
