//! How the value of a variable is written into a page or into the target of a request.

use bytes::Bytes;

/// What is done to a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// Nothing.
    None,
    /// As nginx writes it for a link: percent-encoded, but for what has a meaning in a reference.
    Url,
    /// With HTML's characters as references: what echo does if nothing else is said.
    Entity,
    /// For one segment or one value in a request's target: percent-encoded, but what is so already
    /// stays.
    Component,
    /// The same for an argument as it was sent, in which a `+` is a space.
    Argument,
    /// The same for what is not percent-encoded: each `%` is encoded, too.
    Whole,
    /// For a decoded path in a request's target: the same, and a `/` stays.
    Path,
    /// For a host with a port.
    Host,
    /// For a whole path or query in a request's target: only what cannot stand there is
    /// percent-encoded.
    Target,
}

impl Encoding {
    /// Parameter `encoding` of `echo`. One that is not known is the safe one, as with nginx.
    pub(crate) fn parse(name: &[u8]) -> Self {
        match name {
            b"none" => Self::None,
            b"url" => Self::Url,
            _ => Self::Entity,
        }
    }

    /// `value` as it is written; without a copy if nothing in it has to be written differently.
    pub(crate) fn encode(self, value: Bytes) -> Bytes {
        match self {
            Self::None => value,
            Self::Url => percent_encode(value, false, |byte| {
                byte.is_ascii_graphic()
                    && !matches!(
                        byte,
                        b'"' | b'#'
                            | b'%'
                            | b'\''
                            | b'<'
                            | b'>'
                            | b'\\'
                            | b'^'
                            | b'`'
                            | b'{'
                            | b'|'
                            | b'}'
                    )
            }),
            Self::Entity => with_references(value),
            Self::Component => percent_encode(value, true, is_of_one_place),
            Self::Argument => {
                percent_encode(value, true, |byte| is_of_one_place(byte) || byte == b'+')
            }
            Self::Whole => percent_encode(value, false, is_of_one_place),
            Self::Path => {
                percent_encode(value, false, |byte| is_of_one_place(byte) || byte == b'/')
            }
            Self::Host => percent_encode(value, false, |byte| {
                is_of_one_place(byte) || matches!(byte, b'[' | b']')
            }),
            Self::Target => percent_encode(value, true, |byte| {
                byte.is_ascii_graphic()
                    && !matches!(byte, b'"' | b'<' | b'>' | b'#' | b'\\' | b'^' | b'`' | b'%')
            }),
        }
    }
}

fn percent_encode(value: Bytes, keep_encoded: bool, keep: impl Fn(u8) -> bool) -> Bytes {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    if value.iter().all(|byte| keep(*byte)) {
        return value;
    }
    let mut encoded = Vec::with_capacity(value.len() + value.len() / 2 + 16);
    for (at, byte) in value.iter().copied().enumerate() {
        let is_encoded = || {
            let digits = value.get(at + 1..at + 3).unwrap_or_default();
            digits.len() == 2 && digits.iter().all(u8::is_ascii_hexdigit)
        };
        if keep(byte) || (keep_encoded && byte == b'%' && is_encoded()) {
            encoded.push(byte);
        } else {
            let (high, low) = (usize::from(byte >> 4), usize::from(byte & 15));
            encoded.extend_from_slice(&[b'%', DIGITS[high], DIGITS[low]]);
        }
    }
    Bytes::from(encoded)
}

fn with_references(value: Bytes) -> Bytes {
    if value.iter().all(|byte| reference(*byte).is_none()) {
        return value;
    }
    let mut encoded = Vec::with_capacity(value.len() + 32);
    for byte in value {
        match reference(byte) {
            Some(reference) => encoded.extend_from_slice(reference),
            None => encoded.push(byte),
        }
    }
    Bytes::from(encoded)
}

/// RFC 3986 section 2.3.
fn is_unreserved(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~')
}

/// What separates nothing, neither in a path nor in a query (RFC 3986 section 3.3, without `&`,
/// `+`, `;` and `=`).
fn is_of_one_place(byte: u8) -> bool {
    is_unreserved(byte) || b"!$'()*,:@".contains(&byte)
}

/// The character reference for a byte that means something in HTML; also inside attributes of
/// either quote.
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
        let value = "<a href='/?x=1&y=\"2\"'>é";
        for (encoding, value, written) in [
            (Encoding::None, value, value),
            (Encoding::Entity, value, "&lt;a href=&#39;/?x=1&amp;y=&quot;2&quot;&#39;&gt;é"),
            (Encoding::Url, value, "%3Ca%20href=%27/?x=1&y=%222%22%27%3E%C3%A9"),
            (Encoding::Argument, "a+b&c", "a+b%26c"),
            (Encoding::Whole, "a%20/b", "a%2520%2Fb"),
            (Encoding::Path, "/a%20/b;?", "/a%2520/b%3B%3F"),
            (Encoding::Host, "[::1]:80/", "[::1]:80%2F"),
            (Encoding::Url, "a%20~", "a%2520~"),
            (Encoding::Component, "../a&b%20%2%zz%", "..%2Fa%26b%20%252%25zz%25"),
            (Encoding::Target, "a=1&b=/%20 \r\n%é#\"", "a=1&b=/%20%20%0D%0A%25%C3%A9%23%22"),
        ] {
            assert_eq!(
                encoding.encode(Bytes::copy_from_slice(value.as_bytes())),
                written,
                "{encoding:?}"
            );
        }
    }
}
