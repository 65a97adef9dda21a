//! Stale responses that are used all the same (section 4.2.4, RFC 5861).

use super::{Case, Fate, Reused, Validated, case, run};

/// Returns a case whose response has been stale for a hundred seconds. The server then answers
/// `then`.
fn stale(said: &str, then: &str, fate: Fate) -> Case {
    let said = format!("200\n{said}\nAge: 3700\nETag: \"a\"");
    case("RFC 5861", &format!("{said}, {then}"), &[&said, then]).get("", fate)
}

#[test]
fn a_stale_response_replaces_errors_if_it_allows_that() {
    let said = "Cache-Control: max-age=3600, stale-if-error=1000";
    let mut cases = Vec::new();
    for error in ["500", "502", "503", "504"] {
        cases.push(stale(said, error, Validated).status(200).body("body 1"));
        cases.push(stale("Cache-Control: max-age=3600", error, Validated).body("body 2"));
    }
    for answer in ["400", "404", "501"] {
        cases.push(stale(said, answer, Validated).body("body 2"));
    }
    cases.push(
        stale("Cache-Control: max-age=3600, stale-if-error=10", "503", Validated).status(503),
    );
    cases.push(
        stale(
            "Cache-Control: max-age=3600, stale-if-error=1000, must-revalidate",
            "503",
            Validated,
        )
        .status(503),
    );
    cases.push(
        stale(
            "Cache-Control: max-age=3600, stale-if-error=1000, proxy-revalidate",
            "503",
            Validated,
        )
        .status(503),
    );
    cases.push(stale("Cache-Control: no-cache, stale-if-error=1000", "503", Validated).status(503));
    run(cases);
}

#[test]
fn an_error_is_passed_on_if_the_stale_response_may_not_be_used() {
    // Sections 5.2.2.2 and 5.2.2.10.
    run(vec![
        stale("Cache-Control: max-age=3600, must-revalidate", "504", Validated).status(504),
        stale("Cache-Control: max-age=3600, s-maxage=3600", "504", Validated).status(504),
    ]);
}

#[test]
fn a_stale_response_is_used_while_it_is_renewed_if_it_allows_that() {
    let answered = |said: &str, expected: &'static str| {
        let said = format!("200\n{said}\nAge: 3700\nETag: \"a\"");
        case("RFC 5861 3", &said, &[&said, "200\nCache-Control: no-store"])
            .get("", Reused)
            .body(expected)
    };
    let behind = |mut case: Case| {
        // The server may or may not have been asked by then, because Kirin asks it in the
        // background.
        case.asks[1].fate = Fate::Any;
        case
    };
    run(vec![
        behind(answered("Cache-Control: max-age=3600, stale-while-revalidate=1000", "body 1")),
        behind(answered("Cache-Control: max-age=3600, stale-while-revalidate=10", "body 2")),
        behind(answered(
            "Cache-Control: max-age=3600, stale-while-revalidate=1000, must-revalidate",
            "body 2",
        )),
        behind(answered("Cache-Control: max-age=3600, stale-while-revalidate=x", "body 2")),
    ]);
}
