//! Request heads for workers: the header block of SCGI, made from a [`RequestHead`] that still
//! borrows from the connection's read buffer.
//!
//! `docs/worker-protocol.md` lists the names.

use std::net::SocketAddr;
use std::ops::Range;
use std::sync::Arc;

use kirin_http::field_list::members;
use kirin_http::host::without_port;
use kirin_http::proxy_fields::is_unambiguous;
use kirin_http::request::Version;
use kirin_http::{
    Client, ListenAddress, Origin, Peer, ProxyField, RequestHead, RequestNotes,
    is_written_by_kirin, percent, proxy_field, write_ip,
};

use crate::meta_variables::{MetaVariables, is_given};
use crate::same_name::SameName;

/// The room before the names and values for what is known last: `NNNN:CONTENT_LENGTH NUL 20 digits
/// NUL SCGI NUL 1 NUL`.
const PREFIX_ROOM: usize = 64;

/// Fields of the client's message that only Kirin needs.
///
/// The worker gets the complete body without chunks, and Kirin has sent `100 Continue`. `Proxy`
/// would become `HTTP_PROXY`, which HTTP client libraries obey (CVE-2016-5388).
const DROPPED: [&str; 7] =
    ["host", "content-length", "transfer-encoding", "trailer", "expect", "keep-alive", "proxy"];

/// An encoded head. The length of the body is filled in when the body has been read.
#[derive(Debug)]
pub struct RequestBlock {
    bytes: Vec<u8>,
    start: usize,
    /// The position of the value of `HTTP_COOKIE` in `bytes`.
    cookies: Option<Range<usize>>,
}

/// The path contains an encoded NUL, which would end a value in the header block. nginx refuses it
/// too.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the path has an encoded NUL")]
pub struct NulInPath;

fn encode(
    request: &RequestHead<'_>,
    origin: Origin<'_>,
    meta: &MetaVariables<'_>,
) -> Result<RequestBlock, NulInPath> {
    let fields_bytes: usize =
        request.fields.iter().map(|field| field.name.len() + field.value.len() + 8).sum();
    let mut block = Vec::with_capacity(PREFIX_ROOM + fields_bytes + 2 * request.target.len() + 256);
    block.resize(PREFIX_ROOM, 0);

    push(&mut block, "REQUEST_METHOD", request.method.as_str());
    // Only path and query, even of an absolute target, as PSGI demands.
    block.extend_from_slice(b"REQUEST_URI\0");
    block.extend_from_slice(meta.uri_path.unwrap_or(request.path).as_bytes());
    if let Some(query) = request.query {
        block.push(b'?');
        block.extend_from_slice(query.as_bytes());
    }
    block.push(0);
    push(&mut block, "SCRIPT_NAME", meta.script_name);
    block.extend_from_slice(b"PATH_INFO\0");
    push_decoded_path(&mut block, meta.path.unwrap_or(request.path))?;
    push(&mut block, "QUERY_STRING", request.query.unwrap_or(""));
    // The handshake of a WebSocket is that of HTTP/1.1 (RFC 8441 section 5), and has this field in
    // HTTP/2 and HTTP/3 only because Kirin has added it.
    let is_handshake = request.version >= Version::Http2 && request.field("upgrade").is_some();
    let version = if is_handshake { Version::Http11 } else { request.version };
    push(&mut block, "SERVER_PROTOCOL", version.name());
    push_server(&mut block, request, origin);
    push_peer(&mut block, origin.peer);
    if origin.secure {
        push(&mut block, "HTTPS", "on");
    }
    if let Some(user) = meta.user {
        if let Some(auth_type) = user.auth_type {
            push(&mut block, "AUTH_TYPE", auth_type);
        }
        push(&mut block, "REMOTE_USER", user.name);
    }
    push_client(&mut block, origin.client);
    if !meta.site.is_empty() {
        push(&mut block, "KIRIN_SITE", meta.site);
    }
    if !request.host.is_empty() {
        push(&mut block, "HTTP_HOST", request.host);
    }
    push_ids(&mut block, origin.notes);
    let cookies = push_fields(&mut block, request, origin, meta.given);
    block.push(b',');
    Ok(RequestBlock { bytes: block, start: 0, cookies })
}

impl RequestBlock {
    /// Encodes everything except `CONTENT_LENGTH`.
    pub fn encode(
        request: &RequestHead<'_>,
        origin: Origin<'_>,
        meta: &MetaVariables<'_>,
    ) -> Result<Self, NulInPath> {
        encode(request, origin, meta)
    }

