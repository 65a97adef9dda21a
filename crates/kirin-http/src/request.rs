//! Request heads: from bytes to a [`RequestHead`] whose framing cannot be read in two ways.
//!
//! `httparse` splits the lines; everything RFC 9112 says about what they mean together (length, target,
//! host, persistence) is decided here, once. Called by the connection for each request.

use http::{Method, StatusCode};
use httparse::Header;
use std::mem::MaybeUninit;

/// Field lines in one request head at most. nginx has no such limit, Apache 100.
pub const MAX_FIELDS: usize = 100;

/// Room for the field lines of one head, on the caller's stack.
pub type FieldStorage<'a> = [MaybeUninit<Header<'a>>; MAX_FIELDS];

/// A request head. Everything borrows from the bytes it was read from.
#[derive(Clone, Debug)]
pub struct RequestHead<'a> {
    /// The method; extension methods are allowed.
    pub method: Method,
    /// The request target as it was sent.
    pub target: &'a str,
    /// Path of the target, percent-encoded as sent; `*` for the asterisk form.
    pub path: &'a str,
    /// Query of the target without the `?`.
    pub query: Option<&'a str>,
    /// Protocol version of the message.
    pub version: Version,
    /// Authority of an absolute target, or else the `Host` field. May be missing or empty in HTTP/1.0 only.
    pub host: &'a str,
    /// All field lines in order. Names are tokens, values have no CR, LF or NUL.
    pub fields: &'a [Header<'a>],
    /// How the body is framed.
    pub body: BodyLength,
    /// Whether the client wants the connection kept (RFC 9112 section 9.3).
    pub persistent: bool,
    /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110 section 10.1.1).
    pub expects_continue: bool,
}

/// HTTP version of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// HTTP/1.0
    Http10,
    /// HTTP/1.1
    Http11,
}

impl Version {
    /// `HTTP/1.1`
    pub fn name(self) -> &'static str {
        match self {
            Version::Http10 => "HTTP/1.0",
            Version::Http11 => "HTTP/1.1",
        }
    }
}

/// How long a body is (RFC 9112 section 6.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyLength {
    /// There is none.
    None,
    /// Exactly this many bytes, more than 0.
    Exact(u64),
    /// Chunked transfer coding.
    Chunked,
}

/// What reading a head came to.
#[derive(Debug)]
pub enum Parsed<'a> {
    /// A whole head, and how many bytes it took.
    Complete(RequestHead<'a>, usize),
    /// More bytes are needed.
    Partial,
}

/// Why a request is refused before anyone looks at it. The connection is closed after the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reject {
    /// Not a request, or one with two readings.
    #[error("{0}")]
    Bad(&'static str),
    /// The request line is longer than the limit.
    #[error("request target is too long")]
    TargetTooLong,
    /// The head is longer than the limit or has too many field lines.
    #[error("request head is too large")]
    HeadTooLarge,
    /// A transfer coding that is not `chunked`.
    #[error("transfer coding is not implemented")]
    TransferCoding,
    /// Neither HTTP/1.0 nor HTTP/1.1.
    #[error("HTTP version is not supported")]
    Version,
    /// An expectation other than `100-continue`.
    #[error("expectation cannot be met")]
    Expectation,
}

impl Reject {
    /// The status code of the answer.
    pub fn status(self) -> StatusCode {
        match self {
            Reject::Bad(_) => StatusCode::BAD_REQUEST,
            Reject::TargetTooLong => StatusCode::URI_TOO_LONG,
            Reject::HeadTooLarge => StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE,
            Reject::TransferCoding => StatusCode::NOT_IMPLEMENTED,
            Reject::Version => StatusCode::HTTP_VERSION_NOT_SUPPORTED,
            Reject::Expectation => StatusCode::EXPECTATION_FAILED,
        }
    }
}

/// Limits on a head, in bytes.
#[derive(Clone, Copy, Debug)]
pub struct HeadLimits {
    /// The whole head.
    pub head_bytes: usize,
    /// The request line.
    pub request_line_bytes: usize,
}

