//! Which visitors, and how many of them, prove that a page is the same for all.

use proptest::prelude::*;

use super::*;
use crate::test_site::{PAGE, TestSite, Visit};

#[test]
fn a_page_is_for_everybody_after_enough_different_visitors() {
    // Strangers and members that were seen, and whether that is enough.
    for (strangers, members, expected) in
        [(3, 3, true), (1, 3, true), (3, 2, false), (0, 3, false), (3, 0, false), (9, 1, false)]
    {
        let mut site = TestSite::new();
        site.strangers(strangers, PAGE);
        site.members(members, PAGE);
        let verdict = site.verdict();
        assert_eq!(
            verdict == PageVerdict::Everybody,
            expected,
            "{strangers} {members} {verdict:?}"
        );
    }
}

#[test]
fn many_requests_of_one_visitor_prove_nothing() {
    for cookies in [&[][..], &[("sid", "0123456789abcdef")]] {
        let mut site = TestSite::new();
        for _ in 0..100 {
            site.ask(Visit { cookies, body: PAGE, ..Visit::default() });
        }
        let verdict = site.verdict();
        assert!(matches!(verdict, PageVerdict::Unproven { .. }), "{cookies:?} {verdict:?}");
    }
}

#[test]
fn identical_cookies_are_one_visitor() {
    let mut site = TestSite::new();
    site.strangers(1, PAGE);
    for number in 0..20 {
        let address = format!("10.0.0.{number}");
        let cookies = [("sid", "the same for all of them")];
        site.ask(Visit { cookies: &cookies, address: &address, body: PAGE, ..Visit::default() });
    }
    let verdict = site.verdict();
    assert!(matches!(verdict, PageVerdict::Unproven { .. }), "{verdict:?}");
}

#[test]
fn analytics_cookies_do_not_count_as_sessions() {
    let mut site = TestSite::new();
    site.strangers(1, PAGE);
    for number in 0..20 {
        let (address, value) = (format!("10.0.0.{}", number % 2), format!("GA1.2.{number}"));
        let cookies = [("_ga", value.as_str())];
        site.ask(Visit { cookies: &cookies, address: &address, body: PAGE, ..Visit::default() });
    }
    let verdict = site.verdict();
    assert!(matches!(verdict, PageVerdict::Unproven { .. }), "{verdict:?}");
}

#[test]
fn two_empty_carts_do_not_make_a_cart_public() {
    let mut site = TestSite::new();
    site.strangers(5, "<p>Your cart is empty.</p>");
    site.members(2, "<p>Your cart is empty.</p>");
    assert_eq!(site.verdict(), PageVerdict::WithoutCookie { others_differ: false });
}

#[test]
fn a_cart_filled_by_one_of_many_members_is_not_for_everybody() {
    let mut site = TestSite::new();
    site.strangers(5, "<p>Your cart is empty.</p>");
    site.members(7, "<p>Your cart is empty.</p>");
    let cookies = [("sid", "0123456789abcdef99")];
    site.ask(Visit { cookies: &cookies, body: "<p>One cow, for mari.</p>", ..Visit::default() });
    site.strangers(5, "<p>Your cart is empty.</p>");
    assert_eq!(site.verdict(), PageVerdict::WithoutCookie { others_differ: true });
}

#[test]
fn a_changing_page_gets_a_lifetime_that_suits_its_changes() {
    let mut site = TestSite::new();
    for version in 0..3 {
        let body = format!("{PAGE}{version}");
        site.strangers(5, &body);
        site.members(5, &body);
        site.strangers(5, &body);
    }
    let entry = site.entry();
    assert_eq!(entry.verdict, PageVerdict::Everybody);
    let steady = entry.steady.expect("a steady page");
    assert_eq!((steady.changes, steady.ttl_seconds), (2, Some(5)), "{steady:?}");
    assert!(entry.saved_requests > 30 && entry.saved_requests < entry.requests, "{entry:?}");
}

#[test]
fn a_value_shared_by_visitors_is_not_personal() {
    let mut site = TestSite::new();
    site.strangers(3, PAGE);
    site.members(3, PAGE);
    let cookies = [("sid", "0123456789abcdef9"), ("theme", "DOCTYPE")];
    site.ask(Visit { cookies: &cookies, body: PAGE, ..Visit::default() });
    site.strangers(1, PAGE);
    assert_eq!(site.verdict(), PageVerdict::Everybody);
}

#[test]
fn a_session_is_never_a_key() {
    let mut site = TestSite::new();
    site.strangers(3, PAGE);
    for _ in 0..5 {
        site.members(6, "<p>This is the page of {} alone.</p>");
    }
    assert_eq!(site.verdict(), PageVerdict::WithoutCookie { others_differ: true });
}

proptest! {
    /// Shows that, however visitors come, a page of which each member has another one is never
    /// for everybody, and a page that no stranger got is never shared at all.
    #[test]
    fn pages_of_members_are_never_shared(order in prop::collection::vec(0usize..8, 1..60), strangers in any::<bool>()) {
        let mut site = TestSite::new();
        for member in order {
            if member == 7 {
                if strangers {
                    site.ask(Visit { body: "<p>Welcome, whoever you are</p>", ..Visit::default() });
                }
                continue;
            }
            let (session, address) = (format!("0123456789abcdef{member}"), format!("10.0.0.{}", member % 3));
            let cookies = [("sid", session.as_str())];
            let body = format!("<p>All that belongs to member number {member}, and nobody else</p>");
            site.ask(Visit { cookies: &cookies, address: &address, body: &body, ..Visit::default() });
        }
        for entry in site.report().entries {
            let is_shared = matches!(entry.verdict, PageVerdict::Everybody | PageVerdict::SameBut { .. } | PageVerdict::NeedsKey { .. });
            prop_assert!(!is_shared, "{entry:?}");
            let all_strangers = matches!(entry.verdict, PageVerdict::WithoutCookie { .. });
            prop_assert!(!all_strangers, "one address only: {entry:?}");
        }
    }
}
