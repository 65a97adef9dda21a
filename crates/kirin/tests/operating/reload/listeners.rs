//! Listeners that a reload opens and closes.

use std::net::{SocketAddr, TcpListener};
use std::os::unix::net::UnixStream;

use kirin_tests::{
    Authority, Backend, Client, Http2Client, LeasedPort, Site, TlsClient, TlsSetup, run_kirin,
    wait_for,
};
use rustix::process::Signal;
use rustls::ProtocolVersion::TLSv1_3;

use super::Served;

const FIRST: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n";
const ROUTE: &str = "[[route]]\npath = \"/\"\ntry = [\"files:one\"]\n";

fn served() -> Served {
    Served::start(Site::new().with("one/a.txt", "one"), &format!("{FIRST}{ROUTE}"))
}

fn listener(address: &str) -> String {
    format!("[[listener]]\naddress = \"{address}\"\n")
}

fn is_closed(address: SocketAddr) -> bool {
    std::net::TcpStream::connect(address).is_err()
}

#[test]
fn a_listener_opens_and_closes_and_others_do_not_notice() {
    let served = served();
    let port = LeasedPort::lease();
    let address: SocketAddr = ([127, 0, 0, 1], port.number()).into();
    let mut first = served.kirin.connect();
    assert_eq!(first.get("/a.txt").text(), "one");
    let said = served.reload(&format!("{FIRST}{}{ROUTE}", listener(&address.to_string())));
    assert_eq!(said, format!("[[listener]] {address}: added\nreloaded\n"));
    // Both event loops accept on it.
    let mut kept: Vec<Client> = (0..8).map(|_| Client::connect(address)).collect();
    assert!(kept.iter_mut().all(|client| client.get("/a.txt").text() == "one"));
    let status = run_kirin(&served.site, &["status"]);
    let status = String::from_utf8_lossy(&status.stdout).into_owned();
    assert!(status.contains(&format!("http://{address}/")), "{status}");
    let said = served.reload(&format!("{FIRST}{ROUTE}"));
    assert_eq!(said, format!("[[listener]] {address}: removed\nreloaded\n"));
    wait_for("the end of the listener", || is_closed(address).then_some(()));
    // An idle connection has time for a last request.
    let last = kept[0].get("/a.txt");
    assert_eq!((last.text(), last.field("connection")), ("one".into(), Some("close")));
    for client in &mut kept {
        wait_for("the end of a connection", || client.is_ended_after_sending(b"").then_some(()));
    }
    assert_eq!(first.get("/a.txt").text(), "one");
    // Another program can have the port now, and then Kirin again.
    drop(TcpListener::bind(address).expect("a free port"));
    served.reload(&format!("{FIRST}{}{ROUTE}", listener(&address.to_string())));
    assert_eq!(Client::connect(address).get("/a.txt").text(), "one");
}

#[test]
fn a_response_of_a_closed_listener_is_sent_to_its_end() {
    let backend = Backend::start(|mut connection| {
        if connection.read_request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nbegi");
            // It ends when the test has closed its other connection.
            connection.wait_for_end();
        }
    });
    let port = LeasedPort::lease();
    let address: SocketAddr = ([127, 0, 0, 1], port.number()).into();
    let site = Site::new().with("one/a.txt", "one");
    let rest = format!(
        "[[upstream]]\nname = \"api\"\nservers = [\"{}\"]\n[[route]]\npath = \"/slow\"\ntry = [\"proxy:api\"]\n{ROUTE}",
        backend.address()
    );
    let served = Served::start(site, &format!("{FIRST}{}{rest}", listener(&address.to_string())));
    let mut slow = Client::connect(address);
    slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    slow.read_until(b"begi");
    let mut idle = Client::connect(address);
    assert_eq!(idle.get("/a.txt").text(), "one");
    let mut streams = Http2Client::connect(address);
    assert_eq!(streams.get("/a.txt").text(), "one");
    served.reload(&format!("{FIRST}{rest}"));
    wait_for("the end of the listener", || is_closed(address).then_some(()));
    // The idle HTTP/2 connection ends politely.
    streams.wait_for_end().expect("GOAWAY and the end");
    // The response in progress goes on when idle connections have ended.
    wait_for("the end of an idle connection", || idle.is_ended_after_sending(b"").then_some(()));
    assert!(!slow.is_ended_after_sending(b""), "the response was cut");
    // The program's own end does not wait for it for ever.
    served.kirin.signal(Signal::INT);
    assert!(!slow.try_read_until(b"nend"));
}

