//! The answers of one connection that have not been sent yet.
//!
//! Lines and small values are copied into one buffer. A large value is a reference to the item in
//! the store, with its position in that text. All answers to one read go into one `OutputBuffer`,
//! which is sent in one `write`, or in one `writev` if there are large values.
//!
//! There is no I/O here: the connection does the writing.

use std::collections::VecDeque;
use std::io::IoSlice;

use kirin_store::ItemRef;

/// The length in bytes from which a value is sent from the store's memory. A shorter value is
/// copied, which costs less than another piece in a `writev`.
const LARGE_VALUE_BYTES: usize = 1024;

/// With more unsent bytes than this, commands wait until the client has read its answers.
pub const OUTPUT_LIMIT_BYTES: usize = 1 << 20;

/// The unsent answers of a connection.
#[derive(Debug, Default)]
pub struct OutputBuffer {
    text: Vec<u8>,
    /// Bytes at the front of `text` that have been sent.
    text_sent: usize,
    values: VecDeque<LargeValue>,
    /// Unsent bytes of text and values.
    unsent: usize,
}

#[derive(Debug)]
struct LargeValue {
    /// Bytes of the text that come before it.
    at: usize,
    item: ItemRef,
    sent: usize,
}

impl OutputBuffer {
    /// Creates an output that writes into `text`, which is emptied.
    pub fn in_buffer(mut text: Vec<u8>) -> OutputBuffer {
        text.clear();
        OutputBuffer { text, ..OutputBuffer::default() }
    }

    /// Creates an output with this text to send.
    pub fn of_text(text: Vec<u8>) -> OutputBuffer {
        OutputBuffer { unsent: text.len(), text, ..OutputBuffer::default() }
    }

    /// Returns the buffer, so that the next output can use it.
    pub fn into_buffer(self) -> Vec<u8> {
        self.text
    }

    /// Returns the number of unsent bytes.
    pub fn unsent_bytes(&self) -> usize {
        self.unsent
    }

    /// Returns whether everything has been sent.
    pub fn is_empty(&self) -> bool {
        self.unsent == 0
    }

    /// Copies bytes to the end.
    pub fn push(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        self.unsent += bytes.len();
    }

    /// Adds an answer line.
    pub fn line(&mut self, text: &str) {
        self.push(text.as_bytes());
        self.push(b"\r\n");
    }

    /// Adds a decimal number.
    pub fn number(&mut self, value: impl itoa::Integer) {
        self.push(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Adds an item's value, by reference if it is large.
    pub fn value(&mut self, item: ItemRef) {
        let bytes = item.value_len();
        if bytes < LARGE_VALUE_BYTES {
            self.push(item.value_slice());
        } else {
            self.unsent += bytes;
            debug_assert!(self.is_in_order(), "a value comes before {} bytes", self.text.len());
            self.values.push_back(LargeValue { at: self.text.len(), item, sent: 0 });
        }
    }

    /// Adds all of another output, none of which has been sent.
    pub(crate) fn append(&mut self, other: OutputBuffer) {
        debug_assert!(other.text_sent == 0, "{} bytes would be sent again", other.text_sent);
        let before = self.text.len();
        self.text.extend_from_slice(&other.text);
        let moved = other.values.into_iter();
        self.values.extend(moved.map(|value| LargeValue { at: value.at + before, ..value }));
        self.unsent += other.unsent;
    }

    /// Returns the unsent text if there is no large value. This is the usual case, for a plain
    /// `write`.
    pub fn as_text(&self) -> Option<&[u8]> {
        if self.values.is_empty() { self.text.get(self.text_sent..) } else { None }
    }

    /// Fills `slices` with the next bytes to send. Returns how many slices were filled.
    pub fn slices<'a>(&'a self, slices: &mut [IoSlice<'a>]) -> usize {
        let mut filled = 0;
        let mut fill = |bytes: &'a [u8]| {
            if bytes.is_empty() {
                return true;
            }
            match slices.get_mut(filled) {
                Some(slot) => {
                    *slot = IoSlice::new(bytes);
                    filled += 1;
                    true
                }
                None => false,
            }
        };
        let mut from = self.text_sent;
        for value in &self.values {
            let text = self.text.get(from..value.at).unwrap_or_default();
            let rest = value.item.value_slice().get(value.sent..).unwrap_or_default();
            if !fill(text) || !fill(rest) {
                return filled;
            }
            from = from.max(value.at);
        }
        fill(self.text.get(from..).unwrap_or_default());
        filled
    }

    /// Notes that the first `count` unsent bytes have been sent.
    pub fn advance(&mut self, mut count: usize) {
        self.unsent = self.unsent.saturating_sub(count);
        while let Some(value) = self.values.front_mut() {
            let text = value.at.saturating_sub(self.text_sent);
            if count < text {
                self.text_sent += count;
                return;
            }
            self.text_sent += text;
            count -= text;
            debug_assert!(value.sent <= value.item.value_len(), "{} of a value", value.sent);
            let rest = value.item.value_len() - value.sent;
            if count < rest {
                value.sent += count;
                return;
            }
            count -= rest;
            self.values.pop_front();
        }
        self.text_sent += count;
        debug_assert!(self.is_counted(), "{} bytes are counted as unsent", self.unsent);
        if self.unsent == 0 {
            self.text.clear();
            self.text_sent = 0;
        }
    }

    /// Returns whether the unsent bytes are those of the text, if there is no value.
    fn is_counted(&self) -> bool {
        !self.values.is_empty() || self.text_sent + self.unsent == self.text.len()
    }

    /// Returns whether the last value comes behind text that is there.
    fn is_in_order(&self) -> bool {
        self.values.back().is_none_or(|value| value.at <= self.text.len())
    }

    /// Moves the unsent bytes into an output with memory of its own, which is no larger than
    /// needed. Leaves this output empty for other connections.
    pub fn split_unsent(&mut self) -> OutputBuffer {
        debug_assert!(self.is_counted(), "{} bytes are counted as unsent", self.unsent);
        debug_assert!(self.is_in_order(), "a value comes before {} bytes", self.text.len());
        let text = self.text.get(self.text_sent..).unwrap_or_default().to_vec();
        let mut values = std::mem::take(&mut self.values);
        for value in &mut values {
            value.at = value.at.saturating_sub(self.text_sent);
        }
        let unsent = std::mem::take(&mut self.unsent);
        self.text.clear();
        self.text_sent = 0;
        OutputBuffer { text, text_sent: 0, values, unsent }
    }
}
