//! The limit of an upstream's servers and its queue, through the built program.

use std::sync::{Arc, Condvar, Mutex, MutexGuard};

use kirin_tests::{
    ADMIN, Backend, BackendConnection, Client, Kirin, PhpFpm, Site, wait_for, wait_limit,
};
use serde_json::Value;

/// Servers whose requests wait until the test releases one of them.
#[derive(Clone, Default)]
struct Gate(Arc<(Mutex<Passage>, Condvar)>);

#[derive(Default)]
struct Passage {
    /// Methods and targets, in the order of their arrival.
    arrived: Vec<String>,
    inside: usize,
    /// The highest number of requests at the same time.
    most: usize,
    /// The number of requests that may still be answered.
    passes: usize,
}

impl Gate {
    /// Starts a server that answers with its name. It ends the connection of a request for `/cut`.
    /// It switches that of a request for `/upgrade` until the client ends it.
    fn server(&self, name: &'static str) -> Backend {
        let gate = self.clone();
        Backend::start(move |mut connection| {
            while let Some(asked) = connection.read_request() {
                let target = asked.target().to_owned();
                gate.pass(&format!("{name}{target}"));
                match target.as_str() {
                    "/cut" => return,
                    "/upgrade" => return tunnel(&mut connection),
                    _ => connection.send(ok(&format!("{name} {}", asked.body.len()))),
                };
            }
        })
    }

    fn pass(&self, what: &str) {
        let (passage, changed) = &*self.0;
        let mut passage = passage.lock().expect("the gate");
        passage.arrived.push(what.to_owned());
        passage.inside += 1;
        passage.most = passage.most.max(passage.inside);
        let (mut passage, _) = changed
            .wait_timeout_while(passage, wait_limit(), |passage| passage.passes == 0)
            .expect("the gate");
        passage.passes = passage.passes.saturating_sub(1);
        passage.inside -= 1;
    }

    fn look(&self) -> MutexGuard<'_, Passage> {
        self.0.0.lock().expect("the gate")
    }

    /// Releases this many requests, now or when they arrive.
    fn open(&self, passes: usize) {
        self.look().passes += passes;
        self.0.1.notify_all();
    }

    fn wait_for(&self, arrived: &[&str]) {
        wait_for(&format!("{arrived:?} to arrive, not {:?}", self.look().arrived), || {
            (self.look().arrived == arrived).then_some(())
        });
    }
}

fn tunnel(connection: &mut BackendConnection) {
    connection.send(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
    );
    connection.wait_for_end();
}

fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len())
}

fn proxy(servers: &str, upstream: &str) -> (Site, Kirin) {
    let site = Site::new();
    let kirin = start(&site, servers, upstream);
    (site, kirin)
}

fn start(site: &Site, servers: &str, upstream: &str) -> Kirin {
    start_with_route(site, servers, upstream, "")
}

/// Starts Kirin with further keys of the route.
fn start_with_route(site: &Site, servers: &str, upstream: &str, route: &str) -> Kirin {
    let config = format!(
        "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n{ADMIN}\
         [[upstream]]\nname = \"api\"\nservers = [{servers}]\n{upstream}\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n{route}\n"
    );
    Kirin::start(site, &config)
}

fn list(backends: &[&Backend]) -> String {
    let quoted: Vec<String> =
        backends.iter().map(|backend| format!("\"{}\"", backend.address())).collect();
    quoted.join(", ")
}

/// Returns the upstream's part of `kirin status`.
fn status(kirin: &Kirin) -> Value {
    kirin.status()["upstreams"]["api"].clone()
}

/// Starts a server with a limit of one request, which is in use.
struct Busy {
    gate: Gate,
    _server: Backend,
    _site: Site,
    kirin: Kirin,
    first: Client,
}

/// Starts Kirin with these limits of its queue.
fn busy(queue: &str) -> Busy {
    busy_with_route(queue, "")
}

fn busy_with_route(queue: &str, route: &str) -> Busy {
    let gate = Gate::default();
    let server = gate.server("a");
    let site = Site::new();
    let kirin =
        start_with_route(&site, &list(&[&server]), &format!("max_in_flight = 1\n{queue}"), route);
    let first = asking(&kirin, "/1");
    gate.wait_for(&["a/1"]);
    Busy { gate, _server: server, _site: site, kirin, first }
}

