//! Response heads from an application worker, an upstream or a stored response: parses bytes into
//! status, field lines and framing.
//!
//! The framing fields are removed here, because the engine frames what it sends to the client
//! itself.

use std::mem::MaybeUninit;

use http::StatusCode;
use http::header::HeaderName;

use crate::field_lines::{FieldLines, InvalidField};
use crate::field_list::members;
use crate::request::{Version, parse_content_length};

/// The most field lines in one response head.
pub const MAX_FIELDS: usize = 200;

/// The most fields that `Connection` may name. Each name costs a search of all fields.
const MAX_NAMED_FIELDS: usize = 20;

/// A response head without its framing.
#[derive(Debug)]
pub struct ResponseHead {
    /// The status code, informational ones included.
    pub status: StatusCode,
    /// HTTP/1.0 or HTTP/1.1.
    pub version: Version,
    /// The field lines that go on to the client.
    pub fields: FieldLines,
    /// How the sender has framed the body.
    pub framing: Framing,
    /// Whether the sender closes its connection after this response.
    pub close: bool,
    /// The fields that `Connection` names. They cannot be trailers either (RFC 9110 section 7.6.1).
    pub named_by_connection: Vec<HeaderName>,
}

/// The framing of a response body (RFC 9112 section 6.3), before HEAD, 204 and 304 are considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The body has a `Content-Length`.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
    /// Neither: the body ends with the connection.
    UntilClose,
}

/// What the caller does with a field that it inspects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// The field goes on to the client.
    Keep,
    /// The field was for Kirin only.
    Take,
}

