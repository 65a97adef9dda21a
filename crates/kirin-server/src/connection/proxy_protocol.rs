//! The PROXY protocol, versions 1 and 2: a header by which a load balancer names the client of a
//! connection.
//!
//! Pure: it takes bytes and returns the client. A connection from a trusted load balancer begins
//! with the header, before TLS. The specification is HAProxy's `proxy-protocol.txt`; comments cite
//! its sections.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use kirin_http::peer::Peer;

/// The longest line of version 1, with CR LF (section 2.1).
const MAX_LINE_BYTES: usize = 107;

/// The most bytes behind the 16 fixed bytes of version 2: addresses, and type-length-values such as
/// names in certificates.
const MAX_V2_REST_BYTES: usize = 4096;

/// The longest header.
pub const MAX_HEADER_BYTES: usize = 16 + MAX_V2_REST_BYTES;

/// The first bytes of version 2 (section 2.2). No other protocol in use begins with them.
const SIGNATURE: &[u8; 12] = b"\r\n\r\n\0\r\nQUIT\n";

/// The first bytes of version 1.
const LINE_START: &[u8; 6] = b"PROXY ";

/// The result of reading a header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParsedHeader {
    /// A complete header.
    Complete {
        /// The client. `None` if the load balancer speaks for itself (a health check) or does not
        /// know it. Then the peer of the connection is the client.
        client: Option<Peer>,
        /// The length of the header in bytes.
        length: usize,
    },
    /// More bytes are needed.
    Partial,
}

/// The reason why bytes are not a PROXY header. The connection is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Neither version begins this way.
    #[error("the connection does not begin with a PROXY protocol header")]
    Start,
    /// Version 1 without CR LF in its first 107 bytes.
    #[error("PROXY line is too long")]
    LineTooLong,
    /// Version 1 without `TCP4`, `TCP6` or `UNKNOWN`, or without two addresses and two ports.
    #[error("PROXY line is malformed")]
    Line,
    /// The header has an unknown major version.
    #[error("PROXY header has version {0}, which is not known")]
    Version(u8),
    /// A command that is neither LOCAL nor PROXY.
    #[error("PROXY header has command {0}, which is not known")]
    Command(u8),
    /// The header announces a connection that is not a byte stream.
    #[error("PROXY header is for address family and protocol {0:#04x}, which is no stream")]
    Family(u8),
    /// The header is longer than the limit.
    #[error("PROXY header is longer than {MAX_HEADER_BYTES} bytes")]
    TooLong,
    /// The header is too short for the addresses that it announces.
    #[error("PROXY header is too short for its addresses")]
    Addresses,
}

/// Reads a header of either version from the start of `input`.
pub fn parse(input: &[u8]) -> Result<ParsedHeader, Malformed> {
    if begins_like(input, LINE_START) {
        return parse_line(input);
    }
    if begins_like(input, SIGNATURE) {
        return parse_binary(input);
    }
    Err(Malformed::Start)
}

/// Returns whether `input` begins with `beginning`, as far as both reach.
fn begins_like(input: &[u8], beginning: &[u8]) -> bool {
    input.iter().zip(beginning).all(|(got, wanted)| got == wanted)
}

fn parse_line(input: &[u8]) -> Result<ParsedHeader, Malformed> {
    let window = &input[..input.len().min(MAX_LINE_BYTES)];
    let Some(end) = memchr::memmem::find(window, b"\r\n") else {
        return if input.len() < MAX_LINE_BYTES {
            Ok(ParsedHeader::Partial)
        } else {
            Err(Malformed::LineTooLong)
        };
    };
    let line = std::str::from_utf8(&window[..end]).map_err(|_| Malformed::Line)?;
    let mut words = line.split(' ').skip(1);
    let length = end + 2;
    let family = words.next();
    if family == Some("UNKNOWN") {
        // The rest of the line must be ignored.
        return Ok(ParsedHeader::Complete { client: None, length });
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
            Ok(ParsedHeader::Complete { client, length })
        }
        _ => Err(Malformed::Line),
    }
}

/// Parses a decimal number without a sign or leading zeros.
fn port(text: &str) -> Option<u16> {
    let canonical =
        text.bytes().all(|byte| byte.is_ascii_digit()) && (text == "0" || !text.starts_with('0'));
    text.parse().ok().filter(|_| canonical)
}

fn parse_binary(input: &[u8]) -> Result<ParsedHeader, Malformed> {
    let Some(([version_and_command, family, length @ ..], _)) =
        input.get(12..).and_then(|rest| rest.split_first_chunk::<4>())
    else {
        return Ok(ParsedHeader::Partial);
    };
    let rest_bytes = usize::from(u16::from_be_bytes(*length));
    if version_and_command >> 4 != 2 {
        return Err(Malformed::Version(version_and_command >> 4));
    }
    if rest_bytes > MAX_V2_REST_BYTES {
        return Err(Malformed::TooLong);
    }
    let Some(rest) = input.get(16..16 + rest_bytes) else { return Ok(ParsedHeader::Partial) };
    let client = match version_and_command & 15 {
        0 => None,
        1 => source_address(*family, rest)?,
        command => return Err(Malformed::Command(command)),
    };
    Ok(ParsedHeader::Complete { client, length: 16 + rest_bytes })
}

/// Returns the source address at the start of `rest` (section 2.2). The type-length-values behind
/// the addresses are skipped.
fn source_address(family: u8, rest: &[u8]) -> Result<Option<Peer>, Malformed> {
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
