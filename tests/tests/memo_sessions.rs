//! The memo example behind the built program: visitors who are signed in get public pages from the store, with their name in them.
//! That no worker is asked is shown by stopping the workers.

use kirin_tests::{Kirin, Memcached, Reply, Site};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::BTreeMap;
use std::path::Path;

/// Its files, in the sources.
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/memo");

fn serve() -> (Site, Kirin, Memcached) {
    let site = Site::new();
    let config = format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n\
         session_cookie = \"memo_session\"\n[[app]]\nname = \"web\"\nload = \"{EXAMPLE}/app.psgi\"\nworkers = 2\n\
         env = {{ KIRIN_STORE = \"unix:{0}/m.sock\", MEMO_DATABASE = \"{0}/memo.sqlite\" }}\n\
         [[route]]\npath = \"/\"\ntry = [\"store\", \"app:web\"]\n",
        site.root().display()
    );
    assert!(Path::new(EXAMPLE).is_dir(), "{EXAMPLE}");
    let kirin = Kirin::start(&site, &config);
    let memcached = Memcached::connect(&site.path("m.sock"));
    (site, kirin, memcached)
}

/// A browser as far as these tests need one.
struct Visitor<'a> {
    kirin: &'a Kirin,
    cookies: BTreeMap<String, String>,
}

impl<'a> Visitor<'a> {
    fn new(kirin: &'a Kirin) -> Self {
        Self { kirin, cookies: BTreeMap::new() }
    }

    /// Somebody who has signed up under this name.
    fn member(kirin: &'a Kirin, name: &str) -> Self {
        let mut visitor = Self::new(kirin);
        let reply = visitor.submit("/signup", "/signup", &format!("name={name}&password=password+of+{name}"));
        assert_eq!(reply.status, 303, "{}", reply.text());
        visitor
    }

    fn with_cookies(kirin: &'a Kirin, cookies: &[(&str, &str)]) -> Self {
        let cookies = cookies.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Self { kirin, cookies: cookies.collect() }
    }

    fn session_id(&self) -> &str {
        &self.cookies["memo_session"]
    }

    fn get(&mut self, path: &str) -> Reply {
        self.request("GET", path, "", "")
    }

    /// Posts the form on `page`, with its token.
    fn submit(&mut self, page: &str, path: &str, form: &str) -> Reply {
        let page = self.get(page).text();
        let token = csrf_token(&page).unwrap_or_else(|| panic!("no form in {page}")).to_owned();
        self.request("POST", path, "", &format!("csrf_token={token}&{form}"))
    }

    /// Writes a memo; its path.
    fn write(&mut self, form: &str) -> String {
        let reply = self.submit("/mypage", "/memo", form);
        reply.field("location").unwrap_or_else(|| panic!("{}", reply.text())).to_owned()
    }

    fn request(&mut self, method: &str, path: &str, fields: &str, form: &str) -> Reply {
        let cookies: Vec<_> = self.cookies.iter().map(|(name, value)| format!("{name}={value}")).collect();
        let fields = format!(
            "Cookie: {}\r\nContent-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n{fields}\r\n{form}",
            cookies.join("; "),
            form.len()
        );
        let mut client = self.kirin.connect();
        client.send(format!("{method} {path} HTTP/1.1\r\nHost: test\r\n{fields}"));
        let reply = client.read_reply();
        for line in reply.head.lines() {
            let Some(cookie) = line.strip_prefix("Set-Cookie: ") else { continue };
            let (name, rest) = cookie.split_once('=').expect("a cookie");
            let value = rest.split(';').next().unwrap_or_default();
            match cookie.contains("Max-Age=0") {
                true => self.cookies.remove(name),
                false => self.cookies.insert(name.to_owned(), value.to_owned()),
            };
        }
        reply
    }
}

fn csrf_token(page: &str) -> Option<&str> {
    page.split_once("name=\"csrf_token\" value=\"")?.1.split('"').next()
}

fn names(page: &str) -> Vec<&str> {
    page.split("signed in as <strong>").skip(1).filter_map(|rest| rest.split("</strong>").next()).collect()
}

fn is_strangers(page: &str) -> bool {
    page.contains("<a href=\"/signin\">Sign in</a>") && names(page).is_empty() && csrf_token(page).is_none()
}

/// While this lives, no worker answers anything.
struct StoppedWorkers(Vec<Pid>);

impl StoppedWorkers {
    fn of(kirin: &Kirin) -> Self {
        let pids = kirin.worker_pids();
        assert_eq!(pids.len(), 2, "{pids:?}");
        let pids = pids.iter().filter_map(|pid| Pid::from_raw(pid.parse().ok()?)).collect();
        let stopped = Self(pids);
        stopped.signal(Signal::STOP);
        stopped
    }

    fn signal(&self, signal: Signal) {
        for pid in &self.0 {
            let _ = kill_process(*pid, signal);
        }
    }
}

impl Drop for StoppedWorkers {
    fn drop(&mut self) {
        self.signal(Signal::CONT);
    }
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
    assert_eq!(mari.request("POST", "/signout", "", &form).status, 403, "a token is good for its visitor");
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
fn a_forged_or_planted_cookie_shows_nobody() {
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
    assert!(is_strangers(&planted.get("/").text()), "who has only seen the form costs no worker");
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
fn the_author_of_a_public_memo_is_led_through_the_private_ones_too() {
    let (_site, kirin, mut memcached) = serve();
    let mut mari = Visitor::member(&kirin, "mari");
    let mut akira = Visitor::member(&kirin, "akira");
    let first = mari.write("content=Tea");
    let second = mari.write("content=Secret&is_private=1");
    let third = mari.write("content=Cake");
    akira.get(&third);
    assert!(memcached.get(&third).is_some(), "it is in the store");
    let older = |page: &str| {
        page.split_once("rel=\"prev\" class=\"older\" href=\"")
            .map(|(_, rest)| rest.split('"').next().unwrap_or("").to_owned())
    };
    let own = mari.get(&third).text();
    assert_eq!(older(&own), Some(second));
    assert!(own.contains("by you"), "{own}");
    {
        let _stopped = StoppedWorkers::of(&kirin);
        assert_eq!(older(&akira.get(&third).text()), Some(first.clone()));
    }
    // Who claims to be her by a session of her id gets what the application decides.
    memcached.set(akira.session_id(), br#"{"name":"akira","user_id":1,"csrf_token":"x"}"#);
    assert_eq!(older(&akira.get(&third).text()), Some(first));
}
