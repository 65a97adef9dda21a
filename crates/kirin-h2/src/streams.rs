//! The open streams of a connection.

use crate::priority::Priority;
use crate::window::{ReceiveWindow, SendWindow};

/// A stream whose request or response is not complete. `S` is what the server keeps for it.
#[derive(Debug)]
pub(crate) struct Stream<S> {
    pub(crate) id: u32,
    /// Whether the client may still send data.
    pub(crate) is_receiving: bool,
    /// Whether the response is not complete.
    pub(crate) is_sending: bool,
    /// Whether the server has data for it ([`crate::Connection::set_ready`]).
    pub(crate) is_ready: bool,
    /// Bytes of the body that are still received and dropped. `None` if it is wanted.
    pub(crate) dropped: Option<u32>,
    pub(crate) priority: Priority,
    /// When it sent last, in frames of the connection.
    pub(crate) turn: u32,
    pub(crate) send: SendWindow,
    pub(crate) receive: ReceiveWindow,
    /// Bytes that have to come, by the request's `content-length`.
    pub(crate) announced: Option<u64>,
    pub(crate) state: S,
}

/// The open streams, by their numbers. It has no memory while there are none.
#[derive(Debug)]
pub(crate) struct Streams<S>(Vec<Stream<S>>);

impl<S> Streams<S> {
    pub(crate) const fn new() -> Self {
        Self(Vec::new())
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Adds a stream. Its number is higher than those of all before (RFC 9113 section 5.1.1).
    pub(crate) fn push(&mut self, stream: Stream<S>) {
        debug_assert!(self.0.last().is_none_or(|last| last.id < stream.id), "{}", stream.id);
        self.0.push(stream);
    }

    fn position(&self, id: u32) -> Option<usize> {
        self.0.binary_search_by_key(&id, |stream| stream.id).ok()
    }

    pub(crate) fn get(&self, id: u32) -> Option<&Stream<S>> {
        self.0.get(self.position(id)?)
    }

    pub(crate) fn get_mut(&mut self, id: u32) -> Option<&mut Stream<S>> {
        let position = self.position(id)?;
        self.0.get_mut(position)
    }

    /// Removes a stream.
    pub(crate) fn remove(&mut self, id: u32) -> Option<Stream<S>> {
        let position = self.position(id)?;
        let stream = self.0.remove(position);
        if self.0.is_empty() {
            self.0 = Vec::new();
        }
        Some(stream)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Stream<S>> {
        self.0.iter()
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Stream<S>> {
        self.0.iter_mut()
    }

    /// Removes all streams.
    pub(crate) fn take_all(&mut self) -> impl Iterator<Item = Stream<S>> {
        std::mem::take(&mut self.0).into_iter()
    }

    /// Returns the stream that sends next, if one has data and room: of those with the lowest
    /// urgency, the one whose turn is the longest ago. Of those that are not incremental, only the
    /// oldest takes part (RFC 9218 section 10).
    pub(crate) fn next_sender(&self) -> Option<u32> {
        let mut best: Option<(u8, u32, u32)> = None;
        let mut whole: Option<u8> = None;
        for stream in &self.0 {
            if !stream.is_ready || stream.send.room() == 0 {
                continue;
            }
            let Priority { urgency, incremental } = stream.priority;
            if best.is_some_and(|(other, ..)| other < urgency) {
                continue;
            }
            if !incremental {
                if whole.is_some_and(|other| other <= urgency) {
                    continue;
                }
                whole = Some(urgency);
            }
            let key = (urgency, stream.turn, stream.id);
            if best.is_none_or(|best| key < best) {
                best = Some(key);
            }
        }
        best.map(|(.., id)| id)
    }
}

/// Which of the last numbers were used, and which of them we have reset. An older stream counts as
/// used.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RecentStreams {
    /// The highest number that the client has used.
    last: u32,
    /// A bit for each odd number from `last` downwards.
    used: u128,
    reset: u128,
}

/// What is known of a stream that is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClosedStream {
    /// The client has not used its number, and may.
    Idle,
    /// The client has used a higher number, and not this one.
    Skipped,
    /// It has ended.
    Ended,
    /// We have reset it. The client may not know that yet.
    Reset,
}

impl RecentStreams {
    pub(crate) fn last(self) -> u32 {
        self.last
    }

