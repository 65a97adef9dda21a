//! Cuts the input into frames. The data of a body is told as it comes; other frames wait until they
//! are complete.

use crate::connection::{Connection, Event};
use crate::failure::Failure;
use crate::frame::{FrameHeader, HEADER_BYTES, flag, kind, write_window_update};
use crate::hpack::FieldBuffer;
use crate::reason::Reason;
use crate::streams::ClosedStream;

/// The first bytes of an HTTP/2 connection (RFC 9113 section 3.4).
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The position in the input.
#[derive(Debug, Default)]
pub(crate) struct Input {
    /// Number of bytes of the preface that have come.
    preface: u8,
    /// The start of a frame that is not complete.
    partial: Vec<u8>,
    payload: Payload,
}

/// The payload of a frame whose header is gone.
#[derive(Clone, Copy, Debug, Default)]
enum Payload {
    #[default]
    None,
    /// DATA, whose first byte is the length of its padding.
    Padded(FrameHeader),
    /// The data of a body.
    Data { stream: u32, left: usize, padding: usize, ended: bool },
    /// Bytes that nobody looks at.
    Ignored(usize),
}

/// What a header begins.
enum Begun<S> {
    /// A frame that is taken when it is complete.
    Whole,
    /// A payload that is taken as it comes.
    Streamed(Option<Event<S>>),
}

impl Input {
    pub(crate) fn held_bytes(&self) -> usize {
        self.partial.capacity()
    }
}

/// What [`Connection::receive`] has done.
#[derive(Debug, PartialEq, Eq)]
pub struct Received<S> {
    /// Number of bytes of the input that are done with.
    pub used: usize,
    /// What the server must know. If there is nothing, all of the input is used.
    pub event: Option<Event<S>>,
}

impl<S> Connection<S> {
    /// Takes bytes from the start of `input`, at second `now`, until there is something that the
    /// server must know. Fields of that are in `fields`.
    ///
    /// An error ends the connection. The output then ends with GOAWAY.
    pub fn receive(
        &mut self,
        input: &[u8],
        now: u64,
        fields: &mut FieldBuffer,
    ) -> Result<Received<S>, Failure> {
        if let Some(failure) = self.failure() {
            return Err(failure);
        }
        let mut at = 0;
        let mut event = None;
        while event.is_none() && at < input.len() {
            event = self.step(input, &mut at, now, fields).map_err(|failure| self.fail(failure))?;
        }
        Ok(Received { used: at, event })
    }

    /// Takes one part of the input, which is not empty: a frame or a piece of one.
    #[inline]
    fn step(
        &mut self,
        input: &[u8],
        at: &mut usize,
        now: u64,
        fields: &mut FieldBuffer,
    ) -> Result<Option<Event<S>>, Failure> {
        let rest = input.get(*at..).unwrap_or_default();
        if usize::from(self.input.preface) < PREFACE.len() {
            return self.preface(rest, at).map(|()| None);
        }
        if !matches!(self.input.payload, Payload::None) {
            return self.payload(rest, at);
        }
        if !self.input.partial.is_empty() {
            return self.continue_frame(rest, at, now, fields);
        }
        let Some(header) = FrameHeader::parse(rest) else {
            return Ok(self.keep(rest, at));
        };
        if let Begun::Streamed(event) = self.begin(header, now)? {
            *at += HEADER_BYTES;
            return Ok(event);
        }
        let Some(payload) = rest.get(HEADER_BYTES..HEADER_BYTES + header.length) else {
            return Ok(self.keep(rest, at));
        };
        *at += HEADER_BYTES + header.length;
        self.take_frame(header, payload, fields)
    }

    /// Keeps the start of a frame until the rest comes.
    #[cold]
    fn keep(&mut self, rest: &[u8], at: &mut usize) -> Option<Event<S>> {
        self.input.partial.extend_from_slice(rest);
        *at += rest.len();
        None
    }

