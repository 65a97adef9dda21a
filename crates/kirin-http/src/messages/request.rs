//! Request heads: parses bytes into a [`RequestHead`] whose framing has one reading only.
//!
//! `httparse` splits the lines. This file decides what RFC 9112 says about their meaning together:
//! length, target, host and persistence. The connection calls it for each request.

use std::mem::MaybeUninit;
use std::ops::Range;

use http::{Method, StatusCode};
use httparse::Header;

use crate::field_list::members;
use crate::host::parse_host;
use crate::percent::{self, NOT_ASCII};
use crate::request_target::split_target;
use crate::token::is_token;

/// The most field lines in one request head. nginx has no such limit; Apache allows 100.
pub const MAX_FIELDS: usize = 100;

/// The longest method. `UPDATEREDIRECTREF` (RFC 4437) is the longest registered one.
const MAX_METHOD_BYTES: usize = 32;

/// Room for the field lines of one head, on the caller's stack.
pub type FieldStorage<'a> = [MaybeUninit<Header<'a>>; MAX_FIELDS];

/// A request head. It borrows from the bytes from which it was parsed.
#[derive(Clone, Debug)]
pub struct RequestHead<'a> {
    /// The method, which may be an extension method.
    pub method: Method,
    /// The request target as it was sent.
    pub target: &'a str,
    /// The path of the target, percent-encoded as sent; `*` for the asterisk form.
    pub path: &'a str,
    /// The query of the target without the `?`.
    pub query: Option<&'a str>,
    /// The protocol version of the message.
    pub version: Version,
    /// The authority of an absolute target, or else the `Host` field. In HTTP/1.0 only, it may be
    /// missing, and is empty then.
    pub host: &'a str,
    /// All field lines in order. Names are tokens. Values have no CR, LF or NUL.
    pub fields: &'a [Header<'a>],
    /// How the body is framed.
    pub body: BodyLength,
    /// Whether the client wants the connection kept (RFC 9112 section 9.3).
    pub persistent: bool,
    /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 section
    /// 10.1.1).
    pub expects_continue: bool,
}

/// HTTP version of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
    /// HTTP/2
    Http2,
    /// HTTP/3
    Http3,
}

impl Version {
    /// Returns the name, such as `HTTP/1.1`.
    pub fn name(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
            Version::Http2 => "HTTP/2",
            Version::Http3 => "HTTP/3",
        }
    }
}

/// The length of a body (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is no body.
    None,
    /// Exactly this many bytes, more than 0.
    Exact(u64),
    /// The body has the chunked transfer coding.
    Chunked,
}

/// The result of parsing a head.
#[derive(Debug)]
pub enum Parsed<'a> {
    /// A complete head, and the number of bytes that it took.
    Complete(RequestHead<'a>, usize),
    /// More bytes are needed.
    Partial,
    /// The target has bytes above 127. [`escape_target`] must encode them before the head is
    /// parsed.
    RawTarget,
}

/// Why a request is refused before a handler sees it. The connection closes after the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reject {
    /// The bytes are not a request, or have two readings.
    #[error("{0}")]
    Bad(&'static str),
    /// An HTTP/1.0 request without a length, whose method usually has a body. Nobody can know
    /// whether a body follows.
    #[error("HTTP/1.0 request without a Content-Length")]
    LengthRequired,
    /// The request line is longer than the limit.
    #[error("request target is too long")]
    TargetTooLong,
    /// The head is longer than the limit or has too many field lines.
    #[error("request head is too large")]
    HeadTooLarge,
    /// The target has the scheme `https` over a connection that is not encrypted, or the other way
    /// round.
    #[error("request target has another scheme than the connection")]
    Misdirected,
    /// A method that no origin server has.
    #[error("method is not implemented")]
    Method,
    /// A transfer coding other than `chunked`.
    #[error("transfer coding is not implemented")]
    TransferCoding,
    /// The version is neither HTTP/1.0 nor HTTP/1.1.
    #[error("HTTP version is not supported")]
    Version,
    /// An expectation other than `100-continue`.
    #[error("expectation cannot be met")]
    Expectation,
    /// A request that cannot be answered in early data, because it may change something and an
    /// attacker can send it again, or because its client has not shown its address (RFC 8470
    /// section 5.2).
    #[error("request cannot be answered in early data")]
    TooEarly,
}

