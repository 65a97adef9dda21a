//! SETTINGS of both sides (RFC 9113 section 6.5).

use crate::failure::Failure;
use crate::frame::{MAX_STREAM, flag, kind, number_at, write_header, write_window_update};
use crate::hpack::Encoder;
use crate::output::Output;
use crate::reason::Reason;

const HEADER_TABLE_SIZE: u16 = 1;
const ENABLE_PUSH: u16 = 2;
const MAX_CONCURRENT_STREAMS: u16 = 3;
const INITIAL_WINDOW_SIZE: u16 = 4;
const MAX_FRAME_SIZE: u16 = 5;
const MAX_HEADER_LIST_SIZE: u16 = 6;
/// RFC 8441 section 3.
const ENABLE_CONNECT_PROTOCOL: u16 = 8;
/// RFC 9218 section 2.1.
const NO_RFC7540_PRIORITIES: u16 = 9;

/// The window of a new connection or stream before any SETTINGS.
pub(crate) const DEFAULT_WINDOW_BYTES: u32 = 65_535;

/// What the server allows its clients.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most concurrent streams.
    pub streams: u32,
    /// The most bytes of a header list: names, values, and 32 bytes for each field.
    pub header_list_bytes: u32,
    /// The most fields of a header list.
    pub header_fields: usize,
    /// The most unread bytes of the body of one request.
    pub stream_window_bytes: u32,
    /// The most unread bytes of the bodies of all requests of a connection. At least 65,535, the
    /// window of each new connection.
    pub connection_window_bytes: u32,
    /// Whether requests with `:protocol` are taken (RFC 8441).
    pub extended_connect: bool,
}

impl Limits {
    /// Appends the server's SETTINGS, and the window of the connection.
    pub(crate) fn write(&self, out: &mut Output) {
        let settings = [
            (MAX_CONCURRENT_STREAMS, self.streams),
            (INITIAL_WINDOW_SIZE, self.stream_window_bytes),
            (MAX_HEADER_LIST_SIZE, self.header_list_bytes),
            (NO_RFC7540_PRIORITIES, 1),
            (ENABLE_CONNECT_PROTOCOL, 1),
        ];
        let count = settings.len() - usize::from(!self.extended_connect);
        write_header(out, 6 * count, kind::SETTINGS, 0, 0);
        for (name, value) in settings.into_iter().take(count) {
            out.extend_from_slice(&name.to_be_bytes());
            out.extend_from_slice(&value.to_be_bytes());
        }
        let more = self.connection_window_bytes.saturating_sub(DEFAULT_WINDOW_BYTES);
        if more > 0 {
            write_window_update(out, 0, more);
        }
    }
}

/// What a client allows the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ClientSettings {
    pub(crate) initial_window: u32,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self { initial_window: DEFAULT_WINDOW_BYTES }
    }
}

impl ClientSettings {
    /// Takes the settings of a frame. The size of the table goes to `encoder`.
    pub(crate) fn receive(&mut self, payload: &[u8], encoder: &mut Encoder) -> Result<(), Failure> {
        for setting in payload.chunks_exact(6) {
            let name = setting.first_chunk().map_or(0, |name| u16::from_be_bytes(*name));
            let value = number_at(setting, 2).unwrap_or(0);
            match name {
                HEADER_TABLE_SIZE => encoder.set_client_limit(value),
                ENABLE_PUSH if value > 1 => {
                    return Err(Failure::protocol("SETTINGS_ENABLE_PUSH is neither 0 nor 1"));
                }
                INITIAL_WINDOW_SIZE if value > MAX_STREAM => {
                    let what = "SETTINGS_INITIAL_WINDOW_SIZE is above 2^31-1";
                    return Err(Failure::new(Reason::FlowControlError, what));
                }
                INITIAL_WINDOW_SIZE => self.initial_window = value,
                MAX_FRAME_SIZE if !(16_384..1 << 24).contains(&value) => {
                    return Err(Failure::protocol("SETTINGS_MAX_FRAME_SIZE is out of range"));
                }
                ENABLE_CONNECT_PROTOCOL if value > 1 => {
                    return Err(Failure::protocol("SETTINGS_ENABLE_CONNECT_PROTOCOL is above 1"));
                }
                NO_RFC7540_PRIORITIES if value > 1 => {
                    return Err(Failure::protocol("SETTINGS_NO_RFC7540_PRIORITIES is above 1"));
                }
                // Unknown settings are ignored, those that are for clients only, and larger frames,
                // which we do not send.
                _ => {}
            }
        }
        Ok(())
    }
}

/// Appends the acknowledgement of a client's SETTINGS.
pub(crate) fn write_acknowledgement(out: &mut Output) {
    write_header(out, 0, kind::SETTINGS, flag::ACK, 0);
}
