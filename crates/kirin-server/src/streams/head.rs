//! Request heads of HTTP/2 and HTTP/3: turns a header list that was checked into a [`RequestHead`]
//! like that of HTTP/1.
//!
//! The check (`kirin_h2::request`) has already refused what RFC 9113 section 8 calls malformed:
//! pseudo-fields that are missing, duplicated or behind others, names and values with characters
//! that are not allowed, connection-specific fields, `TE` other than `trailers`, and a
//! `content-length` that the data contradicts.

use std::borrow::Cow;

use http::Method;
use httparse::Header;
use kirin_h2::hpack::{FieldBuffer, Known};
use kirin_http::host::parse_host;
use kirin_http::percent::{self, NOT_ASCII};
use kirin_http::request::{
    BodyLength, HeadLimits, MAX_FIELDS, Reject, RequestHead, Version, parse_content_length,
};
use smallvec::SmallVec;

/// The most fields of a field list. The parts of a cookie are fields of their own.
pub(crate) const LIST_FIELDS: usize = 4 * MAX_FIELDS;

/// The field lines of a head. Those of most requests fit without memory of their own.
pub(crate) type Lines<'a> = SmallVec<[Header<'a>; 24]>;

/// A request head.
pub(crate) struct StreamHead<'a> {
    method: Method,
    target: Cow<'a, str>,
    host: &'a str,
    fields: &'a FieldBuffer,
    /// The `cookie` fields joined to one, if there are several.
    cookie: Vec<u8>,
    pub(crate) body: BodyLength,
    expects_continue: bool,
    /// Whether the stream becomes a WebSocket (RFC 8441 section 5).
    pub(crate) is_websocket: bool,
    version: Version,
}

/// The key of a WebSocket handshake, which these versions do not have and applications need. The
/// client never sees the answer to it.
const WEBSOCKET_KEY: &str = "S2lyaW4gc3BlYWtzIGgyIQ==";

impl<'a> StreamHead<'a> {
    /// Reads a head of HTTP/2, or of HTTP/3. `ended`: no body follows. `secure`: the connection is
    /// encrypted.
    pub(crate) fn read(
        fields: &'a FieldBuffer,
        version: Version,
        (ended, secure): (bool, bool),
        limits: &HeadLimits,
    ) -> Result<Self, Reject> {
        let mut method = Method::GET;
        let mut target: &[u8] = b"/";
        let mut authority = None;
        let mut host = None;
        let mut length = None;
        let mut expects_continue = false;
        let mut protocol = None;
        let mut cookies = 0;
        let mut lines = 0;
        for field in fields.iter() {
            let value = field.value;
            match field.known {
                Known::Method => {
                    method = Method::from_bytes(value).map_err(|_| Reject::Method)?;
                    continue;
                }
                Known::Path => {
                    target = value;
                    continue;
                }
                Known::Authority => {
                    authority = Some(value);
                    continue;
                }
                Known::Scheme if value.eq_ignore_ascii_case(b"https") == secure => continue,
                Known::Scheme => return Err(Reject::Misdirected),
                Known::Protocol => {
                    protocol = Some(value);
                    continue;
                }
                Known::Host if host.is_some() => {
                    return Err(Reject::Bad("more than one Host field"));
                }
                Known::Host => host = Some(parse_host(value)?),
                Known::Cookie => cookies += 1,
                Known::ContentLength => length = Some(parse_content_length(value)?),
                Known::Expect if !value.eq_ignore_ascii_case(b"100-continue") => {
                    return Err(Reject::Expectation);
                }
                Known::Expect => expects_continue = !ended,
                _ => {}
            }
            lines += usize::from(field.known != Known::Cookie || cookies == 1);
        }
        if method == Method::TRACE {
            return Err(Reject::Method);
        }
        // The handler gets the request as that of HTTP/1.1, which is a GET.
        let is_websocket = match protocol {
            Some(b"websocket") => {
                method = Method::GET;
                true
            }
            Some(_) => return Err(Reject::Method),
            None if method == Method::CONNECT => {
                return Err(Reject::Bad("CONNECT is for proxies"));
            }
            None => false,
        };
        if lines > MAX_FIELDS {
            return Err(Reject::HeadTooLarge);
        }
        let target = read_target(target, &method, limits)?;
        let host = one_host(authority, host)?;
        let body = match length {
            _ if ended || is_websocket => BodyLength::None,
            Some(length @ 1..) => BodyLength::Exact(length),
            // The length is unknown, or the end has not arrived yet.
            Some(0) | None => BodyLength::Chunked,
        };
        let cookie = if cookies > 1 { joined_cookies(fields) } else { Vec::new() };
        Ok(Self {
            method,
            target,
            host,
            fields,
            cookie,
            body,
            expects_continue,
            is_websocket,
            version,
        })
    }

