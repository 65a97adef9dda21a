//! Requests that RFC 9113 section 8 calls malformed: each resets its own stream, reaches no
//! application, and leaves the other streams of its connection alone.

use super::*;

/// A request that begins before the malformed one and ends after it.
const OTHER: u32 = 1;
const MALFORMED: u32 = 3;
const AFTER: u32 = 5;

/// The application writes a line for each request to this path.
const COUNTED: &str = "/app/wait";

/// Sends each request on a connection of its own, between the two parts of another one. Panics with
/// all requests that were not refused as they must be.
fn check(cases: &[(&str, Vec<u8>)]) {
    let (site, kirin) = serve();
    std::fs::write(site.path("go"), "").expect("write");
    let mut failures = Vec::new();
    for (what, bytes) in cases {
        let mut connection = Connection::open(kirin.address());
        connection.send(post(OTHER, "/app/body")).send(bytes);
        let outcome = connection.outcome_of(MALFORMED);
        let has_head = connection.head_of(MALFORMED).is_some();
        let after = connection.send(get(AFTER, "/hello.txt")).outcome_of(AFTER);
        let other = connection.send(frame(DATA, END_STREAM, OTHER, b"12345")).outcome_of(OTHER);
        if outcome != Outcome::Reset(PROTOCOL_ERROR)
            || has_head
            || after.ok() != Some(b"hello\n")
            || !other.ok().is_some_and(|body| body.starts_with(b"5 "))
        {
            failures
                .push(format!("{what:?}: {outcome:?}, then {after:?}, {other:?}\n{connection}"));
        }
    }
    assert!(failures.is_empty(), "{} failed:\n{}", failures.len(), failures.join("\n\n"));
    // The application counts what it sees, and has seen nothing before this one.
    assert_eq!(Http2Client::connect(kirin.address()).get(COUNTED).text(), "waited");
    let seen = std::fs::read_to_string(site.path("requests")).expect("the requests");
    assert_eq!(seen, format!("{COUNTED}\n"), "the application has seen malformed requests");
}

/// Returns the frame of a request without a body.
fn whole(fields: &[(&str, &str)]) -> Vec<u8> {
    frame(HEADERS, WHOLE, MALFORMED, &block(fields))
}

/// Returns a GET with one more field.
fn with(name: &str, value: &str) -> Vec<u8> {
    whole(&request("GET", COUNTED, &[(name, value)]))
}

/// Returns a POST with these fields, this body and this block of trailers, which ends it.
fn posted(fields: &[(&str, &str)], body: &[u8], trailers: Option<&[u8]>) -> Vec<u8> {
    let head = frame(HEADERS, END_HEADERS, MALFORMED, &block(&request("POST", COUNTED, fields)));
    let flags = if trailers.is_some() { 0 } else { END_STREAM };
    let trailers = trailers.map(|block| frame(HEADERS, WHOLE, MALFORMED, block));
    [head, frame(DATA, flags, MALFORMED, body), trailers.unwrap_or_default()].concat()
}

#[test]
fn a_name_that_no_field_can_have_resets_the_stream() {
    let names = [
        "X-A", "xA", "x:a", "x a", " x", "x ", "", "x\0", "x\n", "x\r", "x\t", "x\x1f", "x\x7f",
        "é",
    ];
    check(&names.map(|name| (name, with(name, "a"))));
    // RFC 9113 leaves the others that are no tokens to the server.
    let (_site, kirin) = serve();
    for name in ["x\"", "x(", "x/", "x=", "x@", "{x}", "x;"] {
        let mut connection = Connection::open(kirin.address());
        let fields = request("GET", "/hello.txt", &[(name, "a")]);
        let outcome = connection.send(whole(&fields)).outcome_of(MALFORMED);
        let is_refused = matches!(outcome, Outcome::Reset(PROTOCOL_ERROR) | Outcome::Answered(..));
        assert!(is_refused && outcome.ok().is_none(), "{name:?}: {outcome:?}\n{connection}");
    }
}

