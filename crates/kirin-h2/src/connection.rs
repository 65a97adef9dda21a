//! A connection: its state, and what one complete frame does to it. [`crate::receiving`] cuts the
//! input into frames, [`crate::sending`] writes responses.

use std::ops::Range;

use crate::budget::Budget;
use crate::failure::Failure;
use crate::frame::{
    self, FrameHeader, MAX_STREAM, flag, kind, number_at, write_goaway, write_header, write_reset,
};
use crate::hpack::{Decoder, Encoder, FieldBuffer, HpackError};
use crate::output::Output;
use crate::priority::Priority;
use crate::reason::Reason;
use crate::receiving::Input;
use crate::request::{Malformed, RequestFacts, check_request, check_trailers};
use crate::settings::{self, ClientSettings, DEFAULT_WINDOW_BYTES, Limits};
use crate::streams::{ClosedStream, RecentStreams, Stream, Streams};
use crate::window::{ReceiveWindow, SendWindow};

/// The dynamic tables of both directions, in bytes as HPACK counts them. The client's is the
/// default of SETTINGS_HEADER_TABLE_SIZE.
const RECEIVED_TABLE_BYTES: u32 = 4096;
const SENT_TABLE_BYTES: u32 = 2048;

/// The most priorities that are kept for streams that are not open yet.
const MOST_EARLY_PRIORITIES: usize = 16;

/// The payload of the PING that shows which requests the client sent before it knew of GOAWAY.
const SHUTDOWN_PING: &[u8; 8] = b"shutdown";

/// Something that the server must know.
#[derive(Debug, PartialEq, Eq)]
pub enum Event<S> {
    /// A request has come. Its fields are in the buffer. The server answers it at once, or calls
    /// [`Connection::open`] before anything else.
    Request {
        /// Its stream.
        stream: u32,
        /// Whether it has no body.
        ended: bool,
        /// Whether its header list is larger than the limit, so that fields are missing.
        is_too_large: bool,
    },
    /// Data of a request's body has come.
    Data {
        /// Its stream.
        stream: u32,
        /// Where it is in the input.
        data: Range<usize>,
        /// Whether the body has ended.
        ended: bool,
    },
    /// The body of a request has ended with trailers. Their fields are in the buffer.
    Trailers {
        /// Its stream.
        stream: u32,
    },
    /// A stream has ended early, by RST_STREAM or by an error of the client.
    Reset {
        /// Its stream.
        stream: u32,
        /// What the server kept for it.
        state: S,
    },
}

/// A request that was told and not answered or opened yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    pub(crate) stream: u32,
    pub(crate) ended: bool,
    facts: RequestFacts,
}

/// The way to the end of a connection (RFC 9113 section 6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shutdown {
    /// It goes on.
    No,
    /// The client was told to send no more requests. Those on their way are taken.
    Announced,
    /// No requests above this stream are taken.
    Final(u32),
}

/// The header block of a frame without END_HEADERS.
#[derive(Debug)]
struct OpenBlock {
    stream: u32,
    ended: bool,
    bytes: Vec<u8>,
}

/// One connection with a client. `S` is what the server keeps for an open stream.
#[derive(Debug)]
pub struct Connection<S> {
    pub(crate) input: Input,
    pub(crate) output: Output,
    pub(crate) encoder: Encoder,
    pub(crate) streams: Streams<S>,
    pub(crate) recent: RecentStreams,
    pub(crate) begun: Option<Begun>,
    pub(crate) client: ClientSettings,
    pub(crate) send: SendWindow,
    pub(crate) receive: ReceiveWindow,
    pub(crate) budget: Budget,
    /// Priorities of streams that are not open yet. Usually there are none.
    early_priorities: Vec<(u32, Priority)>,
    /// Number of DATA frames that were sent, to take turns.
    pub(crate) turn: u32,
    decoder: Decoder,
    limits: Limits,
    block: Option<Box<OpenBlock>>,
    awaits_settings: bool,
    shutdown: Shutdown,
    failure: Option<Failure>,
}

impl<S> Connection<S> {
    /// Returns a connection of which nothing was received yet, at second `now`. The server's
    /// SETTINGS are in its output.
    pub fn new(limits: Limits, now: u64) -> Self {
        let mut output = Output::default();
        limits.write(&mut output);
        Self {
            input: Input::default(),
            output,
            encoder: Encoder::new(SENT_TABLE_BYTES),
            streams: Streams::new(),
            recent: RecentStreams::default(),
            begun: None,
            client: ClientSettings::default(),
            send: SendWindow::new(DEFAULT_WINDOW_BYTES),
            receive: ReceiveWindow::new(limits.connection_window_bytes.max(DEFAULT_WINDOW_BYTES)),
            budget: Budget::new(now),
            turn: 0,
            early_priorities: Vec::new(),
            decoder: Decoder::new(RECEIVED_TABLE_BYTES),
            limits,
            block: None,
            awaits_settings: true,
            shutdown: Shutdown::No,
            failure: None,
        }
    }

