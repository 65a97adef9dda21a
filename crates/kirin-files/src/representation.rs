//! A file as it is sent: contents or descriptor, validators, and the response head made once.

use crate::entity_tag::EntityTag;
use crate::preconditions::Validators;
use crate::root::{FileClock, FileState, OpenFile};
use bytes::Bytes;
use kirin_compress::Coding;
use kirin_http::{Body, FieldLines, FileRange};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::time::{Duration, UNIX_EPOCH};

/// How often a small file that changes while it is read is read again.
const READ_ATTEMPTS: usize = 3;

/// One file of the file system, the original or a coded variant.
pub(crate) struct Representation {
    pub(crate) state: FileState,
    /// Whether an equal state later means equal contents.
    pub(crate) settled: bool,
    pub(crate) validators: Validators,
    /// Of a 200 or 206.
    pub(crate) fields: FieldLines,
    /// Of a 304: the fields that RFC 9110 section 15.4.5 wants there.
    pub(crate) not_modified: FieldLines,
    contents: Contents,
}

enum Contents {
    Memory(Bytes),
    Descriptor(Arc<File>),
}

impl Representation {
    /// Reads a small file; keeps a large one open. `varies` says that the file has more than one representation.
    pub(crate) fn of(
        open: OpenFile,
        content_type: &str,
        coding: Option<Coding>,
        varies: bool,
        small_file_bytes: usize,
    ) -> io::Result<Self> {
        let OpenFile { file, mut state } = open;
        let read_at = FileClock::now();
        let contents = match read_small(&file, &mut state, small_file_bytes)? {
            Some(bytes) => Contents::Memory(bytes),
            None => Contents::Descriptor(Arc::new(file)),
        };
        let settled = state.is_settled(read_at);
        let validators = Validators {
            entity_tag: EntityTag::of(&state, settled, coding),
            last_modified: last_modified(&state, read_at),
        };
        let mut not_modified = FieldLines::new();
        not_modified.push("ETag", validators.entity_tag.as_str());
        if let Some(seconds) = validators.last_modified {
            let time = UNIX_EPOCH + Duration::from_secs(seconds);
            not_modified.push("Last-Modified", httpdate::fmt_http_date(time));
        }
        if varies {
            not_modified.push("Vary", "Accept-Encoding");
        }
        let mut fields = FieldLines::new();
        fields.push("Content-Type", content_type);
        if let Some(coding) = coding {
            fields.push("Content-Encoding", coding.name());
        }
        fields.append(&not_modified);
        fields.push("Accept-Ranges", "bytes");
        Ok(Self {
            settled,
            state,
            validators,
            fields: fields.prepare(),
            not_modified: not_modified.prepare(),
            contents,
        })
    }

    /// Size in bytes.
    pub(crate) fn size(&self) -> u64 {
        self.state.size
    }

    /// `length` bytes from `start` on, which are inside.
    pub(crate) fn body(&self, start: u64, length: u64) -> Body {
        match &self.contents {
            Contents::Memory(bytes) => {
                // Inside `bytes`, so both fit a usize.
                let start = usize::try_from(start).unwrap_or(usize::MAX).min(bytes.len());
                let end = start.saturating_add(usize::try_from(length).unwrap_or(usize::MAX));
                Body::Bytes(bytes.slice(start..end.min(bytes.len())))
            }
            Contents::Descriptor(file) => {
                Body::File(FileRange { file: Arc::clone(file), offset: start, length })
            }
        }
    }

    /// Whether it keeps a descriptor open.
    pub(crate) fn holds_descriptor(&self) -> bool {
        matches!(self.contents, Contents::Descriptor(_))
    }

    /// Memory taken.
    pub(crate) fn bytes(&self) -> usize {
        let contents = match &self.contents {
            Contents::Memory(bytes) => bytes.len(),
            Contents::Descriptor(_) => size_of::<File>(),
        };
        size_of::<Self>() + contents + self.fields.len_bytes() + self.not_modified.len_bytes()
    }
}

/// The contents of a file of up to `limit_bytes`, which are those of `state`: a file that changes while it is read is read
/// again, and its newer state taken. One that keeps changing is not kept.
fn read_small(file: &File, state: &mut FileState, limit_bytes: usize) -> io::Result<Option<Bytes>> {
    for _ in 0..READ_ATTEMPTS {
        let Some(size) = usize::try_from(state.size).ok().filter(|size| *size <= limit_bytes) else {
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

fn last_modified(state: &FileState, now: FileClock) -> Option<u64> {
    let (seconds, _) = state.modified;
    u64::try_from(seconds).ok().filter(|_| seconds <= now.seconds())
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
