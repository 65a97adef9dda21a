//! Private memos of the memo example, by its application and by its Lua script, with the same
//! tests.

use kirin_tests::memo::{
    EXAMPLE, StoppedWorkers, Visitor, csrf_token, names, older_and_newer, serve,
};
use kirin_tests::{Kirin, Memcached, Site};

const APPLICATION: &[&str] = &["store", "app:web"];

fn lua() -> String {
    format!("lua:{EXAMPLE}/lua/private_memo.lua")
}

/// Runs `test` with the application alone, and with the script in front of it.
fn with_both(test: impl Fn(&Kirin, &mut Memcached)) {
    let lua = lua();
    for places in [APPLICATION, &["store", &lua, "app:web"]] {
        let (_site, kirin, mut memcached): (Site, _, _) = serve(places);
        eprintln!("{places:?}");
        test(&kirin, &mut memcached);
    }
}

#[test]
fn only_its_author_sees_a_private_memo() {
    with_both(|kirin, _| {
        let mut mari = Visitor::member(kirin, "mari");
        let mut akira = Visitor::member(kirin, "akira");
        akira.write("content=Mine&is_private=1");
        let memo = mari.write("content=Secret+garden%0A%0AUnder+the+fern&is_private=1");
        // The application always answers the first request.
        for _ in 0..3 {
            let page = mari.get(&memo);
            assert_eq!(page.status, 200);
            assert!(page.text().contains("Under the fern"), "{}", page.text());
            assert_eq!(names(&page.text()), ["mari"]);
            assert_eq!(page.field("cache-control"), Some("private, no-store"));
            let id = mari.session_id().to_owned();
            let forged = [("memo_session", "f".repeat(36)), ("memo_session", memo[1..].to_owned())];
            let mut strangers: Vec<_> = forged
                .iter()
                .map(|(name, value)| Visitor::with_cookies(kirin, &[(name, value)]))
                .collect();
            strangers.push(Visitor::new(kirin));
            strangers.push(Visitor::with_cookies(kirin, &[("other_session", &id)]));
            for other in strangers.iter_mut().chain([&mut akira]) {
                let page = other.get(&memo);
                assert_eq!(page.status, 404);
                assert!(
                    !page.text().contains("Secret") && !page.text().contains("fern"),
                    "{}",
                    page.text()
                );
                assert_eq!(other.get(&format!("{memo}/neighbours")).status, 404);
            }
        }
    });
}

#[test]
fn after_signing_out_a_private_memo_cannot_be_read() {
    with_both(|kirin, _| {
        let mut mari = Visitor::member(kirin, "mari");
        let memo = mari.write("content=Secret&is_private=1");
        let mut thief = Visitor::with_cookies(kirin, &[("memo_session", mari.session_id())]);
        for _ in 0..2 {
            assert_eq!(thief.get(&memo).status, 200);
        }
        // The form is that of the private page.
        let token = csrf_token(&mari.get(&memo).text()).expect("a form").to_owned();
        assert_eq!(
            mari.request("POST", "/signout", "", &format!("csrf_token={token}")).status,
            303
        );
        assert_eq!(mari.get(&memo).status, 404);
        assert_eq!(thief.get(&memo).status, 404);
    });
}

#[test]
fn older_and_newer_links_lead_through_all_memos_of_the_author() {
    with_both(|kirin, _| {
        let mut mari = Visitor::member(kirin, "mari");
        let mut akira = Visitor::member(kirin, "akira");
        let mut memos = Vec::new();
        for form in [
            "content=a&is_private=1",
            "content=b",
            "content=c&is_private=1",
            "content=d&is_private=1",
        ] {
            memos.push(mari.write(form));
            akira.write("content=between");
        }
        for _ in 0..2 {
            for (index, memo) in memos.iter().enumerate() {
                let expected = (
                    index.checked_sub(1).map(|older| memos[older].clone()),
                    memos.get(index + 1).cloned(),
                );
                assert_eq!(older_and_newer(&mari.get(memo).text()), expected, "{memo}");
                assert_eq!(
                    older_and_newer(&mari.get(&format!("{memo}/neighbours")).text()),
                    expected,
                    "{memo}"
                );
            }
        }
        // A new memo is the newest at once.
        let newest = mari.write("content=e");
        let last = memos.last().expect("a memo");
        assert_eq!(older_and_newer(&mari.get(last).text()).1, Some(newest.clone()));
        assert_eq!(older_and_newer(&mari.get(&newest).text()), (Some(last.clone()), None));
    });
}

#[test]
fn the_script_answers_exactly_as_the_application_and_without_a_worker() {
    let lua = lua();
    let (_site, kirin, mut memcached) = serve(&["store", &lua, "app:web"]);
    let mut mari = Visitor::member(&kirin, "mari");
    mari.write("content=Tea");
    let memo =
        mari.write("content=Secret+%3C%21--%23+csrf_token+--%3E+%22%26%25%0A%0Atext&is_private=1");
    mari.write("content=Cake&is_private=1");
    let paths = [memo.clone(), format!("{memo}/neighbours")];
    mari.get(&memo);
    for path in &paths {
        let by_app = mari.get(&format!("/app{path}"));
        let by_lua = {
            let _stopped = StoppedWorkers::of(&kirin);
            mari.get(path)
        };
        assert_eq!((by_lua.status, by_lua.text()), (by_app.status, by_app.text()));
        // The names of fields are in lower case if Ruby has written them.
        let fields = |head: &str| {
            let mut lines: Vec<_> = head
                .lines()
                .map(|line| line.split_once(':').unwrap_or((line, "")))
                .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
                .filter(|(name, _)| name != "date")
                .collect();
            lines.sort();
            lines
        };
        assert_eq!(fields(&by_lua.head), fields(&by_app.head));
    }
    // The application answers for a missing item, and stores it again.
    let id = memo.strip_prefix("/memo/").expect("a memo");
    for key in
        [mari.session_id(), "author/1/public", "author/1/private", &format!("private/memo/{id}")]
            .map(str::to_owned)
    {
        assert_eq!(memcached.delete(&key), "DELETED", "{key}");
        assert_eq!(mari.get(&memo).status, 200, "without {key}");
        assert!(memcached.get(&key).is_some(), "{key} is back");
    }
    // A memo of another author under an id that is on none of her lists.
    memcached.set("author/1/private", b"99");
    memcached.set("private/memo/99", b"2\nof another");
    assert_eq!(mari.get("/memo/99").status, 404);
}
