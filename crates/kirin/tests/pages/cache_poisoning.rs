//! Responses that an attacker's request, or a careless server, must not leave in the cache for
//! others.
//!
//! The server shows the request data that it has seen. Others must not get data that they have not
//! sent.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use kirin_tests::{Backend, Client, Kirin, ReceivedRequest, Reply, Site, wait_for};

fn serve(backend: &Backend, listener: &str, cache: &str) -> Kirin {
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n{listener}\
         [[upstream]]\nname = \"web\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:web\"]\ncache = {cache}\n",
        backend.address()
    );
    Kirin::start(&Site::new(), &config)
}

fn answer(fields: &str, body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\n{fields}Content-Length: {}\r\n\r\n{body}", body.len())
}

/// Starts a server that answers with the value of the field that the path names, valid for a
/// minute.
fn echo(asked: &ReceivedRequest) -> String {
    let name = asked.target().trim_start_matches('/').to_owned();
    let value = asked.field(&name).unwrap_or("nothing");
    answer(&format!("Cache-Control: max-age=60\r\nVary: {name}\r\n"), value)
}

/// Starts a server that answers with the number of the request.
fn counting(fields: &'static str) -> Backend {
    let count = AtomicUsize::new(0);
    Backend::answering(move |_| {
        answer(fields, &(count.fetch_add(1, Ordering::SeqCst) + 1).to_string())
    })
}

fn status(reply: &Reply) -> &str {
    reply.field("cache-status").unwrap_or_else(|| panic!("no Cache-Status: {}", reply.head))
}

fn is_hit(reply: &Reply) -> bool {
    status(reply).starts_with("Kirin; hit")
}

fn texts<const N: usize>(client: &mut Client, target: &str, fields: [&str; N]) -> [String; N] {
    fields.map(|fields| client.request("GET", target, fields).text())
}

#[test]
fn a_cookie_is_never_kept_whichever_field_forbids_it() {
    for fields in [
        "CDN-Cache-Control: max-age=60, no-cache=\"set-cookie\"\r\nSet-Cookie: session=1\r\n",
        "Surrogate-Control: max-age=60, private=\"Set-Cookie\"\r\nSet-Cookie: session=1\r\n",
        "CDN-Cache-Control: max-age=60, private=\"Set-Cookie\"\r\nCache-Control: no-store\r\nSet-Cookie: session=1\r\n",
    ] {
        let backend = counting(fields);
        let kirin = serve(&backend, "", "true");
        let mut client = kirin.connect();
        assert_eq!(client.get("/").field("set-cookie"), Some("session=1"), "{fields}");
        let hit = client.get("/");
        assert_eq!((is_hit(&hit), hit.field("set-cookie")), (true, None), "{}", hit.head);
    }
}

#[test]
fn a_field_excluded_by_either_cache_control_field_is_not_kept() {
    for fields in [
        "CDN-Cache-Control: max-age=60, private=\"X-User\"\r\nX-User: one\r\n",
        "CDN-Cache-Control: max-age=60\r\nCache-Control: private=\"x-user\"\r\nX-User: one\r\n",
    ] {
        let backend = counting(fields);
        let kirin = serve(&backend, "", "true");
        let mut client = kirin.connect();
        assert_eq!(client.get("/").field("x-user"), Some("one"), "{fields}");
        let hit = client.get("/");
        assert_eq!((is_hit(&hit), hit.field("x-user")), (true, None), "{}", hit.head);
    }
}

#[test]
fn a_field_that_connection_removes_is_not_in_the_key() {
    let backend = Backend::answering(echo);
    let kirin = serve(&backend, "", "true");
    let mut client = kirin.connect();
    let french = "Accept-Language: fr\r\n";
    let reply = client.request(
        "GET",
        "/Accept-Language",
        &format!("Connection: Accept-Language\r\n{french}"),
    );
    assert_eq!(
        (reply.text().as_str(), status(&reply)),
        ("nothing", "Kirin; fwd=bypass; detail=altered-request")
    );
    assert_eq!(texts(&mut client, "/Accept-Language", [french, french]), ["fr", "fr"]);
    // Fields that browsers send do not prevent a hit.
    for connection in ["keep-alive", "Keep-Alive, TE", "Upgrade, HTTP2-Settings", ""] {
        let fields = format!("Connection: {connection}\r\n{french}");
        assert!(is_hit(&client.request("GET", "/Accept-Language", &fields)), "{connection}");
    }
}

