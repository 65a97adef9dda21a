//! `rate_limit` and `in_flight_limit`: what they count, and what a refusal is.

use kirin_tests::{Backend, Client, Http2Client, Kirin, Site, wait_for};

/// Answers `/now` at once, an upgrade with a tunnel, and holds all other requests until the client
/// goes.
fn holding_backend() -> Backend {
    Backend::start(|mut connection| {
        while let Some(asked) = connection.read_request() {
            if asked.target().starts_with("/now") {
                connection.send("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnow");
            } else if asked.field("upgrade").is_some() {
                connection.send(
                    "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\nhello",
                );
                connection.wait_for_end();
            } else {
                connection.wait_for_end();
            }
        }
    })
}

fn serve(site: &Site, backend: &Backend, routes: &str) -> Kirin {
    let config = format!(
        "threads = 2\nmetrics = \"unix:metrics.sock\"\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         trusted = [\"127.0.0.1\"]\n[[upstream]]\nname = \"slow\"\nservers = [\"{}\"]\nkeep_connections = 0\n{routes}",
        backend.address()
    );
    Kirin::start(site, &config)
}

/// Returns the status that a client from this address gets at once. A request before it may still
/// count for a moment, because Kirin learns of its end after its client.
fn status(kirin: &Kirin, target: &str, address: &str) -> u16 {
    let mut client = kirin.connect();
    let reply = client.request("GET", target, &format!("X-Forwarded-For: {address}\r\n"));
    if reply.status == 503 {
        assert_eq!(reply.field("retry-after"), Some("1"), "{}", reply.head);
    }
    reply.status
}

/// Begins a request that the backend holds, and waits until it is there.
fn hold(kirin: &Kirin, backend: &Backend, target: &str, address: &str) -> Client {
    let before = backend.connections();
    let mut client = kirin.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {address}\r\n\r\n"));
    wait_for("the request", || (backend.connections() > before).then_some(()));
    client
}

#[test]
fn requests_in_progress_are_limited_by_address_and_by_route() {
    let (site, backend) = (Site::new(), holding_backend());
    let kirin = serve(
        &site,
        &backend,
        "[[route]]\npath = \"/\"\ntry = [\"proxy:slow\"]\n\
         in_flight_limit = [{ max = 2 }, { key = \"route\", max = 3 }]\n",
    );
    let (one, other) = ("192.0.2.1", "192.0.2.2");
    let first = hold(&kirin, &backend, "/a", one);
    let second = hold(&kirin, &backend, "/b", one);
    assert_eq!(status(&kirin, "/now", one), 503, "a third of one address");
    let third = hold(&kirin, &backend, "/c", other);
    assert_eq!(status(&kirin, "/now", "192.0.2.3"), 503, "a fourth of the route");
    assert_eq!(status(&kirin, "/now", other), 503, "of any address");
    // The end of a client ends its request.
    drop(first);
    wait_for("room", || (status(&kirin, "/now", one) == 200).then_some(()));
    wait_for("room for another address", || (status(&kirin, "/now", other) == 200).then_some(()));
    drop((second, third));
    wait_for("room for all", || (status(&kirin, "/now", "192.0.2.3") == 200).then_some(()));
}

