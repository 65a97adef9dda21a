//! Statuses that may be kept (sections 3 and 4.2.2).

use super::{Fate, Passed, Reused, run, twice};

fn said(statuses: &[u16], fields: &str, fate: Fate) {
    run(statuses.iter().map(|status| twice("3", &format!("{status}\n{fields}"), fate)).collect());
}

const ALL: [u16; 31] = [
    200, 201, 202, 203, 204, 205, 226, 299, 300, 301, 302, 303, 305, 307, 308, 399, 400, 403, 404,
    405, 410, 414, 418, 451, 499, 500, 501, 502, 503, 504, 599,
];

#[test]
fn any_final_status_with_a_lifetime_is_kept() {
    said(&ALL, "Cache-Control: max-age=3600", Reused);
    said(&ALL, "Cache-Control: s-maxage=3600", Reused);
    said(&ALL, "Expires: {+3600}", Reused);
}

#[test]
fn no_stale_response_and_none_without_a_lifetime_is_kept() {
    said(&ALL, "Cache-Control: max-age=0", Passed);
    said(&ALL, "X-Says: nothing", Passed);
}

#[test]
fn parts_and_answers_to_conditions_are_not_complete_responses() {
    said(&[206, 412, 416], "Cache-Control: max-age=3600\nContent-Range: bytes 0-5/9", Passed);
}

#[test]
fn a_response_with_an_invalid_status_is_not_kept() {
    said(&[600, 999], "Cache-Control: max-age=3600", Passed);
}

#[test]
fn must_understand_is_for_understood_statuses() {
    let fields = "Cache-Control: max-age=3600, no-store, must-understand";
    said(&[200, 203, 204, 301, 308, 404, 410], fields, Reused);
    said(&[299, 399, 499, 599], fields, Passed);
    said(&[299, 599], "Cache-Control: max-age=3600, must-understand", Passed);
}
