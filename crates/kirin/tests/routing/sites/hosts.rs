//! The host of a request: all its spellings, hosts of nobody, and requests that name two.

use kirin_tests::{Client, Http2Client, Kirin, Site};

use super::world::World;

/// Two sites without routes at the top level.
const STRICT: &str = r#"
threads = 1
[[listener]]
address = "127.0.0.1:0"
[[listener]]
address = "127.0.0.1:0"
trusted = ["127.0.0.1"]
forwarded_host = true
[[site]]
hosts = ["a.test", "127.0.0.1", "a_b.test", "xn--mnchen-3ya.test"]
[[site.route]]
path = "/"
try = ["files:a"]
[[site]]
hosts = ["[::1]", "*.b.test", "Zürich.test"]
name = "b"
[[site.route]]
path = "/"
try = ["files:b"]
[[site]]
hosts = ["*.deep.b.test", "www.b.test"]
[[site.route]]
path = "/"
try = ["files:c"]
"#;

fn strict() -> (Site, Kirin) {
    let site = Site::new().with("a/x", "a").with("b/x", "b").with("c/x", "c");
    let kirin = Kirin::start(&site, STRICT);
    (site, kirin)
}

/// Sends these bytes. Returns the status, and the body if that is 200.
fn send(client: &mut Client, request: &str) -> (u16, String) {
    let reply = client.send(request).read_reply();
    (reply.status, if reply.status == 200 { reply.text() } else { String::new() })
}

