//! Variables of pages, with nginx's names: those of its SSI module and of its core. Apache's are
//! the same in lower case.

use std::sync::Arc;

use bytes::Bytes;
use kirin_http::cookies::cookie_like_nginx;
use kirin_http::form::argument_like_nginx;
use kirin_http::host::without_port;
use kirin_http::proxy_fields::is_unambiguous;
use kirin_http::{
    Client, ListenAddress, Origin, Peer, RequestHead, RequestPath, percent, proxy_field,
};
use kirin_workers::is_given;

/// The longest variable that is joined from several lines, in bytes.
const MAX_JOINED_BYTES: usize = 32 * 1024;

/// A value, and whether it is the same for all visitors.
pub struct Variable {
    /// The value.
    pub value: Bytes,
    /// Whether it depends on the visitor, and not only on the target.
    pub is_visitors: bool,
}

/// Returns the variable `name`, which is in lower case. Returns `None` if it has no value.
pub fn variable(
    name: &str,
    request: &RequestHead<'_>,
    origin: Origin<'_>,
    user: Option<&str>,
    given: &[Arc<str>],
) -> Option<Variable> {
    let ours =
        |value: &[u8]| Some(Variable { value: Bytes::copy_from_slice(value), is_visitors: false });
    let visitors =
        |value: &[u8]| Some(Variable { value: Bytes::copy_from_slice(value), is_visitors: true });
    match name {
        // For an error page this is the target that the visitor has asked for.
        "request_uri" if request.target.starts_with('/') => ours(request.target.as_bytes()),
        "request_uri" => match request.query {
            Some(query) => ours([request.path, "?", query].concat().as_bytes()),
            None => ours(request.path.as_bytes()),
        },
        // As in nginx, it is decoded and without dot segments.
        "uri" | "document_uri" => ours(&RequestPath::parse(request.path).ok()?.decoded()),
        "document_name" => {
            let path = RequestPath::parse(request.path).ok()?;
            let path = path.decoded();
            let name = path.rsplit(|byte| *byte == b'/').next()?;
            ours(name)
        }
        "request" => {
            let (method, version) = (request.method.as_str(), request.version.name());
            ours([method, " ", request.target, " ", version].concat().as_bytes())
        }
        "request_method" => ours(request.method.as_str().as_bytes()),
        "query_string" | "args" => ours(request.query?.as_bytes()),
        "query_string_unescaped" => ours(&percent::decode(request.query?.as_bytes())),
        "is_args" => ours(request.query.map_or(b"", |_| b"?")),
        "host" => ours(without_port(host(request)).to_ascii_lowercase().as_bytes()),
        "http_host" => ours(Some(request.host).filter(|host| !host.is_empty())?.as_bytes()),
        "server_name" => ours(without_port(host(request)).as_bytes()),
        "server_port" => ours(local_port(origin).to_string().as_bytes()),
        "scheme" | "request_scheme" => ours(if origin.secure { b"https" } else { b"http" }),
        "https" => ours(if origin.secure { b"on" } else { b"" }),
        "server_protocol" => ours(request.version.name().as_bytes()),
        "server_software" => ours(b"Kirin"),
        "remote_addr" => visitors(origin.peer.to_string().as_bytes()),
        "remote_port" => match origin.peer {
            Peer::Tcp(address) => visitors(address.port().to_string().as_bytes()),
            Peer::Unix => None,
        },
        "request_id" => visitors(origin.notes.id().to_string().as_bytes()),
        "remote_user" => visitors(user?.as_bytes()),
        "ssl_client_s_dn" => match origin.client {
            Client::Verified(certificate) => visitors(certificate.subject.as_bytes()),
            Client::NotRequested | Client::Anonymous => None,
        },
        _ => {
            if let Some(cookie) = name.strip_prefix("cookie_") {
                visitors(cookie_like_nginx(request, cookie.as_bytes())?)
            } else if let Some(argument) = name.strip_prefix("arg_") {
                ours(argument_like_nginx(request.query?, argument)?.as_bytes())
            } else if let Some(field) = name.strip_prefix("http_") {
                Some(Variable {
                    value: field_named(request, field, origin, given)?,
                    is_visitors: true,
                })
            } else {
                None
            }
        }
    }
}

/// Returns whether the absence of this variable depends on the visitor too.
pub fn is_visitors(name: &str) -> bool {
    matches!(name, "remote_user" | "ssl_client_s_dn" | "remote_port")
        || name.starts_with("cookie_")
        || (name.starts_with("http_") && name != "http_host")
}

/// Returns the host that the client names, or a default.
fn host<'a>(request: &RequestHead<'a>) -> &'a str {
    if request.host.is_empty() { "localhost" } else { request.host }
}

fn local_port(origin: Origin<'_>) -> u16 {
    match origin.local {
        ListenAddress::Tcp(address) => address.port(),
        ListenAddress::Unix(_) if origin.secure => 443,
        ListenAddress::Unix(_) => 80,
    }
}

