//! `Vary` (section 4.1).

use super::{Case, Fate, Passed, Reused, case, run};

/// Returns a case whose response has this `Vary`. It is requested with the first fields and then
/// with the second.
fn vary(by: &str, first: &str, second: &str, fate: Fate) -> Case {
    let lines: String = by.split('|').map(|by| format!("\nVary: {by}")).collect();
    case(
        "4.1",
        &format!("{by}: {first:?}, {second:?}"),
        &[&format!("200\nCache-Control: max-age=3600{lines}")],
    )
    .first(first)
    .get(second, fate)
}

#[test]
fn equal_requests_get_the_same_variant() {
    run(vec![
        vary("Foo", "Foo: 1", "Foo: 1", Reused),
        vary("foo", "FOO: 1", "Foo: 1", Reused),
        vary("Foo", "Foo: 1", "Foo: 2", Passed),
        vary("Foo", "Foo: 1", "Foo: 12", Passed),
        vary("Foo", "Foo: 1", "Bar: 1", Passed),
        vary("Foo", "Bar: 1", "Foo: 1", Passed),
        vary("Foo", "Bar: 1", "Bar: 2", Reused),
        vary("Foo", "Foo:", "Bar: 1", Passed),
        vary("Foo, Bar", "Foo: 1\r\nBar: 2", "Bar: 2\r\nFoo: 1", Reused),
        vary("Foo, Bar", "Foo: 1\r\nBar: 2", "Foo: 2\r\nBar: 1", Passed),
        vary("Foo, Bar", "Foo: 1", "Foo: 1\r\nBar: 2", Passed),
        vary("Foo|Bar", "Foo: 1\r\nBar: 2", "Foo: 1\r\nBar: 3", Passed),
        vary("Foo|Bar", "Foo: 1\r\nBar: 2", "Foo: 1\r\nBar: 2\r\nBaz: 1", Reused),
        vary("Foo, Bar, Baz", "Foo: 1\r\nBaz: 3", "Foo: 1\r\nBaz: 3", Reused),
        vary(",Foo,,", "Foo: 1", "Foo: 2", Passed),
        vary("Foo", "Foo: 1\r\nFoo: 2", "Foo: 1,2", Reused),
        vary("Foo", "Foo: 1,2", "Foo: 2,1", Passed),
        vary("Foo", "Foo: a", "Foo: A", Passed),
        vary("Foo", "Foo: a=1", "Foo: a", Passed),
        vary("Accept-Encoding", "Accept-Encoding: gzip, br", "Accept-Encoding: br,gzip", Reused),
        vary("Accept-Encoding", "Accept-Encoding: gzip", "Accept-Encoding: gzip;q=0", Passed),
        vary("Accept-Language", "Accept-Language: en, de", "Accept-Language: en,de", Reused),
        vary("Accept-Language", "Accept-Language: en, de", "Accept-Language: de, en", Passed),
        vary("User-Agent", "User-Agent: a", "User-Agent: b", Passed),
    ]);
}

#[test]
fn a_response_with_vary_star_is_for_no_other_request() {
    run(["*", "*, Foo", "Foo, *", "Foo|*", ", *", "Accept Encoding"]
        .map(|by| vary(by, "Foo: 1", "Foo: 1", Passed))
        .into());
}

#[test]
fn variants_do_not_replace_each_other() {
    let said = "200\nCache-Control: max-age=3600\nVary: Foo";
    run(vec![
        case("4.1", "three variants", &[said])
            .first("Foo: 1")
            .get("Foo: 2", Passed)
            .get("Foo: 3", Passed)
            .get("Foo: 1", Reused)
            .body("body 1")
            .get("Foo: 2", Reused)
            .body("body 2")
            .get("Foo: 3", Reused)
            .body("body 3"),
        case(
            "4.1",
            "one that does not vary is for all",
            &[said, "200\nCache-Control: max-age=3600"],
        )
        .first("Foo: 1")
        .get("Foo: 2", Passed)
        .get("Foo: 9", Reused)
        .body("body 2"),
        case(
            "4.1",
            "what responses vary by may change",
            &[said, "200\nCache-Control: max-age=3600\nVary: Bar"],
        )
        .first("Foo: 1")
        .get("Foo: 2", Passed)
        .get("Foo: 3", Reused)
        .body("body 2")
        .get("Foo: 3\r\nBar: 1", Passed),
    ]);
}
