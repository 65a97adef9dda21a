//! Tests of formats: each directive, the formats with names, and hostile requests.

use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use http::{Method, StatusCode};
use httparse::Header;
use kirin_http::handler::{Client, Origin};
use kirin_http::listen_address::ListenAddress;
use kirin_http::peer::Peer;
use kirin_http::request::{BodyLength, RequestHead, Version};
use kirin_http::request_id::RequestId;
use kirin_http::request_notes::{CacheResult, RequestNotes, RouteNote};
use kirin_http::request_steps::StepKind;
use kirin_http::request_steps::{RequestSteps, StepPeer};
use kirin_http::response::AnsweredBy;
use proptest::prelude::*;

use super::*;

/// A request with its response, as a test describes it.
#[derive(Clone, Debug)]
struct Case {
    peer: &'static str,
    method: &'static str,
    target: String,
    host: &'static str,
    fields: Vec<(&'static str, Vec<u8>)>,
    response: Vec<(&'static str, &'static str)>,
    status: u16,
    body_bytes: u64,
    is_cut: bool,
    version: Version,
}

impl Default for Case {
    fn default() -> Self {
        Self {
            peer: "127.0.0.1:999",
            method: "GET",
            target: "/memo/7?x=1".into(),
            host: "Example.org:8080",
            fields: Vec::new(),
            response: Vec::new(),
            status: 200,
            body_bytes: 5,
            is_cut: false,
            version: Version::Http11,
        }
    }
}

impl Case {
    fn with(name: &'static str, value: &[u8]) -> Self {
        Self { fields: vec![(name, value.to_vec())], ..Self::default() }
    }

    /// Returns the line, after checking that it is the same from the heads and from taken values.
    fn line(&self, format: &str) -> String {
        self.line_with(format, None)
    }

    fn line_with(&self, format: &str, steps: Option<Rc<RequestSteps>>) -> String {
        let environment = |name: &str| (name == "SITE").then(|| "a b".to_owned());
        let format = LogFormat::compile(format, false, &environment).unwrap();
        let fields: Vec<_> =
            self.fields.iter().map(|(name, value)| Header { name, value }).collect();
        let (path, query) = match self.target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&*self.target, None),
        };
        let method = Method::from_bytes(self.method.as_bytes()).unwrap();
        let head = RequestHead {
            method: method.clone(),
            target: &self.target,
            path,
            query,
            version: self.version,
            host: self.host,
            fields: &fields,
            body: BodyLength::None,
            persistent: true,
            expects_continue: false,
        };
        let peer = Peer::Tcp(self.peer.parse().unwrap());
        let local = ListenAddress::Tcp(SocketAddr::from(([10, 0, 0, 1], 8080)));
        let notes = RequestNotes::default();
        let origin = Origin {
            peer: &peer,
            local: &local,
            secure: false,
            client: Client::NotRequested,
            proxy: None,
            now: 0,
            notes: &notes,
        };
        let mut response_fields = FieldLines::new();
        for (name, value) in &self.response {
            response_fields.try_push(name.as_bytes(), value.as_bytes()).unwrap();
        }
        let request =
            LoggedRequest { peer: &peer, parsed: Some((&head, origin)), refused_line: b"" };
        let response = LoggedHead { fields: &response_fields, content_length: Some(7) };
        let ended = EndedRequest {
            id: &RequestId::Made(0xabc),
            trace: None,
            host: "",
            method: &method,
            target: &self.target,
            route: RouteNote::default(),
            cache_result: steps.as_ref().map(|_| CacheResult::Miss),
            steps: steps.as_deref(),
            status: StatusCode::from_u16(self.status).unwrap(),
            answered_by: AnsweredBy::new(if steps.is_some() { "proxy" } else { "store" }),
            body_bytes: self.body_bytes,
            received_bytes: 3,
            is_cut: self.is_cut,
            started: Instant::now(),
            took: Duration::from_micros(1_234_567),
        };
        let end = Duration::from_micros(784_111_777_012_345);
        let times = RequestTimes { begin: end - ended.took, end };
        let write = |source| {
            let (mut out, mut texts) = (Vec::new(), TimeTexts::default());
            format.write_line(source, &ended, times, &mut texts, &mut out);
            String::from_utf8(out).unwrap()
        };
        let at_once = write(ValueSource::Heads(request, response));
        let mut taken = TakenValues::default();
        format.take_request(&request, &mut taken);
        format.take_response(response, &mut taken);
        assert_eq!(write(ValueSource::Taken(&taken)), at_once);
        at_once
    }
}

