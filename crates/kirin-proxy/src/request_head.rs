//! Request heads as upstreams get them, made from a [`RequestHead`] that still borrows from the
//! client's read buffer.
//!
//! Pure: encoded once a request by the place. What is between the client and us stays there (RFC
//! 9110 section 7.6.1), and the framing is our own, so that nothing that can be read in two ways is
//! ever passed on.

use std::collections::HashSet;
use std::ops::Range;

use http::Method;
use http::header::HeaderName;
use kirin_http::field_list::members;
use kirin_http::proxy_fields::is_unambiguous;
use kirin_http::{BodyLength, Origin, RequestHead, Version, proxy_field};

use crate::config::{ForwardedPolicy, HostPolicy};
use crate::forwarding_fields;

/// What of a configuration decides about request heads.
#[derive(Clone, Copy, Debug)]
pub struct HeadPolicy<'a> {
    /// Which host servers get.
    pub host: &'a HostPolicy,
    /// How they hear of the client.
    pub forwarded: ForwardedPolicy,
    /// Our name in `Via`.
    pub via: Option<&'a str>,
}

/// How the body behind a head is framed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutgoingFraming {
    /// There is none.
    Nothing,
    /// `Content-Length`.
    Length(u64),
    /// Chunked transfer coding.
    Chunked,
}

/// An encoded head. It can be sent more than once, to one server or another.
#[derive(Debug)]
pub struct OutgoingHead {
    /// The method.
    pub method: Method,
    /// Request line and field lines up to `fields.end`; behind that what [`OutgoingHead::finish`]
    /// has added.
    bytes: Vec<u8>,
    target: Range<usize>,
    /// None if the server's own host is wanted.
    host: Option<Range<usize>>,
    fields: Range<usize>,
    /// To which protocol the client wants to switch.
    upgrade: Option<Vec<u8>>,
    /// Whether the client waits for a `100 Continue`, and may be kept waiting for the server's.
    pub expects_continue: bool,
    /// Whether the client says that it takes trailers.
    pub takes_trailers: bool,
    /// Whether trailers of the response reach the client.
    pub passes_trailers: bool,
    /// The trailers that the client announces.
    pub trailer: Option<Vec<u8>>,
    /// Those that are no trailers, because `Connection` names them.
    pub no_trailers: Vec<HeaderName>,
}

/// Encodes the head of `request`, whose path and query are `target`.
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
    let of_connection = OfConnection::of(request);
    let mut upgrade = None;
    let mut takes_trailers = false;
    let mut trailer = None;
    for field in request.fields {
        match between_us(field.name) {
            Hop::Upgrade if of_connection.upgrade => add_upgrade(&mut upgrade, field.value),
            Hop::Te => {
                takes_trailers |=
                    members(field.value).any(|coding| coding.eq_ignore_ascii_case(b"trailers"))
            }
            Hop::Trailer => add(&mut trailer, field.value),
            Hop::Upgrade | Hop::Ours => {}
            // What proxies write is for `forwarding_fields`.
            Hop::None
                if proxy_field(field.name).is_some()
                    || !is_unambiguous(field.name)
                    || of_connection.names(field.name) => {}
            Hop::None => {
                bytes.extend_from_slice(field.name.as_bytes());
                bytes.extend_from_slice(b": ");
                bytes.extend_from_slice(field.value);
                bytes.extend_from_slice(b"\r\n");
            }
        }
    }
    forwarding_fields::write(request, origin, policy.forwarded, &mut bytes);
    if let Some(name) = policy.via {
        let version = match request.version {
            Version::Http10 => "1.0 ",
            Version::Http11 => "1.1 ",
            Version::Http2 => "2.0 ",
        };
        for part in ["Via: ", version, name, "\r\n"] {
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    let has_body = request.body != BodyLength::None;
    let may_upgrade = request.version == Version::Http11 && !has_body;
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
        no_trailers: if has_body { of_connection.field_names() } else { Vec::new() },
    }
}

