//! Visitors whose responses are kept, and the requests that get them (sections 3, 3.5 and 7.3).

use super::{Case, Fate, Passed, Reused, case, run};

const PASSWORD: &str = "Authorization: Basic eDp5";

/// Requests with `fields`, and then without.
fn by(section: &'static str, fields: &str, said: &str, fate: Fate) -> Case {
    case(section, &format!("{fields}: {said}"), &[&format!("200\n{said}")])
        .first(fields)
        .get("", fate)
}

/// Requests without fields, and then with `fields`.
fn to(section: &'static str, fields: &str, said: &str, fate: Fate) -> Case {
    case(section, &format!("then {fields}: {said}"), &[&format!("200\n{said}")]).get(fields, fate)
}

#[test]
fn a_response_to_a_password_is_shared_only_if_it_allows_that() {
    let mut cases = Vec::new();
    for (said, fate) in [
        ("Cache-Control: max-age=3600", Passed),
        ("Expires: {+3600}", Passed),
        ("Cache-Control: max-age=3600, public", Reused),
        ("Cache-Control: max-age=3600, must-revalidate", Reused),
        ("Cache-Control: s-maxage=3600", Reused),
        ("Cache-Control: max-age=3600, private", Passed),
        ("Cache-Control: max-age=3600, proxy-revalidate", Passed),
    ] {
        cases.push(by("3.5", PASSWORD, said, fate));
        cases.push(by("3.5", "authorization: Bearer x", said, fate));
        // This is stricter than the section: a response to an anonymous request may be wrong for a
        // known visitor.
        cases.push(to("3.5", PASSWORD, said, fate));
    }
    run(cases);
}

#[test]
fn cookies_are_handled_with_more_care_than_the_rfc_requires() {
    run(vec![
        by("7.3", "Cookie: a=b", "Cache-Control: max-age=3600", Passed),
        by("7.3", "Cookie: a=b", "Cache-Control: max-age=3600, public", Reused),
        to("7.3", "Cookie: a=b", "Cache-Control: max-age=3600", Passed),
        to("7.3", "Cookie: a=b", "Cache-Control: s-maxage=3600", Reused),
        case("7.3", "Set-Cookie", &["200\nCache-Control: max-age=3600\nSet-Cookie: a=b"])
            .get("", Passed),
        case("7.3", "Set-Cookie", &["200\nCache-Control: public, max-age=3600\nSet-Cookie: a=b"])
            .get("", Passed),
    ]);
}

#[test]
fn methods_without_a_representation_store_none() {
    let method = |method, fate| {
        let mut case = case("3", method, &["200\nCache-Control: max-age=3600"]).get("", fate);
        case.asks[0].method = method;
        case
    };
    run(vec![
        method("POST", Passed),
        method("PUT", Passed),
        method("OPTIONS", Passed),
        method("FOO", Passed),
        // Kirin requests it with GET, so that the next GET has it.
        method("HEAD", Reused),
        case(
            "4",
            "a HEAD is answered by what a GET has left",
            &["200\nCache-Control: max-age=3600"],
        )
        .ask("HEAD", "", Reused)
        .has("content-length", Some("6")),
        case("4", "an OPTIONS is not", &["200\nCache-Control: max-age=3600"])
            .ask("OPTIONS", "", Passed),
    ]);
}
