//! Pages that an application has pushed with `Kirin-Store`: all machines serve them.

use kirin_tests::{RedisServer, wait_for};

use super::{CALM, Machine, Two, address_of, count_of_commands};

#[test]
fn a_page_that_one_application_has_pushed_is_served_by_all_machines() {
    let Two { redis, a, b } = Two::start();
    assert_eq!(a.get_with("/page?x=1", "Kirin-Store: ttl=300, tags=\"t\""), "a 1");
    // The client has its response, so the server has the page.
    assert_eq!(b.get("/page?x=1"), "a 1");
    assert_eq!(a.get("/page?x=1"), "a 1");
    let commands = count_of_commands(&redis);
    for machine in [&a, &b] {
        for _ in 0..5 {
            assert_eq!(machine.get("/page?x=1"), "a 1");
        }
    }
    assert_eq!(count_of_commands(&redis), commands, "the copies answer");
    assert_eq!((a.runs(), b.runs()), (1, 0));
    let mut memcached = b.memcached();
    memcached.send("mg /page?x=1 t\r\n");
    let line = memcached.line();
    let ttl: u32 = line.strip_prefix("HD t").and_then(|ttl| ttl.parse().ok()).expect(&line);
    assert!((200..=300).contains(&ttl), "{line}");
    assert_eq!(b.get("/page?x=2"), "b 1", "another query is another page");
}

#[test]
fn a_machine_that_knew_of_no_page_learns_that_there_is_one() {
    let Two { redis: _redis, a, b } = Two::start();
    assert_eq!(b.get("/page"), "b 1");
    a.push("/page", "pushed", "ttl=300");
    b.wait_for_text("/page", "pushed");
    let runs = b.runs();
    assert_eq!(b.get("/page"), "pushed");
    assert_eq!(b.runs(), runs);
}

#[test]
fn a_stream_is_on_all_machines_when_the_client_has_its_end() {
    let Two { redis, a, b } = Two::start();
    let mut client = a.connect();
    client.send(
        "GET /stream/waiting HTTP/1.1\r\nHost: test\r\nX-Fields: Kirin-Store: ttl=300\r\n\r\n",
    );
    let head = client.read_head_reply();
    assert_eq!(head.field("content-length"), None, "{}", head.head);
    assert_eq!(redis.command(&["EXISTS", "kirin:i:/stream/waiting"]), "0", "it has no end yet");
    a.go();
    let body = String::from_utf8(client.read_chunks()).expect("text");
    assert_eq!(body, "a 1 xxxxxxxxxx");
    assert_eq!(b.get("/stream/waiting"), body);
    for round in 2..7 {
        let target = format!("/stream/whole?{round}");
        let body = a.get_with(&target, "Kirin-Store: ttl=300");
        assert_eq!(body, format!("a {round} xxxxxxxxxx"));
        assert_eq!(b.get(&target), body);
        assert_eq!(a.get(&target), body);
    }
    assert_eq!((a.runs(), b.runs()), (6, 0));
}

#[test]
fn a_stream_that_is_cut_or_too_large_is_stored_on_no_machine() {
    let Two { redis: _redis, a, b } = Two::start();
    let mut client = a.connect();
    client.send("GET /stream/cut HTTP/1.1\r\nHost: a\r\nX-Fields: Kirin-Store: ttl=300\r\n\r\n");
    let got = client.read_to_end();
    assert!(!got.ends_with(b"0\r\n\r\n"), "{}", got.escape_ascii());
    assert!(a.get_with("/stream/large", "Kirin-Store: ttl=300").len() > 200_000);
    a.kirin.wait_for_log("larger than `store.item_limit` allows");
    for machine in [&a, &b] {
        for target in ["/stream/cut", "/stream/large"] {
            assert_eq!(machine.memcached().get(target), None, "{target}");
        }
    }
}

