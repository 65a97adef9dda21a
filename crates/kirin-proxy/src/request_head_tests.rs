//! Tests of the request head that an upstream gets.

use std::mem::MaybeUninit;

use kirin_http::request::{HeadLimits, MAX_FIELDS, Parsed, parse};
use kirin_http::{
    Client, ForwardedFields, ListenAddress, Peer, RequestNotes, TraceContext, TrustedProxy,
};
use proptest::prelude::*;

use super::*;

const CLIENT_HOST: HostPolicy = HostPolicy::Client;
const PLAIN: HeadPolicy<'static> =
    HeadPolicy { host: &CLIENT_HOST, forwarded: ForwardedPolicy::Nothing, via: None, given: &[] };

struct From {
    peer: &'static str,
    proxy: Option<(&'static str, ForwardedFields)>,
    secure: bool,
    trace: Option<TraceContext>,
}

const STRANGER: From = From { peer: "192.0.2.7:4711", proxy: None, secure: false, trace: None };

fn encode_text(request: &str, from: &From, policy: HeadPolicy<'_>) -> OutgoingHead {
    let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let parsed = parse(request.as_bytes(), &mut storage, &HeadLimits::default());
    let Ok(Parsed::Complete(head, _)) = parsed else {
        panic!("not a request: {request:?} {parsed:?}")
    };
    let peer = Peer::Tcp(from.peer.parse().unwrap());
    let proxy = from.proxy.as_ref();
    let proxy = proxy.map(|(address, fields)| (Peer::Tcp(address.parse().unwrap()), fields));
    let proxy = proxy.as_ref().map(|(peer, fields)| TrustedProxy { peer, fields });
    let local = ListenAddress::Tcp("127.0.0.1:8080".parse().unwrap());
    let notes = RequestNotes::new(Default::default(), from.trace);
    let origin = Origin {
        peer: &peer,
        local: &local,
        secure: from.secure,
        client: Client::NotRequested,
        proxy,
        now: 0,
        notes: &notes,
    };
    encode(&head, head.target, origin, policy)
}

/// The line that each head has.
const ID_LINE: &str = "X-Request-Id: 00000000000000000000000000000000\r\n";

/// Returns the head without [`ID_LINE`], which must be there once.
fn wire(mut head: OutgoingHead, framing: OutgoingFraming) -> String {
    head.finish(framing, "server:3000");
    let text = String::from_utf8(head.as_http1().to_vec()).unwrap();
    assert_eq!(text.matches(ID_LINE).count(), 1, "{text}");
    text.replace(ID_LINE, "")
}

fn forwarded(request: &str, from: &From, forwarded: ForwardedPolicy) -> String {
    let text = wire(
        encode_text(request, from, HeadPolicy { forwarded, ..PLAIN }),
        OutgoingFraming::Nothing,
    );
    text.split_once("Host: h\r\n").expect(&text).1.to_owned()
}

#[test]
fn fields_between_the_client_and_kirin_are_not_passed_on() {
    let request = "GET /a?b HTTP/1.1\r\nHost: h\r\nAccept: x\r\nConnection: close, X-Secret\r\nX-Secret: 1\r\n\
        Keep-Alive: 5\r\nTE: trailers, gzip\r\nTrailer: x\r\nUpgrade: websocket\r\nProxy-Connection: x\r\n\
        Proxy-Authorization: y\r\nProxy: z\r\nCookie: c\r\nVia: 1.0 first\r\n\r\n";
    let head = encode_text(request, &STRANGER, HeadPolicy { via: Some("kirin"), ..PLAIN });
    assert!(head.takes_trailers && !head.upgrades());
    let fields: Vec<_> = head.fields().filter(|(name, _)| name != b"X-Request-Id").collect();
    let expected: [(&[u8], &[u8]); 4] =
        [(b"Accept", b"x"), (b"Cookie", b"c"), (b"Via", b"1.0 first"), (b"Via", b"1.1 kirin")];
    assert_eq!((head.host(), &fields[..]), (Some("h"), &expected[..]));
    assert_eq!(
        wire(head, OutgoingFraming::Nothing),
        "GET /a?b HTTP/1.1\r\nHost: h\r\nAccept: x\r\nCookie: c\r\nVia: 1.0 first\r\nVia: 1.1 kirin\r\n\
         Connection: TE\r\nTE: trailers\r\n\r\n"
    );
}

#[test]
fn te_and_trailer_are_passed_on_to_the_server() {
    let chunked = "Transfer-Encoding: chunked\r\n";
    for (version, fields, framing, expected, passes) in [
        (
            "1.1",
            "TE: trailers\r\n",
            OutgoingFraming::Nothing,
            "Connection: TE\r\nTE: trailers\r\n",
            true,
        ),
        (
            "1.1",
            "te: deflate;q=0.5, Trailers\r\n",
            OutgoingFraming::Nothing,
            "Connection: TE\r\nTE: trailers\r\n",
            true,
        ),
        ("1.1", "TE: gzip\r\n", OutgoingFraming::Nothing, "", false),
        ("1.0", "TE: trailers\r\n", OutgoingFraming::Nothing, "", false),
        (
            "1.1",
            "TE: trailers\r\nConnection: TE, upgrade\r\nUpgrade: websocket\r\n",
            OutgoingFraming::Nothing,
            "Connection: Upgrade, TE\r\nUpgrade: websocket\r\nTE: trailers\r\n",
            true,
        ),
        (
            "1.1",
            "Transfer-Encoding: chunked\r\nTrailer: X-A\r\nTrailer: X-B, c\r\n",
            OutgoingFraming::Chunked,
            "Transfer-Encoding: chunked\r\nTrailer: X-A, X-B, c\r\n",
            false,
        ),
        // Only chunked content can have trailers.
        (
            "1.1",
            "Content-Length: 3\r\nTrailer: X-A\r\n",
            OutgoingFraming::Length(3),
            "Content-Length: 3\r\n",
            false,
        ),
        ("1.1", "Trailer: X-A\r\n", OutgoingFraming::Nothing, "", false),
    ] {
        let head = encode_text(
            &format!("GET / HTTP/{version}\r\nHost: h\r\n{fields}\r\n"),
            &STRANGER,
            PLAIN,
        );
        assert_eq!(head.passes_trailers, passes, "{version} {fields}");
        let text = wire(head, framing);
        assert_eq!(
            text,
            format!("GET / HTTP/1.1\r\nHost: h\r\n{expected}\r\n"),
            "{version} {fields}"
        );
    }
    let request = format!(
        "POST / HTTP/1.1\r\nHost: h\r\n{chunked}Connection: X-Hop, close, a b\r\nX-Hop: 1\r\n\r\n"
    );
    assert_eq!(encode_text(&request, &STRANGER, PLAIN).no_trailers, ["x-hop"]);
}

#[test]
fn the_framing_of_a_forwarded_request_is_kirins_own() {
    let post = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\n";
    for (framing, line) in [
        (OutgoingFraming::Nothing, "Content-Length: 0\r\n"),
        (OutgoingFraming::Length(7), "Content-Length: 7\r\n"),
        (OutgoingFraming::Chunked, "Transfer-Encoding: chunked\r\n"),
    ] {
        let text = wire(encode_text(post, &STRANGER, PLAIN), framing);
        assert_eq!(text, format!("POST / HTTP/1.1\r\nHost: h\r\n{line}\r\n"));
    }
}

#[test]
fn a_head_can_be_finished_again_for_another_server() {
    let policy = HeadPolicy { host: &HostPolicy::Upstream, ..PLAIN };
    let mut head = encode_text("GET / HTTP/1.1\r\nHost: h\r\nA: b\r\n\r\n", &STRANGER, policy);
    for host in ["one", "two:80"] {
        head.finish(OutgoingFraming::Nothing, host);
        let expected = format!("GET / HTTP/1.1\r\nA: b\r\n{ID_LINE}Host: {host}\r\n\r\n");
        assert_eq!(std::str::from_utf8(head.as_http1()), Ok(expected.as_str()));
    }
    let name = HostPolicy::Name("site".into());
    let head = encode_text(
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        &STRANGER,
        HeadPolicy { host: &name, ..PLAIN },
    );
    assert_eq!(wire(head, OutgoingFraming::Nothing), "GET / HTTP/1.1\r\nHost: site\r\n\r\n");
}

#[test]
fn an_upgrade_is_forwarded_if_complete_and_never_to_http_2() {
    for (fields, expected) in [
        ("Connection: Upgrade\r\nUpgrade: websocket\r\n", Some("websocket")),
        ("Connection: keep-alive, upgrade\r\nUpgrade: a\r\nUpgrade: b/1, h2c\r\n", Some("a, b/1")),
        ("Upgrade: websocket\r\n", None),
        ("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: x\r\n", None),
        ("Connection: Upgrade\r\nUpgrade: H2C, HTTP/2.0, TLS/1.0\r\n", None),
        ("Connection: Upgrade\r\nUpgrade: websocket\r\nContent-Length: 1\r\n", None),
    ] {
        let text = wire(
            encode_text(&format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n"), &STRANGER, PLAIN),
            OutgoingFraming::Nothing,
        );
        let lines = expected.map(|value| format!("Connection: Upgrade\r\nUpgrade: {value}\r\n"));
        assert_eq!(
            text,
            format!("GET / HTTP/1.1\r\nHost: h\r\n{}\r\n", lines.unwrap_or_default()),
            "{fields}"
        );
    }
}

#[test]
fn forwarding_fields_of_strangers_are_replaced() {
    let request = "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\n\
        X-Forwarded-Host: evil\r\nForwarded: for=6.6.6.6\r\nX-Real-IP: 6.6.6.6\r\nX-Forwarded-Prefix: /e\r\n\
        X_Forwarded_For: 6.6.6.6\r\nX.Real.IP: 6.6.6.6\r\nX-Forwarded-Ssl: on\r\nX-Forwarded-Foo: 1\r\nClient-IP: 6.6.6.6\r\n\
        X-Original-URL: /admin\r\nX-Sendfile-Type: X-Accel-Redirect\r\nX-Accel-Mapping: /=/\r\nFront-End-Https: on\r\n\
        Connection: X-Forwarded-For\r\n\r\n";
    assert_eq!(
        forwarded(request, &STRANGER, ForwardedPolicy::Both),
        "X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: h\r\n\
         Forwarded: for=192.0.2.7;proto=http;host=\"h\"\r\n\r\n"
    );
    assert_eq!(forwarded(request, &STRANGER, ForwardedPolicy::Nothing), "\r\n");
}

#[test]
fn kirin_appends_to_the_fields_of_a_trusted_proxy() {
    let request = "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 10.0.0.9, 192.0.2.7\r\nX-Forwarded-Host: site\r\n\
        X-Forwarded-Port: 443\r\nForwarded: for=192.0.2.7;proto=https\r\n\r\n";
    let by_x = From { proxy: Some(("10.0.0.1:1", ForwardedFields::X)), secure: true, ..STRANGER };
    assert_eq!(
        forwarded(request, &by_x, ForwardedPolicy::Both),
        "X-Forwarded-For: 10.0.0.9, 192.0.2.7, 10.0.0.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: site\r\n\
         X-Forwarded-Port: 443\r\nForwarded: for=192.0.2.7;proto=https;host=\"h\", for=10.0.0.1\r\n\r\n"
    );
    let by_forwarded = From {
        peer: "[2001:db8::1]:1",
        proxy: Some(("[::1]:9", ForwardedFields::Forwarded)),
        secure: true,
        trace: None,
    };
    assert_eq!(
        forwarded(request, &by_forwarded, ForwardedPolicy::Both),
        "X-Forwarded-For: 2001:db8::1, ::1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: h\r\n\
         Forwarded: for=192.0.2.7;proto=https, for=\"[::1]\"\r\n\r\n"
    );
    // The client has written `X-Forwarded-For`: the proxy writes another field.
    let by_address = From {
        proxy: Some(("10.0.0.1:1", ForwardedFields::Address("X-Real-IP".into()))),
        ..STRANGER
    };
    assert_eq!(
        forwarded(request, &by_address, ForwardedPolicy::Both),
        "X-Forwarded-For: 192.0.2.7, 10.0.0.1\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Host: site\r\n\
         X-Forwarded-Port: 443\r\nForwarded: for=192.0.2.7;proto=http;host=\"h\", for=10.0.0.1\r\n\r\n"
    );
}

proptest! {
    #[test]
    fn the_written_head_is_one_request_with_the_given_framing(
        names in prop::collection::vec(
            prop::sample::select(vec![
                "Connection", "connection", "TE", "X-A", "Upgrade", "Via", "X-Forwarded-For", "Forwarded", "Cookie",
                "Keep-Alive", "Trailer", "Proxy-Connection", "Expect",
            ]),
            0..8,
        ),
        values in prop::collection::vec("[ -~]{0,20}", 8),
        length in prop::option::of(1u64..1000),
    ) {
        let mut request = "POST /x HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n".to_owned();
        for (name, value) in names.iter().zip(&values) {
            let value = if *name == "Expect" { "100-continue" } else { value.as_str() };
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        request.push_str("\r\n");
        let policy = HeadPolicy { forwarded: ForwardedPolicy::Both, via: Some("kirin"), ..PLAIN };
        let framing = length.map_or(OutgoingFraming::Chunked, OutgoingFraming::Length);
        let sent = wire(encode_text(&request, &STRANGER, policy), framing);
        let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let limits = HeadLimits { head_bytes: 1 << 20, request_line_bytes: 8192 };
        let parsed = parse(sent.as_bytes(), &mut storage, &limits);
        let Ok(Parsed::Complete(head, used)) = parsed else { panic!("{sent:?} is no request: {parsed:?}") };
        prop_assert_eq!(used, sent.len());
        prop_assert_eq!(head.body, length.map_or(BodyLength::Chunked, BodyLength::Exact));
        prop_assert!(head.field("te").is_none_or(|te| te == b"trailers"), "{:?}", sent);
        prop_assert!(head.field("keep-alive").is_none());
        prop_assert!(length.is_none() || head.field("trailer").is_none());
    }
}

#[test]
fn heads_cost_no_more_than_their_bytes() {
    let limits = HeadLimits { head_bytes: usize::MAX, request_line_bytes: usize::MAX };
    let mut table = kirin_doubling::Table::new();
    let head = |fields: String| format!("GET / HTTP/1.1\r\nHost: h\r\n{fields}\r\n");
    let encode = |head: &String| {
        let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
        let Ok(Parsed::Complete(head, _)) = parse(head.as_bytes(), &mut storage, &limits) else {
            panic!("{head}")
        };
        let (peer, local) = (Peer::Unix, ListenAddress::Tcp("127.0.0.1:8080".parse().unwrap()));
        let proxy = None;
        let origin = Origin {
            peer: &peer,
            local: &local,
            secure: false,
            client: Client::NotRequested,
            proxy,
            now: 0,
            notes: &RequestNotes::default(),
        };
        let policy = HeadPolicy { forwarded: ForwardedPolicy::Both, ..PLAIN };
        encode(&head, "/", origin, policy).fields().count()
    };
    let alike = "a".repeat(50);
    // Fields and options grow together, up to what a head can have of each.
    let both = |count: usize| {
        let options: String =
            (0..count * 100).map(|number| format!("{alike}{number:06},")).collect();
        let fields: String =
            (0..count).map(|number| format!("{alike}x{number:05}: z\r\n")).collect();
        head(format!("Connection: {options}\r\n{fields}"))
    };
    table.check("fields and options", 12, both, encode);
    for (name, piece) in
        [("Connection", "x,"), ("Upgrade", "a/b, "), ("TE", "trailers,"), ("Trailer", "a,")]
    {
        table.check(
            name,
            300,
            |count| head(format!("{name}: {}\r\n", piece.repeat(count))),
            encode,
        );
        table.check(
            &format!("{name} in lines"),
            12,
            |count| head(format!("{name}: {piece}\r\n").repeat(count)),
            encode,
        );
    }
    table.finish();
}

#[test]
fn the_id_and_the_trace_are_those_of_kirin() {
    let value = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let request = format!(
        "GET / HTTP/1.1\r\nHost: h\r\nX-Request-ID: evil\r\nTraceparent: {value}\r\ntracestate: a=1\r\n\r\n"
    );
    let head = wire(encode_text(&request, &STRANGER, PLAIN), OutgoingFraming::Nothing);
    assert_eq!(
        head,
        format!("GET / HTTP/1.1\r\nHost: h\r\nTraceparent: {value}\r\ntracestate: a=1\r\n\r\n")
    );
    let trace = TraceContext { trace_id: 1, span_id: 2, parent: None, is_sampled: true };
    let traced = From { trace: Some(trace), ..STRANGER };
    let head = wire(encode_text(&request, &traced, PLAIN), OutgoingFraming::Nothing);
    assert_eq!(
        head,
        format!("GET / HTTP/1.1\r\nHost: h\r\ntracestate: a=1\r\ntraceparent: {trace}\r\n\r\n")
    );
}

#[test]
fn a_client_cannot_remove_the_fields_of_a_rule() {
    let request = "GET / HTTP/1.1\r\nHost: h\r\nConnection: Remote-User, X-Own\r\nRemote-User: mari\r\n\
                   X-Own: 1\r\nX-Remote-User: root\r\nX-Forwarded-Proto: https\r\n\r\n";
    let given: [Arc<str>; 2] = ["remote-user".into(), "X-Forwarded-Proto".into()];
    let by_x = From { proxy: Some(("10.0.0.1:1", ForwardedFields::X)), ..STRANGER };
    for from in [&STRANGER, &by_x] {
        let policy = HeadPolicy { given: &given, forwarded: ForwardedPolicy::Both, ..PLAIN };
        let head = wire(encode_text(request, from, policy), OutgoingFraming::Nothing);
        assert_eq!(head.matches("Remote-User: mari\r\n").count(), 1, "{head}");
        assert!(!head.contains("X-Own") && !head.contains("https"), "{head}");
        assert_eq!(head.contains("X-Remote-User"), from.proxy.is_some(), "{head}");
    }
}
