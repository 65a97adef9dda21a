//! Response heads: what `response_writer` is for HTTP/1.

use crate::clock::Clock;
use crate::response::Response;
use http::header::{CONNECTION, CONTENT_LENGTH, DATE, HeaderName, HeaderValue, TRANSFER_ENCODING, UPGRADE};
use http::{HeaderMap, StatusCode};

/// Fields of a connection, which HTTP/2 has no place for (RFC 9113 section 8.2.2).
static OF_A_CONNECTION: [HeaderName; 5] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Fields that are added here.
const OF_OURS: usize = 2;

/// The head of `response`.
pub(super) fn head(response: &Response, clock: &Clock) -> http::Response<()> {
    let mut head = http::Response::new(());
    *head.status_mut() = response.status;
    *head.headers_mut() = fields(&response.fields);
    if !response.fields.has_date() {
        clock.now();
        head.headers_mut().insert(DATE, clock.date());
    }
    if let Some(length) = response.body.length()
        && !Response::is_bodiless_status(response.status)
    {
        head.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    head
}

/// An informational head.
pub(super) fn informational(status: StatusCode, lines: &crate::FieldLines) -> http::Response<()> {
    let mut head = http::Response::new(());
    *head.status_mut() = status;
    *head.headers_mut() = fields(lines);
    head
}

fn fields(lines: &crate::FieldLines) -> HeaderMap {
    let mut fields = HeaderMap::with_capacity(lines.count() + OF_OURS);
    for (name, value) in lines.iter() {
        let Ok(name) = HeaderName::from_bytes(name) else { continue };
        if !OF_A_CONNECTION.contains(&name) {
            add(&mut fields, name, value);
        }
    }
    fields
}

/// Field lines have been checked where they were made, so that nothing is left out here.
fn add(fields: &mut HeaderMap, name: HeaderName, value: &[u8]) {
    if let Ok(value) = HeaderValue::from_bytes(value) {
        let _ = fields.try_append(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::body::Body;
    use crate::response::Place;

    #[test]
    fn a_head_has_date_and_length_and_nothing_of_a_connection() {
        let mut response = Response::new(Place::App, StatusCode::OK, Body::from("hello"));
        for (name, value) in
            [("Content-Type", "text/plain"), ("Upgrade", "x"), ("Set-Cookie", "a"), ("Set-Cookie", "b")]
        {
            response.fields.push(name, value);
        }
        let head = head(&response, &Clock::default());
        let mut names: Vec<_> = head.headers().iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        assert_eq!(names, ["content-length", "content-type", "date", "set-cookie", "set-cookie"]);
        assert_eq!(head.headers()["content-length"], "5");
    }

    #[test]
    fn statuses_without_a_body_have_no_length() {
        let response = Response::new(Place::Files, StatusCode::NOT_MODIFIED, Body::from("left out"));
        assert!(!head(&response, &Clock::default()).headers().contains_key(CONTENT_LENGTH));
    }
}
