//! The client's control stream (RFC 9114 section 6.2.1).

use kirin_h2::priority::Priority;

use crate::code::{Code, Failure};
use crate::frame::{FrameHeader, HeaderReader, kind};
use crate::settings;
use crate::varint;

/// The most octets of a frame that must be complete before it is read.
const MOST_PAYLOAD_BYTES: u64 = 1024;

/// The most frames that mean nothing, such as those of unknown types.
const MOST_IDLE_FRAMES: u32 = 10_000;

/// Something on the control stream that the server acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlEvent {
    /// The settings have come.
    Settings,
    /// The client wants another priority for the response on this stream (RFC 9218 section 7.2).
    Priority(u64, Priority),
}

/// Reads the control stream.
#[derive(Debug, Default)]
pub struct ControlReader {
    header: HeaderReader,
    open: Option<FrameHeader>,
    payload: Vec<u8>,
    /// What is still to be skipped of a frame of an unknown type.
    skipped: u64,
    has_settings: bool,
    most_push_id: Option<u64>,
    first_refused_push: Option<u64>,
    idle_frames: u32,
}

impl ControlReader {
    /// Takes octets from the front of `input`. Returns an event when one has come; `None` when all
    /// octets are taken.
    ///
    /// # Errors
    /// The client has broken a rule, and the connection must end.
    pub fn take(&mut self, input: &mut &[u8]) -> Result<Option<ControlEvent>, Failure> {
        loop {
            let skipped = usize::try_from(self.skipped).unwrap_or(usize::MAX).min(input.len());
            *input = input.get(skipped..).unwrap_or_default();
            self.skipped -= skipped as u64;
            if self.skipped > 0 {
                return Ok(None);
            }
            let Some(header) = self.open else {
                let Some(header) = self.header.take(input) else { return Ok(None) };
                self.begin(header)?;
                continue;
            };
            let wanted = usize::try_from(header.length).unwrap_or(usize::MAX);
            let count = (wanted - self.payload.len()).min(input.len());
            let (piece, rest) = input.split_at(count);
            self.payload.extend_from_slice(piece);
            *input = rest;
            if self.payload.len() < wanted {
                return Ok(None);
            }
            self.open = None;
            let payload = std::mem::take(&mut self.payload);
            if let Some(event) = self.end(header.kind, &payload)? {
                return Ok(Some(event));
            }
        }
    }

    fn begin(&mut self, header: FrameHeader) -> Result<(), Failure> {
        let FrameHeader { kind, length } = header;
        let fail = |code, what| Err(Failure::new(code, what));
        if !self.has_settings && kind != kind::SETTINGS {
            return fail(Code::MissingSettings, "the control stream begins without settings");
        }
        match kind {
            kind::SETTINGS if self.has_settings => {
                return fail(Code::FrameUnexpected, "the settings come twice");
            }
            kind::DATA | kind::HEADERS | kind::PUSH_PROMISE => {
                return fail(Code::FrameUnexpected, "a frame of a request on the control stream");
            }
            _ if kind::is_of_http2(kind) => {
                return fail(Code::FrameUnexpected, "a frame that only HTTP/2 has");
            }
            kind::SETTINGS
            | kind::CANCEL_PUSH
            | kind::GOAWAY
            | kind::MAX_PUSH_ID
            | kind::PRIORITY_UPDATE_REQUEST
            | kind::PRIORITY_UPDATE_PUSH => {
                if length > MOST_PAYLOAD_BYTES {
                    return fail(Code::ExcessiveLoad, "a frame of the control stream is too long");
                }
                self.open = Some(header);
            }
            _ => self.skipped = length,
        }
        if kind != kind::SETTINGS {
            self.idle_frames += 1;
            if self.idle_frames > MOST_IDLE_FRAMES {
                return fail(
                    Code::ExcessiveLoad,
                    "there are too many frames on the control stream",
                );
            }
        }
        Ok(())
    }

