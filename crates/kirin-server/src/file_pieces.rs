//! Reads files piece by piece, for connections to which the kernel cannot send them: encrypted
//! connections and HTTP/2.

use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use kirin_http::body::FileRange;

/// The part of a file that is still to be read.
pub(crate) struct FilePieces {
    range: FileRange,
}

impl FilePieces {
    pub(crate) fn new(range: FileRange) -> Self {
        Self { range }
    }

    /// Returns the next piece, of at most `most` bytes, or `None` at the end. The page cache
    /// usually has it.
    pub(crate) fn next(&mut self, most: usize) -> io::Result<Option<Bytes>> {
        if self.range.length == 0 {
            return Ok(None);
        }
        let mut piece = vec![0; self.range.length.min(most as u64) as usize];
        let read = self.range.file.read_at(&mut piece, self.range.offset)?;
        if read == 0 {
            // The file became shorter while it was read.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        piece.truncate(read);
        self.range.offset += read as u64;
        self.range.length -= read as u64;
        Ok(Some(Bytes::from(piece)))
    }
}