/// Why a response head is refused. The client gets 502.
#[derive(Debug, thiserror::Error)]
pub enum BadResponse {
    /// The bytes are not an HTTP/1 response.
    #[error("response head is malformed: {0}")]
    Malformed(httparse::Error),
    /// A line is not a field, or would split the response.
    #[error("response head: {0}")]
    Field(#[from] InvalidField),
    /// The lengths contradict each other.
    #[error("response head: {0}")]
    Framing(&'static str),
    /// The head does not fit into the buffer.
    #[error("response head is longer than 64 KiB")]
    TooLong,
    /// The response switches protocols, and the request has not asked for that.
    #[error("101 Switching Protocols for a request that did not ask for it")]
    UnaskedSwitch,
    /// There are more informational responses than the gateway passes on.
    #[error("more informational responses than 64, or than 64 KiB")]
    TooManyInformational,
}

/// Parses one response head from the start of `input`. Returns `None` if it is not complete yet.
///
/// `inspect` gets every field line that is not framing, and decides whether it goes on to the
/// client. `inspect` gets `Keep-Alive`, too, but that field never goes on. The fields that
/// `Connection` names do not go on either: they are between the sender and Kirin (RFC 9110 section
/// 7.6.1).
pub fn parse(
    input: &[u8],
    mut inspect: impl FnMut(&str, &[u8]) -> Field,
) -> Result<Option<(ResponseHead, usize)>, BadResponse> {
    let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut []);
    let parsed = httparse::ParserConfig::default().parse_response_with_uninit_headers(
        &mut response,
        input,
        &mut storage,
    );
    let length = match parsed.map_err(BadResponse::Malformed)? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let status = response
        .code
        .and_then(|code| StatusCode::from_u16(code).ok())
        .ok_or(BadResponse::Malformed(httparse::Error::Status))?;
    let mut fields = FieldLines::with_capacity(length);
    let version = if response.version == Some(0) { Version::Http10 } else { Version::Http11 };
    let (mut content_length, mut chunked, mut close) = (None, false, version == Version::Http10);
    let mut named_by_connection = Vec::new();
    for field in response.headers.iter() {
        let (name, value) = (field.name, field.value);
        if name.eq_ignore_ascii_case("content-length") {
            let value = parse_content_length(value)
                .map_err(|_| BadResponse::Framing("Content-Length is not a number"))?;
            if content_length.replace(value).is_some_and(|first| first != value) {
                return Err(BadResponse::Framing("two different Content-Length fields"));
            }
        } else if name.eq_ignore_ascii_case("transfer-encoding") {
            if chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return Err(BadResponse::Framing("Transfer-Encoding is not chunked"));
            }
            chunked = true;
        } else if name.eq_ignore_ascii_case("connection") {
            let mut keep_alive = false;
            for option in members(value) {
                if option.eq_ignore_ascii_case(b"close") {
                    close = true;
                } else if option.eq_ignore_ascii_case(b"keep-alive") {
                    keep_alive = true;
                // The client must learn to which protocol a 101 switches.
                } else if !option.eq_ignore_ascii_case(b"upgrade") {
                    named_by_connection.push(option);
                }
            }
            close &= !keep_alive;
        } else if name.eq_ignore_ascii_case("keep-alive") {
            inspect(name, value);
        } else if inspect(name, value) == Field::Keep {
            fields.try_push(name.as_bytes(), value)?;
        }
    }
    if named_by_connection.len() > MAX_NAMED_FIELDS {
        return Err(BadResponse::Framing("Connection names too many fields"));
    }
    let named_by_connection: Vec<_> = named_by_connection
        .into_iter()
        .filter_map(|name| HeaderName::from_bytes(name).ok())
        .collect();
    for name in &named_by_connection {
        fields.remove(name.as_str());
    }
    let framing = match (chunked, content_length) {
        (true, _) if version == Version::Http10 => {
            return Err(BadResponse::Framing("Transfer-Encoding in an HTTP/1.0 response"));
        }
        (true, Some(_)) => {
            return Err(BadResponse::Framing("both Transfer-Encoding and Content-Length"));
        }
        (true, None) => Framing::Chunked,
        (false, Some(length)) => Framing::Length(length),
        (false, None) => Framing::UntilClose,
    };
    Ok(Some((
        ResponseHead { status, version, fields, framing, close, named_by_connection },
        length,
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_kept(input: &str) -> Result<Option<(ResponseHead, usize)>, BadResponse> {
        parse(input.as_bytes(), |_, _| Field::Keep)
    }

    #[test]
    fn framing_fields_are_taken_out_and_the_rest_stays_in_order() {
        let input = "HTTP/1.1 200 OK\r\nB: 2\r\nContent-Length: 5\r\nConnection: close\r\nA: 1\r\n\r\nhello";
        let (head, length) = parse_kept(input).unwrap().unwrap();
        assert_eq!(&input[length..], "hello");
        assert_eq!(head.framing, Framing::Length(5));
        assert!(head.close);
        let mut wire = Vec::new();
        head.fields.write_to(&mut wire);
        assert_eq!(wire, b"B: 2\r\nA: 1\r\n");
    }

    #[test]
    fn an_unfinished_head_needs_more() {
        assert!(parse_kept("HTTP/1.1 200 OK\r\nA: 1\r\n").unwrap().is_none());
    }

    #[test]
    fn a_field_can_be_taken_by_the_front() {
        let input = b"HTTP/1.1 200 OK\r\nX-Sendfile: /x\r\n\r\n";
        let mut path = Vec::new();
        let (head, _) = parse(input, |name, value| {
            if name == "X-Sendfile" {
                path = value.to_vec();
                return Field::Take;
            }
            Field::Keep
        })
        .unwrap()
        .unwrap();
        assert_eq!(path, b"/x");
        assert_eq!(head.fields.len_bytes(), 0);
        assert_eq!(head.framing, Framing::UntilClose);
    }

    #[test]
    fn fields_that_connection_names_stay_between_the_two() {
        let input = "HTTP/1.1 101 S\r\nX-A: 1\r\nConnection: x-a, Upgrade\r\nUpgrade: x\r\nx-A: 2\r\nB: 3\r\n\r\n";
        let (head, _) = parse_kept(input).unwrap().unwrap();
        let names: Vec<_> = head.fields.iter().map(|(name, _)| name).collect();
        assert_eq!(names, [&b"Upgrade"[..], b"B"]);
    }

    #[test]
    fn chunks_of_a_sender_that_does_not_know_them_are_refused() {
        let input = "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(matches!(parse_kept(input), Err(BadResponse::Framing(_))));
    }

    #[test]
    fn contradicting_lengths_are_refused() {
        for fields in [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Content-Length: -5\r\n",
            "Transfer-Encoding: gzip\r\n",
            "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
        ] {
            let input = format!("HTTP/1.1 200 OK\r\n{fields}\r\n");
            assert!(matches!(parse_kept(&input), Err(BadResponse::Framing(_))), "{fields}");
        }
    }
}
