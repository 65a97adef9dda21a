//! The time for which a response is fresh (sections 4.2 and 5.2.2), and the parsing of its
//! directives (section 5.2).

use super::{Case, Passed, Reused, Validated, case, run, twice};

fn cache_control(section: &'static str, value: &str, fate: super::Fate) -> Case {
    twice(section, &format!("200\nCache-Control: {value}"), fate)
}

#[test]
fn max_age_is_a_number_of_seconds() {
    run(vec![
        twice(
            "4.2.2, which allows to guess; Kirin does not",
            "200\nLast-Modified: {-1000000}",
            Passed,
        ),
        cache_control("5.2.2.1", "max-age=3600", Reused),
        cache_control("5.2.2.1", "max-age=0", Passed),
        cache_control("1.2.2", "max-age=2147483647", Reused),
        cache_control("1.2.2", "max-age=2147483648", Reused),
        cache_control("1.2.2", "max-age=99999999999999999999", Reused),
        cache_control("1.2.2", "max-age=0003600", Reused),
        cache_control("4.2.1, what is invalid is stale", "max-age=-3600", Passed),
        cache_control("4.2.1", "max-age=+3600", Passed),
        cache_control("4.2.1", "max-age=3600a", Passed),
        cache_control("4.2.1", "max-age=a3600", Passed),
        cache_control("4.2.1", "max-age=3600.5", Passed),
        cache_control("4.2.1", "max-age='3600'", Passed),
        cache_control("4.2.1", "max-age=", Passed),
        cache_control("4.2.1", "max-age", Passed),
        cache_control("5.2, both forms are to be accepted", "max-age=\"3600\"", Reused),
        cache_control("5.2, names are compared without case", "MaX-aGe=3600", Reused),
        cache_control("5.2.3", "x-extension, max-age=3600, other=\"a,b\"", Reused),
        cache_control("5.2", "extension=\"max-age=3600\", max-age=0", Passed),
        cache_control("5.2", "extension=\"max-age=0, no-store\", max-age=3600", Reused),
        cache_control("5.2", "extension=\"\\\"no-store\", max-age=3600", Reused),
        cache_control("5.2", ",,max-age=3600,,", Reused),
        cache_control("4.2.1, of two the one that is stale", "max-age=3600, max-age=0", Passed),
        cache_control("4.2.1", "max-age=0, max-age=3600", Passed),
        twice("4.2.1", "200\nCache-Control: max-age=3600\nCache-Control: max-age=0", Passed),
        twice(
            "5.2, lines are one list",
            "200\nCache-Control: max-age=3600\nCache-Control: no-store",
            Passed,
        ),
        twice("5.2", "200\ncache-control: max-age=3600\nCACHE-CONTROL: public", Reused),
    ]);
}

#[test]
fn a_shared_cache_has_directives_of_its_own() {
    run(vec![
        cache_control("5.2.2.10", "s-maxage=3600", Reused),
        cache_control("5.2.2.10", "s-maxage=3600, max-age=0", Reused),
        cache_control("5.2.2.10", "s-maxage=0, max-age=3600", Passed),
        cache_control("5.2.2.10", "s-maxage=x, max-age=3600", Passed),
        cache_control("5.2.2.10", "S-MAXAGE=99999999999", Reused),
        twice("5.2.2.10", "200\nCache-Control: s-maxage=3600\nExpires: {-60}", Reused),
        cache_control("5.2.2.7", "private", Passed),
        cache_control("5.2.2.7", "private, max-age=3600", Passed),
        cache_control("5.2.2.7", "private, s-maxage=3600", Passed),
        cache_control("5.2.2.7", "PRIVATE, public, max-age=3600", Passed),
        cache_control("5.2.2.9", "public", Passed),
        cache_control("5.2.2.9", "public, max-age=3600", Reused),
    ]);
}

