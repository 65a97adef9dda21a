//! Directories that hold cached files. As long as a directory is unchanged, the same names exist in
//! it. So one look at the directory tells for all of its files that no variant and no earlier index
//! page has been added, and that no name leads elsewhere.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use foldhash::fast::RandomState;
use hashbrown::HashMap;
use rustix::fs::OFlags;

use crate::root::{FileClock, FileState, FilesRoot};
use crate::variant_names::VariantNames;

/// The longest time after which a file is opened again, even if it looks unchanged. Some network
/// file systems do not change the time of a directory when a name is added.
pub(crate) const MAX_CONFIRMED: Duration = Duration::from_secs(60);

/// The least number of directories after which those without cached files are forgotten.
const MIN_FORGET: usize = 64;

/// A directory with cached files, or with files that were looked up lately.
pub(crate) struct Directory {
    name: Box<[u8]>,
    has_lookups: Cell<bool>,
    seen: Cell<Option<SeenDirectory>>,
    variant_names: VariantNames,
}

/// The last look at a directory.
#[derive(Clone, Copy)]
struct SeenDirectory {
    state: Option<FileState>,
    /// Whether an equal state later means equal names.
    is_settled: bool,
    at: Instant,
    change_count: ChangeCount,
}

/// The number of changes of a directory that were seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangeCount(u64);

/// The directories of a root.
#[derive(Default)]
pub(crate) struct Directories {
    by_name: RefCell<HashMap<Box<[u8]>, Rc<Directory>, RandomState>>,
    /// The number of directories at which those without cached files are forgotten next.
    forget_at: Cell<usize>,
}

impl Directories {
    /// Returns the directory that holds `file`, both relative to the root.
    pub(crate) fn of_file(&self, file: &[u8]) -> Rc<Directory> {
        let name = match file.iter().rposition(|byte| *byte == b'/') {
            Some(slash) => &file[..slash],
            None => b".",
        };
        let mut by_name = self.by_name.borrow_mut();
        if let Some(directory) = by_name.get(name) {
            return Rc::clone(directory);
        }
        if by_name.len() >= self.forget_at.get().max(MIN_FORGET) {
            by_name.retain(|_, directory| Rc::strong_count(directory) > 1);
            self.forget_at.set(2 * by_name.len());
        }
        let directory = Rc::new(Directory {
            name: name.into(),
            has_lookups: Cell::default(),
            seen: Cell::default(),
            variant_names: VariantNames::default(),
        });
        by_name.insert(name.into(), Rc::clone(&directory));
        directory
    }
}

impl Directory {
    /// Returns the memory in bytes, with that of the entry in [`Directories`].
    pub(crate) fn bytes(&self) -> usize {
        size_of::<Self>() + 2 * self.name.len()
    }

    /// Returns whether this is the first lookup of a file in this directory.
    pub(crate) fn is_first_lookup(&self) -> bool {
        !self.has_lookups.replace(true)
    }

    /// Returns the change count of the names in this directory. Looks at the directory if the last
    /// look is older than `validity`. A directory that has changed lately, or cannot be opened,
    /// gets a new change count with each look.
    pub(crate) fn change_count(
        &self,
        root: &FilesRoot,
        now: Instant,
        validity: Duration,
    ) -> ChangeCount {
        let last = self.seen.get();
        if let Some(last) = last
            && now.saturating_duration_since(last.at) < validity
        {
            return last.change_count;
        }
        let looked_at = FileClock::now();
        let state = self.state(root);
        let change_count = match last {
            Some(last) if last.is_settled && last.state == state => last.change_count,
            Some(last) => ChangeCount(last.change_count.0.wrapping_add(1)),
            None => ChangeCount(0),
        };
        let is_settled = state.is_some_and(|state| state.is_settled_for_names(looked_at));
        self.seen.set(Some(SeenDirectory { state, is_settled, at: now, change_count }));
        change_count
    }

    /// Returns since when no file in this directory has a variant beside it, as far as that is
    /// known. `change_count` is the one of the lookup.
    pub(crate) fn without_variants_since(
        &self,
        root: &FilesRoot,
        change_count: ChangeCount,
        now: Instant,
    ) -> Option<Instant> {
        self.variant_names.absent_since(root, &self.name, change_count, now)
    }

    fn state(&self, root: &FilesRoot) -> Option<FileState> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        FileState::of_open(root.open_with(&self.name, flags).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::FollowLinks;
    use std::fs::{self, File};
    use std::os::unix::fs::symlink;
    use std::time::SystemTime;

    const SECOND: Duration = Duration::from_secs(1);

    /// Sets the time of the last change of the names in `path` into the past. The time of the last
    /// change of its metadata stays.
    fn age(path: &std::path::Path) {
        let time = SystemTime::now() - Duration::from_secs(3600);
        File::open(path).unwrap().set_modified(time).unwrap();
    }

    #[test]
    fn a_new_name_is_noticed_as_a_change_after_the_validity_time() {
        let outer = tempfile::tempdir().unwrap();
        fs::create_dir(outer.path().join("d")).unwrap();
        let root = FilesRoot::open(outer.path(), FollowLinks::Inside).unwrap();
        let directory = root.directories().of_file(b"d/file");
        assert!(Rc::ptr_eq(&directory, &root.directories().of_file(b"d/other")));
        assert!(!Rc::ptr_eq(&directory, &root.directories().of_file(b"file")));
        let start = Instant::now();
        let first = directory.change_count(&root, start, SECOND);
        fs::write(outer.path().join("d/new"), "x").unwrap();
        let just_before = start + Duration::from_millis(999);
        assert_eq!(directory.change_count(&root, just_before, SECOND), first);
        let second = directory.change_count(&root, start + SECOND, SECOND);
        assert_ne!(second, first);
        // It was changed a moment ago. Another change could have the same time.
        assert_ne!(directory.change_count(&root, start + 2 * SECOND, SECOND), second);
    }

    #[test]
    fn the_count_grows_only_if_the_directory_changes_or_is_replaced() {
        let outer = tempfile::tempdir().unwrap();
        // The time of its metadata cannot be set, so the directory must be old by itself.
        let root = FilesRoot::open("/".as_ref(), FollowLinks::All).unwrap();
        let directory = root.directories().of_file(b"usr/file");
        let start = Instant::now();
        let first = directory.change_count(&root, start, SECOND);
        for seconds in 1..5 {
            let later = start + seconds * SECOND;
            assert_eq!(directory.change_count(&root, later, SECOND), first);
        }
        fs::create_dir(outer.path().join("old")).unwrap();
        symlink("old", outer.path().join("d")).unwrap();
        age(&outer.path().join("old"));
        let root = FilesRoot::open(outer.path(), FollowLinks::Inside).unwrap();
        let directory = root.directories().of_file(b"d/file");
        let first = directory.change_count(&root, start, SECOND);
        fs::remove_file(outer.path().join("d")).unwrap();
        symlink("/usr", outer.path().join("d")).unwrap();
        assert_ne!(directory.change_count(&root, start + SECOND, SECOND), first);
    }

    #[test]
    fn directories_without_files_in_the_cache_are_forgotten() {
        let outer = tempfile::tempdir().unwrap();
        let root = FilesRoot::open(outer.path(), FollowLinks::Inside).unwrap();
        let kept = root.directories().of_file(b"kept/file");
        for n in 0..10_000 {
            root.directories().of_file(format!("{n}/file").as_bytes());
        }
        assert!(Rc::ptr_eq(&kept, &root.directories().of_file(b"kept/other")));
        assert!(root.directories().by_name.borrow().len() <= 2 * MIN_FORGET);
    }
}
