//! The `redirect` of a route: everything below its path is elsewhere.
//!
//! Pure; made when the configuration is checked.

use http::StatusCode;
use kirin_http::{AnsweredBy, Body, RequestPath, Response};

use super::path_pattern::PathPattern;
use super::path_template::PathTemplate;
use super::variables::{RequestValues, Variable};

/// The target to which the requests of a route are redirected. The rest of the path and the query
/// are kept. A target with `{path}` has the rest already.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Redirect {
    target: PathTemplate,
    status: StatusCode,
}

/// The status codes of redirects.
pub const STATUSES: [u16; 5] = [301, 302, 303, 307, 308];

impl Redirect {
    /// Creates a redirect of the route `pattern` to a path or an `http` or `https` URI. The path
    /// may have names of the route's segments. The error says what is allowed.
    pub fn new(target: &str, status: u16, pattern: &PathPattern) -> Result<Self, String> {
        if !is_target(target) {
            return Err(format!(
                "redirect `{target}`: it must be `/PATH`, `http://HOST/…` or `https://HOST/…`, percent-encoded, without `?`, `#` and `@`"
            ));
        }
        let host = host_and_path(target).and_then(|rest| rest.split('/').next());
        let host = host.unwrap_or_default();
        // Other values would let a stranger choose the host.
        let host = host.split("{path}").next().unwrap_or_default();
        if host.replace("{host}", "").contains(['{', '}']) {
            return Err(format!(
                "redirect `{target}`: only `{{host}}` may stand in a host, other names in the path"
            ));
        }
        let template = PathTemplate::parse(target, pattern, str::to_owned)
            .map_err(|error| format!("redirect `{target}`: {error}"))?;
        if template.has(&Variable::User) {
            return Err(format!("redirect `{target}`: `{{user}}` is not known, nobody is asked"));
        }
        Ok(Self { target: template, status: redirect_status(status)? })
    }

    /// Returns where requests of the route `pattern` with the path `sent` are redirected to,
    /// without their query. Returns `None` if that depends on other properties of a request.
    pub fn fixed_target(&self, sent: &RequestPath<'_>, pattern: &PathPattern) -> Option<String> {
        let target = self.target.fill_path(sent)?.into_owned();
        Some(with_rest(target, &pattern.rest(sent)))
    }

    /// Returns the response to a request of the route `pattern`.
    pub fn respond(&self, request: &RequestValues<'_>, pattern: &PathPattern) -> Response {
        if request.head.host.is_empty() && self.target.has(&Variable::Host) {
            return Response::error(StatusCode::BAD_REQUEST);
        }
        let mut location = self.target.fill(request).into_owned();
        if !self.target.has(&Variable::Path) {
            location = with_rest(location, &pattern.rest(request.path));
        }
        if let Some(query) = request.head.query {
            location.push('?');
            location.push_str(query);
        }
        let mut response = Response::new(AnsweredBy::SERVER, self.status, Body::Empty);
        response.fields.push("Location", location);
        response
    }
}

/// Returns the status of redirects with this number. The error says what is allowed.
pub fn redirect_status(number: u16) -> Result<StatusCode, &'static str> {
    let status = StatusCode::from_u16(number).ok().filter(|_| STATUSES.contains(&number));
    status.ok_or("redirect_status: allowed are 301, 302, 303, 307 and 308")
}

