//! Request heads: turns the head that the h2 crate gives into a [`RequestHead`] like that of
//! HTTP/1.
//!
//! h2 has already refused what RFC 9113 section 8 calls malformed: pseudo-fields that are missing,
//! duplicated or behind others, names in upper case, connection-specific fields, `TE` other than
//! `trailers`, and a `content-length` that the data contradicts.

use std::borrow::Cow;

use http::header::{CONTENT_LENGTH, COOKIE, EXPECT, HOST};
use http::request::Parts;
use http::{HeaderMap, Method};
use httparse::Header;
use kirin_http::host::parse_host;
use kirin_http::percent::{self, NOT_ASCII};
use kirin_http::request::{
    BodyLength, HeadLimits, MAX_FIELDS, Reject, RequestHead, Version, parse_content_length,
};

/// A request head.
pub(super) struct Http2Head<'a> {
    method: &'a Method,
    target: Cow<'a, str>,
    host: &'a str,
    fields: &'a HeaderMap,
    /// The `cookie` fields joined to one.
    cookie: Vec<u8>,
    pub(super) body: BodyLength,
    pub(super) expects_continue: bool,
    /// The approximate size of a copy of the head in bytes.
    pub(super) bytes: usize,
}

impl<'a> Http2Head<'a> {
    /// Reads the head that h2 gives. `ended`: no body follows. `secure`: the connection is
    /// encrypted.
    pub(super) fn read(
        parts: &'a Parts,
        ended: bool,
        secure: bool,
        limits: &HeadLimits,
    ) -> Result<Self, Reject> {
        let Parts { method, uri, headers, .. } = parts;
        if *method == Method::TRACE {
            return Err(Reject::Method);
        }
        if *method == Method::CONNECT {
            return Err(Reject::Bad("CONNECT is for proxies"));
        }
        let target = uri.path_and_query().map_or("/", |target| target.as_str());
        // As in HTTP/1. The target is UTF-8, because h2 treats any other `:path` as an error of the
        // connection.
        let target = percent::encode(target.as_bytes(), NOT_ASCII);
        if target.len() + method.as_str().len() + 12 > limits.request_line_bytes {
            return Err(Reject::TargetTooLong);
        }
        let is_path = target.starts_with('/') || (*target == *"*" && *method == Method::OPTIONS);
        if !is_path || target.bytes().any(|byte| byte <= b' ' || byte == 0x7f || byte == b'#') {
            return Err(Reject::Bad("request target is not a path"));
        }
        if headers.len() > MAX_FIELDS {
            return Err(Reject::HeadTooLarge);
        }
        if uri.scheme_str().is_some_and(|scheme| scheme.eq_ignore_ascii_case("https") != secure) {
            return Err(Reject::Misdirected);
        }
        let mut host = None;
        let mut length = None;
        let mut expects_continue = false;
        let mut cookie = Vec::new();
        let mut bytes = target.len();
        for (name, value) in headers {
            bytes += name.as_str().len() + value.len();
            if has_blanks_around(value.as_bytes()) {
                return Err(Reject::Bad("a field value begins or ends with a blank"));
            }
            if name == HOST {
                if host.is_some() {
                    return Err(Reject::Bad("more than one Host field"));
                }
                host = Some(parse_host(value.as_bytes())?);
            } else if name == COOKIE {
                if !cookie.is_empty() {
                    cookie.extend_from_slice(b"; ");
                }
                cookie.extend_from_slice(value.as_bytes());
            } else if name == CONTENT_LENGTH {
                length = Some(parse_content_length(value.as_bytes())?);
            } else if name == EXPECT {
                if !value.as_bytes().eq_ignore_ascii_case(b"100-continue") {
                    return Err(Reject::Expectation);
                }
                expects_continue = !ended;
            }
        }
        let host = one_host(uri.authority().map(http::uri::Authority::as_str), host)?;
        let body = match length {
            _ if ended => BodyLength::None,
            Some(length @ 1..) => BodyLength::Exact(length),
            // The length is unknown, or the end has not arrived yet.
            Some(0) | None => BodyLength::Chunked,
        };
        Ok(Self { method, target, host, fields: headers, cookie, body, expects_continue, bytes })
    }

    /// Returns the field lines, which [`Http2Head::as_request`] borrows. `Host` is one of them as
    /// in HTTP/1, and the parts of a cookie are joined (RFC 9113 section 8.2.3).
    pub(super) fn field_lines(&self) -> Vec<Header<'_>> {
        let mut lines = Vec::with_capacity(self.fields.len() + 1);
        lines.push(Header { name: "host", value: self.host.as_bytes() });
        let mut has_cookie = false;
        for (name, value) in self.fields {
            if name == HOST || (name == COOKIE && std::mem::replace(&mut has_cookie, true)) {
                continue;
            }
            let value = if name == COOKIE { &self.cookie[..] } else { value.as_bytes() };
            lines.push(Header { name: name.as_str(), value });
        }
        lines
    }

    /// Returns the head in the form that handlers expect.
    pub(super) fn as_request<'b>(&'b self, fields: &'b [Header<'b>]) -> RequestHead<'b> {
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
            version: Version::Http2,
            host: self.host,
            fields,
            body: self.body,
            persistent: true,
            expects_continue: self.expects_continue,
        }
    }
}

