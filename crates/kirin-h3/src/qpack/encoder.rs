//! Writes field sections (RFC 9204 section 4.5).

use kirin_h2::hpack::primitives::write_integer;

use super::static_table::{ENTRIES, indices};

/// The longest name of the static table.
const LONGEST_NAME: usize = 32;

/// Writes the fields of one section.
///
/// Values are written as they are: their Huffman form would be a fifth shorter, and take longer to
/// write than all the rest of the section.
pub struct FieldWriter<'a> {
    out: &'a mut Vec<u8>,
}

impl<'a> FieldWriter<'a> {
    /// Begins the section of a response with this status at the end of `out`.
    pub fn response(status: u16, out: &'a mut Vec<u8>) -> Self {
        let mut writer = Self::trailers(out);
        let index = match status {
            103 => 24,
            200 => 25,
            304 => 26,
            404 => 27,
            503 => 28,
            100 => 63,
            204 => 64,
            206 => 65,
            302 => 66,
            400 => 67,
            403 => 68,
            421 => 69,
            425 => 70,
            500 => 71,
            _ => {
                writer.value_of(24, itoa::Buffer::new().format(status).as_bytes());
                return writer;
            }
        };
        write_integer(index, 0xc0, 0x3f, writer.out);
        writer
    }

    /// Begins the section of trailers, which has no status.
    pub fn trailers(out: &'a mut Vec<u8>) -> Self {
        // No entry of the dynamic table is needed.
        out.extend_from_slice(&[0, 0]);
        Self { out }
    }

    /// Writes a field. The letters of its name become those of lower case (RFC 9114 section 4.2).
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        let mut lower = [0; LONGEST_NAME];
        let known = match lower.get_mut(..name.len()) {
            Some(lower) => {
                lower.copy_from_slice(name);
                lower.make_ascii_lowercase();
                indices(lower)
            }
            None => &[],
        };
        let has_value = |index: &&u8| {
            ENTRIES.get(usize::from(**index)).is_some_and(|entry| entry.1.as_bytes() == value)
        };
        match (known.iter().find(has_value), known.first()) {
            (Some(index), _) => write_integer(u32::from(*index), 0xc0, 0x3f, self.out),
            (None, Some(index)) => self.value_of(*index, value),
            (None, None) => {
                write_integer(length(name), 0x20, 0x07, self.out);
                self.out.extend(name.iter().map(u8::to_ascii_lowercase));
                self.value(value);
            }
        }
    }

    /// Writes `content-length`.
    pub fn content_length(&mut self, length: u64) {
        self.field(b"content-length", itoa::Buffer::new().format(length).as_bytes());
    }

    /// Writes a field with the name of this entry.
    fn value_of(&mut self, index: u8, value: &[u8]) {
        write_integer(u32::from(index), 0x50, 0x0f, self.out);
        self.value(value);
    }

    fn value(&mut self, value: &[u8]) {
        write_integer(length(value), 0, 0x7f, self.out);
        self.out.extend_from_slice(value);
    }
}

fn length(octets: &[u8]) -> u32 {
    u32::try_from(octets.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_the_static_table_are_short() {
        let mut out = Vec::new();
        let mut writer = FieldWriter::response(200, &mut out);
        writer.field(b"Content-Type", b"text/html; charset=utf-8");
        writer.field(b"ETag", b"\"1\"");
        writer.content_length(0);
        writer.field(b"X", b"Y");
        assert_eq!(out, b"\0\0\xd9\xf4\x57\x03\"1\"\xc4\x21x\x01Y");
    }

    #[test]
    fn every_entry_is_found_by_its_name() {
        for (index, (name, value)) in ENTRIES.iter().enumerate() {
            if name.starts_with(':') {
                continue;
            }
            assert!(indices(name.as_bytes()).contains(&(index as u8)), "{name}");
            let mut out = Vec::new();
            FieldWriter::trailers(&mut out).field(name.as_bytes(), value.as_bytes());
            assert!(out.len() <= 4, "{name}: {value}");
            assert!(name.len() <= LONGEST_NAME, "{name}");
        }
    }
}
