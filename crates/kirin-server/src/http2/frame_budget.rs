//! Limits the frames of a client that ask for nothing. Each of them costs work, and flow control
//! does not limit them.
//!
//! PING, SETTINGS, PRIORITY, WINDOW_UPDATE, RST_STREAM, unknown frames, and empty DATA and
//! CONTINUATION frames take from a budget. Requests, their bodies, responses and time add to it. An
//! honest client needs such frames in proportion to these, so that only a flood uses the budget up.
//!
//! Pure: it takes the bytes of both directions, and seconds.

/// The number of such frames that a client may send at once without any other frame.
const MOST: u32 = 1_000;

/// The number of such frames that a client may send in each second, for an unlimited time.
const PER_SECOND: u32 = 20;

/// The number of such frames that each HEADERS or DATA frame of either side allows, for example two
/// WINDOW_UPDATE.
const PER_WORK: u32 = 4;

/// The bytes of an unknown frame that count as one more frame.
const UNKNOWN_BYTES: u32 = 1024;

/// A padded DATA frame of up to this size may be all padding (RFC 9113 section 6.1).
const MOST_PADDING_BYTES: u32 = 256;

const HEADER_BYTES: usize = 9;
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const KNOWN_TYPES: u8 = 10;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const PADDED: u8 = 8;

/// The number of such frames that a client may still send.
#[derive(Debug)]
pub(super) struct FrameBudget {
    left: u32,
    /// The second of the last refill.
    refilled: u64,
    received: Frames,
    sent: Frames,
}

/// The position in a sequence of frames (RFC 9113 section 4.1).
#[derive(Debug, Default)]
struct Frames {
    /// Number of bytes before the next header.
    skip: usize,
    header: [u8; HEADER_BYTES],
    /// Number of bytes of the header that have come.
    filled: usize,
}

/// The header of a frame, without its stream.
struct Header {
    length: u32,
    kind: u8,
    flags: u8,
}

impl Frames {
    /// Returns a position that skips `bytes` before the first frame.
    fn after(bytes: usize) -> Self {
        Self { skip: bytes, ..Self::default() }
    }

    /// Takes the next bytes. Calls `seen` for each header that ends in them.
    fn pass(&mut self, mut bytes: &[u8], mut seen: impl FnMut(Header)) {
        loop {
            let skipped = self.skip.min(bytes.len());
            self.skip -= skipped;
            bytes = &bytes[skipped..];
            if bytes.is_empty() {
                return;
            }
            debug_assert!(self.skip == 0 && self.filled < HEADER_BYTES, "{self:?}");
            let wanted = (HEADER_BYTES - self.filled).min(bytes.len());
            self.header[self.filled..self.filled + wanted].copy_from_slice(&bytes[..wanted]);
            self.filled += wanted;
            bytes = &bytes[wanted..];
            if self.filled < HEADER_BYTES {
                return;
            }
            self.filled = 0;
            let [a, b, c, kind, flags, ..] = self.header;
            let length = u32::from_be_bytes([0, a, b, c]);
            self.skip = length as usize;
            seen(Header { length, kind, flags });
        }
    }
}

impl FrameBudget {
    /// Returns the budget of a connection whose first `preface_bytes` are not a frame; `now` in
    /// seconds.
    pub(super) fn new(preface_bytes: usize, now: u64) -> Self {
        Self {
            left: MOST,
            refilled: now,
            received: Frames::after(preface_bytes),
            sent: Frames::default(),
        }
    }

    /// Counts the bytes that the client has sent. Returns false if it sent too much; `now` is
    /// called only then.
    pub(super) fn receive(&mut self, bytes: &[u8], now: impl Fn() -> u64) -> bool {
        let left = &mut self.left;
        let mut over = 0;
        self.received.pass(bytes, |frame| match cost(&frame) {
            0 => *left = MOST.min(*left + PER_WORK),
            cost => {
                over += cost.saturating_sub(*left);
                *left = left.saturating_sub(cost);
            }
        });
        debug_assert!(self.left <= MOST, "{} frames are left", self.left);
        if over == 0 {
            return true;
        }
        let now = now();
        let seconds = u32::try_from(now.saturating_sub(self.refilled)).unwrap_or(MOST);
        self.refilled = now;
        let refill = MOST.min(seconds.saturating_mul(PER_SECOND));
        self.left = refill.saturating_sub(over);
        over <= refill
    }

