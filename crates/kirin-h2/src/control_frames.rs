//! Frames that control streams and the connection: RST_STREAM, WINDOW_UPDATE, SETTINGS, PING, and
//! priorities.

use crate::connection::{Connection, Event, MOST_EARLY_PRIORITIES, SHUTDOWN_PING, Shutdown};
use crate::failure::Failure;
use crate::frame::{FrameHeader, MAX_STREAM, flag, kind, number_at, write_goaway, write_header};
use crate::priority::Priority;
use crate::reason::Reason;
use crate::settings;

impl<S> Connection<S> {
    pub(crate) fn client_reset(
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

    pub(crate) fn window_update(
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

    pub(crate) fn settings(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), Failure> {
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

    pub(crate) fn ping(&mut self, header: FrameHeader, payload: &[u8]) -> Result<(), Failure> {
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
    pub(crate) fn old_priority(
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

    pub(crate) fn priority_update(
        &mut self,
        header: FrameHeader,
        payload: &[u8],
    ) -> Result<(), Failure> {
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
}