    /// Returns whether the request changes nothing by its method (RFC 9110 section 9.2.1).
    pub(crate) fn is_safe(&self) -> bool {
        self.method.is_safe() && !self.is_websocket
    }

    /// Returns the field lines, which [`StreamHead::as_request`] borrows. `Host` is one of them as
    /// in HTTP/1, and the parts of a cookie are joined (RFC 9113 section 8.2.3).
    pub(crate) fn field_lines(&self) -> Lines<'_> {
        let mut lines = Lines::new();
        lines.push(Header { name: "host", value: self.host.as_bytes() });
        if self.is_websocket {
            lines.extend(
                [
                    ("connection", "Upgrade"),
                    ("upgrade", "websocket"),
                    ("sec-websocket-key", WEBSOCKET_KEY),
                ]
                .map(|(name, value)| Header { name, value: value.as_bytes() }),
            );
        }
        let mut has_cookie = false;
        for field in self.fields.iter() {
            let value = match field.known {
                Known::Method
                | Known::Path
                | Known::Authority
                | Known::Scheme
                | Known::Protocol
                | Known::Host => continue,
                _ if self.is_websocket && field.name == b"sec-websocket-key" => continue,
                Known::Cookie if std::mem::replace(&mut has_cookie, true) => continue,
                Known::Cookie if !self.cookie.is_empty() => &self.cookie[..],
                _ => field.value,
            };
            lines.push(Header { name: field.name_str(), value });
        }
        lines
    }

    /// Returns the head in the form that handlers expect.
    pub(crate) fn as_request<'b>(&'b self, fields: &'b [Header<'b>]) -> RequestHead<'b> {
        let target = &*self.target;
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (target, None),
        };
        RequestHead {
            method: self.method.clone(),
            target,
            path,
            query,
            version: self.version,
            host: self.host,
            fields,
            body: self.body,
            persistent: true,
            expects_continue: self.expects_continue,
        }
    }
}

/// Reads `:path`. As in HTTP/1, bytes above 127 are taken as if they were percent-encoded.
fn read_target<'a>(
    target: &'a [u8],
    method: &Method,
    limits: &HeadLimits,
) -> Result<Cow<'a, str>, Reject> {
    let target = percent::encode(target, NOT_ASCII);
    if target.len() + method.as_str().len() + 12 > limits.request_line_bytes {
        return Err(Reject::TargetTooLong);
    }
    let is_path = target.starts_with('/') || (*target == *"*" && *method == Method::OPTIONS);
    if !is_path || target.bytes().any(|byte| byte <= b' ' || byte == 0x7f || byte == b'#') {
        return Err(Reject::Bad("request target is not a path"));
    }
    Ok(target)
}

/// Joins the parts of a cookie.
fn joined_cookies(fields: &FieldBuffer) -> Vec<u8> {
    let mut joined = Vec::new();
    for field in fields.iter().filter(|field| field.known == Known::Cookie) {
        if !joined.is_empty() {
            joined.extend_from_slice(b"; ");
        }
        joined.extend_from_slice(field.value);
    }
    joined
}

/// Returns the line that a log shows for a request that is refused. `protocol` is the version as
/// nginx writes it.
pub(crate) fn refused_line(fields: &FieldBuffer, protocol: &str) -> Vec<u8> {
    let value_of = |known| {
        fields.iter().find(|field| field.known == known).map_or(&b""[..], |field| field.value)
    };
    [value_of(Known::Method), b" ", value_of(Known::Path), b" ", protocol.as_bytes()].concat()
}

