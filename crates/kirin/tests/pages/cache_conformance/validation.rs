//! Validation of stored responses (section 4.3), updates by a 304 (section 3.2), and the conditions
//! of clients (section 4.3.2).

use super::{Case, Passed, Reused, Validated, case, run};

const ONE: &str = "200\nCache-Control: max-age=0\nETag: \"one\"\nX-A: old\nContent-Type: text/one";

/// Returns a case whose response is validated with a 304 with the fields `said`. The case checks
/// the response that is served then.
fn renewed(said: &str) -> Case {
    case("3.2", said, &[ONE, &format!("304\n{said}")]).get("", Validated).status(200).body("body 1")
}

#[test]
fn a_stale_response_is_validated_by_all_its_validators() {
    let said = |fields: &str, fate| {
        let stale = format!("200\nCache-Control: max-age=0\n{fields}");
        case("4.3.1", fields, &[&stale, "304"]).get("", fate)
    };
    run(vec![
        said("ETag: \"a\"", Validated).status(200).body("body 1"),
        said("ETag: W/\"a\"", Validated).status(200).body("body 1"),
        said("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT", Validated).status(200).body("body 1"),
        said("ETag: \"a\"\nLast-Modified: Sun, 06 Nov 1994 08:49:37 GMT", Validated).status(200),
        case(
            "4.3.3",
            "another response takes its place",
            &[ONE, "200\nCache-Control: max-age=3600"],
        )
        .get("", Validated)
        .body("body 2")
        .get("", Reused)
        .body("body 2"),
        case("4.3.3", "an error is passed on", &[ONE, "500"]).get("", Validated).status(500),
    ]);
}

#[test]
fn a_304_updates_the_response_that_it_names() {
    run(vec![
        renewed("Cache-Control: max-age=3600").get("", Reused).body("body 1"),
        renewed("Cache-Control: max-age=0").get("", Validated),
        renewed("Expires: {+3600}").get("", Validated),
        renewed("Cache-Control: max-age=3600\nAge: 7200").get("", Validated),
        renewed("X-A: new\nCache-Control: max-age=3600")
            .has("x-a", Some("new"))
            .get("", Reused)
            .has("x-a", Some("new")),
        renewed("X-B: new").has("x-a", Some("old")).has("x-b", Some("new")),
        renewed("Content-Location: /x").has("content-location", Some("/x")),
        renewed("Content-Security-Policy: x").has("content-security-policy", Some("x")),
        renewed("ETag: \"one\"").has("etag", Some("\"one\"")),
        renewed("Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT")
            .has("last-modified", Some("Sun, 06 Nov 1994 08:49:37 GMT")),
        // These fields are about the body, which is ours.
        renewed("Content-Length: 1").has("content-length", Some("6")),
        renewed("Content-Type: text/other").has("content-type", Some("text/one")),
        renewed("Content-Encoding: gzip").has("content-encoding", None),
        renewed("Content-Range: bytes 0-1/2").has("content-range", None),
        // A response that may not be kept is valid for this one request.
        renewed("Cache-Control: no-store").get("", Passed),
        renewed("Cache-Control: private, max-age=3600").get("", Passed),
        renewed("Vary: *").get("", Passed),
        case(
            "4.3.4",
            "of something else",
            &[ONE, "304\nETag: \"two\"\nCache-Control: max-age=3600", "200\nX-A: new"],
        )
        .get("", Passed)
        .status(200)
        .body("body 3")
        .has("x-a", Some("new")),
    ]);
}

#[test]
fn clients_conditions_are_answered_from_memory() {
    let fresh = |fields: &str, asked: &str, status| {
        let said = format!("200\nCache-Control: max-age=3600\n{fields}");
        case("4.3.2", &format!("{fields}: {asked}"), &[&said]).get(asked, Reused).status(status)
    };
    let (tag, date) = ("ETag: \"a\"", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT");
    run(vec![
        fresh(tag, "If-None-Match: \"a\"", 304).has("etag", Some("\"a\"")),
        fresh(tag, "If-None-Match: W/\"a\"", 304),
        fresh(tag, "If-None-Match: \"x\", \"a\"", 304),
        fresh(tag, "If-None-Match: \"x\"\r\nIf-None-Match: \"a\"", 304),
        fresh(tag, "If-None-Match: *", 304),
        fresh(tag, "If-None-Match: \"x\"", 200),
        fresh(tag, "If-None-Match: \"A\"", 200),
        fresh(tag, "If-None-Match: a", 200),
        fresh("ETag: W/\"a\"", "If-None-Match: \"a\"", 304),
        fresh(tag, "If-None-Match: \"x\"\r\nIf-Modified-Since: Sun, 06 Nov 2050 08:49:37 GMT", 200),
        fresh(date, "If-Modified-Since: Sun, 06 Nov 1994 08:49:37 GMT", 304),
        fresh(date, "If-Modified-Since: Sun, 06 Nov 1994 08:49:38 GMT", 304),
        fresh(date, "If-Modified-Since: Sun, 06 Nov 1994 08:49:36 GMT", 200),
        fresh(date, "If-Modified-Since: never", 200),
        fresh(tag, "If-Match: \"a\"", 200),
        fresh(tag, "If-Match: \"x\"", 412),
        fresh("ETag: W/\"a\"", "If-Match: W/\"a\"", 412),
        case(
            "RFC 9110 13.2.1",
            "conditions are for what would be 2xx",
            &["404\nCache-Control: max-age=3600\nETag: \"a\""],
        )
        .get("If-None-Match: \"a\"", Reused)
        .status(404),
    ]);
}

#[test]
fn a_condition_does_not_prevent_storing_the_complete_response() {
    run(vec![
        case(
            "4.3.1",
            "a client's condition is ours to answer",
            &["200\nCache-Control: max-age=3600\nETag: \"a\""],
        )
        .first("If-None-Match: \"x\"")
        .get("", Reused)
        .body("body 1"),
        case(
            "4.3.2",
            "and answered when the response has come",
            &["200\nCache-Control: max-age=3600\nETag: \"a\""],
        )
        .first("If-None-Match: \"a\"")
        .status(304),
    ]);
}