/// Waits until this many requests wait.
fn wait_for_queue(kirin: &Kirin, queued: u64) -> Value {
    wait_for(&format!("{queued} requests in the queue"), || {
        let status = status(kirin);
        (status["queued"] == queued).then_some(status)
    })
}

/// Opens a connection and sends a request for `target`.
fn asking(kirin: &Kirin, target: &str) -> Client {
    let mut client = kirin.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
    client
}

fn assert_refused(kirin: &Kirin, client: &mut Client, why: &str) {
    let reply = client.read_reply();
    assert_eq!((reply.status, reply.field("retry-after")), (503, Some("1")), "{}", reply.head);
    kirin.wait_for_log(why);
}

const FULL: &str = "all of its servers are at their limit (`max_in_flight`), and the queue is full";
const TOO_LONG: &str = "all of its servers were at their limit (`max_in_flight`) for as long as the request could wait";

#[test]
fn servers_never_get_more_requests_than_their_limits() {
    let gate = Gate::default();
    // All requests are released. The test counts how many there are at the same time.
    gate.open(usize::MAX / 2);
    let (a, b) = (gate.server("a"), gate.server("b"));
    let servers =
        format!("\"{}\", {{ address = \"{}\", max_in_flight = 1 }}", a.address(), b.address());
    let (_site, kirin) = proxy(&servers, "max_in_flight = 2");
    std::thread::scope(|scope| {
        for _ in 0..16 {
            scope.spawn(|| {
                let mut client = kirin.connect();
                for _ in 0..60 {
                    assert_eq!(client.get("/").status, 200, "{}", kirin.log());
                }
            });
        }
    });
    let status = wait_for_queue(&kirin, 0);
    let counts = |name: &str| -> Vec<u64> {
        let servers = status["servers"].as_array().expect("servers").iter();
        servers.map(|server| server[name].as_u64().expect("a number")).collect()
    };
    assert_eq!(
        (counts("max_in_flight"), counts("in_flight")),
        (vec![2, 1], vec![0, 0]),
        "{status:#}"
    );
    assert_eq!(counts("requests").iter().sum::<u64>(), 960, "{status:#}");
    assert!(gate.look().most <= 3, "{}", gate.look().most);
    assert!(status["waited"].as_u64() > Some(0), "{status:#}");
    assert_eq!(
        (&status["queue_full"], &status["queue_timeouts"]),
        (&0.into(), &0.into()),
        "{status:#}"
    );
}

#[test]
fn the_request_that_has_waited_longest_is_next() {
    let gate = Gate::default();
    let a = gate.server("a");
    let (_site, kirin) = proxy(&list(&[&a]), "max_in_flight = 1");
    let mut clients = vec![asking(&kirin, "/0")];
    gate.wait_for(&["a/0"]);
    for number in 1..6 {
        clients.push(asking(&kirin, &format!("/{number}")));
        wait_for_queue(&kirin, number);
    }
    gate.open(6);
    for client in &mut clients {
        assert_eq!(client.read_reply().status, 200);
    }
    gate.wait_for(&["a/0", "a/1", "a/2", "a/3", "a/4", "a/5"]);
    let status = wait_for_queue(&kirin, 0);
    assert_eq!((gate.look().most, &status["waited"]), (1, &5.into()), "{status:#}");
    let [average, longest] = ["wait_ms_average", "wait_ms_longest"]
        .map(|name| status[name].as_f64().expect("milliseconds"));
    assert!(0.0 < average && average <= longest, "{status:#}");
}

#[test]
fn a_request_for_a_full_queue_is_refused_at_once() {
    let Busy { gate, kirin, first, .. } = &mut busy("queue = 1");
    let mut second = asking(kirin, "/2");
    wait_for_queue(kirin, 1);
    assert_refused(kirin, &mut asking(kirin, "/3"), FULL);
    gate.open(2);
    assert_eq!((first.read_reply().status, second.read_reply().status), (200, 200));
    let status = status(kirin);
    assert_eq!(
        (&status["queue_full"], &status["queue_timeouts"]),
        (&1.into(), &0.into()),
        "{status:#}"
    );
}

#[test]
fn without_a_queue_no_request_waits() {
    let Busy { gate, kirin, first, .. } = &mut busy("queue = 0");
    assert_refused(kirin, &mut asking(kirin, "/2"), FULL);
    gate.open(2);
    assert_eq!(first.read_reply().status, 200);
    assert_eq!(kirin.get("/3").status, 200);
}