#[test]
fn every_spelling_of_a_host_finds_its_site_and_no_other_host_does() {
    let (_site, kirin) = strict();
    let long = format!("{}.b.test", "x".repeat(63));
    let longer = format!("{}.b.test", vec!["x".repeat(63); 3].join("."));
    let longest = format!("{}.a.test", "x".repeat(8000));
    for (host, expected) in [
        ("a.test", "a"),
        ("A.TEST", "a"),
        ("a.test.", "a"),
        ("A.Test.:80", "a"),
        ("a.test:1", "a"),
        ("a.test:", "a"),
        ("%61.test", "a"),
        ("%61%2Etest", "a"),
        ("a_b.test", "a"),
        ("127.0.0.1", "a"),
        ("127.0.0.1:65535", "a"),
        ("xn--mnchen-3ya.test", "a"),
        ("XN--MNCHEN-3YA.test", "a"),
        ("m%C3%BCnchen.test", "a"),
        ("M%C3%9CNCHEN.test", "a"),
        ("[::1]", "b"),
        ("[::1]:80", "b"),
        ("[0:0:0:0:0:0:0:1]", "b"),
        ("[0000:0000::0001]", "b"),
        ("xn--zrich-kva.test", "b"),
        ("z%c3%bcrich.test", "b"),
        ("x.b.test", "b"),
        ("x.y.z.b.test", "b"),
        ("deep.b.test", "b"),
        ("1.b.test", "b"),
        (&long, "b"),
        ("www.b.test", "c"),
        ("WWW.B.test.", "c"),
        ("x.deep.b.test", "c"),
        // Nobody's.
        ("b.test", "421"),
        (".b.test", "400"),
        ("x..b.test", "400"),
        ("a.test..", "400"),
        ("A.test..", "400"),
        ("aa.test", "421"),
        ("a.test.evil", "421"),
        ("www.a.test", "421"),
        ("test", "421"),
        ("127.1", "421"),
        ("2130706433", "421"),
        ("0x7f.0.0.1", "421"),
        ("127.0.0.01", "421"),
        ("[::ffff:127.0.0.1]", "421"),
        ("[::2]", "421"),
        ("a%3A80.test", "421"),
        ("a.test%3A80", "421"),
        ("a.test%00", "421"),
        ("a%2Fb.b.test", "421"),
        ("b%3A%2F.b.test", "421"),
        ("b%3A.b.test", "421"),
        ("x%20.b.test", "421"),
        ("*.b.test", "421"),
        ("%2A.b.test", "421"),
        ("%C2%AD.b.test", "421"),
        ("%FF.b.test", "421"),
        (&longer, "421"),
        (&longest, "421"),
        ("", "400"),
        ("a b.test", "400"),
        ("a.test/", "400"),
        ("user@a.test", "400"),
        ("a.test:x", "400"),
        ("a.test:80:80", "400"),
        ("::1", "400"),
        ("[::1", "400"),
        ("[::1%25lo]", "400"),
        ("a.test, b.test", "400"),
        ("http://a.test", "400"),
        ("%zz.test", "400"),
        ("m\u{fc}nchen.test", "400"),
    ] {
        let mut client = kirin.connect();
        let request = format!("GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let (status, body) = send(&mut client, &request);
        let got = if status == 200 { body } else { status.to_string() };
        assert_eq!(got, expected, "{}", &host[..host.len().min(300)]);
    }
}

#[test]
fn a_request_has_one_host() {
    let (_site, kirin) = strict();
    for (head, expected) in [
        ("GET /x HTTP/1.1\r\nHost: a.test\r\nHost: x.b.test\r\n\r\n", "400"),
        ("GET /x HTTP/1.1\r\nHost: a.test\r\nHost: a.test\r\n\r\n", "400"),
        ("GET /x HTTP/1.1\r\nHost: a.test\r\nhost : x.b.test\r\n\r\n", "400"),
        ("GET /x HTTP/1.1\r\n Host: a.test\r\n\r\n", "400"),
        ("GET /x HTTP/1.1\r\n\r\n", "400"),
        ("GET /x HTTP/1.0\r\n\r\n", "421"),
        ("GET /x HTTP/1.0\r\nHost: a.test\r\n\r\n", "a"),
        ("GET /x HTTP/1.0\r\nHost: a.test\r\nHost: b.test\r\n\r\n", "400"),
        // RFC 9112 section 3.2.2: the absolute form counts, and `Host` is ignored.
        ("GET http://a.test/x HTTP/1.1\r\nHost: x.b.test\r\n\r\n", "a"),
        ("GET http://x.b.test:80/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "b"),
        ("GET http://A.TEST./x HTTP/1.1\r\nHost: x.b.test\r\n\r\n", "a"),
        ("GET http://nobody.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "421"),
        ("GET http://a.test/x HTTP/1.1\r\n\r\n", "400"),
        ("GET http://user@a.test/x HTTP/1.1\r\nHost: a.test\r\n\r\n", "400"),
        ("GET http:///x HTTP/1.1\r\nHost: a.test\r\n\r\n", "400"),
        ("GET //a.test/x HTTP/1.1\r\nHost: nobody.test\r\n\r\n", "421"),
        ("OPTIONS * HTTP/1.1\r\nHost: nobody.test\r\n\r\n", "421"),
        ("PURGE /x HTTP/1.1\r\nHost: nobody.test\r\n\r\n", "421"),
        ("GET /../x HTTP/1.1\r\nHost: nobody.test\r\n\r\n", "400"),
    ] {
        let (status, body) = send(&mut kirin.connect(), head);
        let got = if status == 200 { body } else { status.to_string() };
        assert_eq!(got, expected, "{head}");
    }
    // One connection serves all sites.
    let mut client = kirin.connect();
    for (host, body) in [("a.test", "a"), ("x.b.test", "b"), ("www.b.test", "c"), ("a.test", "a")] {
        let request = format!("GET /x HTTP/1.1\r\nHost: {host}\r\n\r\n");
        assert_eq!(send(&mut client, &request), (200, body.into()));
    }
    let request = "GET /x HTTP/1.1\r\nHost: nobody.test\r\n\r\n";
    assert_eq!(send(&mut client, request).0, 421);
    let request = "GET /x HTTP/1.1\r\nHost: a.test\r\n\r\n";
    assert_eq!(send(&mut client, request), (200, "a".into()), "the connection stays");
}

#[test]
fn http2_finds_the_site_by_its_authority() {
    let (_site, kirin) = strict();
    // The client's `:authority` is `test`.
    let mut client = Http2Client::connect(kirin.address());
    assert_eq!(client.get("/x").status, 421);
    let differs = client.begin("GET", "/x", &[("host", "a.test")]);
    match client.try_finish(differs) {
        Ok(reply) => assert_eq!(reply.status, 400),
        Err(error) => assert!(error.is_reset(), "{error}"),
    }
    for (authority, expected) in
        [("a.test", "a"), ("X.B.Test.:8443", "b"), ("www.b.test", "c"), ("b.test", "421")]
    {
        let reply = client.get(&format!("http://{authority}/x"));
        let got = if reply.status == 200 { reply.text() } else { reply.status.to_string() };
        assert_eq!(got, expected, "{authority}");
    }
}

#[test]
fn only_a_trusted_proxy_names_another_host() {
    let (_site, kirin) = strict();
    for (listener, name, value, expected) in [
        (0, "X-Forwarded-Host", "x.b.test", "a"),
        (0, "Forwarded", "for=192.0.2.1;host=x.b.test", "a"),
        (1, "X-Forwarded-Host", "x.b.test", "b"),
        (1, "X-Forwarded-Host", "WWW.B.test.:443", "c"),
        (1, "X-Forwarded-Host", "nobody.test", "421"),
        (1, "X-Forwarded-Host", "no host", "a"),
        (1, "Forwarded", "for=192.0.2.1;host=x.b.test", "a"),
    ] {
        let request = format!(
            "GET /x HTTP/1.1\r\nHost: a.test\r\nX-Forwarded-For: 192.0.2.1\r\n{name}: {value}\r\n\r\n"
        );
        let (status, body) = send(&mut Client::connect(kirin.address_of(listener)), &request);
        let got = if status == 200 { body } else { status.to_string() };
        assert_eq!(got, expected, "{listener} {request}");
    }
}

#[test]
fn an_unknown_host_gets_the_routes_at_the_top_level() {
    let world = World::start();
    for (head, host, site) in [
        ("Host: nobody.test", "nobody.test", "-"),
        ("Host: wild.test", "wild.test", "-"),
        ("Host: shop%3A.test", "shop%3A.test", "-"),
        ("Host: shop", "shop", "-"),
        ("Host: a%3A%2F.wild.test", "a%3A%2F.wild.test", "-"),
        ("Host: shop.test:81", "shop.test:81", "shop"),
        ("Host: A.Wild.test.", "A.Wild.test.", "a.wild.test"),
        ("Host: WWW.example.test", "WWW.example.test", "example.test"),
        // A client cannot name the site.
        ("Host: nobody.test\r\nKirin-Site: shop\r\nKirin_Site: shop", "nobody.test", "-"),
    ] {
        let mut client = world.connect_plain();
        let (status, body) = send(&mut client, &format!("GET /env HTTP/1.1\r\n{head}\r\n\r\n"));
        assert_eq!((status, body), (200, format!("HTTP_HOST={host}\nKIRIN_SITE={site}\n")));
    }
    let (status, body) = send(&mut world.connect_plain(), "GET /env HTTP/1.0\r\n\r\n");
    assert_eq!(status, 200, "HTTP/1.0 without a host");
    assert!(body.ends_with("KIRIN_SITE=-\n"), "{body}");
}

#[test]
fn the_host_decides_and_not_the_name_of_the_handshake() {
    let world = World::start();
    for (name, host, site) in [
        ("example.test", "shop.test", "shop"),
        ("a.wild.test", "example.test", "example.test"),
        ("shop.test", "b.wild.test", "b.wild.test"),
        ("other.test", "nobody.test", "-"),
    ] {
        let reply = world.ask_by(name, host, "GET", "/env", "");
        assert_eq!(reply.text(), format!("HTTP_HOST={host}\nKIRIN_SITE={site}\n"), "{name}");
    }
}