impl Reject {
    /// The number of reasons.
    pub const KINDS: usize = 10;

    /// Returns the index of the reason, below [`Reject::KINDS`].
    pub const fn index(self) -> usize {
        match self {
            Self::Bad(_) => 0,
            Self::LengthRequired => 1,
            Self::TargetTooLong => 2,
            Self::HeadTooLarge => 3,
            Self::Misdirected => 4,
            Self::Method => 5,
            Self::TransferCoding => 6,
            Self::Version => 7,
            Self::Expectation => 8,
            Self::TooEarly => 9,
        }
    }

    /// Returns the status code of the response.
    pub fn status(self) -> StatusCode {
        match self {
            Reject::Bad(_) => StatusCode::BAD_REQUEST,
            Reject::LengthRequired => StatusCode::LENGTH_REQUIRED,
            Reject::TargetTooLong => StatusCode::URI_TOO_LONG,
            Reject::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Reject::Misdirected => StatusCode::MISDIRECTED_REQUEST,
            Reject::Method | Reject::TransferCoding => StatusCode::NOT_IMPLEMENTED,
            Reject::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Reject::Expectation => StatusCode::EXPECTATION_FAILED,
            Reject::TooEarly => StatusCode::TOO_EARLY,
        }
    }
}

/// The limits on a head, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// The most bytes of the complete head.
    pub head_bytes: usize,
    /// The most bytes of the request line.
    pub request_line_bytes: usize,
}

impl Default for HeadLimits {
    /// Returns 32 KB and 8 KB, the defaults of nginx (`large_client_header_buffers 4 8k`).
    fn default() -> Self {
        Self { head_bytes: 32 * 1024, request_line_bytes: 8 * 1024 }
    }
}

/// Parses one request head from the start of `input`.
///
/// Input that is refused stays refused whatever follows it. So the result does not depend on the
/// pieces in which a head arrives.
pub fn parse<'a>(
    input: &'a [u8],
    storage: &'a mut FieldStorage<'a>,
    limits: &HeadLimits,
) -> Result<Parsed<'a>, Reject> {
    let empty_line = match input {
        [b'A'..=b'Z', ..] => 0,
        // One empty line is accepted (RFC 9112 section 2.2), because old browsers sent it behind a
        // body.
        [b'\r', b'\n', b'\r' | b'\n', ..] | [b'\n', ..] => {
            return Err(Reject::Bad("empty lines before a request"));
        }
        [b'\r', b'\n', ..] => 2,
        _ => 0,
    };
    let (visible, too_long) = within(&input[empty_line..], limits);
    let mut request = httparse::Request::new(&mut []);
    let status = match request.parse_with_uninit_headers(visible, storage) {
        Ok(status) => status,
        Err(httparse::Error::TooManyHeaders) => return Err(Reject::HeadTooLarge),
        Err(httparse::Error::Version) => return Err(version_reject(visible)),
        // httparse accepts bytes above 127 only if they are UTF-8.
        Err(httparse::Error::Token) if has_raw_target(visible) => return Ok(Parsed::RawTarget),
        Err(httparse::Error::Token) => return Err(Reject::Bad("request line is malformed")),
        Err(httparse::Error::NewLine) => return Err(Reject::Bad("line does not end in CR LF")),
        Err(_) => return Err(Reject::Bad("field line is malformed")),
    };
    let httparse::Status::Complete(length) = status else {
        return too_long.map_or(Ok(Parsed::Partial), Err);
    };
    // httparse accepts a bare LF as a line end. Two parties that disagree about it could be made to
    // see different requests (RFC 9112 section 2.2).
    if has_bare_line_feed(&visible[..length]) {
        return Err(Reject::Bad("line ends in a bare LF"));
    }
    let httparse::Request {
        method: Some(method),
        path: Some(target),
        version: Some(minor),
        headers,
    } = request
    else {
        return Err(Reject::Bad("request line is malformed"));
    };
    let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
    let method = parse_method(method)?;
    let meaning = FieldMeaning::parse(headers, version, &method)?;
    let (authority, path, query) = match split_target(target, &method) {
        Err(_) if has_raw_target(visible) => return Ok(Parsed::RawTarget),
        split => split?,
    };
    let head = RequestHead {
        method,
        target,
        path,
        query,
        version,
        host: authority.or(meaning.host).unwrap_or(""),
        fields: headers,
        body: meaning.body,
        persistent: meaning.persistent,
        expects_continue: meaning.expects_continue,
    };
    Ok(Parsed::Complete(head, empty_line + length))
}

