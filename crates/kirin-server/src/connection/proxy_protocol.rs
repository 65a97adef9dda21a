//! The PROXY protocol, versions 1 and 2: the header with which a load balancer says whose
//! connection it passes on.
//!
//! Pure: bytes in, the client out. The connection reads it before anything else, TLS included, from
//! balancers that are trusted. (HAProxy's `proxy-protocol.txt` is the specification; sections are
//! cited from there.)

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use kirin_http::peer::Peer;

/// The longest line of version 1, CR LF included (section 2.1).
const MAX_LINE_BYTES: usize = 107;

/// What follows the 16 fixed bytes of version 2 may be this long: addresses, and certificates'
/// names in type-length-values.
const MAX_V2_REST_BYTES: usize = 4096;

/// No header is longer.
pub const MAX_HEADER_BYTES: usize = 16 + MAX_V2_REST_BYTES;

/// How version 2 begins (section 2.2); nothing else in use does.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// How version 1 begins.
const LINE_START: &[u8; 6] = b"PROXY ";

/// What reading a header came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Parsed {
    /// A whole header.
    Complete {
        /// The client. None when the balancer speaks for itself (a health check), or does not know:
        /// then the connection's own address counts.
        client: Option<Peer>,
        /// How many bytes the header took.
        length: usize,
    },
    /// More bytes are needed.
    Partial,
}

/// Bytes that are no PROXY header; the connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Neither version begins so.
    #[error("the connection does not begin with a PROXY protocol header")]
    Start,
    /// Version 1 without CR LF in its first 107 bytes.
    #[error("PROXY line is too long")]
    LineTooLong,
    /// Version 1 that does not say `TCP4`, `TCP6` or `UNKNOWN`, or not two addresses and two ports.
    #[error("PROXY line is malformed")]
    Line,
    /// Version 2 of another major version.
    #[error("PROXY header has version {0}, which is not known")]
    Version(u8),
    /// A command that is neither LOCAL nor PROXY.
    #[error("PROXY header has command {0}, which is not known")]
    Command(u8),
    /// A connection that is no byte stream.
    #[error("PROXY header is for address family and protocol {0:#04x}, which is no stream")]
    Family(u8),
    /// Longer than the limit.
    #[error("PROXY header is longer than {MAX_HEADER_BYTES} bytes")]
    TooLong,
    /// Too short for the addresses that it announces.
    #[error("PROXY header is too short for its addresses")]
    Addresses,
}

/// Reads a header of either version from the start of `input`.
pub fn parse(input: &[u8]) -> Result<Parsed, Malformed> {
    if begins_like(input, LINE_START) {
        return parse_line(input);
    }
    if begins_like(input, SIGNATURE) {
        return parse_binary(input);
    }
    Err(Malformed::Start)
}

/// Whether `input` is the start of `beginning`, or the other way round.
fn begins_like(input: &[u8], beginning: &[u8]) -> bool {
    input.iter().zip(beginning).all(|(got, wanted)| got == wanted)
}

fn parse_line(input: &[u8]) -> Result<Parsed, Malformed> {
    let window = &input[..input.len().min(MAX_LINE_BYTES)];
    let Some(end) = memchr::memmem::find(window, b"\r\n") else {
        return if input.len() < MAX_LINE_BYTES {
            Ok(Parsed::Partial)
        } else {
            Err(Malformed::LineTooLong)
        };
    };
    let line = std::str::from_utf8(&window[..end]).map_err(|_| Malformed::Line)?;
    let mut words = line.split(' ').skip(1);
    let length = end + 2;
    let family = words.next();
    if family == Some("UNKNOWN") {
        // What follows is to be ignored.
        return Ok(Parsed::Complete { client: None, length });
    }
    let mut address = || -> Option<IpAddr> {
        match family? {
            "TCP4" => words.next()?.parse::<Ipv4Addr>().ok().map(IpAddr::V4),
            "TCP6" => words.next()?.parse::<Ipv6Addr>().ok().map(IpAddr::V6),
            _ => None,
        }
    };
    let (source, destination) = (address(), address());
    let (source_port, destination_port) =
        (words.next().and_then(port), words.next().and_then(port));
    match (source, destination, source_port, destination_port, words.next()) {
        (Some(source), Some(_), Some(port), Some(_), None) => {
            let client = Some(Peer::Tcp(SocketAddr::new(source.to_canonical(), port)));
            Ok(Parsed::Complete { client, length })
        }
        _ => Err(Malformed::Line),
    }
}

/// Decimal, without a sign or leading zeros.
fn port(text: &str) -> Option<u16> {
    let canonical =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| canonical)
}

fn parse_binary(input: &[u8]) -> Result<Parsed, Malformed> {
    let Some(([version_and_command, family, length @ ..], _)) =
        input.get(12..).and_then(|rest| rest.split_first_chunk::<4>())
    else {
        return Ok(Parsed::Partial);
    };
    let rest_bytes = usize::from(u16::from_be_bytes(*length));
    if version_and_command >> 4 != 2 {
        return Err(Malformed::Version(version_and_command >> 4));
    }
    if rest_bytes > MAX_V2_REST_BYTES {
        return Err(Malformed::TooLong);
    }
    let Some(rest) = input.get(16..16 + rest_bytes) else { return Ok(Parsed::Partial) };
    let client = match version_and_command & 15 {
        0 => None,
        1 => announced(*family, rest)?,
        command => return Err(Malformed::Command(command)),
    };
    Ok(Parsed::Complete { client, length: 16 + rest_bytes })
}

/// The source address at the start of `rest` (section 2.2). What follows the addresses,
/// type-length-values, is skipped.
fn announced(family: u8, rest: &[u8]) -> Result<Option<Peer>, Malformed> {
    match family {
        0x00 => Ok(None),
        0x11 => {
            let (addresses, _) = rest.split_first_chunk::<12>().ok_or(Malformed::Addresses)?;
            let [a, b, c, d, _, _, _, _, port @ .., _, _] = *addresses;
            let source = SocketAddr::from((Ipv4Addr::new(a, b, c, d), u16::from_be_bytes(port)));
            Ok(Some(Peer::Tcp(source)))
        }
        0x21 => {
            let (addresses, _) = rest.split_first_chunk::<36>().ok_or(Malformed::Addresses)?;
            let (source, others) =
                addresses.split_first_chunk::<16>().ok_or(Malformed::Addresses)?;
            let port = others
                .get(16..18)
                .and_then(|port| port.try_into().ok())
                .ok_or(Malformed::Addresses)?;
            let source = IpAddr::from(*source).to_canonical();
            Ok(Some(Peer::Tcp(SocketAddr::new(source, u16::from_be_bytes(port)))))
        }
        0x31 if rest.len() >= 216 => Ok(Some(Peer::Unix)),
        0x31 => Err(Malformed::Addresses),
        family => Err(Malformed::Family(family)),
    }
}

#[cfg(test)]
#[path = "proxy_protocol_tests.rs"]
mod tests;
