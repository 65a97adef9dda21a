//! The `redirect` of a route: everything below its path is elsewhere.
//!
//! Pure; made when the configuration is checked.

use http::StatusCode;
use kirin_http::{AnsweredBy, Body, Response};

/// The target to which the requests of a route are redirected. The rest of the path and the query
/// are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    target: String,
    status: StatusCode,
}

/// The status codes of redirects.
pub const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

impl Redirect {
    /// Creates a redirect to a path or an `http` or `https` URI. The error says what is allowed.
    pub fn new(target: &str, status: u16) -> Result<Self, String> {
        let host_and_path =
            target.strip_prefix("https://").or_else(|| target.strip_prefix("http://"));
        let is_uri = host_and_path.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
        let is_path = target.starts_with('/') && !target.starts_with("//");
        let is_clean = target
            .bytes()
            .all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`{|}?#@".contains(&byte));
        if !(is_uri || is_path) || !is_clean {
            return Err(format!(
                "redirect `{target}`: it must be `/PATH`, `http://HOST/…` or `https://HOST/…`, percent-encoded, without `?`, `#` and `@`"
            ));
        }
        let status =
            StatusCode::from_u16(status).ok().filter(|status| STATUSES.contains(&status.as_u16()));
        let status = status.ok_or("redirect_status: allowed are 301, 302, 303, 307 and 308")?;
        Ok(Self { target: target.to_owned(), status })
    }

    /// Returns the response to a request. `rest` is the rest of its path below the route,
    /// percent-encoded.
    pub fn respond(&self, rest: &str, query: Option<&str>) -> Response {
        let mut location = self.target.clone();
        if !rest.is_empty() {
            location.truncate(location.trim_end_matches('/').len());
            location.push_str(rest);
        }
        if let Some(query) = query {
            location.push('?');
            location.push_str(query);
        }
        let mut response = Response::new(AnsweredBy::SERVER, self.status, Body::Empty);
        response.fields.push("Location", location);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location(target: &str, rest: &str, query: Option<&str>) -> String {
        let response = Redirect::new(target, 308).unwrap().respond(rest, query);
        String::from_utf8(response.fields.get("location").unwrap().to_vec()).unwrap()
    }

    #[test]
    fn the_rest_and_the_query_are_kept() {
        for (target, rest, query, expected) in [
            ("/new", "", None, "/new"),
            ("/new", "/x", Some("y"), "/new/x?y"),
            ("/new/", "/x", None, "/new/x"),
            ("/new/", "", None, "/new/"),
            ("/", "/x", Some(""), "/x?"),
            ("/", "", None, "/"),
            ("https://example.org", "/a/", None, "https://example.org/a/"),
            ("https://example.org/", "/a", Some("//b"), "https://example.org/a?//b"),
            ("https://example.org:8443/sub/", "/a", None, "https://example.org:8443/sub/a"),
        ] {
            assert_eq!(location(target, rest, query), expected);
        }
    }

    #[test]
    fn an_invalid_redirect_target_is_refused() {
        for target in [
            "",
            "new",
            "//evil.example",
            "https://",
            "https:///x",
            "ftp://x/",
            "javascript:alert(1)",
            "/a b",
            "/a\r\nb",
            "/\\x",
            "/a?b",
            "/a#b",
            "https://user@host/",
            "/caf\u{e9}",
        ] {
            assert!(Redirect::new(target, 301).unwrap_err().contains("https://HOST"), "{target}");
        }
        for status in [200, 300, 304, 306, 309, 0, 1000] {
            assert!(Redirect::new("/x", status).unwrap_err().contains("301, 302"), "{status}");
        }
    }
}