    /// Fills in the length of the body in bytes. After that the block is complete.
    pub fn finish(&mut self, content_length: u64) {
        let mut number = itoa::Buffer::new();
        let values = self.bytes.len() - PREFIX_ROOM - 1;
        let digits = number.format(content_length);
        let head_bytes = values + "CONTENT_LENGTH\0\0SCGI\x001\0".len() + digits.len();
        let mut prefix = Vec::with_capacity(PREFIX_ROOM);
        prefix.extend_from_slice(itoa::Buffer::new().format(head_bytes).as_bytes());
        prefix.extend_from_slice(b":CONTENT_LENGTH\0");
        prefix.extend_from_slice(digits.as_bytes());
        prefix.extend_from_slice(b"\0SCGI\x001\0");
        self.start = PREFIX_ROOM - prefix.len();
        self.bytes[self.start..PREFIX_ROOM].copy_from_slice(&prefix);
    }

    /// Returns the block as it is sent to the worker.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }

    /// Adds a variable. The caller must call [`RequestBlock::finish`] afterwards.
    pub fn add(&mut self, name: &str, value: &str) {
        self.append(|block| push(block, name, value));
    }

    /// Lets `work` append variables, each a name and a value that end in NUL. The caller must call
    /// [`RequestBlock::finish`] afterwards.
    pub fn append(&mut self, work: impl FnOnce(&mut Vec<u8>)) {
        // The comma ends the block.
        self.bytes.pop();
        work(&mut self.bytes);
        self.bytes.push(b',');
    }

    /// Returns the value of `HTTP_COOKIE`, if there is one.
    pub fn cookies(&self) -> Option<&[u8]> {
        self.bytes.get(self.cookies.clone()?)
    }

    /// Returns names and values, without those that [`RequestBlock::finish`] fills in.
    pub fn variables(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        let values: Range<usize> = PREFIX_ROOM..self.bytes.len().saturating_sub(1);
        let mut parts = self.bytes.get(values).unwrap_or_default().split(|byte| *byte == 0);
        std::iter::from_fn(move || Some((parts.next()?, parts.next()?)))
    }

    /// Returns whether the client takes trailers (RFC 9110 section 6.5.1). HTTP/2 has a trailer
    /// section always.
    pub fn takes_trailers(&self) -> bool {
        let is_trailers = |member: &[u8]| member.eq_ignore_ascii_case(b"trailers");
        match self.value("SERVER_PROTOCOL") {
            Some(b"HTTP/2") => true,
            Some(b"HTTP/1.1") => {
                self.value("HTTP_TE").is_some_and(|te| members(te).any(is_trailers))
            }
            _ => false,
        }
    }

    /// Returns the value of `name`.
    pub fn value(&self, name: &str) -> Option<&[u8]> {
        self.variables().find(|(other, _)| *other == name.as_bytes()).map(|(_, value)| value)
    }
}

fn push(block: &mut Vec<u8>, name: &str, value: impl AsRef<[u8]>) {
    block.extend_from_slice(name.as_bytes());
    block.push(0);
    block.extend_from_slice(value.as_ref());
    block.push(0);
}

/// Appends `PATH_INFO`: the path without percent-encoding (RFC 3875 section 4.1.5). The `*` of
/// `OPTIONS *` is not a path.
pub(crate) fn push_decoded_path(block: &mut Vec<u8>, path: &str) -> Result<(), NulInPath> {
    let path = if path == "*" { &[][..] } else { path.as_bytes() };
    if memchr::memchr(b'%', path).is_none() {
        block.extend_from_slice(path);
    } else {
        for byte in percent::decoded(path) {
            if byte == 0 {
                return Err(NulInPath);
            }
            block.push(byte);
        }
    }
    block.push(0);
    Ok(())
}

/// Appends the host that the request is for, without its port (RFC 3875 section 4.1.14), and the
/// port of the listener. A request without a host gets the address of the listener. Only routes for
/// all hosts get such a request.
fn push_server(block: &mut Vec<u8>, request: &RequestHead<'_>, origin: Origin<'_>) {
    let host = without_port(request.host);
    match origin.local {
        ListenAddress::Tcp(address) if host.is_empty() => {
            push_address(block, "SERVER_NAME", "SERVER_PORT", address);
        }
        ListenAddress::Tcp(address) => {
            push(block, "SERVER_NAME", host);
            push(block, "SERVER_PORT", itoa::Buffer::new().format(address.port()));
        }
        ListenAddress::Unix(_) => {
            push(block, "SERVER_NAME", if host.is_empty() { "localhost" } else { host });
            push(block, "SERVER_PORT", if origin.secure { "443" } else { "80" });
        }
    }
}

fn push_peer(block: &mut Vec<u8>, peer: &Peer) {
    match peer {
        Peer::Tcp(address) => push_address(block, "REMOTE_ADDR", "REMOTE_PORT", address),
        Peer::Unix => {
            push(block, "REMOTE_ADDR", "unix:");
            push(block, "REMOTE_PORT", "0");
        }
    }
}