    /// Returns the bytes to be sent. The caller may exchange them, and their memory.
    pub fn output(&mut self) -> &mut Output {
        &mut self.output
    }

    /// Returns the number of bytes to be sent.
    pub fn output_bytes(&self) -> usize {
        self.output.len()
    }

    /// Returns how many bytes are held for the client: unfinished frames, tables, and output.
    pub fn held_bytes(&self) -> usize {
        let block = self.block.as_ref().map_or(0, |block| block.bytes.capacity());
        self.input.held_bytes()
            + block
            + self.output.len()
            + self.decoder.held_bytes()
            + self.encoder.held_bytes()
    }

    /// Returns the number of open streams.
    pub fn open_streams(&self) -> usize {
        self.streams.len()
    }

    /// Returns the open streams with what the server keeps for them.
    pub fn states(&self) -> impl Iterator<Item = (u32, &S)> {
        self.streams.iter().map(|stream| (stream.id, &stream.state))
    }

    /// Returns what the server keeps for an open stream.
    pub fn state(&self, stream: u32) -> Option<&S> {
        self.streams.get(stream).map(|stream| &stream.state)
    }

    /// Does the same, to change it.
    pub fn state_mut(&mut self, stream: u32) -> Option<&mut S> {
        self.streams.get_mut(stream).map(|stream| &mut stream.state)
    }

    /// Removes all streams. Returns what the server kept for them.
    pub fn end_all(&mut self) -> impl Iterator<Item = S> {
        self.streams.take_all().map(|stream| stream.state)
    }

    /// Keeps the request that has just come as an open stream.
    pub fn open(&mut self, state: S) {
        let Some(Begun { stream, ended, facts }) = self.begun.take() else { return };
        let early = self.early_priority(stream);
        self.streams.push(Stream {
            id: stream,
            is_receiving: !ended,
            is_sending: true,
            is_ready: false,
            dropped: None,
            priority: early.or(facts.priority).unwrap_or_default(),
            turn: self.turn,
            send: SendWindow::new(self.client.initial_window),
            receive: ReceiveWindow::new(self.limits.stream_window_bytes),
            announced: facts.content_length,
            state,
        });
    }

    /// Returns the priority that came ahead of its request. It overrides the request's field (RFC
    /// 9218 section 7).
    fn early_priority(&mut self, id: u32) -> Option<Priority> {
        let at = self.early_priorities.iter().position(|(stream, _)| *stream == id)?;
        let (_, priority) = self.early_priorities.swap_remove(at);
        // Those of streams that will never be opened.
        self.early_priorities.retain(|(stream, _)| *stream > id);
        Some(priority)
    }

    /// Resets a stream. Returns what the server kept for it, if it was open.
    pub fn reset(&mut self, stream: u32, reason: Reason) -> Option<S> {
        self.begun = self.begun.filter(|begun| begun.stream != stream);
        write_reset(&mut self.output, stream, reason);
        self.recent.reset(stream);
        self.streams.remove(stream).map(|stream| stream.state)
    }

    /// Tells the client to send no more requests. Those that it has sent before it knows that are
    /// still taken.
    pub fn shut_down(&mut self) {
        if self.shutdown == Shutdown::No && self.failure.is_none() {
            self.shutdown = Shutdown::Announced;
            write_goaway(&mut self.output, MAX_STREAM, Reason::NoError);
            write_header(&mut self.output, 8, kind::PING, 0, 0);
            self.output.extend_from_slice(SHUTDOWN_PING);
        }
    }

    /// Returns whether no request is open, and none will be taken any more.
    pub fn has_ended(&self) -> bool {
        self.streams.is_empty() && matches!(self.shutdown, Shutdown::Final(_))
    }

    /// Ends the connection: GOAWAY goes into the output, and nothing more is received.
    pub(crate) fn fail(&mut self, failure: Failure) -> Failure {
        if self.failure.is_none() {
            self.failure = Some(failure);
            write_goaway(&mut self.output, self.recent.last(), failure.reason);
        }
        failure
    }

    pub(crate) fn failure(&self) -> Option<Failure> {
        self.failure
    }

