//! TLS through the built program: versions, names, sessions, reload, certificates of clients, and
//! failures.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::process::Command;

use kirin_tests::{
    Authority, Issued, Kirin, Site, TlsClient, TlsSetup, patient_seconds, run_kirin, wait_for,
    wait_limit,
};
use rustix::process::Signal;
use rustls::ProtocolVersion::{self, TLSv1_2, TLSv1_3};

/// A TLS listener, then one without TLS.
const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }, { chain = \"b.pem\", key = \"b.key\" }]\n\
    hsts = \"365d\"\nhsts_subdomains = true\n\
    [[listener]]\naddress = \"127.0.0.1:0\"\nredirect_to_https = 8443\n\
    [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n";

const APP: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    my $text = ['Content-Type' => 'text/plain'];
    if ($env->{PATH_INFO} eq '/cut') {
        return sub { my $writer = shift->([200, $text]); $writer->write("first\n"); kill KILL => $$ };
    }
    [200, $text, [map { "$_=" . ($env->{$_} // '') . "\n" } 'psgi.url_scheme', 'HTTPS', grep { /^SSL_/ } sort keys %$env]];
};
"#;

struct Https {
    site: Site,
    kirin: Kirin,
    authority: Authority,
    a: Issued,
    b: Issued,
}

fn serve() -> Https {
    serve_with(CONFIG)
}

fn serve_with(config: &str) -> Https {
    let authority = Authority::new("Kirin test authority");
    let (a, b) = (authority.issue(&["a.test", "localhost"]), authority.issue(&["*.b.test"]));
    let site = Site::new()
        .with("public/hello.txt", "hello\n")
        .with("public/large.bin", large())
        .with("public/.well-known/acme-challenge/token", "token.thumbprint")
        .with("app.psgi", APP)
        .with("ca.pem", authority.pem());
    a.write(&site, "a");
    b.write(&site, "b");
    let kirin = Kirin::start(&site, config);
    Https { site, kirin, authority, a, b }
}

impl Https {
    fn setup(&self, version: ProtocolVersion) -> TlsSetup {
        TlsSetup::new(&self.authority, None, version)
    }

    fn connect(&self) -> TlsClient {
        TlsClient::connect(self.kirin.address(), "a.test", &self.setup(TLSv1_3))
            .expect("a handshake")
    }

    /// Returns curl's output. curl trusts the test's authority.
    fn curl(&self, arguments: &[&str], target: &str) -> Vec<u8> {
        let port = self.kirin.address().port();
        let output = Command::new("curl")
            .args(["-sS", "--cacert", "ca.pem", "--resolve", &format!("a.test:{port}:127.0.0.1")])
            .args(arguments)
            .arg(format!("https://a.test:{port}{target}"))
            .current_dir(self.site.root())
            .output()
            .expect("curl");
        assert!(
            output.status.success(),
            "{arguments:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        output.stdout
    }
}

/// Returns 3 MB in which every place differs.
fn large() -> Vec<u8> {
    (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

#[test]
fn both_versions_of_tls_carry_both_versions_of_http() {
    let https = serve();
    for tls in [&["--tls-max", "1.2"], &["--tlsv1.3", "-s"]] {
        for (http, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
            let arguments = [tls[0], tls[1], http];
            assert_eq!(https.curl(&arguments, "/hello.txt"), b"hello\n", "{arguments:?}");
            assert!(https.curl(&arguments, "/large.bin") == large(), "{arguments:?}");
            let shown = https.curl(
                &[tls[0], tls[1], http, "-o", "/dev/null", "-w", "%{http_version}"],
                "/hello.txt",
            );
            assert_eq!(String::from_utf8_lossy(&shown), version, "{arguments:?}");
        }
    }
}

#[test]
fn a_client_gets_the_certificate_of_the_name_or_the_first() {
    let https = serve();
    // curl checks names itself, so a wrong certificate would be an error.
    let shown = |name: &str, issued: &Issued| {
        TlsClient::connect(https.kirin.address(), name, &https.setup(TLSv1_3))
            .map(|client| client.server_is(issued))
    };
    assert!(shown("a.test", &https.a).expect("a handshake"));
    assert!(shown("www.b.test", &https.b).expect("a handshake"));
    assert!(shown("localhost", &https.a).expect("a handshake"));
    let error = shown("unknown.test", &https.a).expect_err("a certificate for another name");
    assert!(error.to_string().contains("not valid for name"), "{error}");
}

#[test]
fn sessions_resume_on_any_loop() {
    let https = serve();
    for version in [TLSv1_2, TLSv1_3] {
        let setup = https.setup(version);
        // There are more connections than loops, so some reach another loop than the first.
        for number in 0..8 {
            let mut client =
                TlsClient::connect(https.kirin.address(), "a.test", &setup).expect("a handshake");
            assert_eq!(client.is_resumed(), number > 0, "{version:?} connection {number}");
            assert!(client.get_and_close("/hello.txt").ends_with("hello\n"));
        }
    }
}

#[test]
fn hup_exchanges_certificates_and_open_connections_stay() {
    let https = serve();
    let mut before = https.connect();
    assert!(before.server_is(&https.a));
    let renewed = https.authority.issue(&["a.test"]);
    renewed.write(&https.site, "a");
    https.kirin.signal(Signal::HUP);
    wait_for("the new certificate", || https.connect().server_is(&renewed).then_some(()));
    assert!(before.get_and_close("/hello.txt").ends_with("hello\n"));
}

#[test]
fn a_bad_certificate_file_changes_nothing_and_the_log_names_it() {
    let https = serve();
    https.authority.issue(&["a.test"]).write(&https.site, "a");
    // The second pair does not match. The first must not be used alone.
    std::fs::write(https.site.path("b.pem"), &https.authority.issue(&["b.test"]).chain)
        .expect("write");
    https.kirin.signal(Signal::HUP);
    https.kirin.wait_for_log("not reloaded");
    let log = https.kirin.log();
    assert!(log.contains("b.pem") && log.contains("b.key") && log.contains("KeyMismatch"), "{log}");
    assert!(https.connect().server_is(&https.a));
    https.b.write(&https.site, "b");
    https.kirin.signal(Signal::HUP);
    wait_for("the new certificate", || (!https.connect().server_is(&https.a)).then_some(()));
}

#[test]
fn a_configuration_with_a_bad_certificate_is_refused() {
    let https = serve();
    let check = |from: &str, to: &str| {
        std::fs::write(https.site.path("bad.toml"), CONFIG.replace(from, to)).expect("write");
        let output = run_kirin(&https.site, &["check", "--config", "bad.toml"]);
        assert!(!output.status.success());
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    for (from, to, parts) in [
        ("b.key", "a.key", ["bad.toml:5:16", "b.pem with key"]),
        ("b.key", "none.key", ["cannot read", "none.key: No such file"]),
        ("b.pem", "public/hello.txt", ["hello.txt", "there is no certificate in it"]),
        ("redirect_to_https = 8443", "redirect_to_https = 0", ["redirect_to_https", "1 to 65535"]),
    ] {
        let error = check(from, to);
        assert!(parts.iter().all(|part| error.contains(part)), "{error}");
    }
}

#[test]
fn applications_see_https_and_the_certificate_of_the_client() {
    let config = |verify: &str| {
        format!(
            "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\n\
             certificates = [{{ chain = \"a.pem\", key = \"a.key\" }}]\n{verify}\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\n\
             workers = 2\n[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n"
        )
    };
    let https = serve_with(&config(""));
    let reply = https.connect().get_and_close("/");
    assert!(reply.ends_with("psgi.url_scheme=https\nHTTPS=on\n"), "{reply}");

    let clients = Authority::new("Clients");
    for (verify, anonymous) in [("optional", true), ("required", false)] {
        std::fs::write(https.site.path("clients.pem"), clients.pem()).expect("write");
        let verify = format!("client_ca = \"clients.pem\"\nclient_verify = \"{verify}\"");
        let kirin = Kirin::start(&https.site, &config(&verify));
        let get = |certificate: Option<&Issued>| {
            let setup = TlsSetup::new(&https.authority, certificate, TLSv1_3);
            let mut bodies = Vec::new();
            // The second connection resumes, and belongs to the same client.
            for _ in 0..2 {
                let mut client = TlsClient::connect(kirin.address(), "a.test", &setup)?;
                client.send("GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
                let (received, result) = client.read_to_end();
                result?;
                bodies.push(String::from_utf8_lossy(&received).into_owned());
            }
            Ok::<_, std::io::Error>(bodies)
        };
        let known = get(Some(&clients.issue(&["alice"]))).expect("a known client is served");
        for body in known {
            assert!(body.contains("SSL_CLIENT_VERIFY=SUCCESS\n"), "{body}");
            assert!(body.contains("SSL_CLIENT_S_DN=CN=alice,O=Kirin\\, tests\n"), "{body}");
            assert!(body.contains("SSL_CLIENT_M_SERIAL="), "{body}");
        }
        assert!(
            get(Some(&https.authority.issue(&["eve"]))).is_err(),
            "{verify}: a stranger is turned away"
        );
        match get(None) {
            Ok(bodies) => {
                assert!(anonymous, "{verify}");
                assert!(bodies[0].contains("SSL_CLIENT_VERIFY=NONE\n"), "{bodies:?}");
            }
            Err(error) => assert!(
                !anonymous && error.to_string().contains("CertificateRequired"),
                "{verify}: {error}\n{}",
                kirin.log()
            ),
        }
    }
}

#[test]
fn a_stalled_handshake_is_ended_and_delays_no_other() {
    // The good handshake must be made in this time.
    let limit = format!("handshake_time = \"{}\"\nhsts =", patient_seconds(5));
    let https = serve_with(&CONFIG.replace("hsts =", &limit));
    let mut silent: Vec<_> = (0..50).map(|_| https.kirin.connect()).collect();
    // A handshake record that announces 512 bytes.
    silent[0].send(b"\x16\x03\x01\x02\x00\x01");
    assert!(https.connect().get_and_close("/hello.txt").ends_with("hello\n"));
    for client in &mut silent {
        assert_eq!(client.read_to_end(), b"");
    }
}

#[test]
fn bytes_that_are_not_a_handshake_are_refused() {
    let https = serve();
    let mut client = https.kirin.connect();
    let reply = client.get("/hello.txt");
    assert_eq!(reply.status, 400);
    assert!(reply.text().contains("speaks HTTPS"), "{reply:?}");
    assert_eq!(client.read_to_end(), b"");
    // A fatal alert (unexpected version or message), and the end.
    for garbage in
        [&b"\x16\x03\x01\x00\x05hello"[..], b"\x17\x03\x03\x00\x01x", b"\0\0\0\0\0\0\0\0"]
    {
        let mut client = https.kirin.connect();
        client.send(garbage);
        let answer = client.read_to_end();
        assert!(answer.is_empty() || answer[0] == 21, "{garbage:?}: {answer:?}");
    }
}

#[test]
fn a_client_that_floods_after_a_failed_handshake_is_cut_after_some_megabytes() {
    let https = serve();
    // The limit is 4 MB. The kernel's buffers of both ends take some more.
    const MOST_BYTES: usize = 64 << 20;
    let mut client = TcpStream::connect(https.kirin.address()).expect("connect");
    client.set_write_timeout(Some(wait_limit())).expect("write timeout");
    client.write_all(b"\x16\x03\x01\x00\x05hello").expect("a handshake that fails");
    let (garbage, mut sent) = (vec![b'x'; 1 << 20], 0);
    while sent <= MOST_BYTES {
        match client.write(&garbage) {
            Ok(count) => sent += count,
            Err(error) => {
                assert_ne!(error.kind(), ErrorKind::WouldBlock, "not cut after {sent} bytes");
                return;
            }
        }
    }
    panic!("{sent} bytes were taken");
}

#[test]
fn plain_http_is_sent_to_https_except_for_the_challenges_of_acme() {
    let https = serve();
    let mut client = kirin_tests::Client::connect(https.kirin.address_of(1));
    let reply = client.request("POST", "/a%20b?c=d", "");
    assert_eq!((reply.status, reply.field("location")), (308, Some("https://test:8443/a%20b?c=d")));
    assert_eq!(reply.field("strict-transport-security"), None);
    assert_eq!(client.get("/.well-known/acme-challenge/token").text(), "token.thumbprint");
    for target in [
        "/.well-known/acme-challenge/../../hello.txt",
        "/.well-known/acme-challenge/%2e%2e/%2e%2e/hello.txt",
        "/.well-known/acme-challenge/..%2f..%2fhello.txt",
        "/.well-known/acme-challenge/token/../../../hello.txt",
        "/.well-known/acme-challenge/token/",
        "/.well-known/acme-challenge/",
        "/.well-known/acme-challenge",
        "/.well-known/acme-challenge/.hidden",
        "//.well-known/acme-challenge/token",
        "http://test/.well-known/acme-challenge/../../hello.txt",
    ] {
        assert_eq!(client.get(target).status, 308, "{target}");
    }
    client.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(client.read_reply().status, 400, "without a host there is no address to go to");
    let reply = https.connect().get_and_close("/hello.txt");
    assert!(
        reply.contains("Strict-Transport-Security: max-age=31536000; includeSubDomains\r\n"),
        "{reply}"
    );
}

#[test]
fn a_unix_socket_may_have_tls_too() {
    let config = format!(
        "{CONFIG}[[listener]]\naddress = \"unix:tls.sock\"\n[listener.tls]\n\
         certificates = [{{ chain = \"a.pem\", key = \"a.key\" }}]\n"
    );
    let https = serve_with(&config);
    for http in ["--http1.1", "--http2"] {
        assert!(
            https.curl(&["--unix-socket", "tls.sock", http], "/large.bin") == large(),
            "{http}"
        );
    }
}

#[test]
fn a_slow_reader_gets_all_and_pipelined_requests_are_answered_in_order() {
    let https = serve();
    let mut client = https.connect();
    let get = |target: &str| format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n");
    client.send([get("/large.bin"), get("/hello.txt"), get("/large.bin")].concat()).end();
    // The client reads nothing until the socket's buffers are full.
    let mut received = vec![0; 1];
    assert_eq!(client.read(&mut received).expect("a byte"), 1);
    let (rest, result) = client.read_to_end();
    result.expect("a good end");
    received.extend_from_slice(&rest);
    let (large, hello) = (large(), b"hello\n");
    let body_at = |at: usize| {
        at + received[at..].windows(4).position(|end| end == b"\r\n\r\n").expect("a head") + 4
    };
    let first = body_at(0);
    assert!(received[first..first + large.len()] == large, "the first body");
    let second = body_at(first + large.len());
    assert_eq!(&received[second..second + hello.len()], hello);
    let third = body_at(second + hello.len());
    assert!(received[third..] == large, "the third body");
}

#[test]
fn a_response_that_is_cut_ends_without_close_notify() {
    let https = serve_with(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[listener.tls]\n\
         certificates = [{ chain = \"a.pem\", key = \"a.key\" }]\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
         [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n",
    );
    let mut client = https.connect();
    // It reads to the end of the connection, because only close_notify distinguishes a complete
    // body from a part.
    client.send("GET /cut HTTP/1.0\r\n\r\n");
    let (received, result) = client.read_to_end();
    assert!(received.ends_with(b"first\n"), "{}", String::from_utf8_lossy(&received));
    assert_eq!(result.expect_err("no close_notify").kind(), std::io::ErrorKind::UnexpectedEof);
}

#[test]
fn term_finishes_responses_and_ends_idle_connections() {
    let mut https = serve();
    let mut idle = https.connect();
    idle.send("GET /hello.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    let mut buffer = [0; 4096];
    assert!(idle.read(&mut buffer).expect("a response") > 0);
    let mut busy = https.connect();
    busy.send("GET /large.bin HTTP/1.1\r\nHost: a\r\n\r\n".repeat(4));
    assert!(busy.read(&mut buffer[..1]).expect("a byte") > 0);
    https.kirin.signal(Signal::TERM);
    idle.read_to_end().1.expect("an idle connection ends with close_notify");
    let (received, _) = busy.read_to_end();
    assert!(
        received.len() >= large().len(),
        "the response in progress was cut at {}",
        received.len()
    );
    assert_eq!(https.kirin.wait().code(), Some(0), "{}", https.kirin.log());
}

/// Returns a record with the first message of a client that knows no version above `3.minor` (RFC
/// 5246 section 7.4.1.2). `3.3` is TLS 1.2.
fn hello_of_an_old_client(minor: u8) -> Vec<u8> {
    // TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256 and its sibling for RSA; no compression.
    let ciphers_and_compression = [0, 4, 0xc0, 0x2b, 0xc0, 0x2f, 1, 0];
    let groups = [0, 10, 0, 4, 0, 2, 0, 0x1d]; // x25519
    let point_formats = [0, 11, 0, 2, 1, 0];
    let signatures = [0, 13, 0, 8, 0, 6, 4, 3, 8, 4, 4, 1];
    let extensions = [&groups[..], &point_formats, &signatures].concat();
    let mut hello = vec![3, minor];
    hello.extend([7; 32]);
    hello.push(0);
    hello.extend(ciphers_and_compression);
    hello.extend([0, u8::try_from(extensions.len()).expect("short extensions")]);
    hello.extend(extensions);
    let length = u8::try_from(hello.len()).expect("a short hello");
    let mut record = vec![22, 3, 1, 0, length + 4, 1, 0, 0, length];
    record.extend(hello);
    record
}

#[test]
fn clients_that_know_no_version_above_tls_1_1_are_refused() {
    // Content type 21 is an alert, and 22 a handshake (RFC 5246 section 6.2.1).
    let https = serve();
    for (minor, expected) in [(0, 21), (1, 21), (2, 21), (3, 22)] {
        let mut stream = TcpStream::connect(https.kirin.address()).expect("a connection");
        stream.write_all(&hello_of_an_old_client(minor)).expect("the hello");
        let mut answer = [0; 5];
        stream.read_exact(&mut answer).expect("a record");
        assert_eq!(answer[0], expected, "3.{minor}: {answer:?}");
    }
}
