//! Trailers, the fields that follow a body (RFC 9110 section 6.5): which of them are passed on, and
//! their form in HTTP/1.1. No I/O.
//!
//! They come from the chunked decoder or from HTTP/2. They never become header fields, because the
//! receiver has already acted on those.

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use crate::proxy_fields::{is_unambiguous, proxy_field};

/// The most fields in one trailer section, as many as in the head of a request.
pub const MAX_TRAILER_FIELDS: usize = 100;

/// Fields that must not be trailers. They affect framing, routing, authentication, or how the
/// message or its content is handled. A receiver would have acted without them before (RFC 9110
/// section 6.5.1). Hop-by-hop fields are in the list, too. `ETag`, `Content-Digest`, `Repr-Digest`
/// and `Authentication-Info` are defined as possible trailers.
const NEVER_TRAILERS: [&str; 40] = [
    "accept-ranges",
    "age",
    "authorization",
    "cache-control",
    "connection",
    "cookie",
    "cookie2",
    "date",
    "expect",
    "expires",
    "host",
    "http2-settings",
    "keep-alive",
    "location",
    "max-forwards",
    "pragma",
    "proxy",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "range",
    "retry-after",
    "sec-websocket-accept",
    "sec-websocket-key",
    "set-cookie",
    "set-cookie2",
    "strict-transport-security",
    "surrogate-control",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "vary",
    "via",
    "warning",
    "www-authenticate",
    "x-accel-redirect",
    "x-lighttpd-send-file",
    "x-sendfile",
];

/// Prefixes of such names.
const NEVER_TRAILERS_FROM: [&str; 2] = ["content-", "if-"];

/// The trailers of a message, without the fields that must not be trailers.
#[derive(Clone, Debug, Default)]
pub struct Trailers(HeaderMap);

/// There are more than [`MAX_TRAILER_FIELDS`] trailers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("more than {MAX_TRAILER_FIELDS} trailers")]
pub struct TooManyTrailers;

impl Trailers {
    /// Parses lines `name: value`, each ended by LF, which the chunked decoder has accepted.
    pub(crate) fn of_lines(lines: &[u8]) -> Self {
        let mut fields = HeaderMap::new();
        for line in lines.split(|byte| *byte == b'\n') {
            let mut parts = line.splitn(2, |byte| *byte == b':');
            let (Some(name), Some(value)) = (parts.next(), parts.next()) else { continue };
            let name = HeaderName::from_bytes(name);
            let value = HeaderValue::from_bytes(value.trim_ascii());
            if let (Ok(name), Ok(value)) = (name, value)
                && may_be_trailer(name.as_str())
            {
                let _ = fields.try_append(name, value);
            }
        }
        Self(fields)
    }

    /// Takes the trailers of an HTTP/2 message.
    pub fn from_http2(mut fields: HeaderMap) -> Result<Self, TooManyTrailers> {
        if fields.len() > MAX_TRAILER_FIELDS {
            return Err(TooManyTrailers);
        }
        retain(&mut fields, may_be_trailer);
        Ok(Self(fields))
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Removes every line of the fields of these names.
    pub fn remove(&mut self, names: impl IntoIterator<Item = impl http::header::AsHeaderName>) {
        for name in names {
            self.0.remove(name);
        }
    }

    /// Removes the fields that might be taken for others, as for the fields of requests.
    pub(crate) fn remove_ambiguous(&mut self) {
        retain(&mut self.0, is_unambiguous);
    }

    /// Returns the trailers as fields of HTTP/2.
    pub fn into_fields(self) -> HeaderMap {
        self.0
    }

    /// Appends them as field lines.
    pub fn write_to(&self, out: &mut Vec<u8>) {
        for (name, value) in &self.0 {
            for part in [name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"] {
                out.extend_from_slice(part);
            }
        }
    }
}

fn retain(fields: &mut HeaderMap, is_kept: impl Fn(&str) -> bool) {
    let others: Vec<_> = fields.keys().filter(|name| !is_kept(name.as_str())).cloned().collect();
    for name in others {
        fields.remove(name);
    }
}

/// Returns whether a field of this name, in lower case, is passed on as a trailer. Unknown fields
/// are passed on, for example those of gRPC.
fn may_be_trailer(name: &str) -> bool {
    let never = NEVER_TRAILERS.binary_search(&name).is_ok()
        || NEVER_TRAILERS_FROM.iter().any(|start| name.starts_with(start))
        || proxy_field(name).is_some();
    // The digest of a message is known only behind it (RFC 9530 section 2).
    !never || name == "content-digest"
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(trailers: &Trailers) -> String {
        let mut out = Vec::new();
        trailers.write_to(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn lines_become_fields_and_lines_again() {
        let trailers = Trailers::of_lines(
            b"Grpc-Status: 0\nx-a:  1 \nX-A:\t2\nX-Empty:\nETag: \"x:y\"\nX-B: \xe9\n",
        );
        let mut out = Vec::new();
        trailers.write_to(&mut out);
        let expected =
            b"grpc-status: 0\r\nx-a: 1\r\nx-a: 2\r\nx-empty: \r\netag: \"x:y\"\r\nx-b: \xe9\r\n";
        assert_eq!(out, expected, "{}", String::from_utf8_lossy(&out));
        assert!(Trailers::of_lines(b"").is_empty());
    }

    #[test]
    fn fields_that_control_a_message_are_removed_from_trailers() {
        assert!(NEVER_TRAILERS.is_sorted(), "it is searched");
        for name in [
            "Transfer-Encoding",
            "content-length",
            "Content-Type",
            "Content-Encoding",
            "Host",
            "TE",
            "Trailer",
            "Connection",
            "Authorization",
            "Set-Cookie",
            "Cookie",
            "If-Match",
            "Range",
            "Cache-Control",
            "X-Forwarded-For",
            "Forwarded",
            "WWW-Authenticate",
            "Location",
            "Vary",
            "Proxy",
            "Expect",
            "X-Real-IP",
            "X-Original-URL",
        ] {
            let trailers =
                Trailers::of_lines(format!("{name}: x\nX-Kept: 1\n{name}: y\n").as_bytes());
            assert_eq!(text(&trailers), "x-kept: 1\r\n", "{name}");
            let fields = [(name, "x"), ("x-kept", "1")];
            let fields = HeaderMap::from_iter(
                fields.map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap())),
            );
            let trailers = Trailers::from_http2(fields).unwrap();
            assert_eq!(text(&trailers), "x-kept: 1\r\n", "{name}");
        }
        for name in
            ["grpc-status", "content-digest", "repr-digest", "etag", "server-timing", "x-checksum"]
        {
            assert!(may_be_trailer(name), "{name}");
        }
    }

    #[test]
    fn more_than_a_hundred_are_refused() {
        for (count, is_ok) in [(MAX_TRAILER_FIELDS, true), (MAX_TRAILER_FIELDS + 1, false)] {
            let mut fields = HeaderMap::new();
            for _ in 0..count {
                fields.append("x-a", HeaderValue::from_static("1"));
            }
            assert_eq!(Trailers::from_http2(fields).is_ok(), is_ok, "{count}");
        }
    }
}
