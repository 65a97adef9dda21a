//! Decides whether a response is stored, and with which policy (RFC 9111 sections 3, 3.5 and 4.2).

use std::collections::HashSet;

use http::{Method, StatusCode};
use kirin_http::FieldLines;
use kirin_http::date::parse_date;
use kirin_http::field_list::members;

use crate::cache_control::{DirectiveScope, ResponseDirectives};
use crate::policy::Policy;
use crate::surrogate::{TARGETED, directives_in, targeted_directives};
use crate::vary::Vary;

/// The statuses that this cache understands, in the sense of `must-understand`. They are also
/// heuristically cacheable (RFC 9110 section 15.1). 206 is missing, because it is only a part of a
/// response.
const UNDERSTOOD: [u16; 15] =
    [200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 451, 501];

/// With more names than this, a set is used in place of one search for each name.
const MANY_NAMES: usize = 32;

/// The parts of a request that decide whether the response is stored.
#[derive(Clone, Copy, Debug)]
pub struct StorableRequest<'a> {
    /// The method. Only responses to GET are stored.
    pub method: &'a Method,
    /// Whether the request has `Authorization`.
    pub has_authorization: bool,
    /// Whether the request has a `Cookie` that the origin server has seen.
    pub has_cookie: bool,
    /// Whether the request has the directive `no-store`.
    pub no_store: bool,
}

/// The configuration of what is stored. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageRules {
    /// The freshness lifetime of responses that state none.
    pub default_ttl: Option<u64>,
    /// The freshness lifetime of 404 and 410 that state none.
    pub negative_ttl: Option<u64>,
    /// The `stale-if-error` of responses that state none.
    pub stale_if_error: Option<u64>,
    /// Whether `Set-Cookie` is removed. Otherwise a response with that field is not stored.
    pub ignore_cookies: bool,
}

/// The reason why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unstorable {
    /// The method is not GET.
    Method,
    /// The status is not final, or not that of a complete response.
    Status,
    /// The request or the response has `no-store`.
    NoStore,
    /// The response has `private`.
    Private,
    /// The response has `must-understand`, and this cache does not understand the status.
    NotUnderstood,
    /// The response has `Set-Cookie`.
    SetCookie,
    /// The request had `Cookie`, and the response does not state that it may be shared.
    Cookie,
    /// The request had `Authorization`, and the response does not state that it may be shared
    /// (section 3.5).
    Authorization,
    /// The response has `Vary: *`.
    Vary,
    /// The response states no freshness.
    NoFreshness,
    /// The response is stale on arrival, and no rule allows to reuse it.
    Stale,
    /// The response is too large, or is a file, which is not kept in memory. The caller finds this
    /// and the following reasons.
    TooLarge,
    /// The response was purged while it was being fetched.
    PurgedWhileFetched,
    /// More was purged during the fetch than the store remembers, so the response may have been
    /// purged, too.
    TooManyPurges,
    /// The server behind the store cannot say whether the response was purged.
    PurgesUnknown,
    /// The response to a later request was stored during the fetch.
    NewerStored,
    /// The store has no room for it.
    NoMemory,
}

impl Unstorable {
    /// All reasons.
    #[cfg(test)]
    pub(crate) const ALL: [Unstorable; 17] = [
        Unstorable::Method,
        Unstorable::Status,
        Unstorable::NoStore,
        Unstorable::Private,
        Unstorable::NotUnderstood,
        Unstorable::SetCookie,
        Unstorable::Cookie,
        Unstorable::Authorization,
        Unstorable::Vary,
        Unstorable::NoFreshness,
        Unstorable::Stale,
        Unstorable::TooLarge,
        Unstorable::PurgedWhileFetched,
        Unstorable::TooManyPurges,
        Unstorable::PurgesUnknown,
        Unstorable::NewerStored,
        Unstorable::NoMemory,
    ];