#[test]
fn a_backup_answers_when_the_others_are_busy_and_the_queue_is_full() {
    let gate = Gate::default();
    let (a, b) = (gate.server("a"), gate.server("b"));
    let servers = format!(
        "{}, {{ address = \"{}\", backup = true, max_in_flight = 1 }}",
        list(&[&a]),
        b.address()
    );
    let (_site, kirin) = proxy(&servers, "max_in_flight = 1\nqueue = 1");
    let mut first = asking(&kirin, "/1");
    gate.wait_for(&["a/1"]);
    let mut waiting = asking(&kirin, "/2");
    wait_for_queue(&kirin, 1);
    let mut third = asking(&kirin, "/3");
    gate.wait_for(&["a/1", "b/3"]);
    assert_refused(&kirin, &mut asking(&kirin, "/4"), FULL);
    gate.open(3);
    for (client, name) in [(&mut first, "a 0"), (&mut third, "b 0"), (&mut waiting, "a 0")] {
        assert_eq!(client.read_reply().text(), name);
    }
    let status = wait_for_queue(&kirin, 0);
    assert_eq!((&status["queue_full"], &status["waited"]), (&1.into(), &1.into()), "{status:#}");
}

#[test]
fn a_request_that_waits_too_long_is_refused_and_takes_no_slot() {
    let Busy { gate, kirin, first, .. } = &mut busy("queue_wait = \"1s\"");
    assert_refused(kirin, &mut asking(kirin, "/2"), TOO_LONG);
    let status = wait_for_queue(kirin, 0);
    assert_eq!(
        (&status["queue_timeouts"], &status["waited"]),
        (&1.into(), &0.into()),
        "{status:#}"
    );
    gate.open(2);
    assert_eq!(first.read_reply().status, 200);
    assert_eq!(kirin.get("/3").status, 200);
    gate.wait_for(&["a/1", "a/3"]);
}

#[test]
fn a_client_that_disconnects_leaves_the_queue() {
    let Busy { gate, kirin, first, .. } = &mut busy("");
    let mut second = asking(kirin, "/2");
    wait_for_queue(kirin, 1);
    let mut third = asking(kirin, "/3");
    wait_for_queue(kirin, 2);
    second.reset();
    let status = wait_for_queue(kirin, 1);
    assert_eq!((&status["queue_clients_gone"], &status["queue_timeouts"]), (&1.into(), &0.into()));
    gate.open(2);
    assert_eq!((first.read_reply().status, third.read_reply().status), (200, 200));
    gate.wait_for(&["a/1", "a/3"]);
}

#[test]
fn a_client_that_disconnects_during_its_response_frees_the_slot() {
    let Busy { gate, kirin, first, .. } = &mut busy("");
    let mut second = asking(kirin, "/2");
    wait_for_queue(kirin, 1);
    first.reset();
    gate.wait_for(&["a/1", "a/2"]);
    gate.open(2);
    assert_eq!(second.read_reply().status, 200);
}

#[test]
fn a_body_comes_behind_its_request_when_that_has_waited() {
    let Busy { gate, kirin, first, .. } = &mut busy_with_route("", "request_buffering = false");
    let mut second = kirin.connect();
    second.send("POST /2 HTTP/1.1\r\nHost: test\r\nContent-Length: 300000\r\n\r\n");
    second.send([b'x'; 100_000]);
    wait_for_queue(kirin, 1);
    gate.open(2);
    assert_eq!(first.read_reply().status, 200);
    second.send([b'x'; 200_000]);
    assert_eq!(second.read_reply().text(), "a 300000");
}

#[test]
fn slow_uploads_hold_no_slots() {
    let gate = Gate::default();
    let server = gate.server("a");
    let (_site, kirin) = proxy(&list(&[&server]), "max_in_flight = 2");
    let mut slow: Vec<_> = (0..4).map(|_| kirin.connect()).collect();
    for client in &mut slow {
        client.send("POST /slow HTTP/1.1\r\nHost: test\r\nContent-Length: 300000\r\n\r\n");
        client.send([b'x'; 100_000]);
    }
    gate.open(10);
    for _ in 0..3 {
        assert_eq!(kirin.get("/").status, 200);
    }
    assert_eq!(gate.look().arrived, ["a/"; 3]);
    for client in &mut slow {
        client.send([b'x'; 200_000]);
        assert_eq!(client.read_reply().text(), "a 300000");
    }
}