#[test]
fn a_request_counts_until_its_response_has_been_sent() {
    let backend = holding_backend();
    let site = Site::new().with("public/big", vec![b'x'; 30_000_000]).with("public/small", "s");
    let kirin = serve(
        &site,
        &backend,
        "[[route]]\npath = \"/\"\ntry = [\"files:public\"]\nin_flight_limit = [{ max = 1 }]\n\
         [[route]]\npath = \"/tunnel\"\ntry = [\"proxy:slow\"]\nin_flight_limit = [{ max = 1 }]\n",
    );
    let address = "192.0.2.1";
    for _ in 0..3 {
        wait_for("one after the other", || {
            (status(&kirin, "/small", address) == 200).then_some(())
        });
    }
    let mut slow = wait_for("the large file", || {
        let mut client = kirin.connect();
        client.send(format!(
            "GET /big HTTP/1.1\r\nHost: a\r\nConnection: close\r\nX-Forwarded-For: {address}\r\n\r\n"
        ));
        client.read_until(b"\r\n\r\n").starts_with(b"HTTP/1.1 200").then_some(client)
    });
    assert_eq!(status(&kirin, "/small", address), 503, "it is being sent");
    assert_eq!(status(&kirin, "/small", "192.0.2.2"), 200);
    assert!(slow.read_to_end().len() > 29_000_000);
    wait_for("its end", || (status(&kirin, "/small", address) == 200).then_some(()));
    // A tunnel counts until it closes.
    let mut tunnel = kirin.connect();
    tunnel.send(format!(
        "GET /tunnel HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {address}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
    ));
    tunnel.read_until(b"hello");
    assert_eq!(status(&kirin, "/tunnel", address), 503);
    drop(tunnel);
    wait_for("the end of the tunnel", || {
        let mut client = kirin.connect();
        client.send(format!(
            "GET /tunnel HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: {address}\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n"
        ));
        (client.read_head_reply().status == 101).then_some(())
    });
    // Streams of one connection count alike.
    let mut client = Http2Client::connect(kirin.address());
    let fields = [("x-forwarded-for", "192.0.2.9")];
    let held = client.begin("GET", "/tunnel/held", &fields);
    wait_for("a refused stream", || {
        (client.request("GET", "/tunnel/now", &fields).status == 503).then_some(())
    });
    drop(held);
}

#[test]
fn a_limit_has_a_status_a_page_and_a_dry_run() {
    let backend = holding_backend();
    let site =
        Site::new().with("public/busy.html", "busy").with("public/x", "x").with("public/y", "y");
    let kirin = serve(
        &site,
        &backend,
        "[[route]]\npath = \"/x\"\ntry = [\"files:public\"]\nheaders = { X-Route = \"x\" }\n\
         rate_limit = [{ rate = \"1/h\", burst = 1, status = 503, page = \"/busy.html\" }]\n\
         [[route]]\npath = \"/y\"\ntry = [\"files:public\"]\n\
         rate_limit = [{ rate = \"1/h\", burst = 1, dry_run = true }]\n\
         in_flight_limit = [{ key = \"{header.x-key}\", max = 1, dry_run = true }]\n\
         [[route]]\npath = \"/z\"\ntry = [\"proxy:slow\"]\n\
         in_flight_limit = [{ key = \"{header.x-key}\", max = 1, status = 420 }]\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n",
    );
    assert_eq!(kirin.get("/x").text(), "x");
    let refused = kirin.get("/x");
    assert_eq!((refused.status, refused.text().as_str()), (503, "busy"), "{}", refused.head);
    assert!(refused.field("retry-after").is_some() && refused.field("x-route") == Some("x"));
    for _ in 0..3 {
        assert_eq!(kirin.get("/y").text(), "y");
    }
    kirin.wait_for_log("dry run: a request is more than one request in 3600s");
    let before = backend.connections();
    let mut held = kirin.connect();
    held.send("GET /z/a HTTP/1.1\r\nHost: a\r\nX-Key: 1\r\n\r\n");
    wait_for("the request", || (backend.connections() > before).then_some(()));
    let with_key = |key: &str| kirin.connect().request("GET", "/z/b", &format!("X-Key: {key}\r\n"));
    let refused = with_key("1");
    assert_eq!(refused.status, 420, "{}", refused.head);
    assert_eq!(refused.field("retry-after"), None, "it is for 429 and 503");
    let metrics = || {
        let socket = site.path("metrics.sock");
        let mut command = std::process::Command::new("curl");
        command.arg("-sS").arg("--unix-socket").arg(socket).arg("http://localhost/metrics");
        String::from_utf8(command.output().expect("curl").stdout).expect("text")
    };
    wait_for("the metrics", || {
        let text = metrics();
        let has = |line: &str| text.lines().any(|other| other == line);
        (has("kirin_requests_rate_limited_total 1")
            && has("kirin_requests_in_flight_limited_total 1")
            && has("kirin_requests_limited_in_dry_run_total{limit=\"rate\"} 2"))
        .then_some(())
    });
}
