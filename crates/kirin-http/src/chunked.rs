//! The chunked transfer coding (RFC 9112 section 7.1), as a decoder that is fed and an encoder of chunk heads.
//!
//! Used for request bodies, and by the workers crate for what an application sends back.

use crate::field_lines::{is_field_value_byte, is_token_byte};
use crate::trailers::{MAX_TRAILER_FIELDS, Trailers};

/// A chunk size line, with extensions, in bytes at most.
const MAX_SIZE_LINE_BYTES: usize = 256;

/// The extensions of all chunks of a body together, in bytes at most. They are ignored, but reading them is work
/// (RFC 9112 section 7.1.1).
const MAX_EXTENSION_BYTES: usize = 16 * 1024;

/// All trailer fields together, in bytes at most.
const MAX_TRAILER_BYTES: usize = 8 * 1024;

/// Decodes a chunked body piece by piece. Any split of the input gives the same data.
#[derive(Debug, Default)]
pub struct ChunkedDecoder {
    state: State,
    extension_bytes: usize,
    /// The lines of the trailer section, each ended by LF.
    trailer_lines: Vec<u8>,
    trailer_fields: usize,
}

#[derive(Debug, Default, Clone, Copy)]
enum State {
    /// At the start of a chunk size line.
    #[default]
    SizeStart,
    /// After digits; the size so far, bytes of the line so far.
    Size {
        size: u64,
        line: usize,
    },
    /// After the digits, in white space or an extension.
    Extension {
        size: u64,
        line: usize,
        part: ExtensionPart,
    },
    SizeLf {
        size: u64,
    },
    Data {
        left: u64,
    },
    DataCr,
    DataLf,
    /// In the trailer section; bytes so far.
    Trailer {
        total: usize,
        part: TrailerPart,
    },
    TrailerLf {
        total: usize,
        /// It ends the empty line that ends the body.
        last: bool,
    },
    Done,
}

/// Where in `*( BWS ";" BWS name [ BWS "=" BWS value ] )`. Every byte has its place: what one party takes for the end of the
/// line and another for a part of the extension is how requests are smuggled.
#[derive(Debug, Clone, Copy)]
enum ExtensionPart {
    /// In white space that a semicolon must follow.
    BeforeSemicolon,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Value,
    Quoted,
    Escaped,
    QuoteEnd,
}

#[derive(Debug, Clone, Copy)]
enum TrailerPart {
    LineStart,
    Name,
    Value,
}

/// What the decoder found at the start of the input.
#[derive(Debug, PartialEq, Eq)]
pub enum Event {
    /// Bytes `start..end` of the input are data of the body; the input is consumed up to `end`.
    Data {
        /// First data byte in the input.
        start: usize,
        /// One past the last.
        end: usize,
    },
    /// The whole input is consumed and the body goes on.
    NeedMore,
    /// The body has ended; `consumed` bytes of the input belong to it.
    End {
        /// Bytes of the input that belong to the body.
        consumed: usize,
    },
}

