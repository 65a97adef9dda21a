//! Finds the end of a response. There is no I/O: the parser takes bytes and returns a response, or
//! asks for more.

use super::Failure;

/// The most fields in a head. No server in the benchmark sends more.
const FIELDS: usize = 64;

/// A complete response.
#[derive(Debug, PartialEq, Eq)]
pub struct Response {
    /// The status code.
    pub status: u16,
    /// Whether the server keeps the connection.
    pub keeps: bool,
}

enum Body {
    Exact(usize),
    Chunked,
    ToEnd,
}

/// Returns the response as soon as `received` has all of it, and `None` if more bytes are needed.
/// `ended` says that no more bytes can come.
pub fn complete(received: &[u8], ended: bool) -> Result<Option<Response>, Failure> {
    let cut = if received.is_empty() { Failure::Unanswered } else { Failure::Cut };
    let none_yet = if ended { Err(cut) } else { Ok(None) };
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut head = httparse::Response::new(&mut fields);
    let head_length = match head.parse(received) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return none_yet,
        Err(_) => return Err(Failure::Cut),
    };
    let (mut body, mut keeps) = (Body::ToEnd, head.version == Some(1));
    for field in &*head.headers {
        if field.name.eq_ignore_ascii_case("connection") {
            keeps = !field.value.eq_ignore_ascii_case(b"close")
                && (keeps || field.value.eq_ignore_ascii_case(b"keep-alive"));
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            body = Body::Chunked;
        } else if field.name.eq_ignore_ascii_case("content-length") && matches!(body, Body::ToEnd) {
            let length =
                std::str::from_utf8(field.value).ok().and_then(|value| value.trim().parse().ok());
            body = Body::Exact(length.ok_or(Failure::Cut)?);
        }
    }
    let status = head.code.unwrap_or_default();
    let rest = &received[head_length..];
    let whole = match body {
        Body::Exact(length) => rest.len() >= length,
        Body::Chunked => chunks_end(rest)?,
        Body::ToEnd => {
            keeps = false;
            ended
        }
    };
    if whole { Ok(Some(Response { status, keeps })) } else { none_yet }
}

/// Returns whether `rest` has the last chunk with its empty trailer section.
fn chunks_end(mut rest: &[u8]) -> Result<bool, Failure> {
    loop {
        match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete((line, size))) => {
                let whole = usize::try_from(size).ok().and_then(|size| size.checked_add(line + 2));
                match whole.ok_or(Failure::Cut)? {
                    whole if rest.len() < whole => return Ok(false),
                    _ if size == 0 => return Ok(true),
                    whole => rest = &rest[whole..],
                }
            }
            Ok(httparse::Status::Partial) => return Ok(false),
            Err(_) => return Err(Failure::Cut),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Response, complete};

    const KEPT: Response = Response { status: 200, keeps: true };
    const CLOSED: Response = Response { status: 200, keeps: false };

    #[test]
    fn a_response_is_complete_at_its_last_byte_and_not_before() {
        for response in [
            "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n",
            "HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0\r\n\r\n",
        ] {
            let bytes = response.as_bytes();
            for cut in 1..bytes.len() {
                assert_eq!(complete(&bytes[..cut], false), Ok(None), "{:?}", &response[..cut]);
                assert_eq!(
                    complete(&bytes[..cut], true),
                    Err(Failure::Cut),
                    "{:?}",
                    &response[..cut]
                );
            }
            assert_eq!(complete(bytes, false), Ok(Some(KEPT)), "{response:?}");
        }
    }

    #[test]
    fn a_server_that_will_close_says_so_or_speaks_http_1_0() {
        for response in [
            "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n",
        ] {
            assert_eq!(complete(response.as_bytes(), false), Ok(Some(CLOSED)), "{response:?}");
        }
    }

    #[test]
    fn a_body_without_a_length_ends_with_the_connection() {
        let response = b"HTTP/1.1 200 OK\r\n\r\nhello";
        assert_eq!(complete(response, false), Ok(None));
        assert_eq!(complete(response, true), Ok(Some(CLOSED)));
    }

    #[test]
    fn an_end_before_the_first_byte_is_told_from_one_inside() {
        assert_eq!(complete(b"", true), Err(Failure::Unanswered));
        assert_eq!(complete(b"H", true), Err(Failure::Cut));
        assert_eq!(complete(b"<html>", false), Err(Failure::Cut));
        let endless = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n";
        assert_eq!(complete(endless, false), Err(Failure::Cut));
    }
}
