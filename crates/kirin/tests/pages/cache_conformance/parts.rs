//! Ranges (section 3.3 and RFC 9110 section 14). Parts are not kept. Parts of stored responses are
//! made from them.

use super::{Case, Passed, Reused, case, run};

fn part(range: &str, status: u16, body: &'static str) -> Case {
    let said = "200\nCache-Control: max-age=3600\nETag: \"a\"";
    case("RFC 9110 14.2", range, &[said]).get(range, Reused).status(status).body(body)
}

#[test]
fn parts_are_made_of_the_complete_response() {
    run(vec![
        part("Range: bytes=0-3", 206, "body").has("content-range", Some("bytes 0-3/6")),
        part("Range: bytes=5-", 206, "1"),
        part("Range: bytes=-1", 206, "1"),
        part("Range: bytes=-99", 206, "body 1"),
        part("Range: bytes=0-99", 206, "body 1"),
        part("Range: bytes=3-0", 200, "body 1"),
        part("Range: lines=0-1", 200, "body 1"),
        part("Range: bytes=x", 200, "body 1"),
        part("Range: bytes=0-3\r\nIf-Range: \"a\"", 206, "body"),
        part("Range: bytes=0-3\r\nIf-Range: \"b\"", 200, "body 1"),
        part("Range: bytes=0-3\r\nIf-Range: W/\"a\"", 200, "body 1"),
        part("Range: bytes=0-3\r\nIf-None-Match: \"a\"", 304, ""),
    ]);
}

#[test]
fn content_range_of_a_complete_response_is_dropped() {
    let said = "200\nCache-Control: max-age=3600\nContent-Range: bytes 0-1/99";
    run(vec![
        case("RFC 9110 14.4", said, &[said])
            .get("", Reused)
            .has("content-range", None)
            .get("Range: bytes=0-3", Reused)
            .status(206)
            .has("content-range", Some("bytes 0-3/6")),
    ]);
}

#[test]
fn parts_themselves_are_not_kept() {
    let part = "206\nCache-Control: max-age=3600\nContent-Range: bytes 0-5/9\nETag: \"a\"";
    run(vec![
        case("3.3", "a part is not the whole", &[part, "200"])
            .first("Range: bytes=0-5")
            .status(206)
            .get("", Passed)
            .status(200),
        case("3.3", "nor the same part again", &[part])
            .first("Range: bytes=0-5")
            .get("Range: bytes=0-5", Passed),
        case(
            "3.3",
            "the whole in place of a part leaves nothing either",
            &["200\nCache-Control: max-age=3600"],
        )
        .first("Range: bytes=0-1")
        .get("", Passed)
        .get("", Reused),
    ]);
}
