//! Bytes to be sent. Their memory is initialised once and used again and again, so that a file can
//! be read into it without clearing it first.

/// The bytes that a connection has to send.
#[derive(Debug, Default)]
pub struct Output {
    /// Bytes that were sent, those that are to be sent, and initialised memory behind them.
    memory: Vec<u8>,
    /// Where the bytes to be sent begin and end.
    start: usize,
    end: usize,
    /// The header block that is being encoded.
    pub(crate) block: Vec<u8>,
}

impl Output {
    /// Returns the bytes.
    #[inline]
    pub fn as_slice(&self) -> &[u8] {
        self.memory.get(self.start..self.end).unwrap_or_default()
    }

    /// Returns the number of bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.end - self.start
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Returns how much memory there is, in bytes.
    pub fn capacity(&self) -> usize {
        self.memory.len() + self.block.capacity()
    }

    /// Appends bytes.
    #[inline]
    pub fn extend_from_slice(&mut self, bytes: &[u8]) {
        self.spare(bytes.len()).copy_from_slice(bytes);
        self.end += bytes.len();
    }

    /// Returns memory behind the bytes, of this size. [`Output::advance`] makes it a part of them.
    #[inline]
    pub fn spare(&mut self, bytes: usize) -> &mut [u8] {
        let end = self.end + bytes;
        if end > self.memory.len() {
            self.grow(end);
        }
        self.memory.get_mut(self.end..end).unwrap_or_default()
    }

    #[cold]
    fn grow(&mut self, bytes: usize) {
        self.memory.resize(bytes.next_power_of_two(), 0);
    }

    /// Adds the first `bytes` of the memory behind the bytes, which were written.
    #[inline]
    pub fn advance(&mut self, bytes: usize) {
        debug_assert!(self.end + bytes <= self.memory.len(), "{bytes} bytes were not written");
        self.end = (self.end + bytes).min(self.memory.len());
    }

    /// Removes the bytes behind the first `bytes`.
    pub(crate) fn truncate(&mut self, bytes: usize) {
        self.end = self.end.min(self.start + bytes);
    }

    /// Removes all bytes, and keeps the memory.
    pub fn clear(&mut self) {
        (self.start, self.end) = (0, 0);
    }

    /// Removes the first `bytes`, which were sent. What is left moves to the front of the memory
    /// when it is less than what was sent.
    pub fn remove_first(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.len(), "{bytes} of {} bytes", self.len());
        self.start = (self.start + bytes).min(self.end);
        if self.start >= self.len() {
            self.memory.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.len());
        }
    }

    /// Replaces bytes from `at` on.
    #[inline]
    pub(crate) fn replace(&mut self, at: usize, bytes: &[u8]) {
        let at = self.start + at;
        if let Some(place) = self.memory.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_appended_replaced_and_removed() {
        let mut output = Output::default();
        output.extend_from_slice(b"abc");
        output.spare(5)[..2].copy_from_slice(b"de");
        output.advance(2);
        output.replace(1, b"B");
        assert_eq!(output.as_slice(), b"aBcde");
        output.remove_first(2);
        output.extend_from_slice(b"fgh");
        output.replace(1, b"D");
        assert_eq!((output.as_slice(), output.len()), (&b"cDefgh"[..], 6));
        output.remove_first(2);
        assert_eq!(output.as_slice(), b"efgh");
        output.truncate(1);
        assert_eq!(output.as_slice(), b"e");
        output.clear();
        assert!(output.is_empty() && output.capacity() >= 8);
    }
}
