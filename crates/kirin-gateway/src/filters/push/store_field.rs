//! The field `Kirin-Store`, with which an application has its response stored, and the check
//! whether the response can be stored.
//!
//! Pure. Called for each response of an application that has the field.

use http::{Method, StatusCode};
use kirin_http::field_list::members;
use kirin_http::{Body, FieldLines, Response};
use kirin_ssi::Syntax;

use super::dictionary::{self, Item};
use crate::purge::command::{check_key, check_tag};
use crate::routing::protection::{self, Protection};

/// The form of the field, for the log.
pub const FORM: &str = "`ttl=300, tags=\"memo-7 user-3\", key=\"/memo/7\"`, each of them optional";

/// The most tags of one page, as on the memcached port.
const MAX_TAGS: usize = 16;

/// The longest `ttl` in seconds: about 30 years.
const MAX_TTL_SECONDS: i64 = 1_000_000_000;

/// Fields about one delivery of the response and not about what is stored, beside those of the
/// framing. A new `Date` is made for each delivery: the store serves what the application would
/// answer now.
const NOT_STORED: [&[u8]; 11] = [
    b"age",
    b"alt-svc",
    b"content-range",
    b"date",
    // Only Kirin writes it.
    b"kirin-protection",
    b"proxy-authenticate",
    b"proxy-connection",
    b"te",
    b"trailer",
    b"upgrade",
    b"server-timing",
];

/// The demands of the application.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoreField {
    /// How long it is kept, in seconds. None: until it is purged or evicted.
    pub ttl_seconds: Option<u64>,
    /// The tags by which it can be purged.
    pub tags: Vec<String>,
    /// The key under which it is served. None: the target of the request.
    pub key: Option<String>,
}

/// Why a response is not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PushRefusal {
    /// It is a response to HEAD, or a 304 or 206. Applications send these without intent.
    #[error("it is no whole answer to a GET")]
    NotWhole,
    /// It is not the response to a GET.
    #[error(
        "it answers {0}; answers to GET are stored, and those to POST for which `key` says where"
    )]
    Method(Method),
    /// Its status is not one that is stored.
    #[error(
        "its status is {0}; stored are 200, 203, 300, 301, 302, 307, 308, 404 and 410: send Kirin-Store only with those"
    )]
    Status(u16),
    /// It is for one visitor.
    #[error(
        "it has Set-Cookie, and every visitor would get that cookie: send Kirin-Store only with what is the same for all of \
         them, and set cookies (or start sessions) elsewhere"
    )]
    SetCookie,
    /// It is for some visitors.
    #[error(
        "the response has `Vary: {0}`, but a stored page goes to everyone: leave Vary out, or Kirin-Store"
    )]
    Vary(String),
    /// It is a file.
    #[error(
        "it is a file, which Kirin sends without a copy in memory: leave Kirin-Store out, or return the content"
    )]
    File,
    /// Its target cannot be a key.
    #[error(
        "its key, with the name of the site, has more than 250 bytes; a shorter `key` can say \
         where it is stored"
    )]
    Target,
    /// One of its tags is in the namespace of another site.
    #[error("one of its tags begins with the name of another site and `:`")]
    ForeignTag,
    /// It is too large.
    #[error("it is larger than `store.item_limit` allows")]
    TooLarge,
}

impl StoreField {
    /// Parses the value of the field.
    pub fn parse(value: &[u8]) -> Result<Self, String> {
        let mut field = StoreField::default();
        for (name, item) in dictionary::parse(value).map_err(|error| error.to_string())? {
            match (name.as_str(), item) {
                ("ttl", Item::Integer(seconds @ 1..=MAX_TTL_SECONDS)) => {
                    field.ttl_seconds = Some(seconds.unsigned_abs());
                }
                ("ttl", _) => {
                    return Err(format!(
                        "`ttl` is no number of seconds from 1 to {MAX_TTL_SECONDS}"
                    ));
                }
                ("tags", Item::String(text)) => {
                    field.tags =
                        text.split(' ').filter(|tag| !tag.is_empty()).map(str::to_owned).collect();
                    if field.tags.len() > MAX_TAGS {
                        return Err(format!("more than {MAX_TAGS} tags"));
                    }
                    field.tags.iter().try_for_each(|tag| check_tag(tag))?;
                }
                ("key", Item::String(key)) => {
                    check_key(&key)?;
                    if !key.starts_with('/') {
                        return Err("`key` does not begin with `/`".into());
                    }
                    field.key = Some(key);
                }
                ("tags" | "key", _) => return Err(format!("`{name}` is no string")),
                _ => return Err(format!("`{name}` is not known")),
            }
        }
        Ok(field)
    }
}

