//! Client connections over upgrades: those that can go to the new program do, and clients do not
//! notice.

use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::net::UnixStream;

use kirin_tests::{Client, Http2Client, wait_for, wait_limit};
use rustix::process::Signal;

use super::{CONFIG, Service};

const GET: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Returns the front that answers on a connection.
fn front(client: &mut Client) -> String {
    let reply = client.send(GET).read_reply();
    assert_eq!(reply.status, 200, "{}", reply.head);
    assert_eq!(reply.field("connection"), None, "{}", reply.head);
    reply.text().split(' ').next().expect("a pid").to_owned()
}

#[test]
fn idle_connections_go_on_over_upgrades() {
    let service = Service::start(CONFIG);
    let first = service.pid().expect("a pid").to_string();
    let mut kept: Vec<Client> = (0..50).map(|_| Client::connect(service.address())).collect();
    for client in &mut kept {
        assert_eq!(front(client), first);
    }
    // Nothing has come on these.
    let mut silent: Vec<Client> = (0..10).map(|_| Client::connect(service.address())).collect();
    let mut unix = BufReader::new(UnixStream::connect(service.site.path("web.sock")).expect("it"));
    for _ in 0..3 {
        let serving = service.upgrade().to_string();
        for client in &mut kept {
            assert_eq!(front(client), serving);
        }
        unix.get_mut().write_all(GET.as_bytes()).expect("it is open");
        let mut line = String::new();
        while unix.read_line(&mut line).expect("an answer") > 2 {}
        assert!(line.starts_with("HTTP/1.1 200 OK"), "{line}");
        let length = line.lines().find_map(|field| field.strip_prefix("Content-Length: "));
        let mut body = vec![0; length.and_then(|length| length.parse().ok()).expect("a length")];
        unix.read_exact(&mut body).expect("a body");
        assert!(String::from_utf8_lossy(&body).starts_with(&serving));
    }
    let serving = service.pid().expect("a pid").to_string();
    for client in &mut silent {
        assert_eq!(front(client), serving);
    }
}

#[test]
fn a_busy_connection_goes_on_after_its_response() {
    let service = Service::start(CONFIG);
    let first = service.pid().expect("a pid");
    let mut busy = Client::connect(service.address());
    busy.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    service.site.wait_for_files("begun.", 1);
    service.signal(Signal::USR2);
    let second = wait_for("the next program", || service.pid().filter(|pid| *pid != first));
    wait_for("its answer", || service.get("/").starts_with(&format!("{second} ")).then_some(()));
    std::fs::write(service.site.path("go"), "").expect("go");
    let reply = busy.read_reply();
    assert!(reply.text().starts_with(&format!("{first} ")));
    assert_eq!(reply.field("connection"), None, "{}", reply.head);
    wait_for("the end of the old program", || super::has_ended(first).then_some(()));
    assert_eq!(front(&mut busy), second.to_string());
}

#[test]
fn a_connection_behind_a_proxy_header_keeps_its_client() {
    let config = format!(
        "{}access_log = \"access.log\"\ntrusted = [\"127.0.0.1\"]\nproxy_protocol = true\n{}",
        "[[listener]]\naddress = \"127.0.0.1:0\"\n",
        CONFIG.replace("threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n", "")
    );
    let service = Service::start(&format!("threads = 2\n{config}"));
    let header = "PROXY TCP4 192.0.2.7 192.0.2.1 1000 80\r\n";
    let mut client = Client::connect(service.address());
    assert_eq!(client.send(format!("{header}{GET}")).read_reply().status, 200);
    // A part of the header has come.
    let mut late = Client::connect(service.address());
    late.send(&header[..10]);
    wait_for("two connections", || (service.status()["connections"] == 2).then_some(()));
    // Nothing has come.
    let mut silent = Client::connect(service.address());
    let second = service.upgrade().to_string();
    assert_eq!(front(&mut client), second);
    assert_eq!(late.try_send(format!("{}{GET}", &header[10..])).read_to_end(), b"");
    assert_eq!(silent.send(format!("{header}{GET}")).read_reply().status, 200);
    wait_for("all lines", || {
        let log = std::fs::read_to_string(service.site.path("access.log")).ok()?;
        (log.matches("192.0.2.7 ").count() == 3).then_some(())
    });
}

#[test]
fn http2_is_ended_politely() {
    let service = Service::start(CONFIG);
    let mut client = Http2Client::connect(service.address());
    assert_eq!(client.get("/").status, 200);
    service.upgrade();
    let refused = client.try_begin("GET", "/", &[], true).map(|pending| client.try_finish(pending));
    assert!(!matches!(refused, Ok(Ok(_))), "the connection has ended");
}

/// A memcached client as raw bytes.
struct Raw(BufReader<UnixStream>);

impl Raw {
    fn connect(service: &Service) -> Self {
        let stream = UnixStream::connect(service.site.path("store.sock")).expect("the store");
        stream.set_read_timeout(Some(wait_limit())).expect("a limit");
        Self(BufReader::new(stream))
    }

    fn send(&mut self, bytes: &str) {
        self.0.get_mut().write_all(bytes.as_bytes()).expect("the connection is open");
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        assert!(self.0.read_line(&mut line).expect("an answer") > 0, "the connection is open");
        line.trim_end().to_owned()
    }
}

