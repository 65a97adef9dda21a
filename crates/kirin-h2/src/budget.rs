//! Limits what a client may do that costs work and asks for nothing. Flow control and the number of
//! concurrent streams do not limit that.
//!
//! PING, SETTINGS, PRIORITY, WINDOW_UPDATE, RST_STREAM, unknown frames, and empty DATA and
//! CONTINUATION frames take from one budget. Requests, their bodies, responses and time add to it.
//! An honest client needs such frames in proportion to these, so that only a flood uses the budget
//! up.
//!
//! Streams that end early by the client's doing take from another one, and streams that end well
//! add to it: a "rapid reset" (CVE-2023-44487), and errors that make us reset (CVE-2025-8671).

use crate::frame::{FrameHeader, flag, kind};

/// The number of such frames that a client may send at once without any other frame.
const MOST_FRAMES: u32 = 1_000;

/// The number of such frames that a client may send in each second, for an unlimited time.
const FRAMES_PER_SECOND: u32 = 20;

/// The number of such frames that each HEADERS or DATA frame of either side allows, for example two
/// WINDOW_UPDATE.
const FRAMES_PER_WORK: u32 = 4;

/// The bytes of a frame that nobody needs that count as one more frame.
const USELESS_BYTES: u32 = 1024;

/// A padded DATA frame of up to this size may be all padding (RFC 9113 section 6.1).
const MOST_PADDING_BYTES: usize = 256;

/// The most streams that a client may end early in excess of those that end well.
const MOST_EARLY_ENDS: u32 = 100;

/// What a client may still do.
#[derive(Debug)]
pub(crate) struct Budget {
    frames: u32,
    /// The second of the last refill.
    refilled: u64,
    early_ends: u32,
}

impl Budget {
    /// Returns the budget of a connection that begins at second `now`.
    pub(crate) fn new(now: u64) -> Self {
        Self { frames: MOST_FRAMES, refilled: now, early_ends: MOST_EARLY_ENDS }
    }

    /// Counts a frame of the client at second `now`. Returns false if there were too many.
    #[inline]
    #[must_use]
    pub(crate) fn receive(&mut self, frame: FrameHeader, now: u64) -> bool {
        match cost(frame) {
            0 => {
                self.count_work();
                true
            }
            cost => self.take(cost, now),
        }
    }

    /// Counts a DATA frame of `bytes` for a stream that we have reset. A client may have sent some
    /// before it knew that.
    #[must_use]
    pub(crate) fn receive_late_data(&mut self, bytes: usize, now: u64) -> bool {
        let bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
        self.take(1 + FRAMES_PER_WORK + bytes / USELESS_BYTES, now)
    }

    fn take(&mut self, cost: u32, now: u64) -> bool {
        if let Some(left) = self.frames.checked_sub(cost) {
            self.frames = left;
            return true;
        }
        let seconds = u32::try_from(now.saturating_sub(self.refilled)).unwrap_or(MOST_FRAMES);
        self.refilled = now;
        let all = (self.frames + seconds.saturating_mul(FRAMES_PER_SECOND)).min(MOST_FRAMES);
        self.frames = all.saturating_sub(cost);
        cost <= all
    }

    /// Adds to the budget for a HEADERS or DATA frame of either side.
    #[inline]
    pub(crate) fn count_work(&mut self) {
        self.frames = MOST_FRAMES.min(self.frames + FRAMES_PER_WORK);
    }

    /// Counts a stream that the client has ended early. Returns false if there were too many.
    #[must_use]
    pub(crate) fn end_early(&mut self) -> bool {
        self.early_ends = self.early_ends.saturating_sub(1);
        self.early_ends > 0
    }

    /// Counts a stream whose response was complete.
    #[inline]
    pub(crate) fn end_well(&mut self) {
        self.early_ends = MOST_EARLY_ENDS.min(self.early_ends + 1);
    }
}

/// Returns what a frame takes from the budget, or 0 for a frame that adds to it.
#[inline]
fn cost(frame: FrameHeader) -> u32 {
    match frame.kind {
        kind::DATA if frame.has(flag::END_STREAM) => 0,
        kind::DATA => {
            let is_padding = frame.has(flag::PADDED) && frame.length <= MOST_PADDING_BYTES;
            u32::from(frame.length == 0 || is_padding)
        }
        kind::HEADERS => 0,
        kind::CONTINUATION | kind::PRIORITY_UPDATE => 1,
        kind if kind < kind::CONTINUATION => 1,
        _ => 1 + u32::try_from(frame.length).unwrap_or(u32::MAX) / USELESS_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, length: usize) -> FrameHeader {
        FrameHeader { length, kind, flags, stream: 1 }
    }

    /// Returns how many of these frames a client may send at once.
    fn allowed(frame: FrameHeader) -> Option<u32> {
        let mut budget = Budget::new(100);
        (0..3 * MOST_FRAMES).find(|_| !budget.receive(frame, 100))
    }

    #[test]
    fn a_flood_of_frames_that_ask_for_nothing_is_noticed() {
        for flood in [
            frame(kind::PING, 0, 8),
            frame(kind::SETTINGS, 0, 6),
            frame(kind::PRIORITY, 0, 5),
            frame(kind::PRIORITY_UPDATE, 0, 5),
            frame(kind::RST_STREAM, 0, 4),
            frame(kind::WINDOW_UPDATE, 0, 4),
            frame(kind::DATA, 0, 0),
            frame(kind::DATA, flag::PADDED, 200),
            frame(kind::CONTINUATION, 0, 0),
            frame(0xbe, 0, 10),
        ] {
            assert_eq!(allowed(flood), Some(MOST_FRAMES), "{flood:?}");
        }
        assert!(allowed(frame(0xbe, 0, 16_384)) < Some(MOST_FRAMES / 16));
    }

    #[test]
    fn requests_and_bodies_are_not_a_flood() {
        for work in [
            frame(kind::HEADERS, 5, 30),
            frame(kind::DATA, 0, 100),
            frame(kind::DATA, flag::END_STREAM, 0),
            frame(kind::DATA, flag::PADDED, 16_000),
        ] {
            assert_eq!(allowed(work), None, "{work:?}");
        }
    }

    #[test]
    fn sent_frames_and_time_allow_more() {
        let mut budget = Budget::new(100);
        let update = frame(kind::WINDOW_UPDATE, 0, 4);
        for _ in 0..100_000 {
            budget.count_work();
            assert!((0..FRAMES_PER_WORK).all(|_| budget.receive(update, 100)));
        }
        while budget.receive(update, 100) {}
        assert!((0..FRAMES_PER_SECOND * 3).all(|_| budget.receive(update, 103)));
        assert!(!budget.receive(update, 103));
    }

    #[test]
    fn streams_that_end_early_are_allowed_in_proportion_to_others() {
        let mut budget = Budget::new(0);
        for _ in 0..10_000 {
            assert!(budget.end_early());
            budget.end_well();
        }
        assert_eq!((1..).find(|_| !budget.end_early()), Some(MOST_EARLY_ENDS));
    }
}
