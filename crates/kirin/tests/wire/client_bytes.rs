//! Bytes that clients can make Kirin hold, in memory and on disk: a table of attacks, with the
//! bytes that each has sent and the bytes that are held. In each case another address is served at
//! the same time.

use std::io::Write;
use std::net::{SocketAddrV4, TcpStream};
use std::process::Command;

use kirin_tests::{ADMIN, Backend, Kirin, Site, wait_for};
use rustix::net::{AddressFamily, SocketType};
use serde_json::Value;

const MIB: u64 = 1 << 20;

/// Limits of the tests, small enough to be reached quickly.
const MEMORY: u64 = 8 * MIB;
const DISK: u64 = 32 * MIB;

/// The growth of the process that is allowed beyond the account: connections, workers' buffers,
/// memory that the allocator keeps.
const SLACK: u64 = 24 * MIB;

/// An application. It answers `/N` with N bytes, and `/cached/N` with as many that may be kept. It
/// does not answer `/wait` until the file `gate` exists.
const APP: &str = r"
use v5.16; use warnings;
my $block = 'x' x 65_536;
sub {
    my $env = shift;
    if ($env->{PATH_INFO} eq '/wait') { select undef, undef, undef, 0.02 until -e 'gate' }
    my ($length) = $env->{PATH_INFO} =~ m{(\d+)};
    $length //= 5;
    return [200, ['Content-Type' => 'text/plain', 'Content-Length' => $length], ['x' x $length]]
        if $env->{PATH_INFO} !~ m{^/cached};
    return sub {
        my $writer = shift->([200, ['Content-Type' => 'text/plain', 'Cache-Control' => 'max-age=60']]);
        $writer->write('x' x 50_000) for 1 .. $length / 50_000;
        $writer->close;
    };
};
";

/// One client: the bytes that its connections send, and their number.
struct Attack {
    name: &'static str,
    /// The bytes that are sent on each connection, which then neither sends nor reads.
    bytes: Vec<u8>,
    connections: usize,
    /// Whether the client reaches the limit. Otherwise almost nothing is held.
    is_refused: bool,
}

fn attack(name: &'static str, connections: usize, bytes: Vec<u8>) -> Attack {
    Attack { name, bytes, connections, is_refused: true }
}

fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).expect("a frame").to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Encodes an integer of HPACK with a prefix of seven bits (RFC 7541 section 5.1).
fn integer(mut value: usize, first: u8) -> Vec<u8> {
    if value < 127 {
        return vec![first | value as u8];
    }
    let mut bytes = vec![first | 127];
    value -= 127;
    while value >= 128 {
        bytes.push((value % 128) as u8 | 128);
        value /= 128;
    }
    bytes.push(value as u8);
    bytes
}

/// Sends `GET` of `path`, each with another query, on `streams` streams. The client allows no byte
/// of a response. `more` is behind the pseudo fields.
fn http2(path: &str, streams: u32, more: impl Fn(u32) -> Vec<u8>) -> Vec<u8> {
    let mut bytes = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec();
    // SETTINGS_INITIAL_WINDOW_SIZE = 0.
    bytes.extend(frame(4, 0, 0, &[0, 4, 0, 0, 0, 0]));
    for index in 0..streams {
        let target = format!("{path}?{index}");
        let mut block = vec![0x82, 0x86, 0x01, 1, b'h', 0x04];
        block.extend(integer(target.len(), 0));
        block.extend_from_slice(target.as_bytes());
        block.extend(more(index));
        bytes.extend(frame(1, 5, 2 * index + 1, &block));
    }
    bytes
}

/// Encodes a cookie of 4,000 bytes that is sent once, and then referred to seven times with a byte
/// each.
fn long_head(index: u32) -> Vec<u8> {
    if index > 0 {
        return vec![0xbe; 7];
    }
    let mut block = vec![0x40];
    block.extend(integer(7, 0));
    block.extend_from_slice(b"x-large");
    block.extend(integer(4000, 0));
    block.extend_from_slice(&[b'v'; 4000]);
    block
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: h\r\n\r\n").into_bytes()
}

/// Starts a body that does not end.
fn unfinished(announced: usize, sent: usize) -> Vec<u8> {
    let mut bytes =
        format!("POST /5 HTTP/1.1\r\nHost: h\r\nContent-Length: {announced}\r\n\r\n").into_bytes();
    bytes.resize(bytes.len() + sent, b'x');
    bytes
}