impl Default for HeadLimits {
    /// 32 KB and 8 KB, what nginx takes by default (`large_client_header_buffers 4 8k`).
    fn default() -> Self {
        Self { head_bytes: 32 * 1024, request_line_bytes: 8 * 1024 }
    }
}

/// Reads one request head from the start of `input`.
pub fn parse<'a>(
    input: &'a [u8],
    storage: &'a mut FieldStorage<'a>,
    limits: &HeadLimits,
) -> Result<Parsed<'a>, Reject> {
    let mut request = httparse::Request::new(&mut []);
    let status = match request.parse_with_uninit_headers(input, storage) {
        Ok(status) => status,
        Err(httparse::Error::TooManyHeaders) => return Err(Reject::HeadTooLarge),
        Err(httparse::Error::Version) => return Err(version_reject(input)),
        Err(httparse::Error::Token) => return Err(Reject::Bad("request line is malformed")),
        Err(httparse::Error::NewLine) => return Err(Reject::Bad("line does not end in CR LF")),
        Err(_) => return Err(Reject::Bad("field line is malformed")),
    };
    let httparse::Status::Complete(length) = status else {
        return partial(input, limits);
    };
    if length > limits.head_bytes {
        return Err(Reject::HeadTooLarge);
    }
    // httparse takes a bare LF for a line end; two parties that disagree about that can be played against
    // each other (RFC 9112 section 2.2).
    if memchr::memchr_iter(b'\n', &input[..length]).any(|at| at == 0 || input[at - 1] != b'\r') {
        return Err(Reject::Bad("line ends in a bare LF"));
    }
    let httparse::Request { method: Some(method), path: Some(target), version: Some(minor), headers } =
        request
    else {
        return Err(Reject::Bad("request line is malformed"));
    };
    if method.len() + target.len() + 12 > limits.request_line_bytes {
        return Err(Reject::TargetTooLong);
    }
    let version = if minor == 0 { Version::Http10 } else { Version::Http11 };
    let method = Method::from_bytes(method.as_bytes()).map_err(|_| Reject::Bad("method is not a token"))?;
    let meaning = FieldMeaning::of(headers, version)?;
    let (authority, path, query) = split_target(target, &method)?;
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
        expects_continue: meaning.expects_continue && version == Version::Http11,
    };
    Ok(Parsed::Complete(head, length))
}

impl<'a> RequestHead<'a> {
    /// The first value of the field `name` (compared without case).
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        self.fields.iter().find(|field| field.name.eq_ignore_ascii_case(name)).map(|field| field.value)
    }

    /// Whether the method is GET or HEAD, the two that places without code answer.
    pub fn is_get_or_head(&self) -> bool {
        self.method == Method::GET || self.method == Method::HEAD
    }
}

/// An unfinished head may already be too long.
fn partial<'a>(input: &[u8], limits: &HeadLimits) -> Result<Parsed<'a>, Reject> {
    let line_end = memchr::memchr(b'\n', input).unwrap_or(input.len());
    if line_end > limits.request_line_bytes {
        return Err(Reject::TargetTooLong);
    }
    if input.len() > limits.head_bytes {
        return Err(Reject::HeadTooLarge);
    }
    Ok(Parsed::Partial)
}