#[test]
fn each_directive_writes_its_value() {
    let case = Case {
        fields: vec![
            ("User-Agent", b"curl \"8\"".to_vec()),
            ("X-A", b"1".to_vec()),
            ("x-a", b"2".to_vec()),
            ("Authorization", b"Basic QWxhZGRpbjpvcGVuIHNlc2FtZQ==".to_vec()),
            ("Cookie", b"sid=s1; lang=ja".to_vec()),
        ],
        response: vec![("Content-Type", "text/html"), ("X-B", "1"), ("X-B", "2"), ("X-E", "")],
        ..Case::default()
    };
    for (format, expected) in [
        ("%%%h%%", "%127.0.0.1%"),
        ("%h %l %u", "127.0.0.1 - Aladdin"),
        ("%a %{c}a", "127.0.0.1 127.0.0.1"),
        ("%t", "[06/Nov/1994:08:49:35 +0000]"),
        ("%{begin:%S}t %{end:%S}t %{%F}t", "35 37 1994-11-06"),
        ("%{sec}t %{end:msec}t %{end:usec_frac}t", "784111775 784111777012 012345"),
        ("%{end:msec_frac}t", "012"),
        ("%r", "GET /memo/7?x=1 HTTP/1.1"),
        ("%m %U %q %H", "GET /memo/7 ?x=1 HTTP/1.1"),
        ("%s %>s %<s", "200 200 200"),
        ("%b %B", "5 5"),
        ("%D %T %{s}T %{ms}T %{us}T", "1234567 1 1 1234 1234567"),
        ("%v %V %p %{local}p", "Example.org Example.org:8080 8080 8080"),
        ("%{User-Agent}i", r"curl \x228\x22"),
        ("%{x-A}i %{X-None}i", "1, 2 -"),
        ("%{content-type}o %{X-B}o %{X-E}o %{X-None}o", "text/html 1, 2 - -"),
        ("%{Content-Length}o", "7"),
        ("%{SITE}e %{NONE}e", "a b -"),
        ("%{sid}C %{none}C", "s1 -"),
        ("%{place}k %{answered_by}k %{cache}k", "store store -"),
        ("%{queue}k %{worker}k %{upstream}k %{upstream_time}k", "- - - -"),
        ("%{tls}k %{bytes_in}k %{end}k", "- 3 whole"),
        ("%{request_id}k", "00000000000000000000000000000abc"),
        ("%{reqtime}k %{uri}k %{user}k %{vhost}k", "1.234567 /memo/7?x=1 Aladdin Example.org:8080"),
    ] {
        assert_eq!(case.line(format), expected, "{format}");
    }
    assert_eq!(case.line("%P"), std::process::id().to_string());
}

#[test]
fn the_steps_of_a_request_have_values() {
    let steps = Rc::<RequestSteps>::default();
    let name: Arc<str> = "api".into();
    drop(steps.begin(StepKind::Queue, &name));
    let upstream = steps.begin(StepKind::Upstream, &name);
    upstream.set_peer(StepPeer::Server("10.0.0.7:80".into()));
    drop(upstream);
    let format = "%{place}k %{answered_by}k %{upstream}k %{cache}k %{queue}k %{upstream_time}k";
    let line = Case::default().line_with(format, Some(Rc::clone(&steps)));
    let words: Vec<_> = line.split(' ').collect();
    assert_eq!(words[..4], ["proxy:api", "proxy", "10.0.0.7:80", "MISS"], "{line}");
    assert!(words[4..].iter().all(|time| time.starts_with("0.0")), "{line}");
    let worker = steps.begin(StepKind::Worker, &name);
    worker.set_peer(StepPeer::Process(17));
    drop(worker);
    assert_eq!(Case::default().line_with("%P", Some(steps)), "17");
}

#[test]
fn the_lines_of_the_named_formats_do_not_change() {
    let case = Case { body_bytes: 0, is_cut: true, ..Case::with("Referer", b"http://a/") };
    let start = "127.0.0.1 - - [06/Nov/1994:08:49:35 +0000] \"GET /memo/7?x=1 HTTP/1.1\" 200 0";
    assert_eq!(case.line("common"), start);
    assert_eq!(case.line("combined"), format!("{start} \"http://a/\" \"-\" store 1.234567 cut"));
    assert_eq!(
        case.line("json"),
        "{\"time\":\"1994-11-06T08:49:35.777+00:00\",\"host\":\"127.0.0.1\",\"method\":\"GET\",\
         \"uri\":\"/memo/7?x=1\",\"protocol\":\"HTTP/1.1\",\"status\":200,\"size\":0,\
         \"reqtime\":1.234567,\"vhost\":\"Example.org:8080\",\"referer\":\"http://a/\",\
         \"place\":\"store\",\"request_id\":\"00000000000000000000000000000abc\",\"bytes_in\":3,\
         \"end\":\"cut\"}"
    );
    assert_eq!(
        case.line("ltsv"),
        "time:1994-11-06T08:49:35.777+00:00\thost:127.0.0.1\tuser:-\tmethod:GET\t\
         uri:/memo/7?x=1\tprotocol:HTTP/1.1\tstatus:200\tsize:0\treqtime:1.234567\t\
         vhost:Example.org:8080\treferer:http://a/\tua:-\tplace:store\tcache:-\tqueue:-\tworker:-\t\
         upstream:-\tupstream_time:-\ttls:-\trequest_id:00000000000000000000000000000abc\t\
         bytes_in:3\tend:cut"
    );
    let terminal = case.line("terminal");
    assert!(terminal.ends_with(" 200 GET /memo/7?x=1  0 B  1.23 s  store cut"), "{terminal}");
    let http2 = Case { version: Version::Http2, peer: "[2001:db8::1]:80", ..Case::default() };
    assert_eq!(http2.line("%h %H"), "2001:db8::1 HTTP/2.0");
}

