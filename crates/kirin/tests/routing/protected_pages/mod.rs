//! The protection of a route protects the pages that its application stores. The tests combine
//! every way into the store with every way out, through the built program.

mod certificates;
mod ways;

use kirin_tests::{Kirin, Memcached, Reply, Site};

use ways::{WAYS_IN, WAYS_OUT};

const BOB: &str = "Authorization: Basic Ym9iOm9wZW5zZXNhbWU=\r\n";
const ZOE: &str = "Authorization: Basic em9lOm5ld3Bhc3M=\r\n";

const OFFICE: &str = "X-Forwarded-For: 10.200.3.4\r\n";
const MARI: &str = "X-Sign-On: mari\r\n";
const ELSEWHERE: &str = "X-Forwarded-For: 192.0.2.1\r\n";
/// A client whose trusted proxy passes on the address that the client has made up.
const LIAR: &str = "X-Forwarded-For: 10.200.3.4, 192.0.2.1\r\n";

const BOB_LINE: &str = "bob:$2y$08$48biTCX6hLFLuo1X9oacu.C9feoeVL5TxFGhMA0T2i1gjC8TRnAwi\n";
const ZOE_LINE: &str = "zoe:$2y$05$hVMNst6hY.7q7ttcHy.fv.njM23kUU7XrTQUqYJS1ZG2AgnSxkrd6\n";

/// Every route except `/page`, `/lua` and `/error` sees paths below `/app`.
const CONFIG: &str = r#"
threads = 2
[[listener]]
address = "127.0.0.1:0"
trusted = ["127.0.0.1"]
[store]
memory = "16MB"
memcached = ["unix:m.sock"]
purge_from = ["127.0.0.1"]
[[app]]
name = "web"
load = "app.psgi"
workers = 2

[[route]]
path = "/password"
try = ["app:web"]
basic_auth = "members"
rewrite = "/app"
[[route]]
path = "/password-cached"
try = ["app:web"]
basic_auth = "members"
rewrite = "/app"
cache = true
[[route]]
path = "/rate"
try = ["app:web"]
rate_limit = [{ rate = "1000/s", burst = 1000 }]
rewrite = "/app"
[[route]]
path = "/office"
try = ["app:web"]
allow = ["10.0.0.0/8"]
rewrite = "/app"
[[route]]
path = "/office-cached"
try = ["app:web"]
allow = ["10.0.0.0/8"]
cache = true
[[route]]
path = "/signed"
try = ["app:web"]
auth_request = "/auth"
rewrite = "/app"
[[route]]
path = "/signed-cached"
try = ["app:web"]
auth_request = "/auth"
rewrite = "/app"
cache = true
[[route]]
path = "/auth"
try = ["lua:auth.lua"]
[[route]]
path = "/open"
try = ["app:web"]
rewrite = "/app"

[[route]]
path = "/app"
try = ["store", "files:public"]
[[route]]
path = "/same"
try = ["store", "lua:fallback.lua"]
basic_auth = "members"
rewrite = "/app"
[[route]]
path = "/other"
try = ["store"]
basic_auth = "others"
rewrite = "/app"
[[route]]
path = "/other-rate"
try = ["store"]
rate_limit = [{ rate = "1000/s", burst = 1000 }]
rewrite = "/app"
[[route]]
path = "/same-office"
try = ["store"]
allow = ["10.0.0.0/9", "10.128.0.0/9"]
deny = 404
rewrite = "/app"
[[route]]
path = "/other-office"
try = ["store"]
allow = ["10.128.0.0/9"]
rewrite = "/app"
[[route]]
path = "/same-signed"
try = ["store"]
auth_request = "/auth"
rewrite = "/app"
[[route]]
path = "/other-signed"
try = ["store"]
auth_request = "/auth?other"
rewrite = "/app"
[[route]]
path = "/signed-page"
try = ["store"]
auth_request = "/auth"
[[route]]
path = "/closed"
try = ["store", "files:public", "app:web"]
deny = 403
rewrite = "/app"
[[route]]
path = "/maintained"
try = ["store", "files:public", "app:web"]
maintenance = true
rewrite = "/app"
[[route]]
path = "/page"
try = ["store"]
[[route]]
path = "/members-page"
try = ["store"]
basic_auth = "members"
[[route]]
path = "/office-page"
try = ["store"]
allow = ["10.0.0.0/8"]
[[route]]
path = "/files"
try = ["files:public"]
ssi = true
[[route]]
path = "/error"
try = ["files:public"]
error_pages = { 404 = "/app/x" }
[[route]]
path = "/lua"
try = ["lua:store.lua"]
"#;

const APP: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    my $key = $env->{PATH_INFO} =~ m{/key$} ? ', key="/app/x"' : '';
    my @fields = ('Content-Type' => 'text/html', 'Cache-Control' => 'public, max-age=60', 'Kirin-Store' => "ttl=300$key");
    if ($env->{QUERY_STRING} eq 'stream') {
        return sub { my $writer = shift->([200, \@fields]); $writer->write('sec'); $writer->write('ret'); $writer->close };
    }
    return [200, \@fields, ['secret']];
};
"#;

const LUA: &str = r#"
return function(request)
  if request.path == "/lua/fetch" then return { body = kirin.fetch(request.query).body } end
  if request.path == "/lua/set" then kirin.store.set("/app/x", "text/html\r\nsecret") end
  return { body = kirin.store.get("/app/x") or "nothing" }
