//! A real directory, and answers in a form that tests can look at.

use std::fs;
use std::mem::MaybeUninit;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::task::Poll;
use std::time::{Duration, Instant, SystemTime};

use kirin_http::{Body, RequestHead, Response, request};
use tempfile::TempDir;

use crate::found::FileLookup;
use crate::{CacheLimits, FileCache, Files, FilesConfig, FilesError};

/// Opens a place with a cache of its own.
pub(super) fn open(config: FilesConfig) -> Result<Files, FilesError> {
    Files::open(config, &Rc::new(FileCache::new(CacheLimits::default())))
}

/// A directory to serve inside of one with secrets.
pub(super) struct TestDirectory {
    _outer: TempDir,
    pub(super) root: PathBuf,
    pub(super) files: Files,
    pub(super) now: Instant,
}

/// An answer as text: status, fields and body.
#[derive(Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) status: u16,
    pub(super) fields: Vec<(String, String)>,
    pub(super) body: Vec<u8>,
    pub(super) in_memory: bool,
}

impl TestDirectory {
    pub(super) fn new() -> Self {
        Self::with(|_, _| {})
    }

    pub(super) fn with(configure: impl FnOnce(&mut FilesConfig, &mut CacheLimits)) -> Self {
        let outer = tempfile::tempdir().unwrap();
        fs::write(outer.path().join("secret"), "secret").unwrap();
        let root = outer.path().join("public");
        fs::create_dir(&root).unwrap();
        let (mut config, mut limits) = (FilesConfig::new(&root), CacheLimits::default());
        configure(&mut config, &mut limits);
        let files = Files::open(config, &Rc::new(FileCache::new(limits))).unwrap();
        Self { _outer: outer, root, files, now: Instant::now() }
    }

    pub(super) fn write(&self, name: &str, contents: impl AsRef<[u8]>) -> PathBuf {
        let path = self.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, contents).unwrap();
        path
    }

    /// Returns whether the cached file at `path` is confirmed without opening it.
    pub(super) fn confirms(&self, path: &str) -> bool {
        let cache = self.files.cache();
        let found = cache.found.borrow().peek(self.files.id(), path.as_bytes()).cloned();
        let Some(FileLookup::File(file)) = found else { panic!("{path} is not in the cache") };
        let lookup = self.files.lookup(self.now);
        lookup.is_confirmed(&file)
    }

    pub(super) fn pass(&mut self, milliseconds: u64) {
        self.now += Duration::from_millis(milliseconds);
    }

    pub(super) fn ask(&self, method: &str, target: &str, lines: &[(&str, &str)]) -> Option<Seen> {
        let answer = with_head(method, target, lines, |head| self.files.answer(head, self.now));
        answer.map(see)
    }

    pub(super) fn get(&self, target: &str) -> Option<Seen> {
        self.ask("GET", target, &[])
    }

    pub(super) fn status(&self, target: &str) -> Option<u16> {
        self.get(target).map(|seen| seen.status)
    }

    pub(super) fn body(&self, target: &str) -> String {
        let seen = self.get(target).unwrap_or_else(|| panic!("{target} was passed on"));
        assert_eq!(seen.status, 200, "{target}");
        String::from_utf8(seen.body).unwrap()
    }

    /// Returns the number of descriptors that this process has open below the root, without the
    /// root's own.
    pub(super) fn descriptors(&self) -> usize {
        let open = fs::read_dir("/proc/self/fd").unwrap();
        open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok())
            .filter(|target| target.starts_with(&self.root) && *target != self.root)
            .count()
    }
}

impl Seen {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.fields
            .iter()
            .find(|(n, _)| n.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

pub(super) fn with_head<R>(
    method: &str,
    target: &str,
    lines: &[(&str, &str)],
    use_head: impl FnOnce(&RequestHead<'_>) -> R,
) -> R {
    let mut text = format!("{method} {target} HTTP/1.1\r\nHost: x\r\n");
    lines.iter().for_each(|(name, value)| text += &format!("{name}: {value}\r\n"));
    text += "\r\n";
    let mut storage = [const { MaybeUninit::uninit() }; request::MAX_FIELDS];
    match request::parse(text.as_bytes(), &mut storage, &Default::default()) {
        Ok(request::Parsed::Complete(head, _)) => use_head(&head),
        other => panic!("{text}: {other:?}"),
    }
}

pub(super) fn see(response: Response) -> Seen {
    let fields = response.fields.iter().map(|(name, value)| {
        (String::from_utf8(name.to_vec()).unwrap(), String::from_utf8(value.to_vec()).unwrap())
    });
    let fields = fields.collect();
    let (body, in_memory) = match response.body {
        Body::Bytes(bytes) => (bytes.to_vec(), true),
        Body::Segments(segments) => (segments.concat(), true),
        Body::Stream(mut stream) => {
            let mut bytes = Vec::new();
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            while let Poll::Ready(Some(chunk)) = stream.poll_chunk(&mut context) {
                bytes.extend_from_slice(&chunk.unwrap());
            }
            (bytes, false)
        }
        Body::File(range) => {
            let mut bytes = vec![0; range.length as usize];
            range.file.read_exact_at(&mut bytes, range.offset).unwrap();
            (bytes, false)
        }
        Body::Empty | Body::Withheld(_) => (Vec::new(), true),
        other => panic!("{other:?}"),
    };
    Seen { status: response.status.as_u16(), fields, body, in_memory }
}

pub(super) fn set_modified(path: &Path, seconds: u64) {
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
    fs::File::options().write(true).open(path).unwrap().set_modified(time).unwrap();
}
