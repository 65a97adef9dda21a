//! Writes response heads: status line, field lines and framing.
//!
//! Only this file decides how a response is framed, and whether the connection continues after it.

use http::{Method, StatusCode};
use kirin_http::body::Body;
use kirin_http::request::{RequestHead, Version};
use kirin_http::response::Response;

use crate::clock::Clock;

/// The properties of a request that decide how its response is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Http1Exchange {
    /// The version of the request.
    pub version: Version,
    /// Whether the method is HEAD. Then the response has the head for GET and no body.
    pub is_head: bool,
    /// Whether the connection is kept after the response.
    pub persistent: bool,
    /// Whether the client takes trailers. It is set only where some may come.
    pub takes_trailers: bool,
    /// The length of the response head in bytes, once it has been written.
    pub head_bytes: usize,
}

impl Http1Exchange {
    /// Returns the exchange that `request` begins.
    pub fn new(request: &RequestHead<'_>) -> Self {
        Self {
            version: request.version,
            is_head: request.method == Method::HEAD,
            persistent: request.persistent,
            takes_trailers: false,
            head_bytes: 0,
        }
    }

    /// Returns the exchange of a request that could not be read. It ends the connection.
    pub fn rejected() -> Self {
        Self {
            version: Version::Http11,
            is_head: false,
            persistent: false,
            takes_trailers: false,
            head_bytes: 0,
        }
    }
}

/// The framing of the bytes after the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyFraming {
    /// No bytes follow.
    Nothing,
    /// The body as it is, after a `Content-Length`.
    Plain,
    /// The body in chunks.
    Chunked,
    /// The body as it is. The end of the connection is its end (HTTP/1.0 without a length).
    UntilClose,
}

/// Appends the head of `response`. Decides the framing, and ends persistence in `exchange` if the
/// framing requires that.
pub fn write_head(
    response: &Response,
    exchange: &mut Http1Exchange,
    clock: &Clock,
    out: &mut Vec<u8>,
) -> BodyFraming {
    let bodiless = Response::is_bodiless_status(response.status);
    let length = match response.body {
        // An empty body for HEAD does not say how long the body for GET would be (RFC 9110 section
        // 8.6).
        Body::Empty if exchange.is_head => None,
        _ => response.body.length(),
    };
    let framing = match length {
        _ if bodiless => BodyFraming::Nothing,
        _ if exchange.is_head => BodyFraming::Nothing,
        Some(0) => BodyFraming::Nothing,
        Some(_) if matches!(response.body, Body::Withheld(_)) => BodyFraming::Nothing,
        Some(_) if announces_trailers(response, exchange) => BodyFraming::Chunked,
        Some(_) => BodyFraming::Plain,
        None if exchange.version == Version::Http11 => BodyFraming::Chunked,
        None => BodyFraming::UntilClose,
    };
    // The head promises a body that is missing, so that only the end of the connection can end it.
    let withheld_from_get =
        matches!(response.body, Body::Withheld(1..)) && !exchange.is_head && !bodiless;
    exchange.persistent &= framing != BodyFraming::UntilClose && !withheld_from_get;

    write_status_line(response.status, out);
    response.fields.write_to(out);
    if !response.fields.has_date() {
        clock.write_date_line(out);
    }
    if framing == BodyFraming::Chunked {
        out.extend_from_slice(b"Transfer-Encoding: chunked\r\n");
    } else if let Some(length) = length
        && !bodiless
    {
        out.extend_from_slice(b"Content-Length: ");
        out.extend_from_slice(itoa::Buffer::new().format(length).as_bytes());
        out.extend_from_slice(b"\r\n");
    }
    if response.status == StatusCode::UPGRADE_REQUIRED {
        name_upgrade(response, out);
    }
    match (exchange.persistent, exchange.version) {
        (true, Version::Http11 | Version::Http2 | Version::Http3) => out.extend_from_slice(b"\r\n"),
        (true, Version::Http10) => out.extend_from_slice(b"Connection: keep-alive\r\n\r\n"),
        (false, _) => out.extend_from_slice(b"Connection: close\r\n\r\n"),
    }
    framing
}

