//! The memo example behind the built program. Signed-in visitors get public pages from the store,
//! with their name in them. The tests stop the workers to show that none is asked.

use kirin_tests::memo::{
    self, StoppedWorkers, Visitor, csrf_token, is_strangers, names, older_and_newer,
};
use kirin_tests::{Kirin, Memcached, Site};

fn serve() -> (Site, Kirin, Memcached) {
    memo::serve(&["store", "app:web"])
}

#[test]
fn public_pages_know_each_visitor_without_a_worker() {
    let (_site, kirin, _memcached) = serve();
    let mut mari = Visitor::member(&kirin, "mari");
    let mut akira = Visitor::member(&kirin, "akira");
    let mut stranger = Visitor::new(&kirin);
    let memo = mari.write("content=Tea");
    let paths = ["/", "/recent/0", &memo];
    for path in paths {
        assert_eq!(stranger.get(path).status, 200, "now it is in the store");
    }
    let (mut of_mari, mut of_akira) = (None, None);
    let stopped = StoppedWorkers::of(&kirin);
    for path in paths.iter().take(2) {
        let page = mari.get(path);
        assert_eq!((page.status, names(&page.text())), (200, vec!["mari"]), "{path}");
        assert_eq!(page.field("cache-control"), Some("private"));
        assert!(!page.text().contains("<!--#"), "{}", page.text());
        of_mari = csrf_token(&page.text()).map(str::to_owned);
    }
    for path in paths {
        let page = akira.get(path);
        assert_eq!((page.status, names(&page.text())), (200, vec!["akira"]), "{path}");
        of_akira = csrf_token(&page.text()).map(str::to_owned);
        let etag = page.field("etag").expect("an ETag").to_owned();
        let again = akira.request("GET", path, &format!("If-None-Match: {etag}\r\n"), "");
        assert_eq!(again.status, 304, "{path}");
        let strangers = stranger.request("GET", path, &format!("If-None-Match: {etag}\r\n"), "");
        assert_eq!(strangers.status, 200, "{path}");
        assert!(is_strangers(&strangers.text()), "{path}");
    }
    drop(stopped);
    assert!(of_mari.is_some() && of_mari != of_akira);
    let form = format!("csrf_token={}", of_akira.expect("a token"));
    assert_eq!(
        mari.request("POST", "/signout", "", &form).status,
        403,
        "a token is good for its visitor"
    );
    assert_eq!(akira.request("POST", "/signout", "", &form).status, 303);
}

#[test]
fn signing_out_takes_effect_at_once_on_pages_from_the_store() {
    let (_site, kirin, mut memcached) = serve();
    let mut mari = Visitor::member(&kirin, "mari");
    mari.write("content=Tea");
    let id = mari.session_id().to_owned();
    let mut thief = Visitor::with_cookies(&kirin, &[("memo_session", &id)]);
    assert_eq!(names(&thief.get("/").text()), ["mari"]);
    assert_eq!(mari.submit("/", "/signout", "").status, 303);
    assert_eq!(memcached.get(&id), None);
    {
        let _stopped = StoppedWorkers::of(&kirin);
        assert!(is_strangers(&mari.get("/").text()));
        assert!(is_strangers(&thief.get("/").text()));
    }
    thief.cookies.insert("memo_signed_in".into(), "1".into());
    assert!(is_strangers(&thief.get("/").text()), "when the application is asked, too");
    assert_eq!(memcached.get(&id), None);
}

#[test]
fn a_session_that_the_store_has_lost_is_fetched_once() {
    let (_site, kirin, mut memcached) = serve();
    let mut mari = Visitor::member(&kirin, "mari");
    mari.write("content=Tea");
    let id = mari.session_id().to_owned();
    let before = memcached.get(&id).expect("a copy of the session");
    memcached.delete(&id);
    let page = mari.get("/").text();
    assert_eq!(names(&page), ["mari"]);
    assert!(csrf_token(&page).is_some());
    assert_eq!(memcached.get(&id), Some(before));
    let _stopped = StoppedWorkers::of(&kirin);
    assert_eq!(names(&mari.get("/").text()), ["mari"]);
}

#[test]
fn a_forged_or_planted_cookie_shows_no_name() {
    let (_site, kirin, mut memcached) = serve();
    let mut mari = Visitor::member(&kirin, "mari");
    mari.write("content=Tea");
    memcached.set("private", br#"{"name":"mari","csrf_token":"x"}"#);
    for id in ["f".repeat(36).as_str(), "private", "fragment/session-bar", "/", "memo/ledger", ""] {
        let asks = [("memo_session", id), ("memo_signed_in", "1")];
        let page = Visitor::with_cookies(&kirin, &asks).get("/").text();
        assert!(is_strangers(&page), "{id}: {page}");
    }
    let mut planted = Visitor::new(&kirin);
    planted.get("/signin");
    let _stopped = StoppedWorkers::of(&kirin);
    assert!(is_strangers(&planted.get("/").text()), "a visitor of only the form costs no worker");
    let mut forger = Visitor::with_cookies(&kirin, &[("memo_session", &"f".repeat(36))]);
    assert!(is_strangers(&forger.get("/").text()), "nor does a forged session alone");
}

#[test]
fn a_name_with_html_in_it_is_shown_as_text() {
    let (_site, kirin, mut memcached) = serve();
    let mut mari = Visitor::member(&kirin, "mari");
    mari.write("content=Tea");
    let session = r#"{"name":"<b>\"&","user_id":1,"csrf_token":"\"><script>"}"#;
    memcached.set(mari.session_id(), session.as_bytes());
    let page = mari.get("/").text();
    assert_eq!(names(&page), ["&lt;b&gt;&quot;&amp;"]);
    assert_eq!(csrf_token(&page), Some("&quot;&gt;&lt;script&gt;"));
}

#[test]
fn the_links_of_a_public_memo_include_its_authors_private_ones() {
    let (_site, kirin, mut memcached) = serve();
    let mut mari = Visitor::member(&kirin, "mari");
    let mut akira = Visitor::member(&kirin, "akira");
    let first = mari.write("content=Tea");
    let second = mari.write("content=Secret&is_private=1");
    let third = mari.write("content=Cake");
    akira.get(&third);
    assert!(memcached.get(&third).is_some(), "it is in the store");
    let own = mari.get(&third).text();
    assert_eq!(older_and_newer(&own), (Some(second), None));
    assert!(own.contains("by you"), "{own}");
    {
        let _stopped = StoppedWorkers::of(&kirin);
        assert_eq!(older_and_newer(&akira.get(&third).text()), (Some(first.clone()), None));
    }
    // For a visitor who claims her id with a session, the application decides.
    memcached.set(akira.session_id(), br#"{"name":"akira","user_id":1,"csrf_token":"x"}"#);
    assert_eq!(older_and_newer(&akira.get(&third).text()), (Some(first), None));
}