/// The coding is broken; where the body ends is unknown, so the connection cannot be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("chunked body is malformed: {0}")]
pub struct ChunkedError(&'static str);

impl ChunkedDecoder {
    /// A decoder at the start of a body.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the end has been seen.
    pub fn is_done(&self) -> bool {
        matches!(self.state, State::Done)
    }

    /// The trailers that may be passed on, once the end has been seen.
    pub fn take_trailers(&mut self) -> Option<Trailers> {
        if !self.is_done() || self.trailer_lines.is_empty() {
            return None;
        }
        Some(Trailers::of_lines(&std::mem::take(&mut self.trailer_lines)))
            .filter(|trailers| !trailers.is_empty())
    }

    /// Decodes from the start of `input` up to the next data, the end of the body or of the input.
    pub fn decode(&mut self, input: &[u8]) -> Result<Event, ChunkedError> {
        let mut at = 0;
        while at < input.len() {
            if let State::Data { left } = self.state {
                let available = (input.len() - at) as u64;
                let taken = left.min(available);
                self.state = if taken == left { State::DataCr } else { State::Data { left: left - taken } };
                // `taken` is at most the length of a slice.
                return Ok(Event::Data { start: at, end: at + taken as usize });
            }
            if self.is_done() {
                return Ok(Event::End { consumed: at });
            }
            let before = self.state;
            self.state = step(before, input[at])?;
            match (before, self.state) {
                (_, State::Extension { .. }) => {
                    self.extension_bytes = bounded(self.extension_bytes + 1, MAX_EXTENSION_BYTES)?;
                }
                (_, State::Trailer { part: TrailerPart::Name | TrailerPart::Value, .. }) => {
                    self.trailer_lines.push(input[at]);
                }
                (State::TrailerLf { .. }, State::Trailer { .. }) => {
                    self.trailer_lines.push(b'\n');
                    self.trailer_fields = bounded(self.trailer_fields + 1, MAX_TRAILER_FIELDS)?;
                }
                _ => {}
            }
            at += 1;
        }
        if self.is_done() { Ok(Event::End { consumed: at }) } else { Ok(Event::NeedMore) }
    }
}

/// One byte of framing.
fn step(state: State, byte: u8) -> Result<State, ChunkedError> {
    Ok(match (state, byte) {
        (State::SizeStart, _) => State::Size { size: hex_digit(byte)?, line: 1 },
        (State::Size { size, .. }, b'\r') => State::SizeLf { size },
        (State::Size { size, line }, b';') => {
            State::Extension { size, line, part: ExtensionPart::BeforeName }
        }
        (State::Size { size, line }, b' ' | b'\t') => {
            State::Extension { size, line, part: ExtensionPart::BeforeSemicolon }
        }
        (State::Size { size, line }, _) => {
            if size > u64::MAX >> 8 {
                return Err(ChunkedError("chunk size is too large"));
            }
            State::Size { size: size * 16 + hex_digit(byte)?, line: bounded(line + 1, MAX_SIZE_LINE_BYTES)? }
        }
        (
            State::Extension {
                size,
                part: ExtensionPart::Name | ExtensionPart::Value | ExtensionPart::QuoteEnd,
                ..
            },
            b'\r',
        ) => State::SizeLf { size },
        (State::Extension { size, line, part }, _) => State::Extension {
            size,
            line: bounded(line + 1, MAX_SIZE_LINE_BYTES)?,
            part: part.step(byte).ok_or(ChunkedError("chunk extension"))?,
        },
        (State::SizeLf { size: 0 }, b'\n') => State::Trailer { total: 0, part: TrailerPart::LineStart },
        (State::SizeLf { size }, b'\n') => State::Data { left: size },
        (State::DataCr, b'\r') => State::DataLf,
        (State::DataLf, b'\n') => State::SizeStart,
        (State::Trailer { total, part: TrailerPart::LineStart }, b'\r') => {
            State::TrailerLf { total, last: true }
        }
        (State::Trailer { total, part: TrailerPart::Value }, b'\r') => {
            State::TrailerLf { total, last: false }
        }
        (State::Trailer { total, part }, _) => State::Trailer {
            total: bounded(total + 1, MAX_TRAILER_BYTES)?,
            part: part.step(byte).ok_or(ChunkedError("trailer field"))?,
        },
        (State::TrailerLf { last: true, .. }, b'\n') => State::Done,
        (State::TrailerLf { total, .. }, b'\n') => State::Trailer { total, part: TrailerPart::LineStart },
        (State::SizeLf { .. } | State::DataCr | State::DataLf | State::TrailerLf { .. }, _) => {
            return Err(ChunkedError("line does not end in CR LF"));
        }
        (State::Data { .. } | State::Done, _) => state,
    })
}

impl ExtensionPart {
    /// The part after `byte`, which is no CR; `None` where it must not be.
    fn step(self, byte: u8) -> Option<Self> {
        let is_space = byte == b' ' || byte == b'\t';
        Some(match (self, byte) {
            (Self::BeforeSemicolon | Self::BeforeName | Self::AfterName | Self::BeforeValue, _)
                if is_space =>
            {
                self
            }
            (Self::BeforeSemicolon | Self::Name | Self::AfterName | Self::Value | Self::QuoteEnd, b';') => {
                Self::BeforeName
            }
            (Self::Name | Self::AfterName, b'=') => Self::BeforeValue,
            (Self::BeforeName | Self::Name, _) if is_token_byte(byte) => Self::Name,
            (Self::Name, _) if is_space => Self::AfterName,
            (Self::BeforeValue, b'"') => Self::Quoted,
            (Self::BeforeValue | Self::Value, _) if is_token_byte(byte) => Self::Value,
            (Self::Value | Self::QuoteEnd, _) if is_space => Self::BeforeSemicolon,
            (Self::Quoted, b'"') => Self::QuoteEnd,
            (Self::Quoted, b'\\') => Self::Escaped,
            (Self::Quoted | Self::Escaped, _) if is_field_value_byte(byte) => Self::Quoted,
            _ => return None,
        })
    }
}

impl TrailerPart {
    /// The part after `byte`, which ends no line; `None` where it must not be.
    fn step(self, byte: u8) -> Option<Self> {
        match self {
            Self::LineStart | Self::Name if is_token_byte(byte) => Some(Self::Name),
            Self::Name if byte == b':' => Some(Self::Value),
            Self::Value if is_field_value_byte(byte) => Some(Self::Value),
            _ => None,
        }
    }
}

fn hex_digit(byte: u8) -> Result<u64, ChunkedError> {
    (byte as char).to_digit(16).map(u64::from).ok_or(ChunkedError("chunk size is not hexadecimal"))
}

fn bounded(length: usize, limit: usize) -> Result<usize, ChunkedError> {
    if length > limit { Err(ChunkedError("framing is too long")) } else { Ok(length) }
}

/// What ends a chunked body.
pub const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// Appends what ends a chunked body that has trailers.
pub fn write_end(trailers: &Trailers, out: &mut Vec<u8>) {
    out.extend_from_slice(b"0\r\n");
    trailers.write_to(out);
    out.extend_from_slice(b"\r\n");
}

/// Appends the size line of a chunk of `length` bytes, which must be more than 0. CR LF follows the data.
pub fn write_chunk_head(length: usize, out: &mut Vec<u8>) {
    debug_assert!(length > 0, "a chunk of no bytes would end the body");
    out.extend_from_slice(format!("{length:x}\r\n").as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The data of a body and what is left after its end; `None` when it has not ended.
    type Decoded = Option<(Vec<u8>, Vec<u8>)>;

    /// Feeds `pieces` one after another.
    fn decode(pieces: &[&[u8]]) -> Result<Decoded, ChunkedError> {
        let mut decoder = ChunkedDecoder::new();
        let (mut data, mut rest) = (Vec::new(), Vec::new());
        for piece in pieces {
            let mut input = *piece;
            if decoder.is_done() {
                rest.extend_from_slice(input);
                continue;
            }
            loop {
                match decoder.decode(input)? {
                    Event::Data { start, end } => {
                        data.extend_from_slice(&input[start..end]);
                        input = &input[end..];
                    }
                    Event::NeedMore => break,
                    Event::End { consumed } => {
                        rest.extend_from_slice(&input[consumed..]);
                        break;
                    }
                }
            }
        }
        Ok(decoder.is_done().then_some((data, rest)))
    }

    #[test]
    fn chunks_extensions_and_trailers_are_taken_and_the_rest_is_left() {
        let whole = b"5;name=\"v\"\r\nhello\r\n6\r\n world\r\n0\r\nX-Sum: 1\r\n\r\nGET / ";
        assert_eq!(decode(&[whole]), Ok(Some((b"hello world".to_vec(), b"GET / ".to_vec()))));
    }

    /// The trailers of a body whose last part is `section`, fed in two pieces that meet at `at`.
    fn trailers(section: &[u8], at: usize) -> Result<Option<String>, ChunkedError> {
        let whole = [&b"2\r\nhi\r\n0\r\n"[..], section, b"GET /"].concat();
        let mut decoder = ChunkedDecoder::new();
        for mut piece in [&whole[..at.min(whole.len())], &whole[at.min(whole.len())..]] {
            assert!(decoder.is_done() || decoder.take_trailers().is_none(), "they are there before the end");
            while let Event::Data { end, .. } = decoder.decode(piece)? {
                piece = &piece[end..];
            }
        }
        assert!(decoder.is_done(), "{section:?}");
        Ok(decoder.take_trailers().map(|trailers| {
            let mut out = Vec::new();
            trailers.write_to(&mut out);
            String::from_utf8(out).unwrap()
        }))
    }

    #[test]
    fn trailers_are_the_same_wherever_the_input_is_split() {
        for (section, expected) in [
            ("\r\n", None),
            ("X-Sum: 1\r\n\r\n", Some("x-sum: 1\r\n")),
            ("A:\r\n\r\n", Some("a: \r\n")),
            ("A:b:c\r\nA: \t d \r\nGrpc-Status: 0\r\n\r\n", Some("a: b:c\r\na: d\r\ngrpc-status: 0\r\n")),
            ("Content-Length: 9\r\nHost: c\r\n\r\n", None),
            ("Content-Length: 9\r\nX: 1\r\nSet-Cookie: a\r\n\r\n", Some("x: 1\r\n")),
        ] {
            for at in 0..section.len() + 20 {
                let got = trailers(section.as_bytes(), at);
                assert_eq!(got.as_ref().map(|got| got.as_deref()), Ok(expected), "{section:?} at {at}");
            }
        }
    }

    #[test]
    fn what_is_written_behind_a_body_is_read_again() {
        let mut first = ChunkedDecoder::new();
        first.decode(b"0\r\nX-A: 1\r\nB: 2\r\nx-a: 3\r\n\r\n").unwrap();
        let mut written = Vec::new();
        write_end(&first.take_trailers().unwrap(), &mut written);
        assert_eq!(String::from_utf8_lossy(&written), "0\r\nx-a: 1\r\nx-a: 3\r\nb: 2\r\n\r\n");
        let mut second = ChunkedDecoder::new();
        assert_eq!(second.decode(&written), Ok(Event::End { consumed: written.len() }));
        let mut again = Vec::new();
        write_end(&second.take_trailers().unwrap(), &mut again);
        assert_eq!(again, written);
    }

    #[test]
    fn broken_framing_is_refused() {
        for input in [
            &b"\r\n"[..],
            b"g\r\n",
            b"-1\r\n",
            b"+1\r\na",
            b"0x5\r\nhello\r\n",
            b" 5\r\n",
            b"5 \r\nhello\r\n",
            b"5\nhello",
            b"5\rhello",
            b"5;a\nhello",
            b"5\r\nhelloX\r\n",
            b"5\r\nhello\n0\r\n\r\n",
            b"fffffffffffffffff\r\n",
            b"11111111111111111\r\n",
            b"0\r\nX: \0\r\n\r\n",
            b"0\r\nX: 1\n\r\n",
            b"0\r\n\n",
            b"5;\r\nhello\r\n",
            b"5; \r\nhello\r\n",
            b"5;a \r\nhello\r\n",
            b"5;a=\r\nhello\r\n",
            b"5;=b\r\nhello\r\n",
            b"5;a=b c\r\nhello\r\n",
            b"5;a=\"b\r\nhello\r\n",
            b"5;a=\"b\"c\r\nhello\r\n",
            b"5;a=\"\x01\"\r\nhello\r\n",
            b"5;\xe9\r\nhello\r\n",
            b"5 a\r\nhello\r\n",
            b"5;a\rb\r\nhello\r\n",
            b"0\r\nX\r\n\r\n",
            b"0\r\nX : 1\r\n\r\n",
            b"0\r\n X: 1\r\n\r\n",
            b"0\r\n: 1\r\n\r\n",
            b"0\r\nX: 1\r\n folded\r\n\r\n",
            b"0\r\nX: 1\rY\r\n\r\n",
            b"0\r\nGET / HTTP/1.1\r\n\r\n",
        ] {
            assert!(decode(&[input]).is_err(), "{:?}", String::from_utf8_lossy(input));
        }
    }

    #[test]
    fn extensions_of_every_form_are_ignored() {
        for extension in [
            ";a",
            ";a;b",
            " ; a",
            "\t;\ta\t=\tb",
            ";a=b;c",
            ";a=\"b c;\\\"d\"",
            ";a=\"\" ;b",
            ";a=\"\u{e9}\"",
            ";a ; b",
        ] {
            let input = format!("5{extension}\r\nhello\r\n0{extension}\r\n\r\n");
            assert_eq!(decode(&[input.as_bytes()]), Ok(Some((b"hello".to_vec(), Vec::new()))), "{input:?}");
        }
    }

    #[test]
    fn endless_size_lines_and_trailers_are_refused() {
        let line = [&b"5;"[..], &b"a".repeat(300)].concat();
        assert!(decode(&[&line]).is_err());
        let chunks = [&b"1;"[..], &b"a".repeat(200), b"\r\nx\r\n"].concat().repeat(100);
        assert!(decode(&[&chunks]).is_err());
        let zeros = b"0".repeat(300);
        assert!(decode(&[&zeros]).is_err());
        let trailers = [&b"0\r\n"[..], &b"X: y\r\n".repeat(3000)].concat();
        assert!(decode(&[&trailers]).is_err());
        for (count, is_ok) in [(MAX_TRAILER_FIELDS, true), (MAX_TRAILER_FIELDS + 1, false)] {
            let many = [&b"0\r\n"[..], &b"A:\r\n".repeat(count), b"\r\n"].concat();
            assert_eq!(decode(&[&many]).is_ok(), is_ok, "{count}");
        }
        for (bytes, is_ok) in [(MAX_TRAILER_BYTES - 2, true), (MAX_TRAILER_BYTES - 1, false)] {
            let long = [&b"0\r\nA:"[..], &b"x".repeat(bytes), b"\r\n\r\n"].concat();
            assert_eq!(decode(&[&long]).is_ok(), is_ok, "{bytes}");
        }
    }

    proptest! {
        #[test]
        fn any_split_gives_the_same_data(chunks in prop::collection::vec(prop::collection::vec(any::<u8>(), 1..40), 0..6), at in 0usize..400) {
            let mut whole = Vec::new();
            for chunk in &chunks {
                write_chunk_head(chunk.len(), &mut whole);
                whole.extend_from_slice(chunk);
                whole.extend_from_slice(b"\r\n");
            }
            whole.extend_from_slice(LAST_CHUNK);
            whole.extend_from_slice(b"next");
            let at = at.min(whole.len());
            let (first, second) = whole.split_at(at);
            prop_assert_eq!(decode(&[first, second]), Ok(Some((chunks.concat(), b"next".to_vec()))));
        }

        #[test]
        fn trailers_that_are_written_are_read_from_any_two_pieces(
            fields in prop::collection::vec(("y-[a-z0-9!#$&|~_-]{0,8}", "([!-~]([ -~]{0,12}[!-~])?)?"), 1..8),
            at in 0usize..300,
        ) {
            let lines: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
            let got = trailers(format!("{lines}\r\n").as_bytes(), at).unwrap().unwrap();
            let sorted = |text: &str| {
                let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            prop_assert_eq!(sorted(&got), sorted(&lines));
        }

        #[test]
        fn no_input_panics(input in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&[&input]);
        }
    }
}
