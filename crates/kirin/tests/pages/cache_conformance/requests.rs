//! Request directives for caches (sections 5.2.1 and 5.4). Without `reload` Kirin ignores those
//! that only cause work, which the RFC allows.

use super::{Case, Fate, Passed, Reused, Validated, case, run};

fn asked(said: &str, fields: &str, fate: Fate) -> Case {
    case("5.2.1", &format!("{said}: {fields}"), &[&format!("200\n{said}"), "304"])
        .get(fields, fate)
        .reloading()
}

const FRESH: &str = "Cache-Control: max-age=3600\nAge: 1800\nETag: \"a\"";
const STALE: &str = "Cache-Control: max-age=3600\nAge: 3700\nETag: \"a\"";

#[test]
fn requests_limit_the_age_of_a_response() {
    run(vec![
        asked(FRESH, "Cache-Control: max-age=0", Validated),
        asked(FRESH, "Cache-Control: max-age=1000", Validated),
        asked(FRESH, "Cache-Control: max-age=2000", Reused),
        asked(FRESH, "Cache-Control: min-fresh=1000", Reused),
        asked(FRESH, "Cache-Control: min-fresh=2000", Validated),
        asked(FRESH, "Cache-Control: no-cache", Validated),
        asked(FRESH, "Pragma: no-cache", Validated),
        asked(FRESH, "Pragma: foo", Reused),
        asked(FRESH, "Pragma: no-cache\r\nCache-Control: max-age=2000", Reused),
        asked("Cache-Control: max-age=3600", "Cache-Control: no-cache", Passed),
        asked(STALE, "Cache-Control: max-stale", Reused),
        asked(STALE, "Cache-Control: max-stale=1000", Reused),
        asked(STALE, "Cache-Control: max-stale=10", Validated),
        asked(STALE, "Cache-Control: max-stale=x", Validated),
        asked(
            "Cache-Control: max-age=3600, must-revalidate\nAge: 3700\nETag: \"a\"",
            "Cache-Control: max-stale",
            Validated,
        ),
        asked(
            "Cache-Control: max-age=3600, proxy-revalidate\nAge: 3700\nETag: \"a\"",
            "Cache-Control: max-stale",
            Validated,
        ),
        asked(
            "Cache-Control: s-maxage=3600\nAge: 3700\nETag: \"a\"",
            "Cache-Control: max-stale",
            Validated,
        ),
        asked("Cache-Control: no-cache\nETag: \"a\"", "Cache-Control: max-stale", Validated),
    ]);
}

#[test]
fn without_reload_request_directives_cause_no_work() {
    let asked =
        |fields: &str| case("5.2.1", fields, &[&format!("200\n{FRESH}")]).get(fields, Reused);
    run(["no-cache", "max-age=0", "no-cache, no-store, max-age=0"]
        .map(|value| asked(&format!("Cache-Control: {value}")))
        .into_iter()
        .chain([asked("Pragma: no-cache")])
        .collect());
}

#[test]
fn only_if_cached_and_no_store_are_always_obeyed() {
    run(vec![
        case("5.2.1.7", "what is there", &[&format!("200\n{FRESH}")])
            .get("Cache-Control: only-if-cached", Reused)
            .status(200),
        case("5.2.1.7", "what is stale", &[&format!("200\n{STALE}")])
            .get("Cache-Control: only-if-cached", Reused)
            .status(504),
        case("5.2.1.5", "what one does not want kept", &[&format!("200\n{FRESH}")])
            .first("Cache-Control: no-store")
            .get("", Passed),
        case("5.2.1.5", "what is kept may be used", &[&format!("200\n{FRESH}")])
            .get("Cache-Control: no-store", Reused),
    ]);
}
