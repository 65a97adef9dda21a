//! What is stored and for how long, rule by rule.

use proptest::prelude::*;

use super::*;
use crate::policy::Staleness;

const NOW: u64 = 1_700_000_000;

const GET: StorableRequest<'static> = StorableRequest {
    method: &Method::GET,
    has_authorization: false,
    has_cookie: false,
    no_store: false,
};

fn lines(text: &str) -> FieldLines {
    let mut fields = FieldLines::new();
    for line in text.split('\n').filter(|line| !line.is_empty()) {
        let (name, value) = line.split_once(": ").unwrap();
        fields.try_push(name.as_bytes(), value.as_bytes()).unwrap();
    }
    fields
}

fn date(seconds: u64) -> String {
    httpdate::fmt_http_date(std::time::UNIX_EPOCH + std::time::Duration::from_secs(seconds))
}

fn policy(
    request: StorableRequest<'_>,
    status: u16,
    text: &str,
    rules: &StorageRules,
) -> Result<Policy, Unstorable> {
    policy_of(request, StatusCode::from_u16(status).unwrap(), &lines(text), rules, NOW, 2)
}

fn plain(status: u16, text: &str) -> Result<Policy, Unstorable> {
    policy(GET, status, text, &StorageRules::default())
}

#[test]
fn only_responses_with_a_lifetime_or_a_validator_are_stored() {
    for (status, text, expected) in [
        (200, "Cache-Control: max-age=60", Ok(60)),
        (200, "Cache-Control: s-maxage=5, max-age=60", Ok(5)),
        (200, "Cache-Control: max-age=60, max-age=30", Ok(30)),
        (200, "", Err(Unstorable::NoFreshness)),
        (200, "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", Err(Unstorable::NoFreshness)),
        (200, "ETag: \"a\"", Err(Unstorable::NoFreshness)),
        (200, "Cache-Control: no-cache\nETag: \"a\"", Ok(0)),
        (200, "Cache-Control: public\nETag: \"a\"", Ok(0)),
        (200, "Cache-Control: no-cache", Err(Unstorable::Stale)),
        (200, "Cache-Control: no-cache, max-age=9", Err(Unstorable::Stale)),
        (200, "Cache-Control: max-age=0", Err(Unstorable::Stale)),
        (200, "Cache-Control: max-age=0\nETag: \"a\"", Ok(0)),
        (200, "Cache-Control: max-age=0, stale-while-revalidate=5", Ok(0)),
        (200, "Cache-Control: max-age=0, stale-if-error=5", Ok(0)),
        (
            200,
            "Cache-Control: max-age=0, stale-if-error=5, must-revalidate",
            Err(Unstorable::Stale),
        ),
        (200, "Cache-Control: no-store, max-age=60", Err(Unstorable::NoStore)),
        (200, "Cache-Control: no-store, must-understand, max-age=60", Ok(60)),
        (
            299,
            "Cache-Control: no-store, must-understand, max-age=60",
            Err(Unstorable::NotUnderstood),
        ),
        (299, "Cache-Control: max-age=60", Ok(60)),
        (299, "Cache-Control: public\nETag: \"a\"", Err(Unstorable::NoFreshness)),
        (200, "Cache-Control: private, max-age=60", Err(Unstorable::Private)),
        (200, "Cache-Control: private=\"x\", max-age=60", Ok(60)),
        (200, "Cache-Control: max-age=60\nVary: *", Err(Unstorable::Vary)),
        (206, "Cache-Control: max-age=60", Err(Unstorable::Status)),
        (304, "Cache-Control: max-age=60", Err(Unstorable::Status)),
        (416, "Cache-Control: max-age=60", Err(Unstorable::Status)),
        (404, "Cache-Control: max-age=60", Ok(60)),
        (503, "Cache-Control: max-age=60", Ok(60)),
        (503, "", Err(Unstorable::NoFreshness)),
        (404, "", Err(Unstorable::NoFreshness)),
        (200, "Cache-Control: max-age=60\nSet-Cookie: a=b", Err(Unstorable::SetCookie)),
        (200, "Cache-Control: public, max-age=60\nSet-Cookie: a=b", Err(Unstorable::SetCookie)),
        (200, "Cache-Control: max-age=60, no-cache=\"Set-Cookie\"\nSet-Cookie: a=b", Ok(60)),
        (200, "Cache-Control: max-age=60, private=\"set-cookie\"\nSet-Cookie: a=b", Ok(60)),
        (200, "Cache-Control: no-store\nCDN-Cache-Control: max-age=60", Ok(60)),
        (200, "Cache-Control: max-age=60\nSurrogate-Control: no-store", Err(Unstorable::NoStore)),
        (200, "Cache-Control: max-age=60\nSurrogate-Control: max-age=7", Ok(7)),
    ] {
        assert_eq!(plain(status, text).map(|policy| policy.lifetime), expected, "{status} {text}");
    }
}

