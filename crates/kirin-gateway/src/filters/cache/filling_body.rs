//! The body of a response that is being stored, as its readers see it.
//!
//! One task fills it ([`super::fill`]). Readers on any loop take its pieces, each at its own pace.
//! A piece is in memory once, however many read it.
//!
//! As long as the body may be stored, all of it stays, and the readers do not slow each other down.
//! A body that is too long to be stored gets no further readers. Those that it has get all of it,
//! and pieces that all have read are freed. It is then filled no faster than the fastest reader
//! reads. The slowest may be behind by the bytes that could have been stored: that is the memory it
//! takes. Pure: no clock, no tasks, no I/O.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use kirin_http::body::{BodyStream, StreamError};
use kirin_http::byte_range::ByteRange;
use kirin_sync::Mutex;

/// The bytes that are read ahead of the fastest reader, if the body is not stored.
const AHEAD_BYTES: u64 = 64 * 1024;

/// The error of a reader that kept others waiting.
const TOO_SLOW: &str = "others wait for this reader, and it takes too little";

/// A body that all readers share.
#[derive(Debug)]
pub struct FillingBody {
    shared: Mutex<SharedBody>,
    length: Option<u64>,
    limit_bytes: u64,
}

#[derive(Debug, Default)]
struct SharedBody {
    pieces: VecDeque<Bytes>,
    /// The number of the first piece. The pieces before it have been freed.
    first: usize,
    /// The bytes that have arrived, including those that have been freed.
    bytes: u64,
    state: FillState,
    readers: HashMap<u64, Reader>,
    /// The number of readers so far.
    count: u64,
    filler: Option<Waker>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum FillState {
    /// It arrives, and may be stored.
    #[default]
    Filling,
    /// It arrives, and is too long to be stored.
    TooLong,
    /// All of it has arrived.
    Whole,
    /// It was cut, with the reason.
    Cut(String),
}

#[derive(Debug, Default)]
struct Reader {
    /// The number of the piece that it takes next.
    next: usize,
    /// The bytes that it has taken.
    bytes: u64,
    waker: Option<Waker>,
    /// Whether it was too slow.
    is_cut: bool,
}

/// The writer of a body. Dropping it before the end cuts the body.
pub struct Filler(Arc<FillingBody>);

/// Whether readers want more of a body that is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// They do.
    More,
    /// There are no readers.
    Nobody,
}

/// A reader of the body, or of a part of it.
pub struct BodyReader {
    body: Arc<FillingBody>,
    id: u64,
    length: Option<u64>,
    /// The bytes before the part that are not skipped yet.
    skip: u64,
    /// The bytes of the part that are not read yet.
    left: u64,
}

impl FillingBody {
    /// Creates a body with its writer and its first reader. `length` is its length in bytes, if it
    /// is known. Up to `limit_bytes` are stored.
    pub fn new(length: Option<u64>, limit_bytes: u64) -> (Arc<Self>, Filler, BodyReader) {
        let body = Arc::new(Self { shared: Mutex::default(), length, limit_bytes });
        let reader = body.join(&mut body.shared.lock(), None);
        (Arc::clone(&body), Filler(body), reader)
    }

    /// Returns the length in bytes, if it is known before the end.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Adds a reader that starts at the first byte, or at a part of a body whose length is known.
    /// Returns `None` if the first piece has been freed, or if the end will not arrive.
    pub fn reader(self: &Arc<Self>, part: Option<ByteRange>) -> Option<BodyReader> {
        let mut shared = self.shared.lock();
        match shared.state {
            FillState::Filling | FillState::Whole if shared.first == 0 => {}
            _ => return None,
        }
        Some(self.join(&mut shared, part))
    }

    fn join(self: &Arc<Self>, shared: &mut SharedBody, part: Option<ByteRange>) -> BodyReader {
        let id = shared.count;
        shared.count += 1;
        shared.readers.insert(id, Reader::default());
        let (skip, left) = part.map_or((0, u64::MAX), |part| (part.start, part.length));
        let length = part.map(|part| part.length).or(self.length);
        BodyReader { body: Arc::clone(self), id, length, skip, left }
    }

    fn poll_piece(
        &self,
        id: u64,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        let mut shared = self.shared.lock();
        let SharedBody { pieces, first, state, readers, filler, .. } = &mut *shared;
        // The entry exists as long as its reader.
        let Some(reader) = readers.get_mut(&id) else { return Poll::Ready(None) };
        if reader.is_cut {
            return Poll::Ready(Some(Err(StreamError(TOO_SLOW.into()))));
        }
        if let Some(piece) = pieces.get(reader.next - *first) {
            reader.next += 1;
            reader.bytes += piece.len() as u64;
            wake(filler);
            return Poll::Ready(Some(Ok(piece.clone())));
        }
        match state {
            FillState::Filling | FillState::TooLong => {
                reader.waker = Some(context.waker().clone());
                Poll::Pending
            }
            FillState::Whole => Poll::Ready(None),
            FillState::Cut(why) => Poll::Ready(Some(Err(StreamError(why.clone())))),
        }
    }
}

