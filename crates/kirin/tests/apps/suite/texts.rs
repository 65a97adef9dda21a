//! Texts of the table: bytes as characters, names for what a case has seen, and bytes in messages.

use std::collections::BTreeMap;

use super::cases::Content;

/// Bytes of a message that are shown at most.
const SHOWN_BYTES: usize = 2000;

/// What a case has seen so far, by name. `{name}` stands for it in later texts.
#[derive(Debug, Default)]
pub struct Memory(BTreeMap<String, String>);

impl Memory {
    /// Keeps a text under a name.
    pub fn remember(&mut self, name: &str, text: String) {
        self.0.insert(name.to_owned(), text);
    }

    /// Returns a text with the values of all names in it.
    pub fn expand(&self, text: &str) -> String {
        self.0.iter().fold(text.to_owned(), |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    }

    /// Returns the bytes of a text of the table: each character is one byte.
    ///
    /// # Panics
    /// Panics if a character is above U+00FF.
    pub fn bytes(&self, text: &str) -> Vec<u8> {
        let byte = |character: char| {
            u8::try_from(character).unwrap_or_else(|_| panic!("{character:?} is no byte: {text:?}"))
        };
        self.expand(text).chars().map(byte).collect()
    }

    /// Returns the bytes of a body.
    pub fn content(&self, content: &Content) -> Vec<u8> {
        match content {
            Content::Text(text) => self.bytes(text),
            Content::Pattern(pattern) => {
                let unit = match pattern.pattern.as_str() {
                    "bytes" => (0..251).collect(),
                    text => self.bytes(text),
                };
                unit.into_iter().cycle().take(pattern.length).collect()
            }
        }
    }
}

/// Returns bytes as a message shows them: escaped, and not too many.
pub fn shown(bytes: &[u8]) -> String {
    let (start, rest) = bytes.split_at(bytes.len().min(SHOWN_BYTES));
    match rest.len() {
        0 => format!("\"{}\"", start.escape_ascii()),
        more => format!("\"{}\" and {more} more bytes", start.escape_ascii()),
    }
}
