//! The frames of a request (RFC 9114 section 4.1): HEADERS, DATA and perhaps trailers. Frames of
//! unknown types may be everywhere and mean nothing.

use bytes::Bytes;

use crate::code::{Code, Failure};
use crate::frame::{FrameHeader, HeaderReader, kind};

/// A part of a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Part {
    /// The field section of the request.
    Head(Bytes),
    /// A piece of the body.
    Data(Bytes),
    /// The field section of the trailers.
    Trailers(Bytes),
    /// A field section that is longer than the limit. Nothing of it was kept, and the stream need
    /// not be read any more.
    TooLarge,
}

/// What the client has sent before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    BeforeHead,
    InBody,
    BehindTrailers,
}

/// The frame whose payload comes.
#[derive(Debug)]
enum Open {
    /// None: its header comes.
    Header,
    /// A field section, of which this has come.
    Section {
        left: u64,
        octets: Vec<u8>,
    },
    Data {
        left: u64,
    },
    /// A frame of an unknown type.
    Skipped {
        left: u64,
    },
}

/// Reads the stream of a request.
#[derive(Debug)]
pub struct RequestReader {
    place: Place,
    open: Open,
    header: HeaderReader,
    most_section_bytes: u64,
}

impl RequestReader {
    /// Returns the reader of a new stream. A field section may have `most_section_bytes` in its
    /// compressed form.
    pub fn new(most_section_bytes: u64) -> Self {
        let header = HeaderReader::default();
        Self { place: Place::BeforeHead, open: Open::Header, header, most_section_bytes }
    }

    /// Returns whether the head of the request has come.
    pub fn has_head(&self) -> bool {
        self.place != Place::BeforeHead
    }

    /// Returns the number of octets that are kept, because more must come before they can be used.
    pub fn held_bytes(&self) -> usize {
        match &self.open {
            Open::Section { octets, .. } => octets.capacity(),
            _ => 0,
        }
    }

