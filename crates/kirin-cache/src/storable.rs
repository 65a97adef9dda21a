//! Whether a response is stored, and as what (RFC 9111 sections 3, 3.5 and 4.2).

use std::collections::HashSet;

use http::{Method, StatusCode};
use kirin_http::FieldLines;
use kirin_http::date::parse_date;

use crate::cache_control::{ResponseDirectives, Scope};
use crate::policy::Policy;
use crate::surrogate::{TARGETED, directives_of, targeted_directives};
use crate::vary::Vary;

/// Statuses whose meaning we know, so that `must-understand` lets us store them, and that a cache
/// may keep without being told (RFC 9110 section 15.1), but for 206, which is a part of something.
const UNDERSTOOD: [u16; 15] =
    [200, 203, 204, 300, 301, 302, 303, 307, 308, 404, 405, 410, 414, 451, 501];

/// Names of fields that are looked for one by one.
const MANY_NAMES: usize = 32;

/// What matters of the request.
#[derive(Clone, Copy, Debug)]
pub struct Asked<'a> {
    /// Only GET is stored.
    pub method: &'a Method,
    /// Whether it has `Authorization`.
    pub has_authorization: bool,
    /// Whether it has a `Cookie` that the place has seen.
    pub has_cookie: bool,
    /// Whether it says `no-store`.
    pub no_store: bool,
}

/// What the configuration says. Times are in seconds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StorageRules {
    /// Freshness of responses that say nothing of it.
    pub default_ttl: Option<u64>,
    /// Freshness of 404 and 410 that say nothing of it.
    pub negative_ttl: Option<u64>,
    /// `stale-if-error` of responses that do not say.
    pub stale_if_error: Option<u64>,
    /// `Set-Cookie` is dropped; otherwise a response that has it is not stored.
    pub ignore_cookies: bool,
}

/// Why a response is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unstorable {
    /// The method is not GET.
    Method,
    /// The status is no final one of something whole.
    Status,
    /// `no-store`, of the request or of the response.
    NoStore,
    /// `private`
    Private,
    /// `must-understand` with a status that we do not.
    NotUnderstood,
    /// It has `Set-Cookie`.
    SetCookie,
    /// The request had `Cookie`, and the response does not say that it is for others, too.
    Cookie,
    /// The request had `Authorization`, and the response does not say that it is for others, too
    /// (section 3.5).
    Authorization,
    /// `Vary: *`
    Vary,
    /// It says nothing of freshness.
    NoFreshness,
    /// It is stale as it comes, and nothing can be done with it then.
    Stale,
    /// It is too large, or a file, which is nothing to keep in memory. For the caller to say, as
    /// the others that follow.
    TooLarge,
    /// It was purged while it was on its way.
    PurgedWhileFetched,
    /// More was purged while it was on its way than the store remembers, so it may have been as
    /// well.
    TooManyPurges,
    /// Another response, to a later request, has been stored while it was on its way.
    NewerStored,
    /// The store has no room for it.
    NoMemory,
}

impl Unstorable {
    /// All of them.
    #[cfg(test)]
    pub(crate) const ALL: [Unstorable; 16] = [
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
        Unstorable::NewerStored,
        Unstorable::NoMemory,
    ];

    /// Whether it was about this request alone, so that others for the same target may fare better.
    pub fn is_of_request(self, asked: Asked<'_>) -> bool {
        match self {
            Unstorable::Method
            | Unstorable::Cookie
            | Unstorable::Authorization
            | Unstorable::PurgedWhileFetched
            | Unstorable::TooManyPurges
            | Unstorable::NewerStored
            | Unstorable::NoMemory => true,
            Unstorable::NoStore => asked.no_store,
            _ => false,
        }
    }

    /// As a token, for `Cache-Status`.
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
            Unstorable::NewerStored => "newer-stored",
            Unstorable::NoMemory => "no-memory",
        }
    }
}

