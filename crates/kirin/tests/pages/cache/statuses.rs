//! `Cache-Status` in all situations: one table, which `docs/cache.md` explains.

use kirin_tests::{Http2Client, Reply, wait_for};

use super::{Tested, serve, status};

/// A request: method, target and fields.
type Sent = (&'static str, &'static str, &'static str);

/// A situation: its name, the requests that lead to it, the request, and its `Cache-Status`.
type Row = (&'static str, &'static [Sent], Sent, &'static str);

const MINUTE: &str = "?cc=max-age%3D60";

const FIRST_304: &str = "miss, 304 for the client";

const ROWS: &[Row] = &[
    ("miss, stored", &[], ("GET", "/a?cc=max-age%3D60", ""), "fwd=uri-miss; ttl=60; stored"),
    ("miss, HEAD", &[], ("HEAD", "/b?cc=max-age%3D60", ""), "fwd=uri-miss; ttl=60; stored"),
    (
        FIRST_304,
        &[],
        ("GET", "/c?cc=max-age%3D60&ETag=%22x%22", "If-None-Match: \"x\"\r\n"),
        "fwd=uri-miss; fwd-status=200; ttl=60; stored",
    ),
    ("miss, not found", &[], ("GET", "/some/d?status=404", ""), "fwd=uri-miss; ttl=600; stored"),
    (
        "miss of a range",
        &[],
        ("GET", "/e?cc=max-age%3D60", "Range: bytes=0-1\r\n"),
        "fwd=uri-miss; detail=head-or-condition",
    ),
    (
        "another variant",
        &[("GET", "/f?cc=max-age%3D60&Vary=X-A", "X-A: 1\r\n")],
        ("GET", "/f?cc=max-age%3D60&Vary=X-A", "X-A: 2\r\n"),
        "fwd=vary-miss; ttl=60; stored",
    ),
    ("hit", &[("GET", "/g?cc=max-age%3D60", "")], ("GET", "/g?cc=max-age%3D60", ""), "hit; ttl=60"),
    (
        "hit, HEAD",
        &[("GET", "/h?cc=max-age%3D60", "")],
        ("HEAD", "/h?cc=max-age%3D60", ""),
        "hit; ttl=60",
    ),
    (
        "hit, 304",
        &[("GET", "/i?cc=max-age%3D60&ETag=%22x%22", "")],
        ("GET", "/i?cc=max-age%3D60&ETag=%22x%22", "If-None-Match: \"x\"\r\n"),
        "hit; ttl=60",
    ),
    (
        "hit, 206",
        &[("GET", "/j?cc=max-age%3D60", "")],
        ("GET", "/j?cc=max-age%3D60", "Range: bytes=0-1\r\n"),
        "hit; ttl=60",
    ),
    (
        "stale hit",
        &[("GET", "/k?cc=max-age%3D60,stale-while-revalidate%3D9999&Age=100", "")],
        ("GET", "/k?cc=max-age%3D60,stale-while-revalidate%3D9999&Age=100", ""),
        "hit; ttl=-40",
    ),
    (
        "stale, validated",
        &[("GET", "/l?cc=max-age%3D60&Age=100&ETag=%22x%22", "")],
        ("GET", "/l?cc=max-age%3D60&Age=100&ETag=%22x%22", ""),
        "fwd=stale; fwd-status=304; ttl=-40; stored",
    ),
    (
        "stale, without a validator",
        &[("GET", "/m?cc=max-age%3D60,stale-if-error%3D9999&Age=100", "")],
        ("GET", "/m?cc=max-age%3D60,stale-if-error%3D9999&Age=100", ""),
        "fwd=stale; ttl=-40; stored",
    ),
    (
        "the client wants it validated",
        &[("GET", "/reload/n?cc=max-age%3D60&ETag=%22x%22", "")],
        ("GET", "/reload/n?cc=max-age%3D60&ETag=%22x%22", "Cache-Control: no-cache\r\n"),
        "fwd=request; fwd-status=304; ttl=60; stored",
    ),
    ("private, first", &[], ("GET", "/o?cc=private", ""), "fwd=uri-miss; detail=private"),
    (
        "private, known",
        &[("GET", "/p?cc=private", "")],
        ("GET", "/p?cc=private", ""),
        "fwd=uri-miss; detail=private",
    ),
    ("nothing about freshness", &[], ("GET", "/q", ""), "fwd=uri-miss; detail=no-freshness"),
    (
        "the same, known",
        &[("GET", "/r", "")],
        ("GET", "/r", ""),
        "fwd=uri-miss; detail=no-freshness",
    ),
    (
        "a cookie, first",
        &[],
        ("GET", "/s?cc=max-age%3D60", "Cookie: a=b\r\n"),
        "fwd=uri-miss; detail=cookie",
    ),
    (
        "a cookie, known",
        &[("GET", "/t?cc=max-age%3D60", "Cookie: a=b\r\n")],
        ("GET", "/t?cc=max-age%3D60", "Cookie: a=b\r\n"),
        "fwd=uri-miss; detail=cookie",
    ),
    (
        "a cookie, and a response for others",
        &[("GET", "/u?cc=max-age%3D60", "")],
        ("GET", "/u?cc=max-age%3D60", "Cookie: a=b\r\n"),
        "fwd=miss; detail=cookie",
    ),
    ("too large", &[], ("GET", "/some/v?bytes=20000", ""), "fwd=uri-miss; detail=too-large"),
    (
        "the request forbids it",
        &[],
        ("GET", "/w?cc=max-age%3D60", "Cache-Control: no-store\r\n"),
        "fwd=uri-miss; detail=no-store",
    ),
    (
        "an error of the application",
        &[],
        ("GET", "/x?status=500", ""),
        "fwd=uri-miss; detail=no-freshness",
    ),
    ("POST", &[], ("POST", "/y", "Content-Length: 0\r\n"), "fwd=method"),
    ("OPTIONS", &[], ("OPTIONS", "/z", ""), "fwd=method"),
    ("the configuration", &[], ("GET", "/some/A?preview", ""), "fwd=bypass; detail=configured"),
    (
        "another request",
        &[],
        ("GET", "/B", "X-HTTP-Method-Override: DELETE\r\n"),
        "fwd=bypass; detail=altered-request",
    ),
    (
        "only if cached",
        &[],
        ("GET", "/reload/C", "Cache-Control: only-if-cached\r\n"),
        "detail=only-if-cached",
    ),
    (
        "a page with directives, from memory",
        &[("GET", "/ssi/D?cc=max-age%3D60", "")],
        ("GET", "/ssi/D?cc=max-age%3D60", ""),
        "hit; ttl=60",
    ),
];

/// Returns the status without the seconds that may have passed since the response came.
fn steady(status: &str, expected: &str) -> String {
    let Some((before, rest)) = status.split_once("ttl=") else { return status.to_owned() };
    let (found, after) = rest
        .split_once(';')
        .map_or((rest, String::new()), |(ttl, after)| (ttl, format!(";{after}")));
    let wanted = expected.split_once("ttl=").map_or("", |(_, rest)| rest);
    let wanted: i64 = wanted.split(';').next().and_then(|ttl| ttl.parse().ok()).unwrap_or(0);
    let found: i64 = found.parse().expect("seconds");
    let is_close = (wanted - 30..=wanted).contains(&found);
    format!("{before}ttl={}{after}", if is_close { wanted } else { found })
}

/// Returns the number of items in the store.
fn items(tested: &Tested) -> u64 {
    let mut memcached = tested.memcached();
    memcached.send("stats\r\n");
    let mut found = None;
    loop {
        let line = memcached.line();
        if line.starts_with("END") {
            return found.expect("the number of items");
        }
        if let Some(count) = line.strip_prefix("STAT curr_items ") {
            found = count.trim().parse().ok();
        }
    }
}

#[test]
fn the_same_situation_has_the_same_status_in_each_way_of_sending() {
    let tested = serve();
    // The streamed responses do not wait for each other.
    tested.touch("go");
    let mut wrong = Vec::new();
    for way in ["in one piece", "streamed", "HTTP/2"] {
        for (name, before, (method, target, fields), expected) in ROWS {
            // A streamed response is longer than the limit of this route. It is sent to the first
            // client before its validators are compared.
            if way == "streamed" && (target.starts_with("/some/") || *name == FIRST_304) {
                continue;
            }
            let spell = |target: &str| {
                let sign = if target.contains('?') { '&' } else { '?' };
                match way {
                    "streamed" => format!("{target}{sign}kind=stream&bytes=1000&times=300"),
                    "HTTP/2" => format!("{target}{sign}way=2"),
                    _ => target.to_owned(),
                }
            };
            let mut client = tested.kirin.connect();
            for (method, target, fields) in *before {
                let count = items(&tested);
                let reply = client.request(method, &spell(target), fields);
                if status(&reply).contains("; stored") {
                    // A streamed response is stored after its end, which the client may see first.
                    wait_for("the stored response", || (items(&tested) > count).then_some(()));
                }
            }
            let target = spell(target);
            let found = match way {
                "HTTP/2" => status_by_http2(&tested.kirin, method, &target, fields),
                _ => status(&client.request(method, &target, fields)).to_owned(),
            };
            let expected = format!("Kirin; {expected}");
            let found = steady(&found, &expected);
            if found != expected {
                wrong.push(format!("{name}, {way}: `{found}` and not `{expected}`"));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

fn status_by_http2(kirin: &kirin_tests::Kirin, method: &str, target: &str, fields: &str) -> String {
    let fields: Vec<(String, String)> = (fields.lines())
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()))
        .collect();
    let fields: Vec<(&str, &str)> =
        fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let reply = Http2Client::connect(kirin.address()).request(method, target, &fields);
    reply.field("cache-status").unwrap_or("none").to_owned()
}

#[test]
fn requests_that_share_a_response_all_say_so() {
    let tested = serve();
    // The application answers when all have come to it, or when `go` is there.
    let target = format!("/shared{MINUTE}&wait=go");
    let replies = super::at_once(&tested, 8, &target);
    wait_for("the request", || (tested.count("/shared") == 1).then_some(()));
    tested.touch("go");
    let replies: Vec<Reply> = replies.into_iter().map(|reply| reply.join().unwrap()).collect();
    let mut first = 0;
    for reply in &replies {
        match steady(status(reply), "ttl=60").as_str() {
            "Kirin; fwd=uri-miss; ttl=60; stored" => first += 1,
            // A request that comes when the response is stored finds it.
            "Kirin; fwd=uri-miss; ttl=60; collapsed" | "Kirin; hit; ttl=60" => {}
            other => panic!("{other}"),
        }
    }
    assert_eq!(first, 1);
}

#[test]
fn a_response_in_place_of_an_error_says_so() {
    let tested = serve();
    let target = "/some/old?cc=max-age%3D60&Age=100";
    let mut client = tested.kirin.connect();
    client.get(target);
    tested.touch("fail");
    for _ in 0..2 {
        let found = steady(status(&client.get(target)), "ttl=-40");
        assert_eq!(found, "Kirin; fwd=stale; fwd-status=500; ttl=-40; detail=stale-if-error");
    }
}
