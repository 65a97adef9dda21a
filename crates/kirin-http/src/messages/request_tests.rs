//! Tables of request heads and their meaning.

use proptest::prelude::*;

use super::*;

/// The result of parsing a head, in a form for tables.
#[derive(Debug, PartialEq)]
enum Outcome {
    Head {
        path: String,
        query: Option<String>,
        host: String,
        body: BodyLength,
        persistent: bool,
        length: usize,
    },
    Partial,
    Refused(u16),
}

fn outcome(input: &[u8]) -> Outcome {
    let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    match parse(input, &mut storage, &HeadLimits::default()) {
        Ok(Parsed::Complete(head, length)) => Outcome::Head {
            path: head.path.into(),
            query: head.query.map(Into::into),
            host: head.host.into(),
            body: head.body,
            persistent: head.persistent,
            length,
        },
        Ok(Parsed::Partial) => Outcome::Partial,
        Ok(Parsed::RawTarget) => {
            let (escaped, added) = escape_target(input);
            match outcome(&escaped) {
                Outcome::Head { path, query, host, body, persistent, length } => {
                    Outcome::Head { path, query, host, body, persistent, length: length - added }
                }
                other => other,
            }
        }
        Err(reject) => Outcome::Refused(reject.status().as_u16()),
    }
}

fn refused(input: &[u8]) -> Option<u16> {
    match outcome(input) {
        Outcome::Refused(status) => Some(status),
        _ => None,
    }
}

#[test]
fn a_plain_get_is_read_to_its_end() {
    let input = b"GET /a/b?c=d&e HTTP/1.1\r\nHost: example.org:80\r\nX: y\r\n\r\nGET";
    assert_eq!(
        outcome(input),
        Outcome::Head {
            path: "/a/b".into(),
            query: Some("c=d&e".into()),
            host: "example.org:80".into(),
            body: BodyLength::None,
            persistent: true,
            length: input.len() - 3,
        }
    );
}

#[test]
fn persistence_follows_version_and_connection_options() {
    for (version, fields, persistent) in [
        ("1.1", "", true),
        ("1.1", "Connection: close\r\n", false),
        ("1.1", "Connection: Upgrade, CLOSE\r\n", false),
        ("1.1", "Connection: x\r\nConnection: close\r\n", false),
        ("1.0", "", false),
        ("1.0", "Connection: Keep-Alive\r\n", true),
        ("1.0", "Connection: keep-alive, close\r\n", false),
    ] {
        let input = format!("GET / HTTP/{version}\r\nHost: a\r\n{fields}\r\n");
        let Outcome::Head { persistent: got, .. } = outcome(input.as_bytes()) else {
            panic!("{input}")
        };
        assert_eq!(got, persistent, "{input}");
    }
}

#[test]
fn body_framing_is_read_in_one_way_only() {
    for (fields, body) in [
        ("", BodyLength::None),
        ("Content-Length: 0\r\n", BodyLength::None),
        ("Content-Length: 17\r\n", BodyLength::Exact(17)),
        ("content-length:017 \r\n", BodyLength::Exact(17)),
        ("Transfer-Encoding: chunked\r\n", BodyLength::Chunked),
        ("Transfer-Encoding: Chunked\r\n", BodyLength::Chunked),
    ] {
        let input = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        let Outcome::Head { body: got, .. } = outcome(input.as_bytes()) else { panic!("{input}") };
        assert_eq!(got, body, "{input}");
    }
    for (fields, status) in [
        ("Content-Length: 5\r\nContent-Length: 5\r\n", 400),
        ("Content-Length: 5, 5\r\n", 400),
        ("Content-Length: +5\r\n", 400),
        ("Content-Length: -5\r\n", 400),
        ("Content-Length: 0x5\r\n", 400),
        ("Content-Length: 5 5\r\n", 400),
        ("Content-Length:\r\n", 400),
        ("Content-Length: 99999999999999999999\r\n", 400),
        ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", 400),
        ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 400),
        ("Transfer-Encoding: chunked, chunked\r\n", 400),
        ("Transfer-Encoding: gzip, chunked\r\n", 501),
        ("Transfer-Encoding: chunked, gzip\r\n", 400),
        ("Transfer-Encoding: identity\r\n", 400),
        ("Transfer-Encoding:\r\n", 400),
        ("Transfer-Encoding: xchunked\r\n", 400),
        ("Transfer-Encoding: ,chunked\r\n", 400),
        ("Transfer-Encoding: chunked;a=b\r\n", 400),
    ] {
        let input = format!("POST / HTTP/1.1\r\nHost: a\r\n{fields}\r\n");
        assert_eq!(refused(input.as_bytes()), Some(status), "{input}");
    }
}