#[test]
fn a_value_that_no_field_can_have_resets_the_stream() {
    let values = ["a\0b", "a\nb", "a\rb", "a\r\nb: c", "\0", "\n", " a", "a ", "\ta", "a\t", " "];
    check(&values.map(|value| (value, with("a", value))));
}

#[test]
fn pseudo_fields_that_lack_repeat_or_are_late_reset_the_stream() {
    let good = request("GET", COUNTED, &[]);
    let without = |name: &str| {
        let rest: Vec<_> = good.iter().filter(|(own, _)| *own != name).copied().collect();
        whole(&rest)
    };
    let late = |name: &str| {
        let (mut rest, late): (Vec<_>, Vec<_>) = good.iter().partition(|(own, _)| *own != name);
        rest.push(("a", "b"));
        rest.extend(late);
        whole(&rest)
    };
    let changed = |name: &str, value: &'static str| {
        let change = |(own, old): &(&'static str, &'static str)| {
            (*own, if *own == name { value } else { *old })
        };
        whole(&good.iter().map(change).collect::<Vec<_>>())
    };
    check(&[
        ("no :method", without(":method")),
        ("no :scheme", without(":scheme")),
        ("no :path", without(":path")),
        ("no field at all", whole(&[])),
        ("two :method", with(":method", "GET")),
        ("two :scheme", with(":scheme", "http")),
        ("two :path", with(":path", "/hello.txt")),
        ("two :authority", with(":authority", "test")),
        ("a :path of no bytes", changed(":path", "")),
        (":method behind a field", late(":method")),
        (":scheme behind a field", late(":scheme")),
        (":path behind a field", late(":path")),
        (":authority behind a field", late(":authority")),
        ("an unknown pseudo-field", with(":unknown", "a")),
        ("the name of a colon", with(":", "a")),
        (":path in capitals", with(":PATH", "/")),
        (":status in a request", with(":status", "200")),
        ("LF in :path", changed(":path", "/app/wait\n")),
        ("NUL in :authority", changed(":authority", "te\0st")),
    ]);
}

#[test]
fn fields_of_a_connection_reset_the_stream() {
    check(&[
        ("connection: close", with("connection", "close")),
        ("connection: keep-alive", with("connection", "keep-alive")),
        ("transfer-encoding: chunked", with("transfer-encoding", "chunked")),
        ("upgrade: websocket", with("upgrade", "websocket")),
        ("keep-alive: timeout=5", with("keep-alive", "timeout=5")),
        ("proxy-connection: close", with("proxy-connection", "close")),
        ("te: gzip", with("te", "gzip")),
        ("te: trailers, gzip", with("te", "trailers, gzip")),
        ("transfer-encoding of a POST", posted(&[("transfer-encoding", "chunked")], b"0", None)),
    ]);
    // This one is allowed.
    let (_site, kirin) = serve();
    let mut connection = Connection::open(kirin.address());
    let fields = request("GET", "/hello.txt", &[("te", "trailers")]);
    let outcome = connection.send(whole(&fields)).outcome_of(MALFORMED);
    assert_eq!(outcome.ok(), Some(&b"hello\n"[..]), "te: trailers\n{connection}");
}

#[test]
fn a_content_length_that_is_not_that_of_the_body_resets_the_stream() {
    let length = |value| [("content-length", value)];
    let twice = [("content-length", "5"), ("content-length", "6")];
    let trailers = block(&[("a", "b")]);
    check(&[
        ("6 and 5 bytes", posted(&length("6"), b"12345", None)),
        ("4 and 5 bytes", posted(&length("4"), b"12345", None)),
        ("0 and 5 bytes", posted(&length("0"), b"12345", None)),
        ("5 and 0 bytes of DATA", posted(&length("5"), b"", None)),
        ("6 and 5 bytes and trailers", posted(&length("6"), b"12345", Some(&trailers))),
        ("4 and 5 bytes and trailers", posted(&length("4"), b"12345", Some(&trailers))),
        ("5 and no DATA", with("content-length", "5")),
        ("5 and 6, with 5 bytes", posted(&twice, b"12345", None)),
        ("5 and 6, with 6 bytes", posted(&twice, b"123456", None)),
        ("4 bytes, and 5 before the body ends", {
            let fields = request("POST", COUNTED, &length("4"));
            let head = frame(HEADERS, END_HEADERS, MALFORMED, &block(&fields));
            [head, frame(DATA, 0, MALFORMED, b"12345")].concat()
        }),
    ]);
}

