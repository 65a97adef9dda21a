//! Files read a piece at a time, for connections to which the kernel cannot send them: encrypted
//! ones, and HTTP/2.

use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;

use kirin_http::body::FileRange;

/// What is left of a range.
pub(crate) struct FilePieces {
    range: FileRange,
}

impl FilePieces {
    pub(crate) fn new(range: FileRange) -> Self {
        Self { range }
    }

    /// The next piece, of `most` bytes at most; none at the end. It is in the page cache as a rule.
    pub(crate) fn next(&mut self, most: usize) -> io::Result<Option<Bytes>> {
        if self.range.length == 0 {
            return Ok(None);
        }
        let mut piece = vec![0; self.range.length.min(most as u64) as usize];
        let read = self.range.file.read_at(&mut piece, self.range.offset)?;
        if read == 0 {
            // The file became shorter under us.
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        piece.truncate(read);
        self.range.offset += read as u64;
        self.range.length -= read as u64;
        Ok(Some(Bytes::from(piece)))
    }
}
