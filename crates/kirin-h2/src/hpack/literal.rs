//! Writes literal fields (RFC 7541, section 6.2).

use super::{
    dynamic_table::{ENTRY_OVERHEAD, FieldFacts},
    huffman, integer,
    known::Known,
    static_table::{self, STATIC_ENTRIES},
};

/// The highest bit of a string's first octet: the string has the Huffman code.
const HUFFMAN: u8 = 0x80;

/// Strings shorter than this are written as they are. The code would save one octet at most.
const LEAST_HUFFMAN_BYTES: usize = 4;

/// A name in the form that its field is written with.
#[derive(Clone, Copy)]
pub(super) enum NameForm<'a> {
    /// Its index in the static table.
    Static(u8),
    /// The name itself.
    Other(&'a [u8]),
}

impl<'a> NameForm<'a> {
    /// Returns the length of the name in octets.
    #[inline]
    pub(super) fn name_length(self) -> usize {
        match self {
            Self::Static(index) => static_table::entry(index).name.len(),
            Self::Other(name) => name.len(),
        }
    }

    /// Returns the facts about a field. It must be small enough for the table.
    pub(super) fn facts(self, value: &[u8]) -> FieldFacts {
        let name_index = match self {
            Self::Static(index) => index,
            Self::Other(_) => 0,
        };
        FieldFacts {
            entry_size: length_u32(self.name_length() + value.len()) + ENTRY_OVERHEAD,
            value_length: length_u32(value.len()),
            name_index,
            known: Known::Other,
            is_name_valid: true,
            is_valid: true,
        }
    }

    /// Returns the octets of the name that the table stores. They keep their case, since the
    /// comparison ignores it.
    #[inline]
    pub(super) fn stored_name(self) -> &'a [u8] {
        match self {
            Self::Static(_) => &[],
            Self::Other(name) => name,
        }
    }
}

/// Returns the index of an entry of the dynamic table.
#[inline]
pub(super) fn table_index(number: usize) -> u32 {
    STATIC_ENTRIES + 1 + number as u32
}

/// Appends a literal field. `name_number` is that of a table's entry with the same name.
pub(super) fn write_literal(
    pattern: u8,
    mask: u8,
    form: NameForm<'_>,
    name_number: Option<usize>,
    value: &[u8],
    out: &mut Vec<u8>,
) {
    match (form, name_number) {
        (NameForm::Static(index), _) => integer::encode(u32::from(index), pattern, mask, out),
        (_, Some(number)) => integer::encode(table_index(number), pattern, mask, out),
        (NameForm::Other(name), None) => {
            out.push(pattern);
            write_string::<true>(name, out);
        }
    }
    write_string::<false>(value, out);
}

/// Appends a string, with the Huffman code if that is shorter.
fn write_string<const LOWER_CASE: bool>(text: &[u8], out: &mut Vec<u8>) {
    let is_short = text.len() < LEAST_HUFFMAN_BYTES;
    let length = if is_short { text.len() } else { huffman::encoded_length::<LOWER_CASE>(text) };
    if length < text.len() {
        integer::encode(length_u32(length), HUFFMAN, 0x7f, out);
        out.reserve(length);
        huffman::encode::<LOWER_CASE>(text, out);
        return;
    }
    integer::encode(length_u32(text.len()), 0, 0x7f, out);
    let start = out.len();
    out.extend_from_slice(text);
    if LOWER_CASE && let Some(written) = out.get_mut(start..) {
        written.make_ascii_lowercase();
    }
}

fn length_u32(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}
