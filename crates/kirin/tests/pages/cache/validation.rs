//! Conditions, ranges and HEAD of clients, and the validation of stale responses.

use super::{is_hit, serve, status};

#[test]
fn conditions_ranges_and_head_are_answered_from_memory() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    // The first request is HEAD with a condition. The cache still requests the complete response.
    let target = "/r?cc=max-age=60&ETag=%22e%22&bytes=1000";
    let head = client.request("HEAD", target, "If-None-Match: \"x\"\r\n");
    assert_eq!((head.status, head.field("content-length")), (200, Some("1000")), "{}", head.head);
    assert!(
        tested.calls()[0].starts_with("GET /r") && tested.calls()[0].ends_with(" - - -"),
        "{:?}",
        tested.calls()
    );
    let whole = client.get(target);
    assert!(is_hit(&whole) && whole.body.len() == 1000);
    let not_modified = client.request("GET", target, "If-None-Match: W/\"e\"\r\n");
    assert_eq!((not_modified.status, not_modified.field("etag")), (304, Some("\"e\"")));
    assert!(not_modified.field("age").is_some() && is_hit(&not_modified), "{}", not_modified.head);
    let failed = client.request("GET", target, "If-Match: \"x\"\r\n");
    assert_eq!(failed.status, 412);
    let part = client.request("GET", target, "Range: bytes=2-11\r\n");
    assert_eq!((part.status, part.body.as_slice()), (206, &whole.body[2..12]));
    assert_eq!(part.field("content-range"), Some("bytes 2-11/1000"));
    let part = client.request("GET", target, "Range: bytes=2-11\r\nIf-Range: \"e\"\r\n");
    assert_eq!(part.status, 206);
    let whole_again = client.request("GET", target, "Range: bytes=2-11\r\nIf-Range: \"x\"\r\n");
    assert_eq!((whole_again.status, whole_again.body.len()), (200, 1000));
    let none = client.request("GET", target, "Range: bytes=2000-\r\n");
    assert_eq!(none.status, 416);
    assert_eq!(tested.count("/r"), 1);
    // A part of a missing response is requested as a part, and stores nothing.
    client.request("GET", "/part?cc=max-age=60", "Range: bytes=0-1\r\n");
    assert!(tested.calls().last().unwrap().ends_with("bytes=0-1"));
    assert_eq!(client.get("/part?cc=max-age=60").text(), "call 2");
}

#[test]
fn a_stale_response_is_used_again_after_a_304() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    for (path, cc) in [("/n", "no-cache"), ("/z", "max-age=0")] {
        let target = format!("{path}?cc={cc}&ETag=%22e%22");
        assert_eq!(client.get(&target).text(), "call 1");
        let second = client.get(&target);
        assert_eq!((second.status, second.text().as_str()), (200, "call 1"), "{}", second.head);
        assert_eq!(second.field("x-call"), Some("2"), "the fields are those of the 304");
        assert!(status(&second).starts_with("Kirin; fwd=stale; fwd-status=304"), "{}", second.head);
        assert!(tested.calls().last().unwrap().contains(" \"e\" "), "{:?}", tested.calls());
        // The client's own condition is a separate matter.
        let third = client.request("GET", &target, "If-None-Match: \"e\"\r\n");
        assert_eq!((third.status, third.field("x-call")), (304, Some("3")), "{}", third.head);
        let fourth = client.request("GET", &target, "If-None-Match: \"other\"\r\n");
        assert_eq!((fourth.status, fourth.text().as_str()), (200, "call 1"));
    }
    tested.touch("changed");
    let target = "/n?cc=no-cache&ETag=%22e%22";
    assert_eq!(client.get(target).text(), "call 5");
}

#[test]
fn request_directives_count_as_far_as_the_route_allows() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let mut get =
        |target: &str, cc: &str| client.request("GET", target, &format!("Cache-Control: {cc}\r\n"));
    let missing = get("/q?cc=max-age=60", "only-if-cached");
    assert_eq!((missing.status, tested.count("/q")), (504, 0));
    assert_eq!(get("/q?cc=max-age=60", "no-store").text(), "call 1");
    assert_eq!(get("/q?cc=max-age=60", "max-age=60").text(), "call 2", "no-store kept it out");
    for cc in ["no-cache", "max-age=0", "min-fresh=61", "only-if-cached", "no-store"] {
        assert_eq!(get("/q?cc=max-age=60", cc).text(), "call 2", "{cc}");
    }
    // It is stale by its own fields, and kept because it can be validated.
    let stale = "/s?cc=max-age=60&Age=100&ETag=%22e%22";
    assert_eq!(get(stale, "x").text(), "call 1");
    for (cc, calls) in [("max-stale", 1), ("max-stale=4000", 1), ("max-stale=9", 2), ("x", 3)] {
        get(stale, cc);
        assert_eq!(tested.count("/s"), calls, "{cc}");
    }
    // This route lets clients reload.
    let target = "/reload?cc=max-age=60";
    assert_eq!(get(target, "x").text(), "call 1");
    for (cc, text) in [
        ("x", "call 1"),
        ("no-cache", "call 2"),
        ("x", "call 2"),
        ("max-age=0, min-fresh=100", "call 3"),
        ("max-age=60", "call 3"),
        ("min-fresh=61", "call 4"),
    ] {
        let reply = get(target, cc);
        assert_eq!(reply.text(), text, "{cc}: {}", reply.head);
    }
    assert!(status(&get(target, "no-cache")).starts_with("Kirin; fwd=request"));
    client.request("GET", target, "Pragma: no-cache\r\n");
    assert_eq!(tested.count("/reload"), 6);
}