#[test]
fn a_visitor_waits_for_its_server_and_goes_to_another_when_that_is_ejected() {
    let gate = Gate::default();
    let (a, b) = (gate.server("a"), gate.server("b"));
    let upstream = "max_in_flight = 1\nsticky_cookie = \"server\"\nmax_failures = 1";
    let (_site, kirin) = proxy(&list(&[&a, &b]), upstream);
    gate.open(1);
    let first = kirin.get("/first");
    let own = first
        .field("set-cookie")
        .and_then(|cookie| cookie.split(';').next())
        .expect("a cookie")
        .to_owned();
    let (own_name, other_name) =
        if first.text().starts_with('a') { ("a", "b") } else { ("b", "a") };

    let mut busy = kirin.connect();
    // A request that may have been done is not retried, so it goes to no other server.
    busy.send(format!(
        "POST /cut HTTP/1.1\r\nHost: test\r\nCookie: {own}\r\nContent-Length: 0\r\n\r\n"
    ));
    let arrived = [format!("{own_name}/first"), format!("{own_name}/cut")];
    gate.wait_for(&arrived.each_ref().map(String::as_str));
    let mut visitor = kirin.connect();
    visitor.send(format!("GET /visitor HTTP/1.1\r\nHost: test\r\nCookie: {own}\r\n\r\n"));
    wait_for_queue(&kirin, 1);
    // Other requests do not wait behind it.
    let mut other = asking(&kirin, "/other");
    let arrived = [arrived[0].clone(), arrived[1].clone(), format!("{other_name}/other")];
    gate.wait_for(&arrived.each_ref().map(String::as_str));
    assert_eq!(status(&kirin)["queued"], 1);

    // Both are released. One ends without a response.
    gate.open(2);
    assert_eq!((busy.read_reply().status, other.read_reply().status), (502, 200));
    gate.open(1);
    let reply = visitor.read_reply();
    assert!(reply.status == 200 && reply.text().starts_with(other_name), "{}", reply.text());
    assert!(
        reply.field("set-cookie").is_some_and(|cookie| !cookie.starts_with(&own)),
        "{}",
        reply.head
    );
    let status = status(&kirin);
    let servers = status["servers"].as_array().expect("servers");
    let ejected =
        servers.iter().find(|server| server["availability"] == "ejected").expect("one is ejected");
    assert_eq!(
        (&ejected["ejections"], &ejected["failures_in_a_row"]),
        (&1.into(), &1.into()),
        "{status:#}"
    );
    assert!(ejected["ejected_ms"].as_u64() > Some(0), "{status:#}");
}

#[test]
fn a_retried_request_waits_for_a_slot_too() {
    let gate = Gate::default();
    let (b, first) = (gate.server("b"), Gate::default());
    let a = first.server("a");
    let (_site, kirin) = proxy(&list(&[&a, &b]), "max_in_flight = 1\nmax_failures = 0\nqueue = 4");
    let mut clients = [asking(&kirin, "/cut"), asking(&kirin, "/cut")];
    wait_for("both to be busy", || (first.look().inside + gate.look().inside == 2).then_some(()));
    // The request of the first server is retried on the second, which is busy.
    first.open(1);
    let status = wait_for_queue(&kirin, 1);
    assert_eq!(status["retries"], 1, "{status:#}");
    // Now the second server cuts both. The first gets the request that it has not had.
    gate.open(2);
    first.open(1);
    for client in &mut clients {
        assert_eq!(client.read_reply().status, 502);
    }
    assert_eq!((gate.look().most, first.look().most), (1, 1));
    assert_eq!((gate.look().arrived.len(), first.look().arrived.len()), (2, 2));
}

