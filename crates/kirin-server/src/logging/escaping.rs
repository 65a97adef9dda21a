//! Escapes the values of a line, so that no client can forge a line or a value.

/// The rule by which values are escaped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Escaping {
    /// As nginx does: `"`, `\`, control and non-ASCII bytes become `\xHH`.
    Text,
    /// A JSON string with its quotes.
    Json,
}

impl Escaping {
    /// Appends `value`.
    pub fn write(self, value: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Text => write_text(value, out),
            Self::Json => {
                out.push(b'"');
                write_json(value, out);
                out.push(b'"');
            }
        }
    }

    /// Appends a value that needs no escape, such as a number with letters.
    pub fn write_plain(self, value: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Text => out.extend_from_slice(value),
            Self::Json => {
                out.push(b'"');
                out.extend_from_slice(value);
                out.push(b'"');
            }
        }
    }
}

const HEXADECIMAL: &[u8; 16] = b"0123456789ABCDEF";

/// Returns whether neither rule changes `value`. Nearly all values are so. The loop has no exit, so
/// that the compiler can take many bytes at once.
fn is_plain(value: &[u8]) -> bool {
    value.iter().fold(true, |plain, byte| {
        plain & (*byte >= 0x20) & (*byte < 0x7f) & (*byte != b'"') & (*byte != b'\\')
    })
}

fn write_text(value: &[u8], out: &mut Vec<u8>) {
    if is_plain(value) {
        return out.extend_from_slice(value);
    }
    for byte in value {
        match byte {
            b'"' | b'\\' | 0..=0x1f | 0x7f.. => out.extend_from_slice(&hexadecimal(*byte)),
            _ => out.push(*byte),
        }
    }
}

/// Returns `\xHH`.
pub(super) fn hexadecimal(byte: u8) -> [u8; 4] {
    let digit = |value: u8| HEXADECIMAL[usize::from(value & 0xf)];
    [b'\\', b'x', digit(byte >> 4), digit(byte)]
}

/// Appends the inside of a JSON string (RFC 8259 section 7). A byte that is no UTF-8 becomes the
/// character with its number, `\u00HH`. Characters that terminals obey (C1 controls), or that some
/// programs take for the end of a line (U+2028, U+2029), become escapes, too.
fn write_json(value: &[u8], out: &mut Vec<u8>) {
    if is_plain(value) {
        return out.extend_from_slice(value);
    }
    for chunk in value.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => out.extend_from_slice(&[b'\\', character as u8]),
                '\0'..='\x1f' | '\x7f'..='\u{9f}' => write_code(character as u8, out),
                '\u{2028}' => out.extend_from_slice(b"\\u2028"),
                '\u{2029}' => out.extend_from_slice(b"\\u2029"),
                _ => out.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        chunk.invalid().iter().for_each(|byte| write_code(*byte, out));
    }
}

fn write_code(byte: u8, out: &mut Vec<u8>) {
    let [_, _, high, low] = hexadecimal(byte);
    out.extend_from_slice(&[b'\\', b'u', b'0', b'0', high, low]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn write(escaping: Escaping, value: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        escaping.write(value, &mut out);
        out
    }

    #[test]
    fn a_client_cannot_forge_a_line() {
        let text = |value| String::from_utf8(write(Escaping::Text, value)).unwrap();
        assert_eq!(text(b"a\" 200\n\\\xff"), r"a\x22 200\x0A\x5C\xFF");
        assert_eq!(text("é\tz".as_bytes()), r"\xC3\xA9\x09z");
        let json = |value| String::from_utf8(write(Escaping::Json, value)).unwrap();
        assert_eq!(json(b"a\"b\\\n\x7f"), r#""a\"b\\\u000A\u007F""#);
        assert_eq!(json("é\u{2028}\u{2029}".as_bytes()), r#""é\u2028\u2029""#);
        assert_eq!(json("\u{80}\u{9b}\u{9f}\u{a0}".as_bytes()), "\"\\u0080\\u009B\\u009F\u{a0}\"");
        assert_eq!(json(b"a\xff\xc3"), r#""a\u00FF\u00C3""#);
    }

    proptest! {
        #[test]
        fn text_is_printable_ascii_without_quotes(value: Vec<u8>) {
            let written = write(Escaping::Text, &value);
            prop_assert!(written.iter().all(|byte| matches!(byte, 0x20..=0x7e) && *byte != b'"'));
        }

        #[test]
        fn any_bytes_make_a_json_string(value: Vec<u8>) {
            let written = write(Escaping::Json, &value);
            let read: String = serde_json::from_slice(&written).unwrap();
            prop_assert!(!written.contains(&b'\n'));
            if let Ok(text) = std::str::from_utf8(&value) {
                prop_assert_eq!(read, text);
            }
        }
    }
}
