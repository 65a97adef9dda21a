//! Clients behind proxies and load balancers, through the built program.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::process::Command;

use kirin_tests::{Authority, Client, Kirin, Site, wait_for};

/// An application that shows the client's address.
const PSGI: &str = r#"
use v5.16; use warnings;
use Plack::Builder;
my $app = sub {
    my $env = shift;
    my @names = grep { /^HTTP_|REMOTE_ADDR|REMOTE_PORT|url_scheme/ } sort keys %$env;
    return [200, ['Content-Type' => 'text/plain'], [join ' ', map { "$_=$env->{$_}" } @names]];
};
builder { mount '/middleware' => builder { enable 'ReverseProxy'; $app }; mount '/' => $app };
"#;

fn serve(site: &Site, listener: &str) -> Kirin {
    Kirin::start(
        site,
        &format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n{listener}\
             [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n"
        ),
    )
}

fn site() -> Site {
    Site::new().with("app.psgi", PSGI)
}

fn ask(client: &mut Client, target: &str, fields: &str) -> String {
    let reply = client.request("GET", target, fields);
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.text()
}

fn wait_for_access(site: &Site, part: &str) {
    wait_for(&format!("`{part}` in the access log"), || {
        let log = std::fs::read_to_string(site.path("access.log")).ok()?;
        log.contains(part).then_some(())
    });
}

#[test]
fn untrusted_clients_cannot_set_their_address() {
    let site = site();
    let kirin = serve(&site, "");
    let mut client = kirin.connect();
    let lie = "X-Forwarded-For: 6.6.6.6\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.example\r\n\
               Forwarded: for=6.6.6.6;proto=https\r\nX-Real-IP: 6.6.6.6\r\nX-Forwarded-Ssl: https\r\nX-Forwarded-Scheme: https\r\n\
               X_Forwarded_For: 6.6.6.6\r\nX-Forwarded-Prefix: /evil\r\nClient-IP: 6.6.6.6\r\n\
               X-Remote-User: evil\r\nRemote-User: evil\r\nTrue-Client-IP: 6.6.6.6\r\nCF-Connecting-IP: 6.6.6.6\r\n\
               Fastly-Client-IP: 6.6.6.6\r\nX-Cluster-Client-IP: 6.6.6.6\r\nX-Host: evil.example\r\nX-Original-URL: /evil\r\n\
               X-Rewrite-URL: /evil\r\nX-Original-URI: /evil\r\nX-SSL-Client-S-DN: CN=evil\r\nX-WebAuth-User: evil\r\n";
    for target in ["/", "/middleware"] {
        let text = ask(&mut client, target, lie);
        assert!(
            text.contains("REMOTE_ADDR=127.0.0.1 ") && text.contains("url_scheme=http"),
            "{text}"
        );
        assert!(
            !text.contains("6.6.6.6") && !text.contains("https") && !text.contains("evil"),
            "{text}"
        );
    }
}

#[test]
fn trusted_proxies_set_the_address_of_the_client() {
    let site = site();
    let kirin = serve(&site, "trusted = [\"127.0.0.1\", \"10.0.0.0/8\"]\n");
    let mut client = kirin.connect();
    let fields = "X-Forwarded-For: 6.6.6.6, 192.0.2.7, 10.1.2.3\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: evil.example\r\n";
    for target in ["/", "/middleware"] {
        let text = ask(&mut client, target, fields);
        assert!(text.contains("REMOTE_ADDR=192.0.2.7 REMOTE_PORT=0"), "{target}: {text}");
        assert!(
            text.contains("url_scheme=https") && text.contains("HTTP_HOST=test"),
            "{target}: {text}"
        );
        assert!(!text.contains("FORWARDED"), "{target}: {text}");
    }
    wait_for_access(&site, "192.0.2.7 - - [");
    // CDNs and single sign-on have their own fields.
    let text = ask(
        &mut client,
        "/",
        "CF-Connecting-IP: 192.0.2.8\r\nX-Remote-User: alice\r\nX-Host: evil.example\r\n",
    );
    assert!(
        text.contains("192.0.2.8") && text.contains("alice") && !text.contains("evil"),
        "{text}"
    );
    // The same connection carries requests of many clients.
    let text = ask(&mut client, "/", "X-Forwarded-For: 2001:db8::9\r\n");
    assert!(
        text.contains("REMOTE_ADDR=2001:db8::9 ") && text.contains("url_scheme=http"),
        "{text}"
    );
    assert!(ask(&mut client, "/", "").contains("REMOTE_ADDR=127.0.0.1 "));
    let text = ask(&mut client, "/", "Forwarded: for=6.6.6.6\r\n");
    assert!(text.contains("REMOTE_ADDR=127.0.0.1 "), "the proxy writes the other field: {text}");
}