    /// Returns whether the reason concerns only this request, so that responses to other requests
    /// for the target may be stored.
    pub fn is_of_request(self, request: StorableRequest<'_>) -> bool {
        match self {
            Unstorable::Method
            | Unstorable::Cookie
            | Unstorable::Authorization
            | Unstorable::PurgedWhileFetched
            | Unstorable::TooManyPurges
            | Unstorable::PurgesUnknown
            | Unstorable::NewerStored
            | Unstorable::NoMemory => true,
            Unstorable::NoStore => request.no_store,
            _ => false,
        }
    }

    /// Returns the token for `Cache-Status`.
    pub fn name(self) -> &'static str {
        match self {
            Unstorable::Method => "method",
            Unstorable::Status => "status",
            Unstorable::NoStore => "no-store",
            Unstorable::Private => "private",
            Unstorable::NotUnderstood => "must-understand",
            Unstorable::SetCookie => "set-cookie",
            Unstorable::Cookie => "cookie",
            Unstorable::Authorization => "authorization",
            Unstorable::Vary => "vary",
            Unstorable::NoFreshness => "no-freshness",
            Unstorable::Stale => "stale",
            Unstorable::TooLarge => "too-large",
            Unstorable::PurgedWhileFetched => "purged-while-fetched",
            Unstorable::TooManyPurges => "too-many-purges",
            Unstorable::PurgesUnknown => "purges-unknown",
            Unstorable::NewerStored => "newer-stored",
            Unstorable::NoMemory => "no-memory",
        }
    }
}

/// Returns the policy of a response that was received at `received`, in seconds since the Unix
/// epoch. The request was sent `delay` seconds before.
pub fn policy_of(
    request: StorableRequest<'_>,
    status: StatusCode,
    fields: &FieldLines,
    rules: &StorageRules,
    received: u64,
    delay: u64,
) -> Result<Policy, Unstorable> {
    if request.method != Method::GET {
        return Err(Unstorable::Method);
    }
    let is_understood = UNDERSTOOD.contains(&status.as_u16());
    // A number above 599 is not a valid status (RFC 9110 section 15).
    if matches!(status.as_u16(), ..200 | 206 | 304 | 412 | 416 | 600..) {
        return Err(Unstorable::Status);
    }
    // A targeted field replaces Cache-Control and Expires (RFC 9213 section 2.2).
    let targeted = targeted_directives(fields);
    let is_targeted = targeted.is_some();
    let directives =
        targeted.unwrap_or_else(|| ResponseDirectives::from_fields(fields, "cache-control"));
    if directives.must_understand && !is_understood {
        return Err(Unstorable::NotUnderstood);
    }
    // "no-store … ignored if must-understand is there and the status is understood" (section
    // 5.2.2.3)
    if request.no_store || directives.no_store && !directives.must_understand {
        return Err(Unstorable::NoStore);
    }
    if directives.private == DirectiveScope::Response {
        return Err(Unstorable::Private);
    }
    let vary = Vary::from_fields(fields);
    if vary == Vary::Any {
        return Err(Unstorable::Vary);
    }
    let is_hidden = |scope: &DirectiveScope| scope.fields().iter().any(|name| name == "set-cookie");
    let drops_set_cookie =
        rules.ignore_cookies || is_hidden(&directives.private) || is_hidden(&directives.no_cache);
    if !drops_set_cookie && fields.get("set-cookie").is_some() {
        return Err(Unstorable::SetCookie);
    }
    // A directive that names shared caches permits them to store.
    let is_for_all = directives.public || directives.s_maxage.is_some() || is_targeted;
    let serves_cookies = is_for_all || rules.ignore_cookies || vary.tells_cookies_apart();
    let serves_authorization = is_for_all || directives.must_revalidate;
    let date = fields.get("date").and_then(parse_date);
    let lifetime = match lifetime(&directives, is_targeted, fields, date.unwrap_or(received)) {
        Some(lifetime) => lifetime,
        None => match status.as_u16() {
            404 | 410 if rules.negative_ttl.is_some() => rules.negative_ttl.unwrap_or(0),
            // The fields of one request may have caused these errors. Without explicit freshness
            // they must not reach other clients (CPDoS).
            405 | 414 | 501 => return Err(Unstorable::NoFreshness),
            _ if is_understood && rules.default_ttl.is_some() => rules.default_ttl.unwrap_or(0),
            // There is no heuristic freshness (section 4.2.2). A response that is validated each
            // time needs none.
            _ if is_understood
                && (directives.no_cache == DirectiveScope::Response || directives.public) =>
            {
                0
            }
            _ => return Err(Unstorable::NoFreshness),
        },
    };
    let policy = Policy {
        received,
        initial_age: initial_age(fields, date, received, delay),
        lifetime,
        stale_while_revalidate: directives.stale_while_revalidate.unwrap_or(0),
        stale_if_error: directives.stale_if_error.or(rules.stale_if_error).unwrap_or(0),
        validate_always: directives.no_cache == DirectiveScope::Response,
        staleness: directives.staleness(),
        serves_cookies,
        serves_authorization,
    };
    let is_usable = policy.fresh_for(received) > 0 && !policy.validate_always
        || has_validator(fields)
        || policy.serves_error(received)
        || policy.stale_while_revalidate > policy.stale_for(received);
    // These come last: if no request could reuse the response, the reason does not depend on the
    // client.
    match is_usable {
        false => Err(Unstorable::Stale),
        true if request.has_cookie && !serves_cookies => Err(Unstorable::Cookie),
        true if request.has_authorization && !serves_authorization => {
            Err(Unstorable::Authorization)
        }
        true => Ok(policy),
    }
}