/// The policy of a response that came at `received` (seconds since the unix epoch), `delay` seconds
/// after it was asked for.
pub fn policy_of(
    asked: Asked<'_>,
    status: StatusCode,
    fields: &FieldLines,
    rules: &StorageRules,
    received: u64,
    delay: u64,
) -> Result<Policy, Unstorable> {
    if asked.method != Method::GET {
        return Err(Unstorable::Method);
    }
    let is_understood = UNDERSTOOD.contains(&status.as_u16());
    // Above 599 it is no status (RFC 9110 section 15).
    if matches!(status.as_u16(), ..200 | 206 | 304 | 412 | 416 | 600..) {
        return Err(Unstorable::Status);
    }
    // A targeted field stands in for Cache-Control and Expires (RFC 9213 section 2.2).
    let targeted = targeted_directives(fields);
    let is_targeted = targeted.is_some();
    let said = targeted.unwrap_or_else(|| ResponseDirectives::of(fields, "cache-control"));
    if said.must_understand && !is_understood {
        return Err(Unstorable::NotUnderstood);
    }
    // "no-store … ignored if must-understand is there and the status is understood" (section
    // 5.2.2.3)
    if asked.no_store || said.no_store && !said.must_understand {
        return Err(Unstorable::NoStore);
    }
    if said.private == Scope::Response {
        return Err(Unstorable::Private);
    }
    let vary = Vary::of(fields);
    if vary == Vary::Any {
        return Err(Unstorable::Vary);
    }
    let is_hidden = |scope: &Scope| scope.fields().iter().any(|name| name == "set-cookie");
    let drops_set_cookie =
        rules.ignore_cookies || is_hidden(&said.private) || is_hidden(&said.no_cache);
    if !drops_set_cookie && fields.get("set-cookie").is_some() {
        return Err(Unstorable::SetCookie);
    }
    // Who names shared caches means them.
    let is_for_all = said.public || said.s_maxage.is_some() || is_targeted;
    let serves_cookies = is_for_all || rules.ignore_cookies || vary.tells_cookies_apart();
    let serves_authorization = is_for_all || said.must_revalidate;
    let date = fields.get("date").and_then(parse_date);
    let lifetime = match lifetime(&said, is_targeted, fields, date.unwrap_or(received)) {
        Some(lifetime) => lifetime,
        None => match status.as_u16() {
            404 | 410 if rules.negative_ttl.is_some() => rules.negative_ttl.unwrap_or(0),
            // What one request's fields may have brought about is nobody else's error without a
            // word (CPDoS).
            405 | 414 | 501 => return Err(Unstorable::NoFreshness),
            _ if is_understood && rules.default_ttl.is_some() => rules.default_ttl.unwrap_or(0),
            // Nothing is guessed (section 4.2.2); what is to be validated each time is no guess.
            _ if is_understood && (said.no_cache == Scope::Response || said.public) => 0,
            _ => return Err(Unstorable::NoFreshness),
        },
    };
    let policy = Policy {
        received,
        initial_age: initial_age(fields, date, received, delay),
        lifetime,
        stale_while_revalidate: said.stale_while_revalidate.unwrap_or(0),
        stale_if_error: said.stale_if_error.or(rules.stale_if_error).unwrap_or(0),
        validate_always: said.no_cache == Scope::Response,
        staleness: said.staleness(),
        serves_cookies,
        serves_authorization,
    };
    let is_usable = policy.fresh_for(received) > 0 && !policy.validate_always
        || has_validator(fields)
        || policy.serves_error(received)
        || policy.stale_while_revalidate > policy.stale_for(received);
    // Last: what nobody could get from the cache is no matter of who asks.
    match is_usable {
        false => Err(Unstorable::Stale),
        true if asked.has_cookie && !serves_cookies => Err(Unstorable::Cookie),
        true if asked.has_authorization && !serves_authorization => Err(Unstorable::Authorization),
        true => Ok(policy),
    }
}

/// Names of fields that are not stored: this hop's, this visitor's, and those that the response
/// says to keep out, in whichever of the fields that it says such things in. A cookie is one
/// visitor's whatever is said.
pub fn unstored_fields(fields: &FieldLines) -> Vec<String> {
    let always = [
        "age",
        // It says something of parts alone (RFC 9110 section 14.4).
        "content-range",
        "set-cookie",
        "proxy-authenticate",
        "proxy-authentication-info",
        "proxy-authorization",
        "trailer",
    ];
    let mut names: Vec<String> = always.map(str::to_owned).to_vec();
    for name in ["cache-control"].iter().chain(&TARGETED) {
        let Some(said) = directives_of(fields, name) else { continue };
        names.extend_from_slice(said.no_cache.fields());
        names.extend_from_slice(said.private.fields());
    }
    if names.len() > MANY_NAMES {
        // Each costs a look at all fields, and a response may name thousands: those that are there,
        // each once.
        let mut there: HashSet<Vec<u8>> =
            fields.iter().map(|(name, _)| name.to_ascii_lowercase()).collect();
        names.retain(|name| there.remove(name.as_bytes()));
    }
    names
}

/// Whether the place can be asked if it is still good.
pub fn has_validator(fields: &FieldLines) -> bool {
    fields.get("etag").is_some() || fields.get("last-modified").and_then(parse_date).is_some()
}

/// The freshness that a response states (section 4.2.1). What cannot be read is no freshness.
fn lifetime(
    said: &ResponseDirectives,
    is_targeted: bool,
    fields: &FieldLines,
    date: u64,
) -> Option<u64> {
    said.s_maxage.or(said.max_age).or_else(|| {
        let lines =
            fields.iter().filter(|(name, _)| !is_targeted && name.eq_ignore_ascii_case(b"expires"));
        lines.map(|(_, value)| parse_date(value).unwrap_or(0).saturating_sub(date)).min()
    })
}

/// `corrected_initial_age` (section 4.2.3).
fn initial_age(fields: &FieldLines, date: Option<u64>, received: u64, delay: u64) -> u64 {
    let apparent = received.saturating_sub(date.unwrap_or(received));
    // Of several the first counts, as of a list (section 5.1); what is no number is no age.
    let stated = fields.get("age").and_then(|value| {
        let first = value.split(|byte| *byte == b',').next().unwrap_or_default().trim_ascii();
        let is_number = !first.is_empty() && first.iter().all(u8::is_ascii_digit);
        is_number.then(|| crate::directives::delta_seconds(Some(first)))
    });
    apparent.max(stated.map_or(0, |age| age.saturating_add(delay)))
}

#[cfg(test)]
#[path = "storable_tests.rs"]
mod tests;
