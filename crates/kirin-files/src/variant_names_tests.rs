//! Against real directories. Time is an argument, so nothing sleeps.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use tempfile::TempDir;

use super::*;
use crate::config::FollowLinks;
use crate::directory::Directory;

const SECOND: Duration = Duration::from_secs(1);

struct Site {
    outer: TempDir,
    root: FilesRoot,
    directory: Rc<Directory>,
}

impl Site {
    fn new() -> Self {
        let outer = tempfile::tempdir().unwrap();
        fs::create_dir(outer.path().join("d")).unwrap();
        let root = FilesRoot::open(outer.path(), FollowLinks::Inside).unwrap();
        let directory = root.directories().of_file(b"d/file");
        Self { outer, root, directory }
    }

    fn write(&self, name: impl AsRef<Path>) {
        fs::write(self.outer.path().join("d").join(name), "").unwrap();
    }

    /// Looks up a file at `now`.
    fn ask(&self, now: Instant) -> Option<Instant> {
        let change_count = self.directory.change_count(&self.root, now, SECOND);
        self.directory.without_variants_since(&self.root, change_count, now)
    }

    /// Looks up files until the names have been read.
    fn read(&self, now: Instant) -> Option<Instant> {
        for lookup in 0..READ_AFTER {
            assert_eq!(self.ask(now), None, "{lookup}");
        }
        self.ask(now)
    }
}

#[test]
fn a_directory_without_variants_is_known_after_some_lookups() {
    let (site, now) = (Site::new(), Instant::now());
    for name in ["a.html", "a.brr", "gz", "zst", "a.b.r", "br.html", ".hidden"] {
        site.write(name);
    }
    assert_eq!(site.read(now), Some(now));
    let later = now + SECOND / 2;
    assert_eq!(site.ask(later), Some(now));
    // Seen at the next look at the directory.
    site.write("a.html.br");
    assert_eq!(site.ask(later), Some(now));
    assert_eq!(site.read(now + SECOND), None);
}

#[test]
fn a_directory_with_a_name_of_a_variant_is_unknown() {
    for name in ["a.br", "a.zst", "a.gz", "b.GZ", ".hidden.br", "\u{e9}.zst", ".br"] {
        let (site, now) = (Site::new(), Instant::now());
        site.write(name);
        assert_eq!(site.read(now), None, "{name}");
        assert_eq!(site.ask(now), None, "{name}");
    }
    let (site, now) = (Site::new(), Instant::now());
    symlink("nowhere", site.outer.path().join("d/a.br")).unwrap();
    assert_eq!(site.read(now), None);
}

#[test]
fn a_directory_that_is_too_large_or_cannot_be_read_is_unknown() {
    let (site, now) = (Site::new(), Instant::now());
    // With `.` and `..`.
    for n in 2..MAX_NAMES {
        site.write(n.to_string());
    }
    assert_eq!(site.read(now), Some(now));
    site.write("one more");
    assert_eq!(site.read(now + SECOND), None);

    let site = Site::new();
    fs::remove_dir(site.outer.path().join("d")).unwrap();
    assert_eq!(site.read(now), None);
    fs::write(site.outer.path().join("d"), "a file").unwrap();
    assert_eq!(site.read(now + SECOND), None);
}

#[test]
fn names_are_read_again_after_a_minute_even_if_the_directory_looks_unchanged() {
    // The time of its metadata cannot be set, so the directory must be old by itself.
    let root = FilesRoot::open("/".as_ref(), FollowLinks::All).unwrap();
    let directory = root.directories().of_file(b"usr/file");
    let start = Instant::now();
    let ask = |now| {
        let change_count = directory.change_count(&root, now, SECOND);
        directory.without_variants_since(&root, change_count, now)
    };
    for _ in 0..READ_AFTER {
        assert_eq!(ask(start), None);
    }
    assert_eq!(ask(start), Some(start));
    assert_eq!(ask(start + 59 * SECOND), Some(start));
    assert_eq!(ask(start + 60 * SECOND), None);
}
