//! The visitor's session in pages of the store, through the built program.

use kirin_tests::{Kirin, Memcached, Reply, Site};

const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n\
    session_cookie = \"simple_session\"\n[[route]]\npath = \"/\"\ntry = [\"store\"]\ncompress = true\n";

const MARI: &str = "0123456789abcdef0123456789abcdef01234567";
const BEA: &str = "ffffffffffffffffffffffffffffffffffffffff";

const BAR: &str = "<!--# if expr=\"$session.name\" -->hello <!--# echo var=\"session.name\" -->, \
    <!--# echo var=\"session.csrf_token\" --><!--# else -->sign in<!--# endif -->.";

fn serve() -> (Site, Kirin, Memcached) {
    let site = Site::new();
    let kirin = Kirin::start(&site, CONFIG);
    let memcached = Memcached::connect(&site.path("m.sock"));
    (site, kirin, memcached)
}

fn get(kirin: &Kirin, id: &str, fields: &str) -> Reply {
    kirin.connect().request("GET", "/", &format!("Cookie: a=b; simple_session={id}\r\n{fields}"))
}

#[test]
fn a_page_shows_each_visitor_only_their_own_session() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set("/", format!("text/html\r\n{BAR}").as_bytes());
    memcached.set(MARI, br#"{"name":"mari","csrf_token":"m1"}"#);
    memcached.set(BEA, br#"{"name":"bea","csrf_token":"b1"}"#);
    for _ in 0..2 {
        assert_eq!(get(&kirin, MARI, "").text(), "hello mari, m1.");
        assert_eq!(get(&kirin, BEA, "").text(), "hello bea, b1.");
        assert_eq!(kirin.get("/").text(), "sign in.");
    }
    memcached.set(MARI, br#"{"name":"maria","csrf_token":"m2"}"#);
    assert_eq!(
        get(&kirin, MARI, "").text(),
        "hello maria, m2.",
        "a session that is set again is read again"
    );
    memcached.delete(MARI);
    assert_eq!(get(&kirin, MARI, "").text(), "sign in.", "one that is deleted is over at once");
}

#[test]
fn a_cookie_cannot_name_another_item() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set("/", b"text/html\r\n<!--# echo var=\"session\" default=\"none\" -->");
    memcached.set("secret", br#"{"name":"mari"}"#);
    memcached.set(MARI, b"[1]");
    memcached.set(BEA, b"text/html\r\n{\"name\":\"mari\"}");
    for id in ["secret", "/", MARI, BEA, "", "x y", &"0".repeat(129)] {
        assert_eq!(get(&kirin, id, "").text(), "none", "{id}");
    }
}

#[test]
fn echoed_values_are_escaped() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set("/", b"text/html\r\n<a title=\"<!--# echo var=\"session.name\" -->\">");
    memcached.set(MARI, br#"{"name":"<b>\"&<!--# include secret -->"}"#);
    memcached.set("secret", b"secret");
    assert_eq!(
        get(&kirin, MARI, "").text(),
        "<a title=\"&lt;b&gt;&quot;&amp;&lt;!--# include secret --&gt;\">"
    );
}

#[test]
fn members_are_reached_with_dots_and_formatted_as_in_perl() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set(
        "/",
        b"text/html\r\n<!--# if expr=\"${session.user.admin}\" -->admin<!--# endif -->\
          <!--# if expr=\"${session.user.banned}\" -->banned<!--# endif -->\
          <!--# if expr=\"$session.visits = 7\" -->seven<!--# endif -->\
          <!--# if expr=\"$session.cart\" -->cart<!--# endif --> <!--# echo var=\"session.cart.1.name\" --> \
          <!--# echo var=\"session.gone\" default=\"nothing\" -->",
    );
    memcached.set(
        MARI,
        br#"{"user":{"admin":true,"banned":false},"visits":7,"cart":[{"name":"tea"},{"name":"cake"}]}"#,
    );
    assert_eq!(get(&kirin, MARI, "").text(), "adminsevencart cake nothing");
}

#[test]
fn a_page_with_a_session_is_its_visitors_own() {
    let (_site, kirin, mut memcached) = serve();
    // It is long enough to be compressed, and the same for all visitors except for the bar.
    memcached.set("/", format!("text/html\r\n{BAR}{}", "<p>text</p>".repeat(500)).as_bytes());
    memcached.set(MARI, br#"{"name":"mari"}"#);
    memcached.set(BEA, br#"{"name":"bea"}"#);
    let etags: Vec<_> = [MARI, BEA, "none"]
        .iter()
        .map(|id| {
            let reply = get(&kirin, id, "");
            assert_eq!(reply.field("cache-control"), Some("private"), "{id}");
            let etag = reply.field("etag").expect("an ETag").to_owned();
            assert_eq!(get(&kirin, id, &format!("If-None-Match: {etag}\r\n")).status, 304);
            etag
        })
        .collect();
    for (index, etag) in etags.iter().enumerate() {
        for (other, id) in [MARI, BEA, "none"].iter().enumerate() {
            let status = get(&kirin, id, &format!("If-None-Match: {etag}\r\n")).status;
            assert_eq!(status, if index == other { 304 } else { 200 });
        }
    }
    for _ in 0..2 {
        for (id, name) in [(MARI, "mari"), (BEA, "bea")] {
            let reply = get(&kirin, id, "Accept-Encoding: gzip\r\n");
            assert_eq!(reply.field("content-encoding"), Some("gzip"));
            let mut text = String::new();
            let mut decoder = flate2::read::GzDecoder::new(&reply.body[..]);
            std::io::Read::read_to_string(&mut decoder, &mut text).expect("gzip");
            assert!(text.starts_with(&format!("hello {name}, ")), "{text}");
        }
    }
}

#[test]
fn a_page_that_calls_itself_public_is_not_when_it_has_a_session() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set(MARI, br#"{"name":"mari"}"#);
    for control in ["public, max-age=60", "s-maxage=60, max-age=60", "max-age=60"] {
        let page = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nCache-Control: {control}\r\n\r\n{BAR}"
        );
        memcached.set("/", page.as_bytes());
        for id in [MARI, "none"] {
            assert_eq!(
                get(&kirin, id, "").field("cache-control"),
                Some("max-age=60, private"),
                "{control}"
            );
        }
    }
}

#[test]
fn without_a_session_cookie_in_the_configuration_there_are_no_sessions() {
    let site = Site::new();
    let kirin = Kirin::start(&site, &CONFIG.replace("session_cookie = \"simple_session\"\n", ""));
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.set("/", b"text/html\r\n<!--# echo var=\"session.name\" -->");
    memcached.set(MARI, br#"{"name":"mari"}"#);
    assert_eq!(get(&kirin, MARI, "").text(), "(none)");
}

#[test]
fn sessions_written_by_session_kirin_are_read() {
    let site = Site::new().with(
        "app.psgi",
        r#"use v5.16; use warnings; use utf8; use Plack::Builder;
        builder {
            enable 'Session::Kirin', keep_empty => 0, ttl => 60;
            sub {
                my $session = $_[0]{'psgix.session'};
                %$session = (name => 'märi <3', tries => 3, flags => { admin => 1 });
                [200, ['Content-Type' => 'text/plain'], ['signed in']];
            };
        };"#,
    );
    let config = CONFIG.to_owned()
        + "[[route]]\npath = \"/in\"\ntry = [\"app:web\"]\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n";
    let kirin = Kirin::start(&site, &config);
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.set(
        "/",
        b"text/html; charset=UTF-8\r\n<!--# echo var=\"session.name\" --> <!--# echo var=\"session.tries\" --> \
          <!--# echo var=\"session.flags.admin\" -->",
    );
    let signed_in = kirin.get("/in");
    assert_eq!(signed_in.text(), "signed in", "{}", kirin.log());
    let cookie = signed_in.field("set-cookie").expect("a cookie");
    let id = cookie
        .strip_prefix("simple_session=")
        .and_then(|rest| rest.split(';').next())
        .expect("an id");
    assert_eq!(get(&kirin, id, "").text(), "märi &lt;3 3 1");
}