    #[cold]
    fn preface(&mut self, rest: &[u8], at: &mut usize) -> Result<(), Failure> {
        let expected = PREFACE.get(usize::from(self.input.preface)..).unwrap_or_default();
        let count = expected.len().min(rest.len());
        if rest.get(..count) != expected.get(..count) {
            return Err(Failure::protocol("the connection preface is wrong"));
        }
        self.input.preface += u8::try_from(count).unwrap_or(u8::MAX);
        *at += count;
        Ok(())
    }

    /// Adds to a frame whose start is kept.
    #[cold]
    fn continue_frame(
        &mut self,
        rest: &[u8],
        at: &mut usize,
        now: u64,
        fields: &mut FieldBuffer,
    ) -> Result<Option<Event<S>>, Failure> {
        let had = self.input.partial.len();
        let whole = match FrameHeader::parse(&self.input.partial) {
            Some(header) => HEADER_BYTES + header.length,
            None => HEADER_BYTES,
        };
        let count = whole.saturating_sub(had).min(rest.len());
        self.input.partial.extend_from_slice(rest.get(..count).unwrap_or_default());
        *at += count;
        let Some(header) = FrameHeader::parse(&self.input.partial) else { return Ok(None) };
        if had < HEADER_BYTES
            && let Begun::Streamed(event) = self.begin(header, now)?
        {
            self.input.partial = Vec::new();
            return Ok(event);
        }
        if self.input.partial.len() < HEADER_BYTES + header.length {
            return Ok(None);
        }
        let frame = std::mem::take(&mut self.input.partial);
        self.take_frame(header, frame.get(HEADER_BYTES..).unwrap_or_default(), fields)
    }

    /// Checks a header, and begins its payload if that is taken as it comes.
    #[inline]
    fn begin(&mut self, header: FrameHeader, now: u64) -> Result<Begun<S>, Failure> {
        self.begin_frame(header, now)?;
        match header.kind {
            kind::DATA => self.begin_data(header, now).map(Begun::Streamed),
            0..=kind::CONTINUATION | kind::PRIORITY_UPDATE => Ok(Begun::Whole),
            // Unknown frames are ignored (RFC 9113 section 4.1).
            _ => {
                self.ignore(header.length);
                Ok(Begun::Streamed(None))
            }
        }
    }

    fn ignore(&mut self, bytes: usize) {
        self.input.payload = if bytes == 0 { Payload::None } else { Payload::Ignored(bytes) };
    }

    /// Begins a DATA frame. All of it counts for flow control (RFC 9113 section 6.1).
    fn begin_data(&mut self, header: FrameHeader, now: u64) -> Result<Option<Event<S>>, Failure> {
        let FrameHeader { stream: id, length, .. } = header;
        if self.is_idle(id) {
            return Err(Failure::protocol("DATA on an idle stream"));
        }
        if header.has(flag::PADDED) && length == 0 {
            return Err(Failure::frame_size("a padded frame is empty"));
        }
        let overflow = Failure::new(Reason::FlowControlError, "more data than its window");
        if !self.receive.receive(length) {
            return Err(overflow);
        }
        let error = match self.streams.get_mut(id) {
            Some(stream) if !stream.is_receiving => Some(Reason::StreamClosed),
            Some(stream) => {
                let has_room = stream.receive.receive(length);
                (!has_room).then_some(Reason::FlowControlError)
            }
            None if self.recent.state(id) == ClosedStream::Reset => {
                if !self.budget.receive_late_data(length, now) {
                    return Err(Failure::FRAMES);
                }
                self.ignore(length);
                self.release_connection(length);
                return Ok(None);
            }
            None => Some(Reason::StreamClosed),
        };
        if let Some(reason) = error {
            self.ignore(length);
            self.release_connection(length);
            return self.stream_error(id, reason);
        }
        if header.has(flag::PADDED) {
            self.input.payload = Payload::Padded(header);
            return Ok(None);
        }
        let ended = header.has(flag::END_STREAM);
        if length == 0 {
            return if ended { self.take_data(id, 0..0, true) } else { Ok(None) };
        }
        self.input.payload = Payload::Data { stream: id, left: length, padding: 0, ended };
        Ok(None)
    }