    /// Takes octets from the front of `input`. Returns a part of the request when one has come;
    /// `None` when all octets are taken.
    ///
    /// # Errors
    /// The client has broken a rule, and the connection must end.
    pub fn take(&mut self, input: &mut Bytes) -> Result<Option<Part>, Failure> {
        loop {
            match &mut self.open {
                Open::Header => {
                    let mut rest = &input[..];
                    let header = self.header.take(&mut rest);
                    let used = input.len() - rest.len();
                    let _ = input.split_to(used);
                    let Some(header) = header else { return Ok(None) };
                    self.open = self.begin(header)?;
                    if let Open::Section { left, .. } = self.open
                        && left > self.most_section_bytes
                    {
                        return Ok(Some(Part::TooLarge));
                    }
                }
                Open::Section { left, octets } => {
                    let piece = take_up_to(input, left);
                    if *left > 0 {
                        octets.extend_from_slice(&piece);
                        return Ok(None);
                    }
                    // Most sections come in one piece.
                    let section = if octets.is_empty() {
                        piece
                    } else {
                        octets.extend_from_slice(&piece);
                        std::mem::take(octets).into()
                    };
                    self.open = Open::Header;
                    return Ok(Some(self.end_section(section)));
                }
                Open::Data { left: 0 } | Open::Skipped { left: 0 } => self.open = Open::Header,
                Open::Data { left } => {
                    let piece = take_up_to(input, left);
                    return Ok((!piece.is_empty()).then_some(Part::Data(piece)));
                }
                Open::Skipped { left } => {
                    if take_up_to(input, left).is_empty() {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Notes that the client has ended the stream.
    ///
    /// # Errors
    /// The last frame is cut off, and the connection must end.
    pub fn end(&self) -> Result<(), Failure> {
        let is_complete = match &self.open {
            Open::Header => !self.header.has_begun(),
            Open::Section { .. } => false,
            Open::Data { left } | Open::Skipped { left } => *left == 0,
        };
        match is_complete {
            true => Ok(()),
            false => Err(Failure::new(Code::Frame, "a stream ends inside a frame")),
        }
    }

    fn begin(&self, header: FrameHeader) -> Result<Open, Failure> {
        let FrameHeader { kind, length } = header;
        let unexpected = |what| Err(Failure::new(Code::FrameUnexpected, what));
        match (kind, self.place) {
            (kind::HEADERS, Place::BeforeHead | Place::InBody) => {
                Ok(Open::Section { left: length, octets: Vec::new() })
            }
            (kind::DATA, Place::InBody) => Ok(Open::Data { left: length }),
            (kind::HEADERS | kind::DATA, _) => unexpected("HEADERS and DATA are in wrong order"),
            (
                kind::CANCEL_PUSH
                | kind::SETTINGS
                | kind::PUSH_PROMISE
                | kind::GOAWAY
                | kind::MAX_PUSH_ID
                | kind::PRIORITY_UPDATE_REQUEST
                | kind::PRIORITY_UPDATE_PUSH,
                _,
            ) => unexpected("a frame of the control stream on the stream of a request"),
            (kind, _) if kind::is_of_http2(kind) => unexpected("a frame that only HTTP/2 has"),
            _ => Ok(Open::Skipped { left: length }),
        }
    }

    fn end_section(&mut self, section: Bytes) -> Part {
        match self.place {
            Place::BeforeHead => {
                self.place = Place::InBody;
                Part::Head(section)
            }
            Place::InBody | Place::BehindTrailers => {
                self.place = Place::BehindTrailers;
                Part::Trailers(section)
            }
        }
    }
}

/// Takes up to `left` octets from the front of `input`, and counts them.
fn take_up_to(input: &mut Bytes, left: &mut u64) -> Bytes {
    let count = usize::try_from(*left).unwrap_or(usize::MAX).min(input.len());
    *left -= count as u64;
    input.split_to(count)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LIMIT: u64 = 100;

    /// Reads a stream that comes in pieces of `size` octets. DATA that comes in pieces is joined.
    fn read(stream: &[u8], size: usize) -> Result<Vec<Part>, Code> {
        let mut reader = RequestReader::new(LIMIT);
        let mut parts = Vec::new();
        for piece in stream.chunks(size) {
            let mut input = Bytes::copy_from_slice(piece);
            while let Some(part) = reader.take(&mut input).map_err(|failure| failure.code)? {
                match (parts.last_mut(), part) {
                    (_, Part::TooLarge) => return Ok(vec![Part::TooLarge]),
                    (Some(Part::Data(before)), Part::Data(data)) => {
                        *before = [&before[..], &data[..]].concat().into();
                    }
                    (_, part) => parts.push(part),
                }
            }
            assert!(input.is_empty());
        }
        reader.end().map(|()| parts).map_err(|failure| failure.code)
    }

    fn head(octets: &'static [u8]) -> Part {
        Part::Head(octets.into())
    }

    fn data(octets: &'static [u8]) -> Part {
        Part::Data(octets.into())
    }

    #[test]
    fn the_parts_of_a_request_come_out_whatever_the_pieces_are() {
        let stream =
            b"\x21\x02xx\x01\x03abc\x00\x00\x00\x02de\x40\x21\x01y\x00\x01f\x01\x01t\x21\x00";
        for size in 1..=stream.len() {
            let parts = read(stream, size).unwrap();
            let trailers = Part::Trailers(Bytes::from_static(b"t"));
            assert_eq!(parts, [head(b"abc"), data(b"def"), trailers], "{size}");
        }
        assert_eq!(read(b"\x01\x00", 1), Ok(vec![head(b"")]));
    }

    #[test]
    fn frames_in_wrong_places_end_the_connection() {
        for (stream, code) in [
            (&b"\x00\x01a"[..], Code::FrameUnexpected),
            (b"\x01\x00\x01\x00\x00\x00", Code::FrameUnexpected),
            (b"\x01\x00\x01\x00\x01\x00", Code::FrameUnexpected),
            (b"\x04\x00", Code::FrameUnexpected),
            (b"\x01\x00\x05\x00", Code::FrameUnexpected),
            (b"\x01\x00\x07\x00", Code::FrameUnexpected),
            (b"\x01\x00\x0d\x01\x00", Code::FrameUnexpected),
            (b"\x02\x00", Code::FrameUnexpected),
            (b"\x06\x00", Code::FrameUnexpected),
            (b"\x08\x00", Code::FrameUnexpected),
            (b"\x09\x00", Code::FrameUnexpected),
            (b"\x80\x0f\x07\x00\x00", Code::FrameUnexpected),
            (b"\x01\x05ab", Code::Frame),
            (b"\x01\x00\x00\x02a", Code::Frame),
            (b"\x01\x00\x00", Code::Frame),
            (b"\x21\x02a", Code::Frame),
        ] {
            assert_eq!(read(stream, stream.len()), Err(code), "{stream:x?}");
            assert_eq!(read(stream, 1), Err(code), "{stream:x?}");
        }
    }

    #[test]
    fn a_section_above_the_limit_is_not_kept() {
        let mut reader = RequestReader::new(LIMIT);
        let mut input = Bytes::from_static(b"\x01\xff\xff\xff\xff\xff\xff\xff\xffabc");
        assert_eq!(reader.take(&mut input), Ok(Some(Part::TooLarge)));
        assert_eq!(reader.held_bytes(), 0);
        let long = [&b"\x01\x40\x65"[..], &[0; 101]].concat();
        assert_eq!(read(&long, 7), Ok(vec![Part::TooLarge]));
        let fits = [&b"\x01\x40\x64"[..], &[0; 100]].concat();
        assert_eq!(read(&fits, 7).map(|parts| parts.len()), Ok(1));
    }

    proptest! {
        #[test]
        fn any_octets_give_the_same_in_one_piece_and_in_many(
            stream in proptest::collection::vec(prop_oneof![0_u8..16, any::<u8>()], 0..60),
            size in 1_usize..9,
        ) {
            let whole = read(&stream, stream.len().max(1));
            prop_assert_eq!(read(&stream, size), whole);
        }
    }
}
