//! The facts that a run keeps about a request: its target, and hashes of the values that identify
//! the visitor.

use std::hash::{BuildHasher, RandomState};

use http::Method;
use kirin_advice::observation::{ObservedTarget, Visitor};
use kirin_advice::own_values::OwnValues;
use kirin_http::cookies::{cookie_fields, pairs, unquoted};
use kirin_http::{BodyLength, Client, ProxyField, RequestHead, address_key, proxy_field};

use crate::request::context::Request;

/// The longest name of a field or cookie that is kept, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// The most fields that may be credentials and are kept with their names.
const MAX_OTHERS: usize = 8;

/// Fields that do not identify the visitor, or that are in another part of [`Visitor`], in lower
/// case. Each other field may be a credential of the application's own, such as `X-Api-Key`.
const HARMLESS: [&str; 55] = [
    "accept",
    "accept-charset",
    "accept-encoding",
    "accept-language",
    "baggage",
    "cache-control",
    "connection",
    "content-length",
    "content-type",
    "date",
    "device-memory",
    "dnt",
    "downlink",
    "dpr",
    "ect",
    "expect",
    "host",
    "http2-settings",
    "if-match",
    "if-modified-since",
    "if-none-match",
    "if-range",
    "if-unmodified-since",
    "keep-alive",
    "max-forwards",
    "origin",
    "pragma",
    "priority",
    "proxy-connection",
    "purpose",
    "range",
    "referer",
    "rtt",
    "save-data",
    "sec-ch-ua",
    "sec-ch-ua-mobile",
    "sec-ch-ua-platform",
    "sec-fetch-dest",
    "sec-fetch-mode",
    "sec-fetch-site",
    "sec-fetch-user",
    "sec-gpc",
    "sec-purpose",
    "te",
    "traceparent",
    "tracestate",
    "trailer",
    "transfer-encoding",
    "upgrade",
    "upgrade-insecure-requests",
    "user-agent",
    "via",
    "viewport-width",
    "x-purpose",
    "x-request-id",
];

/// The facts about a request.
pub struct RequestFacts {
    /// The target.
    pub target: ObservedTarget,
    /// The visitor.
    pub visitor: Visitor,
    /// Whether the request has a body.
    pub has_body: bool,
    /// The search for the visitor's own values in the response.
    pub own_values: OwnValues,
}

impl RequestFacts {
    /// Reads a request of the route with this number.
    pub fn from_request(request: &Request<'_>, route: u32, key: &RandomState) -> Self {
        let head = request.head;
        let is_read = matches!(head.method, Method::GET | Method::HEAD);
        let forwarded_host = request.origin.proxy.and_then(|_| head.field("x-forwarded-host"));
        let target = ObservedTarget {
            route,
            is_read,
            secure: request.origin.secure,
            host: match forwarded_host {
                Some(host) => String::from_utf8_lossy(host).to_ascii_lowercase(),
                None => head.host.to_ascii_lowercase(),
            },
            path: head.path.to_owned(),
            query: head.query.filter(|_| is_read).map(str::to_owned),
        };
        let cookies = cookie_fields(head).flat_map(pairs).map(|(_, value)| unquoted(value));
        Self {
            target,
            visitor: visitor(request, key),
            has_body: head.body != BodyLength::None,
            own_values: OwnValues::new(cookies.chain(head.field("authorization"))),
        }
    }
}

fn visitor(request: &Request<'_>, key: &RandomState) -> Visitor {
    let (head, origin) = (request.head, request.origin);
    let hash = |value: &[u8]| key.hash_one(value);
    let field = |name| head.field(name).map_or(0, hash);
    let mut visitor = Visitor {
        address: address_key(origin.peer).map_or(0, |address| key.hash_one(address)),
        language: field("accept-language"),
        accept: field("accept"),
        encoding: field("accept-encoding"),
        agent: field("user-agent"),
        ..Visitor::default()
    };
    let mut add_credential = |value: u64| {
        visitor.credentials = Some(key.hash_one((visitor.credentials, value)));
    };
    if let Some(user) = request.user {
        add_credential(hash(user.name.as_bytes()));
    }
    if let Client::Verified(certificate) = origin.client {
        add_credential(key.hash_one((&certificate.subject, &certificate.serial)));
    }
    for field in head.fields {
        let name = field.name.to_ascii_lowercase();
        let is_credential = matches!(name.as_str(), "authorization" | "proxy-authorization")
            || origin.proxy.is_some() && proxy_field(&name) == Some(ProxyField::User);
        if is_credential {
            add_credential(hash(field.value));
        } else if name == "cookie" {
            // A value without a name names the visitor, too.
            for pair in field.value.split(|byte| *byte == b';').filter(|pair| !pair.contains(&b'='))
            {
                if !pair.trim_ascii().is_empty() {
                    add_credential(hash(pair));
                }
            }
        }
    }
    for (name, value) in cookie_fields(head).flat_map(pairs) {
        let name = String::from_utf8_lossy(name.trim_ascii()).into_owned();
        visitor.cookies.push((name, hash(value)));
    }
    visitor.others = others(head, key);
    visitor
}

