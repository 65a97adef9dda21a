//! The redirect from `dir` to `dir/`, so that relative links in its index page are correct.

use http::StatusCode;
use kirin_http::{Body, Response};

use crate::file_name::FileName;

/// A redirect to a directory's own path.
pub(crate) struct DirectoryRedirect {
    path: String,
}

impl DirectoryRedirect {
    pub(crate) fn to(path: &FileName) -> Self {
        Self { path: path.to_directory_uri() }
    }

    /// Returns the response. `Location` is a path without a host. So the host that the client used
    /// stays correct behind any proxy, and the response never contains a `Host` that an attacker
    /// chose.
    pub(crate) fn respond(&self, query: Option<&str>) -> Response {
        let mut location = self.path.clone();
        if let Some(query) = query {
            location.push('?');
            location.push_str(query);
        }
        let mut response =
            Response::new(crate::ANSWERED_BY, StatusCode::MOVED_PERMANENTLY, Body::Empty);
        response.fields.push("Location", location);
        response
    }

    pub(crate) fn bytes(&self) -> usize {
        self.path.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_redirect_never_leads_to_another_host() {
        for (raw, query, expected) in [
            ("/docs", None, "/docs/"),
            ("/docs", Some("a=b&c"), "/docs/?a=b&c"),
            ("/docs", Some(""), "/docs/?"),
            ("/docs", Some("//evil.com"), "/docs/?//evil.com"),
            ("//evil.com", None, "/evil.com/"),
            ("///evil.com", None, "/evil.com/"),
            ("//evil.com/%2e%2e", None, "/"),
            ("/.//evil.com", None, "/evil.com/"),
            ("/x/..//evil.com", None, "/evil.com/"),
            ("/\\evil.com", None, "/%5Cevil.com/"),
            ("/%5cevil.com", None, "/%5Cevil.com/"),
            ("/a b", None, "/a%20b/"),
            ("/a%3fb%23c", None, "/a%3Fb%23c/"),
            ("/a%25b", None, "/a%25b/"),
            ("/http:%5c%5cevil", None, "/http%3A%5C%5Cevil/"),
            ("/d\u{e9}j\u{e0}", None, "/d%C3%A9j%C3%A0/"),
            ("/%ff", None, "/%FF/"),
            ("/a/../b", None, "/b/"),
        ] {
            let path = FileName::parse(raw).unwrap();
            let response = DirectoryRedirect::to(&path).respond(query);
            let location = response.fields.get("location").map(String::from_utf8_lossy);
            assert_eq!(location.as_deref(), Some(expected), "{raw}");
        }
    }
}
