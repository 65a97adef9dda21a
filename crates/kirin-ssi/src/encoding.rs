//! How `echo` writes a value into a page.

use bytes::Bytes;

/// Parameter `encoding` of `echo`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// As it is.
    None,
    /// Percent-encoded, for a path segment or an argument.
    Url,
    /// With HTML's characters as references: what echo does if nothing else is said.
    Entity,
}

impl Encoding {
    pub(crate) fn parse(name: &[u8]) -> Option<Self> {
        match name {
            b"none" => Some(Self::None),
            b"url" => Some(Self::Url),
            b"entity" => Some(Self::Entity),
            _ => None,
        }
    }

    /// `value` as it stands in the page; without a copy if nothing in it has to be written differently.
    pub(crate) fn encode(self, value: Bytes) -> Bytes {
        match self {
            Self::None => value,
            Self::Url if value.iter().all(|byte| is_unreserved(*byte)) => value,
            Self::Url => {
                let mut encoded = Vec::with_capacity(value.len() * 3);
                for byte in value {
                    if is_unreserved(byte) {
                        encoded.push(byte);
                    } else {
                        const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
                        let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
                        encoded.extend_from_slice(&[b'%', DIGITS[high], DIGITS[low]]);
                    }
                }
                Bytes::from(encoded)
            }
            Self::Entity if value.iter().all(|byte| reference(*byte).is_none()) => value,
            Self::Entity => {
                let mut encoded = Vec::with_capacity(value.len() + 32);
                for byte in value {
                    match reference(byte) {
                        Some(reference) => encoded.extend_from_slice(reference),
                        None => encoded.push(byte),
                    }
                }
                Bytes::from(encoded)
            }
        }
    }
}

/// RFC 3986 section 2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// The character reference for a byte that means something in HTML; also inside attributes of either quote.
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
    fn values_are_written_as_asked() {
        let value = || Bytes::from_static("<a href='/?x=1&y=\"2\"'>é".as_bytes());
        assert_eq!(Encoding::None.encode(value()), value());
        assert_eq!(
            Encoding::Entity.encode(value()),
            "&lt;a href=&#39;/?x=1&amp;y=&quot;2&quot;&#39;&gt;é".as_bytes()
        );
        assert_eq!(Encoding::Url.encode(value()), "%3Ca%20href%3D%27%2F%3Fx%3D1%26y%3D%222%22%27%3E%C3%A9");
    }
}
