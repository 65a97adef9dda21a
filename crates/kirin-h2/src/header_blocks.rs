//! HEADERS and CONTINUATION: requests and their trailers.

use crate::connection::{Begun, Connection, Event, Shutdown};
use crate::failure::Failure;
use crate::frame::{self, FrameHeader, MAX_STREAM, flag, number_at};
use crate::hpack::{FieldBuffer, HpackError};
use crate::reason::Reason;
use crate::request::{Malformed, RequestFacts, check_request, check_trailers};
use crate::streams::ClosedStream;

/// The header block of a frame without END_HEADERS.
#[derive(Debug)]
pub(crate) struct OpenBlock {
    pub(crate) stream: u32,
    ended: bool,
    pub(crate) bytes: Vec<u8>,
}

impl<S> Connection<S> {
    #[inline]
    pub(crate) fn headers(
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
        match event {
            // The server must know of a reset, whatever else is wrong.
            Some(Event::Reset { .. }) => Ok(event),
            _ if depends_on_itself => self.stream_error(header.stream, Reason::ProtocolError),
            event => Ok(event),
        }
    }

    pub(crate) fn continuation(
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