fn attacks() -> Vec<Attack> {
    vec![
        attack(
            "responses of 500 KB, HTTP/2 without a window",
            4,
            http2("/500000", 100, |_| Vec::new()),
        ),
        attack(
            "responses of 3 MB, HTTP/2 without a window",
            2,
            http2("/3000000", 30, |_| Vec::new()),
        ),
        attack(
            "responses of 15 KB, HTTP/2 without a window",
            10,
            http2("/15000", 100, |_| Vec::new()),
        ),
        attack(
            "cached responses of 900 KB, HTTP/2 without a window",
            2,
            http2("/cached/900000", 100, |_| Vec::new()),
        ),
        attack("responses of 12 MB that nobody reads", 30, get("/12000000")),
        attack("bodies of 700 KB without their end", 100, unfinished(700_000, 699_000)),
        attack("bodies of 2 MB without their end", 40, unfinished(2_000_000, 1_900_000)),
        attack("heads of 28 KB that wait for a worker, indexed", 6, http2("/wait", 100, long_head)),
        Attack {
            is_refused: false,
            ..attack("announced bodies of which nothing is sent", 400, unfinished(60_000_000, 0))
        },
    ]
}

fn start() -> (Site, Kirin) {
    let site = Site::new().with("app.psgi", APP);
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"*:0\"\n{ADMIN}\
         [limits]\nclient_memory = \"8MB\"\nclient_disk = \"32MB\"\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
         [store]\nmemory = \"4MB\"\n\
         [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n\
         [[route]]\npath = \"/cached\"\ntry = [\"app:web\"]\ncache = true\n"
    );
    let kirin = Kirin::start(&site, &config);
    (site, kirin)
}

/// Returns the resident memory of the process, without its workers.
fn resident(kirin: &Kirin) -> u64 {
    let status =
        std::fs::read_to_string(format!("/proc/{}/status", kirin.pid())).expect("its status");
    let line = status.lines().find(|line| line.starts_with("RssAnon:")).expect("RssAnon");
    line.split_whitespace().nth(1).expect("a number").parse::<u64>().expect("kB") * 1024
}

fn number(clients: &Value, key: &str) -> u64 {
    clients[key].as_u64().unwrap_or_else(|| panic!("no {key} in {clients:#}"))
}

fn refused(clients: &Value) -> u64 {
    number(clients, "memory_refused") + number(clients, "disk_refused")
}

/// Connects from 127.0.0.`host`.
fn connect_from(host: u8, kirin: &Kirin) -> TcpStream {
    let socket =
        rustix::net::socket(AddressFamily::INET, SocketType::STREAM, None).expect("a socket");
    rustix::net::bind(&socket, &SocketAddrV4::new([127, 0, 0, host].into(), 0))
        .expect("an address");
    let server = SocketAddrV4::new([127, 0, 0, 1].into(), kirin.address().port());
    rustix::net::connect(&socket, &server).expect("connect");
    TcpStream::from(socket)
}

