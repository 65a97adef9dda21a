//! Tests that the judge finds wrong answers. Each fake differs from a right answer in one thing.

use super::{
    Content, Fault, after_sign_out, file, for_member, for_stranger, form, own, refused, sees_other,
};
use crate::answer::Answer;
use crate::facts::File;

const HTML: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=UTF-8\r\n\r\n";
const WORDS: Content<'_> = Content::Words(&["green tea"]);

fn page(bar: &str, main: &str) -> String {
    format!("<!DOCTYPE html><html><body><header>{bar}</header><main>{main}</main></body></html>\n")
}

fn bar(name: &str) -> String {
    format!(
        "<strong>{name}</strong><form action=\"/signout\"><input name=\"csrf_token\" value=\"of-{name}\"></form>"
    )
}

fn answer(body: &str) -> Answer<'_> {
    Answer { status: 200, head: HTML, body: body.as_bytes() }
}

fn is_slip<T: std::fmt::Debug>(judged: Result<T, Fault>) -> bool {
    matches!(judged, Err(Fault::Slip(_)))
}

fn is_breach<T: std::fmt::Debug>(judged: Result<T, Fault>) -> bool {
    matches!(judged, Err(Fault::Breach(_)))
}

#[test]
fn a_page_is_what_was_asked_for_and_whole() {
    let right = page("", "green tea");
    assert_eq!(for_stranger(&answer(&right), WORDS), Ok(()));
    assert!(is_slip(for_stranger(&answer(&page("", "black tea")), WORDS)));
    assert!(is_slip(for_stranger(&answer(right.trim_end_matches("</html>\n")), WORDS)));
    assert!(is_slip(for_stranger(&Answer { status: 500, ..answer(&right) }, WORDS)));
    let text = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n";
    assert!(is_slip(for_stranger(&Answer { head: text, ..answer(&right) }, WORDS)));
}

#[test]
fn a_list_is_full() {
    let links = |count: usize| page("", &"<a href=\"/memo/7\">seven</a>".repeat(count));
    assert_eq!(for_stranger(&answer(&links(100)), Content::List), Ok(()));
    assert!(is_slip(for_stranger(&answer(&links(99)), Content::List)));
}

#[test]
fn a_private_memo_on_a_public_page_is_a_breach() {
    let body = page("", "green tea <a href=\"/memo/9\">sealed-1234</a>");
    assert!(is_breach(for_stranger(&answer(&body), WORDS)));
    assert!(is_breach(for_member(&answer(&page(&bar("ann"), "green tea sealed-1")), WORDS, "ann")));
    assert_eq!(
        own(&answer(&page(&bar("ann"), "green tea sealed-1")), WORDS, "ann"),
        Ok("of-ann".to_owned())
    );
}

#[test]
fn a_private_memo_shown_to_others_is_a_breach_whatever_its_status() {
    let body = page("", "sealed-1234");
    assert!(is_breach(refused(&answer(&body))));
    assert!(is_breach(refused(&Answer { status: 404, ..answer(&body) })));
    assert!(is_breach(refused(&answer(&page("", "an empty page")))));
    assert!(is_slip(refused(&Answer { status: 502, ..answer("") })));
    assert_eq!(refused(&Answer { status: 404, ..answer("no such page") }), Ok(()));
}

#[test]
fn a_member_is_called_by_their_own_name() {
    let seen = |body: &str| for_member(&answer(body), WORDS, "ann");
    assert_eq!(seen(&page(&bar("ann"), "green tea")), Ok("of-ann".to_owned()));
    assert!(
        is_breach(seen(&page(&bar("bob"), "green tea by ann"))),
        "the name in a memo is not enough"
    );
    assert!(is_slip(seen(&page("<a href=\"/signin\">Sign in</a>", "green tea"))));
}

#[test]
fn a_stranger_who_is_shown_somebodys_bar_is_a_breach() {
    assert!(is_breach(for_stranger(&answer(&page(&bar("ann"), "green tea")), WORDS)));
}

#[test]
fn a_name_that_stays_after_signing_out_is_a_breach() {
    let after = |body: &str| after_sign_out(&answer(body), WORDS, "ann");
    assert_eq!(after(&page("<a href=\"/signin\">Sign in</a>", "green tea by ann")), Ok(()));
    assert!(is_breach(after(&page(&bar("ann"), "green tea"))));
    assert!(is_breach(after(&page("hello ann", "green tea"))));
}

#[test]
fn a_form_without_a_token_is_none() {
    let right = page("", "<form action=\"/memo\"><input name=\"csrf_token\" value=\"t\"></form>");
    assert_eq!(form(&answer(&right), "/memo"), Ok("t".to_owned()));
    assert!(is_slip(form(&answer(&page("", "<form action=\"/memo\"></form>")), "/memo")));
}

#[test]
fn a_redirect_leads_where_it_should_with_or_without_a_host() {
    let there = |head: &'static str| {
        sees_other(&Answer { status: 303, head: head.as_bytes(), body: b"" }, "/memo/")
    };
    assert_eq!(there("HTTP/1.1 303 x\r\nLocation: /memo/7\r\n\r\n"), Ok("/memo/7".to_owned()));
    assert_eq!(
        there("HTTP/1.1 303 x\r\nLocation: http://h:1/memo/7\r\n\r\n"),
        Ok("/memo/7".to_owned())
    );
    assert!(is_slip(there("HTTP/1.1 303 x\r\nLocation: /signin\r\n\r\n")));
    assert!(is_slip(there("HTTP/1.1 303 x\r\n\r\n")));
}

#[test]
fn a_file_is_the_file_and_of_its_type() {
    let style = File { path: "/memo.css", media_type: "text/css", bytes: b"a {}".to_vec() };
    let head = b"HTTP/1.1 200 OK\r\nContent-Type: text/css\r\n\r\n";
    let right = Answer { status: 200, head, body: b"a {}" };
    assert_eq!(file(&right, &style), Ok(()));
    assert!(is_slip(file(&Answer { body: b"a {", ..right }, &style)));
    assert!(is_slip(file(&Answer { head: HTML, ..right }, &style)));
    assert!(is_slip(file(&Answer { status: 404, ..right }, &style)));
}