#[test]
fn malformed_requests_are_logged_with_their_first_line() {
    let format = LogFormat::compile("%h \"%r\" %m%q %>s %{A}o", false, &|_| None).unwrap();
    let peer = Peer::Unix;
    let mut taken = TakenValues::default();
    let request = LoggedRequest { peer: &peer, parsed: None, refused_line: b"GET /\" \xff" };
    format.take_request(&request, &mut taken);
    let method = Method::GET;
    let ended = EndedRequest {
        id: &RequestId::default(),
        trace: None,
        host: "",
        method: &method,
        target: "",
        route: RouteNote::default(),
        cache_result: None,
        steps: None,
        status: StatusCode::BAD_REQUEST,
        answered_by: AnsweredBy::SERVER,
        body_bytes: 0,
        received_bytes: 0,
        is_cut: false,
        started: Instant::now(),
        took: Duration::ZERO,
    };
    let mut out = Vec::new();
    let times = RequestTimes::ended_now(Duration::ZERO);
    let mut texts = TimeTexts::default();
    format.write_line(ValueSource::Taken(&taken), &ended, times, &mut texts, &mut out);
    assert_eq!(String::from_utf8(out).unwrap(), r#"unix: "GET /\x22 \xFF" - 400 -"#);
}

/// Returns the value of `Authorization` for a user.
fn basic(user: &[u8]) -> Vec<u8> {
    use base64::Engine;
    let encoded = base64::engine::general_purpose::STANDARD.encode([user, b":secret"].concat());
    format!("Basic {encoded}").into_bytes()
}

fn hostile() -> impl Strategy<Value = Case> {
    let text = proptest::collection::vec(
        prop_oneof![
            any::<u8>(),
            prop_oneof![
                Just(b'"'),
                Just(b'\\'),
                Just(b'\n'),
                Just(b'\t'),
                Just(b' '),
                Just(b':'),
                Just(b','),
                Just(b'{'),
                Just(b'}'),
                Just(0x1f),
                Just(b']'),
                Just(b'%')
            ]
        ],
        0..40,
    );
    (text.clone(), text.clone(), text, "/[ -~\t]{0,30}").prop_map(
        |(agent, referer, user, target)| Case {
            target,
            fields: vec![
                ("User-Agent", agent),
                ("Referer", referer),
                ("Authorization", basic(&user)),
            ],
            ..Case::default()
        },
    )
}

proptest! {
    #[test]
    fn no_request_forges_a_line_or_a_field(case in hostile()) {
        // The target of a request has no white space; here even that is tried.
        let line = case.line("combined");
        let quoted: Vec<_> = line.split('"').collect();
        prop_assert_eq!(quoted.len(), 7, "{}", line);
        prop_assert_eq!(quoted[0].split(' ').count(), 6, "{}", line);
        prop_assert_eq!(quoted[2], " 200 5 ");
        prop_assert_eq!(quoted[6], " store 1.234567");
        prop_assert!(!line.bytes().any(|byte| byte.is_ascii_control()), "{}", line);

        let line = case.line("ltsv");
        let keys: Vec<_> = line.split('\t').map(|field| field.split_once(':').unwrap().0).collect();
        let expected: Vec<_> = keys_of_format();
        prop_assert_eq!(keys, expected);
        prop_assert!(!line.contains(['\n', '\r']), "{}", line);

        let line = case.line("json");
        prop_assert!(!line.contains(['\n', '\r']), "{}", line);
        let object: serde_json::Value = serde_json::from_str(&line).unwrap();
        prop_assert_eq!(&object["status"], 200);
        prop_assert_eq!(&object["place"], "store");
        prop_assert_eq!(&object["uri"], &*case.target);
        let all = keys_of_format();
        prop_assert!(object.as_object().unwrap().keys().all(|key| all.contains(&&**key)));
    }
}

fn keys_of_format() -> Vec<&'static str> {
    keys().into_iter().map(|(key, _)| key).collect()
}
