//! The directory of a project: bounded reads that never leave it.
//!
//! Somebody else may have written the project. So no symbolic link leads out of it, no FIFO is
//! waited for, and every file and directory is read up to a limit.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, ResolveFlags, fstat, openat2, statat};
use rustix::io::Errno;

use crate::evidence::{Evidence, is_printable};

/// The largest file that is read. Files that describe a project are much smaller.
const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The most entries of a directory that are looked at.
const MAX_NAMES: usize = 2_000;

/// The opened directory of a project.
#[derive(Debug)]
pub(crate) struct Project {
    directory: OwnedFd,
    /// Files that are there and cannot be used, with the reason.
    problems: RefCell<Vec<Evidence>>,
}

/// A text file of a project.
#[derive(Debug)]
pub(crate) struct Text {
    /// The contents. Bytes that are not UTF-8 are replaced.
    pub text: String,
}

impl Project {
    /// Opens the directory.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let directory = rustix::fs::open(path, flags, Mode::empty())?;
        Ok(Self { directory, problems: RefCell::default() })
    }

    /// Says whether `path` is a regular file.
    pub(crate) fn is_file(&self, path: &str) -> bool {
        self.kind(path) == Some(FileType::RegularFile)
    }

    /// Says whether `path` is a directory.
    pub(crate) fn is_directory(&self, path: &str) -> bool {
        self.kind(path) == Some(FileType::Directory)
    }

    /// Says whether `path` is there.
    pub(crate) fn exists(&self, path: &str) -> bool {
        self.kind(path).is_some()
    }

    /// Says whether `path` is a symbolic link, wherever it leads.
    pub(crate) fn is_link(&self, path: &str) -> bool {
        statat(&self.directory, path, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::Symlink)
    }

    /// Returns the first of `paths` that is a regular file.
    pub(crate) fn first_file<'a>(&self, paths: &[&'a str]) -> Option<&'a str> {
        paths.iter().copied().find(|path| self.is_file(path))
    }

    /// Reads a text file. `None` if it is not there, or if it cannot be used, which is noted.
    pub(crate) fn text(&self, path: &str) -> Option<Text> {
        let bytes = self.bytes(path)?;
        Some(Text { text: String::from_utf8_lossy(&bytes).into_owned() })
    }

    /// Reads a file, as `text` does.
    fn bytes(&self, path: &str) -> Option<Vec<u8>> {
        // O_NONBLOCK: a FIFO without a writer must not stop us.
        match self.open_below(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY) {
            Ok(descriptor) => read_bounded(descriptor)
                .map_err(|reason| self.note_problem(Evidence::of_file(path, reason)))
                .ok(),
            Err(Errno::NOENT | Errno::NOTDIR) => None,
            Err(Errno::XDEV) => {
                let reason = "is a link that leads out of the project, so it was not read";
                self.note_problem(Evidence::of_file(path, reason));
                None
            }
            Err(error) => {
                let reason = format!("could not be read: {}", io::Error::from(error));
                self.note_problem(Evidence::of_file(path, reason));
                None
            }
        }
    }

    /// Returns the names in a directory in order. Names that cannot be shown are left out.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let Ok(descriptor) = self.open_below(path, OFlags::RDONLY | OFlags::DIRECTORY) else {
            return Vec::new();
        };
        let Ok(entries) = Dir::read_from(&descriptor) else { return Vec::new() };
        let mut names: Vec<String> = entries
            .take(MAX_NAMES)
            .filter_map(Result::ok)
            .filter_map(|entry| entry.file_name().to_str().ok().map(String::from))
            .filter(|name| !name.starts_with('.') && name.chars().all(is_printable))
            .collect();
        names.sort();
        names
    }

    /// Notes that a file is there and cannot be used. Each file is noted once.
    pub(crate) fn note_problem(&self, problem: Evidence) {
        let mut problems = self.problems.borrow_mut();
        if !problems.iter().any(|known| known.file == problem.file) {
            problems.push(problem);
        }
    }

    /// Returns the files that could not be used.
    pub(crate) fn into_problems(self) -> Vec<Evidence> {
        self.problems.into_inner()
    }

    fn kind(&self, path: &str) -> Option<FileType> {
        let descriptor = self.open_below(path, OFlags::PATH).ok()?;
        fstat(&descriptor).ok().map(|stat| FileType::from_raw_mode(stat.st_mode))
    }

    fn open_below(&self, path: &str, flags: OFlags) -> Result<OwnedFd, Errno> {
        let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
        openat2(&self.directory, path, flags | OFlags::CLOEXEC, Mode::empty(), resolve)
    }
}

impl Text {
    /// Returns the lines with their numbers from 1.
    pub(crate) fn lines(&self) -> impl Iterator<Item = (usize, &str)> {
        self.text.lines().enumerate().map(|(index, line)| (index + 1, line))
    }

    /// Returns the number of the first line with `part`.
    pub(crate) fn line_with(&self, part: &str) -> Option<usize> {
        self.lines().find(|(_, line)| line.contains(part)).map(|(number, _)| number)
    }
}

/// Returns the path of `name` below `directory`.
pub(crate) fn below(directory: &str, name: &str) -> String {
    if directory == "." { name.to_owned() } else { format!("{directory}/{name}") }
}

/// Says whether a path stays below its directory and needs no quotes in a shell.
pub(crate) fn is_plain_path(path: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._/-".contains(&byte);
    !path.is_empty()
        && !path.starts_with(['-', '/'])
        && path.bytes().all(is_plain)
        && path.split('/').all(|part| part != "..")
}

/// Reads a regular file of at most `MAX_FILE_BYTES`.
fn read_bounded(descriptor: OwnedFd) -> Result<Vec<u8>, String> {
    let unreadable = |error: io::Error| format!("could not be read: {error}");
    let file = File::from(descriptor);
    if !file.metadata().map_err(unreadable)?.is_file() {
        return Err("is not a regular file, so it was not read".into());
    }
    let mut bytes = Vec::new();
    file.take(MAX_FILE_BYTES + 1).read_to_end(&mut bytes).map_err(unreadable)?;
    if bytes.len() as u64 > MAX_FILE_BYTES {
        return Err("is larger than 1 MB, so it was not read".into());
    }
    Ok(bytes)
}