impl OutgoingHead {
    /// Fills in what is known last. [`OutgoingHead::as_http1`] can be sent then.
    pub fn finish(&mut self, framing: OutgoingFraming, authority: &str) {
        let bytes = &mut self.bytes;
        bytes.truncate(self.fields.end);
        if self.host.is_none() {
            for part in ["Host: ", authority, "\r\n"] {
                bytes.extend_from_slice(part.as_bytes());
            }
        }
        match framing {
            // Who has a body by nature says that there is none (RFC 9110 section 8.6).
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

    /// The head on the wire.
    pub fn as_http1(&self) -> &[u8] {
        &self.bytes
    }

    /// The host that the server is asked for; none if it is its own.
    pub fn host(&self) -> Option<&str> {
        self.bytes.get(self.host.clone()?).and_then(|host| std::str::from_utf8(host).ok())
    }

    /// Names and values of the fields, but for host and framing.
    pub fn fields(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let lines =
            self.bytes.get(self.fields.clone()).unwrap_or_default().split(|byte| *byte == b'\n');
        lines.filter_map(|line| {
            let colon = line.iter().position(|byte| *byte == b':')?;
            Some((line.get(..colon)?, line.get(colon + 1..)?.trim_ascii()))
        })
    }

    /// Path and query.
    pub fn target(&self) -> &str {
        self.bytes
            .get(self.target.clone())
            .and_then(|target| std::str::from_utf8(target).ok())
            .unwrap_or("/")
    }

    /// Whether a 101 may follow.
    pub fn upgrades(&self) -> bool {
        self.upgrade.is_some()
    }

    /// Whether the request may be sent again when it is not known what became of it (RFC 9110
    /// section 9.2.2).
    pub fn is_idempotent(&self) -> bool {
        self.method.is_idempotent() && self.upgrade.is_none()
    }

    /// For the log.
    pub fn request_line(&self) -> String {
        format!("{} {}", self.method, self.target())
    }
}

/// What the client's `Connection` field says.
#[derive(Default)]
struct OfConnection<'a> {
    upgrade: bool,
    named: Vec<&'a [u8]>,
    /// The same in lower case, if there are more than a few: otherwise every field would be
    /// compared with all of them.
    many: HashSet<Vec<u8>>,
}

/// Options that are compared one by one. Clients send one or two.
const FEW_OPTIONS: usize = 8;

impl<'a> OfConnection<'a> {
    fn of(request: &RequestHead<'a>) -> Self {
        let mut of_connection = Self::default();
        for field in
            request.fields.iter().filter(|field| field.name.eq_ignore_ascii_case("connection"))
        {
            for option in members(field.value) {
                if option.eq_ignore_ascii_case(b"upgrade") {
                    of_connection.upgrade = true;
                } else if !option.eq_ignore_ascii_case(b"close")
                    && !option.eq_ignore_ascii_case(b"keep-alive")
                {
                    of_connection.named.push(option);
                }
            }
        }
        if of_connection.named.len() > FEW_OPTIONS {
            of_connection.many =
                of_connection.named.iter().map(|name| name.to_ascii_lowercase()).collect();
        }
        of_connection
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

/// Whether a field is between the client and us.
enum Hop {
    None,
    Upgrade,
    Te,
    Trailer,
    /// Written anew, or for nobody else.
    Ours,
}

fn between_us(name: &str) -> Hop {
    // The length decides first: most fields of a request are none of these.
    let others: &[&str] = match name.len() {
        2 if name.eq_ignore_ascii_case("te") => return Hop::Te,
        7 if name.eq_ignore_ascii_case("upgrade") => return Hop::Upgrade,
        7 if name.eq_ignore_ascii_case("trailer") => return Hop::Trailer,
        4 => &["host"],
        // `Proxy` would become `HTTP_PROXY` in a CGI program, which HTTP client libraries obey
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
    if others.iter().any(|other| name.eq_ignore_ascii_case(other)) { Hop::Ours } else { Hop::None }
}

/// Protocols that the client offers. Not HTTP/2: in a tunnel its requests would pass by the routes.
fn add_upgrade(upgrade: &mut Option<Vec<u8>>, value: &[u8]) {
    let is_http = |protocol: &[u8]| {
        let name = protocol.split(|byte| *byte == b'/').next().unwrap_or_default();
        [&b"h2c"[..], b"h2", b"http", b"tls"].iter().any(|other| name.eq_ignore_ascii_case(other))
    };
    for protocol in members(value).filter(|protocol| !is_http(protocol)) {
        add(upgrade, protocol);
    }
}

/// Adds a member, or several, to a list.
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
