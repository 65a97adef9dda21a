//! The settings of both sides (RFC 9114 section 7.2.4).

use crate::code::{Code, Failure};
use crate::frame::kind;
use crate::varint;

const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
const ENABLE_CONNECT_PROTOCOL: u64 = 0x8;

/// The most settings that a client may send.
const MOST_SETTINGS: usize = 64;

/// What a server tells its clients.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The largest field section that is accepted, as RFC 9114 section 4.2.2 counts it.
    pub field_section_bytes: u64,
    /// Whether clients may open WebSockets (RFC 9220).
    pub extended_connect: bool,
}

impl Settings {
    /// Writes the start of the server's control stream: its type, and the settings.
    pub fn write(self, out: &mut Vec<u8>) {
        let mut payload = Vec::new();
        varint::write(MAX_FIELD_SECTION_SIZE, &mut payload);
        varint::write(self.field_section_bytes, &mut payload);
        if self.extended_connect {
            varint::write(ENABLE_CONNECT_PROTOCOL, &mut payload);
            varint::write(1, &mut payload);
        }
        varint::write(0, out);
        varint::write(kind::SETTINGS, out);
        varint::write(payload.len() as u64, out);
        out.extend_from_slice(&payload);
    }
}

/// Checks the settings of a client. The server needs none of them.
pub(crate) fn check(payload: &[u8]) -> Result<(), Failure> {
    let mut seen = Vec::new();
    let mut rest = payload;
    while !rest.is_empty() {
        let (id, value) = read_pair(&mut rest)?;
        let is_of_http2 = matches!(id, 0x2..=0x5) || id == 0;
        let is_bad_flag = id == ENABLE_CONNECT_PROTOCOL && value > 1;
        if is_of_http2 || is_bad_flag {
            return Err(Failure::new(Code::Settings, "a setting that HTTP/3 does not have"));
        }
        if seen.contains(&id) {
            return Err(Failure::new(Code::Settings, "a setting comes twice"));
        }
        if seen.len() == MOST_SETTINGS {
            return Err(Failure::new(Code::ExcessiveLoad, "there are too many settings"));
        }
        seen.push(id);
    }
    Ok(())
}

fn read_pair(rest: &mut &[u8]) -> Result<(u64, u64), Failure> {
    let cut = Failure::new(Code::Frame, "the settings are cut off");
    let mut read = || {
        let (number, length) = varint::read(rest).ok_or(cut)?;
        *rest = rest.get(length..).unwrap_or_default();
        Ok(number)
    };
    Ok((read()?, read()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked() {
        let code = |payload: &[u8]| check(payload).map_err(|failure| failure.code);
        assert_eq!(code(&[]), Ok(()));
        assert_eq!(code(&[0x6, 0x10, 0x1, 0x0, 0x7, 0x0, 0x33, 0x1, 0x21, 0x5]), Ok(()));
        for http2 in 2..=5 {
            assert_eq!(code(&[http2, 1]), Err(Code::Settings), "{http2}");
        }
        assert_eq!(code(&[0x6, 1, 0x6, 1]), Err(Code::Settings));
        assert_eq!(code(&[0x8, 2]), Err(Code::Settings));
        assert_eq!(code(&[0x6]), Err(Code::Frame));
        assert_eq!(code(&[0x6, 0x40]), Err(Code::Frame));
        let many: Vec<u8> = (0x10..0x3f).chain(0x10..0x3f).flat_map(|id| [id, 1]).collect();
        assert_eq!(code(&many), Err(Code::Settings));
        let many: Vec<u8> = (0..=MOST_SETTINGS as u8).flat_map(|id| [0x41, id, 1]).collect();
        assert_eq!(code(&many), Err(Code::ExcessiveLoad));
    }

    #[test]
    fn written_settings_begin_the_control_stream() {
        let mut out = Vec::new();
        Settings { field_section_bytes: 16384, extended_connect: true }.write(&mut out);
        assert_eq!(out, [0, 4, 7, 6, 0x80, 0, 0x40, 0, 8, 1]);
        check(&out[3..]).unwrap();
    }
}