impl<'a> RequestHead<'a> {
    /// Returns the approximate size of a copy of the head in bytes.
    pub fn len_bytes(&self) -> usize {
        let of_field = |field: &Header<'_>| field.name.len() + field.value.len();
        self.target.len() + self.fields.iter().map(of_field).sum::<usize>()
    }

    /// Returns the first value of the field `name`, which is compared without case.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.lines(name).next()
    }

    /// Returns the values of all lines of the field `name`, which is compared without case.
    pub fn lines(&self, name: &str) -> impl Iterator<Item = &'a [u8]> {
        let is_named = move |field: &&Header<'a>| field.name.eq_ignore_ascii_case(name);
        self.fields.iter().filter(is_named).map(|field| field.value)
    }

    /// Returns whether the client takes trailers (RFC 9110 section 6.5.1). HTTP/2 has a trailer
    /// section always.
    pub fn takes_trailers(&self) -> bool {
        let says_so = || {
            let mut te = self.fields.iter().filter(|field| field.name.eq_ignore_ascii_case("te"));
            te.any(|field| {
                members(field.value).any(|member| member.eq_ignore_ascii_case(b"trailers"))
            })
        };
        match self.version {
            Version::Http10 => false,
            Version::Http11 => says_so(),
            Version::Http2 | Version::Http3 => true,
        }
    }

    /// Returns whether the target names another scheme than the connection has (RFC 9110 section
    /// 7.4).
    pub fn is_misdirected(&self, secure: bool) -> bool {
        if self.target.starts_with('/') {
            return false;
        }
        let scheme = self.target.split_once("://").map(|(scheme, _)| scheme);
        scheme.is_some_and(|scheme| scheme.eq_ignore_ascii_case("https") != secure)
    }

    /// Returns whether the method is GET or HEAD. Files and pages have an answer for these two
    /// only.
    pub fn is_get_or_head(&self) -> bool {
        self.method == Method::GET || self.method == Method::HEAD
    }
}

/// Returns `input`, which begins with a request line, with the bytes above 127 of its target
/// percent-encoded. Also returns the number of bytes that this has added. Old clients and links
/// send such bytes as they are. All other code sees the encoded form only, so that a path has one
/// key, one route and one form in the log.
pub fn escape_target(input: &[u8]) -> (Vec<u8>, usize) {
    let part = escapable_target(input);
    let mut escaped = Vec::with_capacity(input.len() + 2 * part.len());
    escaped.extend_from_slice(&input[..part.start]);
    percent::encode_into(&input[part.clone()], NOT_ASCII, &mut escaped);
    escaped.extend_from_slice(&input[part.end..]);
    let added = escaped.len() - input.len();
    (escaped, added)
}

/// Returns whether a line feed is not behind a carriage return.
fn has_bare_line_feed(head: &[u8]) -> bool {
    // Without an early end, the compiler compares many bytes at once.
    let pairs = head.iter().zip(head.get(1..).unwrap_or_default());
    let is_bare = |before: u8, byte: u8| (byte == b'\n') & (before != b'\r');
    head.first() == Some(&b'\n')
        || pairs.fold(false, |found, (before, byte)| found | is_bare(*before, *byte))
}

