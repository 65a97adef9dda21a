//! Servers in their own processes that are killed (SIGKILL): in the middle of a response, and under
//! load.

use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};

use kirin_tests::{ADMIN, Client, Kirin, LeasedPort, Site, kirin_command, wait_for};
use rustix::process::{Pid, Signal, kill_process};

fn proxy(site: &Site, server: &str, more: &str) -> Kirin {
    Kirin::start(
        site,
        &format!(
            "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n{ADMIN}\
             [[upstream]]\nname = \"api\"\nservers = [\"{server}\"]\nmax_failures = 0\n{more}\n\
             [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n"
        ),
    )
}

/// A process. It is killed when it is dropped.
struct Process(Child);

impl Process {
    fn kill(&mut self) {
        self.0.kill().expect("kill");
        self.0.wait().expect("wait");
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A server that reports its port. It starts a response to each request, reports that, and never
/// continues.
const BEGINNER: &str = r#"
use strict; use warnings; use IO::Socket::INET; $| = 1;
my %part = (
    nothing => '',
    head    => "HTTP/1.1 200 OK\r\nContent-Le",
    length  => "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\npart",
    chunk   => "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\npart\r\n",
    large   => "HTTP/1.1 200 OK\r\nContent-Length: 9000000\r\n\r\n" . 'part' x 500_000,
);
my $listener = IO::Socket::INET->new(Listen => 9, LocalAddr => '127.0.0.1') or die $!;
print $listener->sockport, "\n";
my @kept;
while (my $connection = $listener->accept) {
    my $head = '';
    while ($head !~ /\r\n\r\n/) { sysread $connection, $head, 4096, length $head or last }
    my ($name) = $head =~ m{^\S+ /(\w+)} or next;
    print $connection $part{$name};
    $connection->flush;
    push @kept, $connection;
    print "begun\n";
}
"#;

#[test]
fn a_process_that_is_killed_while_it_answers_is_an_error_or_a_cut_response() {
    for (name, expected) in [
        ("nothing", "HTTP/1.1 502"),
        ("head", "HTTP/1.1 502"),
        ("length", "HTTP/1.1 200"),
        ("chunk", "HTTP/1.1 200"),
        ("large", "HTTP/1.1 200"),
    ] {
        let child = Command::new("perl").args(["-e", BEGINNER]).stdout(Stdio::piped()).spawn();
        let mut server = Process(child.expect("perl starts"));
        let mut said = BufReader::new(server.0.stdout.take().expect("its output")).lines();
        let port = said.next().expect("its port").expect("text");
        let site = Site::new();
        let kirin = proxy(&site, &format!("127.0.0.1:{port}"), "");
        let mut client = kirin.connect();
        client.send(format!("POST /{name} HTTP/1.1\r\nHost: test\r\nContent-Length: 0\r\n\r\n"));
        if expected.ends_with("200") {
            client.read_until(b"part");
        }
        if name == "large" {
            // All of it is on its way, because the client reads.
            let mut read = 4;
            while read < 1_000_000 {
                read += client.read_some(100_000);
            }
        }
        assert_eq!(said.next().expect("a line").expect("text"), "begun");
        server.kill();
        if expected.ends_with("200") {
            assert!(!client.read_to_end().ends_with(b"0\r\n\r\n"), "{name}");
        } else {
            assert!(client.read_reply().head.starts_with(expected), "{name}");
        }
        let line = wait_for(&format!("a line for {name}:\n{}", kirin.log()), || {
            kirin.log().lines().find(|line| line.contains("WARN")).map(str::to_owned)
        });
        assert!(
            line.contains(&format!("request=\"POST /{name}\"")) && line.contains(&port),
            "{line}"
        );
        assert_eq!(kirin.count_of_servers("api", "failures"), 1, "{name}");
    }
}

/// The results that clients have seen.
#[derive(Default)]
struct Seen {
    good: AtomicUsize,
    errors: AtomicUsize,
    cut: AtomicUsize,
}

impl Seen {
    fn good(&self) -> usize {
        self.good.load(SeqCst)
    }

    fn bad(&self) -> usize {
        self.errors.load(SeqCst) + self.cut.load(SeqCst)
    }

    /// Requests one page on its own connection, and counts the result.
    fn ask(&self, address: SocketAddr, target: &str, page: &[u8]) {
        let mut client = Client::connect(address);
        client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"));
        let all = client.read_to_end();
        let end = all.windows(4).position(|window| window == b"\r\n\r\n");
        let (head, body) = all.split_at(end.expect("a head") + 4);
        let head = String::from_utf8_lossy(head).to_ascii_lowercase();
        if !head.starts_with("http/1.1 200") {
            assert!(head.starts_with("http/1.1 502"), "{head}");
            self.errors.fetch_add(1, SeqCst);
            return;
        }
        let whole = match head.split_once("content-length: ") {
            Some((_, rest)) => rest.lines().next() == Some(&body.len().to_string()),
            None => body.ends_with(b"\r\n0\r\n\r\n"),
        };
        if !whole {
            self.cut.fetch_add(1, SeqCst);
            return;
        }
        let body = if head.contains("chunked") { unchunked(body) } else { body.to_vec() };
        assert!(body == page, "a wrong page of {} bytes for {target}", body.len());
        self.good.fetch_add(1, SeqCst);
    }
}

/// Returns the data of complete chunks.
fn unchunked(mut rest: &[u8]) -> Vec<u8> {
    let mut data = Vec::new();
    loop {
        let end = rest.windows(2).position(|window| window == b"\r\n").expect("a size");
        let size = std::str::from_utf8(&rest[..end]).expect("a size");
        let size = usize::from_str_radix(size, 16).expect("a size");
        if size == 0 {
            return data;
        }
        data.extend_from_slice(&rest[end + 2..end + 2 + size]);
        rest = &rest[end + 2 + size + 2..];
    }
}

const PAGES: usize = 8;

/// Returns a page. Sending it takes so long that a server is killed inside a response.
fn page(number: usize) -> Vec<u8> {
    format!("{number}+").repeat(150_000).into_bytes()
}

/// Has clients request pages while `kill` kills the server repeatedly, and `restart` starts it
/// again. Every failure that they see must be in the log and counted.
fn under_load(
    kirin: &Kirin,
    target: impl Fn(usize) -> String,
    mut kill: impl FnMut(),
    mut restart: impl FnMut(),
) {
    let (seen, stop) = (Arc::new(Seen::default()), Arc::new(AtomicBool::new(false)));
    let threads: Vec<_> = (0..6)
        .map(|thread| {
            let (seen, stop, address) = (Arc::clone(&seen), Arc::clone(&stop), kirin.address());
            let pages: Vec<_> = (0..PAGES).map(|number| (target(number), page(number))).collect();
            std::thread::spawn(move || {
                for (target, page) in pages.iter().cycle().skip(thread) {
                    if stop.load(SeqCst) {
                        return;
                    }
                    seen.ask(address, target, page);
                }
            })
        })
        .collect();
    for _ in 0..5 {
        let (good, bad) = (seen.good(), seen.bad());
        wait_for("good answers", || (seen.good() > good + 20).then_some(()));
        wait_for("somebody to notice", || {
            // Sometimes it is killed between two responses, where no client notices.
            kill();
            (seen.bad() > bad).then_some(())
        });
        restart();
    }
    let good = seen.good();
    wait_for("good answers", || (seen.good() > good + 20).then_some(()));
    stop.store(true, SeqCst);
    threads.into_iter().for_each(|thread| thread.join().expect("no wrong answer"));
    let (errors, cut) = (seen.errors.load(SeqCst), seen.cut.load(SeqCst));
    let logged = |what: &str| kirin.log().matches(what).count();
    wait_for("all lines", || {
        (logged("request failed") + logged("response was cut") >= errors + cut).then_some(())
    });
    assert_eq!(
        (logged("request failed"), logged("response was cut")),
        (errors, cut),
        "{}",
        kirin.log()
    );
    assert_eq!(kirin.count_of_servers("api", "failures"), (errors + cut) as u64, "{}", kirin.log());
    assert_eq!(kirin.count_of_servers("api", "in_flight"), 0);
}

/// Starts a Kirin as a server. It serves files, by HTTP/1.1 or HTTP/2.
fn file_server(site: &Site, port: u16) -> Process {
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:{port}\"\n[[route]]\npath = \"/\"\ntry = [\"files:pages\"]\n"
    );
    std::fs::write(site.path("server.toml"), config).expect("server.toml");
    let child = kirin_command(site)
        .args(["serve", "--config", "server.toml"])
        .stderr(Stdio::null())
        .spawn();
    Process(child.expect("kirin starts"))
}

fn files_are_killed_under_load(scheme: &str) {
    let mut site = Site::new();
    for number in 0..PAGES {
        site = site.with(&format!("pages/{number}.txt"), page(number));
    }
    let lease = LeasedPort::lease();
    let port = lease.number();
    let mut server = file_server(&site, port);
    let kirin = proxy(&site, &format!("{scheme}127.0.0.1:{port}"), "");
    let killed = std::cell::RefCell::new(&mut server);
    let kill = || killed.borrow_mut().kill();
    let restart = || **killed.borrow_mut() = file_server(&site, port);
    wait_for("the server", || std::net::TcpStream::connect(("127.0.0.1", port)).ok());
    under_load(&kirin, |number| format!("/{number}.txt"), kill, restart);
}

#[test]
fn an_http_1_server_killed_under_load_causes_only_visible_errors() {
    files_are_killed_under_load("");
}

#[test]
fn an_http_2_server_killed_under_load_causes_only_visible_errors() {
    files_are_killed_under_load("h2c://");
}

#[test]
fn php_processes_killed_under_load_cause_only_visible_errors() {
    let script = "<?php while (ob_get_level()) ob_end_flush();\n\
                  for ($i = 0; $i < 150; $i++) { echo str_repeat($_GET['page'] . '+', 1000); flush(); }";
    let site = Site::new().with("public/page.php", script);
    let root = site.root().display();
    let configuration = format!(
        "[global]\nerror_log = {root}/fpm.log\ndaemonize = no\n\
         [www]\nlisten = {root}/php.sock\npm = static\npm.max_children = 3\n"
    );
    std::fs::write(site.path("fpm.conf"), configuration).expect("fpm.conf");
    let mut php = Command::new(php_fpm());
    let php = php.args(["-n", "-R", "-F", "-y"]).arg(site.path("fpm.conf")).stderr(Stdio::null());
    let master = Process(php.spawn().expect("php-fpm starts"));
    wait_for("php-fpm", || std::os::unix::net::UnixStream::connect(site.path("php.sock")).ok());
    let kirin = proxy(&site, "fastcgi://unix:php.sock", "root = \"public\"\nkeep_connections = 1");
    let parent = master.0.id().to_string();
    let kill = || {
        let ps = Command::new("ps").args(["-o", "pid=", "--ppid", &parent]).output().expect("ps");
        for pid in String::from_utf8_lossy(&ps.stdout).split_whitespace() {
            let pid = pid.parse().ok().and_then(Pid::from_raw).expect("a pid");
            // It may have ended, and another process may be there.
            let _ = kill_process(pid, Signal::KILL);
        }
    };
    under_load(&kirin, |number| format!("/page.php?page={number}"), kill, || {});
    // After a signal to end, it ends its processes too.
    let mut master = master;
    let _ = kill_process(Pid::from_child(&master.0), Signal::TERM);
    let _ = master.0.wait();
}

/// Returns the path of the program. Debian includes the version in its name.
fn php_fpm() -> std::path::PathBuf {
    let programs =
        std::fs::read_dir("/usr/sbin").expect("/usr/sbin").flatten().map(|entry| entry.path());
    let is_php = |path: &std::path::PathBuf| {
        path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("php-fpm"))
    };
    programs.filter(is_php).max().expect("package php-fpm")
}