/// Checks whether this response to a request with `method` can be stored at all.
pub fn check(method: &Method, field: &StoreField, response: &Response) -> Result<(), PushRefusal> {
    match *method {
        Method::GET => {}
        Method::HEAD => return Err(PushRefusal::NotWhole),
        Method::POST if field.key.is_some() => {}
        _ => return Err(PushRefusal::Method(method.clone())),
    }
    match response.status.as_u16() {
        200 | 203 | 300 | 301 | 302 | 307 | 308 | 404 | 410 => {}
        206 | 304 => return Err(PushRefusal::NotWhole),
        status => return Err(PushRefusal::Status(status)),
    }
    for (name, value) in response.fields.iter() {
        if name.eq_ignore_ascii_case(b"set-cookie") {
            return Err(PushRefusal::SetCookie);
        }
        if name.eq_ignore_ascii_case(b"vary") {
            check_vary(value)?;
        }
    }
    match response.body {
        Body::Empty | Body::Bytes(_) | Body::Segments(_) | Body::Stream(_) => Ok(()),
        Body::File(_) => Err(PushRefusal::File),
        Body::Withheld(_) | Body::Tunnel(_) => Err(PushRefusal::NotWhole),
    }
}

/// Checks a `Vary` field. A response may vary by the coding that the client accepts, because the
/// store codes pages itself.
fn check_vary(value: &[u8]) -> Result<(), PushRefusal> {
    let mut others = members(value).filter(|name| !name.eq_ignore_ascii_case(b"accept-encoding"));
    match others.next() {
        None => Ok(()),
        Some(name) => Err(PushRefusal::Vary(String::from_utf8_lossy(name).into_owned())),
    }
}

/// The name of the field in which a stored page says which syntaxes count in it.
pub const STORE: &str = "kirin-store";

/// Returns the syntaxes that count in a stored page with these fields: all that it does not
/// disable. A program that writes pages into the store itself writes them with directives.
pub fn syntax_of(fields: &FieldLines) -> Syntax {
    let mut syntax = Syntax { ssi: true, esi: true };
    let lines = fields.iter().filter(|(name, _)| name.eq_ignore_ascii_case(STORE.as_bytes()));
    for (name, item) in lines.flat_map(|(_, value)| dictionary::parse(value).unwrap_or_default()) {
        match (name.as_str(), item) {
            ("ssi", Item::Boolean(false)) => syntax.ssi = false,
            ("esi", Item::Boolean(false)) => syntax.esi = false,
            _ => {}
        }
    }
    syntax
}

/// Returns the field line of a stored page in which directives of these syntaxes are text.
pub fn text_only_line(ssi: bool, esi: bool) -> &'static [u8] {
    match (ssi, esi) {
        (true, true) => b"Kirin-Store: ssi=?0, esi=?0\r\n",
        (true, false) => b"Kirin-Store: ssi=?0\r\n",
        (false, true) => b"Kirin-Store: esi=?0\r\n",
        (false, false) => b"",
    }
}