/// Returns whether `text` may be the target of a redirect: a path, or an `http` or `https` URI,
/// without query and fragment. No rest of a client's path can make it lead to another host.
pub fn is_target(text: &str) -> bool {
    let is_uri = host_and_path(text).is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
    let is_path = text.starts_with('/') && !text.starts_with("//");
    let is_clean = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`|?#@".contains(&byte);
    (is_uri || is_path) && text.bytes().all(is_clean)
}

/// Returns what follows the scheme of an `http` or `https` URI.
fn host_and_path(target: &str) -> Option<&str> {
    ["https://", "http://", "{scheme}://"].iter().find_map(|start| target.strip_prefix(start))
}

/// Returns `target` with the rest of a path behind it. The rest is empty or begins with `/`.
pub fn with_rest(mut target: String, rest: &str) -> String {
    if !rest.is_empty() {
        target.truncate(target.trim_end_matches('/').len());
        target.push_str(rest);
    }
    target
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_requests::with_request;

    fn location(route: &str, target: &str, sent: &str, query: Option<&str>) -> String {
        let pattern = PathPattern::parse(route).unwrap();
        let redirect = Redirect::new(target, 308, &pattern).unwrap();
        let query = query.map(|query| format!("?{query}")).unwrap_or_default();
        let head = format!("GET {sent}{query} HTTP/1.1\r\nHost: WWW.h.example:80\r\nX-A: /..//x");
        let response = with_request(&head, |request| redirect.respond(&request.values(), &pattern));
        String::from_utf8(response.fields.get("location").unwrap().to_vec()).unwrap()
    }

    #[test]
    fn values_of_a_request_stay_in_their_places() {
        for (target, sent, query, expected) in [
            (
                "https://{host}{path}",
                "/old//a%20b/./c",
                Some("q"),
                "https://www.h.example/old/a%20b/c?q",
            ),
            ("{scheme}://{host}", "/old/x", None, "http://www.h.example/x"),
            ("https://{host}:8443/", "/old/x", None, "https://www.h.example:8443/x"),
            ("https://new.{host}/{path}", "/old", None, "https://new.www.h.example/old"),
            ("/{path}", "//evil.example/x", None, "/evil.example/x"),
            ("/{header.X-A}", "/old", None, "/_..__x"),
            ("/s/{query.a}/t", "/old", Some("a=../../b%0d%0a"), "/s/.._.._b__/t?a=../../b%0d%0a"),
            ("/s/{query.a}/t", "/old", Some("a=.."), "/s/__/t?a=.."),
            ("/s/{query.a}/t", "/old", Some("a=%5c%5cevil"), "/s/__evil/t?a=%5c%5cevil"),
            ("/s/{query.a}/t", "/old", None, "/s/_/t"),
            ("/s/{query.a}", "/old", Some("a=%3Fb%23c%40d"), "/s/%3Fb%23c@d?a=%3Fb%23c%40d"),
            ("/{scheme}/{client}/{cookie.a}", "/old", None, "/http/192.0.2.7/_"),
        ] {
            assert_eq!(location("/old", target, sent, query), expected, "{target}");
        }
        let root = PathPattern::parse("/").unwrap();
        for target in ["https://{header.x}/", "https://{host}.{query.a}", "https://{client}"] {
            assert!(Redirect::new(target, 308, &root).unwrap_err().contains("only `{host}`"));
        }
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
            assert_eq!(location("/old", target, &format!("/old{rest}"), query), expected);
        }
    }

    #[test]
    fn a_redirect_may_have_names_of_the_route() {
        for (route, target, sent, expected) in [
            ("/users/{id}", "/u/{id}", "/users/7", "/u/7"),
            ("/users/{id}", "/u/{id}/", "/users/7/a", "/u/7/a"),
            ("/{id}", "https://example.org/{id}.html", "/a%2e", "https://example.org/a..html"),
            ("/{id}", "/{id}/x", "/%5cevil.example%0d%0aA:b", "/%5Cevil.example%0D%0AA:b/x"),
            ("/{id}/x", "/{id}", "//evil.example/x", "/evil.example"),
            ("*.htm", "/old", "/a/b.htm", "/old/a/b.htm"),
            ("= /a/{b}", "/{b}", "/a/c", "/c"),
        ] {
            assert_eq!(location(route, target, sent, None), expected, "{route}");
        }
        let pattern = PathPattern::parse("/users/{id}").unwrap();
        for (target, expected) in [
            ("https://{id}.example.org/", "in the path"),
            ("https://{id}", "in the path"),
            ("/{name}", "its names are `{id}`"),
            ("/{id", "no `}`"),
        ] {
            let error = Redirect::new(target, 308, &pattern).unwrap_err();
            assert!(error.contains(expected) && error.contains(target), "{error}");
        }
    }

    #[test]
    fn an_invalid_redirect_target_is_refused() {
        let root = PathPattern::parse("/").unwrap();
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
            let error = Redirect::new(target, 301, &root).unwrap_err();
            assert!(error.contains("https://HOST"), "{target}");
        }
        for status in [200, 300, 304, 306, 309, 0, 1000] {
            let error = Redirect::new("/x", status, &root).unwrap_err();
            assert!(error.contains("301, 302"), "{status}");
        }
    }
}
