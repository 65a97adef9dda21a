//! Tests of the files that an application hands over.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use http::StatusCode;
use kirin_http::RequestFields;
use kirin_http::{Body, FieldLines};

use super::*;

struct Place {
    directory: tempfile::TempDir,
    files: AppFiles,
    now: Instant,
}

impl Place {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            files: AppFiles::default(),
            now: Instant::now(),
        }
    }

    fn write(&self, name: &str, contents: &str) -> PathBuf {
        let path = self.directory.path().join(name);
        fs::write(&path, contents).unwrap();
        path
    }

    fn body(&self, path: &Path, seen: &SeenFile) -> Result<Vec<u8>, NotThatFile> {
        let file = self.files.opened(path, seen, self.now)?;
        let response = file.respond(FieldLines::new(), &RequestFields::default(), false);
        match response.body {
            Body::Bytes(bytes) => Ok(bytes.to_vec()),
            body => panic!("{body:?}"),
        }
    }
}

/// Returns the file as a worker sees it.
fn look(path: &Path) -> SeenFile {
    let metadata = fs::metadata(path).unwrap();
    SeenFile {
        device: metadata.dev(),
        inode: metadata.ino(),
        size: metadata.size(),
        modified: metadata.mtime(),
        changed: metadata.ctime(),
    }
}

#[test]
fn only_the_file_that_the_application_has_open_is_sent() {
    let place = Place::new();
    let path = place.write("file", "hello");
    let seen = look(&path);
    assert_eq!(place.body(&path, &seen).unwrap(), b"hello");
    for other in [
        SeenFile { device: seen.device + 1, ..seen },
        SeenFile { inode: seen.inode + 1, ..seen },
        SeenFile { size: seen.size + 1, ..seen },
        SeenFile { modified: seen.modified + 1, ..seen },
        SeenFile { changed: seen.changed + 1, ..seen },
    ] {
        let found = place.files.opened(&path, &other, place.now);
        assert!(matches!(found, Err(NotThatFile::Another)), "{other:?}");
    }
    let directory = place.directory.path();
    let found = place.files.opened(directory, &look(directory), place.now);
    assert!(matches!(found, Err(NotThatFile::Another)));
    fs::remove_file(&path).unwrap();
    let others = Place { files: AppFiles::default(), ..place };
    assert!(matches!(others.body(&path, &seen), Err(NotThatFile::Unreadable(_))));
}

#[test]
fn a_file_that_may_change_within_a_second_is_read_for_each_request() {
    let place = Place::new();
    // Most of these are written within one second, and all are of one size.
    for round in 0..200 {
        let contents = format!("{round:03}");
        let path = place.write("file", &contents);
        assert_eq!(place.body(&path, &look(&path)).unwrap(), contents.as_bytes());
    }
}

#[test]
fn a_settled_file_is_not_opened_again_within_the_validity_time() {
    let mut place = Place::new();
    let path = place.write("file", "hello");
    let seen = look(&path);
    let started = Instant::now();
    // Until a look is worth something to somebody who sees whole seconds.
    let given = loop {
        let file = place.files.opened(&path, &seen, place.now).unwrap();
        if file.is_seen(&seen) {
            break file;
        }
        assert!(started.elapsed() < Duration::from_secs(30), "the file does not settle");
        std::thread::sleep(Duration::from_millis(20));
        place.now = Instant::now();
    };
    fs::rename(&path, path.with_extension("moved")).unwrap();
    assert!(Rc::ptr_eq(&given, &place.files.opened(&path, &seen, place.now).unwrap()));
    place.now += CacheLimits::default().validity;
    assert!(matches!(place.files.opened(&path, &seen, place.now), Err(NotThatFile::Unreadable(_))));
    fs::rename(path.with_extension("moved"), &path).unwrap();
    let again = place.files.opened(&path, &look(&path), place.now).unwrap();
    assert_eq!(again.file.size(), 5);
}

#[test]
fn large_files_are_kept_open_and_small_ones_in_memory() {
    let place = Place::new();
    for (size, in_memory) in [
        (0, true),
        (CacheLimits::default().small_file_bytes, true),
        (CacheLimits::default().small_file_bytes + 1, false),
    ] {
        let path = place.write("file", &"x".repeat(size));
        let file = place.files.opened(&path, &look(&path), place.now).unwrap();
        assert_eq!(!file.file.holds_descriptor(), in_memory, "{size}");
        let whole = file.whole(StatusCode::OK, FieldLines::new(), false);
        assert_eq!(whole.body.length(), Some(size as u64));
    }
}

#[test]
fn a_named_file_is_the_one_that_the_caller_has_opened() {
    let place = Place::new();
    let path = place.write("file", "hello");
    let open = |path: &Path| File::open(path).unwrap();
    let file = place.files.named(&path, open(&path), place.now).unwrap().unwrap();
    assert_eq!(file.file.size(), 5);
    fs::write(&path, "longer than before").unwrap();
    let file = place.files.named(&path, open(&path), place.now).unwrap().unwrap();
    assert_eq!(file.file.size(), 18);
    assert!(place.files.named(&path, open(place.directory.path()), place.now).unwrap().is_none());
}

#[test]
fn a_file_from_the_future_has_no_date() {
    let place = Place::new();
    let path = place.write("file", "hello");
    let future = SystemTime::now() + Duration::from_secs(3600);
    File::options().write(true).open(&path).unwrap().set_modified(future).unwrap();
    let file = place.files.opened(&path, &look(&path), place.now).unwrap();
    let response = file.respond(FieldLines::new(), &RequestFields::default(), false);
    assert_eq!(response.fields.get("last-modified"), None);
    assert!(response.fields.get("etag").is_some());
}
