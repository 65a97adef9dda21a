//! The values of a line that come from the request and its connection.

use std::net::IpAddr;

use kirin_http::basic_credentials::BasicCredentials;
use kirin_http::cookies::cookie;
use kirin_http::handler::Origin;
use kirin_http::host::without_port;
use kirin_http::listen_address::ListenAddress;
use kirin_http::peer::{Peer, write_ip};
use kirin_http::request::{RequestHead, Version};

use super::escaping::{Escaping, hexadecimal};

/// A value that comes from the request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RequestValue {
    /// The address of the client.
    Client,
    /// The address of the other end of the connection: a trusted proxy, or the client.
    Connection,
    /// The user name of `Authorization: Basic`.
    User,
    /// The request line.
    Line,
    /// The method.
    Method,
    /// The target as sent.
    Target,
    /// The path of the target as sent.
    Path,
    /// The query with its `?`, or nothing.
    Query,
    /// The protocol, such as `HTTP/1.1`.
    Protocol,
    /// The host as sent.
    Host,
    /// The host without its port, or the address of the listener.
    ServerName,
    /// The port of the listener.
    ServerPort,
    /// A field. Several lines of it are joined.
    Field(Box<str>),
    /// A cookie.
    Cookie(Box<str>),
    /// The version of TLS.
    TlsVersion,
}

/// A request from which values are taken.
#[derive(Clone, Copy)]
pub struct LoggedRequest<'a> {
    /// The client.
    pub peer: &'a Peer,
    /// The head and the origin. `None` for bytes that are not a request.
    pub parsed: Option<(&'a RequestHead<'a>, Origin<'a>)>,
    /// The first line of bytes that are not a request, perhaps cut. Empty for a request.
    pub refused_line: &'a [u8],
}

impl RequestValue {
    /// Appends the value. Returns false if the request has none.
    pub fn write(
        &self,
        request: &LoggedRequest<'_>,
        escaping: Escaping,
        out: &mut Vec<u8>,
    ) -> bool {
        if *self == Self::Client {
            return write_address(request.peer, escaping, out);
        }
        let Some((head, origin)) = request.parsed else {
            return match self {
                Self::Line => write_unless_empty(request.refused_line, escaping, out),
                _ => *self == Self::Query,
            };
        };
        match self {
            Self::Client => return false,
            Self::Connection => {
                let peer = origin.proxy.map_or(origin.peer, |proxy| proxy.peer);
                return write_address(peer, escaping, out);
            }
            Self::User => return write_user(head, escaping, out),
            Self::Line => {
                // A method is a token, which needs no escape.
                out.extend_from_slice(head.method.as_str().as_bytes());
                out.push(b' ');
                escaping.write(head.target.as_bytes(), out);
                out.push(b' ');
                out.extend_from_slice(protocol(head).as_bytes());
            }
            Self::Method => escaping.write_plain(head.method.as_str().as_bytes(), out),
            Self::Target => escaping.write(head.target.as_bytes(), out),
            Self::Path => escaping.write(head.path.as_bytes(), out),
            Self::Query => {
                if let Some(query) = head.query.filter(|query| !query.is_empty()) {
                    out.push(b'?');
                    escaping.write(query.as_bytes(), out);
                }
            }
            Self::Protocol => escaping.write_plain(protocol(head).as_bytes(), out),
            Self::Host => return write_unless_empty(head.host.as_bytes(), escaping, out),
            Self::ServerName => match without_port(head.host) {
                "" => write_listener(origin.local, escaping, out),
                name => escaping.write(name.as_bytes(), out),
            },
            Self::ServerPort => write_port(origin, out),
            Self::Field(name) => return write_field(head, name, escaping, out),
            Self::Cookie(name) => match cookie(head, name.as_bytes()) {
                Some(value) => return write_unless_empty(value, escaping, out),
                None => return false,
            },
            Self::TlsVersion => match origin.notes.tls_version() {
                Some(version) => escaping.write_plain(version.as_bytes(), out),
                None => return false,
            },
        }
        true
    }
}

fn protocol(head: &RequestHead<'_>) -> &'static str {
    match head.version {
        // nginx and Apache write it this way.
        Version::Http2 => "HTTP/2.0",
        Version::Http3 => "HTTP/3.0",
        version => version.name(),
    }
}

fn write_unless_empty(value: &[u8], escaping: Escaping, out: &mut Vec<u8>) -> bool {
    if !value.is_empty() {
        escaping.write(value, out);
    }
    !value.is_empty()
}

fn write_address(peer: &Peer, escaping: Escaping, out: &mut Vec<u8>) -> bool {
    match peer {
        Peer::Tcp(address) => write_quoted_ip(address.ip(), escaping, out),
        Peer::Unix => escaping.write_plain(b"unix:", out),
    }
    true
}

fn write_quoted_ip(address: IpAddr, escaping: Escaping, out: &mut Vec<u8>) {
    let quote = |out: &mut Vec<u8>| {
        if escaping == Escaping::Json {
            out.push(b'"');
        }
    };
    quote(out);
    write_ip(address, out);
    quote(out);
}

fn write_listener(local: &ListenAddress, escaping: Escaping, out: &mut Vec<u8>) {
    match local {
        ListenAddress::Tcp(address) => write_quoted_ip(address.ip(), escaping, out),
        ListenAddress::Unix(_) => escaping.write_plain(b"localhost", out),
    }
}

fn write_port(origin: Origin<'_>, out: &mut Vec<u8>) {
    let port = match origin.local {
        ListenAddress::Tcp(address) => address.port(),
        ListenAddress::Unix(_) if origin.secure => 443,
        ListenAddress::Unix(_) => 80,
    };
    out.extend_from_slice(itoa::Buffer::new().format(port).as_bytes());
}

/// Appends the user name in `Authorization: Basic`, as nginx and Apache log it. The line of a 401
/// shows which user was refused. A space becomes `\x20`, because the name stands without quotes.
fn write_user(head: &RequestHead<'_>, escaping: Escaping, out: &mut Vec<u8>) -> bool {
    let credentials = head.field("authorization").and_then(BasicCredentials::parse);
    let Some(user) = credentials.map(|credentials| credentials.user) else { return false };
    match escaping {
        Escaping::Text if user.contains(&b' ') => {
            for (index, word) in user.split(|byte| *byte == b' ').enumerate() {
                if index > 0 {
                    out.extend_from_slice(&hexadecimal(b' '));
                }
                escaping.write(word, out);
            }
        }
        _ => return write_unless_empty(&user, escaping, out),
    }
    true
}

/// Appends the value of a field. The values of several lines are joined as in a list (RFC 9110
/// section 5.3), as applications get them.
fn write_field(head: &RequestHead<'_>, name: &str, escaping: Escaping, out: &mut Vec<u8>) -> bool {
    let mut values = head.lines(name);
    let Some(first) = values.next() else { return false };
    let Some(second) = values.next() else { return write_unless_empty(first, escaping, out) };
    let separator: &[u8] = if name.eq_ignore_ascii_case("cookie") { b"; " } else { b", " };
    let mut joined = [first, separator, second].concat();
    for value in values {
        joined.extend_from_slice(separator);
        joined.extend_from_slice(value);
    }
    escaping.write(&joined, out);
    true
}