#[test]
fn forwarded_and_its_host_count_when_the_listener_says_so() {
    let site = site();
    let kirin = serve(
        &site,
        "trusted = [\"127.0.0.0/8\"]\nforwarded = \"Forwarded\"\nforwarded_host = true\n",
    );
    let mut client = kirin.connect();
    let fields = "X-Forwarded-For: 6.6.6.6\r\nForwarded: for=\"[2001:db8::1]:4711\";proto=https;host=shop.example\r\n";
    let text = ask(&mut client, "/", fields);
    assert!(text.contains("REMOTE_ADDR=2001:db8::1 REMOTE_PORT=4711"), "{text}");
    assert!(text.contains("url_scheme=https") && text.contains("HTTP_HOST=shop.example"), "{text}");
}

#[test]
fn a_field_of_any_name_has_the_clients_address_when_the_listener_says_so() {
    let site = site();
    let kirin = serve(&site, "trusted = [\"127.0.0.0/8\"]\nforwarded = \"X-Client\"\n");
    let mut client = kirin.connect();
    let fields = "X-Forwarded-For: 6.6.6.6\r\nX-Client: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n";
    for target in ["/", "/middleware"] {
        let text = ask(&mut client, target, fields);
        assert!(text.contains("REMOTE_ADDR=192.0.2.7 REMOTE_PORT=0"), "{target}: {text}");
        assert!(text.contains("url_scheme=https") && !text.contains("6.6.6.6"), "{text}");
    }
    wait_for_access(&site, "192.0.2.7 - - [");
    let text = ask(&mut client, "/", "X-Client: 6.6.6.6, 192.0.2.7\r\n");
    assert!(text.contains("REMOTE_ADDR=127.0.0.1 "), "{text}");
}

#[test]
fn clients_of_the_unix_socket_are_trusted_only_if_the_listener_says_so() {
    let site = site();
    let ask = |socket: &str| {
        let mut stream = UnixStream::connect(site.path(socket)).expect("connect");
        stream.write_all(b"GET / HTTP/1.0\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n").expect("send");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("read");
        text
    };
    let _kirin = serve(
        &site,
        "[[listener]]\naddress = \"unix:open.sock\"\ntrusted = [\"unix:\"]\n\
         [[listener]]\naddress = \"unix:closed.sock\"\ntrusted = [\"0.0.0.0/0\", \"::/0\"]\n",
    );
    let text = ask("open.sock");
    assert!(text.contains("REMOTE_ADDR=192.0.2.7 "), "{text}");
    let text = ask("closed.sock");
    assert!(text.contains("REMOTE_ADDR=unix: "), "{text}");
}

fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let mut header = b"\r\n\r\n\0\r\nQUIT\n".to_vec();
    header.extend([command, family]);
    header.extend((rest.len() as u16).to_be_bytes());
    header.extend(rest);
    header
}

