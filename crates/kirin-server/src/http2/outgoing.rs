//! A response body that is sent in turn with others: from memory, from a file, or as its source
//! gives it.

use std::collections::VecDeque;
use std::io;
use std::os::unix::fs::FileExt;

use bytes::Bytes;
use kirin_client_bytes::{ClientShare, NoRoom, Reservation, Resource};
use kirin_h2::Output;
use kirin_http::body::FileRange;
use kirin_http::pace::Pace;
use kirin_http::trailers::Trailers;

use super::connection::Engine;
use super::response;
use super::stream::StreamState;
use crate::observation::ResponseRecord;
use crate::streams::exchange::Exchange;

/// A response whose body is being sent.
pub(super) struct Outgoing<H> {
    pub(super) body: OutgoingBody,
    sent: u64,
    pace: Pace,
    /// The second at which the client is too slow. 0 while it is not waited for.
    deadline: u64,
    /// Counts the bytes that wait and have no other owner.
    held: Option<Reservation>,
    record: ResponseRecord,
    exchange: Exchange<H>,
}

/// A body, without what was sent of it.
pub(super) enum OutgoingBody {
    Pieces(VecDeque<Bytes>),
    File(FileRange),
    /// A piece that the stream's task has brought.
    Source(SourcePiece),
}

/// The last piece of a body that comes over time.
#[derive(Default)]
pub(super) struct SourcePiece {
    pub(super) bytes: Bytes,
    /// What follows the piece, if it is the last one.
    pub(super) end: Option<Option<Trailers>>,
}

/// What [`Outgoing::send_some`] has done.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Sent {
    /// A part.
    Some,
    /// All that is there. More will come.
    Waits,
    /// The rest.
    All,
    /// Nothing, because the body cannot be read.
    Failed,
}

impl OutgoingBody {
    /// Counts the bytes that have no other owner. Bytes that the store has too are not held for the
    /// client.
    pub(super) fn reserve(&self, share: &ClientShare) -> Result<Option<Reservation>, NoRoom> {
        let Self::Pieces(pieces) = self else { return Ok(None) };
        let owned = pieces.iter().filter(|piece| piece.is_unique());
        match owned.map(|piece| piece.len() as u64).sum() {
            0 => Ok(None),
            bytes => share.reserve(Resource::Memory, bytes).map(Some),
        }
    }
}

impl<H> Outgoing<H> {
    /// Returns a body of which nothing was sent. `held` counts its bytes.
    pub(super) fn new(
        body: OutgoingBody,
        held: Option<Reservation>,
        record: ResponseRecord,
        exchange: Exchange<H>,
    ) -> Self {
        let pace = Pace::new(exchange.server.deadlines.writing);
        Self { body, sent: 0, pace, deadline: 0, held, record, exchange }
    }

    /// Puts the next piece of a body that comes over time. `waits`: the client does not take it
    /// now.
    pub(super) fn put(&mut self, piece: SourcePiece, waits: bool) -> Result<(), NoRoom> {
        self.held = None;
        if waits && piece.bytes.is_unique() {
            let bytes = piece.bytes.len() as u64;
            self.held = Some(self.exchange.share.reserve(Resource::Memory, bytes)?);
        }
        self.body = OutgoingBody::Source(piece);
        Ok(())
    }

    /// Returns whether the stream's task must bring the next piece.
    pub(super) fn needs_piece(&self) -> bool {
        matches!(&self.body, OutgoingBody::Source(piece) if piece.bytes.is_empty())
    }

    /// Sends one frame.
    pub(super) fn send_some(&mut self, engine: &mut Engine<H>, stream: u32) -> Sent {
        let body = &mut self.body;
        let mut trailers = None;
        let filled = engine.fill(stream, |out, most| match body {
            OutgoingBody::Pieces(pieces) => Ok(append_pieces(pieces, out, most)),
            OutgoingBody::File(range) => append_file(range, out, most),
            OutgoingBody::Source(piece) => {
                let count = most.min(piece.bytes.len());
                out.extend_from_slice(&piece.bytes.split_to(count));
                if !piece.bytes.is_empty() {
                    return Ok(false);
                }
                trailers = piece.end.take();
                Ok(matches!(trailers, Some(None)))
            }
        });
        let Ok(bytes) = filled else { return Sent::Failed };
        self.sent += bytes as u64;
        let now = self.exchange.server.clock().last();
        let deadline = self.pace.moved(bytes as u64, now);
        if self.deadline != 0 {
            self.deadline = deadline;
        }
        match (&self.body, trailers) {
            (OutgoingBody::Pieces(pieces), _) if pieces.is_empty() => Sent::All,
            (OutgoingBody::File(range), _) if range.length == 0 => Sent::All,
            (_, Some(None)) => Sent::All,
            (_, Some(Some(trailers))) => {
                response::write_trailers(engine, stream, trailers);
                Sent::All
            }
            (OutgoingBody::Source(piece), None) if piece.bytes.is_empty() => Sent::Waits,
            _ => Sent::Some,
        }
    }

    /// Returns whether the client was too slow. Called once a second. `is_blocked`: flow control
    /// lets nothing be sent.
    pub(super) fn is_too_slow(&mut self, is_blocked: bool, now: u64) -> bool {
        let is_waited_for = is_blocked && !self.needs_piece();
        match (is_waited_for, self.deadline) {
            (true, 0) => self.deadline = self.pace.begin(now),
            (true, deadline) => return deadline <= now,
            (false, 0) => {}
            (false, _) => {
                self.pace.end(now);
                self.deadline = 0;
            }
        }
        false
    }

    /// Tells the observers that the response has ended.
    pub(super) fn end(mut self, stream: &StreamState<H>, is_cut: bool) {
        self.record.body_bytes = self.sent;
        self.record.is_cut = is_cut;
        self.exchange.end(stream.received_bytes.get(), self.record);
    }
}

/// Appends up to `most` bytes. Returns whether nothing is left.
fn append_pieces(pieces: &mut VecDeque<Bytes>, out: &mut Output, most: usize) -> bool {
    let mut room = most;
    while let Some(piece) = pieces.front_mut() {
        let count = room.min(piece.len());
        out.extend_from_slice(&piece.split_to(count));
        room -= count;
        if !piece.is_empty() {
            return false;
        }
        pieces.pop_front();
    }
    true
}

/// Appends up to `most` bytes of a file. The page cache usually has them. Returns whether nothing
/// is left.
pub(super) fn append_file(
    range: &mut FileRange,
    out: &mut Output,
    most: usize,
) -> io::Result<bool> {
    let count = usize::try_from(range.length).unwrap_or(usize::MAX).min(most);
    match range.file.read_at(out.spare(count), range.offset)? {
        // The file became shorter while it was read.
        0 if count > 0 => Err(io::ErrorKind::UnexpectedEof.into()),
        read => {
            out.advance(read);
            range.offset += read as u64;
            range.length -= read as u64;
            Ok(range.length == 0)
        }
    }
}