/// `HTTP/2.0` is a version we do not speak; `HTTQ/1.1` is no request at all.
fn version_reject(input: &[u8]) -> Reject {
    let line = &input[..memchr::memchr(b'\n', input).unwrap_or(input.len())];
    match memchr::memmem::find(line, b" HTTP/") {
        Some(at) if line.get(at + 6).is_some_and(u8::is_ascii_digit) => Reject::Version,
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
    fn of(fields: &'a [Header<'a>], version: Version) -> Result<Self, Reject> {
        let mut host = None;
        let mut content_length = None;
        let mut transfer_encoding = None;
        let (mut close, mut keep_alive) = (false, false);
        let mut expects_continue = false;
        for field in fields {
            // The length decides first: of the names that mean something here, no two of different case
            // share one, and most fields of a request match none.
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            match field.name.len() {
                4 if is("host") => once(&mut host, parse_host(field.value)?, "more than one Host field")?,
                14 if is("content-length") => {
                    let length = parse_content_length(field.value)?;
                    once(&mut content_length, length, "more than one Content-Length field")?;
                }
                17 if is("transfer-encoding") => {
                    once(&mut transfer_encoding, field.value, "more than one Transfer-Encoding field")?;
                }
                10 if is("connection") => {
                    for option in list(field.value) {
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
            (Some(_), Some(_)) => return Err(Reject::Bad("both Transfer-Encoding and Content-Length")),
            (Some(_), None) if version == Version::Http10 => {
                return Err(Reject::Bad("Transfer-Encoding in an HTTP/1.0 request"));
            }
            (Some(coding), None) if coding.eq_ignore_ascii_case(b"chunked") => BodyLength::Chunked,
            (Some(_), None) => return Err(Reject::TransferCoding),
            (None, Some(0) | None) => BodyLength::None,
            (None, Some(length)) => BodyLength::Exact(length),
        };
        let persistent = !close && (version == Version::Http11 || keep_alive);
        Ok(Self { host, body, persistent, expects_continue })
    }
}

/// A field that may stand once in a head.
fn once<T>(slot: &mut Option<T>, value: T, otherwise: &'static str) -> Result<(), Reject> {
    match slot.replace(value) {
        None => Ok(()),
        Some(_) => Err(Reject::Bad(otherwise)),
    }
}

/// Members of a comma-separated list (RFC 9110 section 5.6.1).
pub(crate) fn list(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|member| !member.is_empty())
}

/// `1*DIGIT`, and no more than fits. No list, no sign, no white space inside (RFC 9110 section 8.6).
pub(crate) fn parse_content_length(value: &[u8]) -> Result<u64, Reject> {
    let bad = Reject::Bad("Content-Length is not a number");
    if value.is_empty() || value.len() > 19 {
        return Err(bad);
    }
    value.iter().try_fold(0u64, |length, byte| match byte {
        b'0'..=b'9' => Ok(length * 10 + u64::from(byte - b'0')),
        _ => Err(bad),
    })
}

/// `uri-host [ ":" port ]`: checked for its characters, so that it can be handed to an application and
/// stand in a redirect (RFC 9112 section 3.2).
pub(crate) fn parse_host(value: &[u8]) -> Result<&str, Reject> {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:[]%".contains(byte);
    if !value.iter().all(allowed) {
        return Err(Reject::Bad("Host is not a host"));
    }
    std::str::from_utf8(value).map_err(|_| Reject::Bad("Host is not a host"))
}

/// Splits a request target of any of the four forms (RFC 9112 section 3.2) into authority, path and query.
fn split_target<'a>(
    target: &'a str,
    method: &Method,
) -> Result<(Option<&'a str>, &'a str, Option<&'a str>), Reject> {
    if target.bytes().any(|byte| byte <= b' ' || byte == 0x7f || byte == b'#') {
        return Err(Reject::Bad("request target has a character that must be percent-encoded"));
    }
    if target.starts_with('/') {
        let (path, query) = split_query(target);
        return Ok((None, path, query));
    }
    if *method == Method::CONNECT {
        return Err(Reject::Bad("CONNECT is for proxies"));
    }
    if target == "*" && *method == Method::OPTIONS {
        return Ok((None, target, None));
    }
    let scheme_end = target.find("://").ok_or(Reject::Bad("request target is neither a path nor a URI"))?;
    let scheme = &target[..scheme_end];
    if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
        return Err(Reject::Bad("request target is not an http URI"));
    }
    let rest = &target[scheme_end + 3..];
    let authority_end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path_and_query) = rest.split_at(authority_end);
    if authority.is_empty() || authority.contains('@') {
        return Err(Reject::Bad("authority of the request target is malformed"));
    }
    parse_host(authority.as_bytes())?;
    let (path, query) = split_query(path_and_query);
    Ok((Some(authority), if path.is_empty() { "/" } else { path }, query))
}

fn split_query(target: &str) -> (&str, Option<&str>) {
    match memchr::memchr(b'?', target.as_bytes()) {
        Some(at) => (&target[..at], Some(&target[at + 1..])),
        None => (target, None),
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
