//! An HTTP/1.1 answer: where it ends, and what a visitor reads of it. No I/O.
//!
//! `browser.rs` feeds it the bytes of a connection; what the site's answers ought to say is
//! `judge.rs`.

use memchr::memmem;

/// Heads with more fields than this are nobody's.
const FIELDS: usize = 64;

/// A whole answer, as it lies in the browser's buffer.
#[derive(Clone, Copy, Debug)]
pub struct Answer<'a> {
    /// Status code.
    pub status: u16,
    /// Status line and fields, as they came.
    pub head: &'a [u8],
    /// The body, without framing.
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

/// How the bytes after a head are delimited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// So many bytes.
    Exact(usize),
    /// Chunks.
    Chunked,
    /// All until the connection ends.
    ToEnd,
}

/// The part of an answer that says how the rest is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Head {
    /// Status code.
    pub status: u16,
    /// Its length in bytes.
    pub length: usize,
    /// What follows.
    pub framing: Framing,
    /// Whether the server keeps the connection.
    pub keeps: bool,
}

/// What came is not HTTP.
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

/// Takes the body of a chunked message out of `rest`; `None` wants more. Trailers are nobody's
/// here.
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
