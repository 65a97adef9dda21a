//! Writes responses into the output: heads, data as far as flow control allows, trailers.

use std::io;

use crate::connection::{Begun, Connection};
use crate::frame::{HEADER_BYTES, flag, kind, write_header};
use crate::hpack::Encoder;
use crate::output::Output;
use crate::reason::Reason;
use crate::window::SendWindow;

/// The largest payload of the frames that we send: the default of SETTINGS_MAX_FRAME_SIZE. A larger
/// frame would delay other streams.
pub const FRAME_BYTES: usize = 16_384;

/// Writes the fields of one header block.
pub struct FieldWriter<'a> {
    encoder: &'a mut Encoder,
    out: &'a mut Vec<u8>,
}

impl FieldWriter<'_> {
    /// Writes one field. The name may have upper-case letters. Blanks around the value, which would
    /// make the response malformed (RFC 9113 section 8.2.1), are left out.
    #[inline]
    pub fn field(&mut self, name: &[u8], value: &[u8]) {
        self.encoder.field(name, value, self.out);
    }

    /// Writes `content-length`.
    #[inline]
    pub fn content_length(&mut self, length: u64) {
        self.encoder.content_length(length, self.out);
    }
}

impl<S> Connection<S> {
    /// Writes the head of a response, or an informational one. `ended`: no body follows.
    pub fn head(
        &mut self,
        stream: u32,
        status: u16,
        ended: bool,
        fields: impl FnOnce(&mut FieldWriter<'_>),
    ) {
        self.block(stream, ended, |writer| {
            writer.encoder.status(status, writer.out);
            fields(writer);
        });
    }

    /// Writes trailers, which end a response.
    pub fn trailers(&mut self, stream: u32, fields: impl FnOnce(&mut FieldWriter<'_>)) {
        self.block(stream, true, fields);
    }

    /// Writes a header block.
    #[inline]
    fn block(&mut self, stream: u32, ended: bool, fields: impl FnOnce(&mut FieldWriter<'_>)) {
        // The memory of a very long block is not kept.
        let mut block = std::mem::take(&mut self.output.block);
        block.clear();
        self.encoder.begin(&mut block);
        fields(&mut FieldWriter { encoder: &mut self.encoder, out: &mut block });
        let end_flag = if ended { flag::END_STREAM } else { 0 };
        if block.len() > FRAME_BYTES {
            self.write_long_block(&block, stream, end_flag);
        } else {
            let flags = flag::END_HEADERS | end_flag;
            write_header(&mut self.output, block.len(), kind::HEADERS, flags, stream);
            self.output.extend_from_slice(&block);
            self.output.block = block;
        }
        self.budget.count_work();
        if ended {
            self.end_sending(stream);
        }
    }

    /// Writes a header block as HEADERS and CONTINUATION frames.
    #[cold]
    fn write_long_block(&mut self, block: &[u8], stream: u32, end_flag: u8) {
        let mut pieces = block.chunks(FRAME_BYTES).peekable();
        let (mut frame, mut flags) = (kind::HEADERS, end_flag);
        while let Some(piece) = pieces.next() {
            if pieces.peek().is_none() {
                flags |= flag::END_HEADERS;
            }
            write_header(&mut self.output, piece.len(), frame, flags, stream);
            self.output.extend_from_slice(piece);
            (frame, flags) = (kind::CONTINUATION, 0);
        }
    }

    /// Returns how many bytes of data may be sent on a stream now.
    #[inline]
    pub fn room(&self, stream: u32) -> usize {
        let of_stream = match (&self.begun, self.streams.get(stream)) {
            (Some(begun), _) if begun.stream == stream => {
                SendWindow::new(self.client.initial_window).room()
            }
            (_, Some(open)) => open.send.room(),
            _ => 0,
        };
        of_stream.min(self.send.room())
    }

    /// Writes data, at most as much as there is [`Connection::room`] for. `ended` ends the
    /// response.
    #[inline]
    pub fn data(&mut self, stream: u32, data: &[u8], ended: bool) {
        let mut rest = data;
        loop {
            let (piece, left) = rest.split_at_checked(FRAME_BYTES).unwrap_or((rest, &[]));
            let is_last = left.is_empty();
            let flags = if ended && is_last { flag::END_STREAM } else { 0 };
            write_header(&mut self.output, piece.len(), kind::DATA, flags, stream);
            self.output.extend_from_slice(piece);
            self.count_data(stream, piece.len());
            rest = left;
            if is_last {
                break;
            }
        }
        if ended {
            self.end_sending(stream);
        }
    }

    /// Writes one DATA frame of at most as many bytes as `fill` is told, which `fill` appends to
    /// the output. `fill` returns whether the response ends with them. A frame without bytes that
    /// ends nothing is not sent.
    pub fn fill(
        &mut self,
        stream: u32,
        fill: impl FnOnce(&mut Output, usize) -> io::Result<bool>,
    ) -> io::Result<usize> {
        let most = FRAME_BYTES.min(self.room(stream));
        let start = self.output.len();
        write_header(&mut self.output, 0, kind::DATA, 0, stream);
        let filled = fill(&mut self.output, most);
        let length = self.output.len() - start - HEADER_BYTES;
        debug_assert!(length <= most, "{length} bytes in a frame for {most}");
        let ended = *filled.as_ref().unwrap_or(&false);
        if filled.is_err() || (length == 0 && !ended) {
            self.output.truncate(start);
            return filled.map(|_| 0);
        }
        let [_, length_bytes @ ..] = (length as u32).to_be_bytes();
        self.output.replace(start, &length_bytes);
        if ended {
            self.output.replace(start + 4, &[flag::END_STREAM]);
        }
        self.count_data(stream, length);
        if ended {
            self.end_sending(stream);
        }
        Ok(length)
    }

    #[inline]
    fn count_data(&mut self, stream: u32, bytes: usize) {
        self.budget.count_work();
        self.send.take(bytes);
        self.turn = self.turn.wrapping_add(1);
        if let Some(open) = self.streams.get_mut(stream) {
            open.send.take(bytes);
            open.turn = self.turn;
        }
    }

    /// Notes that a response is complete.
    #[inline]
    fn end_sending(&mut self, stream: u32) {
        self.budget.end_well();
        if let Some(Begun { stream: begun, ended, .. }) = self.begun
            && begun == stream
        {
            debug_assert!(ended, "a request with a body is answered without being opened");
            self.begun = None;
            return;
        }
        let Some(open) = self.streams.get_mut(stream) else { return };
        open.is_sending = false;
        open.is_ready = false;
        if !open.is_receiving {
            self.streams.remove(stream);
        }
    }

    /// Says whether the server has data for a stream, so that its turn can come.
    pub fn set_ready(&mut self, stream: u32, is_ready: bool) {
        if let Some(open) = self.streams.get_mut(stream) {
            open.is_ready = is_ready;
        }
    }

    /// Returns the stream that sends next, if one has data and room.
    pub fn next_sender(&self) -> Option<u32> {
        if self.send.room() == 0 { None } else { self.streams.next_sender() }
    }

    /// Resets a stream whose response cannot be completed.
    pub fn cut(&mut self, stream: u32) -> Option<S> {
        self.reset(stream, Reason::InternalError)
    }
}
