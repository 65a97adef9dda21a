//! Request heads for upstreams, encoded from a [`RequestHead`] that still borrows from the client's
//! read buffer. No I/O.
//!
//! A head is encoded once a request. Hop-by-hop fields are not passed on (RFC 9110 section 7.6.1),
//! and the framing is always Kirin's own. So a server never gets a request that can be read in two
//! ways.

use std::collections::HashSet;
use std::io::Write;
use std::ops::Range;
use std::sync::Arc;

use http::Method;
use http::header::HeaderName;
use kirin_cgi::is_given;
use kirin_http::field_list::members;
use kirin_http::proxy_fields::is_unambiguous;
use kirin_http::{
    BodyLength, Origin, RequestHead, RequestNotes, Version, is_written_by_kirin, proxy_field,
};

use crate::config::{ForwardedPolicy, HostPolicy};
use crate::forwarding_fields;

/// The parts of a configuration that matter for request heads.
#[derive(Clone, Copy, Debug)]
pub struct HeadPolicy<'a> {
    /// The `Host` that servers get.
    pub host: &'a HostPolicy,
    /// The fields that tell servers about the client.
    pub forwarded: ForwardedPolicy,
    /// Kirin's name in `Via`; `None` for no `Via`.
    pub via: Option<&'a str>,
    /// The names of the fields that a rule of the route has set. They reach servers even if a
    /// client must not send them.
    pub given: &'a [Arc<str>],
}

/// The framing of the content after a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutgoingFraming {
    /// There is no content.
    Nothing,
    /// `Content-Length`, in bytes.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
}

/// An encoded head. It can be sent several times, to one server or to several.
#[derive(Debug)]
pub struct OutgoingHead {
    /// The method.
    pub method: Method,
    /// Request line and field lines up to `fields.end`; then the lines that
    /// [`OutgoingHead::finish`] has added.
    bytes: Vec<u8>,
    target: Range<usize>,
    /// The position of the host in `bytes`; `None` if the server's own host is wanted.
    host: Option<Range<usize>>,
    fields: Range<usize>,
    /// The protocols to which the client wants to switch.
    upgrade: Option<Vec<u8>>,
    /// Whether the client waits for `100 Continue`, and may wait for the server's.
    pub expects_continue: bool,
    /// Whether the client accepts trailers.
    pub takes_trailers: bool,
    /// Whether trailers of the response can be passed on to the client.
    pub passes_trailers: bool,
    /// The trailers that the client announces.
    pub trailer: Option<Vec<u8>>,
    /// Fields that must not be trailers, because `Connection` names them, or a rule has set them.
    pub no_trailers: Vec<HeaderName>,
}