    /// Counts the bytes that are sent to the client.
    pub(super) fn send(&mut self, bytes: &[u8]) {
        let left = &mut self.left;
        self.sent.pass(bytes, |frame| {
            if matches!(frame.kind, DATA | HEADERS) {
                *left = MOST.min(*left + PER_WORK);
            }
        });
    }
}

/// Returns what a frame takes from the budget, or 0 for a frame that adds to it.
fn cost(frame: &Header) -> u32 {
    let is_last = frame.flags & END_STREAM != 0;
    match frame.kind {
        DATA if is_last => 0,
        DATA => {
            let is_padding = frame.flags & PADDED != 0 && frame.length <= MOST_PADDING_BYTES;
            u32::from(frame.length == 0 || is_padding)
        }
        HEADERS => 0,
        CONTINUATION => 1,
        kind if kind < KNOWN_TYPES => 1,
        _ => 1 + frame.length / UNKNOWN_BYTES,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PING: u8 = 6;
    const WINDOW_UPDATE: u8 = 8;
    const UNKNOWN: u8 = 0xbe;

    fn frame(kind: u8, flags: u8, length: usize) -> Vec<u8> {
        let size = (length as u32).to_be_bytes();
        let mut frame = vec![size[1], size[2], size[3], kind, flags, 0, 0, 0, 1];
        frame.resize(HEADER_BYTES + length, 0);
        frame
    }

    /// Returns how many of these frames a client may send at once, in pieces of `piece` bytes.
    fn allowed(frame: &[u8], piece: usize) -> Option<u32> {
        let mut budget = FrameBudget::new(0, 100);
        (0..3 * MOST).find(|_| !frame.chunks(piece).all(|piece| budget.receive(piece, || 100)))
    }

    #[test]
    fn a_flood_of_control_frames_is_noticed_however_it_is_cut() {
        for flood in [
            frame(PING, 0, 8),
            frame(4, 0, 6),
            frame(2, 0, 5),
            frame(3, 0, 4),
            frame(WINDOW_UPDATE, 0, 4),
            frame(DATA, 0, 0),
            frame(DATA, PADDED, 200),
            frame(CONTINUATION, 0, 0),
            frame(UNKNOWN, 0, 10),
        ] {
            for piece in [1, 2, 9, 1000] {
                assert_eq!(
                    allowed(&flood, piece),
                    Some(MOST),
                    "{:?} {piece}",
                    &flood[..HEADER_BYTES]
                );
            }
        }
        assert!(allowed(&frame(UNKNOWN, 0, 16_384), 4096) < Some(MOST / 16));
    }

    #[test]
    fn requests_and_bodies_do_not_count_as_a_flood() {
        for work in [
            frame(HEADERS, 5, 30),
            frame(DATA, 0, 100),
            frame(DATA, END_STREAM, 0),
            frame(DATA, PADDED, 16_000),
        ] {
            assert_eq!(allowed(&work, 1000), None);
        }
    }

    #[test]
    fn window_updates_for_sent_bytes_are_always_allowed() {
        let mut budget = FrameBudget::new(24, 100);
        assert!(budget.receive(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", || 100));
        for _ in 0..10 * MOST {
            budget.send(&frame(DATA, 0, 50));
            assert!(budget.receive(&frame(WINDOW_UPDATE, 0, 4).repeat(2), || 100));
        }
    }

    #[test]
    fn occasional_pings_are_always_allowed() {
        let mut budget = FrameBudget::new(0, 0);
        for second in 0..1000u64 {
            assert!(
                budget.receive(&frame(PING, 0, 8).repeat(PER_SECOND as usize), || second),
                "{second}"
            );
        }
        assert!(!budget.receive(&frame(PING, 0, 8).repeat(2 * MOST as usize), || 1000));
    }
}
