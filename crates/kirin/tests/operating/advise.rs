//! `kirin advise`, through the built program: on the memo example with its pages not pushed, and on
//! an application with pages that must not be shared.

use std::collections::{BTreeMap, BTreeSet};
use std::process::{Child, Output, Stdio};
use std::time::{Duration, Instant};

use kirin_tests::memo::{EXAMPLE, Visitor};
use kirin_tests::{Client, Kirin, Memcached, Reply, Site, kirin_command, run_kirin, wait_for};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// How long pages are seen, so that there is something to say about a lifetime.
const SEEN_FOR: Duration = Duration::from_millis(1500);

/// A running `kirin advise`.
struct Advising(Child);

impl Advising {
    /// Starts the command, and waits until the run is on.
    fn start(site: &Site, kirin: &Kirin, arguments: &[&str]) -> Self {
        let runs = kirin.log().matches("advise: observing").count();
        let child = kirin_command(site)
            .args(["advise", "--seconds", "600"])
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("kirin runs");
        wait_for("the run", || {
            (kirin.log().matches("advise: observing").count() > runs).then_some(())
        });
        Self(child)
    }

    /// Ends the run as Ctrl-C does. Returns what the command prints.
    fn end(self) -> Output {
        kill_process(Pid::from_child(&self.0), Signal::INT).expect("kill");
        self.0.wait_with_output().expect("kirin ends")
    }

    fn report(self) -> Value {
        let output = self.end();
        let text = String::from_utf8_lossy(&output.stdout);
        let error = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{text}\n{error}");
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
    }
}

/// Returns the targets with their number of pages, by verdict.
fn by_verdict(report: &Value) -> BTreeMap<String, BTreeMap<String, u64>> {
    let mut verdicts: BTreeMap<String, BTreeMap<String, u64>> = BTreeMap::new();
    for entry in report["entries"].as_array().expect("entries") {
        let text = |key: &str| entry[key].as_str().expect(key).to_owned();
        let pages = entry["pages"].as_u64().expect("pages");
        *verdicts.entry(text("verdict")).or_default().entry(text("target")).or_default() += pages;
    }
    verdicts
}

/// Verdicts that put a page into memory.
const SHARED: [&str; 4] = ["everybody", "without_cookie", "same_but", "needs_key"];

/// Serves the memo example, whose application stores its pages only if `store` names it.
fn serve_memo(store: &str) -> (Site, Kirin, Memcached) {
    let site = Site::new();
    let root = site.root().display();
    let store = store.replace("SITE", &root.to_string());
    let config = format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\ntrusted = [\"127.0.0.1\"]\n\
         [store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\nsession_cookie = \"memo_session\"\n\
         [admin]\naddress = \"unix:admin.sock\"\n[[app]]\nname = \"web\"\nload = \"{EXAMPLE}/app.psgi\"\nworkers = 2\n\
         env = {{ KIRIN_STORE = \"{store}\", MEMO_DATABASE = \"{root}/memo.sqlite\" }}\n\
         [[route]]\npath = \"/\"\ntry = [\"store\", \"app:web\"]\n"
    );
    let kirin = Kirin::start(&site, &config);
    let memcached = Memcached::connect(&site.path("m.sock"));
    (site, kirin, memcached)
}

/// Sends GET from an address.
fn get(visitor: &mut Visitor<'_>, address: usize, path: &str) -> Reply {
    visitor.request("GET", path, &format!("X-Forwarded-For: 10.1.0.{address}\r\n"), "")
}

/// The memos of the example: their paths.
struct Memos {
    public: Vec<String>,
    private: Vec<String>,
}

const NAMES: [&str; 4] = ["mari", "akira", "jun", "sora"];

fn members(kirin: &Kirin) -> Vec<Visitor<'_>> {
    NAMES.iter().map(|name| Visitor::member(kirin, name)).collect()
}