/// Appends what the client's certificate says, under the names that mod_ssl and nginx use. No field
/// of a request has one of these names.
fn push_client(block: &mut Vec<u8>, client: Client<'_>) {
    match client {
        Client::NotRequested => {}
        Client::Anonymous => push(block, "SSL_CLIENT_VERIFY", "NONE"),
        Client::Verified(certificate) => {
            push(block, "SSL_CLIENT_VERIFY", "SUCCESS");
            push(block, "SSL_CLIENT_S_DN", &certificate.subject);
            push(block, "SSL_CLIENT_M_SERIAL", &certificate.serial);
        }
    }
}

/// Appends the id of the request, and its place in a trace.
fn push_ids(block: &mut Vec<u8>, notes: &RequestNotes) {
    use std::io::Write;
    block.extend_from_slice(b"HTTP_X_REQUEST_ID\0");
    notes.id().write_to(block);
    block.push(0);
    if let Some(trace) = notes.trace() {
        // Writing to a Vec does not fail.
        let _ = write!(block, "HTTP_TRACEPARENT\0{trace}\0");
    }
}

fn push_address(block: &mut Vec<u8>, ip_name: &str, port_name: &str, address: &SocketAddr) {
    block.extend_from_slice(ip_name.as_bytes());
    block.push(0);
    // An IPv4 client of an IPv6 socket is an IPv4 client.
    write_ip(address.ip().to_canonical(), block);
    block.push(0);
    push(block, port_name, itoa::Buffer::new().format(address.port()));
}

/// Returns whether the application gets a field that proxies write.
///
/// What trusted proxies say about the client is already in `REMOTE_ADDR`, `HTTPS` and `HTTP_HOST`.
/// What an untrusted client says must not reach the application, because
/// Plack::Middleware::ReverseProxy would believe it. So only two kinds remain: who the visitor is,
/// and below which path a trusted proxy has mounted the site. Fields on how to send a file stay
/// between Kirin and the worker.
fn is_passed_on(field: ProxyField, name: &str, origin: Origin<'_>) -> bool {
    const PATHS: [&str; 5] = [
        "x-forwarded-prefix",
        "x-script-name",
        "x-original-url",
        "x-original-uri",
        "x-rewrite-url",
    ];
    let is_told = origin.proxy.is_some_and(|proxy| proxy.fields.are_x());
    is_told
        && match field {
            ProxyField::User | ProxyField::Cdn => true,
            ProxyField::Site => PATHS.iter().any(|path| path.eq_ignore_ascii_case(name)),
            ProxyField::Client | ProxyField::Sending => false,
        }
}

/// Appends the client's fields as `HTTP_*`. Fields of the same name are joined (RFC 9110 section
/// 5.3, and for cookies RFC 6265 section 5.4). Returns the position of the value of `HTTP_COOKIE`,
/// if there is one.
fn push_fields(
    block: &mut Vec<u8>,
    request: &RequestHead<'_>,
    origin: Origin<'_>,
    given: &[Arc<str>],
) -> Option<Range<usize>> {
    let fields = request.fields;
    let same_name = SameName::from_fields(fields);
    let mut cookies = None;
    for (index, field) in fields.iter().enumerate() {
        let name = field.name;
        if !is_unambiguous(name)
            || is_written_by_kirin(name, origin.notes)
            || proxy_field(name)
                .is_some_and(|field| !is_passed_on(field, name, origin) && !is_given(given, name))
            || DROPPED.iter().any(|dropped| dropped.eq_ignore_ascii_case(name))
            || !same_name.is_first(index)
        {
            continue;
        }
        if name.eq_ignore_ascii_case("content-type") {
            block.extend_from_slice(b"CONTENT_TYPE\0");
            block.extend_from_slice(field.value);
            block.push(0);
            continue;
        }
        block.extend_from_slice(b"HTTP_");
        block.extend(name.bytes().map(|byte| match byte {
            b'-' => b'_',
            _ => byte.to_ascii_uppercase(),
        }));
        block.push(0);
        let start = block.len();
        block.extend_from_slice(field.value);
        let is_cookie = name.eq_ignore_ascii_case("cookie");
        let separator: &[u8] = if is_cookie { b"; " } else { b", " };
        for other in same_name.after(index) {
            block.extend_from_slice(separator);
            block.extend_from_slice(fields[other].value);
        }
        if is_cookie {
            cookies = Some(start..block.len());
        }
        block.push(0);
    }
    cookies
}

#[cfg(test)]
#[path = "request_block_tests.rs"]
mod tests;
