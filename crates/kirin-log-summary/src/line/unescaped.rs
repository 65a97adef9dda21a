//! Undoes the escapes that servers write in text, so that a URL is the same in all formats.

use std::borrow::Cow;

/// Returns the bytes that a text stands for. Kirin and nginx write `\x22`, Apache `\"` and `\t`,
/// and nginx with `escape=json` also `\u0009`. Other backslashes stand for themselves.
pub(super) fn unescaped(text: Cow<'_, [u8]>) -> Cow<'_, [u8]> {
    let Some(first) = memchr::memchr(b'\\', &text) else { return text };
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = &text[..];
    let mut next = Some(first);
    while let Some(at) = next {
        let (before, escape) = rest.split_at(at);
        bytes.extend_from_slice(before);
        let (byte, length) = escaped_byte(escape).unwrap_or((b'\\', 1));
        bytes.push(byte);
        rest = escape.get(length..).unwrap_or_default();
        next = memchr::memchr(b'\\', rest);
    }
    bytes.extend_from_slice(rest);
    Cow::Owned(bytes)
}

/// Returns the byte of the escape at the start of a text, and the length of the escape.
fn escaped_byte(escape: &[u8]) -> Option<(u8, usize)> {
    let byte = match escape.get(1)? {
        b'x' => return Some((hexadecimal(escape.get(2..4)?)?, 4)),
        b'u' if escape.get(2..4)? == b"00" => {
            let byte = hexadecimal(escape.get(4..6)?)?;
            return byte.is_ascii().then_some((byte, 6));
        }
        b'n' => b'\n',
        b'r' => b'\r',
        b't' => b'\t',
        b'b' => 8,
        b'f' => 12,
        b'v' => 11,
        byte @ (b'"' | b'\\' | b'/') => *byte,
        _ => return None,
    };
    Some((byte, 2))
}

fn hexadecimal(digits: &[u8]) -> Option<u8> {
    digits.iter().try_fold(0_u8, |number, digit| {
        let digit = char::from(*digit).to_digit(16)?;
        Some(number * 16 + u8::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_of_all_servers_are_undone() {
        for (text, expected) in [
            (r"/a", &b"/a"[..]),
            (r"/a\x22b\x5Cc\xff", b"/a\"b\\c\xff"),
            (r#"/a\"b\\c"#, b"/a\"b\\c"),
            (r"/a\\x22", b"/a\\x22"),
            (r"/\u0009\t\u00e9\u20ac", b"/\t\t\\u00e9\\u20ac"),
            (r"/\x2", b"/\\x2"),
            (r"/\xgg\q\", b"/\\xgg\\q\\"),
        ] {
            assert_eq!(&*unescaped(Cow::Borrowed(text.as_bytes())), expected, "{text}");
        }
    }
}
