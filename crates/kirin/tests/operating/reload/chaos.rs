//! Chaos: clients of eight kinds, while reloads of every kind come one after the other, good and
//! refused ones. No request is lost or answered wrongly, the store is what its clients have
//! written, and memory and descriptors do not grow.
//!
//! `make test` runs a short form. `make chaos` runs the long one (`KIRIN_CHAOS=long`), and its last
//! lines are a table.

use std::collections::HashMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::Instant;

use kirin_tests::{
    Backend, Client, Http2Client, LeasedPort, Memcached, SetAtEnd, Site, scripts, wait_for,
};

use super::Served;

/// Sends the body back, streams, or says hello.
const APP: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    if ($path eq '/upload') {
        my ($body, $piece) = ('');
        $body .= $piece while $env->{'psgi.input'}->read($piece, 65536);
        return [200, ['Content-Type' => 'text/plain'], [length($body) . ' ' . unpack('%32C*', $body)]];
    }
    if ($path eq '/stream') {
        return sub {
            my $writer = $_[0]->([200, ['Content-Type' => 'text/plain']]);
            $writer->write("part $_\n") for 1 .. 20;
            $writer->close;
        };
    }
    [200, ['Content-Type' => 'text/plain'], ["hello $env->{QUERY_STRING}"]];
};
"#;

/// The kinds of clients, by their numbers in the counts.
const KINDS: [&str; 8] =
    ["kept", "new connections", "HTTP/2", "uploads", "streams", "WebSocket", "PSGI", "memcached"];

/// Requests that a kept connection sends together.
pub const PIPELINED: usize = 16;

/// The size of a run.
struct Size {
    requests: u64,
    reloads: usize,
}

fn size() -> Size {
    match std::env::var("KIRIN_CHAOS").as_deref() {
        Ok("long") => Size { requests: 1_000_000, reloads: 200 },
        _ => Size { requests: 100_000, reloads: 50 },
    }
}

/// What all clients share.
pub struct Run<'a> {
    /// Where they connect.
    pub address: SocketAddr,
    site: &'a Site,
    counts: [AtomicU64; KINDS.len()],
    pub is_over: AtomicBool,
    /// What the checker knows to be in the store.
    model: Mutex<HashMap<String, Option<String>>>,
}