    /// Checks a header as soon as it has come, before its payload.
    #[inline]
    pub(crate) fn begin_frame(&mut self, header: FrameHeader, now: u64) -> Result<(), Failure> {
        if header.length > frame::MAX_PAYLOAD_BYTES {
            return Err(Failure::frame_size("a frame is longer than SETTINGS_MAX_FRAME_SIZE"));
        }
        if self.awaits_settings && (header.kind != kind::SETTINGS || header.has(flag::ACK)) {
            return Err(Failure::protocol("the first frame is not SETTINGS"));
        }
        match &self.block {
            Some(block) if header.kind != kind::CONTINUATION || header.stream != block.stream => {
                return Err(Failure::protocol("a header block is not continued"));
            }
            None if header.kind == kind::CONTINUATION => {
                return Err(Failure::protocol("CONTINUATION without a header block"));
            }
            _ => {}
        }
        if self.budget.receive(header, now) { Ok(()) } else { Err(Failure::FRAMES) }
    }

    /// Takes a complete frame other than DATA, whose header was checked.
    #[inline]
    pub(crate) fn take_frame(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        fields: &mut FieldBuffer,
    ) -> Result<Option<Event<S>>, Failure> {
        match header.kind {
            kind::HEADERS => self.headers(header, payload, fields),
            kind::CONTINUATION => self.continuation(header, payload, fields),
            kind::WINDOW_UPDATE => self.window_update(header, payload),
            kind::RST_STREAM => self.client_reset(header, payload),
            kind::SETTINGS => self.settings(header, payload).map(|()| None),
            kind::PING => self.ping(header, payload).map(|()| None),
            kind::PRIORITY => self.old_priority(header, payload),
            kind::PRIORITY_UPDATE => self.priority_update(header, payload).map(|()| None),
            kind::PUSH_PROMISE => Err(Failure::protocol("a client sends PUSH_PROMISE")),
            kind::GOAWAY if header.stream != 0 => Err(Failure::protocol("GOAWAY on a stream")),
            kind::GOAWAY if payload.len() < 8 => Err(Failure::frame_size("GOAWAY is too short")),
            _ => Ok(None),
        }
    }

    #[inline]
    fn headers(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        fields: &mut FieldBuffer,
    ) -> Result<Option<Event<S>>, Failure> {
        if header.stream == 0 {
            return Err(Failure::protocol("HEADERS on stream 0"));
        }
        let mut block = without_padding(header, payload)?;
        let mut depends_on_itself = false;
        if header.has(flag::PRIORITY) {
            let dependency = number_at(block, 0).unwrap_or(0) & MAX_STREAM;
            depends_on_itself = dependency == header.stream;
            block = block.get(5..).ok_or(Failure::frame_size("HEADERS without its priority"))?;
        }
        let ended = header.has(flag::END_STREAM);
        if !header.has(flag::END_HEADERS) {
            let bytes = block.to_vec();
            self.block = Some(Box::new(OpenBlock { stream: header.stream, ended, bytes }));
            return Ok(None);
        }
        let event = self.header_block(header.stream, ended, block, fields)?;
        if depends_on_itself {
            return self.stream_error(header.stream, Reason::ProtocolError);
        }
        Ok(event)
    }

    fn continuation(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
        fields: &mut FieldBuffer,
    ) -> Result<Option<Event<S>>, Failure> {
        let Some(mut block) = self.block.take() else { return Ok(None) };
        let most = 2 * self.limits.header_list_bytes as usize + frame::MAX_PAYLOAD_BYTES;
        if block.bytes.len() + payload.len() > most {
            return Err(Failure::new(Reason::EnhanceYourCalm, "a header block is too long"));
        }
        block.bytes.extend_from_slice(payload);
        if header.has(flag::END_HEADERS) {
            return self.header_block(block.stream, block.ended, &block.bytes, fields);
        }
        self.block = Some(block);
        Ok(None)
    }

