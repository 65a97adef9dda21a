//! A request as the cache sees it.

use http::Method;
use httparse::Header;
use kirin_cache::{Forwarded, Policy, RequestDirectives, key, validation};
use kirin_http::field_list::members;
use kirin_http::{BodyLength, Client, ProxyField, RequestHead, proxy_field};
use kirin_store::KEY_LIMIT_BYTES;

use super::settings::CacheSettings;
use crate::request::context::Request;
use crate::request::field_changes::FieldChange;

/// The parts of a request that decide whether the cache may answer it.
pub struct CacheRequest {
    /// The key under which responses to its target are stored.
    pub key: Vec<u8>,
    /// The directives of the client, as far as the route obeys them.
    pub directives: RequestDirectives,
    /// Whether it has a cookie that the route does not ignore.
    pub has_cookie: bool,
    /// Whether it has `Authorization`, or the application knows the user by other means.
    pub has_authorization: bool,
    /// Whether it is a GET without a condition or range. The response to it can then be stored as
    /// it is.
    pub is_plain: bool,
    /// Whether it wants a part, or the response only if it has not changed. Other requests cannot
    /// use such a response.
    pub is_partial: bool,
}

/// A request that no stored response answers.
pub struct Miss {
    /// The request.
    pub request: CacheRequest,
    /// The key under which its response is stored or would be.
    pub key: Vec<u8>,
    /// The reason for `Cache-Status`.
    pub why: Forwarded,
}

/// The reason why a request bypasses the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bypass {
    /// Its method is not GET or HEAD.
    Method,
    /// The request itself, or the configuration. The text is a word for `Cache-Status`.
    Reason(&'static str),
}

impl CacheRequest {
    /// Reads `request`, or returns the reason why it bypasses the cache.
    pub fn from_request(request: &Request<'_>, settings: &CacheSettings) -> Result<Self, Bypass> {
        let Request { head: request, origin, user, namespace, protection, value_digest, .. } =
            *request;
        if !request.is_get_or_head() {
            return Err(Bypass::Method);
        }
        if let Some(reason) = reason_to_bypass(request, settings) {
            return Err(Bypass::Reason(reason));
        }
        let shortened = shortened_query(request, settings);
        let query = match &shortened {
            None => request.query,
            Some(kept) => kept.as_deref(),
        };
        let mut key =
            key::primary_key(namespace.prefix(), request.path, query, origin.secure, request.host);
        let is_told = origin.proxy.is_some_and(|proxy| proxy.fields.are_x());
        for field in request.fields.iter().filter(|_| is_told) {
            // The scheme is in the key.
            if proxy_field(field.name) == Some(ProxyField::Site)
                && !field.name.eq_ignore_ascii_case("x-forwarded-proto")
            {
                key::append_proxy_field(field.name, field.value, &mut key);
            }
        }
        if let Some(clients) = protection.allowed() {
            // Another route must not serve responses for these clients, even if it has the same
            // target later.
            key::append_route_condition("allow", &format!("{clients:016x}"), &mut key);
        }
        if let Some(values) = value_digest {
            key::append_route_condition("values", &format!("{values:016x}"), &mut key);
        }
        if let Some(conditions) = settings.conditions {
            key::append_route_condition("match", &format!("{conditions:016x}"), &mut key);
        }
        if key.len() > KEY_LIMIT_BYTES {
            return Err(Bypass::Reason("key-too-long"));
        }
        let mut cache_request = Self {
            key,
            directives: RequestDirectives::from_fields(request.fields),
            has_cookie: false,
            // The application also knows the user by a certificate, by the name that Kirin has
            // checked, or by the fields of `auth_request`.
            has_authorization: user.is_some()
                || protection.has_authority()
                || matches!(origin.client, Client::Verified(_)),
            is_plain: request.method == Method::GET,
            is_partial: false,
        };
        if !settings.obeys_reload {
            cache_request.directives = cache_request.directives.without_reload();
        }
        for field in request.fields {
            let is = |name: &str| field.name.eq_ignore_ascii_case(name);
            if is_told && proxy_field(field.name) == Some(ProxyField::User) {
                cache_request.has_authorization = true;
            }
            match field.name.len() {
                6 => cache_request.has_cookie |= is("cookie") && !settings.rules.ignore_cookies,
                13 if is("authorization") => cache_request.has_authorization = true,
                _ => {}
            }
            if validation::CONDITIONS.iter().any(|name| is(name)) {
                cache_request.is_plain = false;
                cache_request.is_partial |=
                    is("range") || is("if-match") || is("if-unmodified-since");
            }
        }
        Ok(cache_request)
    }

    /// Returns whether the request may get a response with this policy.
    pub fn may_have(&self, policy: &Policy) -> bool {
        (policy.serves_cookies || !self.has_cookie)
            && (policy.serves_authorization || !self.has_authorization)
    }

    /// Returns whether the request identifies its user.
    pub fn has_credentials(&self) -> bool {
        self.has_cookie || self.has_authorization
    }
}

/// Returns why a GET or HEAD bypasses the cache: it differs from other requests for its target, or
/// the configuration says so.
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

/// Returns whether a field may make the place answer another request than the cache key names. Some
/// fields override the method or the target. `Connection` may remove a field that the response
/// varies by.
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

/// Returns the query without the arguments that the route ignores. Returns `None` if it has none of
/// them.
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

/// Calls `ask` with a request for a response that the cache can use: the complete response, by GET.
/// The request has `conditions` in place of the client's conditions.
pub fn as_cache<R>(
    request: &Request<'_>,
    settings: &CacheSettings,
    conditions: &[(&'static str, Vec<u8>)],
    ask: impl FnOnce(&Request<'_>) -> R,
) -> R {
    let removed = validation::CONDITIONS.iter().map(|name| FieldChange::Remove(name));
    let added = conditions.iter().map(|(name, value)| FieldChange::Add(name, value.clone().into()));
    let changes: Vec<_> = removed.chain(added).collect();
    request.with_changes(&changes, |request| {
        let head = RequestHead { method: Method::GET, ..request.head.clone() };
        request.with_head(&head, |request| as_known(request, settings, ask))
    })
}

/// Calls `ask` with the request as its key has it: without ignored arguments of the query, and
/// without cookies that do not count.
pub fn as_known<R>(
    request: &Request<'_>,
    settings: &CacheSettings,
    ask: impl FnOnce(&Request<'_>) -> R,
) -> R {
    let mut head = request.head.clone();
    let fields: Vec<Header<'_>>;
    if settings.rules.ignore_cookies {
        let is_cookie = |field: &&Header<'_>| field.name.eq_ignore_ascii_case("cookie");
        fields = head.fields.iter().filter(|field| !is_cookie(field)).copied().collect();
        head.fields = &fields;
    }
    let Some(query) = shortened_query(&head, settings) else {
        return request.with_head(&head, ask);
    };
    let target = match &query {
        Some(query) => format!("{}?{query}", head.path),
        None => head.path.to_owned(),
    };
    let head = RequestHead { target: &target, query: query.as_deref(), ..head };
    request.with_head(&head, ask)
}