/// Returns `:authority`, or else `Host`. They must not contradict each other (RFC 9113 section
/// 8.3.1).
fn one_host<'a>(authority: Option<&'a [u8]>, field: Option<&'a str>) -> Result<&'a str, Reject> {
    match (authority, field) {
        (None, None) => Err(Reject::Bad("request without :authority and Host")),
        (Some(authority), Some(field)) if !authority.eq_ignore_ascii_case(field.as_bytes()) => {
            Err(Reject::Bad(":authority and Host differ"))
        }
        (Some(authority), _) => parse_host(authority),
        (None, Some(field)) => Ok(field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_h2::hpack::{Decoder, Encoder};

    /// Returns the fields of a request for an authority and a path.
    fn request(authority: Option<&str>, path: &str, fields: &[(&str, &str)]) -> FieldBuffer {
        let mut block = Vec::new();
        let mut encoder = Encoder::new(0);
        let mut field =
            |name: &str, value: &str| encoder.field(name.as_bytes(), value.as_bytes(), &mut block);
        field(":method", "GET");
        field(":scheme", "https");
        field(":path", path);
        authority.into_iter().for_each(|authority| field(":authority", authority));
        fields.iter().for_each(|(name, value)| field(name, value));
        let mut list = FieldBuffer::default();
        Decoder::new(4096).decode(&block, 1 << 20, 1000, &mut list).unwrap();
        list
    }

    /// Reads a head and returns the result of `look`.
    fn read<T>(
        fields: &FieldBuffer,
        ended: bool,
        look: impl FnOnce(&StreamHead<'_>) -> T,
    ) -> Result<T, Reject> {
        StreamHead::read(fields, Version::Http2, (ended, true), &HeadLimits::default())
            .map(|head| look(&head))
    }

    #[test]
    fn a_head_is_equal_to_that_of_the_same_http_1_request() {
        let fields = [("cookie", "a=1"), ("accept", "x"), ("cookie", "b=2"), ("accept", "y")];
        let fields = request(Some("a.test:8443"), "/p/q?x=y?z", &fields);
        let seen = read(&fields, true, |head| {
            let lines = head.field_lines();
            let request = head.as_request(&lines);
            assert_eq!(
                (request.target, request.path, request.query),
                ("/p/q?x=y?z", "/p/q", Some("x=y?z"))
            );
            assert_eq!(
                (request.host, request.version, request.body),
                ("a.test:8443", Version::Http2, BodyLength::None)
            );
            let text = |value: &[u8]| String::from_utf8(value.to_vec()).unwrap();
            lines
                .iter()
                .map(|line| format!("{}: {}", line.name, text(line.value)))
                .collect::<Vec<_>>()
        });
        let lines = ["host: a.test:8443", "cookie: a=1; b=2", "accept: x", "accept: y"];
        assert_eq!(seen.unwrap(), lines);
    }

    #[test]
    fn the_host_is_required_and_must_be_unambiguous() {
        for (authority, fields, host) in [
            (Some("a.test"), &[][..], Ok("a.test")),
            (None, &[("host", "a.test")], Ok("a.test")),
            (Some("a.test"), &[("host", "A.test")], Ok("a.test")),
            (None, &[], Err(())),
            (Some("a.test"), &[("host", "b.test")], Err(())),
            (None, &[("host", "a.test"), ("host", "a.test")], Err(())),
            (None, &[("host", "a b")], Err(())),
            (Some("user@a.test"), &[], Err(())),
            (Some(""), &[], Err(())),
        ] {
            let got = read(&request(authority, "/", fields), true, |head| head.host.to_owned());
            assert_eq!(got.as_deref().map_err(|_| ()), host, "{authority:?} {fields:?}");
        }
    }

    #[test]
    fn the_end_of_the_stream_overrides_content_length() {
        for (fields, ended, body) in [
            (&[][..], true, BodyLength::None),
            (&[], false, BodyLength::Chunked),
            (&[("content-length", "5")], false, BodyLength::Exact(5)),
            (&[("content-length", "0")], false, BodyLength::Chunked),
            (&[("content-length", "0")], true, BodyLength::None),
        ] {
            let got = read(&request(Some("a"), "/", fields), ended, |head| head.body);
            assert_eq!(got, Ok(body), "{fields:?} {ended}");
        }
    }

    #[test]
    fn heads_cost_no_more_than_their_bytes() {
        let list = |name: &'static str, value: &'static str| {
            move |count: usize| {
                let name_of = |index: usize| match name {
                    "" => format!("x-{index}"),
                    name => name.to_owned(),
                };
                let names: Vec<String> = (0..count).map(name_of).collect();
                let value = value.repeat(100);
                let fields: Vec<_> =
                    names.iter().map(|name| (name.as_str(), value.as_str())).collect();
                request(Some("a"), "/", &fields)
            }
        };
        let mut table = kirin_doubling::Table::new();
        for (name, value) in [("cookie", "a=b; "), ("x-a", "b"), ("", "b"), ("expect", "x")] {
            table.check(&format!("{name}: {value}"), 12, list(name, value), |fields| {
                let limits = HeadLimits::default();
                let head = StreamHead::read(fields, Version::Http2, (true, true), &limits).ok()?;
                let lines = head.field_lines();
                Some(head.as_request(&lines).fields.len())
            });
        }
        table.finish();
    }

    #[test]
    fn limits_are_those_of_http_1() {
        let long = format!("/{}", "x".repeat(9000));
        let refused = |path: &str, fields: &[(&str, &str)]| {
            read(&request(Some("a"), path, fields), true, |_| ())
        };
        assert_eq!(refused(&long, &[]), Err(Reject::TargetTooLong));
        assert_eq!(refused("/", &vec![("x", "y"); MAX_FIELDS + 1]), Err(Reject::HeadTooLarge));
        assert_eq!(refused("/", &vec![("cookie", "y"); MAX_FIELDS + 1]), Ok(()));
        assert_eq!(refused("/", &[("expect", "x")]), Err(Reject::Expectation));
        for path in ["", "a", "*", "http://a/", "/a b", "/#"] {
            assert!(matches!(refused(path, &[]), Err(Reject::Bad(_))), "{path}");
        }
    }
}
