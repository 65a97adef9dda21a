//! A connection: its state, and who takes which frame. [`crate::receiving`] cuts the input into
//! frames, [`crate::header_blocks`] and [`crate::control_frames`] take them, and [`crate::sending`]
//! writes responses.

use std::ops::Range;

use crate::budget::Budget;
use crate::failure::Failure;
use crate::frame::{
    self, FrameHeader, MAX_STREAM, flag, kind, write_goaway, write_header, write_reset,
};
use crate::header_blocks::OpenBlock;
use crate::hpack::{Decoder, Encoder, FieldBuffer};
use crate::output::Output;
use crate::priority::Priority;
use crate::reason::Reason;
use crate::receiving::Input;
use crate::request::RequestFacts;
use crate::settings::{ClientSettings, DEFAULT_WINDOW_BYTES, Limits};
use crate::streams::{RecentStreams, Stream, Streams};
use crate::window::{ReceiveWindow, SendWindow};

/// The dynamic tables of both directions, in bytes as HPACK counts them. The client's is the
/// default of SETTINGS_HEADER_TABLE_SIZE.
const RECEIVED_TABLE_BYTES: u32 = 4096;
const SENT_TABLE_BYTES: u32 = 2048;

/// The most priorities that are kept for streams that are not open yet.
pub(crate) const MOST_EARLY_PRIORITIES: usize = 16;

/// The payload of the PING that shows which requests the client sent before it knew of GOAWAY.
pub(crate) const SHUTDOWN_PING: &[u8; 8] = b"shutdown";

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
    pub(crate) facts: RequestFacts,
}

/// The way to the end of a connection (RFC 9113 section 6.8).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shutdown {
    /// It goes on.
    No,
    /// The client was told to send no more requests. Those on their way are taken.
    Announced,
    /// No requests above this stream are taken.
    Final(u32),
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
    pub(crate) early_priorities: Vec<(u32, Priority)>,
    /// Number of DATA frames that were sent, to take turns.
    pub(crate) turn: u32,
    pub(crate) decoder: Decoder,
    pub(crate) limits: Limits,
    pub(crate) block: Option<Box<OpenBlock>>,
    pub(crate) awaits_settings: bool,
    pub(crate) shutdown: Shutdown,
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

    pub(crate) fn is_idle(&self, stream: u32) -> bool {
        stream == 0 || stream > self.recent.last()
    }
}