#[test]
fn a_connection_that_is_upgraded_holds_its_slot_until_it_ends() {
    let gate = Gate::default();
    let a = gate.server("a");
    let (_site, kirin) = proxy(&list(&[&a]), "max_in_flight = 1");
    gate.open(2);
    let mut socket = kirin.connect();
    socket.send(
        "GET /upgrade HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    socket.read_until(b"\r\n\r\n");
    let mut second = asking(&kirin, "/2");
    let status = wait_for_queue(&kirin, 1);
    assert_eq!(status["servers"][0]["in_flight"], 1, "{status:#}");
    socket.end();
    assert_eq!(second.read_reply().status, 200);
}

/// Starts a server that switches protocols, and then ignores the bytes and the end.
fn deaf_server() -> Backend {
    Backend::start(|mut connection| {
        let Some(asked) = connection.read_request() else { return };
        if asked.target() != "/upgrade" {
            connection.send(ok("served"));
            return;
        }
        connection.send(
            "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        );
        std::thread::sleep(10 * wait_limit());
    })
}

fn upgraded(kirin: &Kirin) -> Client {
    let mut socket = kirin.connect();
    socket.send(
        "GET /upgrade HTTP/1.1\r\nHost: test\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
    );
    socket.read_until(b"\r\n\r\n");
    socket
}

#[test]
fn a_tunnel_ends_with_its_client_though_the_server_ignores_that() {
    let deaf = deaf_server();
    let (_site, kirin) = proxy(&list(&[&deaf]), "max_in_flight = 2");
    let (mut reset, mut ended) = (upgraded(&kirin), upgraded(&kirin));
    reset.reset();
    ended.end();
    wait_for("both slots to be free", || {
        (status(&kirin)["servers"][0]["in_flight"] == 0).then_some(())
    });
    // This is more than the buffers between hold. So the client is no longer read when it
    // disconnects.
    let mut reset = upgraded(&kirin);
    while reset.try_send_now(&[0; 65_536]) {}
    reset.reset();
    wait_for("the slot to be free", || {
        (status(&kirin)["servers"][0]["in_flight"] == 0).then_some(())
    });
    assert_eq!(kirin.get("/").status, 200);
}

#[test]
fn streams_of_http2_are_limited_too() {
    let (address, most) = http2_server();
    let (_site, kirin) = proxy(&format!("\"h2c://{address}\""), "max_in_flight = 2");
    std::thread::scope(|scope| {
        for _ in 0..12 {
            scope.spawn(|| {
                let mut client = kirin.connect();
                for _ in 0..10 {
                    assert_eq!(client.get("/").text(), "ok", "{}", kirin.log());
                }
            });
        }
    });
    let status = wait_for_queue(&kirin, 0);
    assert!((1..=2).contains(&most.load(std::sync::atomic::Ordering::SeqCst)), "{most:?}");
    assert!(status["waited"].as_u64() > Some(0), "{status:#}");
    assert_eq!(status["servers"][0]["requests"], 120, "{status:#}");
}

/// Starts a server that needs a moment for each stream, and counts its streams at the same time.
fn http2_server() -> (std::net::SocketAddr, Arc<std::sync::atomic::AtomicUsize>) {
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    listener.set_nonblocking(true).expect("nonblocking");
    let address = listener.local_addr().expect("its address");
    let (inside, most) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let seen = Arc::clone(&most);
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async move {
            let listener = tokio::net::TcpListener::from_std(listener).expect("a listener");
            while let Ok((stream, _)) = listener.accept().await {
                let (inside, most) = (Arc::clone(&inside), Arc::clone(&most));
                tokio::spawn(async move {
                    let Ok(mut connection) = h2::server::handshake(stream).await else { return };
                    while let Some(Ok((_, mut respond))) = connection.accept().await {
                        let (inside, most) = (Arc::clone(&inside), Arc::clone(&most));
                        tokio::spawn(async move {
                            most.fetch_max(inside.fetch_add(1, SeqCst) + 1, SeqCst);
                            tokio::time::sleep(std::time::Duration::from_millis(2)).await;
                            inside.fetch_sub(1, SeqCst);
                            if let Ok(mut stream) =
                                respond.send_response(http::Response::new(()), false)
                            {
                                let _ = stream.send_data("ok".into(), true);
                            }
                        });
                    }
                });
            }
        });
    });
    (address, seen)
}

#[test]
fn requests_for_php_wait_in_kirin_and_not_in_the_kernel() {
    let wait = "<?php while (!file_exists(__DIR__ . '/go')) { clearstatcache(); usleep(10000); } echo 'done';";
    let site = Site::new().with("public/index.php", wait);
    // php-fpm has two processes.
    let _php = PhpFpm::start(&site);
    let kirin = start(
        &site,
        "\"fastcgi://unix:php.sock\"",
        "root = \"public\"\nmax_in_flight = 2\nqueue = 3",
    );
    let mut clients: Vec<Client> = (0..5).map(|_| asking(&kirin, "/")).collect();
    let status = wait_for_queue(&kirin, 3);
    assert_eq!(status["servers"][0]["in_flight"], 2, "{status:#}");
    assert_refused(&kirin, &mut asking(&kirin, "/"), FULL);
    std::fs::write(site.path("public/go"), "").expect("a file");
    for client in &mut clients {
        assert_eq!(client.read_reply().text(), "done", "{}", kirin.log());
    }
}