#[test]
fn expires_counts_without_a_lifetime_in_cache_control() {
    run(vec![
        twice("5.3", "200\nExpires: {+3600}", Reused),
        twice("5.3", "200\nexpires: {+3600}", Reused),
        twice("5.3", "200\nExpires: {-3600}", Passed),
        twice("5.3", "200\nExpires: 0", Passed),
        twice("5.3", "200\nExpires: soon", Passed),
        twice("5.3", "200\nExpires:", Passed),
        twice("5.3", "200\nExpires: Thu, 18 Aug 2050 02:01:18", Passed),
        twice("5.3", "200\nExpires: Thu, 18 Aug 2050 02:01:18 PST", Passed),
        twice("5.3", "200\nExpires: Thu, 99 Aug 2050 02:01:18 GMT", Passed),
        twice("5.3", "200\nExpires: Thu, 18 Aug 2050 02:01:18 GMT", Reused),
        twice("RFC 9110 5.6.7", "200\nExpires: Thursday, 18-Aug-50 02:01:18 GMT", Reused),
        twice("RFC 9110 5.6.7", "200\nExpires: Thu Aug 18 02:01:18 2050", Reused),
        twice(
            "5.3, whatever the day is called",
            "200\nExpires: Mon, 18 Aug 2050 02:01:18 GMT",
            Reused,
        ),
        twice("5.3", "200\nExpires: Monday, 18-Aug-50 02:01:18 GMT", Reused),
        twice("5.3", "200\nExpires: Mon Aug 18 02:01:18 2050", Reused),
        twice("5.3, in any case", "200\nExpires: THU, 18 Aug 2050 02:01:18 GMT", Reused),
        twice("5.3", "200\nExpires: Thu, 18 AUG 2050 02:01:18 GMT", Reused),
        twice("5.3", "200\nExpires: Thu, 18 Aug 2050 02:01:18 gmt", Reused),
        twice("5.3", "200\nExpires: Mon, 18 Aug 2010 02:01:18 GMT", Passed),
        twice("5.3", "200\nExpires: Thu, 18 Aug 2050 2:01:18 GMT", Passed),
        twice("5.3", "200\nExpires: Thu 18 Aug 2050 02:01:18 GMT", Passed),
        twice("5.3", "200\nExpires: Thu, 18  Aug  2050 02:01:18 GMT", Passed),
        twice("5.3", "200\nExpires: Thu, 18-Aug-2050 02:01:18 GMT", Passed),
        twice("5.3", "200\nExpires: Thu, 18 Aug 50 02:01:18 GMT", Passed),
        twice("5.3", "200\nExpires: Thu, 18 Aug 2050 02.01.18 GMT", Passed),
        twice(
            "4.2.1, of two the one that is stale",
            "200\nExpires: {+3600}\nExpires: {-3600}",
            Passed,
        ),
        twice(
            "4.2.1, the lifetime counts from Date",
            "200\nExpires: {+3600}\nDate: {+7200}",
            Passed,
        ),
        twice("4.2.1", "200\nExpires: {+3600}\nDate: {-60}", Reused),
        twice("5.3", "200\nExpires: {+3600}\nCache-Control: max-age=0", Passed),
        twice("5.3", "200\nExpires: {-3600}\nCache-Control: max-age=3600", Reused),
        twice("5.3", "200\nExpires: 0\nCache-Control: s-maxage=3600", Reused),
        twice("5.3", "200\nExpires: {+3600}\nCache-Control: max-age=x", Passed),
        twice("5.4, of requests only", "200\nExpires: {+3600}\nPragma: no-cache", Reused),
    ]);
}

#[test]
fn age_is_the_time_that_has_passed_already() {
    let said = |fields: &str, fate| {
        twice("4.2.3", &format!("200\nCache-Control: max-age=3600\n{fields}"), fate)
    };
    run(vec![
        said("Age: 1800", Reused),
        said("Age: 3600", Passed),
        said("Age: 7200", Passed),
        said("Age: 2147483648", Passed),
        said("Age: 99999999999999999999", Passed),
        said("Age: 7200, 0", Passed),
        said("Age: 0, 7200", Reused),
        said("Age: -7200", Reused),
        said("Age: x", Reused),
        said("Age: 7200;x", Reused),
        said("Date: {-1800}", Reused),
        said("Date: {-3600}", Passed),
        said("Date: {+3600}", Reused),
        said("Date: never", Reused),
        said("Date: {-10}\nAge: 7200", Passed),
        said("Date: {-7200}\nAge: 1", Passed),
        twice("4.2.3", "200\nExpires: {+3600}\nAge: 7200", Passed),
        case(
            "5.1",
            "what is reused says its age",
            &["200\nCache-Control: max-age=3600\nAge: 1800\nDate: {+10}"],
        )
        .has("age", Some("1800"))
        .get("", Reused),
        case("5.1", "what is new has none", &["200\nCache-Control: no-store"]).has("age", None),
    ]);
}

#[test]
fn no_cache_and_no_store_are_obeyed() {
    run(vec![
        cache_control("5.2.2.5", "no-store", Passed),
        cache_control("5.2.2.5", "no-store, max-age=3600", Passed),
        cache_control("5.2.2.5", "No-Store, public, s-maxage=3600", Passed),
        cache_control("5.2.2.5, also with an argument", "no-store=x, max-age=3600", Passed),
        cache_control("5.2.2.4", "no-cache", Passed),
        cache_control("5.2.2.4", "NO-CACHE, max-age=3600", Passed),
        twice("5.2.2.4", "200\nCache-Control: no-cache\nETag: \"a\"", Validated),
        twice("5.2.2.4", "200\nCache-Control: no-cache, max-age=3600\nETag: \"a\"", Validated),
        twice(
            "5.2.2.4",
            "200\nCache-Control: max-age=3600, no-cache\nLast-Modified: {-60}",
            Validated,
        ),
        twice("5.2.2.4", "200\nCache-Control: no-cache=\"\", max-age=3600\nETag: \"a\"", Validated),
        cache_control("5.2.2.2, of what is fresh", "max-age=3600, must-revalidate", Reused),
        cache_control("5.2.2.8", "max-age=3600, proxy-revalidate", Reused),
        cache_control("5.2.2.3", "max-age=3600, no-store, must-understand", Reused),
        cache_control("5.2.2.3", "max-age=3600, must-understand", Reused),
        cache_control(
            "5.2.2.6, nothing is transformed that was not asked for",
            "max-age=3600, no-transform",
            Reused,
        ),
    ]);
}
