//! Heads in the form of HTTP/2: requests from what `request_head` has encoded, and responses for
//! the client. No I/O.

use http::header::{CONTENT_LENGTH, HeaderName, HeaderValue, TE, TRAILER};
use http::uri::{Authority, PathAndQuery};
use http::{HeaderMap, Request, Uri, Version};
use kirin_http::FieldLines;
use kirin_http::request::parse_content_length;
use kirin_http::response_head::BadResponse;

use crate::address::ServerScheme;
use crate::request_head::{OutgoingFraming, OutgoingHead};

/// Fields of a response that are not passed on: those of the connection, which HTTP/2 forbids (RFC
/// 9113 section 8.2.2), and those for proxies.
const DROPPED_FIELDS: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "transfer-encoding",
    "upgrade",
    "trailer",
    "proxy-authenticate",
    "proxy-authentication-info",
];

/// Builds the request for a server whose own host is `authority`. Returns `None` if HTTP/2 cannot
/// express its target or host.
pub(crate) fn request(
    head: &OutgoingHead,
    scheme: ServerScheme,
    authority: &str,
    framing: OutgoingFraming,
) -> Option<Request<()>> {
    let mut request = Request::new(());
    *request.method_mut() = head.method.clone();
    *request.version_mut() = Version::HTTP_2;
    let host = head.host().filter(|host| !host.is_empty()).unwrap_or(authority);
    let mut uri = http::uri::Parts::default();
    uri.scheme = Some(if scheme == ServerScheme::Https {
        http::uri::Scheme::HTTPS
    } else {
        http::uri::Scheme::HTTP
    });
    uri.authority = Some(Authority::try_from(host).ok()?);
    uri.path_and_query = Some(PathAndQuery::try_from(head.target()).ok()?);
    *request.uri_mut() = Uri::from_parts(uri).ok()?;
    let fields = request.headers_mut();
    for (name, value) in head.fields() {
        // These were valid field lines, so this does not fail.
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            fields.try_append(name, value).ok()?;
        }
    }
    if let OutgoingFraming::Length(length) = framing {
        fields.insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    if head.takes_trailers {
        fields.insert(TE, HeaderValue::from_static("trailers"));
    }
    if let Some(trailer) = head.trailer.as_ref().filter(|_| framing != OutgoingFraming::Nothing) {
        fields.insert(TRAILER, HeaderValue::from_bytes(trailer).ok()?);
    }
    Some(request)
}

/// Returns the fields of a response that are forwarded to the client. `via` is Kirin's name in
/// `Via`.
pub(crate) fn fields(headers: &HeaderMap, via: Option<&str>) -> Result<FieldLines, BadResponse> {
    let bytes =
        headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum::<usize>();
    let mut fields = FieldLines::with_capacity(bytes + 32);
    for (name, value) in headers {
        if name != CONTENT_LENGTH && !DROPPED_FIELDS.contains(&name.as_str()) {
            fields.try_push(name.as_str().as_bytes(), value.as_bytes())?;
        }
    }
    if let Some(name) = via {
        fields.try_push(b"Via", &[b"2.0 ", name.as_bytes()].concat())?;
    }
    Ok(fields)
}

/// Adds the announcement of trailers.
pub(crate) fn announce_trailers(
    headers: &HeaderMap,
    fields: &mut FieldLines,
) -> Result<(), BadResponse> {
    for names in headers.get_all(TRAILER) {
        fields.try_push(b"Trailer", names.as_bytes())?;
    }
    Ok(())
}

/// Returns the length of the body in bytes, if the response announces it.
pub(crate) fn length(headers: &HeaderMap) -> Option<u64> {
    parse_content_length(headers.get(CONTENT_LENGTH)?.as_bytes()).ok()
}