#[test]
fn a_balancer_announces_its_client_with_the_proxy_protocol() {
    let site = site();
    let kirin = serve(&site, "trusted = [\"127.0.0.1\"]\nproxy_protocol = true\n");
    let v4 = [192, 0, 2, 7, 10, 0, 0, 1, 0x12, 0x67, 0, 80];
    let v6 = [
        &[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9][..],
        &[0; 16],
        &[0x12, 0x67, 0, 80],
    ]
    .concat();
    for (header, expected) in [
        (
            b"PROXY TCP4 192.0.2.7 10.0.0.1 4711 80\r\n".to_vec(),
            "REMOTE_ADDR=192.0.2.7 REMOTE_PORT=4711",
        ),
        (
            b"PROXY TCP6 2001:db8::9 ::1 4711 80\r\n".to_vec(),
            "REMOTE_ADDR=2001:db8::9 REMOTE_PORT=4711",
        ),
        (b"PROXY UNKNOWN\r\n".to_vec(), "REMOTE_ADDR=127.0.0.1 "),
        (v2(0x21, 0x11, &v4), "REMOTE_ADDR=192.0.2.7 REMOTE_PORT=4711"),
        (v2(0x21, 0x21, &v6), "REMOTE_ADDR=2001:db8::9 REMOTE_PORT=4711"),
        (
            v2(0x21, 0x11, &[&v4[..], &[4, 0, 200], &[0; 200]].concat()),
            "REMOTE_ADDR=192.0.2.7 REMOTE_PORT=4711",
        ),
        (v2(0x21, 0x31, &[0; 216]), "REMOTE_ADDR=unix: "),
        (v2(0x20, 0x00, b""), "REMOTE_ADDR=127.0.0.1 "),
    ] {
        // The request is in the same packet, and in another one.
        let mut client = kirin.connect();
        client.send([&header[..], b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"].concat());
        let text = client.read_reply().text();
        assert!(text.contains(expected), "{text} without {expected}");
        // The header holds for the connection. The client's own fields do not count.
        let text = ask(&mut client, "/", "X-Forwarded-For: 6.6.6.6\r\n");
        let is_proxys = expected.contains("127.0.0.1");
        assert!(
            text.contains(expected) || (is_proxys && text.contains("6.6.6.6")),
            "{text} without {expected}"
        );
        let mut client = kirin.connect();
        for byte in &header {
            client.send([*byte]);
        }
        assert!(ask(&mut client, "/", "").contains(expected));
    }
    wait_for_access(&site, "2001:db8::9 - - [");
}

#[test]
fn a_connection_without_a_header_is_closed_unanswered() {
    let site = site();
    let kirin = serve(&site, "trusted = [\"127.0.0.1\"]\nproxy_protocol = true\n");
    for bytes in [
        &b"GET / HTTP/1.1\r\nHost: test\r\n\r\n"[..],
        b"\x16\x03\x01\x02\x00",
        b"PROXY TCP4 192.0.2.7 10.0.0.1 4711\r\nGET / HTTP/1.1\r\nHost: test\r\n\r\n",
        &[b'P'; 5000],
        &v2(0x21, 0x11, &[0; 4]),
        &v2(0x21, 0x11, &[0; 5000]),
        &v2(0x2f, 0x11, &[0; 12]),
        b"",
    ] {
        let mut client = kirin.connect();
        client.try_send(bytes);
        if bytes.is_empty() {
            client.end();
        }
        assert_eq!(client.read_to_end(), b"", "{:?}", String::from_utf8_lossy(bytes));
    }
    kirin.wait_for_log("no PROXY protocol header");
    // A header that starts and does not continue is not waited for forever.
    let mut client = kirin.connect();
    assert_eq!(client.send("PROXY TCP4 ").read_to_end(), b"");
}

#[test]
fn a_proxy_header_from_an_untrusted_client_closes_the_connection() {
    let site = site();
    let kirin = serve(&site, "trusted = [\"10.0.0.0/8\", \"unix:\"]\nproxy_protocol = true\n");
    let mut client = kirin.connect();
    client.try_send("PROXY TCP4 10.0.0.1 10.0.0.1 4711 80\r\nGET / HTTP/1.1\r\nHost: test\r\n\r\n");
    assert_eq!(client.read_to_end(), b"");
}

#[test]
fn the_header_comes_before_tls_and_counts_for_both_protocols() {
    let authority = Authority::new("Kirin test authority");
    let site = site().with("ca.pem", authority.pem());
    authority.issue(&["a.test"]).write(&site, "a");
    let kirin = serve(
        &site,
        "trusted = [\"127.0.0.1\"]\nproxy_protocol = true\n\
         [listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }]\n",
    );
    let port = kirin.address().port();
    for (protocol, version) in [("--http1.1", "1.1"), ("--http2", "2")] {
        // curl announces its own address. That is a trusted proxy, so its fields about the client
        // count.
        let output = Command::new("curl")
            .args([
                "-sS",
                "--cacert",
                "ca.pem",
                "--haproxy-protocol",
                protocol,
                "-w",
                " version=%{http_version}",
            ])
            .args([
                "--resolve",
                &format!("a.test:{port}:127.0.0.1"),
                "-H",
                "X-Forwarded-For: 6.6.6.6, 192.0.2.7",
            ])
            .arg(format!("https://a.test:{port}/"))
            .current_dir(site.root())
            .output()
            .expect("curl");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{protocol}: {}", String::from_utf8_lossy(&output.stderr));
        assert!(
            text.contains("REMOTE_ADDR=192.0.2.7 ") && text.contains("url_scheme=https"),
            "{protocol}: {text}"
        );
        assert!(text.ends_with(&format!("version={version}")), "{protocol}: {text}");
    }
    wait_for_access(&site, "192.0.2.7 - - [");
    // TLS without the header is not a header.
    let output = Command::new("curl")
        .args(["-sSk", &format!("https://127.0.0.1:{port}/")])
        .output()
        .expect("curl");
    assert!(!output.status.success());
}

#[test]
fn connections_are_counted_for_the_client_that_the_balancer_announces() {
    let site = site();
    let listener =
        "trusted = [\"127.0.0.0/8\"]\nproxy_protocol = true\nconnections_per_address = 2\n";
    let kirin = serve(&site, listener);
    let announced = |client: &str| {
        let mut connection = kirin.connect();
        connection.send(format!("PROXY TCP4 {client} 10.0.0.1 4711 80\r\n"));
        connection
    };
    let mut kept: Vec<Client> = ["192.0.2.1", "192.0.2.1", "192.0.2.2"].map(announced).into();
    for client in &mut kept {
        assert_eq!(client.get("/").status, 200);
    }
    let mut third = announced("192.0.2.1");
    third.try_send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(third.read_to_end(), b"", "closed without an answer");
    assert_eq!(kept[0].get("/").status, 200, "the others go on");
}
