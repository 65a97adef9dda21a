//! Tokens: the names of fields, cookies, methods and parameters (RFC 9110 section 5.6.2).

use crate::fields::byte_scan::alphanumeric_or;

/// Returns whether `text` is a token. An empty text is not.
pub fn is_token(text: &[u8]) -> bool {
    !text.is_empty() && text.iter().copied().all(is_token_byte)
}

/// Returns whether `byte` may stand in a token (`tchar`).
pub fn is_token_byte(byte: u8) -> bool {
    IS_TOKEN_BYTE[usize::from(byte)]
}

/// A table, because every byte of every field name of a response is looked up in it.
static IS_TOKEN_BYTE: [bool; 256] = alphanumeric_or(b"!#$%&'*+-.^_`|~");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_bytes_are_those_of_the_rfc() {
        for byte in 0..=255 {
            let is_other = b"!#$%&'*+-.^_`|~".contains(&byte);
            assert_eq!(is_token_byte(byte), is_other || byte.is_ascii_alphanumeric(), "{byte}");
            assert_eq!(is_token(&[b'a', byte]), is_token_byte(byte), "{byte}");
        }
        assert!(!is_token(b""));
    }
}