#[test]
fn malformed_trailers_reset_the_stream() {
    let trailers = |fields: &[(&str, &str)]| posted(&[], b"12345", Some(&block(fields)));
    check(&[
        (":path in trailers", trailers(&[(":path", "/")])),
        (":status in trailers", trailers(&[(":status", "200")])),
        (":unknown in trailers", trailers(&[("a", "b"), (":unknown", "a")])),
        ("a name with a capital letter", trailers(&[("X-A", "a")])),
        ("a name of no bytes", trailers(&[("", "a")])),
        ("LF in a value", trailers(&[("a", "b\nc")])),
        ("a blank before a value", trailers(&[("a", " b")])),
        ("a blank behind a value", trailers(&[("a", "b ")])),
        ("connection in trailers", trailers(&[("connection", "close")])),
        ("transfer-encoding in trailers", trailers(&[("transfer-encoding", "chunked")])),
        ("trailers that do not end the stream", {
            let head = block(&request("POST", COUNTED, &[]));
            let trailers = frame(HEADERS, END_HEADERS, MALFORMED, &block(&[("a", "b")]));
            let head = frame(HEADERS, END_HEADERS, MALFORMED, &head);
            [head, frame(DATA, 0, MALFORMED, b"12345"), trailers].concat()
        }),
    ]);
}

#[test]
fn the_fields_of_a_malformed_request_stay_in_the_table_of_hpack() {
    let (_site, kirin) = serve();
    let mut connection = Connection::open(kirin.address());
    // Both fields enter the table. Then the second is entry 62, and the first is entry 63.
    let indexed = |name, value| [&b"\x40"[..], &text(name), &text(value)].concat();
    let malformed = [
        block(&request("GET", COUNTED, &[])),
        indexed(":path", "/hello.txt"),
        indexed("Upper", "case"),
    ]
    .concat();
    connection.send(frame(HEADERS, WHOLE, 1, &malformed));
    assert_eq!(connection.outcome_of(1), Outcome::Reset(PROTOCOL_ERROR), "{connection}");
    let rest = block(&[(":method", "GET"), (":scheme", "http"), (":authority", "test")]);
    connection.send(frame(HEADERS, WHOLE, 3, &[&rest, &b"\xbf"[..]].concat()));
    assert_eq!(connection.outcome_of(3).ok(), Some(&b"hello\n"[..]), "{connection}");
    connection.send(frame(HEADERS, WHOLE, 5, &[&rest, &b"\xbf\xbe"[..]].concat()));
    assert_eq!(connection.outcome_of(5), Outcome::Reset(PROTOCOL_ERROR), "{connection}");
}

#[test]
fn many_malformed_requests_end_the_connection() {
    let (_site, kirin) = serve();
    let malformed = |stream| {
        frame(HEADERS, WHOLE, stream, &block(&request("GET", "/hello.txt", &[("A", "b")])))
    };
    let mut connection = Connection::open(kirin.address());
    connection.send((0..500).flat_map(|number| malformed(2 * number + 1)).collect::<Vec<u8>>());
    let end = connection.end();
    assert_eq!(end, Outcome::Goaway(ENHANCE_YOUR_CALM), "500 malformed requests\n{connection}");
    let resets = connection.resets();
    assert!((1..=100).contains(&resets), "{resets} streams were reset\n{connection}");
    // With as many good requests between them, the connection stays.
    let mut connection = Connection::open(kirin.address());
    for number in 0..300 {
        connection.send(malformed(4 * number + 1)).send(get(4 * number + 3, "/hello.txt"));
        let (bad, good) =
            (connection.outcome_of(4 * number + 1), connection.outcome_of(4 * number + 3));
        assert_eq!(bad, Outcome::Reset(PROTOCOL_ERROR), "pair {number}\n{connection}");
        assert_eq!(good.ok(), Some(&b"hello\n"[..]), "pair {number}\n{connection}");
    }
}