    /// Notes that the client uses the odd number `id`, which is the highest so far.
    #[inline]
    pub(crate) fn begin(&mut self, id: u32) {
        debug_assert!(id % 2 == 1 && id > self.last, "{id} after {}", self.last);
        let step = if self.last == 0 { u32::BITS } else { (id - self.last) / 2 };
        self.used = self.used.checked_shl(step).unwrap_or(0) | 1;
        self.reset = self.reset.checked_shl(step).unwrap_or(0);
        self.last = id;
    }

    /// Notes that we have reset a stream.
    pub(crate) fn reset(&mut self, id: u32) {
        if let Some(bit) = self.bit(id) {
            self.reset |= bit;
        }
    }

    fn bit(self, id: u32) -> Option<u128> {
        1_u128.checked_shl(self.last.checked_sub(id)? / 2)
    }

    /// Returns what is known of a stream that is not open.
    pub(crate) fn state(self, id: u32) -> ClosedStream {
        if id > self.last {
            return ClosedStream::Idle;
        }
        match self.bit(id) {
            Some(bit) if self.reset & bit != 0 => ClosedStream::Reset,
            Some(bit) if self.used & bit == 0 => ClosedStream::Skipped,
            _ => ClosedStream::Ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(id: u32, urgency: u8, incremental: bool) -> Stream<()> {
        Stream {
            id,
            is_receiving: false,
            is_sending: true,
            is_ready: true,
            dropped: None,
            priority: Priority { urgency, incremental },
            turn: 0,
            send: SendWindow::new(100_000),
            receive: ReceiveWindow::new(0),
            announced: None,
            state: (),
        }
    }

    /// Returns the order in which streams send `count` frames.
    fn order(streams: &[(u8, bool)], count: u32) -> Vec<u32> {
        let mut table = Streams::new();
        for (index, (urgency, incremental)) in streams.iter().enumerate() {
            table.push(stream(2 * index as u32 + 1, *urgency, *incremental));
        }
        let send = |turn| {
            let sender = table.next_sender().expect("a sender");
            table.get_mut(sender).expect("an open stream").turn = turn;
            sender
        };
        (1..=count).map(send).collect()
    }

    #[test]
    fn the_lowest_urgency_sends_first() {
        assert_eq!(order(&[(3, true), (1, true), (2, false)], 3), [3, 3, 3]);
    }

    #[test]
    fn incremental_streams_take_turns_and_others_are_sent_whole() {
        assert_eq!(order(&[(3, true), (3, true), (3, true)], 6), [1, 3, 5, 1, 3, 5]);
        assert_eq!(order(&[(3, false), (3, false)], 3), [1, 1, 1]);
        assert_eq!(order(&[(3, false), (3, false), (3, true)], 4), [1, 5, 1, 5]);
    }

    #[test]
    fn a_stream_without_data_or_room_does_not_send() {
        let mut table = Streams::new();
        let mut blocked = stream(1, 0, false);
        blocked.send = SendWindow::new(0);
        table.push(blocked);
        let mut idle = stream(3, 0, false);
        idle.is_ready = false;
        table.push(idle);
        assert!(table.next_sender().is_none());
        table.push(stream(5, 7, false));
        assert_eq!(table.next_sender(), Some(5));
    }

    #[test]
    fn used_skipped_and_reset_numbers_are_told_apart() {
        let mut recent = RecentStreams::default();
        assert_eq!(recent.state(1), ClosedStream::Idle);
        recent.begin(5);
        recent.begin(7);
        recent.reset(5);
        for (id, state) in [
            (1, ClosedStream::Skipped),
            (3, ClosedStream::Skipped),
            (5, ClosedStream::Reset),
            (7, ClosedStream::Ended),
            (9, ClosedStream::Idle),
        ] {
            assert_eq!(recent.state(id), state, "{id}");
        }
        recent.begin(7 + 2 * 127);
        assert_eq!(recent.state(7), ClosedStream::Ended);
        assert_eq!(recent.state(9), ClosedStream::Skipped);
        recent.begin(0x7fff_ffff);
        assert_eq!(recent.state(9), ClosedStream::Ended);
        assert_eq!(recent.state(0x7fff_fffd), ClosedStream::Skipped);
    }
}
