//! A buffer between a connection and the code that parses what has been read from it. No I/O.

/// Bytes that have been read and not been used yet, and room for more.
#[derive(Debug, Default)]
pub struct ReadBuffer {
    memory: Box<[u8]>,
    /// The bytes from `start` to `end` have not been used yet.
    start: usize,
    end: usize,
}

impl ReadBuffer {
    /// Returns an empty buffer that reads into `memory`.
    pub fn new(memory: Box<[u8]>) -> Self {
        Self { memory, start: 0, end: 0 }
    }

    /// Returns the bytes that have been read and not been used.
    pub fn unused(&self) -> &[u8] {
        &self.memory[self.start..self.end]
    }

    /// Returns whether all bytes have been used.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns whether there is no room for more bytes. A buffer without memory is full.
    pub fn is_full(&self) -> bool {
        self.end - self.start == self.memory.len()
    }

    /// Marks the first `count` unused bytes as used.
    pub fn consume(&mut self, count: usize) {
        self.start = self.end.min(self.start + count);
        if self.is_empty() {
            (self.start, self.end) = (0, 0);
        }
    }

    /// Returns the room behind the unused bytes, which is empty only if the buffer is full.
    /// [`ReadBuffer::add`] says how much has been read into it.
    pub fn room(&mut self) -> &mut [u8] {
        if self.start > 0 && self.end == self.memory.len() {
            self.memory.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        &mut self.memory[self.end..]
    }

    /// Marks the first `count` bytes of the room as read.
    pub fn add(&mut self, count: usize) {
        self.end = self.memory.len().min(self.end + count);
    }

    /// Copies unused bytes into `out` and marks them as used. Returns how many there were.
    pub fn take_into(&mut self, out: &mut [u8]) -> usize {
        let count = self.unused().len().min(out.len());
        out[..count].copy_from_slice(&self.unused()[..count]);
        self.consume(count);
        count
    }

    /// Takes the memory away. Bytes that have not been used are lost.
    pub fn take_memory(&mut self) -> Box<[u8]> {
        std::mem::take(self).memory
    }

    /// Returns whether the buffer has memory to read into.
    pub fn has_memory(&self) -> bool {
        !self.memory.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(buffer: &mut ReadBuffer, bytes: &[u8]) -> usize {
        let room = buffer.room();
        let count = bytes.len().min(room.len());
        room[..count].copy_from_slice(&bytes[..count]);
        buffer.add(count);
        count
    }

    #[test]
    fn bytes_come_out_in_order_and_make_room_again() {
        let mut buffer = ReadBuffer::new(vec![0; 8].into());
        assert_eq!(read(&mut buffer, b"0123456789"), 8);
        assert!(buffer.is_full());
        buffer.consume(3);
        assert_eq!((buffer.unused(), buffer.is_full()), (&b"34567"[..], false));
        assert_eq!(read(&mut buffer, b"abcd"), 3);
        assert_eq!((buffer.unused(), buffer.is_full()), (&b"34567abc"[..], true));
        let mut out = [0; 6];
        assert_eq!((buffer.take_into(&mut out), &out), (6, b"34567a"));
        assert_eq!((buffer.take_into(&mut out), &out[..2]), (2, &b"bc"[..]));
        assert!(buffer.is_empty());
        assert_eq!(buffer.room().len(), 8);
    }

    #[test]
    fn a_buffer_without_memory_has_no_room() {
        let mut buffer = ReadBuffer::default();
        assert!(buffer.is_empty() && buffer.is_full() && !buffer.has_memory());
        assert_eq!(buffer.room().len(), 0);
    }
}
