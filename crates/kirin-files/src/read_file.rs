//! A file that has been opened and read: its contents or descriptor, and the state that identifies
//! them.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use kirin_faults::Point;
use kirin_http::byte_range::ByteRange;
use kirin_http::{Body, FileRange};
use rustix::buffer::spare_capacity;
use rustix::io::Errno;

use crate::root::{FileClock, FileState, OpenFile};

static READ: Point = Point::new("file.read", &[Errno::IO]);

/// How often a small file is read again if it changes while it is read.
const READ_ATTEMPTS: usize = 3;

/// One file in the open-file cache.
pub(crate) struct ReadFile {
    state: FileState,
    read_at: Cell<FileClock>,
    contents: Contents,
}

/// The contents of a file, or the descriptor to read them from.
#[derive(Clone)]
pub(crate) enum Contents {
    Memory(Bytes),
    Descriptor { file: Arc<File>, state: FileState },
}

impl Contents {
    /// Returns the contents, if they have been read.
    pub(crate) fn in_memory(&self) -> Option<&[u8]> {
        match self {
            Contents::Memory(bytes) => Some(bytes),
            Contents::Descriptor { .. } => None,
        }
    }

    /// Reads the contents now. Returns an error if they have changed.
    pub(crate) fn read(self) -> io::Result<Bytes> {
        let (file, state) = match self {
            Contents::Memory(bytes) => return Ok(bytes),
            Contents::Descriptor { file, state } => (file, state),
        };
        let size = usize::try_from(state.size).map_err(io::Error::other)?;
        let bytes = read_up_to(&file, size)?;
        if bytes.len() != size || FileState::of_open(&file)? != state {
            return Err(io::Error::other("the file has changed"));
        }
        Ok(Bytes::from(bytes))
    }
}

impl ReadFile {
    /// Reads a small file. Keeps a large one open.
    pub(crate) fn of(open: OpenFile, small_file_bytes: usize) -> io::Result<Self> {
        let OpenFile { file, mut state } = open;
        let read_at = Cell::new(FileClock::now());
        let contents = match read_small(&file, &mut state, small_file_bytes)? {
            Some(bytes) => Contents::Memory(bytes),
            None => Contents::Descriptor { file: Arc::new(file), state },
        };
        Ok(Self { state, read_at, contents })
    }

    /// Returns `bytes`, which were made from this file, as a file.
    pub(crate) fn coded(&self, bytes: Bytes) -> Self {
        let state = FileState { size: bytes.len() as u64, ..self.state };
        Self { state, read_at: self.read_at.clone(), contents: Contents::Memory(bytes) }
    }

    /// Returns the contents, or the descriptor to read them from.
    pub(crate) fn contents(&self) -> Contents {
        self.contents.clone()
    }

    pub(crate) fn state(&self) -> &FileState {
        &self.state
    }

    /// Returns whether an equal state later means equal contents.
    pub(crate) fn is_settled(&self) -> bool {
        self.state.is_settled(self.read_at.get())
    }

    /// Returns whether a file in `state` has these contents.
    pub(crate) fn is_still(&self, state: &FileState) -> bool {
        self.is_settled() && self.state == *state
    }

    /// Returns when the file was read, on the clock of its time stamps.
    pub(crate) fn read_at(&self) -> FileClock {
        self.read_at.get()
    }

    /// Records that the file was unchanged at `looked_at`, as if it had been read then. The file
    /// must be settled.
    pub(crate) fn confirm(&self, looked_at: FileClock) {
        self.read_at.set(looked_at);
    }

    /// Returns `Last-Modified` in seconds since the epoch. Returns `None` if the file's time is in
    /// the future (RFC 9110 section 8.8.2.1).
    pub(crate) fn last_modified(&self) -> Option<u64> {
        let (seconds, _) = self.state.modified;
        u64::try_from(seconds).ok().filter(|_| seconds <= self.read_at.get().seconds())
    }

    /// Returns the size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.state.size
    }

    /// Returns the bytes of `range`, which must be inside the file.
    pub(crate) fn body(&self, range: ByteRange) -> Body {
        match &self.contents {
            Contents::Memory(bytes) => {
                // The range is inside `bytes`, so both ends fit a usize.
                let at = |byte| usize::try_from(byte).unwrap_or(usize::MAX).min(bytes.len());
                Body::Bytes(bytes.slice(at(range.start)..at(range.end())))
            }
            Contents::Descriptor { file, .. } => Body::File(FileRange {
                file: Arc::clone(file),
                offset: range.start,
                length: range.length,
            }),
        }
    }

    /// Returns whether the file keeps a descriptor open.
    pub(crate) fn holds_descriptor(&self) -> bool {
        matches!(self.contents, Contents::Descriptor { .. })
    }

    /// Returns the memory of the contents in bytes.
    pub(crate) fn contents_bytes(&self) -> usize {
        match &self.contents {
            Contents::Memory(bytes) => bytes.len(),
            Contents::Descriptor { .. } => size_of::<File>(),
        }
    }
}

/// Formats an HTTP-date.
pub(crate) fn http_date(seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// Reads the contents of a file of up to `limit_bytes` in `state`. Reads a file again that changes
/// while it is read, and then takes its newer state. Gives up if it keeps changing.
fn read_small(file: &File, state: &mut FileState, limit_bytes: usize) -> io::Result<Option<Bytes>> {
    for _ in 0..READ_ATTEMPTS {
        let Some(size) = usize::try_from(state.size).ok().filter(|size| *size <= limit_bytes)
        else {
            return Ok(None);
        };
        let contents = read_up_to(file, size)?;
        let after = FileState::of_open(file)?;
        if contents.len() == size && after == *state {
            return Ok(Some(Bytes::from(contents)));
        }
        *state = after;
    }
    Ok(None)
}

/// Reads the first `size` bytes. Returns fewer bytes if the file has become shorter. Its memory is
/// not zeroed first, as that of `read_exact_at` would be.
fn read_up_to(file: &File, size: usize) -> io::Result<Vec<u8>> {
    let mut contents = Vec::with_capacity(size);
    while contents.len() < size {
        READ.pass()?;
        let offset = contents.len() as u64;
        match rustix::io::pread(file, spare_capacity(&mut contents), offset) {
            Ok(0) => break,
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(contents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_file_that_changed_after_it_was_opened_is_read_as_it_is_now_or_not_kept() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        for (now, expected) in [
            (&b"123"[..], Some(&b"123"[..])),
            (b"", Some(b"")),
            (b"1234567890", Some(b"1234567890")),
            // The file is larger than the limit now.
            (b"1234567890+", None),
        ] {
            fs::write(&path, "before").unwrap();
            let file = File::open(&path).unwrap();
            let mut state = FileState::of_open(&file).unwrap();
            fs::write(&path, now).unwrap();
            let read = read_small(&file, &mut state, 10).unwrap();
            assert_eq!(read.as_deref(), expected);
            assert_eq!(state.size, now.len() as u64);
        }
    }
}
