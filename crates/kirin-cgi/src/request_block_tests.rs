//! Tests of the CGI variables of a request.

use std::mem::MaybeUninit;

use kirin_http::request::{HeadLimits, MAX_FIELDS, Parsed, parse};
use kirin_http::{ForwardedFields, TrustedProxy};
use proptest::prelude::*;

use super::*;
use crate::meta_variables::User;

/// Decodes a block as a worker does: returns names and values, and the rest.
fn decode(block: &[u8]) -> (Vec<(String, String)>, Vec<u8>) {
    let colon = block.iter().position(|byte| *byte == b':').expect("a netstring has a colon");
    let length: usize = std::str::from_utf8(&block[..colon]).unwrap().parse().unwrap();
    let (head, rest) = block[colon + 1..].split_at(length);
    assert_eq!(rest.first(), Some(&b','), "a netstring ends in a comma");
    assert_eq!(head.last(), Some(&0));
    let parts: Vec<&[u8]> = head[..head.len() - 1].split(|byte| *byte == 0).collect();
    assert_eq!(parts.len() % 2, 0, "names and values come in pairs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (parts.chunks(2).map(|pair| (text(pair[0]), text(pair[1]))).collect(), rest[1..].to_vec())
}

fn encode_text(request: &str, secure: bool) -> Result<Vec<(String, String)>, NulInPath> {
    encode_from(request, secure, None)
}

fn encode_from(
    request: &str,
    secure: bool,
    told: Option<ForwardedFields>,
) -> Result<Vec<(String, String)>, NulInPath> {
    let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let parsed = parse(request.as_bytes(), &mut storage, &HeadLimits::default());
    let Ok(Parsed::Complete(head, _)) = parsed else {
        panic!("not a request: {request:?} {parsed:?}")
    };
    let peer = Peer::Tcp("[::ffff:192.0.2.7]:4711".parse().unwrap());
    let local = ListenAddress::Tcp("127.0.0.1:8080".parse().unwrap());
    let proxy = told.as_ref().map(|fields| TrustedProxy { peer: &Peer::Unix, fields });
    let origin = Origin {
        peer: &peer,
        local: &local,
        secure,
        client: Client::NotRequested,
        proxy,
        now: 0,
        notes: &kirin_http::RequestNotes::default(),
    };
    let mut block = encode(&head, origin, &MetaVariables::default())?;
    block.finish(42);
    let (pairs, rest) = decode(block.as_bytes());
    assert!(rest.is_empty());
    Ok(pairs)
}

fn value(pairs: &[(String, String)], name: &str) -> Option<String> {
    let mut values = pairs.iter().filter(|(key, _)| key == name).map(|(_, value)| value.clone());
    let first = values.next();
    assert_eq!(values.next(), None, "{name} is there twice: {pairs:?}");
    first
}

#[test]
fn the_mount_and_the_user_are_set_by_kirin_and_not_by_the_client() {
    let mut storage = [const { MaybeUninit::uninit() }; MAX_FIELDS];
    let request =
        b"GET /shop/a%20b?q HTTP/1.1\r\nHost: h\r\nAuthorization: Basic eDp5\r\nRemote-User: evil\r\n\r\n";
    let Ok(Parsed::Complete(head, _)) = parse(request, &mut storage, &HeadLimits::default()) else {
        panic!()
    };
    let local = ListenAddress::Unix("/s".into());
    let origin = Origin {
        peer: &Peer::Unix,
        local: &local,
        secure: false,
        client: Client::NotRequested,
        proxy: None,
        now: 0,
        notes: &kirin_http::RequestNotes::default(),
    };
    let meta = MetaVariables {
        script_name: b"/shop",
        path: Some("/a%20b"),
        site: "example.org",
        user: Some(User { name: "Zo\u{eb}", auth_type: Some("Basic") }),
        ..MetaVariables::default()
    };
    let mut block = encode(&head, origin, &meta).unwrap();
    block.finish(0);
    let pairs = decode(block.as_bytes()).0;
    for (name, expected) in [
        ("REQUEST_URI", "/shop/a%20b?q"),
        ("SCRIPT_NAME", "/shop"),
        ("PATH_INFO", "/a b"),
        ("AUTH_TYPE", "Basic"),
        ("REMOTE_USER", "Zo\u{eb}"),
        ("KIRIN_SITE", "example.org"),
    ] {
        assert_eq!(value(&pairs, name).as_deref(), Some(expected), "{name}");
    }
    assert_eq!(value(&pairs, "HTTP_REMOTE_USER"), None);
    let mut block = encode(&head, origin, &MetaVariables::default()).unwrap();
    block.finish(0);
    assert_eq!(value(&decode(block.as_bytes()).0, "KIRIN_SITE"), None);
}

/// One field of each kind that proxies write. The value of each is its name.
const TOLD: [&str; 32] = [
    "Forwarded",
    "X-Forwarded-For",
    "X-Forwarded-Proto",
    "X-Forwarded-Host",
    "X-Forwarded-Port",
    "X-Forwarded-Server",
    "X-Forwarded-HTTPS",
    "X-Forwarded-Ssl",
    "X-Forwarded-Scheme",
    "X-Forwarded-Protocol",
    "X-Forwarded-Anything",
    "X-Real-IP",
    "X-Client-IP",
    "Client-IP",
    "Front-End-Https",
    "Proxy-Client-IP",
    "X-Host",
    "X-Scheme",
    "X-Original-Host",
    "X-Sendfile-Type",
    "X-Accel-Mapping",
    "X-Forwarded-Prefix",
    "X-Script-Name",
    "X-Original-URL",
    "X-Rewrite-URL",
    "X-Forwarded-User",
    "X-Remote-User",
    "Remote-User",
    "SSL-Client-Verify",
    "True-Client-IP",
    "CF-Connecting-IP",
    "Fastly-Client-IP",
];

#[test]
fn nobody_can_pass_for_another_client() {
    let lines: String = TOLD.iter().map(|name| format!("{name}: {name}\r\n")).collect();
    let request = format!("GET / HTTP/1.1\r\nHost: h\r\n{lines}\r\n");
    let told = |told| {
        let pairs = encode_from(&request, false, told).unwrap();
        let values = pairs.into_iter().map(|(_, value)| value);
        values.filter(|value| TOLD.contains(&value.as_str())).collect::<Vec<_>>()
    };
    assert_eq!(told(None), [""; 0]);
    // A proxy that writes the other field passes on what clients say here.
    assert_eq!(told(Some(ForwardedFields::Forwarded)), [""; 0]);
    // The other fields have been evaluated already.
    for fields in [ForwardedFields::X, ForwardedFields::Address("X-Real-IP".into())] {
        assert_eq!(told(Some(fields)), TOLD[TOLD.len() - 11..]);
    }
}

#[test]
fn a_variable_can_be_added_to_a_block_that_was_finished() {
    let mut block = RequestBlock {
        bytes: [&[0; PREFIX_ROOM][..], b"HTTP_RANGE\0bytes=0-1\0,"].concat(),
        start: 0,
        cookies: None,
    };
    block.finish(7);
    block.add("KIRIN_SENDFILE", "0");
    block.finish(7);
    let (pairs, rest) = decode(block.as_bytes());
    assert!(rest.is_empty());
    let expected = [
        ("CONTENT_LENGTH", "7"),
        ("SCGI", "1"),
        ("HTTP_RANGE", "bytes=0-1"),
        ("KIRIN_SENDFILE", "0"),
    ];
    assert_eq!(pairs, expected.map(|(name, value)| (name.into(), value.into())));
    assert_eq!(block.value("KIRIN_SENDFILE"), Some(&b"0"[..]));
}

#[test]
fn a_request_becomes_the_variables_of_cgi() {
    let request = "POST /a%20b/%e3%81%82?x=%20&y HTTP/1.1\r\nHost: example.org:8080\r\nContent-Type: text/plain\r\n\
                   Content-Length: 42\r\nUser-Agent: test\r\nX-Empty:\r\n\r\n";
    let pairs = encode_text(request, false).unwrap();
    assert_eq!(pairs[0], ("CONTENT_LENGTH".into(), "42".into()), "SCGI wants it first");
    assert_eq!(pairs[1], ("SCGI".into(), "1".into()));
    for (name, expected) in [
        ("REQUEST_METHOD", "POST"),
        ("REQUEST_URI", "/a%20b/%e3%81%82?x=%20&y"),
        ("SCRIPT_NAME", ""),
        ("PATH_INFO", "/a b/あ"),
        ("QUERY_STRING", "x=%20&y"),
        ("SERVER_PROTOCOL", "HTTP/1.1"),
        ("SERVER_NAME", "example.org"),
        ("SERVER_PORT", "8080"),
        ("REMOTE_ADDR", "192.0.2.7"),
        ("REMOTE_PORT", "4711"),
        ("CONTENT_TYPE", "text/plain"),
        ("HTTP_HOST", "example.org:8080"),
        ("HTTP_USER_AGENT", "test"),
        ("HTTP_X_EMPTY", ""),
    ] {
        assert_eq!(value(&pairs, name).as_deref(), Some(expected), "{name} in {pairs:?}");
    }
    for name in ["HTTPS", "HTTP_CONTENT_TYPE", "HTTP_CONTENT_LENGTH"] {
        assert_eq!(value(&pairs, name), None, "{name} in {pairs:?}");
    }
}

#[test]
fn the_server_is_the_host_of_the_request_or_else_the_listener() {
    for (host, expected) in [
        ("Host: a.test\r\n", "a.test"),
        ("Host: a.test:81\r\n", "a.test"),
        ("Host: [::1]:81\r\n", "[::1]"),
        ("Host: [::1]\r\n", "[::1]"),
        ("", "127.0.0.1"),
    ] {
        let pairs = encode_text(&format!("GET / HTTP/1.0\r\n{host}\r\n"), false).unwrap();
        let server = (value(&pairs, "SERVER_NAME"), value(&pairs, "SERVER_PORT"));
        assert_eq!(server, (Some(expected.into()), Some("8080".into())), "{host}");
    }
}

#[test]
fn https_is_set_by_the_connection_and_not_by_the_client() {
    assert_eq!(
        value(&encode_text("GET / HTTP/1.0\r\n\r\n", true).unwrap(), "HTTPS").as_deref(),
        Some("on")
    );
    let pairs = encode_text("GET / HTTP/1.0\r\nHTTPS: on\r\n\r\n", false).unwrap();
    assert_eq!(value(&pairs, "HTTPS"), None);
}

#[test]
fn fields_of_the_same_name_become_one() {
    let pairs = encode_text(
        "GET / HTTP/1.0\r\nA: 1\r\nCookie: x=1\r\na: 2\r\nB: 0\r\ncookie: y=2\r\nA: 3\r\n\r\n",
        false,
    )
    .unwrap();
    assert_eq!(value(&pairs, "HTTP_A").as_deref(), Some("1, 2, 3"));
    assert_eq!(value(&pairs, "HTTP_COOKIE").as_deref(), Some("x=1; y=2"));
    assert_eq!(value(&pairs, "HTTP_B").as_deref(), Some("0"));
}

#[test]
fn fields_that_could_pass_for_others_are_dropped() {
    let request = "POST / HTTP/1.1\r\nHost: h\r\nX_Forwarded_For: 1\r\nProxy: http://evil/\r\nTransfer-Encoding: chunked\r\n\
                   Content_Length: 7\r\nX.Real.IP: 1\r\nX-Sendfile-Type: X-Sendfile\r\nX-Accel-Mapping: /=/\r\n\r\n";
    let pairs = encode_text(request, false).unwrap();
    let is_field = |name: &str| name.starts_with("HTTP_") && name != "HTTP_X_REQUEST_ID";
    let http: Vec<_> = pairs.iter().filter(|(name, _)| is_field(name)).collect();
    assert_eq!(http, [&("HTTP_HOST".to_owned(), "h".to_owned())]);
}

#[test]
fn the_target_of_a_proxy_request_gives_path_and_host() {
    let pairs =
        encode_text("GET http://b.example/p?q HTTP/1.1\r\nHost: a.example\r\n\r\n", false).unwrap();
    assert_eq!(value(&pairs, "REQUEST_URI").as_deref(), Some("/p?q"));
    assert_eq!(value(&pairs, "HTTP_HOST").as_deref(), Some("b.example"));
}

#[test]
fn options_for_the_whole_server_has_no_path() {
    let pairs = encode_text("OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", false).unwrap();
    assert_eq!(value(&pairs, "REQUEST_URI").as_deref(), Some("*"));
    assert_eq!(value(&pairs, "PATH_INFO").as_deref(), Some(""));
}

#[test]
fn a_nul_in_the_path_is_refused() {
    assert_eq!(encode_text("GET /a%00HTTPS%00on HTTP/1.0\r\n\r\n", false), Err(NulInPath));
}

#[test]
fn a_malformed_percent_encoding_is_passed_on() {
    for (path, decoded) in
        [("/100%", "/100%"), ("/%4", "/%4"), ("/%zz", "/%zz"), ("/%%41", "/%A"), ("/%2F+", "//+")]
    {
        let pairs = encode_text(&format!("GET {path} HTTP/1.0\r\n\r\n"), false).unwrap();
        assert_eq!(value(&pairs, "PATH_INFO").as_deref(), Some(decoded), "{path}");
    }
}

proptest! {
    #[test]
    fn any_request_becomes_pairs_with_unique_names(
        path in "[ -~&&[^ #?]]{0,40}",
        fields in prop::collection::vec(("[A-Za-z!#$&*+.^`|~0-9_-]{1,12}", "[\t -~\u{80}-\u{ff}]{0,20}"), 0..20),
    ) {
        // Fields that matter to the parser would make it refuse the request.
        let known = ["host", "content-length", "transfer-encoding", "expect"];
        let lines: String = fields
            .iter()
            .filter(|(name, _)| !known.contains(&name.to_ascii_lowercase().as_str()))
            .map(|(name, value)| format!("{name}: {value}\r\n"))
            .collect();
        let request = format!("GET /{path} HTTP/1.0\r\n{lines}\r\n");
        match encode_text(&request, false) {
            Err(NulInPath) => prop_assert!(path.contains("%00")),
            Ok(pairs) => {
                let mut names: Vec<_> = pairs.iter().map(|(name, _)| name).collect();
                names.sort();
                let count = names.len();
                names.dedup();
                prop_assert_eq!(names.len(), count, "{:?}", pairs);
                for (name, _) in &fields {
                    let dropped = !is_unambiguous(name) || name.eq_ignore_ascii_case("proxy");
                    let upper = format!("HTTP_{}", name.to_ascii_uppercase().replace('-', "_"));
                    prop_assert!(dropped || value(&pairs, &upper).is_some() || name.eq_ignore_ascii_case("trailer"), "{}", upper);
                }
            }
        }
    }
}

/// Encodes a request with these fields.
fn encode_fields(fields: &[httparse::Header<'_>]) -> RequestBlock {
    let request = RequestHead {
        method: http::Method::GET,
        target: "/",
        path: "/",
        query: None,
        version: kirin_http::Version::Http2,
        host: "h",
        fields,
        body: kirin_http::BodyLength::None,
        persistent: true,
        expects_continue: false,
    };
    let (peer, local) = (Peer::Unix, ListenAddress::Unix("/s".into()));
    let origin = Origin {
        peer: &peer,
        local: &local,
        secure: false,
        client: Client::NotRequested,
        proxy: None,
        now: 0,
        notes: &kirin_http::RequestNotes::default(),
    };
    encode(&request, origin, &MetaVariables::default()).unwrap()
}

#[test]
fn heads_cost_no_more_than_their_bytes() {
    let mut table = kirin_doubling::Table::new();
    // The names have one length and differ in their last bytes only, or are the same several times.
    let long = "a".repeat(300);
    for (shape, different) in
        [("different names", usize::MAX), ("the same name", 1), ("12 names", 12)]
    {
        let names = |count: usize| -> Vec<String> {
            (0..count).map(|index| format!("{long}{:05}", index % different)).collect()
        };
        table.check(shape, 12, names, |names| {
            let fields: Vec<_> =
                names.iter().map(|name| httparse::Header { name, value: b"b" }).collect();
            let block = encode_fields(&fields);
            (block.value("NONE").is_some(), crate::uwsgi::encode(&block, 1).is_ok())
        });
        table.check(&format!("{shape}, many"), 100, names, |names| {
            let fields: Vec<_> =
                names.iter().map(|name| httparse::Header { name, value: b"b" }).collect();
            crate::fastcgi::begin(&encode_fields(&fields), 1, &[], true).len()
        });
    }
    for piece in ["a=b; ", ";"] {
        table.check(
            &format!("cookies {piece}"),
            100,
            |count| piece.repeat(count),
            |value| {
                encode_fields(&[httparse::Header { name: "cookie", value: value.as_bytes() }])
                    .cookies()
                    .is_some()
            },
        );
    }
    for piece in ["%41", "%", "%4", "a/", "%zz"] {
        table.check(
            &format!("path {piece}"),
            300,
            |count| piece.repeat(count),
            |path| push_decoded_path(&mut Vec::new(), path),
        );
    }
    table.finish();
}

#[test]
fn responses_cost_no_more_than_their_bytes() {
    let mut table = kirin_doubling::Table::new();
    for line in ["A: b\n", "Status: 200\n", "Content-Length: 1\n", "a", ":\n"] {
        let head = |count: usize| format!("{}\n\n", line.repeat(count)).into_bytes();
        table.check(&format!("head {line:?}"), 24, head, |head| crate::parse_head(head).is_ok());
    }
    // Records of one byte, of none, and of a name that does not fit.
    for record in
        [&b"\x01\x06\0\x01\0\x01\0\0a"[..], b"\x01\x07\0\x01\0\0\0\0", b"\x01\x06\0\x01\0\0\x01\0x"]
    {
        table.check(
            &format!("records {record:?}"),
            200,
            |count| record.repeat(count),
            |input| {
                let mut input = bytes::BytesMut::from(&input[..]);
                let (mut decoder, mut events) = (crate::fastcgi::Decoder::default(), 0);
                while let Ok(Some(_)) = decoder.next(&mut input) {
                    events += 1;
                }
                events
            },
        );
    }
    table.finish();
}
