//! Private memos of the memo example.

use kirin_tests::memo::{Visitor, csrf_token, names, older_and_newer, serve};
use kirin_tests::{Kirin, Memcached, Site};

const PERL: &[&str] = &["store", "app:web"];

/// Runs `test` with each way to serve them.
fn with_both(test: impl Fn(&Kirin, &mut Memcached)) {
    let (_site, kirin, mut memcached): (Site, _, _) = serve(PERL);
    test(&kirin, &mut memcached);
}

#[test]
fn a_private_memo_is_for_its_author_alone() {
    with_both(|kirin, _| {
        let mut mari = Visitor::member(kirin, "mari");
        let mut akira = Visitor::member(kirin, "akira");
        akira.write("content=Mine&is_private=1");
        let memo = mari.write("content=Secret+garden%0A%0AUnder+the+fern&is_private=1");
        // The first is the application's in any case.
        for _ in 0..3 {
            let page = mari.get(&memo);
            assert_eq!(page.status, 200);
            assert!(page.text().contains("Under the fern"), "{}", page.text());
            assert_eq!(names(&page.text()), ["mari"]);
            assert_eq!(page.field("cache-control"), Some("private, no-store"));
            let id = mari.session_id().to_owned();
            let forged = [("memo_session", "f".repeat(36)), ("memo_session", memo[1..].to_owned())];
            let mut strangers: Vec<_> =
                forged.iter().map(|(name, value)| Visitor::with_cookies(kirin, &[(name, value)])).collect();
            strangers.push(Visitor::new(kirin));
            strangers.push(Visitor::with_cookies(kirin, &[("other_session", &id)]));
            for other in strangers.iter_mut().chain([&mut akira]) {
                let page = other.get(&memo);
                assert_eq!(page.status, 404);
                assert!(!page.text().contains("Secret") && !page.text().contains("fern"), "{}", page.text());
                assert_eq!(other.get(&format!("{memo}/neighbours")).status, 404);
            }
        }
    });
}

#[test]
fn who_has_signed_out_cannot_read_it_any_more() {
    with_both(|kirin, _| {
        let mut mari = Visitor::member(kirin, "mari");
        let memo = mari.write("content=Secret&is_private=1");
        let mut thief = Visitor::with_cookies(kirin, &[("memo_session", mari.session_id())]);
        for _ in 0..2 {
            assert_eq!(thief.get(&memo).status, 200);
        }
        // With the form of the private page.
        let token = csrf_token(&mari.get(&memo).text()).expect("a form").to_owned();
        assert_eq!(mari.request("POST", "/signout", "", &format!("csrf_token={token}")).status, 303);
        assert_eq!(mari.get(&memo).status, 404);
        assert_eq!(thief.get(&memo).status, 404);
    });
}

#[test]
fn older_and_newer_lead_through_all_memos_of_the_author() {
    with_both(|kirin, _| {
        let mut mari = Visitor::member(kirin, "mari");
        let mut akira = Visitor::member(kirin, "akira");
        let mut memos = Vec::new();
        for form in
            ["content=a&is_private=1", "content=b", "content=c&is_private=1", "content=d&is_private=1"]
        {
            memos.push(mari.write(form));
            akira.write("content=between");
        }
        for _ in 0..2 {
            for (index, memo) in memos.iter().enumerate() {
                let expected =
                    (index.checked_sub(1).map(|older| memos[older].clone()), memos.get(index + 1).cloned());
                assert_eq!(older_and_newer(&mari.get(memo).text()), expected, "{memo}");
                assert_eq!(
                    older_and_newer(&mari.get(&format!("{memo}/neighbours")).text()),
                    expected,
                    "{memo}"
                );
            }
        }
        // A new one is the newest at once.
        let newest = mari.write("content=e");
        let last = memos.last().expect("a memo");
        assert_eq!(older_and_newer(&mari.get(last).text()).1, Some(newest.clone()));
        assert_eq!(older_and_newer(&mari.get(&newest).text()), (Some(last.clone()), None));
    });
}