#[test]
fn a_unix_socket_comes_and_its_file_goes() {
    let served = served();
    let path = served.site.path("web.sock");
    served.reload(&format!("{FIRST}{}{ROUTE}", listener("unix:web.sock")));
    let get = || {
        use std::io::{Read, Write};
        let mut stream = UnixStream::connect(&path).expect("connect");
        stream.write_all(b"GET /a.txt HTTP/1.0\r\n\r\n").expect("send");
        let mut reply = String::new();
        stream.read_to_string(&mut reply).expect("a reply");
        reply
    };
    assert!((0..4).all(|_| get().ends_with("one")));
    served.reload(&format!("{FIRST}{ROUTE}"));
    assert!(!path.exists());
    served.reload(&format!("{FIRST}{}{ROUTE}", listener("unix:web.sock")));
    assert!(get().ends_with("one"));
}

#[test]
fn an_address_in_use_changes_nothing() {
    let served = served();
    let (port, other) = (LeasedPort::lease(), LeasedPort::lease());
    let free: SocketAddr = ([127, 0, 0, 1], port.number()).into();
    let taken: SocketAddr = ([127, 0, 0, 1], other.number()).into();
    let holder = TcpListener::bind(taken).expect("a free port");
    let (free_one, taken_one) = (listener(&free.to_string()), listener(&taken.to_string()));
    let said = served.refused(&format!(
        "{FIRST}{free_one}{taken_one}[[route]]\npath = \"/x\"\nredirect = \"/a.txt\"\n"
    ));
    drop(holder);
    assert!(said.contains(&format!("{taken} is in use by another process")), "{said}");
    assert!(is_closed(free), "the first of two listeners stayed open");
    assert_eq!(served.text("/a.txt"), "one");
}

#[test]
fn tls_comes_to_a_listener_for_new_connections_and_goes_again() {
    let authority = Authority::new("Kirin test authority");
    let served = served();
    authority.issue(&["a.test"]).write(&served.site, "a");
    let tls = "[listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }]\n";
    let mut plain = served.kirin.connect();
    assert_eq!(plain.get("/a.txt").text(), "one");
    served.reload(&format!("{FIRST}{tls}{ROUTE}"));
    assert_eq!(plain.get("/a.txt").text(), "one");
    let setup = TlsSetup::new(&authority, None, TLSv1_3);
    let connect = || TlsClient::connect(served.kirin.address(), "a.test", &setup);
    assert!(connect().expect("a handshake").get_and_close("/a.txt").ends_with("one"));
    let mut encrypted = connect().expect("a handshake");
    served.reload(&format!("{FIRST}{ROUTE}"));
    assert_eq!(served.text("/a.txt"), "one");
    assert!(encrypted.get_and_close("/a.txt").ends_with("one"));
    assert_eq!(plain.get("/a.txt").text(), "one");
    assert!(connect().is_err());
}

#[test]
fn an_upgrade_hands_over_the_listeners_of_now() {
    let served = served();
    let port = LeasedPort::lease();
    let address: SocketAddr = ([127, 0, 0, 1], port.number()).into();
    served.reload(&format!("{FIRST}{}{ROUTE}", listener(&address.to_string())));
    served.kirin.signal(Signal::USR2);
    served.kirin.wait_for_log("upgraded: the new program serves");
    assert_eq!(Client::connect(address).get("/a.txt").text(), "one");
    let status = run_kirin(&served.site, &["status", "--json"]);
    let status: serde_json::Value = serde_json::from_slice(&status.stdout).expect("JSON");
    let pid = status["pid"].as_u64().and_then(|pid| i32::try_from(pid).ok()).expect("a pid");
    let pid = rustix::process::Pid::from_raw(pid).expect("a pid");
    rustix::process::kill_process(pid, Signal::TERM).expect("kill");
    wait_for("the end of both", || is_closed(address).then_some(()));
}