    /// Takes a complete header block: a request, or trailers.
    #[inline]
    fn header_block(
        &mut self,
        id: u32,
        ended: bool,
        block: &[u8],
        fields: &mut FieldBuffer,
    ) -> Result<Option<Event<S>>, Failure> {
        fields.clear();
        let is_new = id > self.recent.last();
        let is_wanted = is_new || self.streams.get(id).is_some_and(|stream| stream.is_receiving);
        let (bytes, count) = if is_wanted {
            (self.limits.header_list_bytes as usize, self.limits.header_fields)
        } else {
            (0, 0)
        };
        // The table changes even if nobody wants the fields.
        match self.decoder.decode(block, bytes, count, fields) {
            Ok(()) => {}
            Err(HpackError::ListTooLong) => {
                return Err(Failure::new(Reason::EnhanceYourCalm, "a header list is too long"));
            }
            Err(_) => {
                let what = "a header block cannot be decoded";
                return Err(Failure::new(Reason::CompressionError, what));
            }
        }
        if !is_new {
            return self.take_trailers(id, ended, fields);
        }
        if id.is_multiple_of(2) {
            return Err(Failure::protocol("a client opens a stream with an even number"));
        }
        if matches!(self.shutdown, Shutdown::Final(last) if id > last) {
            return Ok(None);
        }
        self.recent.begin(id);
        if self.streams.len() >= self.limits.streams as usize {
            return self.stream_error(id, Reason::RefusedStream);
        }
        if fields.is_too_large() {
            let facts = RequestFacts::default();
            self.begun = Some(Begun { stream: id, ended, facts });
            return Ok(Some(Event::Request { stream: id, ended, is_too_large: true }));
        }
        match check_request(fields, ended, self.limits.extended_connect) {
            Ok(facts) => {
                self.begun = Some(Begun { stream: id, ended, facts });
                Ok(Some(Event::Request { stream: id, ended, is_too_large: false }))
            }
            Err(Malformed(_)) => self.stream_error(id, Reason::ProtocolError),
        }
    }

    /// Takes a header block for a stream that is not new.
    fn take_trailers(
        &mut self,
        id: u32,
        ended: bool,
        fields: &FieldBuffer,
    ) -> Result<Option<Event<S>>, Failure> {
        let Some(stream) = self.streams.get_mut(id) else {
            return match self.recent.state(id) {
                ClosedStream::Reset => Ok(None),
                ClosedStream::Skipped | ClosedStream::Idle => {
                    Err(Failure::protocol("a stream is opened behind a higher one"))
                }
                ClosedStream::Ended => {
                    Err(Failure::new(Reason::StreamClosed, "HEADERS on a stream that has ended"))
                }
            };
        };
        if !stream.is_receiving {
            return self.stream_error(id, Reason::StreamClosed);
        }
        let is_short = stream.announced.is_some_and(|announced| announced > 0);
        if !ended || is_short || fields.is_too_large() || check_trailers(fields).is_err() {
            return self.stream_error(id, Reason::ProtocolError);
        }
        let is_dropped = stream.dropped.is_some();
        self.end_receiving(id);
        Ok((!is_dropped).then_some(Event::Trailers { stream: id }))
    }

    /// Notes that the client has ended its side of a stream.
    pub(crate) fn end_receiving(&mut self, id: u32) {
        if let Some(stream) = self.streams.get_mut(id) {
            stream.is_receiving = false;
            if !stream.is_sending {
                self.streams.remove(id);
            }
        }
    }

    /// Resets a stream because of an error of the client, and counts that.
    pub(crate) fn stream_error(
        &mut self,
        id: u32,
        reason: Reason,
    ) -> Result<Option<Event<S>>, Failure> {
        if !self.budget.end_early() {
            return Err(Failure::EARLY_ENDS);
        }
        let state = self.reset(id, reason);
        Ok(state.map(|state| Event::Reset { stream: id, state }))
    }