    fn end(&mut self, kind: u64, payload: &[u8]) -> Result<Option<ControlEvent>, Failure> {
        match kind {
            kind::SETTINGS => {
                settings::check(payload)?;
                self.has_settings = true;
                Ok(Some(ControlEvent::Settings))
            }
            kind::PRIORITY_UPDATE_REQUEST => {
                let (stream, value) = read_number(payload)?;
                // Requests are on streams that the client has opened in both directions.
                if stream % 4 != 0 {
                    return Err(Failure::new(Code::Id, "a priority for no stream of a request"));
                }
                Ok(Some(ControlEvent::Priority(stream, Priority::parse(value))))
            }
            kind::MAX_PUSH_ID => {
                let most = only_number(payload)?;
                if self.most_push_id.is_some_and(|before| most < before) {
                    return Err(Failure::new(Code::Id, "MAX_PUSH_ID becomes smaller"));
                }
                self.most_push_id = Some(most);
                Ok(None)
            }
            kind::GOAWAY => {
                let first = only_number(payload)?;
                if self.first_refused_push.is_some_and(|before| first > before) {
                    return Err(Failure::new(Code::Id, "GOAWAY becomes larger"));
                }
                self.first_refused_push = Some(first);
                Ok(None)
            }
            kind::CANCEL_PUSH => {
                only_number(payload)?;
                Err(Failure::new(Code::Id, "a push that does not exist"))
            }
            // Nothing was pushed.
            _ => Err(Failure::new(Code::Id, "a push that does not exist")),
        }
    }
}

fn read_number(payload: &[u8]) -> Result<(u64, &[u8]), Failure> {
    let (number, length) =
        varint::read(payload).ok_or(Failure::new(Code::Frame, "a frame is too short"))?;
    Ok((number, payload.get(length..).unwrap_or_default()))
}

fn only_number(payload: &[u8]) -> Result<u64, Failure> {
    match read_number(payload)? {
        (number, []) => Ok(number),
        _ => Err(Failure::new(Code::Frame, "a frame is too long")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(stream: &[u8], size: usize) -> Result<Vec<ControlEvent>, Code> {
        let mut reader = ControlReader::default();
        let mut events = Vec::new();
        for mut piece in stream.chunks(size) {
            while let Some(event) = reader.take(&mut piece).map_err(|failure| failure.code)? {
                events.push(event);
            }
        }
        Ok(events)
    }

    #[test]
    fn settings_and_priorities_come_out_whatever_the_pieces_are() {
        let stream =
            b"\x04\x02\x06\x10\x21\x05xxxxx\x0d\x01\x05\x80\x0f\x07\x00\x04\x04u=1\x07\x01\x00";
        let priority = Priority { urgency: 1, incremental: false };
        for size in 1..=stream.len() {
            let events = read(stream, size).unwrap();
            assert_eq!(events, [ControlEvent::Settings, ControlEvent::Priority(4, priority)]);
        }
    }

    #[test]
    fn mistakes_have_the_codes_of_the_specification() {
        for (stream, code) in [
            (&b"\x21\x00"[..], Code::MissingSettings),
            (b"\x07\x01\x00", Code::MissingSettings),
            (b"\x04\x00\x04\x00", Code::FrameUnexpected),
            (b"\x04\x00\x00\x00", Code::FrameUnexpected),
            (b"\x04\x00\x01\x00", Code::FrameUnexpected),
            (b"\x04\x00\x05\x00", Code::FrameUnexpected),
            (b"\x04\x00\x06\x00", Code::FrameUnexpected),
            (b"\x04\x00\x0d\x01\x05\x0d\x01\x04", Code::Id),
            (b"\x04\x00\x03\x01\x00", Code::Id),
            (b"\x04\x00\x03\x00", Code::Frame),
            (b"\x04\x00\x03\x02\x00\x00", Code::Frame),
            (b"\x04\x00\x07\x01\x04\x07\x01\x05", Code::Id),
            (b"\x04\x00\x80\x0f\x07\x00\x01\x01", Code::Id),
            (b"\x04\x00\x80\x0f\x07\x01\x01\x01", Code::Id),
            (b"\x04\x00\x07\x02\x00\x00", Code::Frame),
            (b"\x04\x00\x07\x00", Code::Frame),
            (b"\x04\x80\x00\x10\x00", Code::ExcessiveLoad),
            (b"\x04\x01\x06", Code::Frame),
        ] {
            assert_eq!(read(stream, 100), Err(code), "{stream:x?}");
            assert_eq!(read(stream, 1), Err(code), "{stream:x?}");
        }
    }

    #[test]
    fn frames_that_mean_nothing_have_a_limit() {
        let stream = |count: usize| [b"\x04\x00".to_vec(), b"\x21\x00".repeat(count)].concat();
        assert!(read(&stream(MOST_IDLE_FRAMES as usize), 1000).is_ok());
        let more = stream(MOST_IDLE_FRAMES as usize + 1);
        assert_eq!(read(&more, 1000), Err(Code::ExcessiveLoad));
    }
}