/// Returns whether a value begins or ends with a space or a tab, which HTTP/1 would have removed.
/// Such a request is malformed (RFC 9113 section 8.2.1).
pub(super) fn has_blanks_around(value: &[u8]) -> bool {
    let is_blank = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    is_blank(value.first()) || is_blank(value.last())
}

/// Returns `:authority`, or else `Host`. They must not contradict each other (RFC 9113 section
/// 8.3.1).
fn one_host<'a>(authority: Option<&'a str>, field: Option<&'a str>) -> Result<&'a str, Reject> {
    match (authority, field) {
        (None, None) => Err(Reject::Bad("request without :authority and Host")),
        (Some(authority), Some(field)) if !authority.eq_ignore_ascii_case(field) => {
            Err(Reject::Bad(":authority and Host differ"))
        }
        (Some(authority), _) => parse_host(authority.as_bytes()),
        (None, Some(field)) => Ok(field),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http::Request;

    /// Reads a head and returns the result of `look`.
    fn read<T>(
        uri: &str,
        fields: &[(&str, &str)],
        ended: bool,
        look: impl FnOnce(&Http2Head<'_>) -> T,
    ) -> Result<T, Reject> {
        let mut request = Request::builder().uri(uri);
        for (name, value) in fields {
            request = request.header(*name, *value);
        }
        let parts = request.body(()).unwrap().into_parts().0;
        Http2Head::read(&parts, ended, true, &HeadLimits::default()).map(|head| look(&head))
    }

    #[test]
    fn a_head_is_equal_to_that_of_the_same_http_1_request() {
        let fields = [("cookie", "a=1"), ("accept", "x"), ("cookie", "b=2"), ("accept", "y")];
        let seen = read("https://a.test:8443/p/q?x=y?z", &fields, true, |head| {
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
        for (uri, fields, host) in [
            ("https://a.test/", &[][..], Ok("a.test")),
            ("/", &[("host", "a.test")], Ok("a.test")),
            ("https://a.test/", &[("host", "A.test")], Ok("a.test")),
            ("/", &[], Err(())),
            ("https://a.test/", &[("host", "b.test")], Err(())),
            ("/", &[("host", "a.test"), ("host", "a.test")], Err(())),
            ("/", &[("host", "a b")], Err(())),
            ("https://user@a.test/", &[], Err(())),
        ] {
            let got = read(uri, fields, true, |head| head.host.to_owned());
            assert_eq!(got.as_deref().map_err(|_| ()), host, "{uri} {fields:?}");
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
            assert_eq!(
                read("https://a/", fields, ended, |head| head.body),
                Ok(body),
                "{fields:?} {ended}"
            );
        }
        assert!(read("https://a/", &[("content-length", "+5")], false, |_| ()).is_err());
    }

    #[test]
    fn a_value_with_blanks_at_either_end_is_refused() {
        for (value, is_refused) in
            [("b c", false), ("", false), (" b", true), ("b ", true), ("\tb", true), (" ", true)]
        {
            for name in ["a", "cookie"] {
                let got = read("https://a/", &[(name, value)], true, |_| ());
                assert_eq!(got.is_err(), is_refused, "{name}: {value:?}");
            }
        }
    }

    #[test]
    fn heads_cost_no_more_than_their_bytes() {
        let parts = |name: &'static str, value: &'static str| {
            move |count: usize| {
                let mut request = Request::builder().uri("https://a/");
                for index in 0..count {
                    let name = if name.is_empty() { format!("x-{index}") } else { name.to_owned() };
                    request = request.header(name, value.repeat(100));
                }
                request.body(()).unwrap().into_parts().0
            }
        };
        let mut table = kirin_doubling::Table::new();
        for (name, value) in [("cookie", "a=b; "), ("x-a", "b"), ("", "b"), ("expect", "x")] {
            table.check(&format!("{name}: {value}"), 12, parts(name, value), |parts| {
                let head = Http2Head::read(parts, true, true, &HeadLimits::default()).ok()?;
                let lines = head.field_lines();
                Some(head.as_request(&lines).fields.len())
            });
        }
        table.finish();
    }

    #[test]
    fn limits_are_those_of_http_1() {
        let long = format!("https://a/{}", "x".repeat(9000));
        assert_eq!(read(&long, &[], true, |_| ()), Err(Reject::TargetTooLong));
        let many = vec![("x", "y"); MAX_FIELDS + 1];
        assert_eq!(read("https://a/", &many, true, |_| ()), Err(Reject::HeadTooLarge));
        assert_eq!(read("https://a/", &[("expect", "x")], true, |_| ()), Err(Reject::Expectation));
    }
}