/// Encodes the head of `request` with the path and query of `target`.
pub fn encode(
    request: &RequestHead<'_>,
    target: &str,
    origin: Origin<'_>,
    policy: HeadPolicy<'_>,
) -> OutgoingHead {
    let fields_bytes: usize =
        request.fields.iter().map(|field| field.name.len() + field.value.len() + 4).sum();
    let mut bytes = Vec::with_capacity(fields_bytes + target.len() + 256);
    bytes.extend_from_slice(request.method.as_str().as_bytes());
    bytes.push(b' ');
    let target_start = bytes.len();
    bytes.extend_from_slice(target.as_bytes());
    let target = target_start..bytes.len();
    bytes.extend_from_slice(b" HTTP/1.1\r\n");
    let host = match policy.host {
        HostPolicy::Client => Some(request.host),
        HostPolicy::Upstream => None,
        HostPolicy::Name(name) => Some(name.as_str()),
    };
    let host = host.map(|host| {
        bytes.extend_from_slice(b"Host: ");
        let start = bytes.len();
        bytes.extend_from_slice(host.as_bytes());
        let range = start..bytes.len();
        bytes.extend_from_slice(b"\r\n");
        range
    });
    let fields_start = bytes.len();
    let connection_options = ConnectionOptions::from_request(request);
    let mut upgrade = None;
    let mut takes_trailers = false;
    let mut trailer = None;
    for field in request.fields {
        match hop_by_hop(field.name) {
            Hop::Upgrade if connection_options.upgrade => add_upgrade(&mut upgrade, field.value),
            Hop::Te => {
                takes_trailers |=
                    members(field.value).any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
            }
            Hop::Trailer => add(&mut trailer, field.value),
            Hop::Upgrade | Hop::Dropped => {}
            // `forwarding_fields` writes the fields of proxies.
            Hop::None
                if is_written_by_kirin(field.name, origin.notes)
                    || !is_unambiguous(field.name)
                    // A client cannot remove with `Connection` what a rule has set.
                    || match is_given(policy.given, field.name) {
                        true => forwarding_fields::writes(field.name),
                        false => {
                            proxy_field(field.name).is_some()
                                || connection_options.names(field.name)
                        }
                    } => {}
            Hop::None => {
                bytes.extend_from_slice(field.name.as_bytes());
                bytes.extend_from_slice(b": ");
                bytes.extend_from_slice(field.value);
                bytes.extend_from_slice(b"\r\n");
            }
        }
    }
    forwarding_fields::write(request, origin, policy, &mut bytes);
    write_ids(origin.notes, &mut bytes);
    if let Some(name) = policy.via {
        let version = match request.version {
            Version::Http10 => "1.0 ",
            Version::Http11 => "1.1 ",
            Version::Http2 => "2.0 ",
            Version::Http3 => "3.0 ",
        };
        for part in ["Via: ", version, name, "\r\n"] {
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    let has_body = request.body != BodyLength::None;
    // Over HTTP/2 and HTTP/3, only the opening of a WebSocket has the field.
    let may_upgrade = request.version >= Version::Http11 && !has_body;
    OutgoingHead {
        method: request.method.clone(),
        target,
        host,
        fields: fields_start..bytes.len(),
        bytes,
        upgrade: upgrade.filter(|_| may_upgrade),
        expects_continue: request.expects_continue && request.version >= Version::Http11,
        takes_trailers: takes_trailers && request.version >= Version::Http11,
        passes_trailers: request.takes_trailers(),
        trailer: trailer.filter(|_| has_body),
        no_trailers: match has_body {
            true => {
                let given = policy.given.iter().filter_map(|name| name.parse().ok());
                connection_options.field_names().into_iter().chain(given).collect()
            }
            false => Vec::new(),
        },
    }
}

/// Appends the id of the request, and its place in a trace.
fn write_ids(notes: &RequestNotes, bytes: &mut Vec<u8>) {
    bytes.extend_from_slice(b"X-Request-Id: ");
    notes.id().write_to(bytes);
    bytes.extend_from_slice(b"\r\n");
    if let Some(trace) = notes.trace() {
        // Writing to a Vec does not fail.
        let _ = write!(bytes, "traceparent: {trace}\r\n");
    }
}

impl OutgoingHead {
    /// Adds the lines that depend on the server and the content. After that
    /// [`OutgoingHead::as_http1`] is complete.
    pub fn finish(&mut self, framing: OutgoingFraming, authority: &str) {
        let bytes = &mut self.bytes;
        bytes.truncate(self.fields.end);
        if self.host.is_none() {
            for part in ["Host: ", authority, "\r\n"] {
                bytes.extend_from_slice(part.as_bytes());
            }
        }
        match framing {
            // Methods that usually have content say that there is none (RFC 9110 section 8.6).
            OutgoingFraming::Nothing
                if [Method::POST, Method::PUT, Method::PATCH].contains(&self.method) =>
            {
                bytes.extend_from_slice(b"Content-Length: 0\r\n");
            }
            OutgoingFraming::Nothing => {}
            OutgoingFraming::Length(length) => {
                bytes.extend_from_slice(b"Content-Length: ");
                bytes.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
                bytes.extend_from_slice(b"\r\n");
            }
            OutgoingFraming::Chunked => bytes.extend_from_slice(b"Transfer-Encoding: chunked\r\n"),
        }
        if framing == OutgoingFraming::Chunked
            && let Some(trailer) = &self.trailer
        {
            for part in [b"Trailer: ", &trailer[..], b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        }
        if self.expects_continue && framing != OutgoingFraming::Nothing {
            bytes.extend_from_slice(b"Expect: 100-continue\r\n");
        }
        match (&self.upgrade, self.takes_trailers) {
            (Some(_), true) => bytes.extend_from_slice(b"Connection: Upgrade, TE\r\n"),
            (Some(_), false) => bytes.extend_from_slice(b"Connection: Upgrade\r\n"),
            (None, true) => bytes.extend_from_slice(b"Connection: TE\r\n"),
            (None, false) => {}
        }
        if let Some(protocols) = &self.upgrade {
            for part in [b"Upgrade: ", &protocols[..], b"\r\n"] {
                bytes.extend_from_slice(part);
            }
        }
        if self.takes_trailers {
            bytes.extend_from_slice(b"TE: trailers\r\n");
        }
        bytes.extend_from_slice(b"\r\n");
    }

    /// Returns the head as it is sent.
    pub fn as_http1(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the `Host` to send; `None` stands for the server's own.
    pub fn host(&self) -> Option<&str> {
        self.bytes.get(self.host.clone()?).and_then(|host| std::str::from_utf8(host).ok())
    }

    /// Returns names and values of the fields, without host and framing.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let lines =
            self.bytes.get(self.fields.clone()).unwrap_or_default().split(|byte| *byte == b'\n');
        lines.filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((line.get(..colon)?, line.get(colon + 1..)?.trim_ascii()))
        })
    }

    /// Returns path and query.
    pub fn target(&self) -> &str {
        self.bytes
            .get(self.target.clone())
            .and_then(|target| std::str::from_utf8(target).ok())
            .unwrap_or("/")
    }

    /// Returns whether the server may switch to another protocol.
    pub fn upgrades(&self) -> bool {
        self.upgrade.is_some()
    }

    /// Returns whether the request may be repeated if its result is not known (RFC 9110 section
    /// 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        self.method.is_idempotent() && self.upgrade.is_none()
    }

    /// Returns method and target, for the log.
    pub fn request_line(&self) -> String {
        format!("{} {}", self.method, self.target())
    }
}