/// Returns the lines of a field, whose name is written with `_` for `-`. As for applications, a
/// field that only proxies write counts from a trusted one, or if a rule of the route has set it.
fn field_named(
    request: &RequestHead<'_>,
    name: &str,
    origin: Origin<'_>,
    given: &[Arc<str>],
) -> Option<Bytes> {
    let is_it = |other: &str| {
        other.len() == name.len()
            && other.bytes().zip(name.bytes()).all(|(theirs, ours)| match theirs {
                b'-' => ours == b'_',
                theirs => theirs.to_ascii_lowercase() == ours,
            })
    };
    let may_be_told = |name: &str| {
        is_unambiguous(name)
            && (proxy_field(name).is_none() || origin.proxy.is_some() || is_given(given, name))
    };
    let mut lines =
        request.fields.iter().filter(|field| is_it(field.name) && may_be_told(field.name));
    let mut value = lines.next()?.value.to_vec();
    let separator: &[u8] = if name == "cookie" { b"; " } else { b", " };
    for line in lines {
        if value.len() + line.value.len() > MAX_JOINED_BYTES {
            break;
        }
        value.extend_from_slice(separator);
        value.extend_from_slice(line.value);
    }
    Some(Bytes::from(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use kirin_http::RequestNotes;
    use kirin_http::request::{self, Parsed};
    use std::mem::MaybeUninit;

    /// Returns the value of a variable for this request over an encrypted connection, and whether
    /// it is the visitor's.
    fn of(head: &str, name: &str, user: Option<&str>) -> Option<(String, bool)> {
        let head = format!("{head}\r\n\r\n");
        let mut storage = [const { MaybeUninit::uninit() }; request::MAX_FIELDS];
        let Ok(Parsed::Complete(request, _)) =
            request::parse(head.as_bytes(), &mut storage, &Default::default())
        else {
            panic!("{head}")
        };
        let peer = Peer::Tcp("192.0.2.7:1234".parse().unwrap());
        let local = ListenAddress::Tcp("127.0.0.1:8443".parse().unwrap());
        let origin = Origin {
            peer: &peer,
            local: &local,
            secure: true,
            client: Client::NotRequested,
            proxy: None,
            now: 0,
            notes: &RequestNotes::default(),
        };
        let variable = variable(name, &request, origin, user, &[])?;
        Some((String::from_utf8(variable.value.to_vec()).unwrap(), variable.is_visitors))
    }

    #[test]
    fn variables_have_the_names_of_nginx() {
        let head = "GET /a%20b/./c//d%3F?x=1&Y=%41&x=2&flag HTTP/1.1\r\nHost: Example.org:8080\r\n\
            Cookie: a=1; b==\"2\"; A=3\r\nCookie: c=4\r\nX-One-Two: 1\r\nx-one-two: 2";
        for (name, value) in [
            ("request_uri", Some(("/a%20b/./c//d%3F?x=1&Y=%41&x=2&flag", false))),
            ("uri", Some(("/a b/c/d?", false))),
            ("document_uri", Some(("/a b/c/d?", false))),
            ("document_name", Some(("d?", false))),
            ("query_string", Some(("x=1&Y=%41&x=2&flag", false))),
            ("args", Some(("x=1&Y=%41&x=2&flag", false))),
            ("query_string_unescaped", Some(("x=1&Y=A&x=2&flag", false))),
            ("is_args", Some(("?", false))),
            ("arg_x", Some(("1", false))),
            ("arg_y", Some(("%41", false))),
            ("arg_flag", None),
            ("arg_", None),
            ("request_method", Some(("GET", false))),
            ("host", Some(("example.org", false))),
            ("server_name", Some(("Example.org", false))),
            ("http_host", Some(("Example.org:8080", false))),
            ("server_port", Some(("8443", false))),
            ("scheme", Some(("https", false))),
            ("https", Some(("on", false))),
            ("server_protocol", Some(("HTTP/1.1", false))),
            ("remote_addr", Some(("192.0.2.7", true))),
            ("remote_port", Some(("1234", true))),
            ("remote_user", Some(("mary", true))),
            ("ssl_client_s_dn", None),
            ("cookie_a", Some(("1", true))),
            ("cookie_b", Some(("=\"2\"", true))),
            ("cookie_c", Some(("4", true))),
            ("cookie_d", None),
            ("http_x_one_two", Some(("1, 2", true))),
            ("http_cookie", Some(("a=1; b==\"2\"; A=3; c=4", true))),
            ("http_x_one", None),
            ("none", None),
        ] {
            let value = value.map(|(value, is_visitors)| (value.to_owned(), is_visitors));
            assert_eq!(of(head, name, Some("mary")), value, "{name}");
        }
    }

    #[test]
    fn absent_variables_have_no_value() {
        let head = "GET / HTTP/1.0";
        for name in [
            "query_string",
            "query_string_unescaped",
            "arg_x",
            "http_host",
            "remote_user",
            "cookie_a",
        ] {
            assert_eq!(of(head, name, None), None, "{name}");
        }
        for (name, value) in
            [("is_args", ""), ("host", "localhost"), ("document_name", ""), ("uri", "/")]
        {
            assert_eq!(of(head, name, None), Some((value.to_owned(), false)), "{name}");
        }
        assert_eq!(of("GET / HTTP/1.1\r\nHost: [::1]:80", "host", None).unwrap().0, "[::1]");
        assert_eq!(
            of("GET /?a%zz%4 HTTP/1.0", "query_string_unescaped", None).unwrap().0,
            "a%zz%4"
        );
    }

    #[test]
    fn the_name_of_a_variable_decides_if_it_is_about_the_visitor() {
        for (name, is) in [
            ("cookie_a", true),
            ("http_accept", true),
            ("remote_user", true),
            ("http_host", false),
            ("arg_a", false),
            ("none", false),
        ] {
            assert_eq!(is_visitors(name), is, "{name}");
        }
    }
}
