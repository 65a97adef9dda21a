//! Without a file descriptor left. A process of its own, since the limit is the process's.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "a test fails by them")]

use std::fs;
use std::mem::MaybeUninit;
use std::rc::Rc;
use std::time::{Duration, Instant};

use kirin_files::{CacheLimits, FileCache, Files, FilesConfig};
use kirin_http::request::{self, Parsed};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

fn status(files: &Files, path: &str, now: Instant) -> Option<u16> {
    let text = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    let mut storage = [const { MaybeUninit::uninit() }; request::MAX_FIELDS];
    match request::parse(text.as_bytes(), &mut storage, &Default::default()) {
        Ok(Parsed::Complete(head, _)) => {
            files.answer(&head, now).map(|response| response.status.as_u16())
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn without_descriptors_cached_files_are_served_and_others_are_unavailable() {
    let root = tempfile::tempdir().unwrap();
    for name in ["small", "other"] {
        fs::write(root.path().join(name), "x").unwrap();
    }
    fs::write(root.path().join("large"), vec![b'x'; 100_000]).unwrap();
    let cache = Rc::new(FileCache::new(CacheLimits::default()));
    let files = Files::open(FilesConfig::new(root.path()), &cache).unwrap();
    let start = Instant::now();
    assert_eq!(status(&files, "/small", start), Some(200));
    assert_eq!(status(&files, "/large", start), Some(200));

    let before = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(0), maximum: before.maximum }).unwrap();
    let later = start + Duration::from_secs(10);
    let without = ["/small", "/large", "/other", "/none"].map(|path| status(&files, path, later));
    setrlimit(Resource::Nofile, before).unwrap();

    assert_eq!(without, [Some(200), Some(200), Some(503), Some(503)]);
    let with = ["/small", "/large", "/other", "/none"].map(|path| status(&files, path, later));
    assert_eq!(with, [Some(200), Some(200), Some(200), None]);
}
