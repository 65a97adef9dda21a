//! The `rewrite` of a route: places look below another path than the client asked for.
//!
//! Pure; made when the configuration is checked.

use kirin_http::percent::{self, NOT_IN_PATH};

/// The prefix that replaces the path of the route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// Percent-encoded, without a slash at its end.
    prefix: String,
}

impl Rewrite {
    /// Creates a rewrite to `prefix`, which is written decoded as the path of a route is. The error
    /// says what is allowed.
    pub fn new(prefix: &str) -> Result<Self, String> {
        let is_resolved = !prefix.contains("//")
            && !prefix.split('/').any(|segment| matches!(segment, "." | ".."));
        let is_clean =
            !prefix.contains(['?', '#', '%', '\\']) && !prefix.contains(char::is_control);
        if !prefix.starts_with('/') || !is_resolved || !is_clean {
            return Err(format!(
                "rewrite `{prefix}`: it must begin with `/` and is written decoded, without `%`, `?`, `#`, `\\`, `//` and `..`"
            ));
        }
        let prefix = prefix.trim_end_matches('/').as_bytes();
        Ok(Self { prefix: percent::encode(prefix, NOT_IN_PATH).into_owned() })
    }

    /// Returns the path that places see, for this rest below the route.
    pub fn path(&self, rest: &str) -> String {
        match (self.prefix.as_str(), rest) {
            ("", "") => "/".into(),
            (prefix, rest) => [prefix, rest].concat(),
        }
    }

    /// Returns whether `path` is one that places may see.
    pub fn leads_to(&self, path: &[u8]) -> bool {
        let rest = path.strip_prefix(self.prefix.as_bytes());
        rest.is_some_and(|rest| rest.is_empty() || matches!(rest[0], b'/' | b'?'))
    }

    /// Returns what an application sees: `SCRIPT_NAME`, and the path for `PATH_INFO`. An
    /// application whose route's path is removed (`rewrite = "/"`) is mounted there, as with
    /// Plack::App::URLMap, and makes the right links.
    pub fn mount<'a>(&self, route_path: &'a str, rest: &str) -> (&'a str, String) {
        match self.prefix.as_str() {
            "" => (route_path, rest.to_owned()),
            prefix => ("", [prefix, rest].concat()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_look_below_the_other_path() {
        for (prefix, rest, path, script_name, path_info) in [
            ("/", "/a/b", "/a/b", "/shop", "/a/b"),
            ("/", "/", "/", "/shop", "/"),
            ("/", "", "/", "/shop", ""),
            ("/v2/", "/a", "/v2/a", "", "/v2/a"),
            ("/v2", "", "/v2", "", "/v2"),
            ("/caf\u{e9} x", "/a", "/caf%C3%A9%20x/a", "", "/caf%C3%A9%20x/a"),
        ] {
            let rewrite = Rewrite::new(prefix).unwrap();
            assert_eq!(rewrite.path(rest), path);
            assert_eq!(
                rewrite.mount("/shop", rest),
                (script_name, path_info.to_owned()),
                "{prefix} {rest}"
            );
        }
    }

    #[test]
    fn a_prefix_that_is_no_decoded_path_is_refused() {
        for prefix in ["", "x", "//x", "/a//b", "/../a", "/a/.", "/a%20b", "/a?b", "/a\\b", "/a\nb"]
        {
            assert!(Rewrite::new(prefix).unwrap_err().contains("begin with `/`"), "{prefix:?}");
        }
    }
}