fn has_raw_target(input: &[u8]) -> bool {
    !input[escapable_target(input)].is_ascii()
}

/// Returns the range of the path and query in the first line. The host is left out, because an
/// encoded host would be another name.
fn escapable_target(input: &[u8]) -> Range<usize> {
    let line_start = if input.starts_with(b"\r\n") { 2 } else { 0 };
    let find = |from: usize, is_end: &dyn Fn(u8) -> bool| {
        input[from..].iter().position(|byte| is_end(*byte)).map_or(input.len(), |at| from + at)
    };
    let start = find(line_start, &|byte| matches!(byte, b' ' | b'\r' | b'\n')) + 1;
    if start > input.len() || input[start - 1] != b' ' {
        return 0..0;
    }
    let end = find(start, &|byte| matches!(byte, b' ' | b'\r' | b'\n'));
    let target = &input[start..end];
    let authority = match target.first() {
        Some(b'/') => 0,
        _ => match memchr::memmem::find(target, b"://") {
            Some(at) => at + 3,
            None => return 0..0,
        },
    };
    let path = target[authority..].iter().position(|byte| matches!(byte, b'/' | b'?'));
    path.map_or(0..0, |path| start + authority + path..end)
}

/// Returns the part of `input` that may be parsed, and the error if no head ends in it. Bytes
/// behind the limits are never parsed, even if they are there already.
fn within<'a>(input: &'a [u8], limits: &HeadLimits) -> (&'a [u8], Option<Reject>) {
    if input.len() > limits.request_line_bytes {
        let line = &input[..limits.request_line_bytes];
        if memchr::memchr(b'\n', line).is_none() {
            return (line, Some(Reject::TargetTooLong));
        }
    }
    match input.get(..limits.head_bytes) {
        Some(head) if head.len() < input.len() => (head, Some(Reject::HeadTooLarge)),
        _ => (input, None),
    }
}

/// Parses a method. CONNECT is for proxies, and TRACE shows scripts the fields that browsers hide
/// from them. Neither is implemented (RFC 9110 section 9.1).
fn parse_method(method: &str) -> Result<Method, Reject> {
    if method.len() > MAX_METHOD_BYTES {
        return Err(Reject::Method);
    }
    match Method::from_bytes(method.as_bytes()) {
        Ok(Method::CONNECT | Method::TRACE) => Err(Reject::Method),
        Ok(method) => Ok(method),
        Err(_) => Err(Reject::Bad("method is not a token")),
    }
}

/// Returns why a version is refused. `HTTP/2.0` and `HTTP/1.2` are unsupported versions (the second
/// does not exist; only a probe asks for it). `HTTQ/1.1` is not a request. It reads no further than
/// `httparse` does.
fn version_reject(input: &[u8]) -> Reject {
    let version =
        input.splitn(3, |byte| *byte == b' ').nth(2).and_then(|rest| rest.strip_prefix(b"HTTP/"));
    match version.unwrap_or_default() {
        [b'1', b'.', minor, ..] if minor.is_ascii_digit() => Reject::Version,
        [b'1', ..] => Reject::Bad("request line is malformed"),
        [b'0' | b'2'..=b'9', ..] => Reject::Version,
        _ => Reject::Bad("request line is malformed"),
    }
}

/// What the field lines say about the message itself.
struct FieldMeaning<'a> {
    host: Option<&'a str>,
    body: BodyLength,
    persistent: bool,
    expects_continue: bool,
}

