//! Variables in values of the configuration, such as `{host}` and `{header.x}`: what a request has
//! in their places.
//!
//! Pure. A stranger controls the values. So each place that they go to encodes them: a field
//! ([`super::value_template`]), or a path or URL ([`super::path_template`]).

use std::borrow::Cow;
use std::fmt;

use kirin_http::cookies::cookie;
use kirin_http::host::canonical_host;
use kirin_http::token::is_token;
use kirin_http::{Origin, Peer, RequestHead, RequestPath, form, proxy_field, write_ip};

use super::path_pattern::PathPattern;

/// A property of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Variable {
    /// `{id}`: the segment with this number of the path, decoded.
    Segment(usize),
    /// `{host}`: the host without its port, in the form in which hosts are compared.
    Host,
    /// `{path}`: the path by which the route was found, percent-encoded.
    Path,
    /// `{query.NAME}`: the first argument of this name, decoded.
    Argument(String),
    /// `{header.NAME}`: the field, with `, ` between its lines.
    Field(String),
    /// `{cookie.NAME}`: the first cookie of this name.
    Cookie(String),
    /// `{client}`: the address of the client, or `unix:`.
    Client,
    /// `{scheme}`: `http` or `https`.
    Scheme,
    /// `{request_id}`: the id of the request.
    RequestId,
    /// `{user}`: the visitor whom the route has authenticated. Empty if it has asked nobody.
    User,
}

impl Variable {
    /// Returns whether the cache key of a request has the value already: it is of the target, the
    /// host or the scheme.
    pub fn is_of_target(&self) -> bool {
        matches!(self, Self::Segment(_) | Self::Host | Self::Path | Self::Scheme)
    }
}

/// The request that gives the values.
#[derive(Clone, Copy)]
pub struct RequestValues<'a> {
    /// The head.
    pub head: &'a RequestHead<'a>,
    /// The path of `head`.
    pub path: &'a RequestPath<'a>,
    /// The client, and how the request came.
    pub origin: Origin<'a>,
    /// The name of the visitor whom the route has authenticated.
    pub user: Option<&'a str>,
}

/// The variables besides the names of the path, for messages.
const KNOWN: &str = "`{host}`, `{path}`, `{query.NAME}`, `{header.NAME}`, `{cookie.NAME}`, `{client}`, \
                     `{scheme}`, `{request_id}` and `{user}`";

impl Variable {
    /// Parses the text between the braces. The names of `pattern` come first. The error says what
    /// is allowed.
    pub fn parse(text: &str, pattern: &PathPattern) -> Result<Self, String> {
        if let Some(number) = pattern.number_of(text) {
            return Ok(Self::Segment(number));
        }
        let variable = match text.split_once('.') {
            None => match text {
                "host" => Some(Self::Host),
                "path" => Some(Self::Path),
                "client" => Some(Self::Client),
                "scheme" => Some(Self::Scheme),
                "request_id" => Some(Self::RequestId),
                "user" => Some(Self::User),
                _ => None,
            },
            Some(("query", name)) if !name.is_empty() => Some(Self::Argument(name.into())),
            Some(("header", name)) if is_token(name.as_bytes()) => Some(Self::Field(name.into())),
            Some(("cookie", name)) if is_token(name.as_bytes()) => Some(Self::Cookie(name.into())),
            Some(_) => None,
        };
        variable.ok_or_else(|| {
            let names: Vec<_> = pattern.names().map(|name| format!("`{{{name}}}`")).collect();
            let path = match names.as_slice() {
                [] => format!("the path of the route has no `{{{text}}}`"),
                names => format!(
                    "the path of the route has no `{{{text}}}`; its names are {}",
                    names.join(" and ")
                ),
            };
            format!("{path}; the variables are {KNOWN}")
        })
    }

    /// Appends the value that a request has to `key`, with its length before it, so that no two
    /// lists of values are one key. Returns whether there is a value.
    pub fn append_key(&self, request: &RequestValues<'_>, key: &mut Vec<u8>) -> bool {
        let value = self.value(request);
        key.extend_from_slice(&value.len().to_le_bytes());
        key.extend_from_slice(&value);
        !value.is_empty()
    }

