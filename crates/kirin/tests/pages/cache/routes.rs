//! The keys of a route about its cache, and the places behind it.

use kirin_tests::{Kirin, Site};

use super::{is_hit, serve, status, ttl};

#[test]
fn a_route_sets_the_lifetime_of_responses_without_one() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    client.get("/some/plain");
    assert!((3500..=3600).contains(&ttl(&client.get("/some/plain"))));
    client.get("/some/missing?status=404");
    let missing = client.get("/some/missing?status=404");
    assert!(missing.status == 404 && (590..=600).contains(&ttl(&missing)), "{}", missing.head);
    client.get("/some/error?status=500");
    assert!(!is_hit(&client.get("/some/error?status=500")));
    client.get("/some/private?cc=private");
    assert!(!is_hit(&client.get("/some/private?cc=private")));
}

#[test]
fn a_route_sets_bypass_and_ignored_arguments() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    assert_eq!(client.get("/some/page?x=1&utm_source=a").text(), "call 1");
    assert!(tested.calls()[0].starts_with("GET /some/page x=1 "), "{:?}", tested.calls());
    for target in ["/some/page?x=1", "/some/page?utm_medium=b&x=1", "/some/page?x=1&utm_source=c"] {
        assert!(is_hit(&client.get(target)), "{target}");
    }
    for (target, field) in [
        ("/some/page?x=1&preview", ""),
        ("/some/page?x=1", "Cookie: a=b; admin=1\r\n"),
        ("/some/page?x=1", "x-preview: yes\r\n"),
    ] {
        let reply = client.request("GET", target, field);
        assert_eq!(status(&reply), "Kirin; fwd=bypass; detail=configured", "{target} {field}");
    }
    assert!(is_hit(&client.get("/some/page?x=1")));
}

#[test]
fn responses_of_other_servers_are_kept_too() {
    let tested = serve();
    let site = Site::new();
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[upstream]]\nname = \"web\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:web\"]\ncache = {{ ignore_query = [\"x\"] }}\n",
        tested.kirin.address()
    );
    let proxy = Kirin::start(&site, &config);
    let mut client = proxy.connect();
    // This route keeps nothing itself.
    let target = "/off?cc=max-age=60&ETag=%22e%22&bytes=1000";
    let first = client.get(&format!("{target}&x=1"));
    assert!(first.body.len() == 1000 && status(&first).ends_with("stored"), "{}", first.head);
    let hit = client.get(&format!("{target}&x=2"));
    assert_eq!((is_hit(&hit), hit.body), (true, first.body));
    assert_eq!(client.request("GET", target, "If-None-Match: \"e\"\r\n").status, 304);
    assert_eq!(client.request("GET", target, "Range: bytes=0-9\r\n").status, 206);
    assert_eq!(tested.calls().len(), 1);
    assert!(!tested.calls()[0].contains("x="), "{:?}", tested.calls());
    for text in ["call 1", "call 1"] {
        assert_eq!(client.get("/off/n?cc=no-cache&ETag=%22e%22").text(), text);
    }
    assert_eq!(tested.count("/off/n"), 2);
}
