//! The description of a request for the program of `auth_request`.

use std::sync::{Arc, LazyLock};

use httparse::Header;
use kirin_http::RequestHead;
use kirin_http::host::{canonical_host, without_port};

use crate::request::context::Request;
use crate::request::given_names::GivenNames;

/// The fields that describe the request to the program, under the names that Traefik and nginx's
/// users know.
const DESCRIPTION: [&str; 7] = [
    "X-Forwarded-Method",
    "X-Forwarded-Proto",
    "X-Forwarded-Host",
    "X-Forwarded-Uri",
    "X-Original-Method",
    "X-Original-URI",
    "X-Original-URL",
];

/// The names of these fields.
pub static DESCRIPTION_NAMES: LazyLock<GivenNames> =
    LazyLock::new(|| DESCRIPTION.into_iter().map(Arc::from).collect());

/// The description of a request.
pub struct RequestDescription {
    method: String,
    scheme: &'static str,
    host: String,
    target: String,
    url: String,
}

impl RequestDescription {
    /// Describes `request`. The path is the one by which Kirin finds routes: without `.`, `..` and
    /// empty segments, and without unneeded percent-encodings. So a program that compares paths
    /// sees the same path as the route.
    pub fn of(request: &Request<'_>) -> Self {
        let RequestHead { method, query, host, .. } = request.head;
        let host = host_of(host);
        let mut target = match request.sent_path.sent() {
            "*" => "*".to_owned(),
            _ => request.sent_path.rest_after(0).into_owned(),
        };
        if target.is_empty() {
            target.push('/');
        }
        if let Some(query) = query {
            target.push('?');
            target.push_str(query);
        }
        let scheme = if request.origin.secure { "https" } else { "http" };
        let url = format!("{scheme}://{host}{target}");
        Self { method: method.as_str().to_owned(), scheme, host, target, url }
    }

    /// Returns the host, for the request to the program.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Returns the fields.
    pub fn fields(&self) -> [Header<'_>; DESCRIPTION.len()] {
        let values = [
            &self.method,
            self.scheme,
            &self.host,
            &self.target,
            &self.method,
            &self.target,
            &self.url,
        ];
        let mut values = values.into_iter();
        DESCRIPTION.map(|name| Header { name, value: values.next().unwrap_or_default().as_bytes() })
    }
}

/// Returns a host in the form by which sites are found, with the port that the client has written.
fn host_of(sent: &str) -> String {
    let port = &sent[without_port(sent).len()..];
    format!("{}{port}", canonical_host(sent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_requests::with_request;

    #[test]
    fn the_program_sees_the_host_by_which_the_site_was_found() {
        for (host, described) in [
            ("h", "h"),
            ("ADMIN.example.ORG", "admin.example.org"),
            ("%61dmin.example.org.:8443", "admin.example.org:8443"),
            ("[2001:DB8:0::1]:80", "[2001:db8::1]:80"),
        ] {
            with_request(&format!("GET /x HTTP/1.1\r\nHost: {host}"), |request| {
                assert_eq!(RequestDescription::of(request).host(), described, "{host}");
            });
        }
    }

    #[test]
    fn the_program_sees_the_path_by_which_the_route_was_found() {
        for (target, described) in [
            ("/", "/"),
            ("/a/b?c=%2e", "/a/b?c=%2e"),
            ("//admin//x", "/admin/x"),
            ("/x/../%61dmin/", "/admin/"),
            ("/a%2Fb%20c", "/a/b%20c"),
        ] {
            with_request(&format!("PUT {target} HTTP/1.1\r\nHost: h"), |request| {
                let description = RequestDescription::of(request);
                let fields = description.fields();
                let value = |name: &str| {
                    let field = fields.iter().find(|field| field.name == name).unwrap();
                    std::str::from_utf8(field.value).unwrap()
                };
                assert_eq!(value("X-Forwarded-Uri"), described, "{target}");
                assert_eq!(value("X-Original-URI"), described);
                assert_eq!(value("X-Original-URL"), format!("http://h{described}"));
                assert_eq!(value("X-Forwarded-Method"), "PUT");
                assert_eq!((value("X-Forwarded-Proto"), value("X-Forwarded-Host")), ("http", "h"));
            });
        }
    }
}
