//! A request as the cache sees it.

use http::Method;
use httparse::Header;
use kirin_cache::{Policy, RequestDirectives, key, validation};
use kirin_http::field_list::members;
use kirin_http::{
    BodyLength, Client, ForwardedFields, Origin, ProxyField, RequestHead, proxy_field,
};
use kirin_store::KEY_LIMIT_BYTES;

use super::settings::CacheSettings;

/// What of a request decides whether it is answered from the cache.
pub struct Asked {
    /// Under which its target is stored.
    pub key: Vec<u8>,
    /// What the client says of caches, as far as the route listens.
    pub directives: RequestDirectives,
    /// Whether it has a cookie that counts.
    pub has_cookie: bool,
    /// Whether it has `Authorization`, or the application knows by other means who asks.
    pub has_authorization: bool,
    /// Whether it is GET without a condition or range, so that the answer to it as it is can be
    /// stored.
    pub is_plain: bool,
    /// Whether it wants a part, or something only if it has not changed: of no use to others.
    pub is_partial: bool,
}

/// Why a request has no business with what is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Past {
    /// Its method.
    Method,
    /// What it is or has; a word for `Cache-Status`.
    Bypass(&'static str),
}

impl Asked {
    /// Looks at `request`, which is on behalf of `user`.
    pub fn of(
        request: &RequestHead<'_>,
        origin: Origin<'_>,
        user: Option<&str>,
        settings: &CacheSettings,
    ) -> Result<Self, Past> {
        if !request.is_get_or_head() {
            return Err(Past::Method);
        }
        if let Some(reason) = reason_to_bypass(request, settings) {
            return Err(Past::Bypass(reason));
        }
        let shortened = shortened_query(request, settings);
        let query = match &shortened {
            None => request.query,
            Some(kept) => kept.as_deref(),
        };
        let mut key = key::primary_key(request.path, query, origin.secure, request.host);
        let is_told = origin.proxy.is_some_and(|proxy| proxy.fields == ForwardedFields::X);
        for field in request.fields.iter().filter(|_| is_told) {
            // The scheme is in the key.
            if proxy_field(field.name) == Some(ProxyField::Site)
                && !field.name.eq_ignore_ascii_case("x-forwarded-proto")
            {
                key::append_proxy_field(field.name, field.value, &mut key);
            }
        }
        if key.len() > KEY_LIMIT_BYTES {
            return Err(Past::Bypass("key-too-long"));
        }
        let mut asked = Self {
            key,
            directives: RequestDirectives::from_fields(request.fields),
            has_cookie: false,
            // A certificate, or a name that we have found out ourselves, tells the application as
            // well who it is.
            has_authorization: user.is_some() || matches!(origin.client, Client::Verified(_)),
            is_plain: request.method == Method::GET,
            is_partial: false,
        };
        if !settings.obeys_reload {
            asked.directives = asked.directives.without_reload();
        }
        for field in request.fields {
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            if is_told && proxy_field(field.name) == Some(ProxyField::User) {
                asked.has_authorization = true;
            }
            match field.name.len() {
                6 => asked.has_cookie |= is("cookie") && !settings.rules.ignore_cookies,
                13 if is("authorization") => asked.has_authorization = true,
                _ => {}
            }
            if validation::CONDITIONS.iter().any(|name| is(name)) {
                asked.is_plain = false;
                asked.is_partial |= is("range") || is("if-match") || is("if-unmodified-since");
            }
        }
        Ok(asked)
    }

    /// Whether a response of this policy may be given to who asks.
    pub fn may_have(&self, policy: &Policy) -> bool {
        (policy.serves_cookies || !self.has_cookie)
            && (policy.serves_authorization || !self.has_authorization)
    }

    /// Whether it shows who asks.
    pub fn has_credentials(&self) -> bool {
        self.has_cookie || self.has_authorization
    }
}

/// Why a GET or HEAD goes past the cache: it has what others do not have, or the configuration says
/// so.
fn reason_to_bypass(request: &RequestHead<'_>, settings: &CacheSettings) -> Option<&'static str> {
    if request.body != BodyLength::None {
        return Some("request-body");
    }
    if request.field("upgrade").is_some() {
        return Some("upgrade");
    }
    if request.fields.iter().any(makes_another_request) {
        return Some("altered-request");
    }
    settings.bypass.iter().any(|bypass| bypass.is_in(request)).then_some("configured")
}

/// Whether a field has the place see another request than its key says: another method or target,
/// or without what `Connection` takes away on the way to it, which may be what the response varies
/// by.
fn makes_another_request(field: &Header<'_>) -> bool {
    const OTHER: [&str; 5] = [
        "x-http-method-override",
        "x-http-method",
        "x-method-override",
        "x-original-url",
        "x-rewrite-url",
    ];
    const CONNECTION: [&[u8]; 5] = [b"close", b"keep-alive", b"te", b"upgrade", b"http2-settings"];
    if field.name.eq_ignore_ascii_case("connection") {
        return members(field.value)
            .any(|option| !CONNECTION.iter().any(|known| option.eq_ignore_ascii_case(known)));
    }
    OTHER.iter().any(|other| field.name.eq_ignore_ascii_case(other))
}

/// The query without what the route ignores; `None` for what was there if that changes nothing.
pub fn shortened_query(
    request: &RequestHead<'_>,
    settings: &CacheSettings,
) -> Option<Option<String>> {
    let query = request.query?;
    if settings.ignore_query.is_empty() {
        return None;
    }
    let kept = key::without_arguments(query, &settings.ignore_query);
    (kept.as_deref() != Some(query)).then_some(kept)
}

/// Has `ask` ask for what the cache can use: all of it, by GET, without the client's own conditions
/// and without what is left out of the key, and with `conditions` of the cache's own.
pub fn as_cache<R>(
    request: &RequestHead<'_>,
    settings: &CacheSettings,
    conditions: &[(&'static str, Vec<u8>)],
    ask: impl FnOnce(&RequestHead<'_>) -> R,
) -> R {
    let is_left_out = |field: &&Header<'_>| {
        validation::CONDITIONS.iter().any(|name| field.name.eq_ignore_ascii_case(name))
    };
    let mut fields: Vec<Header<'_>> =
        request.fields.iter().filter(|field| !is_left_out(field)).copied().collect();
    fields.extend(conditions.iter().map(|(name, value)| Header { name, value }));
    let whole = RequestHead { method: Method::GET, fields: &fields, ..request.clone() };
    as_known(&whole, settings, ask)
}

/// Has `ask` ask for the same, without what is left out of the key and without cookies that do not
/// count.
pub fn as_known<R>(
    request: &RequestHead<'_>,
    settings: &CacheSettings,
    ask: impl FnOnce(&RequestHead<'_>) -> R,
) -> R {
    let mut known = request.clone();
    let fields: Vec<Header<'_>>;
    if settings.rules.ignore_cookies {
        let is_cookie = |field: &&Header<'_>| field.name.eq_ignore_ascii_case("cookie");
        fields = request.fields.iter().filter(|field| !is_cookie(field)).copied().collect();
        known.fields = &fields;
    }
    let Some(query) = shortened_query(request, settings) else { return ask(&known) };
    let target = match &query {
        Some(query) => format!("{}?{query}", request.path),
        None => request.path.to_owned(),
    };
    ask(&RequestHead { target: &target, query: query.as_deref(), ..known })
}