/// Returns the names of the fields that are not stored. These are the fields of this connection or
/// visitor, and those that a cache directive of the response excludes. A cookie always belongs to
/// one visitor.
pub fn unstored_fields(fields: &FieldLines) -> Vec<String> {
    let always = [
        "age",
        // This field has a meaning for partial responses only (RFC 9110 section 14.4).
        "content-range",
        "set-cookie",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "trailer",
    ];
    let mut names: Vec<String> = always.map(str::to_owned).to_vec();
    for name in ["cache-control"].iter().chain(&TARGETED) {
        let Some(directives) = directives_in(fields, name) else { continue };
        names.extend_from_slice(directives.no_cache.fields());
        names.extend_from_slice(directives.private.fields());
    }
    if names.len() > MANY_NAMES {
        // Each name costs a search through all fields, and a response may list thousands of names.
        // So only the fields that are present stay, each once.
        let mut there: HashSet<Vec<u8>> =
            fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        names.retain(|name| there.remove(name.as_bytes()));
    }
    names
}

/// Returns whether the response can be validated.
pub fn has_validator(fields: &FieldLines) -> bool {
    fields.get("etag").is_some() || fields.get("last-modified").and_then(parse_date).is_some()
}

/// Returns the freshness lifetime that a response states (section 4.2.1). A value that cannot be
/// parsed means that it is stale.
fn lifetime(
    directives: &ResponseDirectives,
    is_targeted: bool,
    fields: &FieldLines,
    date: u64,
) -> Option<u64> {
    directives.s_maxage.or(directives.max_age).or_else(|| {
        let lines =
            fields.iter().filter(|(name, _)| !is_targeted && name.eq_ignore_ascii_case(b"expires"));
        lines.map(|(_, value)| parse_date(value).unwrap_or(0).saturating_sub(date)).min()
    })
}

/// Returns `corrected_initial_age` (section 4.2.3).
fn initial_age(fields: &FieldLines, date: Option<u64>, received: u64, delay: u64) -> u64 {
    let apparent = received.saturating_sub(date.unwrap_or(received));
    // If there are several values, the first counts, also in a list (section 5.1). A value that is
    // not a number is ignored.
    let stated = fields.get("age").and_then(|value| {
        let first = members(value).next()?;
        let is_number = first.iter().all(u8::is_ascii_digit);
        is_number.then(|| crate::directives::delta_seconds(Some(first)))
    });
    apparent.max(stated.map_or(0, |age| age.saturating_add(delay)))
}

#[cfg(test)]
#[path = "storable_tests.rs"]
mod tests;