impl Filler {
    /// Adds the next piece.
    pub fn push(&self, piece: Bytes) {
        let mut shared = self.0.shared.lock();
        shared.bytes += piece.len() as u64;
        shared.pieces.push_back(piece);
        shared.wake_readers();
    }

    /// Returns the pieces so far, of a body that may be stored.
    pub fn pieces(&self) -> Vec<Bytes> {
        self.0.shared.lock().pieces.iter().cloned().collect()
    }

    /// Marks the body as complete.
    pub fn end(&self) {
        self.0.shared.lock().change(FillState::Whole);
    }

    /// Cuts the body, because the rest of it will not arrive.
    pub fn cut(self, why: &StreamError) {
        self.0.shared.lock().change(FillState::Cut(why.0.clone()));
    }

    /// Marks the body as too long to be stored.
    pub fn is_too_long(&self) {
        self.0.shared.lock().change(FillState::TooLong);
    }

    /// Waits until the fastest reader of a body that is not stored wants more.
    pub fn poll_demand(&self, context: &mut Context<'_>) -> Poll<Demand> {
        let mut shared = self.0.shared.lock();
        shared.filler = Some(context.waker().clone());
        match shared.reading().map(|reader| reader.bytes).max() {
            None => Poll::Ready(Demand::Nobody),
            Some(fastest) if shared.bytes - fastest < AHEAD_BYTES => Poll::Ready(Demand::More),
            Some(_) => Poll::Pending,
        }
    }

    /// Frees the pieces that all have read of a body that is not stored, and waits until the
    /// slowest reader is near enough.
    pub fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.0.shared.lock();
        shared.filler = Some(context.waker().clone());
        if shared.let_go() < self.0.limit_bytes.max(1) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits until there are no readers.
    pub fn poll_deserted(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.0.shared.lock();
        shared.filler = Some(context.waker().clone());
        if shared.reading().next().is_none() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Cuts the slowest readers, if other readers have read everything and wait.
    pub fn cut_slowest(&self) {
        let mut shared = self.0.shared.lock();
        let end = shared.first + shared.pieces.len();
        let Some(slowest) = shared.reading().map(|reader| reader.next).min() else { return };
        if slowest == end || !shared.reading().any(|reader| reader.next == end) {
            return;
        }
        for reader in shared.readers.values_mut().filter(|reader| reader.next == slowest) {
            reader.is_cut = true;
            wake(&mut reader.waker);
        }
    }
}

impl Drop for Filler {
    fn drop(&mut self) {
        let mut shared = self.0.shared.lock();
        if matches!(shared.state, FillState::Filling | FillState::TooLong) {
            shared.change(FillState::Cut("it was given up".into()));
        }
    }
}

impl SharedBody {
    fn reading(&self) -> impl Iterator<Item = &Reader> {
        self.readers.values().filter(|reader| !reader.is_cut)
    }

    /// Frees the pieces that all have read. Returns the bytes that are left.
    fn let_go(&mut self) -> u64 {
        let end = (self.first + self.pieces.len(), self.bytes);
        let (next, bytes) =
            self.reading().map(|reader| (reader.next, reader.bytes)).min().unwrap_or(end);
        self.pieces.drain(..next - self.first);
        self.first = next;
        self.bytes - bytes
    }

    fn change(&mut self, state: FillState) {
        self.state = state;
        self.wake_readers();
    }

    fn wake_readers(&mut self) {
        self.readers.values_mut().for_each(|reader| wake(&mut reader.waker));
    }
}

fn wake(waker: &mut Option<Waker>) {
    if let Some(waker) = waker.take() {
        waker.wake();
    }
}

impl BodyStream for BodyReader {
    fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, StreamError>>> {
        while self.left > 0 {
            let mut piece = match self.body.poll_piece(self.id, context) {
                Poll::Ready(Some(Ok(piece))) => piece,
                other => return other,
            };
            let skipped = self.skip.min(piece.len() as u64);
            self.skip -= skipped;
            // This is at most the length of the piece.
            piece = piece.slice(skipped as usize..);
            piece.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= piece.len() as u64;
            if !piece.is_empty() {
                return Poll::Ready(Some(Ok(piece)));
            }
        }
        Poll::Ready(None)
    }

    fn length(&self) -> Option<u64> {
        self.length
    }
}

impl Drop for BodyReader {
    fn drop(&mut self) {
        let mut shared = self.body.shared.lock();
        shared.readers.remove(&self.id);
        wake(&mut shared.filler);
    }
}

#[cfg(test)]
#[path = "filling_body_tests.rs"]
mod tests;
