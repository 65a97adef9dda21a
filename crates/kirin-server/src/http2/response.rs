//! Response heads over HTTP/2: the counterpart of `http1::response_writer`.

use http::header::{
    CONNECTION, CONTENT_LENGTH, DATE, HeaderName, HeaderValue, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{HeaderMap, StatusCode};
use kirin_http::body::Body;
use kirin_http::field_lines::FieldLines;
use kirin_http::response::Response;

use super::prepared_heads;
use crate::clock::Clock;

/// Connection-specific fields, which HTTP/2 does not have (RFC 9113 section 8.2.2). `TE` is a field
/// of requests only. h2 does not send a response that has one.
static CONNECTION_SPECIFIC: [HeaderName; 6] = [
    CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// Returns the head of `response`.
pub(super) fn head(response: &Response, is_head: bool, clock: &Clock) -> http::Response<()> {
    let mut head = http::Response::new(());
    *head.status_mut() = response.status;
    *head.headers_mut() = fields(&response.fields);
    if !response.fields.has_date() {
        clock.now();
        head.headers_mut().insert(DATE, clock.date());
    }
    let length = match response.body {
        // An empty body for HEAD does not say how long the body for GET would be (RFC 9110 section
        // 8.6).
        Body::Empty if is_head => None,
        _ if Response::is_bodiless_status(response.status) => None,
        _ => response.body.length(),
    };
    if let Some(length) = length {
        head.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    head
}

/// Returns the head of an informational response.
pub(super) fn informational(status: StatusCode, lines: &FieldLines) -> http::Response<()> {
    let mut head = http::Response::new(());
    *head.status_mut() = status;
    *head.headers_mut() = fields(lines);
    head
}

fn fields(lines: &FieldLines) -> HeaderMap {
    let mut fields = prepared_heads::fields(lines.prepared(), || {
        let mut fields = HeaderMap::new();
        lines.iter_prepared().for_each(|line| add(&mut fields, line));
        fields
    });
    lines.iter_added().for_each(|line| add(&mut fields, line));
    fields
}

/// Adds a field line. Lines were checked where they were made, so that none is left out here.
fn add(fields: &mut HeaderMap, (name, value): (&[u8], &[u8])) {
    // Blanks around a value would make the response malformed (RFC 9113 section 8.2.1).
    let value = HeaderValue::from_bytes(value.trim_ascii());
    let (Ok(name), Ok(value)) = (HeaderName::from_bytes(name), value) else {
        return;
    };
    if !CONNECTION_SPECIFIC.contains(&name) {
        let _ = fields.try_append(name, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_http::response::AnsweredBy;

    #[test]
    fn a_head_has_date_and_length_and_no_connection_fields() {
        let mut response =
            Response::new(AnsweredBy::new("app"), StatusCode::OK, Body::from("hello"));
        for (name, value) in [
            ("Content-Type", "text/plain"),
            ("Upgrade", "x"),
            ("TE", "gzip"),
            ("X-Blanks", " \ta b "),
            ("Set-Cookie", "a"),
            ("Set-Cookie", "b"),
        ] {
            response.fields.push(name, value);
        }
        let head = head(&response, false, &Clock::default());
        let mut names: Vec<_> = head.headers().iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        let expected =
            ["content-length", "content-type", "date", "set-cookie", "set-cookie", "x-blanks"];
        assert_eq!(names, expected);
        assert_eq!(head.headers()["x-blanks"], "a b");
        assert_eq!(head.headers()["content-length"], "5");
    }

    #[test]
    fn statuses_without_a_body_have_no_length() {
        let response = Response::new(
            AnsweredBy::new("files"),
            StatusCode::NOT_MODIFIED,
            Body::from("left out"),
        );
        assert!(!head(&response, false, &Clock::default()).headers().contains_key(CONTENT_LENGTH));
    }

    #[test]
    fn a_head_without_a_known_length_does_not_invent_one() {
        let response = Response::new(AnsweredBy::new("app"), StatusCode::OK, Body::Empty);
        assert!(!head(&response, true, &Clock::default()).headers().contains_key(CONTENT_LENGTH));
        assert_eq!(head(&response, false, &Clock::default()).headers()[CONTENT_LENGTH], "0");
    }

    #[test]
    fn each_head_has_the_prepared_and_the_added_lines() {
        let mut prepared = FieldLines::new();
        prepared.push("ETag", "\"a\"");
        let prepared = prepared.prepare();
        for session in ["one", "two"] {
            let mut response =
                Response::new(AnsweredBy::new("store"), StatusCode::OK, Body::from("hello"));
            response.fields = prepared.clone();
            response.fields.push("Set-Cookie", session);
            let head = head(&response, false, &Clock::default());
            assert_eq!(
                (&head.headers()["etag"], &head.headers()["set-cookie"]),
                (&"\"a\"".parse().unwrap(), &session.parse().unwrap())
            );
            assert_eq!(head.headers().len(), 4);
        }
    }
}