/// Returns the fields that may be credentials.
fn others(head: &RequestHead<'_>, key: &RandomState) -> Vec<(String, u64)> {
    let mut others: Vec<(String, u64)> = Vec::new();
    for field in head.fields {
        let mut name = field.name.to_ascii_lowercase();
        let is_known = HARMLESS.binary_search(&name.as_str()).is_ok()
            || matches!(name.as_str(), "cookie" | "authorization" | "proxy-authorization")
            // Fields of proxies reach applications from trusted proxies only. Those about the
            // client and the site are read elsewhere.
            || proxy_field(&name).is_some();
        if is_known {
            continue;
        }
        name.truncate(MAX_NAME_BYTES);
        let value = key.hash_one(field.value);
        others.push((name, value));
        if others.len() > MAX_OTHERS
            && let Some((_, value)) = others.pop()
            && let Some((_, last)) = others.last_mut()
        {
            *last = key.hash_one((*last, value));
        }
    }
    others
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::request::test_requests::with_request;

    fn read(head: &str) -> RequestFacts {
        let key = RandomState::new();
        with_request(head, |request| RequestFacts::from_request(request, 3, &key))
    }

    #[test]
    fn the_names_of_harmless_fields_are_sorted() {
        assert!(HARMLESS.is_sorted());
    }

    #[test]
    fn a_visitor_is_anonymous_only_without_anything_that_may_be_a_credential() {
        for (fields, expected) in [
            ("User-Agent: x\r\nAccept: */*\r\nAccept-Language: de\r\nDNT: 1", true),
            ("Cookie: ", true),
            ("Cookie:  ; ;", true),
            ("X-Forwarded-For: 10.0.0.1\r\nX-Forwarded-User: mari", true),
            ("Cookie: a=1", false),
            ("Cookie: token", false),
            ("Authorization: Bearer x", false),
            ("Proxy-Authorization: Basic x", false),
            ("X-Api-Key: x", false),
            ("X-Requested-With: XMLHttpRequest", false),
        ] {
            let facts = read(&format!("GET /x HTTP/1.1\r\nHost: h\r\n{fields}"));
            assert_eq!(facts.visitor.is_anonymous(), expected, "{fields}");
        }
    }

    #[test]
    fn the_target_is_what_a_cache_key_begins_with() {
        let facts = read("GET /a/%E3%81%82?b=c HTTP/1.1\r\nHost: H:80\r\nCookie: a=1; b=\"2\"");
        let ObservedTarget { route, is_read, secure, host, path, query } = facts.target;
        assert_eq!((route, is_read, secure, host.as_str()), (3, true, false, "h:80"));
        assert_eq!((path.as_str(), query.as_deref()), ("/a/%E3%81%82", Some("b=c")));
        let names: Vec<_> = facts.visitor.cookies.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["a", "b"]);
        let posted = read("POST /a?b HTTP/1.1\r\nHost: h\r\nContent-Length: 3");
        assert_eq!(
            (posted.target.is_read, posted.target.query, posted.has_body),
            (false, None, true)
        );
        assert!(!read("GET / HTTP/1.1\r\nHost: h\r\nContent-Length: 0").has_body);
    }

    #[test]
    fn many_other_fields_are_told_apart_in_bounded_memory() {
        let key = RandomState::new();
        let others = |last: &str| {
            let fields: String = (0..50).map(|number| format!("\r\nX-{number}: 1")).collect();
            let head = format!("GET / HTTP/1.1\r\nHost: h{fields}\r\nX-Last: {last}");
            with_request(&head, |request| others(request.head, &key))
        };
        assert_eq!(others("a").len(), MAX_OTHERS);
        assert_ne!(others("a"), others("b"));
        assert_eq!(others("a"), others("a"));
    }
}