fn write(members: &mut [Visitor<'_>]) -> Memos {
    let (mut public, mut private) = (Vec::new(), Vec::new());
    for (number, member) in members.iter_mut().enumerate() {
        let text = format!("content=A+memo+of+number+{number}%0A%0AWith+some+text+below+it");
        public.push(member.write(&text));
        private.push(member.write(&format!("content=A+secret+of+{number}&is_private=1")));
    }
    Memos { public, private }
}

/// Has everybody read everything. Private memos are read by their authors, and tried by others.
fn read(kirin: &Kirin, members: &mut [Visitor<'_>], memos: &Memos) {
    let shown = ["/", "/recent/0", "/mypage", "/signin", "/signup"].map(str::to_owned);
    let paths: Vec<&String> = shown.iter().chain(&memos.public).collect();
    let strangers = |paths: &[&String]| {
        for address in 1..=4 {
            for path in paths {
                get(&mut Visitor::new(kirin), address, path);
            }
        }
    };
    strangers(&paths);
    for (number, member) in members.iter_mut().enumerate() {
        for path in &paths {
            get(member, 10 + number, path);
        }
        for _ in 0..3 {
            let page = get(member, 10 + number, &memos.private[number]);
            assert_eq!(page.status, 200);
        }
        // Another member's memo does not exist for this one.
        let other = &memos.private[(number + 1) % memos.private.len()];
        assert_eq!(get(member, 10 + number, other).status, 404);
    }
    strangers(&memos.private.iter().collect::<Vec<_>>());
    strangers(&paths);
}

#[test]
fn advise_finds_the_pages_that_memo_pushes_and_nothing_private() {
    let (site, kirin, mut memcached) = serve_memo("");
    let mut visitors = members(&kirin);
    let memos = write(&mut visitors);
    let advising = Advising::start(&site, &kirin, &["--json"]);
    read(&kirin, &mut visitors, &memos);
    let report = advising.report();
    assert_eq!(memcached.get("/"), None, "nothing is pushed here");
    let verdicts = by_verdict(&report);

    // The same site as its author made it.
    let (_site, pushing, mut memcached) = serve_memo("unix:SITE/m.sock");
    let mut visitors = members(&pushing);
    let memos = write(&mut visitors);
    read(&pushing, &mut visitors, &memos);
    let mut pushed: BTreeMap<String, u64> = BTreeMap::new();
    let all = ["/", "/recent/0", "/mypage", "/signin", "/signup"].map(str::to_owned);
    for path in all.iter().chain(&memos.public).chain(&memos.private) {
        if memcached.get(path).is_some() {
            let target = if path.starts_with("/memo/") { "/memo/{id}" } else { path };
            *pushed.entry(target.to_owned()).or_default() += 1;
        }
    }
    assert_eq!(pushed.get("/memo/{id}"), Some(&4), "{pushed:?}");
    assert_eq!(verdicts.get("same_but"), Some(&pushed), "{report:#}");
    for verdict in SHARED.iter().filter(|verdict| **verdict != "same_but") {
        assert_eq!(verdicts.get(*verdict), None, "{report:#}");
    }
    let not_shared: BTreeSet<&String> = verdicts
        .iter()
        .filter(|(verdict, _)| !SHARED.contains(&verdict.as_str()))
        .flat_map(|(_, targets)| targets.keys())
        .collect();
    for target in ["/mypage", "/signin", "/signup", "/memo/{id}"] {
        assert!(not_shared.contains(&target.to_owned()), "{target} {report:#}");
    }
    // It says where the visitor's name is, and by which cookie.
    let front = report["entries"].as_array().expect("entries").iter();
    let front = front.clone().find(|entry| entry["target"] == "/").expect("the front page");
    let gap = &front["gaps"][0];
    assert_eq!(gap["cause"]["cookie"], "memo_session", "{front:#}");
    assert_eq!(report["sessions"], serde_json::json!(["memo_session"]));
    for entry in report["entries"].as_array().expect("entries") {
        assert!(entry["lines"].is_null(), "no cache is advised for pages with a name: {entry:#}");
    }
}

/// Pages of which some could be shared, and some must not be.
const APP: &str = r#"
use v5.16; use warnings;
my %user = map { ("0123456789abcdef$_" => "member$_") } 0 .. 9;
sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    my ($sid) = ($env->{HTTP_COOKIE} // '') =~ /sid=(\w+)/;
    my $user = $user{$sid // ''};
    my @html = ('Content-Type' => 'text/html');
    my $page = "<title>A page</title>\n<p>with some text that is the same for all</p>\n";
    return [200, [@html], [$page]] if $path eq '/news';
    return [200, [@html], [$page . ($user ? "<p>$user has a page of his own, which is longer than the other one, and more</p>" : '')]] if $path eq '/front';
    return [200, [@html], ["<p>The cart of " . ($user && $user eq 'member3' ? 'a buyer has a cow' : 'nobody is empty') . '</p>']] if $path eq '/cart';
    return $user ? [200, [@html], [$page]] : [302, [Location => '/signin'], []] if $path eq '/members';
    return [200, [@html], [$env->{REMOTE_ADDR} eq '10.1.0.1' ? "<b>office</b>$page" : $page]] if $path eq '/address';
    return [200, [@html], [$page . "<i>" . rand() . "</i>"]] if $path eq '/clock';
    return [200, [@html, 'Set-Cookie' => 'seen=1'], [$page]] if $path eq '/cookie';
    return [200, [@html, 'Cache-Control' => 'private'], [$page]] if $path eq '/private';
    return [200, [@html], [$page . ($sid ? "<p>$sid</p>" : '<p></p>')]] if $path eq '/token';
    return [200, [@html], [$env->{HTTP_X_API_KEY} ? 'secret' : $page]] if $path eq '/key';
    return [200, [@html], [$env->{HTTP_ACCEPT_LANGUAGE} && $env->{HTTP_ACCEPT_LANGUAGE} eq 'de' ? 'Guten Tag' : 'Good day']] if $path eq '/language';
    return [200, [@html], [$page]];
};
"#;

const CONFIG: &str = r#"
[[listener]]
address = "127.0.0.1:0"
trusted = ["127.0.0.1"]
[admin]
address = "unix:admin.sock"
[[app]]
name = "web"
load = "app.psgi"
workers = 2
[[route]]
path = "/"
try = ["app:web"]
headers = { "X-Frame-Options" = "DENY" }
"#;

const UNSAFE: [&str; 8] =
    ["/members", "/address", "/clock", "/cookie", "/private", "/token", "/key", "/language"];

fn fields(address: usize, member: Option<usize>) -> String {
    let cookie = member.map(|number| format!("Cookie: sid=0123456789abcdef{number}\r\n"));
    format!("X-Forwarded-For: 10.1.0.{address}\r\n{}", cookie.unwrap_or_default())
}

/// Asks for all pages, until they have been seen for some time.
fn visit(kirin: &Kirin) {
    let mut client = kirin.connect();
    // Each page is seen before this time and after it, however long a round takes.
    let mut first_seen = None;
    let mut is_last = false;
    while !is_last {
        is_last = first_seen.is_some_and(|at: Instant| at.elapsed() >= SEEN_FOR);
        for path in ["/news", "/front", "/cart"].iter().chain(&UNSAFE) {
            for number in 0..5 {
                let language = if number % 2 == 0 { "de" } else { "en" };
                let more = format!("{}Accept-Language: {language}\r\n", fields(1 + number, None));
                client.request("GET", path, &more);
                if *path != "/language" {
                    client.request("GET", path, &fields(20 + number, Some(number)));
                }
            }
        }
        let key = format!("{}X-Api-Key: of-mari\r\n", fields(9, None));
        client.request("GET", "/key", &key);
        client.post("/post", "text/plain", b"x");
        first_seen.get_or_insert_with(Instant::now);
    }
}

#[test]
fn the_cache_answers_with_the_advised_lines() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    let advising = Advising::start(&site, &kirin, &["--json", "--app", "web"]);
    visit(&kirin);
    let report = advising.report();
    let verdicts = by_verdict(&report);
    let targets = |verdict: &str| -> Vec<String> {
        verdicts.get(verdict).into_iter().flat_map(|targets| targets.keys().cloned()).collect()
    };
    assert_eq!(targets("everybody"), ["/news"], "{report:#}");
    assert_eq!(targets("without_cookie"), ["/cart", "/front"], "{report:#}");
    assert_eq!(targets("needs_key"), ["/language"], "{report:#}");
    let expected = ["/address", "/cookie", "/key", "/members", "/post", "/private", "/token"];
    assert_eq!(targets("unsafe"), expected, "{report:#}");
    assert_eq!(targets("same_but"), ["/clock"], "{report:#}");

    // A careless operator pastes all of it.
    let mut config = CONFIG.to_owned();
    for entry in report["entries"].as_array().expect("entries") {
        let is_cached =
            ["/news", "/front", "/cart"].contains(&entry["target"].as_str().expect("a target"));
        assert_eq!(entry["lines"].is_string(), is_cached, "{entry:#}");
        config.push_str(entry["lines"].as_str().unwrap_or_default());
    }
    assert!(
        config.contains("X-Frame-Options") && config.contains("path = \"= /news\""),
        "{config}"
    );
    drop(kirin);
    std::fs::write(site.path("kirin.toml"), &config).expect("kirin.toml");
    let checked = run_kirin(&site, &["check"]);
    assert!(checked.status.success(), "{config}\n{}", String::from_utf8_lossy(&checked.stderr));
    let kirin = Kirin::start(&site, &config);
    let mut client = kirin.connect();
    let status = |reply: &Reply| reply.field("cache-status").unwrap_or_default().to_owned();
    // Members first: nothing of theirs may be stored.
    for number in (0..5).rev() {
        for path in ["/front", "/cart", "/news"].iter().chain(&UNSAFE) {
            client.request("GET", path, &fields(20 + number, Some(number)));
        }
    }
    let first = client.request("GET", "/front", &fields(1, None));
    assert!(!first.text().contains("member"), "{}", first.text());
    for path in ["/news", "/front", "/cart"] {
        client.request("GET", path, &fields(1, None));
        let again = client.request("GET", path, &fields(2, None));
        assert!(status(&again).contains("hit"), "{path} {}", again.head);
        assert!(
            !again.text().contains("member") && !again.text().contains("cow"),
            "{}",
            again.text()
        );
        assert_eq!(again.field("x-frame-options"), Some("DENY"));
    }
    let news = client.request("GET", "/news", &fields(21, Some(1)));
    assert!(status(&news).contains("hit"), "{}", news.head);
    let own = client.request("GET", "/front", &fields(21, Some(1)));
    assert!(own.text().contains("member1"), "{}", own.text());
    let cart = client.request("GET", "/cart", &fields(23, Some(3)));
    assert!(cart.text().contains("cow"), "{}", cart.text());
    for path in UNSAFE {
        let reply = client.request("GET", path, &fields(1, None));
        assert_eq!(reply.field("cache-status"), None, "{path} is not cached: {}", reply.head);
    }
}

#[test]
fn the_text_names_visitors_that_are_missing_and_escapes_what_strangers_send() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    let advising = Advising::start(&site, &kirin, &[]);
    for _ in 0..5 {
        kirin.get("/news");
    }
    kirin.connect().request("GET", "/x", "Cookie: a\x1b[31m=1\r\n");
    kirin.connect().request("GET", "/%1b[31m?\u{e3}", "");
    let output = advising.end();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("Too little evidence") && text.contains("from 1 address only"), "{text}");
    assert!(text.contains("/news") && text.contains("/%1b[31m"), "{text}");
    assert!(text.chars().all(|c| c == '\n' || (' '..='~').contains(&c)), "{text:?}");
    assert!(!text.contains("[[route]]"), "{text}");
}

