//! The access log of responses that were cut, through the built program.

use std::io::{Read, Write};
use std::net::TcpListener;

use kirin_tests::{Client, Http2Client, Kirin, Memcached, Site, wait_for};

const LARGE: usize = 40_000_000;

const APP: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    my $text = ['Content-Type' => 'text/plain'];
    if ($env->{PATH_INFO} eq '/app/cut') {
        return sub { my $writer = shift->([200, $text]); $writer->write("first\n"); kill KILL => $$ };
    }
    return sub {
        my $writer = shift->([200, $text]);
        $writer->write('x' x 1_000_000) for 1 .. 40;
        $writer->close;
    };
};
"#;

struct Running {
    site: Site,
    kirin: Kirin,
}

fn serve() -> Running {
    let server = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = server.local_addr().expect("an address");
    std::thread::spawn(move || {
        for connection in server.incoming() {
            let mut connection = connection.expect("a connection");
            std::thread::spawn(move || {
                let mut request = [0; 4096];
                let count = connection.read(&mut request).unwrap_or(0);
                let dies = String::from_utf8_lossy(&request[..count]).contains("/proxy/cut");
                let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {LARGE}\r\n\r\n");
                let body = vec![b'x'; if dies { 1_000_000 } else { LARGE }];
                let _ = connection
                    .write_all(head.as_bytes())
                    .and_then(|()| connection.write_all(&body));
            });
        }
    });
    let site = Site::new()
        .with("app.psgi", APP)
        .with("public/large.bin", vec![b'x'; LARGE])
        .with("public/small", "small");
    let kirin = Kirin::start(
        &site,
        &format!(
            "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n\
             [store]\nmemory = \"64MB\"\nitem_limit = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n\
             [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
             [[upstream]]\nname = \"far\"\nservers = [\"{address}\"]\n\
             [[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\"]\ncompress = false\n\
             [[route]]\npath = \"/app\"\ntry = [\"app:web\"]\n\
             [[route]]\npath = \"/proxy\"\ntry = [\"proxy:far\"]\n"
        ),
    );
    let page = [&b"text/plain\r\n"[..], &vec![b'x'; 12_000_000]].concat();
    Memcached::connect(&site.path("m.sock")).set("/page", &page);
    Running { site, kirin }
}

impl Running {
    /// Returns the line for `target`: status, bytes, place and the text behind the seconds.
    fn line(&self, target: &str) -> (u16, u64, String, String) {
        let line = wait_for(&format!("{target} in the log"), || {
            let log = std::fs::read_to_string(self.site.path("access.log")).ok()?;
            log.lines().find(|line| line.contains(&format!(" {target} "))).map(str::to_owned)
        });
        let parts: Vec<&str> = line.split('"').collect();
        let [_, _, status, _, _, _, end] = parts[..] else {
            panic!("not the combined format: {line}")
        };
        let (status, bytes) = status.trim().split_once(' ').expect("status and bytes");
        let end: Vec<&str> = end.trim().split(' ').collect();
        assert!(end[1].parse::<f64>().is_ok(), "{line}");
        let rest = end[2..].join(" ");
        (status.parse().expect("a status"), bytes.parse().expect("bytes"), end[0].to_owned(), rest)
    }
}

#[test]
fn a_response_that_its_client_leaves_is_logged_as_cut() {
    let running = serve();
    for (target, place, size) in [
        ("/large.bin?1", "files", LARGE),
        ("/page", "store", 12_000_000),
        ("/app/large", "app", LARGE),
        ("/proxy/large", "proxy", LARGE),
    ] {
        let mut client: Client = running.kirin.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let mut seen = 0;
        while seen < 300_000 {
            seen += client.read_some(300_000);
        }
        client.reset();
        let (status, bytes, by, rest) = running.line(target);
        assert_eq!((status, &*by, &*rest), (200, place, "cut"), "{target} {bytes}");
        assert!(bytes >= 250_000 && bytes < size as u64, "{target}: {bytes}");
    }
}

#[test]
fn a_response_whose_source_dies_is_logged_as_cut() {
    let running = serve();
    for (target, place, at_least) in [("/app/cut", "app", 6), ("/proxy/cut", "proxy", 1_000_000)] {
        let mut client = running.kirin.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        client.read_to_end();
        let (status, bytes, by, rest) = running.line(target);
        assert_eq!((status, &*by, &*rest), (200, place, "cut"), "{target}");
        // For chunks, their framing counts too.
        assert!((at_least..at_least + 10).contains(&bytes), "{target}: {bytes}");
    }
}

#[test]
fn streams_that_are_cut_are_logged_as_cut() {
    let running = serve();
    for target in ["/large.bin?2", "/page", "/app/large", "/proxy/large"] {
        let mut client = Http2Client::connect(running.kirin.address());
        let pending = client.begin("GET", target, &[]);
        let (status, body) = client.head_of(pending);
        assert_eq!(status, 200);
        drop((body, client));
        let (status, bytes, _, rest) = running.line(target);
        assert_eq!((status, &*rest), (200, "cut"), "{target}");
        assert!(bytes < 10_000_000, "{target}: {bytes}");
    }
    let mut client = Http2Client::connect(running.kirin.address());
    let pending = client.begin("GET", "/app/cut", &[]);
    assert!(client.try_finish(pending).is_err());
    let (status, bytes, _, rest) = running.line("/app/cut");
    assert_eq!((status, bytes, &*rest), (200, 6, "cut"));
}

#[test]
fn a_complete_response_is_not_logged_as_cut() {
    let running = serve();
    for (target, size) in [
        ("/small", 5),
        ("/large.bin", LARGE),
        ("/page", 12_000_000),
        ("/app/large", LARGE),
        ("/proxy/large", LARGE),
    ] {
        let mut client = running.kirin.connect();
        assert_eq!(client.get(target).body.len(), size, "{target}");
        let (status, bytes, _, rest) = running.line(target);
        assert_eq!((status, bytes, &*rest), (200, size as u64, ""), "{target}");
    }
}