#[test]
fn a_response_that_varies_by_the_client_address_is_for_no_other() {
    for name in ["X-Forwarded-For", "Forwarded"] {
        let backend = Backend::answering(echo);
        let kirin = serve(&backend, "trusted = [\"127.0.0.1\"]\n", "true");
        let mut client = kirin.connect();
        for _ in 0..2 {
            let reply = client.get(&format!("/{name}"));
            assert!(!is_hit(&reply) && status(&reply).ends_with("detail=vary"), "{}", reply.head);
        }
    }
}

#[test]
fn a_coded_response_varies_by_the_coding_even_if_it_does_not_say_so() {
    let backend = Backend::answering(|asked| {
        let coding = asked.field("accept-encoding").filter(|coding| coding.contains("gzip"));
        let fields = coding.map_or("", |_| "Content-Encoding: gzip\r\n");
        answer(
            &format!("Cache-Control: max-age=60\r\n{fields}"),
            coding.map_or("plain", |_| "coded"),
        )
    });
    let kirin = serve(&backend, "", "true");
    let mut client = kirin.connect();
    let gzip = "Accept-Encoding: gzip\r\n";
    // Every client can read an uncoded response.
    assert_eq!(
        texts(&mut client, "/", [gzip, gzip, "", gzip]),
        ["coded", "coded", "plain", "plain"]
    );
}

#[test]
fn the_order_of_a_clients_preferences_is_in_the_key() {
    let backend = Backend::answering(echo);
    let kirin = serve(&backend, "", "true");
    let mut client = kirin.connect();
    // Frameworks use the first of equal values, and may not know `JA`.
    for (name, values) in [
        ("Accept", ["application/json, text/html", "text/html, application/json"]),
        ("Accept-Language", ["en, ja", "ja, en"]),
        ("Accept-Language", ["JA", "ja"]),
    ] {
        for value in values {
            let reply = client.request("GET", &format!("/{name}"), &format!("{name}: {value}\r\n"));
            assert_eq!(reply.text(), value, "{name}");
        }
        let spaced = format!("{name}: {}\r\n", values[1].replace(", ", " ,"));
        assert!(is_hit(&client.request("GET", &format!("/{name}"), &spaced)), "{name}");
    }
}

#[test]
fn another_spelling_of_a_host_has_its_own_responses() {
    let backend = Backend::answering(|asked| {
        answer("Cache-Control: max-age=60\r\n", asked.field("host").unwrap_or_default())
    });
    let kirin = serve(&backend, "", "true");
    let mut client = kirin.connect();
    for host in ["EXAMPLE.org", "example.org", "example.org.", "example.org:80", "example.org:443"]
    {
        for _ in 0..2 {
            client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
            assert_eq!(client.read_reply().text(), host);
        }
    }
}

#[test]
fn an_altered_request_bypasses_the_cache() {
    let backend = counting("Cache-Control: max-age=60\r\n");
    let kirin = serve(&backend, "trusted = [\"127.0.0.1\"]\n", "true");
    let mut client = kirin.connect();
    for (number, name) in [
        "X-HTTP-Method-Override",
        "X-HTTP-Method",
        "X-Method-Override",
        "X-Original-URL",
        "X-Rewrite-URL",
    ]
    .into_iter()
    .enumerate()
    {
        let reply = client.request("GET", &format!("/{number}"), &format!("{name}: /admin\r\n"));
        assert_eq!(status(&reply), "Kirin; fwd=bypass; detail=altered-request", "{name}");
        assert!(!is_hit(&client.get(&format!("/{number}"))), "{name}");
    }
    // A body is another way to send data that is not in the key.
    client.send("GET /body HTTP/1.1\r\nHost: test\r\nContent-Length: 3\r\n\r\na=b");
    assert_eq!(status(&client.read_reply()), "Kirin; fwd=bypass; detail=request-body");
}

#[test]
fn fields_of_a_trusted_proxy_about_the_site_are_in_the_key() {
    let backend = Backend::answering(|asked| {
        let name = asked.target().trim_start_matches('/').to_owned();
        answer("Cache-Control: max-age=60\r\n", asked.field(&name).unwrap_or("nothing"))
    });
    let kirin = serve(&backend, "trusted = [\"127.0.0.1\"]\n", "true");
    let mut client = kirin.connect();
    for name in ["X-Forwarded-Host", "X-Forwarded-Prefix", "X-Forwarded-Port", "X-Forwarded-Scheme"]
    {
        let (one, other) = (format!("{name}: one\r\n"), format!("{name}: other\r\n"));
        let target = format!("/{name}");
        assert_eq!(
            texts(&mut client, &target, [&one, &other, &one, &other]),
            ["one", "other", "one", "other"]
        );
        assert!(is_hit(&client.request("GET", &target, &one)));
        // Such fields do not name the visitor.
        let of_another = format!("{one}X-Forwarded-For: 192.0.2.9\r\nX-Real-IP: 192.0.2.9\r\n");
        assert!(is_hit(&client.request("GET", &target, &of_another)));
    }
}

