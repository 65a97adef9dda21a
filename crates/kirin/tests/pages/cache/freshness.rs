//! Which responses are kept, and for how long.

use kirin_tests::wait_for;

use super::{is_hit, serve, status, ttl};

#[test]
fn a_fresh_response_comes_from_memory_with_its_age() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/a?cc=max-age=3600";
    let first = client.get(target);
    assert_eq!(first.text(), "call 1");
    assert!(status(&first).starts_with("Kirin; fwd=uri-miss; ttl=3600; stored"), "{}", first.head);
    for _ in 0..3 {
        let next = client.get(target);
        assert_eq!(
            (next.status, next.text().as_str(), is_hit(&next)),
            (200, "call 1", true),
            "{}",
            next.head
        );
        assert!(next.field("age").unwrap().parse::<i64>().unwrap() <= 3600 - ttl(&next));
        assert_eq!(next.field("date"), first.field("date"));
        assert_eq!(next.field("x-call"), Some("1"));
    }
    // Another connection may be on the other loop. Another host or query gets no hit.
    assert!(is_hit(&tested.kirin.get(target)));
    client.send(format!("GET {target} HTTP/1.1\r\nHost: other\r\n\r\n"));
    assert_eq!(client.read_reply().text(), "call 2");
    assert_eq!(client.get("/a?cc=max-age=3600&x").text(), "call 3");
    assert_eq!(tested.count("/a"), 3);
    wait_for("the access log", || {
        std::fs::read_to_string(tested.site.path("access.log"))
            .ok()?
            .contains(" cache ")
            .then_some(())
    });
    // A route without the cache uses none of it.
    client.get("/off?cc=max-age=3600");
    let reply = client.get("/off?cc=max-age=3600");
    assert_eq!((reply.text().as_str(), reply.field("cache-status")), ("call 2", None));
}

#[test]
fn a_response_that_may_not_be_kept_is_requested_each_time() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    for (index, (query, why)) in [
        ("", "no-freshness"),
        ("ETag=\"a\"", "no-freshness"),
        ("cc=no-store,max-age=60", "no-store"),
        ("cc=private,max-age=60", "private"),
        ("cc=max-age=60&Set-Cookie=a=b", "set-cookie"),
        ("cc=public,max-age=60&Set-Cookie=a=b", "set-cookie"),
        ("cc=max-age=60&Vary=*", "vary"),
        ("cc=max-age=0", "stale"),
        ("cc=max-age=60&Age=61", "stale"),
        ("cc=max-age=60&status=206", "status"),
        ("status=500", "no-freshness"),
        ("status=404", "no-freshness"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/no/{index}");
        for call in 1..=3 {
            let reply = client.get(&format!("{path}?{query}"));
            assert_eq!(reply.text(), format!("call {call}"), "{query}: {}", reply.head);
            assert!(status(&reply).ends_with(&format!("detail={why}")), "{query}: {}", reply.head);
            if query.contains("Set-Cookie") {
                assert_eq!(reply.field("set-cookie"), Some("a=b"));
            }
        }
    }
}

#[test]
fn a_response_that_hides_a_field_is_kept_without_it() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/a?cc=max-age=60,no-cache=%22Set-Cookie%22&Set-Cookie=a=b";
    assert_eq!(client.get(target).field("set-cookie"), Some("a=b"));
    let hit = client.get(target);
    assert!(is_hit(&hit));
    assert_eq!(hit.field("set-cookie"), None);
}

#[test]
fn the_place_is_what_made_the_response() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    tested.touch("go");
    let array = "/place?cc=max-age=60";
    let stream = "/place/stream?cc=max-age=60&kind=stream";
    let renewed = "/place/renewed?cc=max-age=60&Age=60&ETag=\"a\"";
    for target in [array, array, stream, stream, renewed, renewed, "/place?cc=no-store"] {
        client.get(target);
    }
    client.get("/off?the-last");
    let log = wait_for("the last line", || {
        let log = std::fs::read_to_string(tested.site.path("access.log")).ok()?;
        log.contains("the-last").then_some(log)
    });
    let places: Vec<&str> = log.lines().filter_map(|line| line.rsplit(' ').nth(1)).collect();
    let app = "app";
    assert_eq!(places, [app, "cache", app, "cache", app, "cache", app, app], "{log}");
}