    /// Returns the value that a request has. Empty if it has none.
    pub fn value<'a>(&self, request: &RequestValues<'a>) -> Cow<'a, [u8]> {
        let RequestValues { head, path, origin, user } = *request;
        match self {
            Self::Segment(number) => Cow::Borrowed(path.segment(*number).unwrap_or_default()),
            Self::Host => bytes(canonical_host(without_userinfo(head.host))),
            Self::Path => match path.rest_after(0) {
                rest if rest.is_empty() => Cow::Borrowed(b"/"),
                rest => bytes(rest),
            },
            Self::Argument(name) => {
                let query = head.query.unwrap_or_default().as_bytes();
                let value = form::arguments(query, name).next().unwrap_or_default();
                Cow::Owned(form::decoded(value).collect())
            }
            // As for applications: only a trusted proxy may write such a field.
            Self::Field(name) if proxy_field(name).is_some() && origin.proxy.is_none() => {
                Cow::Borrowed(b"")
            }
            Self::Field(name) => field(head, name),
            Self::Cookie(name) => Cow::Borrowed(cookie(head, name.as_bytes()).unwrap_or_default()),
            Self::Client => match origin.peer {
                Peer::Unix => Cow::Borrowed(b"unix:"),
                Peer::Tcp(address) => {
                    let mut text = Vec::new();
                    write_ip(address.ip().to_canonical(), &mut text);
                    Cow::Owned(text)
                }
            },
            Self::Scheme => Cow::Borrowed(if origin.secure { b"https" } else { b"http" }),
            Self::RequestId => Cow::Owned(origin.notes.id().to_string().into_bytes()),
            Self::User => Cow::Borrowed(user.unwrap_or_default().as_bytes()),
        }
    }
}

/// The variable as the configuration has it; a segment of the path by its number.
impl fmt::Display for Variable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Segment(number) => write!(f, "{{segment {number}}}"),
            Self::Host => f.write_str("{host}"),
            Self::Path => f.write_str("{path}"),
            Self::Argument(name) => write!(f, "{{query.{name}}}"),
            Self::Field(name) => write!(f, "{{header.{name}}}"),
            Self::Cookie(name) => write!(f, "{{cookie.{name}}}"),
            Self::Client => f.write_str("{client}"),
            Self::Scheme => f.write_str("{scheme}"),
            Self::RequestId => f.write_str("{request_id}"),
            Self::User => f.write_str("{user}"),
        }
    }
}

/// Returns the host. Kirin refuses hosts with user information, so this is what is behind an `@`.
fn without_userinfo(host: &str) -> &str {
    host.rsplit('@').next().unwrap_or_default()
}

/// Returns the value of a field, with `, ` between its lines (RFC 9110 section 5.3).
fn field<'a>(head: &RequestHead<'a>, name: &str) -> Cow<'a, [u8]> {
    let mut lines = head.lines(name);
    let first = lines.next().unwrap_or_default();
    let Some(second) = lines.next() else { return Cow::Borrowed(first) };
    let mut joined = [first, b", ", second].concat();
    for line in lines {
        joined.extend_from_slice(b", ");
        joined.extend_from_slice(line);
    }
    Cow::Owned(joined)
}

fn bytes(text: Cow<'_, str>) -> Cow<'_, [u8]> {
    match text {
        Cow::Borrowed(text) => Cow::Borrowed(text.as_bytes()),
        Cow::Owned(text) => Cow::Owned(text.into_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_requests::with_request;

    fn value(variable: &str, head: &str) -> String {
        let pattern = PathPattern::parse("/users/{id}").unwrap();
        let variable = Variable::parse(variable, &pattern).unwrap();
        with_request(head, |request| {
            let values = RequestValues { user: Some("mari"), ..request.values() };
            String::from_utf8_lossy(&variable.value(&values)).into_owned()
        })
    }

    #[test]
    fn variables_are_the_properties_of_a_request() {
        let head = "GET /users//7/../%61%20b?x=1&y=a+b%0A&y=2&%7A=z HTTP/1.1\r\nHost: WWW.Example.ORG.:8080\r\n\
                    X-A: one\r\nCookie: c=1; d=2\r\nx-a: two\r\nCookie: c=3\r\nX-Forwarded-For: 1.2.3.4";
        for (variable, expected) in [
            ("id", "a b"),
            ("host", "www.example.org"),
            ("path", "/users/a%20b"),
            ("query.x", "1"),
            ("query.y", "a b\n"),
            ("query.z", "z"),
            ("query.none", ""),
            ("header.X-A", "one, two"),
            ("header.none", ""),
            ("header.x-forwarded-for", ""),
            ("cookie.c", "1"),
            ("cookie.none", ""),
            ("client", "192.0.2.7"),
            ("scheme", "http"),
            ("user", "mari"),
        ] {
            assert_eq!(value(variable, head), expected, "{variable}");
        }
        assert!(!value("request_id", head).is_empty());
        assert_eq!(value("path", "GET / HTTP/1.1\r\nHost: a"), "/");
    }

    #[test]
    fn unknown_variables_name_those_that_there_are() {
        let pattern = PathPattern::parse("/users/{id}").unwrap();
        for text in ["user_id", "", "query.", "query", "header.a b", "cookie.", "x.y", "Host"] {
            let error = Variable::parse(text, &pattern).unwrap_err();
            assert!(error.contains("`{id}`") && error.contains("`{query.NAME}`"), "{error}");
        }
    }
}
