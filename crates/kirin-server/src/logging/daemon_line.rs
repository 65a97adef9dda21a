//! Lines for daemons, each of which becomes a datagram. A line has values behind its text:
//! `TEXT US PRIORITY=6 US NAME=VALUE LF`, where US is the unit separator. No value of a log has a
//! control character, so that no client can add one.

use std::io;

use super::escaping::Escaping;
use super::queued_writer::{WriteError, count_lines};
use super::response_value::ResponseValue;
use crate::ended_request::EndedRequest;

/// The byte between the text and its values.
const SEPARATOR: u8 = 0x1f;

/// The priority of a line (RFC 5424 section 6.2.1): 4 (warning) for a failure of the server.
const WARNING: &[u8] = b"4";

/// The priority of all other lines: informational.
const INFORMATIONAL: &[u8] = b"6";

/// Appends the values behind a line.
pub fn write_values(request: &EndedRequest<'_>, out: &mut Vec<u8>) {
    let is_failure = request.status.is_server_error();
    write_name("PRIORITY", out);
    out.extend_from_slice(if is_failure { WARNING } else { INFORMATIONAL });
    for (name, value) in [
        ("KIRIN_STATUS", ResponseValue::Status),
        ("KIRIN_PLACE", ResponseValue::Place),
        ("KIRIN_REQTIME", ResponseValue::Seconds),
        ("KIRIN_REQUEST_ID", ResponseValue::RequestId),
    ] {
        write_name(name, out);
        value.write(request, Escaping::Text, out);
    }
}

fn write_name(name: &str, out: &mut Vec<u8>) {
    out.push(SEPARATOR);
    out.extend_from_slice(name.as_bytes());
    out.push(b'=');
}

/// A line for a daemon.
#[derive(Clone, Copy)]
pub struct DaemonLine<'a>(&'a [u8]);

impl<'a> DaemonLine<'a> {
    /// Returns the text.
    pub fn text(self) -> &'a [u8] {
        self.0.split(|byte| *byte == SEPARATOR).next().unwrap_or_default()
    }

    /// Returns `NAME=VALUE` for each value.
    pub fn values(self) -> impl Iterator<Item = &'a [u8]> {
        self.0.split(|byte| *byte == SEPARATOR).skip(1)
    }

    /// Returns the priority.
    pub fn priority(self) -> u8 {
        let mut values = self.values().filter_map(|value| value.strip_prefix(b"PRIORITY="));
        values.next().and_then(|value| value.first()).map_or(6, |digit| digit.wrapping_sub(b'0'))
    }
}

/// Sends each of `lines`. A line that is too long for a datagram is lost alone. After another
/// error, the rest is lost.
pub fn send_each(
    lines: &[u8],
    mut send: impl FnMut(DaemonLine<'_>) -> io::Result<()>,
) -> Result<(), WriteError> {
    let (mut rest, mut failure) = (lines, None::<WriteError>);
    while let Some(end) = memchr::memchr(b'\n', rest) {
        let line = DaemonLine(rest.get(..end).unwrap_or_default());
        match send(line) {
            Ok(()) => {}
            Err(error) if rustix::io::Errno::from_io_error(&error) == Some(TOO_LONG) => {
                let lost_lines = failure.map_or(0, |failure| failure.lost_lines) + 1;
                failure = Some(WriteError { error, lost_lines });
            }
            Err(error) => {
                let lost_lines = failure.map_or(0, |failure| failure.lost_lines);
                return Err(WriteError { error, lost_lines: lost_lines + count_lines(rest) });
            }
        }
        rest = rest.get(end + 1..).unwrap_or_default();
    }
    failure.map_or(Ok(()), Err)
}

const TOO_LONG: rustix::io::Errno = rustix::io::Errno::MSGSIZE;
