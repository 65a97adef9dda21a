//! The pieces of memory that have the frames of a stack.
//!
//! Frames that are close together are read as one piece, which takes much less time. Since Python
//! 3.11 most frames of a stack are.

/// The most bytes of a piece with several frames. It touches two pages at most, and each has one of
/// the frames, so all of it is memory.
const MAX_SPAN: u64 = 4096;

/// Where frames are, and where they come when they are read.
pub(crate) struct FrameSpans {
    /// The addresses of the pieces, and of their ends.
    spans: Vec<(u64, u64)>,
    /// Where each frame is in the bytes of all pieces.
    places: Vec<usize>,
}

impl FrameSpans {
    /// Returns the pieces with frames of this size.
    pub(crate) fn of(frames: &[u64], frame_bytes: usize) -> Self {
        let mut spans: Vec<(u64, u64)> = Vec::new();
        let mut numbers = Vec::with_capacity(frames.len());
        for &frame in frames {
            let end = frame.saturating_add(frame_bytes as u64);
            match spans.last_mut() {
                Some(last) if end.max(last.1) - frame.min(last.0) <= MAX_SPAN => {
                    *last = (frame.min(last.0), end.max(last.1));
                }
                _ => spans.push((frame, end)),
            }
            numbers.push(spans.len() - 1);
        }
        let starts: Vec<usize> = spans
            .iter()
            .scan(0, |bytes, span| Some(std::mem::replace(bytes, *bytes + length(*span))))
            .collect();
        let places = frames.iter().zip(numbers);
        let places =
            places.map(|(frame, number)| starts[number] + (frame - spans[number].0) as usize);
        Self { places: places.collect(), spans }
    }

    /// Returns the number of bytes of all pieces.
    pub(crate) fn bytes(&self) -> usize {
        self.spans.iter().copied().map(length).sum()
    }

    /// Returns where the bytes of a frame are.
    pub(crate) fn place(&self, frame: usize) -> usize {
        self.places.get(frame).copied().unwrap_or(usize::MAX)
    }

    /// Returns the address of each piece, with the bytes to read it to.
    pub(crate) fn parts<'a>(&self, mut bytes: &'a mut [u8]) -> Vec<(u64, &'a mut [u8])> {
        let mut parts = Vec::with_capacity(self.spans.len());
        for span in &self.spans {
            let Some((part, rest)) = bytes.split_at_mut_checked(length(*span)) else { break };
            parts.push((span.0, part));
            bytes = rest;
        }
        parts
    }
}

fn length((start, end): (u64, u64)) -> usize {
    (end - start) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the addresses and sizes of the pieces, and the places of the frames.
    fn spans(frames: &[u64]) -> (Vec<(u64, usize)>, Vec<usize>) {
        let spans = FrameSpans::of(frames, 0x50);
        let mut bytes = vec![0; spans.bytes()];
        let parts = spans.parts(&mut bytes);
        let parts = parts.iter().map(|(address, part)| (*address, part.len())).collect();
        (parts, (0..frames.len()).map(|frame| spans.place(frame)).collect())
    }

    #[test]
    fn frames_that_are_close_together_are_one_piece() {
        assert_eq!(spans(&[]), (vec![], vec![]));
        assert_eq!(spans(&[0x1000]), (vec![(0x1000, 0x50)], vec![0]));
        let near = [0x1200, 0x1100, 0x1180];
        assert_eq!(spans(&near), (vec![(0x1100, 0x150)], vec![0x100, 0, 0x80]));
        let far = [0x9100, 0x9000, 0x1000, 0x9200];
        let pieces = vec![(0x9000, 0x150), (0x1000, 0x50), (0x9200, 0x50)];
        assert_eq!(spans(&far), (pieces, vec![0x100, 0, 0x150, 0x1A0]));
    }

    #[test]
    fn a_piece_is_not_longer_than_a_page() {
        assert_eq!(spans(&[0x1000, 0x1000 + 0xFB0]).0, [(0x1000, 0x1000)]);
        assert_eq!(spans(&[0x1000, 0x1000 + 0xFB1]).0.len(), 2);
        assert_eq!(spans(&[u64::MAX, 0, u64::MAX - 8]).0.len(), 3);
    }
}
