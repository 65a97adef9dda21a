//! Sends the inputs of the strict table to Debian's nginx and h2o, and shows which requests each
//! server accepts and where it finds the next request.
//!
//! This is not a test, because it describes other servers.
//! `cargo run -p kirin-tests --example strict_beside_others` writes the differences to the standard
//! output. `docs/limits.md` has them with the reasons.

#![allow(clippy::expect_used, clippy::panic, clippy::unwrap_used, reason = "nobody serves with it")]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use kirin_tests::strict::{self, Case};
use kirin_tests::{Site, wait_for};

/// How long a server may take before a missing answer counts as waiting.
const THINKING: Duration = Duration::from_millis(1500);

struct Server {
    name: &'static str,
    child: Child,
    port: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let _ = self.child.wait();
    }
}

fn main() {
    let site = Site::new().with("public/index.html", "index\n");
    let servers = [nginx(&site), h2o(&site)];
    let cases = strict::all();
    println!("| input | Kirin | {} | {} |\n|---|---|---|---|", servers[0].name, servers[1].name);
    let answers: Vec<Vec<String>> = servers.iter().map(|server| ask(server, &cases)).collect();
    let mut same = 0;
    for (index, case) in cases.iter().enumerate() {
        let ours = case
            .outcomes
            .iter()
            .map(|outcome| reading(outcome.contains(' ') || outcome == "404", outcome));
        let ours = shown(ours.collect());
        if answers.iter().all(|of_server| of_server[index] == ours) {
            same += 1;
            continue;
        }
        println!("| {} | {ours} | {} | {} |", case.name, answers[0][index], answers[1][index]);
    }
    println!("\n{same} of {} are read alike by all three.", cases.len());
}

/// Formats a reading: `yes` for an accepted request, and the status of a refusal.
fn reading(taken: bool, status: &str) -> String {
    if taken { "yes".into() } else { status.into() }
}

fn shown(readings: Vec<String>) -> String {
    if readings.is_empty() { "–".into() } else { readings.join(", ") }
}

/// Sends every case on its own connection, and reads the answers after the waiting time.
fn ask(server: &Server, cases: &[Case]) -> Vec<String> {
    let mut streams: Vec<TcpStream> = cases
        .iter()
        .map(|case| {
            let mut stream = TcpStream::connect(("127.0.0.1", server.port)).expect("connect");
            let _ = stream.write_all(&case.input);
            stream.set_nonblocking(true).expect("nonblocking");
            stream
        })
        .collect();
    let start = Instant::now();
    wait_for("the server to have had its time", || (start.elapsed() > THINKING).then_some(()));
    streams.iter_mut().zip(cases).map(|(stream, case)| readings(&received(stream), case)).collect()
}

fn received(stream: &mut TcpStream) -> Vec<u8> {
    let (mut all, mut buffer) = (Vec::new(), [0; 16 * 1024]);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) => return all,
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(_) => return all,
        }
    }
}

/// Returns the statuses in order. Bodies of these servers' responses never look like a status line.
fn readings(received: &[u8], case: &Case) -> String {
    let text = String::from_utf8_lossy(received);
    let statuses = text.split("HTTP/1.").skip(1).filter_map(|rest| rest.get(2..5));
    let refusals = ["400", "411", "413", "414", "417", "421", "431", "494", "501", "505"];
    let readings: Vec<String> = statuses
        .filter(|status| !status.starts_with('1'))
        .map(|status| reading(!refusals.contains(&status), status))
        .collect();
    if readings.is_empty() && !text.is_empty() && case.outcomes.len() <= 1 {
        // HTTP/0.9 has no status line.
        return "yes (0.9)".into();
    }
    shown(readings)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0")
        .and_then(|socket| socket.local_addr())
        .expect("a free port")
        .port()
}

fn started(name: &'static str, command: &mut Command, port: u16) -> Server {
    let child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect(name);
    wait_for(name, || TcpStream::connect(("127.0.0.1", port)).ok());
    Server { name, child, port }
}

/// Starts nginx. The limits are those of the table.
fn nginx(site: &Site) -> Server {
    let port = free_port();
    let temp = |name: &str| site.path(name).display().to_string();
    let config = format!(
        "daemon off; master_process off; pid {}; error_log {} crit; events {{}} http {{ access_log off; \
         client_body_temp_path {}; proxy_temp_path {}; fastcgi_temp_path {}; uwsgi_temp_path {}; scgi_temp_path {}; \
         client_max_body_size 64; server {{ listen 127.0.0.1:{port}; client_header_buffer_size 128; \
         large_client_header_buffers 4 512; location / {{ root {}; error_page 405 =200 /index.html; }} }} }}",
        temp("nginx.pid"),
        temp("nginx.log"),
        temp("t1"),
        temp("t2"),
        temp("t3"),
        temp("t4"),
        temp("t5"),
        temp("public"),
    );
    std::fs::write(site.path("nginx.conf"), config).expect("nginx.conf");
    started(
        "nginx 1.22",
        Command::new("nginx").arg("-c").arg(site.path("nginx.conf")).arg("-e").arg(site.path("e")),
        port,
    )
}

fn h2o(site: &Site) -> Server {
    let port = free_port();
    let public: &Path = &site.path("public");
    let config = format!(
        "user: root\nnum-threads: 1\nlimit-request-body: 64\nlisten:\n  host: 127.0.0.1\n  port: {port}\nhosts:\n  default:\n    paths:\n      /:\n        \
         file.dir: {}\n",
        public.display()
    );
    std::fs::write(site.path("h2o.conf"), config).expect("h2o.conf");
    started("h2o 2.2.5", Command::new("h2o").arg("-c").arg(site.path("h2o.conf")), port)
}
