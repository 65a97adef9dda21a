//! `fallback` and `immutable` of a route with files: the page of a single-page application, and the
//! fields that say how long files may be cached.

use http::StatusCode;
use kirin_http::field_list::members;
use kirin_http::{RequestHead, Response};

/// The fields of a request that decide whether it gets the page.
const VARYING: &str = "Accept, Sec-Fetch-Mode";

/// The value of `Cache-Control` for files that never change: a year.
const IMMUTABLE: &str = "public, max-age=31536000, immutable";

/// Returns whether a browser shows the answer as a page. `Sec-Fetch-Mode` says it; browsers send
/// that field over TLS. Without it the client must name `text/html` in `Accept`.
pub fn is_navigation(head: &RequestHead<'_>) -> bool {
    if !head.is_get_or_head() {
        return false;
    }
    if let Some(mode) = head.field("sec-fetch-mode") {
        return mode.trim_ascii() == b"navigate";
    }
    head.lines("accept").flat_map(members).any(|member| {
        let media_type = member.split(|byte| *byte == b';').next().unwrap_or_default();
        media_type.trim_ascii().eq_ignore_ascii_case(b"text/html")
    })
}

/// Adds to `Vary` the fields that decide whether a request gets the page. All responses of which
/// they decide have it, so that a cache does not confuse them.
pub fn vary(response: &mut Response) {
    let mut varying: Vec<&[u8]> = response.fields.lines("vary").collect();
    varying.push(VARYING.as_bytes());
    let varying = varying.join(&b", "[..]);
    response.fields.remove("vary");
    response.fields.push("Vary", varying);
}

/// Marks the page of an application. A browser asks each time whether it has changed.
pub fn mark_page(mut response: Response) -> Response {
    vary(&mut response);
    set_cache_control(&mut response, "no-cache");
    response
}

/// Marks a file that never changes. An error and a redirect stay as they are: the file may be there
/// a moment later.
pub fn mark_immutable(mut response: Response) -> Response {
    set_cache_control(&mut response, IMMUTABLE);
    response
}

fn set_cache_control(response: &mut Response, value: &'static str) {
    let of_file = [StatusCode::OK, StatusCode::PARTIAL_CONTENT, StatusCode::NOT_MODIFIED];
    if of_file.contains(&response.status) {
        response.fields.remove("cache-control");
        response.fields.push("Cache-Control", value);
    }
}

#[cfg(test)]
mod tests {
    use kirin_http::{AnsweredBy, Body};

    use super::*;
    use crate::request::test_requests::with_request;

    #[test]
    fn a_navigation_is_what_the_browser_says_or_accepts() {
        for (fields, expected) in [
            ("", false),
            ("Accept: */*", false),
            ("Accept: text/*", false),
            ("Accept: application/json, text/plain, */*", false),
            ("Accept: text/html", true),
            ("Accept: application/xml;q=0.9, Text/HTML ;q=0.8, */*", true),
            ("Accept: image/png\r\nAccept: text/html", true),
            ("Accept: text/htmlx, atext/html", false),
            ("Sec-Fetch-Mode: navigate", true),
            ("Sec-Fetch-Mode: navigate\r\nAccept: */*", true),
            ("Sec-Fetch-Mode: cors\r\nAccept: text/html", false),
            ("Sec-Fetch-Mode: no-cors\r\nAccept: text/html", false),
        ] {
            for (method, is_page) in [("GET", true), ("HEAD", true), ("POST", false)] {
                let head = format!("{method} /a HTTP/1.1\r\nHost: a\r\n{fields}");
                let found = with_request(head.trim_end(), |request| is_navigation(request.head));
                assert_eq!(found, expected && is_page, "{method} {fields}");
            }
        }
    }

    #[test]
    fn only_files_are_immutable_and_vary_is_extended() {
        for (status, value) in [
            (200, Some(IMMUTABLE)),
            (206, Some(IMMUTABLE)),
            (304, Some(IMMUTABLE)),
            (301, None),
            (403, None),
            (404, None),
            (416, None),
        ] {
            let status = StatusCode::from_u16(status).unwrap();
            let response = mark_immutable(Response::new(AnsweredBy::SERVER, status, Body::Empty));
            assert_eq!(response.fields.get("cache-control"), value.map(str::as_bytes), "{status}");
        }
        let mut response = Response::new(AnsweredBy::SERVER, StatusCode::OK, Body::Empty);
        response.fields.push("Vary", "Accept-Encoding");
        let response = mark_page(response);
        let expected: &[u8] = b"Accept-Encoding, Accept, Sec-Fetch-Mode";
        assert_eq!(response.fields.get("vary"), Some(expected));
        assert_eq!(response.fields.get("cache-control"), Some(&b"no-cache"[..]));
    }
}