#[test]
fn status_fields_and_conditions_are_the_same_on_all_machines() {
    let Two { redis: _redis, a, b } = Two::start();
    a.get_with("/fields", "Kirin-Store: ttl=300|ETag: \"own\"|Cache-Control: max-age=5");
    let fields = "X-Status: 301\r\nX-Fields: Kirin-Store: ttl=300|Location: /new\r\n";
    a.ask("GET", "/moved", fields);
    a.ask("POST", "/post", "Content-Length: 0\r\nX-Fields: Kirin-Store: key=\"/memo/7\"\r\n");
    let mut client = b.connect();
    let reply = client.get("/fields");
    assert_eq!((reply.text().as_str(), reply.field("etag")), ("a 1", Some("\"own\"")));
    assert_eq!(reply.field("cache-control"), Some("max-age=5"));
    assert_eq!(reply.field("kirin-store"), None);
    assert_eq!(client.request("GET", "/fields", "If-None-Match: \"own\"\r\n").status, 304);
    let part = client.request("GET", "/fields", "Range: bytes=2-\r\n");
    assert_eq!((part.status, part.text().as_str()), (206, "1"));
    assert_eq!(client.request("HEAD", "/fields", "").field("content-length"), Some("3"));
    let moved = client.get("/moved");
    assert_eq!((moved.status, moved.field("location")), (301, Some("/new")));
    assert_eq!(client.get("/memo/7").text(), "a 3");
    assert_eq!(b.runs(), 0);
}

#[test]
fn the_first_request_for_a_page_of_another_machine_may_be_any() {
    let Two { redis: _redis, a, b } = Two::start();
    for name in ["head", "condition", "range", "post"] {
        a.push(&format!("/first/{name}"), "pushed", "ttl=300");
    }
    let head = b.ask("HEAD", "/first/head", "");
    assert_eq!((head.status, head.field("content-length")), (200, Some("6")));
    let etag = a.ask("GET", "/first/condition", "").field("etag").expect("an ETag").to_owned();
    let unchanged = b.ask("GET", "/first/condition", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!((unchanged.status, unchanged.field("etag")), (304, Some(etag.as_str())));
    let part = b.ask("GET", "/first/range", "Range: bytes=0-2\r\n");
    assert_eq!((part.status, part.text().as_str()), (206, "pus"));
    assert_eq!(b.runs(), 0);
    // A POST is not for the store, and its body arrives.
    let reply = b.connect().post("/first/post", "text/plain", b"body");
    assert_eq!(reply.text(), "b 1");
}

#[test]
fn requests_for_one_page_at_the_same_time_all_get_it() {
    let Two { redis: _redis, a, b } = Two::start();
    a.push("/page", "pushed", "ttl=300");
    let mut clients: Vec<_> = (0..30).map(|_| b.connect()).collect();
    for client in &mut clients {
        // Two in one piece: the second waits for the answer to the first.
        client.send("GET /page HTTP/1.1\r\nHost: test\r\n\r\n".repeat(2));
    }
    for client in &mut clients {
        for _ in 0..2 {
            assert_eq!(client.read_reply().text(), "pushed");
        }
    }
    assert_eq!(b.runs(), 0);
}

#[test]
fn a_page_of_a_protected_route_is_protected_on_all_machines() {
    const BOB: &str = "Authorization: Basic Ym9iOm9wZW5zZXNhbWU=\r\n";
    let redis = RedisServer::start();
    let origin = format!("origin = {:?}\n{CALM}", address_of(&redis));
    let a = Machine::start("a", &origin, "").connected(1);
    // The name of the password file protects, so it has to be the same on both.
    let members = format!("{:?}", a.site.path("members"));
    let change = |config: String| config.replace("\"members\"", &members);
    let b = Machine::start_with("b", &origin, "", change).connected(1);
    let other = Machine::start("c", &origin, "").connected(1);
    let fields = format!("{BOB}X-Value: secret\r\nX-Fields: Kirin-Store: ttl=300\r\n");
    assert_eq!(a.ask("GET", "/members/page", &fields).text(), "secret");
    assert_eq!(b.ask("GET", "/members/page", "").status, 401);
    for machine in [&a, &b] {
        let open = machine.get("/rewritten/page");
        assert!(!open.contains("secret"), "{open}");
        let runs = machine.runs();
        assert_eq!(machine.ask("GET", "/members/page", BOB).text(), "secret");
        assert_eq!(machine.runs(), runs, "from the store");
        machine.memcached().set("/only/all", b"text/html\r\n<!--# include /rewritten/page -->.");
        let page = machine.get("/only/all");
        assert!(!page.contains("secret"), "{page}");
    }
    assert_eq!(other.ask("GET", "/members/page", BOB).text(), "c 1", "it has another file");
}

#[test]
fn a_page_expires_on_all_machines() {
    let Two { redis: _redis, a, b } = Two::start();
    a.push("/page", "pushed", "ttl=1");
    b.push("/other", "kept", "ttl=300");
    for machine in [&a, &b] {
        wait_for("the page to expire", || (machine.get("/page") != "pushed").then_some(()));
        assert_eq!(machine.get("/other"), "kept");
    }
}
