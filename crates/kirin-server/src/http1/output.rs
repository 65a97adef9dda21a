//! Bytes to be written: heads in one buffer, bodies by reference, sent with vectored writes.
//!
//! Each event loop has one, which is used for every request. Only the bytes that a slow reader does
//! not take become [`Unsent`], which the connection owns.

use std::collections::VecDeque;
use std::io::{self, IoSlice};
use std::ops::Range;
use std::task::{Context, Poll};

use bytes::Bytes;

use crate::connection::io::Io;

/// The most pieces in one writev. The kernel takes up to 1,024 (IOV_MAX). A response rarely has
/// more than a few.
const MAX_SLICES: usize = 32;

/// Pieces up to this size are copied behind the head, so that one plain `send` is enough.
const COPIED_BYTES: usize = 2048;

/// The output buffer of an event loop.
#[derive(Default)]
pub(crate) struct Output {
    text: Vec<u8>,
    pieces: Vec<OutputPiece>,
    length: usize,
}

enum OutputPiece {
    Text(Range<usize>),
    Bytes(Bytes),
}

/// Bytes that the socket has not taken yet.
pub(crate) struct Unsent(VecDeque<Bytes>);

impl Output {
    /// Appends the bytes that `write` writes.
    pub(crate) fn text<R>(&mut self, write: impl FnOnce(&mut Vec<u8>) -> R) -> R {
        let start = self.text.len();
        let result = write(&mut self.text);
        let end = self.text.len();
        debug_assert!(end >= start, "a writer has cut {start} bytes of earlier text to {end}");
        self.length += end - start;
        match self.pieces.last_mut() {
            Some(OutputPiece::Text(range)) if range.end == start => range.end = end,
            _ => self.pieces.push(OutputPiece::Text(start..end)),
        }
        result
    }

    /// Appends `bytes`. A few bytes are copied, because that is cheaper than a piece of their own.
    pub(crate) fn bytes(&mut self, bytes: &Bytes) {
        if bytes.len() <= COPIED_BYTES {
            self.text(|text| text.extend_from_slice(bytes));
        } else {
            self.length += bytes.len();
            self.pieces.push(OutputPiece::Bytes(bytes.clone()));
        }
    }

    /// Returns the number of bytes that wait.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// Writes everything, and returns the bytes that the socket does not take now. The buffer is
    /// empty afterwards.
    pub(crate) fn flush(
        &mut self,
        io: &Io,
        context: &mut Context<'_>,
    ) -> io::Result<Option<Unsent>> {
        debug_assert!(self.text.len() <= self.length, "text would be dropped unsent");
        let result = self.write(io, context);
        self.text.clear();
        self.pieces.clear();
        self.length = 0;
        // The memory of many large heads is not kept.
        if self.text.capacity() > 256 * 1024 {
            self.text = Vec::new();
        }
        result
    }

    fn write(&self, io: &Io, context: &mut Context<'_>) -> io::Result<Option<Unsent>> {
        let mut written = 0;
        while written < self.length {
            let result = match &*self.pieces {
                [OutputPiece::Text(range)] => {
                    io.poll_write(context, &self.text[range.start + written..range.end])
                }
                _ => self.write_pieces(written, io, context),
            };
            match result {
                Poll::Ready(Ok(0)) => return Err(io::ErrorKind::WriteZero.into()),
                Poll::Ready(Ok(sent)) => written += sent,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => return Ok(Some(self.unsent(written))),
            }
        }
        match io.poll_flush(context)? {
            Poll::Ready(()) => Ok(None),
            Poll::Pending => Ok(Some(self.unsent(written))),
        }
    }

    /// Writes the pieces from byte `written` on with one call.
    fn write_pieces(
        &self,
        written: usize,
        io: &Io,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<usize>> {
        let mut slices = [IoSlice::new(&[]); MAX_SLICES];
        let mut count = 0;
        for slice in self.unwritten(written).take(MAX_SLICES) {
            slices[count] = IoSlice::new(slice);
            count += 1;
        }
        debug_assert!(count > 0, "{written} of {} bytes are all in the pieces", self.length);
        match &slices[..count] {
            [slice] => io.poll_write(context, slice),
            slices => io.poll_write_vectored(context, slices),
        }
    }

    /// Returns the pieces from byte `written` on.
    fn unwritten(&self, written: usize) -> impl Iterator<Item = &[u8]> {
        let mut skip = written;
        self.pieces.iter().filter_map(move |piece| {
            let slice = match piece {
                OutputPiece::Text(range) => &self.text[range.clone()],
                OutputPiece::Bytes(bytes) => &bytes[..],
            };
            let skipped = skip.min(slice.len());
            skip -= skipped;
            (skipped < slice.len()).then(|| &slice[skipped..])
        })
    }

    fn unsent(&self, written: usize) -> Unsent {
        let mut skip = written;
        let mut left = VecDeque::new();
        for piece in &self.pieces {
            let bytes = match piece {
                OutputPiece::Text(range) => {
                    let skipped = skip.min(range.len());
                    skip -= skipped;
                    Bytes::copy_from_slice(&self.text[range.start + skipped..range.end])
                }
                OutputPiece::Bytes(bytes) => {
                    let skipped = skip.min(bytes.len());
                    skip -= skipped;
                    bytes.slice(skipped..)
                }
            };
            if !bytes.is_empty() {
                left.push_back(bytes);
            }
        }
        Unsent(left)
    }
}

impl Unsent {
    /// Returns one piece, for writers that are not on the hot path.
    pub(crate) fn one(bytes: Bytes) -> Self {
        Self(VecDeque::from([bytes]))
    }

    /// Returns the number of bytes left.
    pub(crate) fn len(&self) -> usize {
        self.0.iter().map(Bytes::len).sum()
    }

    /// Returns the number of bytes left that have no other owner. Bytes that the store has too are
    /// not held for the client.
    pub(crate) fn owned_len(&self) -> usize {
        self.0.iter().filter(|bytes| bytes.is_unique()).map(Bytes::len).sum()
    }

    /// Appends a piece.
    pub(crate) fn push(&mut self, bytes: Bytes) {
        self.0.push_back(bytes);
    }

    /// Continues to write. Ready when all bytes are written.
    pub(crate) fn poll_flush(
        &mut self,
        io: &Io,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<()>> {
        loop {
            while self.0.front().is_some_and(Bytes::is_empty) {
                self.0.pop_front();
            }
            if self.0.is_empty() {
                return io.poll_flush(context);
            }
            let mut slices = [IoSlice::new(&[]); MAX_SLICES];
            let mut count = 0;
            for bytes in self.0.iter().take(MAX_SLICES) {
                slices[count] = IoSlice::new(bytes);
                count += 1;
            }
            let result = match &slices[..count] {
                [slice] => io.poll_write(context, slice),
                slices => io.poll_write_vectored(context, slices),
            };
            let mut sent = std::task::ready!(result)?;
            if sent == 0 {
                return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
            }
            while let Some(front) = self.0.front_mut() {
                let taken = sent.min(front.len());
                *front = front.slice(taken..);
                sent -= taken;
                if !front.is_empty() || sent == 0 {
                    break;
                }
                self.0.pop_front();
            }
        }
    }
}
