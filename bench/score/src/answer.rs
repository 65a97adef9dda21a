//! An HTTP/1.1 answer: finds its end and reads its parts. There is no I/O.
//!
//! `browser.rs` passes it the bytes of a connection. `judge.rs` knows the right answers of the
//! site.

use memchr::memmem;

/// The most fields in a head. No contestant sends more.
const FIELDS: usize = 64;

/// A complete answer in the browser's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// The status code.
    pub status: u16,
    /// The status line and the fields as they arrived.
    pub head: &'a [u8],
    /// The body without its framing.
    pub body: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Returns the first field with this name, without the spaces around it. Returns an empty
    /// string if there is none.
    pub fn field(&self, name: &str) -> &'a str {
        self.fields(name).next().unwrap_or_default()
    }

    /// Returns all fields with this name.
    pub fn fields(&self, name: &str) -> impl Iterator<Item = &'a str> {
        self.head.split(|&byte| byte == b'\n').skip(1).filter_map(move |line| {
            let colon = memchr::memchr(b':', line)?;
            let (found, value) = line.split_at_checked(colon)?;
            if !found.eq_ignore_ascii_case(name.as_bytes()) {
                return None;
            }
            std::str::from_utf8(value.get(1..)?).ok().map(str::trim)
        })
    }

    /// Returns whether the body contains these words.
    pub fn says(&self, words: &str) -> bool {
        memmem::find(self.body, words.as_bytes()).is_some()
    }
}

/// The way in which the end of a body is marked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// The body has this number of bytes.
    Exact(usize),
    /// The body is chunked.
    Chunked,
    /// The body lasts until the connection ends.
    ToEnd,
}

/// The head of an answer. It says how the rest is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// The status code.
    pub status: u16,
    /// The length of the head in bytes.
    pub length: usize,
    /// The framing of the body.
    pub framing: Framing,
    /// Whether the server keeps the connection.
    pub keeps: bool,
}

/// The error for bytes that are not HTTP.
#[derive(Debug, PartialEq, Eq)]
pub struct NotHttp;

/// Parses the head as soon as `received` has all of it. Returns `None` if more bytes are needed.
pub fn head(received: &[u8]) -> Result<Option<Head>, NotHttp> {
    let mut fields = [httparse::EMPTY_HEADER; FIELDS];
    let mut parsed = httparse::Response::new(&mut fields);
    let length = match parsed.parse(received) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(_) => return Err(NotHttp),
    };
    let status = parsed.code.unwrap_or_default();
    let (mut framing, mut keeps) = (Framing::ToEnd, parsed.version == Some(1));
    for field in &*parsed.headers {
        if field.name.eq_ignore_ascii_case("connection") {
            keeps = !field.value.eq_ignore_ascii_case(b"close")
                && (keeps || field.value.eq_ignore_ascii_case(b"keep-alive"));
        } else if field.name.eq_ignore_ascii_case("transfer-encoding") {
            framing = Framing::Chunked;
        } else if field.name.eq_ignore_ascii_case("content-length") && framing == Framing::ToEnd {
            let length =
                std::str::from_utf8(field.value).ok().and_then(|value| value.trim().parse().ok());
            framing = Framing::Exact(length.ok_or(NotHttp)?);
        }
    }
    if status == 204 || status == 304 {
        framing = Framing::Exact(0);
    }
    Ok(Some(Head { status, length, framing, keeps: keeps && framing != Framing::ToEnd }))
}

/// Decodes a chunked body at the beginning of `rest`. Returns `None` if more bytes are needed.
/// Trailer fields are ignored.
pub fn unchunk(mut rest: &[u8]) -> Result<Option<Vec<u8>>, NotHttp> {
    let mut body = Vec::new();
    loop {
        let (line, size) = match httparse::parse_chunk_size(rest) {
            Ok(httparse::Status::Complete(found)) => found,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(NotHttp),
        };
        let end =
            usize::try_from(size).ok().and_then(|size| size.checked_add(line)).ok_or(NotHttp)?;
        let after = end.checked_add(2).ok_or(NotHttp)?;
        let Some(chunk) = rest.get(..after) else { return Ok(None) };
        if size == 0 {
            return Ok(Some(body));
        }
        body.extend_from_slice(&chunk[line..end]);
        rest = &rest[after..];
    }
}

#[cfg(test)]
mod tests {
    use super::{Answer, Framing, Head, NotHttp, head, unchunk};

    #[test]
    fn a_head_is_read_at_its_last_byte_and_not_before() {
        let bytes =
            b"HTTP/1.1 303 See Other\r\nContent-Length: 5\r\nLocation: /memo/7\r\n\r\nhello";
        for cut in 0..bytes.len() - 5 {
            assert_eq!(head(&bytes[..cut]), Ok(None), "{cut}");
        }
        let whole =
            Head { status: 303, length: bytes.len() - 5, framing: Framing::Exact(5), keeps: true };
        assert_eq!(head(bytes), Ok(Some(whole)));
        assert_eq!(head(b"<html>"), Err(NotHttp));
    }

    #[test]
    fn an_unchanged_file_has_no_body_whatever_its_length_says() {
        let found = head(b"HTTP/1.1 304 Not Modified\r\nContent-Length: 1234\r\n\r\n");
        assert!(
            matches!(found, Ok(Some(Head { framing: Framing::Exact(0), keeps: true, .. }))),
            "{found:?}"
        );
    }

    #[test]
    fn chunks_become_one_body_however_they_are_cut() {
        let bytes = b"5\r\nhello\r\n1\r\n!\r\n0\r\n\r\n";
        for cut in 0..bytes.len() {
            assert_eq!(unchunk(&bytes[..cut]), Ok(None), "{cut}");
        }
        assert_eq!(unchunk(bytes), Ok(Some(b"hello!".to_vec())));
        assert_eq!(unchunk(b"ffffffffffffffff\r\n"), Err(NotHttp));
    }

    #[test]
    fn fields_are_found_whatever_their_case_and_each_time_they_come() {
        let answer = Answer {
            status: 200,
            head: b"HTTP/1.1 200 OK\r\nset-cookie: a=1\r\nSet-Cookie:b=2 \r\n\r\n",
            body: b"some words",
        };
        assert_eq!(answer.fields("Set-Cookie").collect::<Vec<_>>(), ["a=1", "b=2"]);
        assert_eq!((answer.field("SET-COOKIE"), answer.field("Location")), ("a=1", ""));
        assert!(answer.says("me wo") && !answer.says("other"));
    }
}