/// A kind of clients.
pub type Clients = fn(&Run<'_>);

impl<'a> Run<'a> {
    pub fn new(address: SocketAddr, site: &'a Site) -> Self {
        let (counts, is_over, model) = Default::default();
        Self { address, site, counts, is_over, model }
    }

    /// Runs all clients, until `work` has ended the run and returns.
    pub fn with_clients<T>(&self, clients: &[Clients], work: impl FnOnce() -> T) -> T {
        std::thread::scope(|scope| {
            for client in clients {
                scope.spawn(move || {
                    // A client that fails ends the run.
                    let mut guard = EndsIfItPanics { run: self, is_done: false };
                    client(self);
                    guard.is_done = true;
                });
            }
            work()
        })
    }

    /// Checks that the store has what its client has written. Returns the number of items.
    pub fn check_store(&self) -> usize {
        let model = self.model.lock().expect("no panic");
        let mut store = scripts::memcached(self.site);
        for (key, value) in &*model {
            check_item(&mut store, key, value.as_deref());
        }
        model.len()
    }

    pub fn total(&self) -> u64 {
        self.counts.iter().map(|count| count.load(Relaxed)).sum()
    }

    /// Calls `work` again and again until the run is over. It returns how many requests it has
    /// made.
    pub fn repeat(&self, kind: &str, mut work: impl FnMut(u64) -> u64) {
        let kind = KINDS.iter().position(|known| *known == kind).expect("a kind");
        let mut round = 0;
        while !self.is_over.load(Relaxed) {
            self.counts[kind].fetch_add(work(round), Relaxed);
            round += 1;
        }
    }

    /// Waits until so many requests are answered. Requests that stop are a failure.
    pub fn wait_for_progress(&self, requests: u64) {
        while self.total() < requests && !self.is_over.load(Relaxed) {
            let before = self.total();
            wait_for("another request", || {
                (self.total() > before || self.is_over.load(Relaxed)).then_some(())
            });
        }
    }

    /// Returns a table of what was answered.
    pub fn table(&self, seconds: f64) -> String {
        let mut table =
            String::from("\n| kind | requests | lost or wrong |\n| --- | ---: | ---: |\n");
        for (kind, count) in KINDS.iter().zip(&self.counts) {
            let _ = writeln!(table, "| {kind} | {} | 0 |", count.load(Relaxed));
        }
        let _ = writeln!(table, "| all, in {seconds:.1} s | {} | 0 |\n", self.total());
        table
    }
}

/// Returns the text of the configuration with this number. Each differs from the one before in
/// several ways.
pub fn config(number: usize, backends: &[Backend], extra: SocketAddr) -> String {
    let variant = number % 3;
    let servers = match number % 4 {
        0 => format!("\"{}\"", backends[0].address()),
        1 => format!("\"{}\", \"{}\"", backends[0].address(), backends[1].address()),
        2 => format!("{{ address = \"{}\", weight = 3 }}", backends[1].address()),
        _ => format!("\"{}\"", backends[1].address()),
    };
    let mut text = format!(
        "threads = 2\nmetrics = \"127.0.0.1:0\"\nconnections = {}\n\
         [[listener]]\naddress = \"127.0.0.1:0\"\nkeep_alive = \"{}s\"\nconnections_per_address = {}\n",
        900 + number % 7,
        60 + number % 5,
        400 + number % 3
    );
    if number % 2 == 1 {
        let _ =
            writeln!(text, "access_log = {{ path = \"access{}.log\", sample = 0.01 }}", number % 4);
    }
    if number % 3 == 1 {
        let _ = writeln!(text, "[[listener]]\naddress = \"{extra}\"");
    }
    let _ = write!(
        text,
        "[limits]\nclient_memory = \"{}MB\"\n[store]\nmemcached = [\"unix:m.sock\"]\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = {}\ndeadline = \"5s\"\nenv = {{ NUMBER = \"{}\" }}\n\
         [[upstream]]\nname = \"api\"\nservers = [{servers}]\n",
        200 + number % 5,
        2 + number % 2,
        number / 5
    );
    if number.is_multiple_of(2) {
        let _ = writeln!(text, "[[route]]\npath = \"/only{number}\"\nredirect = \"/\"");
    }
    let _ = write!(
        text,
        "[[route]]\npath = \"/file\"\ntry = [\"files:v{variant}\"]\nheaders = {{ X-Variant = \"{variant}\" }}\n\
         [[route]]\npath = \"/page\"\ntry = [\"store\"]\n\
         [[route]]\npath = \"/ws\"\ntry = [\"proxy:api\"]\n\
         [[route]]\npath = \"/cached\"\ntry = [\"proxy:api\"]\ncache = true\n\
         [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n"
    );
    text
}

/// Returns a configuration that is refused, and a part of what the command says.
fn refused(number: usize, good: &str) -> (String, &'static str) {
    match number % 5 {
        0 => (good.replace("headers =", "header ="), "unknown key"),
        1 => (good.replace("threads = 2", "threads = 3"), "another start"),
        2 => (good.replace("app.psgi", "bad.psgi"), "nothing is changed"),
        3 => (format!("{good}[[route]]\npath = \"/lua\"\ntry = [\"lua:bad.lua\"]\n"), "bad.lua"),
        _ => (format!("{good}[[listener]]\naddress = \"unix:app.psgi\"\n"), "not a socket"),
    }
}

/// Returns a server that answers `/cached`, and echoes 16 bytes at a time after an upgrade.
pub fn backend() -> Backend {
    Backend::start(|mut connection| {
        while let Some(request) = connection.read_request() {
            if request.target() != "/ws" {
                connection.send(
                    "HTTP/1.1 200 OK\r\nCache-Control: max-age=60\r\nContent-Length: 6\r\n\r\ncached",
                );
                continue;
            }
            let upgraded = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\n\
                            Upgrade: websocket\r\n\r\n";
            connection.send(upgraded);
            while let Some(message) = connection.take(16) {
                if !connection.send(message) {
                    return;
                }
            }
            return;
        }
    })
}

pub fn kept(run: &Run<'_>) {
    let mut client = Client::connect(run.address);
    let request = "GET /file/a.txt HTTP/1.1\r\nHost: a\r\n\r\n".repeat(PIPELINED);
    run.repeat("kept", |_| {
        client.send(&request);
        for _ in 0..PIPELINED {
            let reply = client.read_reply();
            // The route and its directory are of one configuration.
            assert_eq!(reply.field("x-variant"), Some(reply.text().as_str()), "{}", reply.head);
        }
        PIPELINED as u64
    });
}

pub fn new_connections(run: &Run<'_>) {
    run.repeat("new connections", |_| {
        let reply = Client::connect(run.address).get("/page");
        assert_eq!((reply.status, reply.text().as_str()), (200, "stored"), "{}", reply.head);
        1
    });
}

fn http2(run: &Run<'_>) {
    let mut client = Http2Client::connect(run.address);
    run.repeat("HTTP/2", |_| {
        let pending: Vec<_> =
            (0..PIPELINED).map(|_| client.begin("GET", "/file/a.txt", &[])).collect();
        for pending in pending {
            let reply = client.finish(pending);
            assert_eq!(reply.field("x-variant"), Some(reply.text().as_str()));
        }
        let reply = client.get("/cached");
        assert_eq!((reply.status, reply.text().as_str()), (200, "cached"));
        PIPELINED as u64 + 1
    });
}

pub fn uploads(run: &Run<'_>) {
    let mut client = Client::connect(run.address);
    run.repeat("uploads", |round| {
        let length = 1 + (round as usize * 7919) % 100_000;
        let body = vec![b'a' + (round % 26) as u8; length];
        let sum = (u64::from(body[0]) * length as u64) % (1 << 32);
        let reply = client.post("/upload", "text/plain", &body);
        assert_eq!((reply.status, reply.text()), (200, format!("{length} {sum}")));
        1
    });
}

pub fn streams(run: &Run<'_>) {
    let expected: String = (1..=20).map(|part| format!("part {part}\n")).collect();
    let mut client = Client::connect(run.address);
    run.repeat("streams", |_| {
        assert_eq!(client.get("/stream").text(), expected);
        1
    });
}

/// Sends messages through one tunnel, which lasts as long as the run.
fn web_socket(run: &Run<'_>) {
    let mut client = Client::connect(run.address);
    client.send(
        "GET /ws HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n",
    );
    assert!(client.try_read_until(b"\r\n\r\n"), "an upgrade");
    run.repeat("WebSocket", |round| {
        let message = format!("{round:016}");
        client.send(&message);
        assert!(client.try_read_until(message.as_bytes()), "the tunnel has ended");
        1
    });
}

pub fn psgi(run: &Run<'_>) {
    let mut client = Client::connect(run.address);
    run.repeat("PSGI", |round| {
        let reply = client.get(&format!("/?{round}"));
        assert_eq!((reply.status, reply.text()), (200, format!("hello {round}")), "{}", reply.head);
        1
    });
}

/// Writes, deletes and reads items, and checks every answer.
pub fn memcached(run: &Run<'_>) {
    let mut client = scripts::memcached(run.site);
    let mut known: HashMap<String, Option<String>> = HashMap::new();
    run.repeat("memcached", |round| {
        let key = format!("item{}", round % 500);
        let read = client.get(&key).map(|value| String::from_utf8_lossy(&value).into_owned());
        assert_eq!(read, known.get(&key).cloned().flatten(), "{key}");
        if round % 7 == 6 {
            let wanted = if read.is_some() { "DELETED" } else { "NOT_FOUND" };
            assert_eq!(client.delete(&key), wanted, "{key}");
            known.insert(key, None);
        } else {
            client.set(&key, round.to_string().as_bytes());
            known.insert(key, Some(round.to_string()));
        }
        2
    });
    *run.model.lock().expect("no panic") = known;
}

/// The memory and the descriptors of the process.
#[derive(Clone, Copy, Debug)]
struct Held {
    /// Memory that no file backs.
    kilobytes: u64,
    descriptors: usize,
}

fn held(served: &Served) -> Held {
    let process = format!("/proc/{}", served.kirin.pid());
    let rollup = std::fs::read_to_string(format!("{process}/smaps_rollup")).expect("its memory");
    let line = rollup.lines().find(|line| line.starts_with("Anonymous:")).expect("a line");
    let kilobytes = line.split_whitespace().nth(1).and_then(|number| number.parse().ok());
    let descriptors = std::fs::read_dir(format!("{process}/fd")).expect("descriptors").count();
    Held { kilobytes: kilobytes.expect("a number"), descriptors }
}

/// Reloads again and again. Returns what the process held after the tenth reload and at the end.
fn reloads(
    run: &Run<'_>,
    served: &Served,
    size: &Size,
    backends: &[Backend],
    extra: SocketAddr,
) -> (Held, Held) {
    let _over = SetAtEnd(&run.is_over);
    let mut first = None;
    for number in 1..=size.reloads {
        run.wait_for_progress(size.requests * number as u64 / size.reloads as u64);
        // Each fifth comes by a refused one before it.
        let good = config(number, backends, extra);
        if number.is_multiple_of(5) {
            let (bad, said) = refused(number / 5, &good);
            let refusal = served.refused(&bad);
            assert!(refusal.contains(said), "{said}: {refusal}");
        }
        let said = served.reload(&good);
        assert!(said.ends_with("reloaded\n"), "{said}");
        if number == 10 {
            first = Some(settled(served));
        }
    }
    (first.expect("more than ten reloads"), settled(served))
}

/// Returns what the process holds when the workers of before have ended.
fn settled(served: &Served) -> Held {
    wait_for("the end of the workers of before", || {
        (served.kirin.worker_pids().len() <= 3).then_some(())
    });
    held(served)
}

/// Returns a site with what all configurations name.
pub fn site() -> Site {
    let mut site = Site::new()
        .with("app.psgi", APP)
        .with("bad.psgi", "die 'no such table'")
        .with("bad.lua", "return function(");
    for variant in 0..3 {
        site = site.with(&format!("v{variant}/a.txt"), variant.to_string());
        site = site.with(&format!("v{variant}/file/a.txt"), variant.to_string());
    }
    site
}

#[test]
fn chaos() {
    let size = size();
    let backends = [backend(), backend()];
    let port = LeasedPort::lease();
    let extra: SocketAddr = ([127, 0, 0, 1], port.number()).into();
    let served = Served::start(site(), &config(0, &backends, extra));
    scripts::memcached(&served.site).set("/page", b"text/plain\r\nstored");
    let run = Run::new(served.kirin.address(), &served.site);
    let began = Instant::now();
    let clients: [Clients; KINDS.len()] =
        [kept, new_connections, http2, uploads, streams, web_socket, psgi, memcached];
    let (first, last) =
        run.with_clients(&clients, || reloads(&run, &served, &size, &backends, extra));
    let items = run.check_store();
    println!(
        "{}{} reloads, and {} that were refused. {items} items of the store are as written.\n\
         After the tenth reload: {} KB, {} descriptors. At the end: {} KB, {} descriptors.",
        run.table(began.elapsed().as_secs_f64()),
        size.reloads,
        size.reloads / 5,
        first.kilobytes,
        first.descriptors,
        last.kilobytes,
        last.descriptors
    );
    let log = served.kirin.log();
    assert!(!log.contains("panicked"), "{log}");
    // Clients and servers have more connections at one moment than at another. A descriptor that
    // each reload leaves open would be 40, and 2 KB of memory each 400 KB in the long form.
    assert!(last.descriptors <= first.descriptors + 20, "{first:?} {last:?}");
    assert!(last.kilobytes <= first.kilobytes + first.kilobytes / 10 + 512, "{first:?} {last:?}");
}

struct EndsIfItPanics<'a> {
    run: &'a Run<'a>,
    is_done: bool,
}

impl Drop for EndsIfItPanics<'_> {
    fn drop(&mut self) {
        if !self.is_done {
            self.run.is_over.store(true, Relaxed);
        }
    }
}

fn check_item(store: &mut Memcached, key: &str, value: Option<&str>) {
    let found = store.get(key).map(|value| String::from_utf8_lossy(&value).into_owned());
    assert_eq!(found.as_deref(), value, "{key}");
}
