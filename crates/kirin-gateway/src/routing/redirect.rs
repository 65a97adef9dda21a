//! The `redirect` of a route: everything below its path is elsewhere.
//!
//! Pure; made when the configuration is checked.

use http::StatusCode;
use kirin_http::{AnsweredBy, Body, RequestPath, Response};

use super::path_pattern::PathPattern;
use super::path_template::PathTemplate;

/// The target to which the requests of a route are redirected. The rest of the path and the query
/// are kept.
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
        let host_and_path =
            target.strip_prefix("https://").or_else(|| target.strip_prefix("http://"));
        let is_uri = host_and_path.is_some_and(|rest| !rest.is_empty() && !rest.starts_with('/'));
        let is_path = target.starts_with('/') && !target.starts_with("//");
        let is_clean =
            target.bytes().all(|byte| byte.is_ascii_graphic() && !b"\"<>\\^`|?#@".contains(&byte));
        if !(is_uri || is_path) || !is_clean {
            return Err(format!(
                "redirect `{target}`: it must be `/PATH`, `http://HOST/…` or `https://HOST/…`, percent-encoded, without `?`, `#` and `@`"
            ));
        }
        let host = host_and_path.and_then(|rest| rest.split('/').next()).unwrap_or_default();
        if host.contains(['{', '}']) {
            return Err(format!("redirect `{target}`: a name may stand in the path only"));
        }
        let template = PathTemplate::parse(target, pattern, str::to_owned)
            .map_err(|error| format!("redirect `{target}`: {error}"))?;
        let status =
            StatusCode::from_u16(status).ok().filter(|status| STATUSES.contains(&status.as_u16()));
        let status = status.ok_or("redirect_status: allowed are 301, 302, 303, 307 and 308")?;
        Ok(Self { target: template, status })
    }

    /// Returns where a request is redirected to, without its query. `sent` is the path of a request
    /// of the route `pattern`.
    pub fn target(&self, sent: &RequestPath<'_>, pattern: &PathPattern) -> String {
        let mut target = self.target.fill(sent).into_owned();
        let rest = pattern.rest(sent);
        if !rest.is_empty() {
            target.truncate(target.trim_end_matches('/').len());
            target.push_str(&rest);
        }
        target
    }

    /// Returns the response to a request. `sent` is the path of a request of the route `pattern`.
    pub fn respond(
        &self,
        sent: &RequestPath<'_>,
        pattern: &PathPattern,
        query: Option<&str>,
    ) -> Response {
        let mut location = self.target(sent, pattern);
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

    fn location(route: &str, target: &str, sent: &str, query: Option<&str>) -> String {
        let pattern = PathPattern::parse(route).unwrap();
        let redirect = Redirect::new(target, 308, &pattern).unwrap();
        let response = redirect.respond(&RequestPath::parse(sent).unwrap(), &pattern, query);
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
            ("https://{id}.example.org/", "path only"),
            ("https://{id}", "path only"),
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
