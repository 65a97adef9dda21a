//! Access logs in the journal of systemd and in syslog daemons.

use std::net::UdpSocket;
use std::os::unix::net::UnixDatagram;

use kirin_tests::{ADMIN, Kirin, Site, wait_for, wait_limit};

fn start(site: &Site, target: &str) -> Kirin {
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"{target}\"\n{ADMIN}\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n"
    );
    Kirin::start(site, &config)
}

fn site() -> Site {
    Site::new().with("public/a", "hello")
}

fn socket(site: &Site) -> UnixDatagram {
    let socket = UnixDatagram::bind(site.path("socket")).expect("a socket");
    socket.set_read_timeout(Some(wait_limit())).expect("a limit");
    socket
}

fn receive(socket: &UnixDatagram) -> String {
    let mut buffer = vec![0; 65536];
    let count = socket.recv(&mut buffer).expect("a datagram");
    String::from_utf8(buffer[..count].to_vec()).expect("UTF-8")
}

fn lost(kirin: &Kirin) -> u64 {
    kirin.status()["access_log_lines_lost"].as_u64().expect("a number")
}

#[test]
fn the_journal_gets_fields() {
    let site = site();
    let journal = socket(&site);
    let kirin = start(&site, "journald:unix:socket");
    kirin.connect().request("GET", "/a", "User-Agent: x\tKIRIN_STATUS=500\r\n");
    let entry = receive(&journal);
    let fields: Vec<_> = entry.lines().collect();
    assert!(fields[0].starts_with("MESSAGE=127.0.0.1 - - ["), "{entry}");
    assert!(
        fields[0].contains("\"GET /a HTTP/1.1\" 200 5 \"-\" \"x\\x09KIRIN_STATUS=500\" files"),
        "{entry}"
    );
    assert_eq!(
        fields[1..5],
        ["SYSLOG_IDENTIFIER=kirin", "PRIORITY=6", "KIRIN_STATUS=200", "KIRIN_PLACE=files"]
    );
    assert!(fields[5].starts_with("KIRIN_REQTIME=0.0"), "{entry}");
    assert!(fields[6].starts_with("KIRIN_REQUEST_ID="), "{entry}");
    assert_eq!(fields.len(), 7, "{entry}");
}

#[test]
fn syslog_daemons_get_the_form_that_they_read() {
    let site = site();
    let daemon = socket(&site);
    let kirin = start(&site, "syslog:unix:socket");
    kirin.get("/a");
    let line = receive(&daemon);
    let text = format!(" kirin[{}]: 127.0.0.1 - - [", kirin.pid());
    assert!(line.starts_with("<190>") && line.contains(&text), "{line}");

    let daemon = UdpSocket::bind("127.0.0.1:0").expect("a port");
    daemon.set_read_timeout(Some(wait_limit())).expect("a limit");
    let site = self::site();
    let kirin = start(&site, &format!("syslog:{}", daemon.local_addr().expect("an address")));
    kirin.get("/a");
    let mut buffer = [0; 4096];
    let count = daemon.recv(&mut buffer).expect("a datagram");
    let line = String::from_utf8_lossy(&buffer[..count]).into_owned();
    let text = format!(" kirin {} - - 127.0.0.1 - - [", kirin.pid());
    assert!(line.starts_with("<190>1 2") && line.contains(&text), "{line}");
}

#[test]
fn a_missing_daemon_costs_lines_and_gets_those_after_its_start() {
    let site = site();
    let kirin = start(&site, "journald:unix:socket");
    assert_eq!(kirin.get("/a?early").status, 200);
    kirin.wait_for_log("access log cannot be written");
    assert_eq!(lost(&kirin), 1);
    let journal = socket(&site);
    assert_eq!(kirin.get("/a?late").status, 200);
    assert!(receive(&journal).contains("GET /a?late "));
    kirin.wait_for_log("access log is written again");
    assert_eq!(lost(&kirin), 1);
}

#[test]
fn a_stuck_daemon_stops_no_loop_and_its_lines_are_counted() {
    let site = site();
    let _stuck = socket(&site);
    let kirin = start(&site, "syslog:unix:socket");
    let agent = format!("User-Agent: {}\r\n", "a".repeat(7000));
    let mut client = kirin.connect();
    wait_for("lost lines", || {
        for _ in 0..300 {
            assert_eq!(client.request("GET", "/a", &agent).status, 200);
        }
        (lost(&kirin) > 0).then_some(())
    });
    assert_eq!(kirin.get("/a").status, 200);
}
