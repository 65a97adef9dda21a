//! A stop does not disturb clients that connected before it.

use kirin_tests::{Client, Kirin, Site, wait_for};
use rustix::process::Signal;

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

fn serve() -> (Site, Kirin) {
    let site =
        Site::new().with("app.psgi", "sub { [200, ['Content-Type' => 'text/plain'], ['hello']] }");
    let kirin = Kirin::start(&site, CONFIG);
    (site, kirin)
}

const REQUEST: &str = "GET / HTTP/1.1\r\nHost: a\r\n\r\n";

/// Sends requests until the last one of the connection. The log says that the program stops before
/// each event loop knows it.
fn assert_last_reply(client: &mut Client) {
    wait_for("the last response", || {
        client.send(REQUEST);
        let reply = client.read_reply();
        assert_eq!((reply.status, reply.text().as_str()), (200, "hello"), "{}", reply.head);
        (reply.field("connection") == Some("close")).then_some(())
    });
    assert_eq!(client.read_to_end(), b"");
}

#[test]
fn connections_that_wait_to_be_accepted_at_the_stop_are_served() {
    let (_site, mut kirin) = serve();
    // A stopped process accepts nothing. The connections are in the kernel's queue when it gets the
    // other signal.
    kirin.signal(Signal::STOP);
    let mut clients: Vec<Client> = (0..50).map(|_| kirin.connect()).collect();
    for client in &mut clients {
        client.send(REQUEST);
    }
    kirin.signal(Signal::TERM);
    kirin.signal(Signal::CONT);
    for client in &mut clients {
        let reply = client.read_reply();
        assert_eq!((reply.status, reply.text().as_str()), (200, "hello"), "{}", reply.head);
    }
    drop(clients);
    assert_eq!(kirin.wait().code(), Some(0));
}

#[test]
fn idle_connections_new_and_kept_may_send_a_last_request() {
    let (_site, mut kirin) = serve();
    let mut kept = kirin.connect();
    assert_eq!(kept.get("/").field("connection"), None);
    let mut new = kirin.connect();
    kirin.signal(Signal::TERM);
    kirin.wait_for_log("stopping");
    assert_last_reply(&mut new);
    assert_last_reply(&mut kept);
    assert_eq!(kirin.wait().code(), Some(0));
}

#[test]
fn silent_connections_do_not_delay_a_stop() {
    let (_site, mut kirin) = serve();
    let mut silent: Vec<Client> = (0..20).map(|_| kirin.connect()).collect();
    silent[0].get("/");
    kirin.signal(Signal::TERM);
    for client in &mut silent {
        assert_eq!(client.read_to_end(), b"");
    }
    assert_eq!(kirin.wait().code(), Some(0));
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_request_without_a_client_does_not_delay_a_stop_and_others_are_finished() {
    let program = "sub { open my $begun, '>', \"begun.$$\"; \
        if ($_[0]{PATH_INFO} eq '/ever') { sleep 600 } \
        select undef, undef, undef, 0.01 until -e 'go'; \
        [200, ['Content-Type' => 'text/plain'], ['hello']] }";
    let site = Site::new().with("app.psgi", program);
    let mut kirin = Kirin::start(&site, CONFIG);
    let mut gone = kirin.connect();
    gone.send("GET /ever HTTP/1.1\r\nHost: a\r\n\r\n");
    // This client ends its side of the connection, and waits.
    let mut half = kirin.connect();
    half.send(REQUEST);
    half.end();
    site.wait_for_files("begun.", 2);
    drop(gone);
    kirin.signal(Signal::TERM);
    kirin.wait_for_log("stopping");
    // Kirin has checked both clients. The disconnected one has left the table.
    kirin.wait_for_log("the client of a request has gone");
    std::fs::write(site.path("go"), "").expect("a file");
    let mut reply = half.read_reply();
    while reply.status == 100 {
        reply = half.read_reply();
    }
    assert_eq!((reply.status, reply.text().as_str()), (200, "hello"));
    assert_eq!(kirin.wait().code(), Some(0));
    assert!(!kirin.log().contains("took too long"), "{}", kirin.log());
}
