//! The body of a response that is being stored, as all read it who have asked for it meanwhile.
//!
//! One task fills it ([`super::fill`]); readers on any loop take its pieces, each at its own pace.
//! A piece is in memory once, whoever reads it. As long as the body may be stored all of it stays,
//! and nobody's pace matters to anybody else. A body that turns out too long for that takes no more
//! readers; those that it has get all of it, and what the slowest of them has read is let go. It is
//! then filled no faster than the fastest of them reads, and the slowest may be behind by what
//! could have been stored: that is the memory it takes. Pure: no clock, no tasks, no I/O.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use kirin_http::body::{BodyStream, StreamError};
use kirin_http::byte_range::ByteRange;
use parking_lot::Mutex;

/// Bytes of a body that is not stored which are there before the fastest reader wants them.
const AHEAD_BYTES: u64 = 64 * 1024;

/// Why a reader is cut that others have waited for.
const TOO_SLOW: &str = "others wait for this reader, and it takes too little";

/// What all readers share.
#[derive(Debug)]
pub struct FillingBody {
    shared: Mutex<Shared>,
    length: Option<u64>,
    limit_bytes: u64,
}

#[derive(Debug, Default)]
struct Shared {
    pieces: VecDeque<Bytes>,
    /// The number of the first of them: those before have been let go.
    first: usize,
    /// Bytes that have come, those that have been let go too.
    bytes: u64,
    state: State,
    readers: HashMap<u64, Reader>,
    /// Readers that there have been.
    count: u64,
    filler: Option<Waker>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum State {
    /// It comes, and may be stored.
    #[default]
    Filling,
    /// It comes, and is too long to be stored.
    TooLong,
    /// All of it has come.
    Whole,
    /// Why it was cut.
    Cut(String),
}

#[derive(Debug, Default)]
struct Reader {
    /// The number of the piece that it takes next.
    next: usize,
    /// Bytes that it has taken.
    bytes: u64,
    waker: Option<Waker>,
    /// It was too slow.
    is_cut: bool,
}

/// Who fills it. To drop it before the end cuts the body.
pub struct Filler(Arc<FillingBody>);

/// Whether more is wanted of a body that is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Demand {
    /// It is.
    More,
    /// Nobody reads any more.
    Nobody,
}

/// Reads the body, or a part of it.
pub struct BodyReader {
    body: Arc<FillingBody>,
    id: u64,
    length: Option<u64>,
    /// Bytes before the part that are not given yet.
    skip: u64,
    /// Bytes of the part that are not given yet.
    left: u64,
}

impl FillingBody {
    /// A body of this length, if it is known, of which up to `limit_bytes` are stored; with its
    /// first reader.
    pub fn new(length: Option<u64>, limit_bytes: u64) -> (Arc<Self>, Filler, BodyReader) {
        let body = Arc::new(Self { shared: Mutex::default(), length, limit_bytes });
        let reader = body.join(&mut body.shared.lock(), None);
        (Arc::clone(&body), Filler(body), reader)
    }

    /// Its length, when it is known before the end.
    pub fn length(&self) -> Option<u64> {
        self.length
    }

    /// Reads from the beginning, or a part of a body whose length is known. None if the beginning
    /// is not there any more, or the end will not come.
    pub fn reader(self: &Arc<Self>, part: Option<ByteRange>) -> Option<BodyReader> {
        let mut shared = self.shared.lock();
        match shared.state {
            State::Filling | State::Whole if shared.first == 0 => {}
            _ => return None,
        }
        Some(self.join(&mut shared, part))
    }

    fn join(self: &Arc<Self>, shared: &mut Shared, part: Option<ByteRange>) -> BodyReader {
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
        let Shared { pieces, first, state, readers, filler, .. } = &mut *shared;
        // It is there for as long as its reader is.
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
            State::Filling | State::TooLong => {
                reader.waker = Some(context.waker().clone());
                Poll::Pending
            }
            State::Whole => Poll::Ready(None),
            State::Cut(why) => Poll::Ready(Some(Err(StreamError(why.clone())))),
        }
    }
}

impl Filler {
    /// The next piece has come.
    pub fn push(&self, piece: Bytes) {
        let mut shared = self.0.shared.lock();
        shared.bytes += piece.len() as u64;
        shared.pieces.push_back(piece);
        shared.wake_readers();
    }

    /// What has come so far, of a body that may be stored.
    pub fn pieces(&self) -> Vec<Bytes> {
        self.0.shared.lock().pieces.iter().cloned().collect()
    }

    /// All of it has come.
    pub fn end(&self) {
        self.0.shared.lock().change(State::Whole);
    }

    /// No more of it will come.
    pub fn cut(self, why: &StreamError) {
        self.0.shared.lock().change(State::Cut(why.0.clone()));
    }

    /// It is too long to be stored.
    pub fn is_too_long(&self) {
        self.0.shared.lock().change(State::TooLong);
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

    /// Lets go what all have read of a body that is not stored, and waits until the slowest reader
    /// is near enough.
    pub fn poll_room(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.0.shared.lock();
        shared.filler = Some(context.waker().clone());
        if shared.let_go() < self.0.limit_bytes.max(1) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Waits until nobody reads any more.
    pub fn poll_deserted(&self, context: &mut Context<'_>) -> Poll<()> {
        let mut shared = self.0.shared.lock();
        shared.filler = Some(context.waker().clone());
        if shared.reading().next().is_none() { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Cuts the slowest readers, if there are others who have read all that there is.
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
        if matches!(shared.state, State::Filling | State::TooLong) {
            shared.change(State::Cut("it was given up".into()));
        }
    }
}

impl Shared {
    fn reading(&self) -> impl Iterator<Item = &Reader> {
        self.readers.values().filter(|reader| !reader.is_cut)
    }

    /// Lets go what all have read; returns the bytes that are left.
    fn let_go(&mut self) -> u64 {
        let end = (self.first + self.pieces.len(), self.bytes);
        let (next, bytes) =
            self.reading().map(|reader| (reader.next, reader.bytes)).min().unwrap_or(end);
        self.pieces.drain(..next - self.first);
        self.first = next;
        self.bytes - bytes
    }

    fn change(&mut self, state: State) {
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
            // No more than the piece has.
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
