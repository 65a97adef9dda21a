//! Buffers that exchanges read into. A loop keeps some; a connection that waits for its server has
//! none.

use std::cell::RefCell;
use std::rc::Rc;

/// Bytes read at once, and the longest response head.
pub(crate) const BUFFER_BYTES: usize = 64 * 1024;

/// Buffers kept for the next exchange.
const KEPT_BUFFERS: usize = 32;

/// The buffers of a loop that nobody uses.
#[derive(Clone, Default)]
pub(crate) struct Buffers(Rc<RefCell<Vec<Box<[u8]>>>>);

/// A buffer with what has been read and not used. Goes back when dropped.
pub(crate) struct ReadBuffer {
    /// Empty until something is to be read.
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
    home: Buffers,
}

impl Buffers {
    /// One that takes its memory when it is read into.
    pub(crate) fn take(&self) -> ReadBuffer {
        ReadBuffer { bytes: Box::default(), start: 0, end: 0, home: self.clone() }
    }

    fn keep(&self, bytes: Box<[u8]>) {
        let mut kept = self.0.borrow_mut();
        if !bytes.is_empty() && kept.len() < KEPT_BUFFERS {
            kept.push(bytes);
        }
    }
}

impl ReadBuffer {
    /// What has been read.
    pub(crate) fn unused(&self) -> &[u8] {
        &self.bytes[self.start..self.end]
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether there is no room for more.
    pub(crate) fn is_full(&self) -> bool {
        self.end - self.start == BUFFER_BYTES
    }

    /// Takes `count` bytes off the front.
    pub(crate) fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Room behind what is there, to be read into; followed by [`ReadBuffer::add`].
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if self.bytes.is_empty() {
            let kept = self.home.0.borrow_mut().pop();
            self.bytes = kept.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice());
        }
        if self.start > 0 && self.end == self.bytes.len() {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.bytes[self.end..]
    }

    /// Nothing has come: a request that waits keeps no memory for its response.
    pub(crate) fn rest(&mut self) {
        if self.is_empty() && !self.bytes.is_empty() {
            let bytes = std::mem::take(&mut self.bytes);
            self.home.keep(bytes);
        }
    }

    /// So many bytes have been read into the room.
    pub(crate) fn add(&mut self, count: usize) {
        self.end = self.bytes.len().min(self.end + count);
    }
}

impl Drop for ReadBuffer {
    fn drop(&mut self) {
        let bytes = std::mem::take(&mut self.bytes);
        self.home.keep(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_read_is_used_from_the_front_and_room_is_made_behind() {
        let buffers = Buffers::default();
        let mut buffer = buffers.take();
        for part in [&b"abc"[..], b"def"] {
            buffer.room()[..3].copy_from_slice(part);
            buffer.add(3);
        }
        buffer.consume(2);
        assert_eq!(buffer.unused(), b"cdef");
        let room = buffer.room().len();
        buffer.add(room);
        assert!(!buffer.is_full() && buffer.room().len() == 2);
        buffer.add(2);
        assert!(buffer.is_full());
        assert_eq!(&buffer.unused()[..4], b"cdef");
        drop(buffer);
        assert!(buffers.take().is_empty());
        assert_eq!(buffers.0.borrow().len(), 1);
    }

    #[test]
    fn a_buffer_without_content_rests_without_memory() {
        let buffers = Buffers::default();
        let (mut one, mut other) = (buffers.take(), buffers.take());
        for buffer in [&mut one, &mut other] {
            assert_eq!(buffer.room().len(), BUFFER_BYTES);
            buffer.rest();
        }
        assert_eq!(buffers.0.borrow().len(), 1, "both have used the same");
        one.room()[0] = b'x';
        one.add(1);
        one.rest();
        assert_eq!(one.unused(), b"x");
    }
}