impl<'a> FieldMeaning<'a> {
    fn parse(fields: &'a [Header<'a>], version: Version, method: &Method) -> Result<Self, Reject> {
        let mut host = None;
        let mut content_length = None;
        let mut transfer_encoding = None;
        let (mut close, mut keep_alive) = (false, false);
        let mut expects_continue = false;
        for field in fields {
            // The length is compared first. The names that matter here all have different lengths,
            // and most fields of a request have none of these lengths.
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            match field.name.len() {
                4 if is("host") => {
                    once(&mut host, parse_host(field.value)?, "more than one Host field")?
                }
                14 if is("content-length") => {
                    let length = parse_content_length(field.value)?;
                    once(&mut content_length, length, "more than one Content-Length field")?;
                }
                17 if is("transfer-encoding") => {
                    once(
                        &mut transfer_encoding,
                        field.value,
                        "more than one Transfer-Encoding field",
                    )?;
                }
                10 if is("connection") => {
                    for option in members(field.value) {
                        close |= option.eq_ignore_ascii_case(b"close");
                        keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
                    }
                }
                6 if is("expect") => {
                    if !field.value.eq_ignore_ascii_case(b"100-continue") {
                        return Err(Reject::Expectation);
                    }
                    expects_continue = true;
                }
                _ => {}
            }
        }
        if host.is_none() && version == Version::Http11 {
            return Err(Reject::Bad("HTTP/1.1 request without a Host field"));
        }
        let body = match (transfer_encoding, content_length) {
            (Some(_), Some(_)) => {
                return Err(Reject::Bad("both Transfer-Encoding and Content-Length"));
            }
            (Some(_), None) if version == Version::Http10 => {
                return Err(Reject::Bad("Transfer-Encoding in an HTTP/1.0 request"));
            }
            (Some(coding), None) => parse_transfer_encoding(coding)?,
            (None, None) if version == Version::Http10 && has_body_by_nature(method) => {
                return Err(Reject::LengthRequired);
            }
            (None, Some(0) | None) => BodyLength::None,
            (None, Some(length)) => BodyLength::Exact(length),
        };
        let persistent = !close && (version == Version::Http11 || keep_alive);
        // A request without a body has nothing to continue, and HTTP/1.0 has no expectations.
        let expects_continue =
            expects_continue && body != BodyLength::None && version == Version::Http11;
        Ok(Self { host, body, persistent, expects_continue })
    }
}

/// Stores the value of a field that may occur once in a head.
fn once<T>(slot: &mut Option<T>, value: T, otherwise: &'static str) -> Result<(), Reject> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Reject::Bad(otherwise)),
    }
}

/// Parses `1*DIGIT` if the number fits. It accepts no list, no sign and no white space inside (RFC
/// 9110 section 8.6).
pub fn parse_content_length(value: &[u8]) -> Result<u64, Reject> {
    let bad = Reject::Bad("Content-Length is not a number");
    if value.is_empty() || value.len() > 19 {
        return Err(bad);
    }
    value.iter().try_fold(0u64, |length, byte| match byte {
        b'0'..=b'9' => Ok(length * 10 + u64::from(byte - b'0')),
        _ => Err(bad),
    })
}

/// Accepts `chunked` and nothing else. If it is not the last coding, the length of the body is
/// unknown, which is a worse error than an unsupported coding (RFC 9112 section 6.3).
fn parse_transfer_encoding(value: &[u8]) -> Result<BodyLength, Reject> {
    let is_chunked = |coding: &[u8]| coding.eq_ignore_ascii_case(b"chunked");
    if is_chunked(value) {
        return Ok(BodyLength::Chunked);
    }
    let is_coding = |coding: &[u8]| is_token(coding) && !is_chunked(coding);
    // This is stricter than `field_list::members`: an empty member is an error here, because two
    // parties that disagree about the last coding see different requests.
    let mut codings = value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    if codings.next_back().is_some_and(is_chunked) && codings.all(is_coding) {
        return Err(Reject::TransferCoding);
    }
    Err(Reject::Bad("the last transfer coding is not chunked"))
}

/// Returns whether requests with this method usually have a body. In HTTP/1.0 they must have a
/// length (RFC 1945 section 8.3). In HTTP/1.1 no length means no body (RFC 9112 section 6.3).
fn has_body_by_nature(method: &Method) -> bool {
    *method == Method::POST || *method == Method::PUT || *method == Method::PATCH
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