/// Returns whether trailers will follow that the client takes. A message with `Content-Length`
/// cannot have trailers (RFC 9112 section 6.1).
fn announces_trailers(response: &Response, exchange: &Http1Exchange) -> bool {
    exchange.takes_trailers
        && exchange.version == Version::Http11
        && matches!(&response.body, Body::Stream(stream) if stream.may_have_trailers())
        && response.fields.get("trailer").is_some()
}

/// Writes the status line. An HTTP/1.1 status line is also right for HTTP/1.0 requests (RFC 9110
/// section 6.2).
pub(crate) fn write_status_line(status: StatusCode, out: &mut Vec<u8>) {
    match status {
        StatusCode::OK => out.extend_from_slice(b"HTTP/1.1 200 OK\r\n"),
        StatusCode::NOT_MODIFIED => out.extend_from_slice(b"HTTP/1.1 304 Not Modified\r\n"),
        _ => {
            out.extend_from_slice(b"HTTP/1.1 ");
            out.extend_from_slice(status.as_str().as_bytes());
            out.push(b' ');
            out.extend_from_slice(status.canonical_reason().unwrap_or("").as_bytes());
            out.extend_from_slice(b"\r\n");
        }
    }
}

/// Says that `Upgrade` is a field for this connection (RFC 9110 section 7.8), if it is there.
#[cold]
#[inline(never)]
fn name_upgrade(response: &Response, out: &mut Vec<u8>) {
    if response.fields.get("upgrade").is_some() {
        out.extend_from_slice(b"Connection: upgrade\r\n");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use kirin_http::body::{BodyStream, StreamError};
    use kirin_http::response::AnsweredBy;
    use std::task::{Context, Poll};

    struct Endless;

    impl BodyStream for Endless {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
            Poll::Pending
        }

        fn length(&self) -> Option<u64> {
            None
        }
    }

    fn write(status: u16, body: Body, mut exchange: Http1Exchange) -> (String, BodyFraming, bool) {
        let response =
            Response::new(AnsweredBy::SERVER, StatusCode::from_u16(status).unwrap(), body);
        let mut out = Vec::new();
        let framing = write_head(&response, &mut exchange, &Clock::default(), &mut out);
        (String::from_utf8(out).unwrap(), framing, exchange.persistent)
    }

    const GET: Http1Exchange = Http1Exchange {
        version: Version::Http11,
        is_head: false,
        persistent: true,
        takes_trailers: false,
        head_bytes: 0,
    };
    const HEAD: Http1Exchange = Http1Exchange { is_head: true, ..GET };
    const OLD: Http1Exchange = Http1Exchange { version: Version::Http10, ..GET };

    #[test]
    fn framing_follows_body_method_status_and_version() {
        let stream = || Body::Stream(Box::new(Endless));
        let cases = [
            (200, Body::from("hello"), GET, "Content-Length: 5\r\n", BodyFraming::Plain, true),
            (200, Body::Empty, GET, "Content-Length: 0\r\n", BodyFraming::Nothing, true),
            (200, stream(), GET, "Transfer-Encoding: chunked\r\n", BodyFraming::Chunked, true),
            (200, stream(), OLD, "Connection: close\r\n", BodyFraming::UntilClose, false),
            (200, Body::from("hello"), OLD, "Connection: keep-alive\r\n", BodyFraming::Plain, true),
            (200, Body::from("hello"), HEAD, "Content-Length: 5\r\n", BodyFraming::Nothing, true),
            (200, Body::Withheld(7), HEAD, "Content-Length: 7\r\n", BodyFraming::Nothing, true),
            (200, Body::Withheld(7), GET, "Content-Length: 7\r\n", BodyFraming::Nothing, false),
            (200, Body::Withheld(0), HEAD, "Content-Length: 0\r\n", BodyFraming::Nothing, true),
            (200, stream(), HEAD, "Date: ", BodyFraming::Nothing, true),
        ];
        for (status, body, exchange, line, framing, persistent) in cases {
            let what = format!("{status} {body:?} {exchange:?}");
            let (head, got_framing, got_persistent) = write(status, body, exchange);
            assert!(head.contains(line), "{what}: {head}");
            assert!(head.ends_with("\r\n\r\n"), "{what}: {head}");
            assert_eq!((got_framing, got_persistent), (framing, persistent), "{what}: {head}");
        }
    }

    struct WithTrailers;

    impl BodyStream for WithTrailers {
        fn poll_chunk(&mut self, _: &mut Context<'_>) -> Poll<Option<Result<Bytes, StreamError>>> {
            Poll::Pending
        }

        fn length(&self) -> Option<u64> {
            Some(5)
        }

        fn may_have_trailers(&self) -> bool {
            true
        }
    }

    #[test]
    fn a_length_gives_way_to_trailers_that_are_announced_and_taken() {
        let takes = Http1Exchange { takes_trailers: true, ..GET };
        for (exchange, announced, framing) in [
            (takes, true, BodyFraming::Chunked),
            (takes, false, BodyFraming::Plain),
            (GET, true, BodyFraming::Plain),
            (Http1Exchange { takes_trailers: true, ..OLD }, true, BodyFraming::Plain),
            (Http1Exchange { takes_trailers: true, ..HEAD }, true, BodyFraming::Nothing),
        ] {
            let mut response = Response::new(
                AnsweredBy::new("proxy"),
                StatusCode::OK,
                Body::Stream(Box::new(WithTrailers)),
            );
            if announced {
                response.fields.push("Trailer", "X-Sum");
            }
            let mut out = Vec::new();
            let got = write_head(&response, &mut exchange.clone(), &Clock::default(), &mut out);
            let head = String::from_utf8(out).unwrap();
            assert_eq!(got, framing, "{exchange:?} {announced}: {head}");
            let has_length = framing != BodyFraming::Chunked;
            assert_eq!(
                head.contains("Content-Length: 5\r\n"),
                has_length,
                "{exchange:?} {announced}: {head}"
            );
            assert_eq!(
                head.contains("Transfer-Encoding"),
                !has_length,
                "{exchange:?} {announced}: {head}"
            );
        }
    }

    #[test]
    fn statuses_without_a_body_have_no_length() {
        for status in [204, 304] {
            let (head, framing, persistent) = write(status, Body::from("left out"), GET);
            assert!(
                !head.contains("Content-Length") && !head.contains("Transfer-Encoding"),
                "{head}"
            );
            assert_eq!((framing, persistent), (BodyFraming::Nothing, true));
        }
    }

    #[test]
    fn a_head_without_a_known_length_does_not_invent_one() {
        for body in [Body::Empty, Body::Stream(Box::new(Endless))] {
            let (head, framing, persistent) = write(200, body, HEAD);
            assert!(
                !head.contains("Content-Length") && !head.contains("Transfer-Encoding"),
                "{head}"
            );
            assert_eq!((framing, persistent), (BodyFraming::Nothing, true));
        }
    }

    #[test]
    fn the_upgrade_field_of_a_426_response_is_named_by_connection() {
        for (status, upgrade, persistent, options) in [
            (426, true, true, &["upgrade"][..]),
            (426, true, false, &["upgrade", "close"]),
            (426, false, true, &[]),
            (200, true, true, &[]),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let mut response = Response::new(AnsweredBy::new("proxy"), status, Body::Empty);
            if upgrade {
                response.fields.push("Upgrade", "TLS/1.2, HTTP/1.1");
            }
            let mut out = Vec::new();
            let mut exchange = Http1Exchange { persistent, ..GET };
            write_head(&response, &mut exchange, &Clock::default(), &mut out);
            let head = String::from_utf8(out).unwrap();
            let named: Vec<_> =
                head.lines().filter_map(|line| line.strip_prefix("Connection: ")).collect();
            assert_eq!(named, options, "{head}");
        }
    }

    #[test]
    fn an_upstreams_date_is_kept() {
        let mut response = Response::new(AnsweredBy::new("app"), StatusCode::OK, Body::Empty);
        response.fields.push("Date", "Sun, 06 Nov 1994 08:49:37 GMT");
        let mut out = Vec::new();
        write_head(&response, &mut GET.clone(), &Clock::default(), &mut out);
        assert_eq!(String::from_utf8(out).unwrap().matches("Date: ").count(), 1);
    }
}
