//! Buffers that exchanges read into. A loop keeps a few for reuse. A request that waits for its
//! server has none, so that many waiting requests take little memory.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};
use std::rc::Rc;

use kirin_http::ReadBuffer;

/// Bytes read at once. No response head may be longer.
pub(crate) const BUFFER_BYTES: usize = 64 * 1024;

/// The most unused buffers that a loop keeps.
const MAX_KEPT: usize = 32;

/// The unused buffers of a loop.
#[derive(Clone, Default)]
pub(crate) struct BufferPool(Rc<RefCell<Vec<Box<[u8]>>>>);

/// A buffer whose memory comes from a pool when it is first needed. Dropping the buffer gives the
/// memory back.
pub(crate) struct PooledBuffer {
    buffer: ReadBuffer,
    pool: BufferPool,
}

impl BufferPool {
    /// Returns a buffer, still without memory.
    pub(crate) fn take(&self) -> PooledBuffer {
        PooledBuffer { buffer: ReadBuffer::default(), pool: self.clone() }
    }

    fn keep(&self, memory: Box<[u8]>) {
        let mut kept = self.0.borrow_mut();
        if !memory.is_empty() && kept.len() < MAX_KEPT {
            kept.push(memory);
        }
    }
}

impl PooledBuffer {
    /// Returns the room to read into, and gets memory for it if there is none.
    pub(crate) fn room(&mut self) -> &mut [u8] {
        if !self.buffer.has_memory() {
            let kept = self.pool.0.borrow_mut().pop();
            let memory = kept.unwrap_or_else(|| vec![0; BUFFER_BYTES].into_boxed_slice());
            self.buffer = ReadBuffer::new(memory);
        }
        self.buffer.room()
    }

    /// Gives the memory back if nothing is in it.
    pub(crate) fn release_if_empty(&mut self) {
        if self.buffer.is_empty() {
            self.pool.keep(self.buffer.take_memory());
        }
    }
}

impl Deref for PooledBuffer {
    type Target = ReadBuffer;

    fn deref(&self) -> &ReadBuffer {
        &self.buffer
    }
}

impl DerefMut for PooledBuffer {
    fn deref_mut(&mut self) -> &mut ReadBuffer {
        &mut self.buffer
    }
}

impl Drop for PooledBuffer {
    fn drop(&mut self) {
        self.pool.keep(self.buffer.take_memory());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_taken_from_the_front_and_read_to_the_end() {
        let buffers = BufferPool::default();
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
    fn an_empty_buffer_holds_no_memory() {
        let buffers = BufferPool::default();
        let (mut one, mut other) = (buffers.take(), buffers.take());
        for buffer in [&mut one, &mut other] {
            assert_eq!(buffer.room().len(), BUFFER_BYTES);
            buffer.release_if_empty();
        }
        assert_eq!(buffers.0.borrow().len(), 1, "both have used the same");
        one.room()[0] = b'x';
        one.add(1);
        one.release_if_empty();
        assert_eq!(one.unused(), b"x");
    }
}