#[test]
fn a_304_with_another_tag_does_not_validate_the_stored_response() {
    for (stored, said) in [
        ("ETag: \"one\"\r\n", "ETag: \"other\"\r\n"),
        (
            "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT\r\n",
            "Last-Modified: Sun, 06 Nov 1994 08:49:38 GMT\r\n",
        ),
    ] {
        let count = AtomicUsize::new(0);
        let backend = Backend::answering(move |asked| {
            let number = count.fetch_add(1, Ordering::SeqCst);
            match asked.field("if-none-match").or(asked.field("if-modified-since")) {
                Some(_) => {
                    format!("HTTP/1.1 304 Not Modified\r\n{said}Cache-Control: max-age=60\r\n\r\n")
                }
                None => {
                    answer(&format!("{stored}Cache-Control: max-age=0\r\n"), &number.to_string())
                }
            }
        });
        let kirin = serve(&backend, "", "true");
        let mut client = kirin.connect();
        assert_eq!(client.get("/").text(), "0");
        let reply = client.get("/");
        assert_eq!((reply.status, reply.text().as_str()), (200, "2"), "{said}");
        let tag = stored.split_once(": ").unwrap();
        assert_eq!(reply.field(tag.0), Some(tag.1.trim_end()), "{}", reply.head);
    }
}

#[test]
fn a_cookie_of_a_304_is_for_the_client_that_has_asked() {
    let backend = Backend::answering(|asked| {
        match asked.field("if-none-match") {
        Some(_) => {
            "HTTP/1.1 304 Not Modified\r\nETag: \"a\"\r\nSet-Cookie: session=2\r\nCache-Control: max-age=60\r\n\r\n".into()
        }
        None => answer("ETag: \"a\"\r\nCache-Control: max-age=0\r\n", "text"),
    }
    });
    let kirin = serve(&backend, "", "true");
    let mut client = kirin.connect();
    assert_eq!(client.get("/").field("set-cookie"), None);
    let validated = client.get("/");
    assert_eq!(
        (validated.text().as_str(), validated.field("set-cookie")),
        ("text", Some("session=2"))
    );
    let hit = client.get("/");
    assert_eq!((is_hit(&hit), hit.field("set-cookie")), (true, None));
}

#[test]
fn errors_that_a_request_has_caused_are_not_kept_for_others() {
    // A field that is not in the key causes the error (CPDoS).
    let backend = Backend::answering(|asked| match asked.field("x-oversized") {
        Some(status) => format!("HTTP/1.1 {status} X\r\nContent-Length: 5\r\n\r\nerror"),
        None => answer("ETag: \"a\"\r\nCache-Control: max-age=0, stale-if-error=60\r\n", "page"),
    });
    let kirin = serve(&backend, "", "{ ttl = \"1h\", negative_ttl = \"1h\" }");
    let mut client = kirin.connect();
    for status in [400, 405, 406, 408, 413, 414, 415, 417, 421, 429, 431, 500, 501, 505] {
        let target = format!("/{status}");
        let bad = format!("X-Oversized: {status}\r\n");
        assert_eq!(
            texts(&mut client, &target, [&bad, "", ""]),
            ["error", "page", "page"],
            "{status}"
        );
    }
}

#[test]
fn an_error_of_one_request_does_not_remove_the_response_for_others() {
    let backend = Backend::answering(|asked| match asked.field("x-oversized") {
        Some("431") => "HTTP/1.1 431 X\r\nContent-Length: 5\r\n\r\nerror".into(),
        Some(_) => "HTTP/1.1 503 X\r\nContent-Length: 5\r\n\r\nerror".into(),
        None => answer("Cache-Control: max-age=0, stale-if-error=60\r\n", "page"),
    });
    let kirin = serve(&backend, "", "true");
    let mut client = kirin.connect();
    let fields = ["", "X-Oversized: 431\r\n", "X-Oversized: 503\r\n"];
    assert_eq!(texts(&mut client, "/", fields), ["page", "error", "page"]);
}