fn ask(site: &Site, method: &str, body: &str) -> (u16, Value) {
    let request = format!(
        "{method} /advise HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Connection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream =
        std::os::unix::net::UnixStream::connect(site.path("admin.sock")).expect("admin");
    std::io::Write::write_all(&mut stream, request.as_bytes()).expect("sent");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).expect("an answer");
    let status = answer[9..12].parse().expect("a status");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head");
    (status, serde_json::from_str(body).unwrap_or_else(|_| body.into()))
}

#[test]
fn one_run_is_on_at_a_time_and_a_lost_client_does_not_keep_it_on() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    assert_eq!(ask(&site, "GET", "").1["state"], "none");
    for body in ["{}", "x", r#"{"seconds": 0}"#, r#"{"seconds": 9, "places": ["app:x"]}"#] {
        let (status, message) = ask(&site, "POST", body);
        assert_eq!(status, 400, "{body} {message}");
    }
    assert_eq!(ask(&site, "PUT", "").0, 405);
    assert_eq!(ask(&site, "POST", r#"{"seconds": 600}"#).0, 200);
    assert_eq!(ask(&site, "POST", r#"{"seconds": 600}"#).0, 409);
    let second = run_kirin(&site, &["advise"]);
    let error = String::from_utf8_lossy(&second.stderr);
    assert!(!second.status.success() && error.contains("a run is on already"), "{error}");
    kirin.get("/news");
    assert_eq!(ask(&site, "GET", "").1["requests"], 1);
    let (status, done) = ask(&site, "DELETE", "");
    assert_eq!(
        (status, &done["state"], &done["report"]["requests"]),
        (200, &"done".into(), &1.into())
    );
    // Nobody waits for this run.
    assert_eq!(ask(&site, "POST", r#"{"seconds": 1, "places": ["app:web"]}"#).0, 200);
    wait_for("the end of the run", || {
        kirin.get("/news");
        (ask(&site, "GET", "").1["state"] == "done").then_some(())
    });
    kirin.get("/news");
    let (_, last) = ask(&site, "GET", "");
    assert!(last["report"]["requests"].as_u64() > Some(0), "{last}");
    assert_eq!(ask(&site, "DELETE", "").1, last, "what is over is not ended again");
}

#[test]
fn streamed_and_long_bodies_reach_their_clients_as_they_are() {
    const STREAMS: &str = r#"
sub {
    my $env = shift;
    my ($count) = $env->{PATH_INFO} =~ /(\d+)/;
    return sub {
        my $writer = shift->([200, ['Content-Type' => 'text/html']]);
        $writer->write("<p>piece $_</p>\n") for 1 .. $count;
        $writer->close;
    };
};
"#;
    let site = Site::new().with("app.psgi", STREAMS);
    let kirin = Kirin::start(&site, CONFIG);
    let advising = Advising::start(&site, &kirin, &["--json"]);
    let mut client: Client = kirin.connect();
    let mut lengths = BTreeSet::new();
    for number in 0..4 {
        for path in ["/3", "/100000"] {
            let reply = client.request("GET", path, &fields(number, None));
            lengths.insert((path, reply.text().len()));
            assert!(reply.text().ends_with("</p>\n"));
        }
    }
    assert_eq!(lengths.len(), 2, "{lengths:?}");
    let report = advising.report();
    let verdicts = by_verdict(&report);
    assert!(verdicts["without_cookie"].contains_key("/3"), "{report:#}");
    assert!(verdicts["unsafe"].contains_key("/100000"), "{report:#}");
    let reasons = report["entries"].as_array().expect("entries").iter();
    let long = reasons.clone().find(|entry| entry["target"] == "/100000").expect("an entry");
    assert_eq!(long["reasons"], serde_json::json!(["too_long"]));
}

#[test]
fn sites_are_told_apart_and_can_be_chosen() {
    let site = Site::new().with("app.psgi", APP);
    let more = |head: &str| {
        format!("[[site]]\n{head}\n[[site.route]]\npath = \"/\"\ntry = [\"app:web\"]\n")
    };
    let config = format!(
        "{CONFIG}\n{}{}",
        more("name = \"wiki\"\nhosts = [\"wiki.test\"]"),
        more("hosts = [\"*.blog.test\"]")
    );
    let kirin = Kirin::start(&site, &config);
    let run = |arguments: &[&str]| {
        let advising = Advising::start(&site, &kirin, arguments);
        for host in ["wiki.test", "a.blog.test", "b.blog.test", "localhost"] {
            let mut client = kirin.connect();
            client.send(format!("GET /news HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            client.read_reply();
        }
        advising
    };
    let seen = |report: &Value| {
        let entries = report["entries"].as_array().expect("entries");
        let site_and_host = |entry: &Value| {
            let site = entry.get("site").map_or("-", |site| site.as_str().expect("a site"));
            format!("{site} {}", entry["host"].as_str().expect("a host"))
        };
        BTreeSet::from_iter(entries.iter().map(site_and_host))
    };
    for (arguments, expected) in [
        (
            &["--json"][..],
            &[
                "*.blog.test a.blog.test",
                "*.blog.test b.blog.test",
                "- localhost",
                "wiki wiki.test",
            ][..],
        ),
        (&["--json", "--site", "wiki"], &["wiki wiki.test"]),
        (&["--json", "--site", "-"], &["- localhost"]),
        (
            &["--json", "--site", "*.blog.test"],
            &["*.blog.test a.blog.test", "*.blog.test b.blog.test"],
        ),
    ] {
        let report = run(arguments).report();
        let expected = BTreeSet::from_iter(expected.iter().map(|text| (*text).to_owned()));
        assert_eq!(seen(&report), expected, "{arguments:?}: {report:#}");
    }
    let text = run(&[]).end();
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    for line in ["  /news  app:web wiki.test, site wiki\n", "  /news  app:web localhost\n"] {
        assert!(text.contains(line), "no {line:?} in\n{text}");
    }
    let wrong = run_kirin(&site, &["advise", "--site", "git"]);
    let message = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert!(message.contains("no site `git`; there is *.blog.test, -, wiki"), "{message}");
}