/// The options of the client's `Connection` field.
#[derive(Default)]
struct ConnectionOptions<'a> {
    upgrade: bool,
    named: Vec<&'a [u8]>,
    /// The names in lower case, if there are more than a few. Otherwise each field would be
    /// compared with all of them.
    many: HashSet<Vec<u8>>,
}

/// The most names that are compared one by one. Clients send one or two.
const FEW_OPTIONS: usize = 8;

impl<'a> ConnectionOptions<'a> {
    fn from_request(request: &RequestHead<'a>) -> Self {
        let mut connection_options = Self::default();
        for field in
            request.fields.iter().filter(|field| field.name.eq_ignore_ascii_case("connection"))
        {
            for option in members(field.value) {
                if option.eq_ignore_ascii_case(b"upgrade") {
                    connection_options.upgrade = true;
                } else if !option.eq_ignore_ascii_case(b"close")
                    && !option.eq_ignore_ascii_case(b"keep-alive")
                {
                    connection_options.named.push(option);
                }
            }
        }
        if connection_options.named.len() > FEW_OPTIONS {
            connection_options.many =
                connection_options.named.iter().map(|name| name.to_ascii_lowercase()).collect();
        }
        connection_options
    }

    fn field_names(&self) -> Vec<HeaderName> {
        self.named.iter().filter_map(|name| HeaderName::from_bytes(name).ok()).collect()
    }

    fn names(&self, name: &str) -> bool {
        if self.many.is_empty() {
            return self.named.iter().any(|named| named.eq_ignore_ascii_case(name.as_bytes()));
        }
        self.many.contains(&name.as_bytes().to_ascii_lowercase())
    }
}

/// The treatment of a field on its way to the server.
enum Hop {
    None,
    Upgrade,
    Te,
    Trailer,
    /// Kirin writes the field itself, or it is meant for Kirin alone.
    Dropped,
}

fn hop_by_hop(name: &str) -> Hop {
    // The length decides first, because most fields have other lengths.
    let others: &[&str] = match name.len() {
        2 if name.eq_ignore_ascii_case("te") => return Hop::Te,
        7 if name.eq_ignore_ascii_case("upgrade") => return Hop::Upgrade,
        7 if name.eq_ignore_ascii_case("trailer") => return Hop::Trailer,
        4 => &["host"],
        // A CGI program would see `Proxy` as `HTTP_PROXY`, which HTTP client libraries obey
        // (CVE-2016-5388).
        5 => &["proxy"],
        6 => &["expect"],
        10 => &["connection", "keep-alive"],
        14 => &["content-length", "http2-settings"],
        16 => &["proxy-connection"],
        17 => &["transfer-encoding"],
        18 => &["proxy-authenticate"],
        19 => &["proxy-authorization"],
        _ => &[],
    };
    if others.iter().any(|other| name.eq_ignore_ascii_case(other)) {
        Hop::Dropped
    } else {
        Hop::None
    }
}

/// Adds the protocols that the client offers. HTTP/2 is left out, because its requests would bypass
/// the routes in a tunnel.
fn add_upgrade(upgrade: &mut Option<Vec<u8>>, value: &[u8]) {
    let is_http = |protocol: &[u8]| {
        let name = protocol.split(|byte| *byte == b'/').next().unwrap_or_default();
        [&b"h2c"[..], b"h2", b"http", b"tls"].iter().any(|other| name.eq_ignore_ascii_case(other))
    };
    for protocol in members(value).filter(|protocol| !is_http(protocol)) {
        add(upgrade, protocol);
    }
}

/// Appends members to a list.
fn add(list: &mut Option<Vec<u8>>, members: &[u8]) {
    let list = list.get_or_insert_default();
    if !list.is_empty() {
        list.extend_from_slice(b", ");
    }
    list.extend_from_slice(members);
}

#[cfg(test)]
#[path = "request_head_tests.rs"]
mod tests;