#[test]
fn a_part_is_never_taken_for_the_complete_response() {
    let backend = Backend::answering(|asked| {
        match asked.field("range") {
        // One server obeys, and one sends a part that was not requested.
        Some(_) => "HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-1/4\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nab".into(),
        None if asked.target() == "/unasked" => {
            "HTTP/1.1 206 Partial\r\nContent-Range: bytes 0-1/4\r\nCache-Control: max-age=60\r\nContent-Length: 2\r\n\r\nab".into()
        }
        None => answer("Cache-Control: max-age=60\r\n", "abcd"),
    }
    });
    let kirin = serve(&backend, "", "{ ttl = \"1h\" }");
    let mut client = kirin.connect();
    assert_eq!(
        texts(&mut client, "/", ["Range: bytes=0-1\r\n", "", "Range: bytes=1-2\r\n"]),
        ["ab", "abcd", "bc"]
    );
    for _ in 0..2 {
        assert!(!is_hit(&client.get("/unasked")));
    }
}

#[test]
fn a_private_response_stays_private_whatever_its_name_looks_like() {
    // Web cache deception: a visitor is lured to /account/x.css, and the server answers with the
    // account.
    let backend = Backend::answering(|asked| {
        answer("Content-Type: text/html\r\n", asked.field("cookie").unwrap_or("nobody"))
    });
    for cache in ["true", "{ ttl = \"1h\" }"] {
        let kirin = serve(&backend, "", cache);
        let mut client = kirin.connect();
        for target in [
            "/account/x.css",
            "/account%2Fx.css",
            "/account;x.css",
            "/account?x.css",
            "/account%3Fx.js",
        ] {
            assert_eq!(
                texts(&mut client, target, ["Cookie: victim\r\n", ""]),
                ["victim", "nobody"],
                "{target}"
            );
        }
    }
}

#[test]
fn a_private_response_takes_nothing_from_others() {
    for said in [
        "private",
        "no-store",
        "max-age=60\r\nSet-Cookie: a=b",
        "no-cache",
        "max-age=60\r\nVary: *",
    ] {
        let backend = Backend::answering(move |asked| {
            match asked.field("cookie").or(asked.field("authorization")) {
                Some(_) => answer(&format!("Cache-Control: {said}\r\n"), "own"),
                None => answer("Cache-Control: max-age=60\r\n", "for all"),
            }
        });
        let kirin = serve(&backend, "", "true");
        let mut client = kirin.connect();
        assert_eq!(client.get("/").text(), "for all");
        assert!(is_hit(&client.get("/")));
        for field in ["Cookie: a=b\r\n", "Authorization: Basic YTpi\r\n"] {
            for _ in 0..2 {
                assert_eq!(client.request("GET", "/", field).text(), "own");
            }
            let others = client.get("/");
            assert!(is_hit(&others), "{said} {field} {}", others.head);
        }
    }
}

/// Requests without a cookie wait for each other, whether a visitor with one comes first or last.
#[test]
fn a_private_response_ends_no_waiting() {
    let backend = Backend::answering(|asked| match asked.field("cookie") {
        Some(_) => answer("Cache-Control: private\r\n", "own"),
        None => answer("Cache-Control: max-age=60\r\n", "for all"),
    });
    let kirin = serve(&backend, "", "true");
    let mut client = kirin.connect();
    assert_eq!(client.request("GET", "/", "Cookie: a=b\r\n").text(), "own");
    assert_eq!(status(&client.get("/")), "Kirin; fwd=uri-miss; ttl=60; stored");
    assert_eq!(
        status(&client.request("GET", "/", "Cookie: a=b\r\n")),
        "Kirin; fwd=miss; detail=private"
    );
}