#[test]
fn expires_counts_from_the_date_where_no_max_age_does() {
    let (then, earlier) = (date(NOW + 100), date(NOW - 50));
    for (text, expected) in [
        (format!("Expires: {then}"), Ok(100)),
        (format!("Expires: {then}\nDate: {earlier}"), Ok(150)),
        (format!("Expires: {then}\nCache-Control: max-age=7"), Ok(7)),
        (format!("Expires: {then}\nExpires: 0"), Err(Unstorable::Stale)),
        ("Expires: 0".to_owned(), Err(Unstorable::Stale)),
        (format!("Expires: {earlier}\nETag: \"a\""), Ok(0)),
        (format!("Expires: {then}\nCDN-Cache-Control: public"), Err(Unstorable::Stale)),
    ] {
        assert_eq!(plain(200, &text).map(|policy| policy.lifetime), expected, "{text}");
    }
}

#[test]
fn the_age_is_the_greater_of_the_age_field_and_the_date() {
    let earlier = date(NOW - 50);
    for (text, expected) in [
        (String::new(), 0),
        (format!("Date: {earlier}"), 50),
        (format!("Date: {earlier}\nAge: 10"), 50),
        (format!("Date: {earlier}\nAge: 60"), 62),
        ("Age: 60, 70".to_owned(), 62),
        ("Age: x".to_owned(), 0),
        (format!("Date: {}", date(NOW + 50)), 0),
    ] {
        let text = format!("Cache-Control: max-age=99\n{text}");
        assert_eq!(plain(200, &text).map(|policy| policy.initial_age), Ok(expected), "{text}");
    }
    assert_eq!(plain(200, "Cache-Control: max-age=60\nAge: 59"), Err(Unstorable::Stale));
}

#[test]
fn a_visitors_response_is_shared_only_if_it_says_so() {
    let cookie = StorableRequest { has_cookie: true, ..GET };
    let authorization = StorableRequest { has_authorization: true, ..GET };
    for (text, by_cookie, by_authorization) in [
        ("Cache-Control: max-age=60", false, false),
        ("Cache-Control: max-age=60, public", true, true),
        ("Cache-Control: s-maxage=60", true, true),
        ("Cache-Control: max-age=60, must-revalidate", false, true),
        ("Cache-Control: max-age=60, proxy-revalidate", false, false),
        ("Cache-Control: max-age=60\nVary: Cookie", true, false),
        ("CDN-Cache-Control: max-age=60", true, true),
    ] {
        let rules = StorageRules::default();
        let stored = policy(cookie, 200, text, &rules);
        assert_eq!(stored.is_ok(), by_cookie, "{text}");
        assert!(stored.is_ok() || stored == Err(Unstorable::Cookie));
        let stored = policy(authorization, 200, text, &rules);
        assert_eq!(stored.is_ok(), by_authorization, "{text}");
        // The response to an anonymous request does not answer a request with credentials either.
        let policy = plain(200, text).unwrap();
        assert_eq!(
            (policy.serves_cookies, policy.serves_authorization),
            (by_cookie, by_authorization),
            "{text}"
        );
    }
    let ignoring = StorageRules { ignore_cookies: true, ..StorageRules::default() };
    let text = "Cache-Control: max-age=60\nSet-Cookie: a=b";
    assert!(policy(cookie, 200, text, &ignoring).is_ok_and(|policy| policy.serves_cookies));
    assert!(unstored_fields(&lines(text)).contains(&"set-cookie".to_owned()));
}

