//! Tests of conditional requests (RFC 9110 section 13).

use super::*;

const MODIFIED: u64 = 784_111_777;
const SAME: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
const AFTER: &str = "Sun, 06 Nov 1994 08:49:38 GMT";
const RFC850: &str = "Sunday, 06-Nov-94 08:49:37 GMT";
const ASCTIME: &str = "Sun Nov  6 08:49:37 1994";

const VALIDATORS: Validators<'static> =
    Validators { entity_tag: Tag::Strong(b"\"x\""), last_modified: Some(MODIFIED) };

#[test]
fn conditions_are_evaluated_in_the_order_of_the_specification() {
    use Verdict::{Failed, NotModified, Proceed};
    let (im, ius, inm, ims) =
        ("If-Match", "If-Unmodified-Since", "If-None-Match", "If-Modified-Since");
    let cases: &[(&[(&str, &str)], Verdict)] = &[
        (&[], Proceed),
        // Each condition alone.
        (&[(im, "\"x\"")], Proceed),
        (&[(im, "\"y\", \"x\"")], Proceed),
        (&[(im, "*")], Proceed),
        (&[(im, "\"y\"")], Failed),
        (&[(im, "W/\"x\"")], Failed),
        (&[(im, "")], Failed),
        (&[(im, "\"y\""), (im, "\"x\"")], Proceed),
        (&[(ius, SAME)], Proceed),
        (&[(ius, AFTER)], Proceed),
        (&[(ius, BEFORE)], Failed),
        (&[(ius, "yesterday")], Proceed),
        (&[(ius, BEFORE), (ius, BEFORE)], Proceed),
        (&[(inm, "\"x\"")], NotModified),
        (&[(inm, "W/\"x\"")], NotModified),
        (&[(inm, "\"y\", W/\"x\"")], NotModified),
        (&[(inm, "\"y\""), (inm, "\"x\"")], NotModified),
        (&[(inm, "*")], NotModified),
        (&[(inm, "\"y\"")], Proceed),
        (&[(inm, "x")], Proceed),
        (&[(ims, SAME)], NotModified),
        (&[(ims, RFC850)], NotModified),
        (&[(ims, ASCTIME)], NotModified),
        (&[(ims, AFTER)], NotModified),
        (&[(ims, BEFORE)], Proceed),
        (&[(ims, "0")], Proceed),
        (&[(ims, "")], Proceed),
        (&[(ims, "Sun, 06 Nov 1994 08:49:37 +0000")], Proceed),
        (&[(ims, SAME), (ims, SAME)], Proceed),
        // If-None-Match overrules If-Modified-Since in both directions.
        (&[(inm, "\"y\""), (ims, SAME)], Proceed),
        (&[(inm, "\"x\""), (ims, BEFORE)], NotModified),
        // If-Match overrules If-Unmodified-Since in both directions.
        (&[(im, "\"x\""), (ius, BEFORE)], Proceed),
        (&[(im, "\"y\""), (ius, SAME)], Failed),
        // The first pair comes before the second.
        (&[(im, "\"y\""), (inm, "\"x\"")], Failed),
        (&[(im, "\"x\""), (inm, "\"x\"")], NotModified),
        (&[(im, "\"x\""), (inm, "\"y\"")], Proceed),
        (&[(ius, BEFORE), (ims, SAME)], Failed),
        (&[(ius, SAME), (ims, SAME)], NotModified),
        (&[(ims, SAME), (ius, BEFORE)], Failed),
        (&[(im, "\"x\""), (ims, BEFORE)], Proceed),
    ];
    for (lines, expected) in cases {
        assert_eq!(evaluate(&RequestFields::from_lines(lines), VALIDATORS), *expected, "{lines:?}");
    }
}

#[test]
fn dates_say_nothing_about_a_file_without_one() {
    let validators = Validators { last_modified: None, ..VALIDATORS };
    for (name, value) in [("If-Modified-Since", AFTER), ("If-Unmodified-Since", BEFORE)] {
        let fields = RequestFields::from_lines(&[(name, value)]);
        assert_eq!(evaluate(&fields, validators), Verdict::Proceed, "{name}");
    }
    assert!(!range_applies(Some(SAME.as_bytes()), validators));
    assert!(!range_applies(Some(b"0"), validators));
}

#[test]
fn if_range_wants_the_very_same_file() {
    for (value, applies) in [
        (None, true),
        (Some("\"x\""), true),
        (Some("W/\"x\""), false),
        (Some("\"y\""), false),
        (Some("\"x\", \"y\""), false),
        (Some("*"), false),
        (Some("x"), false),
        (Some(SAME), true),
        (Some(RFC850), true),
        (Some(BEFORE), false),
        (Some(AFTER), false),
        (Some(""), false),
    ] {
        assert_eq!(range_applies(value.map(str::as_bytes), VALIDATORS), applies, "{value:?}");
    }
}