#[test]
fn after_a_failure_of_one_request_all_get_the_stale_response() {
    let (asked, held) = (Arc::new(AtomicUsize::new(0)), Arc::new(Mutex::new(())));
    let (count, gate) = (Arc::clone(&asked), Arc::clone(&held));
    let backend = Backend::answering(move |request| match request.target() {
        "/ping" => answer("Cache-Control: no-store\r\n", "pong"),
        _ if count.fetch_add(1, Ordering::SeqCst) == 0 => {
            answer("Cache-Control: max-age=60, stale-if-error=1000\r\nAge: 100\r\n", "stale")
        }
        _ => {
            drop(gate.lock());
            "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\n\r\n".to_owned()
        }
    });
    let kirin = serve(&backend, "", "true");
    let mut clients: Vec<Client> = (0..10).map(|_| kirin.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/ping").text(), "pong");
    }
    assert_eq!(clients[0].get("/").text(), "stale");
    let closed = held.lock().unwrap();
    for client in &mut clients {
        client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    }
    wait_for("the second request", || (asked.load(Ordering::SeqCst) == 2).then_some(()));
    // The only loop has read the earlier bytes when it answers the later ones.
    for _ in 0..3 {
        assert_eq!(kirin.get("/ping").text(), "pong");
    }
    drop(closed);
    for client in &mut clients {
        let reply = client.read_reply();
        assert_eq!((reply.status, reply.text().as_str()), (200, "stale"));
        assert!(
            status(&reply).starts_with("Kirin; fwd=stale; fwd-status=503; ttl=-"),
            "{}",
            reply.head
        );
        assert!(status(&reply).ends_with("detail=stale-if-error"), "{}", reply.head);
    }
    assert_eq!(asked.load(Ordering::SeqCst), 2);
}

#[test]
fn a_variant_that_is_not_kept_does_not_hide_another() {
    let backend = Backend::answering(|asked| match asked.field("accept-language") {
        // Its length is unknown before its end.
        Some("ja") => format!(
            "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nVary: Accept-Language\r\n\
             Transfer-Encoding: chunked\r\n\r\n4e20\r\n{}\r\n0\r\n\r\n",
            "x".repeat(20_000)
        ),
        Some("fr") => answer("Cache-Control: private\r\nVary: Accept-Language\r\n", "own"),
        _ => answer("Cache-Control: max-age=60\r\nVary: Accept-Language\r\n", "short"),
    });
    let kirin = serve(&backend, "", "{ item_limit = \"10KB\" }");
    let mut client = kirin.connect();
    for _ in 0..2 {
        assert_eq!(client.get("/").text(), "short");
        assert_eq!(client.request("GET", "/", "Accept-Language: ja\r\n").body.len(), 20_000);
        assert_eq!(client.request("GET", "/", "Accept-Language: fr\r\n").text(), "own");
        let other = client.get("/");
        assert!(is_hit(&other), "{}", other.head);
    }
}

/// Checks that only the route's own targets find a stored response of the route, whatever they are
/// rewritten to.
#[test]
fn a_protected_response_is_in_the_cache_of_no_other_route() {
    const BOB: &str = "Authorization: Basic Ym9iOm9wZW5zZXNhbWU=\r\n";
    let backend = Backend::answering(|asked| {
        let user = asked.field("authorization").map_or("nobody", |_| "bob");
        answer("Cache-Control: public, max-age=60\r\n", &format!("{} for {user}", asked.target()))
    });
    let site = Site::new()
        .with("users", "bob:$2y$08$48biTCX6hLFLuo1X9oacu.C9feoeVL5TxFGhMA0T2i1gjC8TRnAwi\n");
    let route = |path: &str, rules: &str| {
        format!("[[route]]\npath = \"{path}\"\ntry = [\"proxy:web\"]\ncache = true\n{rules}\n")
    };
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[upstream]]\nname = \"web\"\nservers = [\"{}\"]\n{}{}{}{}",
        backend.address(),
        route("/", ""),
        route("/in", "basic_auth = \"users\""),
        route("/rewritten", "basic_auth = \"users\"\nrewrite = \"/\""),
        route("/open", "rewrite = \"/in\""),
    );
    let kirin = Kirin::start(&site, &config);
    let mut client = kirin.connect();
    for target in ["/in/a", "/rewritten/a"] {
        let text = client.request("GET", target, BOB).text();
        assert!(text.ends_with(" for bob"), "{text}");
        assert!(is_hit(&client.request("GET", target, BOB)), "{target}");
        for spelling in [
            target.to_owned(),
            format!("/{target}"),
            format!("/x/..{target}"),
            target.replace("/a", "/%61"),
        ] {
            let reply = client.get(&spelling);
            assert_eq!((reply.status, reply.field("cache-status")), (401, None), "{spelling}");
        }
    }
    for target in ["/a", "/open/a"] {
        let reply = client.get(target);
        assert!(
            !is_hit(&reply) && reply.text().ends_with(" for nobody"),
            "{target}: {}",
            reply.text()
        );
        let reply = client.request("GET", target, BOB);
        assert!(
            is_hit(&reply) && reply.text().ends_with(" for nobody"),
            "{target}: {}",
            reply.text()
        );
    }
}