    /// Takes bytes of a payload, of which at least one is there.
    fn payload(&mut self, rest: &[u8], at: &mut usize) -> Result<Option<Event<S>>, Failure> {
        match self.input.payload {
            Payload::None => Ok(None),
            Payload::Ignored(left) => {
                let count = left.min(rest.len());
                *at += count;
                self.ignore(left - count);
                Ok(None)
            }
            Payload::Padded(header) => {
                let padding = rest.first().copied().map_or(0, usize::from);
                *at += 1;
                let Some(left) = (header.length - 1).checked_sub(padding) else {
                    return Err(Failure::protocol("the padding is longer than the frame"));
                };
                self.release(header.stream, 1 + padding);
                let ended = header.has(flag::END_STREAM);
                if left > 0 {
                    self.input.payload =
                        Payload::Data { stream: header.stream, left, padding, ended };
                    return Ok(None);
                }
                self.ignore(padding);
                if ended { self.take_data(header.stream, 0..0, true) } else { Ok(None) }
            }
            Payload::Data { stream, left, padding, ended } => {
                let count = left.min(rest.len());
                let data = *at..*at + count;
                *at += count;
                let left = left - count;
                if left > 0 {
                    self.input.payload = Payload::Data { stream, left, padding, ended };
                } else {
                    self.ignore(padding);
                }
                self.take_data(stream, data, ended && left == 0)
            }
        }
    }

    /// Takes data of a body.
    fn take_data(
        &mut self,
        id: u32,
        data: std::ops::Range<usize>,
        ended: bool,
    ) -> Result<Option<Event<S>>, Failure> {
        let bytes = data.len();
        let Some(stream) = self.streams.get_mut(id) else {
            self.release_connection(bytes);
            return Ok(None);
        };
        if let Some(announced) = &mut stream.announced {
            let left = announced.checked_sub(bytes as u64);
            if left.is_none_or(|left| ended && left > 0) {
                self.release_connection(bytes);
                return self.stream_error(id, Reason::ProtocolError);
            }
            *announced = left.unwrap_or(0);
        }
        let dropped = stream.dropped;
        if ended {
            self.end_receiving(id);
        }
        let Some(dropped) = dropped else {
            return Ok(Some(Event::Data { stream: id, data, ended }));
        };
        let Some(stream) = self.streams.get_mut(id) else {
            self.release_connection(bytes);
            return Ok(None);
        };
        let left = dropped.checked_sub(u32::try_from(bytes).unwrap_or(u32::MAX));
        stream.dropped = Some(left.unwrap_or(0));
        if left.is_some() {
            self.release(id, bytes);
            return Ok(None);
        }
        // The client goes on although nobody needs it. It gets no more room until it has the
        // response, and is told to stop then (RFC 9113 section 8.1).
        let is_answered = !stream.is_sending;
        self.release_connection(bytes);
        if is_answered {
            self.reset(id, Reason::NoError);
        }
        Ok(None)
    }

    /// Gives the client room for `bytes` that were received and are not needed any more. Call it
    /// for all data that was told, even if its stream has ended.
    pub fn release(&mut self, stream: u32, bytes: usize) {
        self.release_connection(bytes);
        if let Some(open) = self.streams.get_mut(stream)
            && open.is_receiving
            && let Some(more) = open.receive.release(bytes)
        {
            write_window_update(&mut self.output, stream, more);
        }
    }

    fn release_connection(&mut self, bytes: usize) {
        if let Some(more) = self.receive.release(bytes) {
            write_window_update(&mut self.output, 0, more);
        }
    }

    /// Returns how many bytes are still dropped ([`Connection::drop_rest`]).
    pub fn left_to_drop(&self, stream: u32) -> Option<u32> {
        self.streams.get(stream)?.dropped
    }

    /// Drops the rest of a body. After `bytes` more of it the stream is reset, if its response is
    /// complete.
    pub fn drop_rest(&mut self, stream: u32, bytes: u32) {
        if let Some(open) = self.streams.get_mut(stream) {
            open.dropped = Some(bytes);
        }
    }
}
