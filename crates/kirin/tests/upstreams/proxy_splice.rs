//! Large bodies of servers, which the kernel moves to the client: complete and correct, at the
//! client's pace, with few descriptors.

use std::io::{Read, Write};
use std::net::SocketAddr;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::OnceLock;

use kirin_tests::{Backend, Client, Kirin, Site, wait_for};

/// Returns a body of this length. No two pieces of it are equal.
fn body(bytes: usize) -> &'static [u8] {
    /// No body is longer.
    const LONGEST: usize = 9 << 20;
    static LONGEST_BODY: OnceLock<Vec<u8>> = OnceLock::new();
    let make = || (0u32..).flat_map(u32::to_be_bytes).take(LONGEST).collect();
    &LONGEST_BODY.get_or_init(make)[..bytes]
}

/// Starts a server that answers `/N` with a body of N bytes, in pieces of several sizes.
fn backend() -> Backend {
    Backend::start(|mut connection| {
        while let Some(asked) = connection.read_request() {
            let bytes: usize = asked.target().trim_start_matches('/').parse().expect("a number");
            if !connection.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n")) {
                return;
            }
            let (body, mut at) = (body(bytes), 0);
            for piece in [1, 1000, 70_000, 400_000, usize::MAX] {
                let end = body.len().min(at + piece.min(body.len()));
                if !connection.send(&body[at..end]) {
                    return;
                }
                at = end;
            }
        }
    })
}

fn proxy(server: &str) -> (Site, Kirin) {
    let site = Site::new();
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[upstream]]\nname = \"api\"\nservers = [\"{server}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n"
    );
    let kirin = Kirin::start(&site, &config);
    (site, kirin)
}

const LARGE: usize = 3_000_000;

/// Starts a Kirin with a file. It proxies to itself by a unix socket, and with `/kept` in front of
/// the path by its cache.
fn site_in_front_of_itself() -> (Site, Kirin) {
    let site = Site::new().with("pages/large.bin", body(LARGE));
    let config = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[listener]]\naddress = \"unix:behind.sock\"\n\
         [[listener]]\naddress = \"unix:front.sock\"\n[[upstream]]\nname = \"api\"\nservers = [\"unix:behind.sock\"]\n\
         [[route]]\npath = \"/pages\"\ntry = [\"files:.\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\nrewrite = \"/pages\"\n\
         [[route]]\npath = \"/kept\"\ntry = [\"proxy:api\"]\nrewrite = \"/pages\"\ncache = true\n";
    let kirin = Kirin::start(&site, config);
    (site, kirin)
}

/// Returns the pipes that a process has open.
fn pipes(kirin: &Kirin) -> usize {
    let directory = format!("/proc/{}/fd", kirin.pid());
    let open = std::fs::read_dir(directory).expect("its descriptors").flatten();
    let targets = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("pipe:")).count()
}

#[test]
fn bodies_of_any_length_arrive_as_they_were_sent_and_the_connection_is_kept() {
    let backend = backend();
    let (_site, kirin) = proxy(&backend.address().to_string());
    let mut client = kirin.connect();
    for bytes in [0, 1, 65_535, 65_536, 65_537, 131_072, 1 << 20, (8 << 20) + 3, 5] {
        let reply = client.get(&format!("/{bytes}"));
        assert!(reply.body == body(bytes), "{bytes}: {} bytes", reply.body.len());
    }
    assert_eq!(backend.connections(), 1);
}

#[test]
fn bodies_come_from_unix_sockets_and_through_filters_too() {
    let (_site, kirin) = site_in_front_of_itself();
    let mut client = kirin.connect();
    for target in ["/large.bin", "/kept/large.bin", "/large.bin", "/pages/large.bin"] {
        let reply = client.get(target);
        assert!(
            reply.status == 200 && reply.body == body(LARGE),
            "{target}: {} {}",
            reply.head,
            reply.body.len()
        );
    }
    let ranged = client.request("GET", "/large.bin", "Range: bytes=1000000-\r\n");
    assert!(ranged.status == 206 && ranged.body == body(LARGE)[1_000_000..], "{}", ranged.head);
}

#[test]
fn clients_that_do_not_read_hold_few_pipes_and_later_get_everything() {
    // Unix sockets have small buffers, so a client that does not read blocks everything.
    let (site, kirin) = site_in_front_of_itself();
    let before = pipes(&kirin);
    let mut clients: Vec<UnixStream> = (0..100)
        .map(|_| {
            let mut client = UnixStream::connect(site.path("front.sock")).expect("connect");
            let request = "GET /large.bin HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
            client.write_all(request.as_bytes()).expect("send");
            client
        })
        .collect();
    wait_for("all pipes that there may be", || (pipes(&kirin) >= before + 2 * 64).then_some(()));
    let mut late = UnixStream::connect(site.path("front.sock")).expect("connect");
    late.write_all(b"GET /large.bin HTTP/1.0\r\nHost: test\r\n\r\n").expect("send");
    clients.insert(0, late);
    let body = body(LARGE);
    for client in &mut clients {
        let mut all = Vec::new();
        client.read_to_end(&mut all).expect("everything");
        assert!(all.ends_with(body), "{} bytes", all.len());
        assert!(pipes(&kirin) <= before + 2 * (64 + 8));
    }
    wait_for("pipes to be closed", || (pipes(&kirin) <= before + 2 * 8).then_some(()));
}

#[test]
fn a_client_that_disconnects_in_the_middle_leaves_nothing_behind() {
    let backend = backend();
    let (_site, kirin) = proxy(&backend.address().to_string());
    let address: SocketAddr = kirin.address();
    let before = pipes(&kirin);
    for _ in 0..200 {
        let mut client = Client::connect(address);
        client.send("GET /8000000 HTTP/1.1\r\nHost: test\r\n\r\n");
        assert!(client.read_some(100_000) > 0);
        client.reset();
    }
    wait_for("pipes to be closed", || (pipes(&kirin) <= before + 2 * 8).then_some(()));
    let sockets = || {
        std::fs::read_dir(Path::new("/proc").join(kirin.pid().to_string()).join("fd"))
            .map_or(0, Iterator::count)
    };
    wait_for("sockets to be closed", || (sockets() < 60).then_some(()));
    assert_eq!(kirin.get("/100000").body.len(), 100_000);
}