/// Returns the head of a stored page, in the form of a complete response (`page.rs`). Its body
/// follows. The head says what protects the page.
pub fn stored_head(status: StatusCode, fields: &FieldLines, protection: Protection) -> Vec<u8> {
    let mut head = Vec::with_capacity(fields.len_bytes() + 48);
    head.extend_from_slice(b"HTTP/1.1 ");
    head.extend_from_slice(status.as_str().as_bytes());
    head.extend_from_slice(b" ");
    head.extend_from_slice(status.canonical_reason().unwrap_or_default().as_bytes());
    head.extend_from_slice(b"\r\n");
    for (name, value) in fields.iter() {
        if !NOT_STORED.iter().any(|other| name.eq_ignore_ascii_case(other)) {
            for part in [name, b": ", value, b"\r\n"] {
                head.extend_from_slice(part);
            }
        }
    }
    if protection != Protection::default() {
        head.extend_from_slice(format!("{}: {protection}\r\n", protection::FIELD).as_bytes());
    }
    head.extend_from_slice(b"\r\n");
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ttl_tags_and_key_are_read() {
        let field =
            StoreField::parse(br#"ttl=300, tags="memo-7 user-3", key="/memo/7?x=1""#).unwrap();
        assert_eq!(field.ttl_seconds, Some(300));
        assert_eq!(field.tags, ["memo-7", "user-3"]);
        assert_eq!(field.key.as_deref(), Some("/memo/7?x=1"));
        assert_eq!(StoreField::parse(b"").unwrap(), StoreField::default());
    }

    #[test]
    fn a_malformed_field_is_refused_with_what_is_wrong() {
        let long_key = format!("key=\"/{}\"", "x".repeat(250));
        let long_tag = format!("tags=\"{}\"", "x".repeat(65));
        let many_tags = format!("tags=\"{}\"", "x ".repeat(17));
        for (value, message) in [
            ("ttl=0", "from 1"),
            ("ttl=-5", "from 1"),
            ("ttl=1000000001", "from 1"),
            ("ttl=\"5\"", "no number of seconds"),
            ("ttl=5s", "no comma"),
            ("tag=\"x\"", "`tag` is not known"),
            ("tags=5", "`tags` is no string"),
            ("tags=\"a,b\"", "comma"),
            ("key=\"memo\"", "begin with `/`"),
            ("key=\"/a b\"", "no space"),
            ("key=\"\"", "1 to 250"),
            (long_key.as_str(), "1 to 250"),
            (long_tag.as_str(), "1 to 64"),
            (many_tags.as_str(), "more than 16 tags"),
        ] {
            let error = StoreField::parse(value.as_bytes()).unwrap_err();
            assert!(error.contains(message), "{value}: {error}");
        }
    }

    fn response(status: u16, fields: &[(&'static str, &str)]) -> Response {
        let status = StatusCode::from_u16(status).unwrap();
        let mut response = Response::new(kirin_workers::ANSWERED_BY, status, Body::from("x"));
        fields.iter().for_each(|(name, value)| response.fields.push(name, value));
        response
    }

    #[test]
    fn only_responses_that_are_the_same_for_all_can_be_stored() {
        let get = |response: &Response| check(&Method::GET, &StoreField::default(), response);
        for status in [200, 203, 300, 301, 302, 307, 308, 404, 410] {
            assert_eq!(
                get(&response(status, &[("Vary", "Accept-Encoding, ")])),
                Ok(()),
                "{status}"
            );
        }
        for status in [201, 204, 303, 400, 401, 403, 405, 500, 502, 503] {
            assert_eq!(get(&response(status, &[])), Err(PushRefusal::Status(status)), "{status}");
        }
        for status in [206, 304] {
            assert_eq!(get(&response(status, &[])), Err(PushRefusal::NotWhole), "{status}");
        }
        assert_eq!(get(&response(200, &[("set-cookie", "a=b")])), Err(PushRefusal::SetCookie));
        let varies = response(200, &[("Vary", "accept-encoding"), ("vary", "Cookie, X")]);
        assert_eq!(get(&varies), Err(PushRefusal::Vary("Cookie".into())));
        assert_eq!(get(&response(200, &[("Vary", "*")])), Err(PushRefusal::Vary("*".into())));
    }

    #[test]
    fn a_post_is_stored_only_with_a_key_and_other_methods_never() {
        let (plain, keyed) =
            (StoreField::default(), StoreField { key: Some("/a".into()), ..StoreField::default() });
        let good = response(200, &[]);
        assert_eq!(check(&Method::POST, &plain, &good), Err(PushRefusal::Method(Method::POST)));
        assert_eq!(check(&Method::POST, &keyed, &good), Ok(()));
        assert_eq!(check(&Method::PUT, &keyed, &good), Err(PushRefusal::Method(Method::PUT)));
        assert_eq!(check(&Method::HEAD, &keyed, &good), Err(PushRefusal::NotWhole));
    }

    #[test]
    fn fields_about_one_delivery_are_not_stored() {
        let response = response(
            404,
            &[
                ("Content-Type", "text/html"),
                ("Date", "Sat, 21 Nov 2026 15:00:00 GMT"),
                ("ETag", "\"x\""),
                ("Trailer", "X"),
                ("Cache-Control", "max-age=5"),
            ],
        );
        let head = stored_head(response.status, &response.fields, Protection::default());
        assert_eq!(
            String::from_utf8(head).unwrap(),
            "HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\nETag: \"x\"\r\nCache-Control: max-age=5\r\n\r\n"
        );
    }
}
