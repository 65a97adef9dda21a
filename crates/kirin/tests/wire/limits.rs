//! Limits on connections, requests and bodies, through the built program.

use kirin_tests::{Client, Kirin, Site};

const APP: &str = r#"
sub {
    my $env = shift;
    [200, ['Content-Type' => 'text/plain'], ["$env->{PATH_INFO} $env->{CONTENT_LENGTH}"]];
};
"#;

fn serve(top: &str, listener: &str, routes: &str) -> (Site, Kirin) {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("public/a.txt", "a\n")
        .with("public/limited/a.txt", "a\n");
    let config = format!(
        "threads = 2\n{top}\n[[listener]]\naddress = \"127.0.0.1:0\"\n{listener}\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\nbody_limit = \"1MB\"\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\", \"app:web\"]\n{routes}"
    );
    let kirin = Kirin::start(&site, &config);
    (site, kirin)
}

#[test]
fn connections_of_one_address_are_limited() {
    let (_site, kirin) = serve("", "connections_per_address = 3", "");
    let mut clients: Vec<Client> = (0..3).map(|_| kirin.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/a.txt").status, 200);
    }
    let mut fourth = kirin.connect();
    fourth.try_send("GET /a.txt HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(fourth.read_to_end(), b"", "closed without an answer");
    kirin.wait_for_log("too many from one address");
    assert_eq!(clients[0].get("/a.txt").status, 200, "the others go on");
    clients.pop();
    kirin_tests::wait_for("room for another", || {
        let mut client = kirin.connect();
        client.try_send("GET /a.txt HTTP/1.0\r\n\r\n");
        client.read_to_end().starts_with(b"HTTP/1.1 200").then_some(())
    });
}

#[test]
fn connections_of_the_process_are_limited_and_others_wait() {
    let (_site, kirin) = serve("connections = 4", "", "");
    let mut clients: Vec<Client> = (0..4).map(|_| kirin.connect()).collect();
    for client in &mut clients {
        assert_eq!(client.get("/a.txt").status, 200);
    }
    // There may be one more for each loop (see `ConnectionAdmission::has_room`), so these are
    // certainly more than allowed.
    let mut waiting: Vec<Client> = (0..20).map(|_| kirin.connect()).collect();
    for client in &mut waiting {
        client.send("GET /a.txt HTTP/1.0\r\n\r\n");
    }
    kirin.wait_for_log("as many connections as `connections` allows");
    for client in &mut clients {
        assert_eq!(client.get("/a.txt").status, 200, "those that are there go on");
    }
    drop(clients);
    for client in &mut waiting {
        assert_eq!(client.read_reply().status, 200);
    }
}

#[test]
fn requests_of_an_address_are_limited_over_all_loops() {
    let limit = "[[route]]\npath = \"/limited\"\ntry = [\"files:public\"]\nrate_limit = [{ rate = \"1/h\", burst = 7 }]\n";
    let (_site, kirin) = serve("", "", limit);
    let statuses: Vec<u16> = (0..20).map(|_| kirin.get("/limited/a.txt").status).collect();
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 7, "{statuses:?}");
    assert_eq!(statuses.iter().filter(|status| **status == 429).count(), 13, "{statuses:?}");
    let mut client = kirin.connect();
    let reply = client.get("/limited/a.txt");
    let seconds: u64 =
        reply.field("retry-after").and_then(|value| value.parse().ok()).expect("Retry-After");
    assert!((1..=3600).contains(&seconds), "{reply:?}");
    // The client repeats it with another spelling of the path, then with another method, and then
    // for another route, on the same connection.
    assert_eq!(client.get("/x/..//limited/%61.txt").status, 429);
    assert_eq!(client.post("/limited/a.txt", "text/plain", b"hello").status, 429);
    assert_eq!(client.get("/a.txt").status, 200);
}

#[test]
fn requests_are_limited_by_header_or_cookie_or_else_by_address() {
    for (key, one, other) in [
        ("header:X-Api-Key", "x-api-key: one\r\n", "X-Api-Key: other\r\n"),
        ("cookie:session", "Cookie: theme=dark; session=one\r\n", "Cookie: session=other\r\n"),
    ] {
        let limit = format!(
            "[[route]]\npath = \"/limited\"\ntry = [\"app:web\"]\nrate_limit = [{{ key = \"{key}\", rate = \"1/h\", burst = 2 }}]\n"
        );
        let (_site, kirin) = serve("", "", &limit);
        let mut client = kirin.connect();
        for fields in [one, other, ""] {
            let statuses: Vec<u16> =
                (0..3).map(|_| client.request("GET", "/limited", fields).status).collect();
            assert_eq!(statuses, [200, 200, 429], "{key} {fields}");
        }
        assert_eq!(
            kirin.connect().request("GET", "/limited", one).status,
            429,
            "{key} on another connection"
        );
    }
}

#[test]
fn a_limit_lets_requests_pass_again_in_time() {
    let limit = "[[route]]\npath = \"/limited\"\ntry = [\"files:public\"]\nrate_limit = [{ rate = \"2/s\", burst = 1 }]\n";
    let (_site, kirin) = serve("", "", limit);
    assert_eq!(kirin.get("/limited/a.txt").status, 200);
    kirin_tests::wait_for("the next one", || {
        (kirin.get("/limited/a.txt").status == 200).then_some(())
    });
}

#[test]
fn a_route_has_a_limit_on_bodies_of_its_own() {
    let routes = "[[route]]\npath = \"/small\"\ntry = [\"app:web\"]\nbody_limit = \"10B\"\n\
        [[route]]\npath = \"/large\"\ntry = [\"app:web\"]\nbody_limit = \"1GB\"\n";
    let (_site, kirin) = serve("", "", routes);
    let mut client = kirin.connect();
    assert_eq!(client.post("/small", "text/plain", b"0123456789").text(), "/small 10");
    assert_eq!(client.post("/", "text/plain", b"0123456789a").text(), "/ 11");
    let reply = client.post("/small", "text/plain", b"0123456789a");
    assert_eq!((reply.status, reply.field("connection")), (413, Some("close")));
    let mut client = kirin.connect();
    client.send("POST /small HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n6\r\n012345\r\n6\r\n012345\r\n0\r\n\r\n");
    let reply = client.read_reply();
    assert_eq!((reply.status, reply.field("connection")), (413, Some("close")));
    // The smaller of two limits counts.
    let mut client = kirin.connect();
    client.send("POST /large HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n");
    assert_eq!(client.read_reply().status, 413);
}

#[test]
fn the_size_of_heads_is_a_listeners_own() {
    let (_site, kirin) = serve("", "head_limit = \"200B\"\nrequest_line_limit = \"100B\"", "");
    let line = format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "a".repeat(100));
    assert_eq!(kirin.connect().send(line).read_reply().status, 414);
    let head = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}\r\n\r\n", "a".repeat(200));
    assert_eq!(kirin.connect().send(head).read_reply().status, 431);
    assert_eq!(kirin.get("/a.txt").status, 200);
}