end
"#;

/// Lets Mari pass.
const AUTH: &str = r#"
return function(request)
  return { status = request.headers["x-sign-on"] == "mari" and 204 or 401 }
end
"#;

struct Running {
    kirin: Kirin,
    store: Memcached,
    _site: Site,
}

fn serve() -> Running {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("store.lua", LUA)
        .with("auth.lua", AUTH)
        .with("fallback.lua", "return function() return { body = 'nothing' } end")
        .with("members", BOB_LINE)
        .with("others", ZOE_LINE)
        .with("public/files/include.html", "[<!--# include key=\"/app/x\" -->]")
        .with("public/y", "");
    let kirin = Kirin::start(&site, CONFIG);
    let mut store = Memcached::connect(&site.path("m.sock"));
    for (page, include) in [
        ("/page/key", "key=\"/app/x\""),
        ("/page/virtual", "virtual=\"/app/x\""),
        ("/page/same", "virtual=\"/same/x\""),
        ("/page/push", "virtual=\"/password/x\""),
        ("/page/same-office", "virtual=\"/same-office/x\""),
        ("/page/push-office", "virtual=\"/office/x\""),
        ("/page/closed", "virtual=\"/closed/x\""),
        ("/page/maintained", "virtual=\"/maintained/x\""),
        ("/office-page/key", "key=\"/app/x\""),
        ("/members-page/key", "key=\"/app/x\""),
        ("/signed-page/key", "key=\"/app/x\""),
        ("/page/push-signed", "virtual=\"/signed/x\""),
        ("/page/same-signed", "virtual=\"/same-signed/x\""),
    ] {
        store.set(page, format!("text/html\r\n[<!--# include {include} -->]").as_bytes());
    }
    Running { kirin, store, _site: site }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Protection {
    None,
    Password,
    Rate,
    Office,
    SignedOn,
}

fn ask(running: &Running, method: &str, target: &str, fields: &str) -> Reply {
    running.kirin.connect().request(method, target, fields)
}

fn stores(running: &mut Running, method: &str, target: &str, fields: &str) {
    let reply = ask(running, method, target, fields);
    assert_eq!((reply.status, reply.text().trim_matches(['[', ']'])), (200, "secret"), "{target}");
}

#[test]
fn the_protection_of_a_route_protects_its_stored_pages() {
    let mut running = serve();
    for out in &WAYS_OUT {
        assert!(!(out.shows)(&mut running), "{} shows what is not there", out.name);
    }
    let mut wrong = Vec::new();
    for way_in in &WAYS_IN {
        for key in ["/app/x", "/app/x?stream"] {
            running.store.delete(key);
        }
        (way_in.store)(&mut running);
        assert!(running.store.get("/app/x").is_some(), "{} stores nothing", way_in.name);
        for out in &WAYS_OUT {
            let expected = out.gives.contains(&way_in.protection);
            if (out.shows)(&mut running) != expected {
                wrong.push(format!("{} -> {}: expected {expected}", way_in.name, out.name));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_cached_response_is_for_the_clients_of_its_route() {
    let mut running = serve();
    let target = "/office-cached/x";
    stores(&mut running, "GET", target, OFFICE);
    let hit = ask(&running, "GET", target, OFFICE);
    assert_eq!((hit.status, hit.text().as_str()), (200, "secret"));
    assert!(hit.field("cache-status").is_some_and(|status| status.contains("hit")), "{}", hit.head);
    for fields in ["", ELSEWHERE, LIAR] {
        for method in ["GET", "HEAD", "POST", "OPTIONS"] {
            let mut client = running.kirin.connect();
            client.send(format!("{method} {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
            let reply = client.read_head_reply();
            assert_eq!(reply.status, 403, "{method} {fields}");
        }
        let part = ask(&running, "GET", &format!("/lua/fetch?{target}"), fields);
        assert!(!part.text().contains("secret"), "{fields}");
    }
}

#[test]
fn a_page_that_no_route_may_show_can_be_purged() {
    let mut running = serve();
    for (target, key) in [("/closed/x", "/app/x"), ("/same-office/x", "/app/x")] {
        running.store.set(key, b"text/html\r\nsecret");
        let reply = ask(&running, "PURGE", target, ELSEWHERE);
        assert_ne!(reply.status, 200, "a client may not purge: {target}");
        assert!(running.store.get(key).is_some());
        let reply = ask(&running, "PURGE", target, "");
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        assert!(running.store.get(key).is_none(), "{target}");
    }
    let target = "/office-cached/x";
    stores(&mut running, "GET", target, OFFICE);
    let status = |running: &Running| {
        let reply = ask(running, "GET", target, OFFICE);
        reply.field("cache-status").unwrap_or_default().to_owned()
    };
    assert!(status(&running).starts_with("Kirin; hit"));
    assert_eq!(ask(&running, "PURGE", target, "").status, 200);
    assert!(status(&running).starts_with("Kirin; fwd=uri-miss"));
}

#[test]
fn the_log_says_that_a_protected_page_is_served_by_no_route() {
    let running = serve();
    let reply = ask(&running, "GET", "/rate/x", "");
    assert_eq!(reply.status, 200);
    running.kirin.wait_for_log(
        "it was sent on a route with `basic_auth`, `auth_request`, `rate_limit` or `allow`",
    );
}
