//! The `rewrite` of a route: places look below another path than the client asked for.
//!
//! Pure; made when the configuration is checked.

use std::borrow::Cow;

use kirin_http::percent::{self, NOT_IN_PATH};

use super::path_pattern::PathPattern;
use super::path_template::PathTemplate;
use super::variables::{RequestValues, Variable};

/// The prefix that replaces the path of the route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// Without a slash at its end. Empty for `/`.
    prefix: PathTemplate,
    is_root: bool,
}

impl Rewrite {
    /// Creates a rewrite of the route `pattern` to `prefix`, which is written decoded as the path
    /// of a route is. The error says what is allowed.
    pub fn new(prefix: &str, pattern: &PathPattern) -> Result<Self, String> {
        let is_resolved = !prefix.contains("//")
            && !prefix.split('/').any(|segment| matches!(segment, "." | ".."));
        let is_clean =
            !prefix.contains(['?', '#', '%', '\\']) && !prefix.contains(char::is_control);
        if !prefix.starts_with('/') || !is_resolved || !is_clean {
            return Err(format!(
                "rewrite `{prefix}`: it must begin with `/` and is written decoded, without `%`, `?`, `#`, `\\`, `//` and `..`"
            ));
        }
        let trimmed = prefix.trim_end_matches('/');
        let encode = |text: &str| percent::encode(text.as_bytes(), NOT_IN_PATH).into_owned();
        let template = PathTemplate::parse(trimmed, pattern, encode)
            .map_err(|error| format!("rewrite `{prefix}`: {error}"))?;
        Ok(Self { prefix: template, is_root: trimmed.is_empty() })
    }

    /// Returns the path that places see for a request of the route `pattern`. A prefix with
    /// `{path}` has the rest already.
    pub fn path(&self, request: &RequestValues<'_>, pattern: &PathPattern) -> String {
        let prefix = self.prefix.fill(request);
        let rest = match self.prefix.has(&Variable::Path) {
            true => Cow::Borrowed(""),
            false => pattern.rest(request.path),
        };
        match (prefix, rest) {
            (prefix, rest) if prefix.is_empty() && rest.is_empty() => "/".into(),
            (prefix, rest) => [prefix, rest].concat(),
        }
    }

    /// Returns the variables of the prefix.
    pub fn variables(&self) -> impl Iterator<Item = &Variable> {
        self.prefix.variables()
    }

    /// Returns whether `path` is one that places may see.
    pub fn leads_to(&self, path: &[u8]) -> bool {
        self.prefix.leads_to(path)
    }

    /// Returns what an application sees: `SCRIPT_NAME`, and the path for `PATH_INFO`. An
    /// application whose route's path is removed (`rewrite = "/"`) is mounted there, as with
    /// Plack::App::URLMap, and makes the right links.
    pub fn mount<'a>(
        &self,
        request: &RequestValues<'a>,
        pattern: &PathPattern,
    ) -> (&'a [u8], Cow<'a, str>) {
        match self.is_root {
            true => (pattern.matched(request.path), pattern.rest(request.path)),
            false => (b"", Cow::Owned(self.path(request, pattern))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_requests::with_request;

    #[test]
    fn places_look_below_the_other_path() {
        for (route, prefix, sent, path, script_name, path_info) in [
            ("/shop", "/", "/shop/a/b", "/a/b", "/shop", "/a/b"),
            ("/shop", "/", "/shop/", "/", "/shop", "/"),
            ("/shop", "/", "/shop", "/", "/shop", ""),
            ("/shop", "/v2/", "/shop/a", "/v2/a", "", "/v2/a"),
            ("/shop", "/v2", "/shop", "/v2", "", "/v2"),
            ("/shop", "/caf\u{e9} x", "/shop/a", "/caf%C3%A9%20x/a", "", "/caf%C3%A9%20x/a"),
            ("/u/{id}", "/", "/u/%E9%20/a", "/a", "/u/\u{e9} ", "/a"),
            ("/u/{id}", "/v2/{id}/x", "/u/a%20b/c", "/v2/a%20b/x/c", "", "/v2/a%20b/x/c"),
            ("*.pdf", "/docs", "/x/a.pdf", "/docs/x/a.pdf", "", "/docs/x/a.pdf"),
            ("/d/*.pdf", "/", "/d/x/a.pdf", "/x/a.pdf", "/d", "/x/a.pdf"),
            ("= /a/", "/b", "/a/", "/b", "", "/b"),
            ("= /a", "/", "/a", "/", "/a", ""),
        ] {
            let pattern = PathPattern::parse(route).unwrap();
            let rewrite = Rewrite::new(prefix, &pattern).unwrap();
            with_request(&format!("GET {sent} HTTP/1.1\r\nHost: h"), |request| {
                assert_eq!(rewrite.path(&request.values(), &pattern), path);
                let (name, info) = rewrite.mount(&request.values(), &pattern);
                let name: String = name.iter().copied().map(char::from).collect();
                assert_eq!((name.as_str(), &*info), (script_name, path_info), "{route} {prefix}");
            });
            assert!(rewrite.leads_to(path.as_bytes()), "{route} {prefix}");
        }
    }

    #[test]
    fn a_prefix_that_is_no_decoded_path_is_refused() {
        for prefix in ["", "x", "//x", "/a//b", "/../a", "/a/.", "/a%20b", "/a?b", "/a\\b", "/a\nb"]
        {
            let root = PathPattern::parse("/").unwrap();
            let error = Rewrite::new(prefix, &root).unwrap_err();
            assert!(error.contains("begin with `/`"), "{prefix:?}");
        }
        let pattern = PathPattern::parse("/{id}").unwrap();
        let error = Rewrite::new("/{name}", &pattern).unwrap_err();
        assert!(error.contains("rewrite `/{name}`") && error.contains("`{id}`"), "{error}");
    }
}
