//! The effect of unsafe requests on stored responses (RFC 9111 section 4.4). The response to the
//! target of the request is invalidated. So are those to the targets in `Location` and
//! `Content-Location` on the same host.

use http::{Method, StatusCode};
use kirin_http::FieldLines;

/// A path and a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// The path as it was sent.
    pub path: String,
    /// The query without `?`.
    pub query: Option<String>,
}

/// The target of a request, with its scheme and host.
#[derive(Clone, Copy, Debug)]
pub struct RequestTarget<'a> {
    /// The path.
    pub path: &'a str,
    /// The query.
    pub query: Option<&'a str>,
    /// Whether the scheme is https.
    pub secure: bool,
    /// The host.
    pub host: &'a str,
}

/// The methods that are registered as safe (RFC 9110 section 16.1).
const SAFE: [&str; 7] = ["GET", "HEAD", "OPTIONS", "TRACE", "PROPFIND", "REPORT", "SEARCH"];

/// Returns whether a request with this method invalidates stored responses if it is answered with
/// this status. Unknown methods are unsafe.
pub fn invalidates(method: &Method, status: StatusCode) -> bool {
    !SAFE.contains(&method.as_str()) && (status.is_success() || status.is_redirection())
}

/// Returns the targets whose stored responses a request invalidates.
pub fn targets(requested: &RequestTarget<'_>, response: &FieldLines) -> Vec<Target> {
    let own = Target { path: requested.path.to_owned(), query: requested.query.map(str::to_owned) };
    let mut targets = vec![own];
    for name in ["location", "content-location"] {
        let reference = response.get(name).and_then(|value| std::str::from_utf8(value).ok());
        if let Some(target) = reference.and_then(|reference| resolve(requested, reference))
            && !targets.contains(&target)
        {
            targets.push(target);
        }
    }
    targets
}

/// Resolves a reference. Returns `None` if its origin differs from that of the request, because a
/// site must not invalidate the responses of another one (section 4.4).
fn resolve(requested: &RequestTarget<'_>, reference: &str) -> Option<Target> {
    let reference = reference.split('#').next().unwrap_or(reference);
    let scheme = if requested.secure { "https" } else { "http" };
    let rest = match reference.split_once("://") {
        Some((other, rest)) if !other.contains(['/', '?']) => {
            other.eq_ignore_ascii_case(scheme).then_some(rest)?
        }
        _ => match reference.strip_prefix("//") {
            Some(rest) => rest,
            None => return Some(relative(requested.path, reference)),
        },
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let is_same = authority.eq_ignore_ascii_case(requested.host);
    is_same.then(|| match target.starts_with('/') {
        true => split(target),
        false => split(&format!("/{target}")),
    })
}

/// Resolves a reference without an authority. Dot segments are kept. Such a target is never found
/// in the cache, which is acceptable.
fn relative(base: &str, reference: &str) -> Target {
    if reference.starts_with('/') {
        return split(reference);
    }
    if reference.is_empty() || reference.starts_with('?') {
        return split(&format!("{base}{reference}"));
    }
    let directory = base.rfind('/').map_or("/", |slash| base.get(..=slash).unwrap_or("/"));
    split(&format!("{directory}{reference}"))
}

fn split(target: &str) -> Target {
    match target.split_once('?') {
        None => Target { path: target.to_owned(), query: None },
        Some((path, query)) => Target { path: path.to_owned(), query: Some(query.to_owned()) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const REQUESTED: RequestTarget<'static> =
        RequestTarget { path: "/posts/new", query: Some("a=b"), secure: true, host: "example.org" };

    #[test]
    fn unsafe_methods_invalidate_when_they_succeed() {
        let status = |code| StatusCode::from_u16(code).unwrap();
        for (method, code, expected) in [
            ("POST", 201, true),
            ("POST", 303, true),
            ("POST", 400, false),
            ("DELETE", 204, true),
            ("PUT", 500, false),
            ("PURGEIT", 200, true),
            ("GET", 200, false),
            ("HEAD", 200, false),
            ("OPTIONS", 204, false),
            ("PROPFIND", 207, false),
            ("REPORT", 207, false),
            ("PROPPATCH", 207, true),
        ] {
            let method = Method::from_bytes(method.as_bytes()).unwrap();
            assert_eq!(invalidates(&method, status(code)), expected, "{method} {code}");
        }
    }

    #[test]
    fn location_fields_of_the_same_origin_are_invalidated() {
        for (location, expected) in [
            ("/posts/7", Some(("/posts/7", None))),
            ("/posts/7?x#y", Some(("/posts/7", Some("x")))),
            ("7", Some(("/posts/7", None))),
            ("?page=2", Some(("/posts/new", Some("page=2")))),
            ("https://example.org/posts/7", Some(("/posts/7", None))),
            ("HTTPS://EXAMPLE.org?x", Some(("/", Some("x")))),
            ("//example.org/b", Some(("/b", None))),
            ("http://example.org/b", None),
            ("https://example.com/b", None),
            ("https://example.org:8443/b", None),
            ("//evil/b", None),
            ("/r?to=https://example.com/", Some(("/r", Some("to=https://example.com/")))),
        ] {
            let mut fields = FieldLines::new();
            fields.push("Location", location);
            let found = targets(&REQUESTED, &fields);
            assert_eq!(found[0], Target { path: "/posts/new".into(), query: Some("a=b".into()) });
            let expected = expected.map(|(path, query): (&str, Option<&str>)| Target {
                path: path.into(),
                query: query.map(Into::into),
            });
            assert_eq!(found.get(1), expected.as_ref(), "{location}");
        }
        let mut fields = FieldLines::new();
        fields.push("Location", "/posts/7");
        fields.push("Content-Location", "/posts/7");
        assert_eq!(targets(&REQUESTED, &fields).len(), 2);
    }

    proptest! {
        #[test]
        fn no_reference_panics(reference in "\\PC{0,40}", path in "\\PC{0,10}") {
            resolve(&RequestTarget { path: &path, ..REQUESTED }, &reference);
        }
    }
}
