//! Fields for this cache and no other: `CDN-Cache-Control` (RFC 9213) and `Surrogate-Control`.

use super::{Case, Fate, Passed, Reused, Validated, case, run, twice};

fn targeted(said: &str, fate: Fate) -> Case {
    twice("RFC 9213 2.2", &format!("200\n{said}"), fate)
}

#[test]
fn the_targeted_field_replaces_the_others() {
    let mut cases = Vec::new();
    for name in ["CDN-Cache-Control", "Surrogate-Control"] {
        let said =
            |value: &str, others: &str, fate| targeted(&format!("{name}: {value}\n{others}"), fate);
        cases.extend([
            said("max-age=3600", "Cache-Control: max-age=0", Reused),
            said("max-age=3600", "Cache-Control: no-store", Reused),
            said("max-age=3600", "Cache-Control: private", Reused),
            said("max-age=3600", "Expires: {-60}", Reused),
            said("max-age=0", "Cache-Control: max-age=3600", Passed),
            said("no-store", "Cache-Control: max-age=3600", Passed),
            said("private", "Cache-Control: max-age=3600", Passed),
            said("no-cache", "Cache-Control: max-age=3600\nETag: \"a\"", Validated),
            said("max-age=3600, foo, bar=1", "Cache-Control: no-store", Reused),
            said("max-age=3600", "Age: 7200", Passed),
            said("max-age=3600", "Age: 1800", Reused),
            // An empty field counts as missing.
            said("", "Cache-Control: max-age=3600", Reused),
            said("", "Cache-Control: no-store", Passed),
            said("foo", "Cache-Control: max-age=3600", Reused),
        ]);
    }
    run(cases);
}

#[test]
fn a_cdn_cache_control_that_is_not_a_structured_field_is_ignored() {
    let mut cases = Vec::new();
    for (value, others, fate) in [
        // Parameters have no meaning.
        ("max-age=3600;a=b", "Cache-Control: no-store", Reused),
        ("no-store;a", "Cache-Control: max-age=3600", Passed),
        ("max-age=0;a, no-transform", "Cache-Control: max-age=3600", Passed),
        // None of its directives counts.
        ("max-age=3600 &", "Cache-Control: no-store", Passed),
        ("no-store, &", "Cache-Control: max-age=3600", Reused),
        ("max-age =3600", "Cache-Control: no-store", Passed),
        ("Max-Age=3600", "Cache-Control: no-store", Passed),
        ("max-age=3600,", "Cache-Control: no-store", Passed),
        ("private=\"x", "Cache-Control: max-age=3600", Reused),
        // A time of another type does not count. The rest does.
        ("max-age=\"3600\"", "Cache-Control: no-store", Passed),
        ("max-age=3600.0", "Cache-Control: no-store", Passed),
        ("max-age=1.5, no-store", "Cache-Control: max-age=3600", Passed),
    ] {
        cases.push(twice(
            "RFC 9213 2.1",
            &format!("200\nCDN-Cache-Control: {value}\n{others}"),
            fate,
        ));
    }
    cases.push(twice(
        "RFC 9213 2.1",
        "200\nCDN-Cache-Control: max-age=3600\nCDN-Cache-Control: \"\nCache-Control: no-store",
        Passed,
    ));
    run(cases);
}

#[test]
fn targeted_fields_for_others_are_passed_on() {
    run(vec![
        case(
            "RFC 9213 3.1",
            "another CDN may be in front of us",
            &["200\nCDN-Cache-Control: max-age=3600"],
        )
        .has("cdn-cache-control", Some("max-age=3600"))
        .get("", Reused)
        .has("cdn-cache-control", Some("max-age=3600")),
        case(
            "Edge Architecture 2.3",
            "what is for us alone is not",
            &["200\nSurrogate-Control: max-age=3600"],
        )
        .has("surrogate-control", None)
        .get("", Reused)
        .has("surrogate-control", None),
    ]);
}