/// Uploads 300 KB from a client with another address. Returns the response and its status.
fn upload_from(host: u8, kirin: &Kirin) -> String {
    let url = format!("http://127.0.0.1:{}/7", kirin.address().port());
    let body = "x".repeat(300_000);
    let mut curl = Command::new("curl")
        .args([
            "-s",
            "--interface",
            &format!("127.0.0.{host}"),
            "--max-time",
            "20",
            "-w",
            "%{http_code}",
        ])
        .args(["-H", "Content-Type: application/octet-stream", "--data-binary", "@-", &url])
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("curl");
    // A refused client need not read all of it.
    let _ = curl.stdin.take().expect("stdin").write_all(body.as_bytes());
    let output = curl.wait_with_output().expect("curl");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn run(attack: &Attack) {
    let (site, kirin) = start();
    assert_eq!(kirin.get("/5").status, 200);
    let before = resident(&kirin);
    let mut connections = Vec::new();
    let mut sent = 0;
    for _ in 0..attack.connections {
        let mut connection = TcpStream::connect(kirin.address()).expect("connect");
        connection.set_write_timeout(Some(kirin_tests::wait_limit())).expect("a timeout");
        // A refused client may be cut while it sends.
        if connection.write_all(&attack.bytes).is_ok() {
            sent += attack.bytes.len() as u64;
        }
        connections.push(connection);
    }
    let clients = if attack.is_refused {
        wait_for(&format!("a refusal: {}", attack.name), || {
            Some(kirin.status()["clients"].clone()).filter(|clients| refused(clients) > 0)
        })
    } else {
        kirin.status()["clients"].clone()
    };
    if attack.name.contains("wait") {
        std::fs::write(site.path("gate"), "").expect("the gate");
    }
    assert_eq!(upload_from(2, &kirin), "xxxxxxx200", "{}\n{}", attack.name, kirin.log());
    let held = resident(&kirin).saturating_sub(before);
    println!(
        "{:50} {:>9} KB sent, {:>7} KB more in memory; account: {:>6} KB memory, {:>6} KB disk, {} refused",
        attack.name,
        sent / 1024,
        held / 1024,
        number(&clients, "memory_bytes") / 1024,
        number(&clients, "disk_bytes") / 1024,
        refused(&clients),
    );
    // One address has at most half.
    assert!(number(&clients, "memory_bytes") <= MEMORY / 2 + MIB, "{}: {clients:#}", attack.name);
    assert!(number(&clients, "disk_bytes") <= DISK / 2 + MIB, "{}: {clients:#}", attack.name);
    let allowed = if attack.is_refused { MEMORY + SLACK } else { SLACK / 2 };
    assert!(held <= allowed, "{}: {held} bytes more, {clients:#}", attack.name);
    drop(connections);
    wait_for("everything to be given back", || {
        let clients = kirin.status()["clients"].clone();
        (number(&clients, "memory_bytes") + number(&clients, "disk_bytes") == 0).then_some(())
    });
}

#[test]
fn no_client_makes_kirin_hold_more_than_its_limits() {
    for attack in &attacks() {
        run(attack);
    }
}

#[test]
fn addresses_that_fill_the_account_together_lose_the_one_that_holds_most() {
    let (_site, kirin) = start();
    // Each takes half of what the earlier ones have left.
    let attack = http2("/500000", 100, |_| Vec::new());
    let mut connections = Vec::new();
    for host in 2..8 {
        let mut connection = connect_from(host, &kirin);
        connection.write_all(&attack).expect("a client sends");
        connections.push(connection);
    }
    wait_for("a cut", || {
        let clients = kirin.status()["clients"].clone();
        (number(&clients, "connections_cut") > 0).then_some(())
    });
    kirin.wait_for_log("connections are cut: most of limits.client_memory");
    // The remaining clients may take the freed room, until they are cut, too.
    wait_for("room for another client", || (upload_from(9, &kirin) == "xxxxxxx200").then_some(()));
}

#[test]
fn a_listener_can_have_less_than_all() {
    let site = Site::new().with("app.psgi", APP);
    let config = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\nclient_memory = \"1MB\"\nclient_disk = \"1MB\"\n\
         [[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n\
         [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";
    let kirin = Kirin::start(&site, config);
    let upload = |listener| {
        let body = vec![b'x'; 3_000_000];
        let mut client = kirin_tests::Client::connect(kirin.address_of(listener));
        client.try_send(format!(
            "POST /5 HTTP/1.1\r\nHost: h\r\nContent-Length: {}\r\n\r\n",
            body.len()
        ));
        client.try_send(&body);
        client.read_reply()
    };
    let reply = upload(0);
    assert_eq!((reply.status, reply.field("retry-after")), (503, Some("5")));
    assert_eq!(upload(1).status, 200);
}

#[test]
fn a_body_without_room_is_refused_alike_by_applications_upstreams_and_scripts() {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("read.lua", "return function(request) return #request:body() end");
    let backend = Backend::start(|_| {});
    let config = format!(
        r#"
threads = 1
[lua]
body_limit = "8MB"
[[listener]]
address = "127.0.0.1:0"
client_memory = "1MB"
client_disk = "1MB"
[[app]]
name = "web"
load = "app.psgi"
workers = 1
[[upstream]]
name = "api"
servers = ["{}"]
[[route]]
path = "/app"
try = ["app:web"]
[[route]]
path = "/proxy"
try = ["proxy:api"]
request_buffering = true
[[route]]
path = "/script"
try = ["lua:read.lua"]
"#,
        backend.address()
    );
    let kirin = Kirin::start(&site, &config);
    let body = vec![b'x'; 3_000_000];
    for path in ["/app", "/proxy", "/script"] {
        let mut client = kirin.connect();
        let length = body.len();
        client.try_send(format!(
            "POST {path} HTTP/1.1\r\nHost: h\r\nContent-Length: {length}\r\n\r\n"
        ));
        client.try_send(&body);
        let reply = client.read_reply();
        assert_eq!((reply.status, reply.field("retry-after")), (503, Some("5")), "{path}");
    }
}

#[test]
fn limits_without_room_for_one_upload_are_errors() {
    let site = Site::new().with("app.psgi", APP);
    for (key, config) in [
        (
            "limits.client_memory",
            "[limits]\nclient_memory = \"10KB\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n",
        ),
        ("client_disk", "[[listener]]\naddress = \"127.0.0.1:0\"\nclient_disk = \"0B\"\n"),
    ] {
        let rest = "[[route]]\npath = \"/\"\ntry = [\"files:.\"]\n";
        std::fs::write(site.path("kirin.toml"), format!("{config}{rest}")).expect("a file");
        let output = kirin_tests::run_kirin(&site, &["serve", "--config", "kirin.toml"]);
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success());
        assert!(
            message.contains(&format!("`{key}` is")) && message.contains("at least 1MB"),
            "{message}"
        );
    }
}
