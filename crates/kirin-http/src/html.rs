//! Text inside HTML.

use std::borrow::Cow;

/// Returns `text` with character references in place of its special characters. It copies `text`
/// only if there are any.
pub fn escape(text: &[u8]) -> Cow<'_, [u8]> {
    match text.iter().position(|byte| reference(*byte).is_some()) {
        None => Cow::Borrowed(text),
        Some(plain) => {
            let mut escaped = Vec::with_capacity(text.len() + 32);
            escaped.extend_from_slice(&text[..plain]);
            escape_into(&text[plain..], &mut escaped);
            Cow::Owned(escaped)
        }
    }
}

/// Appends `text` to `out`, with its special characters as character references.
pub fn escape_into(text: &[u8], out: &mut Vec<u8>) {
    for byte in text {
        match reference(*byte) {
            Some(reference) => out.extend_from_slice(reference),
            None => out.push(*byte),
        }
    }
}

/// Returns whether `byte` has a meaning in HTML.
pub fn is_special(byte: u8) -> bool {
    reference(byte).is_some()
}

/// Returns the character reference for a byte that has a meaning in HTML text, or in an attribute
/// in either kind of quotes.
fn reference(byte: u8) -> Option<&'static [u8]> {
    match byte {
        b'&' => Some(b"&amp;"),
        b'<' => Some(b"&lt;"),
        b'>' => Some(b"&gt;"),
        b'"' => Some(b"&quot;"),
        b'\'' => Some(b"&#39;"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn five_characters_are_references() {
        assert_eq!(
            escape("<a b='&\"é\">".as_bytes()),
            "&lt;a b=&#39;&amp;&quot;é&quot;&gt;".as_bytes()
        );
        for byte in 0..=255 {
            let is_copied = matches!(escape(&[byte]), Cow::Owned(_));
            assert_eq!(is_copied, b"&<>\"'".contains(&byte), "{byte}");
            assert_eq!(is_special(byte), is_copied, "{byte}");
        }
    }
}