    fn client_reset(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<Option<Event<S>>, Failure> {
        if payload.len() != 4 {
            return Err(Failure::frame_size("RST_STREAM has not 4 bytes"));
        }
        if self.is_idle(header.stream) {
            return Err(Failure::protocol("RST_STREAM on an idle stream"));
        }
        if self.streams.get(header.stream).is_some() && !self.budget.end_early() {
            return Err(Failure::EARLY_ENDS);
        }
        let Some(stream) = self.streams.remove(header.stream) else { return Ok(None) };
        Ok(Some(Event::Reset { stream: stream.id, state: stream.state }))
    }

    fn window_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<Option<Event<S>>, Failure> {
        let (4, Some(number)) = (payload.len(), number_at(payload, 0)) else {
            return Err(Failure::frame_size("WINDOW_UPDATE has not 4 bytes"));
        };
        let bytes = i64::from(number & MAX_STREAM);
        if header.stream == 0 {
            if bytes == 0 {
                return Err(Failure::protocol("WINDOW_UPDATE of 0"));
            }
            let overflow = Failure::new(Reason::FlowControlError, "a window is above 2^31-1");
            return self.send.change(bytes).map(|()| None).map_err(|_| overflow);
        }
        if self.is_idle(header.stream) {
            return Err(Failure::protocol("WINDOW_UPDATE on an idle stream"));
        }
        let Some(stream) = self.streams.get_mut(header.stream) else { return Ok(None) };
        if bytes == 0 {
            return self.stream_error(header.stream, Reason::ProtocolError);
        }
        if stream.send.change(bytes).is_err() {
            return self.stream_error(header.stream, Reason::FlowControlError);
        }
        Ok(None)
    }

    fn settings(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), Failure> {
        if header.stream != 0 {
            return Err(Failure::protocol("SETTINGS on a stream"));
        }
        if header.has(flag::ACK) {
            if !payload.is_empty() {
                return Err(Failure::frame_size("an acknowledgement of SETTINGS has a payload"));
            }
            return Ok(());
        }
        if !payload.len().is_multiple_of(6) {
            return Err(Failure::frame_size("SETTINGS has a part of a setting"));
        }
        self.awaits_settings = false;
        let before = self.client.initial_window;
        self.client.receive(payload, &mut self.encoder)?;
        let change = i64::from(self.client.initial_window) - i64::from(before);
        if change != 0 {
            for stream in self.streams.iter_mut() {
                if stream.send.change(change).is_err() {
                    let what = "SETTINGS_INITIAL_WINDOW_SIZE makes a window too large";
                    return Err(Failure::new(Reason::FlowControlError, what));
                }
            }
        }
        settings::write_acknowledgement(&mut self.output);
        Ok(())
    }

    fn ping(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), Failure> {
        if header.stream != 0 {
            return Err(Failure::protocol("PING on a stream"));
        }
        if payload.len() != 8 {
            return Err(Failure::frame_size("PING has not 8 bytes"));
        }
        if !header.has(flag::ACK) {
            write_header(&mut self.output, 8, kind::PING, flag::ACK, 0);
            self.output.extend_from_slice(payload);
        } else if payload == SHUTDOWN_PING && self.shutdown == Shutdown::Announced {
            let last = self.recent.last();
            self.shutdown = Shutdown::Final(last);
            write_goaway(&mut self.output, last, Reason::NoError);
        }
        Ok(())
    }

    /// Checks PRIORITY, which has no effect any more (RFC 9113 section 5.3.2).
    fn old_priority(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<Option<Event<S>>, Failure> {
        if header.stream == 0 {
            return Err(Failure::protocol("PRIORITY on stream 0"));
        }
        if payload.len() != 5 {
            // A stream that does not exist cannot be reset.
            if self.is_idle(header.stream) {
                return Err(Failure::frame_size("PRIORITY has not 5 bytes"));
            }
            return self.stream_error(header.stream, Reason::FrameSizeError);
        }
        let dependency = number_at(payload, 0).unwrap_or(0) & MAX_STREAM;
        if dependency != header.stream {
            return Ok(None);
        }
        if self.is_idle(header.stream) {
            return Err(Failure::protocol("a stream depends on itself"));
        }
        self.stream_error(header.stream, Reason::ProtocolError)
    }

    fn priority_update(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), Failure> {
        if header.stream != 0 {
            return Err(Failure::protocol("PRIORITY_UPDATE on a stream"));
        }
        let Some(id) = number_at(payload, 0) else {
            return Err(Failure::frame_size("PRIORITY_UPDATE without a stream"));
        };
        let id = id & MAX_STREAM;
        if id.is_multiple_of(2) {
            return Err(Failure::protocol("PRIORITY_UPDATE for a stream that no client opens"));
        }
        let priority = Priority::parse(payload.get(4..).unwrap_or_default());
        if let Some(stream) = self.streams.get_mut(id) {
            stream.priority = priority;
        } else if self.is_idle(id) {
            self.early_priorities.retain(|(stream, _)| *stream != id);
            if self.early_priorities.len() < MOST_EARLY_PRIORITIES {
                self.early_priorities.push((id, priority));
            }
        }
        Ok(())
    }

    pub(crate) fn is_idle(&self, stream: u32) -> bool {
        stream == 0 || stream > self.recent.last()
    }
}

/// Returns the payload of HEADERS without its padding.
#[inline]
fn without_padding(header: FrameHeader, payload: &[u8]) -> Result<&[u8], Failure> {
    if !header.has(flag::PADDED) {
        return Ok(payload);
    }
    let (padding, rest) =
        payload.split_first().ok_or(Failure::frame_size("a padded frame is empty"))?;
    let length = rest.len().checked_sub(usize::from(*padding));
    let length = length.ok_or(Failure::protocol("the padding is longer than the frame"))?;
    Ok(rest.get(..length).unwrap_or_default())
}
