//! A file that has been opened and read: contents or descriptor, and what tells this state of it
//! from the next.

use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use kirin_http::byte_range::ByteRange;
use kirin_http::{Body, FileRange};

use crate::root::{FileClock, FileState, OpenFile};

/// How often a small file that changes while it is read is read again.
const READ_ATTEMPTS: usize = 3;

/// One file as the open-file cache keeps it.
pub(crate) struct ReadFile {
    state: FileState,
    read_at: Cell<FileClock>,
    contents: Contents,
}

/// What was read of a file, or where to read it.
#[derive(Clone)]
pub(crate) enum Contents {
    Memory(Bytes),
    Descriptor { file: Arc<File>, state: FileState },
}

impl Contents {
    /// The contents, if they have been read.
    pub(crate) fn in_memory(&self) -> Option<&[u8]> {
        match self {
            Contents::Memory(bytes) => Some(bytes),
            Contents::Descriptor { .. } => None,
        }
    }

    /// The contents, read now; an error if they are not the same any more.
    pub(crate) fn read(self) -> io::Result<Bytes> {
        let (file, state) = match self {
            Contents::Memory(bytes) => return Ok(bytes),
            Contents::Descriptor { file, state } => (file, state),
        };
        let mut bytes = vec![0; usize::try_from(state.size).map_err(io::Error::other)?];
        file.read_exact_at(&mut bytes, 0)?;
        if FileState::of(&file.metadata()?) != state {
            return Err(io::Error::other("the file has changed"));
        }
        Ok(Bytes::from(bytes))
    }
}

impl ReadFile {
    /// Reads a small file; keeps a large one open.
    pub(crate) fn of(open: OpenFile, small_file_bytes: usize) -> io::Result<Self> {
        let OpenFile { file, mut state } = open;
        let read_at = Cell::new(FileClock::now());
        let contents = match read_small(&file, &mut state, small_file_bytes)? {
            Some(bytes) => Contents::Memory(bytes),
            None => Contents::Descriptor { file: Arc::new(file), state },
        };
        Ok(Self { state, read_at, contents })
    }

    /// `bytes`, made from this file.
    pub(crate) fn coded(&self, bytes: Bytes) -> Self {
        let state = FileState { size: bytes.len() as u64, ..self.state };
        Self { state, read_at: self.read_at.clone(), contents: Contents::Memory(bytes) }
    }

    /// What was read, or where to read it.
    pub(crate) fn contents(&self) -> Contents {
        self.contents.clone()
    }

    pub(crate) fn state(&self) -> &FileState {
        &self.state
    }

    /// Whether an equal state later means equal contents.
    pub(crate) fn is_settled(&self) -> bool {
        self.state.is_settled(self.read_at.get())
    }

    /// Whether a file in `state` has these contents.
    pub(crate) fn is_still(&self, state: &FileState) -> bool {
        self.is_settled() && self.state == *state
    }

    /// When it was read, on the clock that files are stamped with.
    pub(crate) fn read_at(&self) -> FileClock {
        self.read_at.get()
    }

    /// What is known of a settled file has been found to be so still, as if it had been read at
    /// `looked_at`.
    pub(crate) fn confirm(&self, looked_at: FileClock) {
        self.read_at.set(looked_at);
    }

    /// `Last-Modified`, in seconds since the epoch. None when the file claims to be from the future
    /// (RFC 9110 section 8.8.2.1).
    pub(crate) fn last_modified(&self) -> Option<u64> {
        let (seconds, _) = self.state.modified;
        u64::try_from(seconds).ok().filter(|_| seconds <= self.read_at.get().seconds())
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.state.size
    }

    /// The bytes of `range`, which is inside.
    pub(crate) fn body(&self, range: ByteRange) -> Body {
        match &self.contents {
            Contents::Memory(bytes) => {
                // Inside `bytes`, so both fit a usize.
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

    /// Whether it keeps a descriptor open.
    pub(crate) fn holds_descriptor(&self) -> bool {
        matches!(self.contents, Contents::Descriptor { .. })
    }

    /// Memory taken by the contents.
    pub(crate) fn contents_bytes(&self) -> usize {
        match &self.contents {
            Contents::Memory(bytes) => bytes.len(),
            Contents::Descriptor { .. } => size_of::<File>(),
        }
    }
}

/// An HTTP-date.
pub(crate) fn http_date(seconds: u64) -> String {
    httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(seconds))
}

/// The contents of a file of up to `limit_bytes`, which are those of `state`: a file that changes
/// while it is read is read again, and its newer state taken. One that keeps changing is not kept.
fn read_small(file: &File, state: &mut FileState, limit_bytes: usize) -> io::Result<Option<Bytes>> {
    for _ in 0..READ_ATTEMPTS {
        let Some(size) = usize::try_from(state.size).ok().filter(|size| *size <= limit_bytes)
        else {
            return Ok(None);
        };
        let mut contents = vec![0; size];
        let whole = match file.read_exact_at(&mut contents, 0) {
            Ok(()) => true,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => false,
            Err(error) => return Err(error),
        };
        let after = FileState::of(&file.metadata()?);
        if whole && after == *state {
            return Ok(Some(Bytes::from(contents)));
        }
        *state = after;
    }
    Ok(None)
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
            // Over the limit by now.
            (b"1234567890+", None),
        ] {
            fs::write(&path, "before").unwrap();
            let file = File::open(&path).unwrap();
            let mut state = FileState::of(&file.metadata().unwrap());
            fs::write(&path, now).unwrap();
            let read = read_small(&file, &mut state, 10).unwrap();
            assert_eq!(read.as_deref(), expected);
            assert_eq!(state.size, now.len() as u64);
        }
    }
}
