//! The protection of a route protects the pages that its application stores. The tests combine
//! every way into the store with every way out, through the built program.

use kirin_tests::{Authority, Issued, Kirin, Memcached, Reply, Site, TlsClient, TlsSetup};
use rustls::ProtocolVersion::TLSv1_3;

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

/// A way into the store, under the key `/app/x`.
struct In {
    name: &'static str,
    /// The protection of the route that stores.
    protection: Protection,
    store: fn(&mut Running),
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

const WAYS_IN: [In; 17] = [
    In {
        name: "Kirin-Store",
        protection: Protection::Password,
        store: |r| stores(r, "GET", "/password/x", BOB),
    },
    In {
        name: "Kirin-Store of a streamed response",
        protection: Protection::Password,
        store: |r| {
            stores(r, "GET", "/password/x?stream", BOB);
            // The key of the stream includes the query.
            let page = r.store.get("/app/x?stream").expect("a page");
            r.store.set("/app/x", &page);
        },
    },
    In {
        name: "Kirin-Store with a key",
        protection: Protection::Password,
        store: |r| stores(r, "GET", "/password/key", BOB),
    },
    In {
        name: "Kirin-Store of a POST with a key",
        protection: Protection::Password,
        store: |r| stores(r, "POST", "/password/key", &format!("{BOB}Content-Length: 0\r\n")),
    },
    In {
        name: "Kirin-Store of a route with a cache",
        protection: Protection::Password,
        store: |r| stores(r, "GET", "/password-cached/x", BOB),
    },
    In {
        name: "Kirin-Store of a part",
        protection: Protection::Password,
        store: |r| stores(r, "GET", "/page/push", BOB),
    },
    In {
        name: "Kirin-Store, rate",
        protection: Protection::Rate,
        store: |r| stores(r, "GET", "/rate/x", ""),
    },
    In {
        name: "Kirin-Store, clients",
        protection: Protection::Office,
        store: |r| stores(r, "GET", "/office/x", OFFICE),
    },
    In {
        name: "Kirin-Store of a streamed response, clients",
        protection: Protection::Office,
        store: |r| {
            stores(r, "GET", "/office/x?stream", OFFICE);
            let page = r.store.get("/app/x?stream").expect("a page");
            r.store.set("/app/x", &page);
        },
    },
    In {
        name: "Kirin-Store of a POST with a key, clients",
        protection: Protection::Office,
        store: |r| stores(r, "POST", "/office/key", &format!("{OFFICE}Content-Length: 0\r\n")),
    },
    In {
        name: "Kirin-Store of a part, clients",
        protection: Protection::Office,
        store: |r| stores(r, "GET", "/page/push-office", OFFICE),
    },
    In {
        name: "Kirin-Store, auth_request",
        protection: Protection::SignedOn,
        store: |r| stores(r, "GET", "/signed/x", MARI),
    },
    In {
        name: "Kirin-Store of a route with auth_request and a cache",
        protection: Protection::SignedOn,
        store: |r| stores(r, "GET", "/signed-cached/x", MARI),
    },
    In {
        name: "Kirin-Store of a part, auth_request",
        protection: Protection::SignedOn,
        store: |r| stores(r, "GET", "/page/push-signed", MARI),
    },
    In {
        name: "Kirin-Store, open",
        protection: Protection::None,
        store: |r| stores(r, "GET", "/open/x", ""),
    },
    In {
        name: "memcached set",
        protection: Protection::None,
        store: |r| r.store.set("/app/x", b"text/html\r\nsecret"),
    },
    In {
        name: "kirin.store.set",
        protection: Protection::None,
        store: |r| assert_eq!(ask(r, "GET", "/lua/set", "").status, 200),
    },
];

/// A way out of the store. It reports whether the item `/app/x` is shown.
struct Out {
    name: &'static str,
    shows: fn(&mut Running) -> bool,
    /// The protections whose pages come out this way.
    gives: &'static [Protection],
}

fn shows(running: &Running, target: &str, fields: &str) -> bool {
    let reply = ask(running, "GET", target, fields);
    assert!(!reply.head.contains("Kirin-Protection"), "{}", reply.head);
    reply.text().contains("secret")
}

const OPEN: &[Protection] = &[Protection::None];
const MEMBERS: &[Protection] = &[Protection::None, Protection::Password];
const SIGNED_ON: &[Protection] = &[Protection::None, Protection::SignedOn];
const COLLEAGUES: &[Protection] = &[Protection::None, Protection::Office];
const ALL: &[Protection] = &[
    Protection::None,
    Protection::Password,
    Protection::Rate,
    Protection::Office,
    Protection::SignedOn,
];

const WAYS_OUT: [Out; 37] = [
    Out {
        name: "store behind the same auth_request",
        shows: |r| shows(r, "/same-signed/x", MARI),
        gives: SIGNED_ON,
    },
    Out {
        name: "the same for another visitor",
        shows: |r| shows(r, "/same-signed/x", BOB),
        gives: &[],
    },
    Out {
        name: "store behind another auth_request",
        shows: |r| shows(r, "/other-signed/x", MARI),
        gives: OPEN,
    },
    Out {
        name: "include virtual of the same auth_request, by another visitor",
        shows: |r| shows(r, "/page/same-signed", ""),
        gives: &[],
    },
    Out {
        name: "include key behind the same auth_request",
        shows: |r| shows(r, "/signed-page/key", MARI),
        gives: SIGNED_ON,
    },
    Out {
        name: "fetch of a route with the same auth_request",
        shows: |r| shows(r, "/lua/fetch?/same-signed/x", MARI),
        gives: SIGNED_ON,
    },
    Out {
        name: "fetch of a route with the same auth_request, by another visitor",
        shows: |r| shows(r, "/lua/fetch?/same-signed/x", OFFICE),
        gives: &[],
    },
    Out { name: "store of another route", shows: |r| shows(r, "/app/x", ""), gives: OPEN },
    Out {
        name: "the same, with a password that nobody asks for",
        shows: |r| shows(r, "/app/x", BOB),
        gives: OPEN,
    },
    Out {
        name: "HEAD",
        shows: |r| {
            let mut c = r.kirin.connect();
            c.send("HEAD /app/x HTTP/1.1\r\nHost: a\r\n\r\n");
            c.read_head_reply().status == 200
        },
        gives: OPEN,
    },
    Out {
        name: "405 in place of 404",
        shows: |r| ask(r, "POST", "/app/x", "Content-Length: 0\r\n").status == 405,
        gives: OPEN,
    },
    Out {
        name: "store behind another password",
        shows: |r| shows(r, "/other/x", ZOE),
        gives: OPEN,
    },
    Out {
        name: "store behind another rate limit",
        shows: |r| shows(r, "/other-rate/x", ""),
        gives: OPEN,
    },
    Out {
        name: "store behind the same password",
        shows: |r| shows(r, "/same/x", BOB),
        gives: MEMBERS,
    },
    Out { name: "the same without the password", shows: |r| shows(r, "/same/x", ""), gives: &[] },
    Out {
        name: "store of another route, for a client that nobody asks for",
        shows: |r| shows(r, "/app/x", OFFICE),
        gives: OPEN,
    },
    Out {
        name: "store for other clients, one of both",
        shows: |r| shows(r, "/other-office/x", OFFICE),
        gives: OPEN,
    },
    Out {
        name: "store for the same clients",
        shows: |r| shows(r, "/same-office/x", OFFICE),
        gives: COLLEAGUES,
    },
    Out {
        name: "the same for another client",
        shows: |r| shows(r, "/same-office/x", ELSEWHERE),
        gives: &[],
    },
    Out {
        name: "the same for a client that names the office itself",
        shows: |r| shows(r, "/same-office/x", LIAR),
        gives: &[],
    },
    Out { name: "a closed route", shows: |r| shows(r, "/closed/x", OFFICE), gives: &[] },
    Out {
        name: "a route in maintenance",
        shows: |r| shows(r, "/maintained/x", OFFICE),
        gives: &[],
    },
    Out {
        name: "include virtual of the same clients, by another",
        shows: |r| shows(r, "/page/same-office", ELSEWHERE),
        gives: &[],
    },
    Out {
        name: "include virtual of a closed route",
        shows: |r| shows(r, "/page/closed", OFFICE),
        gives: &[],
    },
    Out {
        name: "include virtual of a route in maintenance",
        shows: |r| shows(r, "/page/maintained", OFFICE),
        gives: &[],
    },
    Out {
        name: "include key for the same clients",
        shows: |r| shows(r, "/office-page/key", OFFICE),
        gives: COLLEAGUES,
    },
    Out {
        name: "fetch of a route for the same clients",
        shows: |r| shows(r, "/lua/fetch?/same-office/x", OFFICE),
        gives: COLLEAGUES,
    },
    Out {
        name: "fetch of a route for the same clients, by another",
        shows: |r| shows(r, "/lua/fetch?/same-office/x", ELSEWHERE),
        gives: &[],
    },
    Out {
        name: "fetch of a closed route",
        shows: |r| shows(r, "/lua/fetch?/closed/x", OFFICE),
        gives: &[],
    },
    Out { name: "include key", shows: |r| shows(r, "/page/key", BOB), gives: OPEN },
    Out {
        name: "include key behind the same password",
        shows: |r| shows(r, "/members-page/key", BOB),
        gives: MEMBERS,
    },
    Out {
        name: "include key in a file",
        shows: |r| shows(r, "/files/include.html", BOB),
        gives: OPEN,
    },
    Out { name: "include virtual", shows: |r| shows(r, "/page/virtual", BOB), gives: OPEN },
    Out {
        name: "include virtual of the same password, without it",
        shows: |r| shows(r, "/page/same", ""),
        gives: &[],
    },
    Out { name: "an error page", shows: |r| shows(r, "/error/none", BOB), gives: OPEN },
    Out { name: "kirin.store.get", shows: |r| shows(r, "/lua/get", ""), gives: ALL },
    Out { name: "memcached get", shows: |r| r.store.get("/app/x").is_some(), gives: ALL },
];

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

/// Two listeners with their own authorities for clients, and one without TLS.
const CERTIFICATES: &str = r#"
threads = 1
[[listener]]
address = "127.0.0.1:0"
[listener.tls]
certificates = [{ chain = "a.pem", key = "a.key" }]
client_ca = "clients.pem"
client_verify = "required"
[[listener]]
address = "127.0.0.1:0"
[listener.tls]
certificates = [{ chain = "a.pem", key = "a.key" }]
client_ca = "others.pem"
client_verify = "optional"
[[listener]]
address = "127.0.0.1:0"
[store]
memory = "16MB"
memcached = ["unix:m.sock"]
[[app]]
name = "web"
load = "app.psgi"
workers = 1
[[route]]
path = "/"
try = ["store", "app:web"]
"#;

const CERTIFICATE_APP: &str = r#"
use v5.16; use warnings;
my $run = 0;
sub {
    my $env = shift;
    my $client = $env->{SSL_CLIENT_S_DN} // 'nobody';
    $run++;
    return [200, ['Content-Type' => 'text/plain', 'Kirin-Store' => 'ttl=300'], ["$run for $client"]];
};
"#;

#[test]
fn a_page_stored_for_a_certificate_is_served_for_one_of_the_same_authority() {
    let [authority, clients, others] = ["Server", "Clients", "Others"].map(Authority::new);
    let site = Site::new()
        .with("app.psgi", CERTIFICATE_APP)
        .with("clients.pem", clients.pem())
        .with("others.pem", others.pem());
    authority.issue(&["a.test"]).write(&site, "a");
    let kirin = Kirin::start(&site, CERTIFICATES);
    let get = |listener: usize, certificate: Option<&Issued>| {
        let setup = TlsSetup::new(&authority, certificate, TLSv1_3);
        let mut client =
            TlsClient::connect(kirin.address_of(listener), "a.test", &setup).expect("a handshake");
        let reply = client.get_and_close("/");
        reply.split_once("\r\n\r\n").expect("a body").1.to_owned()
    };
    let (alice, bob, eve) =
        (clients.issue(&["alice"]), clients.issue(&["bob"]), others.issue(&["eve"]));
    assert_eq!(get(0, Some(&alice)), "1 for CN=alice,O=Kirin\\, tests");
    assert_eq!(
        get(0, Some(&bob)),
        "1 for CN=alice,O=Kirin\\, tests",
        "one for all of this authority"
    );
    assert_eq!(get(1, Some(&eve)), "2 for CN=eve,O=Kirin\\, tests");
    assert_eq!(get(0, Some(&bob)), "3 for CN=bob,O=Kirin\\, tests");
    assert_eq!(get(1, None), "4 for nobody");
    // Now the page in the store is for all visitors.
    for (listener, certificate) in [(0, Some(&alice)), (1, Some(&eve)), (1, None)] {
        assert_eq!(get(listener, certificate), "4 for nobody");
    }
    let mut client = kirin_tests::Client::connect(kirin.address_of(2));
    assert_eq!(client.get("/").text(), "4 for nobody");
    Memcached::connect(&site.path("m.sock")).delete("/");
    assert!(get(0, Some(&alice)).starts_with("5 for CN=alice"));
    assert_eq!(client.get("/").text(), "6 for nobody", "a listener without certificates");
}
