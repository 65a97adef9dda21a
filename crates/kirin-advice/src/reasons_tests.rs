//! Sites as attackers and careless operators have them: the reasons against sharing their pages.

use super::*;
use crate::observation::{Freshness, Statement};
use crate::test_site::{PAGE, TestSite, Visit};
use crate::verdict::{Missing, PageVerdict};

#[test]
fn a_page_for_members_only_is_never_shared() {
    for (status, body) in [(302, ""), (403, "no"), (404, "no"), (401, "no"), (200, "sign in first")]
    {
        for strangers_first in [true, false] {
            let mut site = TestSite::new();
            let ask = |site: &mut TestSite| {
                site.ask(Visit { status, body, ..Visit::default() });
            };
            if strangers_first {
                ask(&mut site);
            }
            site.members(6, PAGE);
            ask(&mut site);
            let verdict = site.verdict();
            let is_safe =
                matches!(verdict, PageVerdict::Unsafe { .. } | PageVerdict::Unproven { .. });
            assert!(is_safe, "{status} {strangers_first} {verdict:?}");
        }
    }
    let mut site = TestSite::new();
    site.members(8, PAGE);
    assert!(
        matches!(site.verdict(), PageVerdict::Unproven { missing } if missing.contains(&Missing::Anonymous))
    );
}

#[test]
fn a_page_that_depends_on_the_address_is_never_shared() {
    let mut site = TestSite::new();
    for _ in 0..3 {
        for number in 0..4 {
            let address = format!("10.0.0.{number}");
            let body = if number == 0 { "<p>for the office</p>" } else { PAGE };
            site.ask(Visit { address: &address, body, ..Visit::default() });
        }
    }
    assert_eq!(site.reasons(), [Reason::Address]);
    // From one address alone nobody can know.
    let mut site = TestSite::new();
    for number in 0..9 {
        let agent = format!("browser {number}");
        site.ask(Visit { agent: &agent, body: PAGE, ..Visit::default() });
    }
    assert!(matches!(site.verdict(), PageVerdict::Unproven { .. }));
    site.demands.addresses = 1;
    assert_eq!(site.verdict(), PageVerdict::WithoutCookie { others_differ: false });
}

#[test]
fn a_page_that_depends_on_the_browser_is_not_shared() {
    let mut site = TestSite::new();
    for number in 0..8 {
        let (address, is_phone) = (format!("10.0.0.{number}"), number % 2 == 0);
        let (agent, body) = if is_phone { ("phone", "<p>small</p>") } else { ("desk", PAGE) };
        site.ask(Visit { address: &address, agent, body, ..Visit::default() });
    }
    assert_eq!(site.reasons(), [Reason::Agent]);
}

#[test]
fn a_page_that_is_new_each_time_is_not_shared() {
    let mut site = TestSite::new();
    for number in 0..30 {
        let (address, body) = (format!("10.0.0.{number}"), format!("{number}"));
        site.ask(Visit { address: &address, body: &body, ..Visit::default() });
    }
    assert_eq!(site.reasons(), [Reason::Differs]);
}

#[test]
fn a_page_with_the_visitors_own_cookie_is_never_shared() {
    let mut site = TestSite::new();
    site.strangers(3, &format!("{PAGE}<p></p>"));
    for number in 0..5 {
        let session = format!("0123456789abcdef{number}");
        let cookies = [("sid", session.as_str())];
        let body = format!("{PAGE}<p>{session}</p>");
        site.ask(Visit { cookies: &cookies, body: &body, ..Visit::default() });
    }
    assert_eq!(site.reasons(), [Reason::OwnValue]);
}

#[test]
fn an_unknown_request_field_counts_as_a_credential() {
    // The cache would store the response to a request with the key, and give it to everybody.
    let mut site = TestSite::new();
    site.strangers(5, PAGE);
    site.ask(Visit { field: "key of mari", body: "{\"name\": \"mari\"}", ..Visit::default() });
    site.strangers(5, PAGE);
    assert_eq!(site.reasons(), [Reason::OtherFields(vec!["x-api-key".into()])]);
    let mut site = TestSite::new();
    site.strangers(5, PAGE);
    site.ask(Visit { field: "key of mari", body: PAGE, ..Visit::default() });
    let verdict = site.verdict();
    assert!(matches!(verdict, PageVerdict::Unproven { .. }), "{verdict:?}");
}

#[test]
fn response_fields_that_forbid_sharing_are_reasons() {
    let statement = |change: fn(&mut Statement)| {
        let mut statement = Statement { is_html: true, ..Statement::default() };
        change(&mut statement);
        statement
    };
    for (statement, reason) in [
        (statement(|said| said.sets_cookie = true), Reason::SetsCookie),
        (statement(|said| said.is_private = true), Reason::Private),
        (statement(|said| said.vary = vec!["*".into()]), Reason::VariesByAll),
    ] {
        let mut site = TestSite::new();
        site.strangers(3, PAGE);
        site.members(3, PAGE);
        site.ask(Visit { statement, body: PAGE, ..Visit::default() });
        assert_eq!(site.reasons(), [reason]);
    }
    // `private` to members only: the application decides.
    let mut site = TestSite::new();
    site.strangers(3, PAGE);
    site.members(3, PAGE);
    let private =
        Statement { is_private: true, freshness: Freshness::Unstated, ..Statement::default() };
    let cookies = [("sid", "0123456789abcdef8")];
    site.ask(Visit { cookies: &cookies, statement: private, body: PAGE, ..Visit::default() });
    assert_eq!(site.verdict(), PageVerdict::WithoutCookie { others_differ: false });
}

#[test]
fn public_pages_that_differ_are_not_given_to_a_cache() {
    // With `cache`, Kirin would believe `public`, and share the page of a member.
    let mut site = TestSite::new();
    site.strangers(4, PAGE);
    for number in 0..4 {
        let session = format!("0123456789abcdef{number}");
        let cookies = [("sid", session.as_str())];
        let statement = Statement { is_public: true, is_html: true, ..Statement::default() };
        let body = format!("{PAGE}<b>member {number}</b>");
        site.ask(Visit { cookies: &cookies, statement, body: &body, ..Visit::default() });
    }
    assert_eq!(site.reasons(), [Reason::PublicButDiffers]);
}

#[test]
fn methods_passwords_and_statuses_are_reasons() {
    let mut site = TestSite::new();
    site.ask(Visit { method_is_read: false, body: PAGE, ..Visit::default() });
    assert_eq!(site.reasons(), [Reason::Method]);
    let mut site = TestSite::new();
    site.is_protected = true;
    site.strangers(3, PAGE);
    site.members(3, PAGE);
    assert_eq!(site.reasons(), [Reason::Protected]);
    let mut site = TestSite::new();
    for number in 0..5 {
        let address = format!("10.0.0.{number}");
        site.ask(Visit { address: &address, status: 302, ..Visit::default() });
    }
    assert_eq!(site.reasons(), [Reason::Status(302)]);
    let mut site = TestSite::new();
    site.ask(Visit { authorization: "Basic bWFyaQ==", body: PAGE, ..Visit::default() });
    let reasons = site.reasons();
    assert_eq!(reasons, [Reason::CredentialsOnly]);
}

#[test]
fn errors_and_partial_responses_are_not_evidence_about_a_page() {
    let mut site = TestSite::new();
    site.strangers(3, PAGE);
    site.members(3, PAGE);
    for status in [206, 304, 412, 416, 429, 500, 503] {
        site.ask(Visit { status, body: "other", ..Visit::default() });
    }
    assert_eq!(site.verdict(), PageVerdict::Everybody);
}