#[test]
fn no_store_and_the_method_of_the_request_prevent_storing() {
    let text = "Cache-Control: max-age=60";
    for (request, expected) in [
        (StorableRequest { no_store: true, ..GET }, Unstorable::NoStore),
        (StorableRequest { method: &Method::POST, ..GET }, Unstorable::Method),
        (StorableRequest { method: &Method::HEAD, ..GET }, Unstorable::Method),
    ] {
        assert_eq!(policy(request, 200, text, &StorageRules::default()), Err(expected));
    }
}

#[test]
fn the_configured_lifetime_is_for_responses_without_one() {
    let rules = StorageRules {
        default_ttl: Some(10),
        negative_ttl: Some(5),
        stale_if_error: Some(100),
        ignore_cookies: false,
    };
    for (status, text, expected) in [
        (200, "", Ok((10, 100))),
        (404, "", Ok((5, 100))),
        (410, "", Ok((5, 100))),
        (405, "", Err(Unstorable::NoFreshness)),
        (451, "", Ok((10, 100))),
        (500, "", Err(Unstorable::NoFreshness)),
        (404, "Cache-Control: max-age=60", Ok((60, 100))),
        (404, "Cache-Control: no-store", Err(Unstorable::NoStore)),
        (200, "Cache-Control: max-age=60, stale-if-error=3", Ok((60, 3))),
        (200, "Cache-Control: private", Err(Unstorable::Private)),
    ] {
        let got = policy(GET, status, text, &rules)
            .map(|policy| (policy.lifetime, policy.stale_if_error));
        assert_eq!(got, expected, "{status} {text}");
    }
}

#[test]
fn the_response_decides_how_long_it_may_be_used_stale() {
    for (text, expected) in [
        ("max-age=60", Staleness::Allowed),
        ("s-maxage=60, stale-while-revalidate=5", Staleness::AsDirected),
        ("max-age=60, must-revalidate, stale-while-revalidate=5", Staleness::Forbidden),
        ("max-age=60, proxy-revalidate", Staleness::Forbidden),
    ] {
        let policy = plain(200, &format!("Cache-Control: {text}")).unwrap();
        assert_eq!(policy.staleness, expected, "{text}");
    }
}

#[test]
fn fields_of_one_hop_and_fields_that_are_named_are_not_stored() {
    let fields = lines("Cache-Control: no-cache=\"X-A\", private=\"x-b, X-C\"\nAge: 5");
    let names = unstored_fields(&fields);
    for name in ["age", "x-a", "x-b", "x-c", "proxy-authenticate", "set-cookie", "trailer"] {
        assert!(names.iter().any(|found| found == name), "{name}");
    }
    let fields = lines(
        "CDN-Cache-Control: private=X-A\nCache-Control: private=x-b\nSurrogate-Control: no-cache=X-C",
    );
    let names = unstored_fields(&fields);
    assert!(
        ["x-a", "x-b", "x-c"].iter().all(|name| names.iter().any(|found| found == name)),
        "{names:?}"
    );
}

proptest! {
    /// Checks that for any directives a stored response can be reused in some way, and that a
    /// prohibition to store is obeyed.
    #[test]
    fn no_store_and_private_are_always_obeyed(
        cache_control in "[a-z0-9=\", -]{0,40}",
        status in 200u16..600,
        has_cookie: bool,
        has_authorization: bool,
    ) {
        let request = StorableRequest { has_cookie, has_authorization, ..GET };
        let mut fields = FieldLines::new();
        fields.push("Cache-Control", &cache_control);
        let status = StatusCode::from_u16(status).unwrap();
        let rules = StorageRules { default_ttl: Some(9), ..StorageRules::default() };
        for word in ["no-store", "private"] {
            let mut fields = fields.clone();
            fields.push("Cache-Control", word);
            let directives = ResponseDirectives::from_fields(&fields, "cache-control");
            prop_assume!(!directives.must_understand);
            prop_assert!(policy_of(request, status, &fields, &rules, NOW, 0).is_err());
        }
        if let Ok(policy) = policy_of(request, status, &fields, &rules, NOW, 0) {
            prop_assert!(!has_cookie || policy.serves_cookies);
            prop_assert!(!has_authorization || policy.serves_authorization);
        }
    }
}