#[test]
fn memcached_clients_go_on_over_upgrades() {
    let service = Service::start(CONFIG);
    let mut clients: Vec<Raw> = (0..20).map(|_| Raw::connect(&service)).collect();
    for round in 0..3 {
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(&format!("ms key{number} 1\r\n{round}\r\n"));
            assert_eq!(client.line(), "HD");
        }
        service.upgrade();
        for (number, client) in clients.iter_mut().enumerate() {
            client.send(&format!("mg key{number} v\r\n"));
            assert_eq!((client.line(), client.line()), ("VA 1".into(), round.to_string()));
        }
    }
}

#[test]
fn a_memcached_command_that_has_begun_is_answered_first() {
    let service = Service::start(CONFIG);
    let first = service.pid().expect("a pid");
    // The old program has to be there for a while.
    let mut busy = Client::connect(service.address());
    busy.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    service.site.wait_for_files("begun.", 1);
    let mut client = Raw::connect(&service);
    client.send("mn\r\nms key 10\r\n01234");
    assert_eq!(client.line(), "MN");
    service.signal(Signal::USR2);
    let second = wait_for("the next program", || service.pid().filter(|pid| *pid != first));
    wait_for("its answer", || service.get("/").starts_with(&format!("{second} ")).then_some(()));
    client.send("56789\r\n");
    assert_eq!(client.line(), "HD");
    let mut other = Raw::connect(&service);
    wait_for("the item in the new program", || {
        other.send("mg key v\r\n");
        (other.line() == "VA 10").then(|| other.line())
    });
    std::fs::write(service.site.path("go"), "").expect("go");
    busy.read_reply();
    wait_for("the end of the old program", || super::has_ended(first).then_some(()));
    client.send("mg key v\r\n");
    assert_eq!((client.line(), client.line()), ("VA 10".into(), "0123456789".into()));
}

#[test]
fn a_memcached_client_of_a_removed_listener_has_to_leave() {
    let service = Service::start(CONFIG);
    let mut client = Raw::connect(&service);
    client.send("mn\r\n");
    assert_eq!(client.line(), "MN");
    let other = CONFIG.replace("unix:store.sock", "unix:other.sock");
    std::fs::write(service.site.path("kirin.toml"), other).expect("kirin.toml");
    service.upgrade();
    let mut rest = Vec::new();
    // It may be reset, with a command on its way.
    let _ = client.0.read_to_end(&mut rest);
    assert_eq!(rest, b"");
}

#[test]
fn a_slow_memcached_command_is_waited_for_and_seen_at_once() {
    let service = Service::start(CONFIG);
    let first = service.pid().expect("a pid");
    let mut clients: Vec<Raw> = (0..50).map(|_| Raw::connect(&service)).collect();
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&format!("mn\r\nms key{number} 10\r\n01234"));
        assert_eq!(client.line(), "MN");
    }
    service.signal(Signal::USR2);
    wait_for("the next program", || service.pid().filter(|pid| *pid != first));
    service.first.wait_for_log("upgraded: the new program serves");
    for (number, client) in clients.iter_mut().enumerate() {
        client.send("56789\r\n");
        assert_eq!(client.line(), "HD");
        // The new program answers, and has what the old one has stored.
        client.send(&format!("mg key{number} v\r\n"));
        assert_eq!((client.line(), client.line()), ("VA 10".into(), "0123456789".into()));
        client.send(&format!("ms key{number} 3\r\nnew\r\n"));
        assert_eq!(client.line(), "HD");
    }
    wait_for("the end of the old program", || super::has_ended(first).then_some(()));
    for (number, client) in clients.iter_mut().enumerate() {
        client.send(&format!("mg key{number} v\r\n"));
        assert_eq!((client.line(), client.line()), ("VA 3".into(), "new".into()));
    }
}

#[test]
fn a_connection_without_an_idle_moment_goes_after_a_response() {
    let service = Service::start(CONFIG);
    let first = service.pid().expect("a pid");
    let mut client = Client::connect(service.address());
    client.send(GET);
    service.signal(Signal::USR2);
    // The next request is always there before the response to the one before is read.
    wait_for("an answer of the next program", || {
        client.send(GET);
        let reply = client.read_reply();
        assert_eq!((reply.status, reply.field("connection")), (200, None));
        (!reply.text().starts_with(&format!("{first} "))).then_some(())
    });
}

#[test]
fn an_upgrade_waits_for_the_end_of_the_one_before() {
    let service = Service::start(CONFIG);
    let first = service.pid().expect("a pid");
    let mut busy = Client::connect(service.address());
    busy.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    service.site.wait_for_files("begun.", 1);
    service.signal(Signal::USR2);
    let second = wait_for("the next program", || service.pid().filter(|pid| *pid != first));
    wait_for("its answer", || service.get("/").starts_with(&format!("{second} ")).then_some(()));
    service.signal(Signal::USR2);
    service.first.wait_for_log("the upgrade begins when the program before this one has ended");
    std::fs::write(service.site.path("go"), "").expect("go");
    assert!(busy.read_reply().text().starts_with(&format!("{first} ")));
    let third = wait_for("the third program", || {
        service.pid().filter(|pid| ![first, second].contains(pid))
    });
    wait_for("the end of the second", || super::has_ended(second).then_some(()));
    assert_eq!(front(&mut busy), third.to_string());
}