#[test]
fn malformed_heads_are_refused() {
    for (input, status) in [
        (&b"GET / HTTP/1.1\r\n\r\n"[..], 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        (b"GET / HTTP/1.1\nHost: a\n\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : a\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n folded\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: \0\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\nX: a\rb\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: a\r\n: b\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /#a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET * HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET ftp://a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET http:///a HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET http://u@a/ HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"CONNECT a:443 HTTP/1.1\r\nHost: a:443\r\n\r\n", 501),
        (b"TRACE / HTTP/1.1\r\nHost: a\r\n\r\n", 501),
        (b"\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"\nGET / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET / HTTP/11.1\r\nHost: a\r\n\r\n", 400),
        (b"POST / HTTP/1.0\r\nHost: a\r\n\r\n", 411),
        (b"GET / HTTP/2.0\r\nHost: a\r\n\r\n", 505),
        (b"GET / HTTP/1.2\r\nHost: a\r\n\r\n", 505),
        (b"GET / HTTQ/1.1\r\nHost: a\r\n\r\n", 400),
        (b"GET /\r\n\r\n", 400),
        (b"G@T\x01 / HTTP/1.1\r\nHost: a\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: a\r\nExpect: a-pony\r\n\r\n", 417),
        (b"POST / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n", 400),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
    ] {
        assert_eq!(refused(input), Some(status), "{:?}", String::from_utf8_lossy(input));
    }
}

#[test]
fn a_host_is_a_name_or_an_address_and_perhaps_a_port() {
    for (host, status) in [
        ("example.org", None),
        ("example.org:80", None),
        ("a_b.example:", None),
        ("xn--bcher-kva.example", None),
        ("a%20b", None),
        ("127.0.0.1:65535", None),
        ("[::1]", None),
        ("[2001:db8::1]:8080", None),
        ("", Some(400)),
        (":80", Some(400)),
        ("a:b", Some(400)),
        ("a:80:80", Some(400)),
        ("a:65536", Some(400)),
        ("a:000080", Some(400)),
        ("a%2", Some(400)),
        ("a%zz", Some(400)),
        ("[::1", Some(400)),
        ("[::1]x", Some(400)),
        ("[a]", Some(400)),
        ("u@a", Some(400)),
        ("a?b", Some(400)),
        ("a\\b", Some(400)),
        ("b\u{fc}cher.example", Some(400)),
    ] {
        let field = format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n");
        let target = format!("GET http://{host}/ HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(refused(field.as_bytes()), status, "{field}");
        if host != "a?b" {
            assert_eq!(refused(target.as_bytes()), status, "{target}");
        }
    }
}

#[test]
fn one_empty_line_before_a_request_belongs_to_it() {
    let input = b"\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n";
    let Outcome::Head { length, .. } = outcome(input) else { panic!() };
    assert_eq!(length, input.len());
}

#[test]
fn a_target_of_another_scheme_is_misdirected() {
    for (target, secure, misdirected) in [
        ("/", false, false),
        ("/", true, false),
        ("/a://b", true, false),
        ("http://a/", false, false),
        ("HTTPS://a/", true, false),
        ("https://a/", false, true),
        ("http://a/", true, true),
    ] {
        let input = format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let parsed = parse(input.as_bytes(), &mut storage, &HeadLimits::default());
        let Ok(Parsed::Complete(head, _)) = parsed else { panic!("{input}") };
        assert_eq!(head.is_misdirected(secure), misdirected, "{target} {secure}");
    }
}

#[test]
fn an_expectation_counts_where_there_is_a_body_to_wait_for() {
    for (version, fields, expected) in [
        ("1.1", "Content-Length: 1\r\n", true),
        ("1.1", "Transfer-Encoding: chunked\r\n", true),
        ("1.1", "Content-Length: 0\r\n", false),
        ("1.1", "", false),
        ("1.0", "Content-Length: 1\r\n", false),
    ] {
        let input =
            format!("POST / HTTP/{version}\r\nHost: a\r\nExpect: 100-Continue\r\n{fields}\r\n");
        let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        match parse(input.as_bytes(), &mut storage, &HeadLimits::default()) {
            Ok(Parsed::Complete(head, _)) => assert_eq!(head.expects_continue, expected, "{input}"),
            other => panic!("{input} {other:?}"),
        }
    }
}

#[test]
fn the_absolute_form_gives_host_and_path() {
    let input = b"GET http://other.example:81?q HTTP/1.1\r\nHost: a\r\n\r\n";
    let Outcome::Head { path, query, host, .. } = outcome(input) else { panic!() };
    assert_eq!(
        (path.as_str(), query.as_deref(), host.as_str()),
        ("/", Some("q"), "other.example:81")
    );
}

#[test]
fn a_head_that_is_too_large_is_refused_before_its_end() {
    let line = format!("GET /{}", "a".repeat(9000));
    assert_eq!(refused(line.as_bytes()), Some(414));
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "a".repeat(40_000));
    assert_eq!(refused(head.as_bytes()), Some(431));
    let fields = format!("GET / HTTP/1.1\r\nHost: a\r\n{}\r\n", "X: y\r\n".repeat(120));
    assert_eq!(refused(fields.as_bytes()), Some(431));
}

#[test]
fn every_cut_of_a_head_needs_more() {
    let input = b"POST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\n";
    for end in 0..input.len() {
        assert_eq!(outcome(&input[..end]), Outcome::Partial, "{end}");
    }
}

proptest! {
    #[test]
    fn no_input_panics(input in prop::collection::vec(any::<u8>(), 0..300)) {
        outcome(&input);
    }

    #[test]
    fn refused_input_stays_refused_whatever_follows(
        target in "[a-z/]{1,60}",
        fields in prop::collection::vec(("[A-Za-z :\t]{0,12}", "[ -~\t\r\n]{0,40}"), 0..12),
        cut in 0usize..600,
    ) {
        let mut input = format!("GET /{target} HTTP/1.1\r\nHost: a\r\n");
        for (name, value) in fields {
            input.push_str(&format!("{name}:{value}\r\n"));
        }
        input.push_str("\r\n");
        let limits = HeadLimits { head_bytes: 200, request_line_bytes: 50 };
        let (whole, begun) = (input.as_bytes(), &input.as_bytes()[..cut.min(input.len())]);
        let (mut one, mut two) = ([const { MaybeUninit::uninit() }; MAX_FIELDS], [const { MaybeUninit::uninit() }; MAX_FIELDS]);
        if let Err(reject) = parse(begun, &mut one, &limits) {
            let after = parse(whole, &mut two, &limits).map(|_| ()).map_err(Reject::status);
            prop_assert_eq!(after, Err(reject.status()));
        }
    }

    #[test]
    fn no_field_line_panics_or_reads_differently_in_another_case(name in "[A-Za-z-]{1,20}", value in "[ -~\t]{0,40}") {
        let lower = format!("POST / HTTP/1.1\r\nHost: a\r\n{}: {value}\r\n\r\n", name.to_lowercase());
        let upper = format!("POST / HTTP/1.1\r\nHost: a\r\n{}: {value}\r\n\r\n", name.to_uppercase());
        prop_assert_eq!(outcome(lower.as_bytes()), outcome(upper.as_bytes()));
    }
}
