//! Servers with names whose addresses change.
//!
//! The program asks the machine's resolver (getaddrinfo). A file of the test replaces `/etc/hosts`,
//! by Debian's nss_wrapper. So the test needs no name server, and changes nothing on the machine.

use std::fs::File;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use kirin_tests::{ADMIN, Backend, Kirin, Site, kirin_command, wait_for};

/// Returns the path of the library of `libnss-wrapper`.
fn nss_wrapper() -> String {
    let library = format!("/usr/lib/{}-linux-gnu/libnss_wrapper.so", std::env::consts::ARCH);
    assert!(Path::new(&library).exists(), "{library} is not there: package libnss-wrapper");
    library
}

/// Sets the addresses of the name `api.test`.
fn name_has(site: &Site, addresses: &[Ipv4Addr]) {
    let lines: String = addresses.iter().map(|address| format!("{address} api.test\n")).collect();
    // The new file is written beside the old one, because it may be read at any time.
    let (next, hosts) = (site.path("hosts.next"), site.path("hosts"));
    std::fs::write(&next, format!("127.0.0.1 localhost\n{lines}")).expect("hosts");
    // nss_wrapper reads the file again when the second of its change differs.
    static CHANGES: AtomicU64 = AtomicU64::new(0);
    let time =
        SystemTime::now() + Duration::from_secs(10 * (1 + CHANGES.fetch_add(1, Ordering::SeqCst)));
    File::options()
        .append(true)
        .open(&next)
        .and_then(|file| file.set_modified(time))
        .expect("its time");
    std::fs::rename(next, hosts).expect("hosts");
}

/// Starts servers that answer with the last number of their address, all on one port. So only the
/// addresses of a name change.
fn servers(last: &[u8]) -> (u16, Vec<Backend>) {
    let bind = |last: u8, port: u16| TcpListener::bind((Ipv4Addr::new(127, 0, 7, last), port));
    let (port, listeners) = wait_for("a port that is free at all addresses", || {
        let mut listeners = vec![bind(last[0], 0).expect("a port")];
        let port = listeners[0].local_addr().expect("its address").port();
        for last in &last[1..] {
            listeners.push(bind(*last, port).ok()?);
        }
        Some((port, listeners))
    });
    let backends = listeners.into_iter().zip(last).map(|(listener, last)| {
        let body = format!("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n{last}");
        Backend::start_on(listener, move |mut connection| {
            while connection.read_request().is_some() {
                connection.send(&body);
            }
        })
    });
    (port, backends.collect())
}

fn start(site: &Site, port: u16) -> Kirin {
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n{ADMIN}\
         [[upstream]]\nname = \"api\"\nservers = [\"api.test:{port}\"]\nresolve = \"1s\"\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n"
    );
    std::fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
    Kirin::start_command(
        kirin_command(site)
            .args(["serve", "--config", "kirin.toml"])
            .env("LD_PRELOAD", nss_wrapper())
            .env("NSS_WRAPPER_HOSTS", site.path("hosts")),
    )
}

fn address(last: u8) -> Ipv4Addr {
    Ipv4Addr::new(127, 0, 7, last)
}

#[test]
fn requests_follow_a_name_to_its_new_address() {
    let site = Site::new();
    let (port, servers) = servers(&[1, 2]);
    name_has(&site, &[address(1)]);
    let kirin = start(&site, port);
    let mut client = kirin.connect();
    assert_eq!((client.get("/").text(), client.get("/").text()), ("1".into(), "1".into()));
    name_has(&site, &[address(2)]);
    wait_for("the new address", || (client.get("/").text() == "2").then_some(()));
    for _ in 0..10 {
        assert_eq!(client.get("/").text(), "2");
    }
    kirin.wait_for_log(&format!("api.test:{port} (127.0.7.2:{port})"));
    assert_eq!(servers[1].connections(), 1);
    let status = kirin.status();
    let known = status["upstreams"]["api"]["servers"].as_array().expect("servers").len();
    assert_eq!(known, 1, "{status:#}");
}

#[test]
fn addresses_of_a_name_are_servers_and_remaining_ones_keep_connections() {
    let site = Site::new();
    let (port, servers) = servers(&[3, 4]);
    name_has(&site, &[address(3)]);
    let kirin = start(&site, port);
    let mut client = kirin.connect();
    assert_eq!(client.get("/").text(), "3");
    name_has(&site, &[address(4), address(3)]);
    wait_for("the other address", || (client.get("/").text() == "4").then_some(()));
    let answers: Vec<String> = (0..20).map(|_| client.get("/").text()).collect();
    assert_eq!(answers.iter().filter(|answer| *answer == "3").count(), 10, "{answers:?}");
    assert_eq!((servers[0].connections(), servers[1].connections()), (1, 1));
}

#[test]
fn a_name_that_cannot_be_looked_up_keeps_its_addresses() {
    let site = Site::new();
    let (port, _servers) = servers(&[5]);
    name_has(&site, &[address(5)]);
    let kirin = start(&site, port);
    let mut client = kirin.connect();
    assert_eq!(client.get("/").text(), "5");
    name_has(&site, &[]);
    kirin.wait_for_log("its old addresses stay");
    assert_eq!(client.get("/").text(), "5");
}

#[test]
fn a_name_without_an_address_gets_requests_as_soon_as_it_has_one() {
    let site = Site::new();
    let (port, _servers) = servers(&[6]);
    name_has(&site, &[]);
    let kirin = start(&site, port);
    let mut client = kirin.connect();
    assert_eq!(client.get("/").status, 502);
    kirin.wait_for_log("its names have no addresses");
    assert!(kirin.log().contains("it gets no requests"), "{}", kirin.log());
    name_has(&site, &[address(6)]);
    wait_for("the address", || (client.get("/").status == 200).then_some(()));
}
