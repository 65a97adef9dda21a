//! The answers of one connection that have not been sent yet.
//!
//! Lines and small values are copied one after another into one buffer; a large value is a
//! reference to the item in the store, noted with its place in that text. Everything a read brought
//! in is answered into one `Output`, which then goes out in one `write`, or `writev` when large
//! values lie between. Pure: the connection does the writing.

use std::collections::VecDeque;
use std::io::IoSlice;

use kirin_store::ItemRef;

/// A value from this size on is sent from where it is stored. Below, copying costs less than
/// another piece in a `writev`.
pub const LARGE_VALUE_BYTES: usize = 1024;

/// Unsent answers past this stop the reading of commands until the client has taken them.
pub const OUTPUT_LIMIT_BYTES: usize = 1 << 20;

/// Unsent answers.
#[derive(Debug, Default)]
pub struct Output {
    text: Vec<u8>,
    /// Bytes at the front of `text` that are sent.
    text_sent: usize,
    values: VecDeque<LargeValue>,
    /// Bytes not sent, text and values.
    unsent: usize,
}

#[derive(Debug)]
struct LargeValue {
    /// How much of the text goes before it.
    at: usize,
    item: ItemRef,
    sent: usize,
}

impl Output {
    /// An output that writes into `text`, which is emptied.
    pub fn in_buffer(mut text: Vec<u8>) -> Output {
        text.clear();
        Output { text, ..Output::default() }
    }

    /// The buffer, for the next output to write into.
    pub fn into_buffer(self) -> Vec<u8> {
        self.text
    }

    /// How many bytes wait to be sent.
    pub fn unsent_bytes(&self) -> usize {
        self.unsent
    }

    /// Whether everything is sent.
    pub fn is_empty(&self) -> bool {
        self.unsent == 0
    }

    /// Adds bytes by copying them.
    pub fn push(&mut self, bytes: &[u8]) {
        self.text.extend_from_slice(bytes);
        self.unsent += bytes.len();
    }

    /// Adds an answer line.
    pub fn line(&mut self, text: &str) {
        self.push(text.as_bytes());
        self.push(b"\r\n");
    }

    /// Adds a number in decimal.
    pub fn number(&mut self, value: impl itoa::Integer) {
        self.push(itoa::Buffer::new().format(value).as_bytes());
    }

    /// Adds an item's value, by reference when it is large.
    pub fn value(&mut self, item: ItemRef) {
        let bytes = item.value_len();
        if bytes < LARGE_VALUE_BYTES {
            self.push(item.value_slice());
        } else {
            self.unsent += bytes;
            self.values.push_back(LargeValue { at: self.text.len(), item, sent: 0 });
        }
    }

    /// The text alone, when no large value is waiting: the common answer, for a plain `write`.
    pub fn as_text(&self) -> Option<&[u8]> {
        if self.values.is_empty() { self.text.get(self.text_sent..) } else { None }
    }

    /// Fills `slices` with the next bytes to send and returns how many were filled.
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

    /// Takes note that the first `count` unsent bytes are sent.
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
            let rest = value.item.value_len() - value.sent;
            if count < rest {
                value.sent += count;
                return;
            }
            count -= rest;
            self.values.pop_front();
        }
        self.text_sent += count;
        if self.unsent == 0 {
            self.text.clear();
            self.text_sent = 0;
        }
    }

    /// Moves what is not sent into an output with memory of its own, no larger than needed, and
    /// leaves this one empty for other connections.
    pub fn split_unsent(&mut self) -> Output {
        let text = self.text.get(self.text_sent..).unwrap_or_default().to_vec();
        let mut values = std::mem::take(&mut self.values);
        for value in &mut values {
            value.at = value.at.saturating_sub(self.text_sent);
        }
        let unsent = std::mem::take(&mut self.unsent);
        self.text.clear();
        self.text_sent = 0;
        Output { text, text_sent: 0, values, unsent }
    }
}
