//! `start_server … -- kirin serve …`: the sockets of Server::Starter, and new programs on them
//! without a lost request.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kirin_tests::{Client, Kirin, LeasedPort, Memcached, SetAtEnd, Site, kirin_command, wait_for};
use rustix::io::{FdFlags, fcntl_setfd};
use rustix::process::Signal;

/// An application that shows its front and the variables of Server::Starter.
const APP: &str = r#"
my $seen = join ',', sort grep { /^(?:SERVER_STARTER_PORT|LISTEN_|KIRIN_(?:LISTENERS|PREDECESSOR)|NOTIFY_SOCKET)/ } keys %ENV;
my $front = getppid;
sub { [200, ['Content-Type' => 'text/plain'], ["$front [$seen]"]] };
"#;

const APP_CONFIG: &str = "[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

fn site() -> Site {
    Site::new().with("app.psgi", APP)
}

/// Returns the command `start_server OPTIONS -- kirin ARGUMENTS`. The output of both is in one log.
/// Signals go to start_server.
fn start_server(site: &Site, options: &[&str], arguments: &[&str]) -> Command {
    let kirin = kirin_command(site);
    let mut command = Command::new("start_server");
    command.args(options).arg("--").arg(kirin.get_program()).args(arguments);
    command.current_dir(site.root()).env_remove("KIRIN_LOG");
    command.env("KIRIN_ADMIN_DIRECTORY", site.admin_directory());
    command
}

fn get_over_unix(site: &Site, name: &str) -> String {
    let mut stream = UnixStream::connect(site.path(name)).expect("connect");
    stream.write_all(b"GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n").expect("send");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a reply");
    reply
}

/// Returns how often start_server has reported the end of a program that it had replaced.
fn replaced(starter: &Kirin) -> usize {
    starter
        .log()
        .lines()
        .filter(|line| line.starts_with("old worker ") && line.contains(" died"))
        .count()
}

#[test]
fn all_sockets_serve_and_the_next_program_gets_them_too() {
    let site = site();
    let options = ["--port", "127.0.0.1:0", "--path", "web.sock"];
    let mut starter =
        Kirin::start_command(&mut start_server(&site, &options, &["serve", "app.psgi"]));
    let first = starter.get("/").text();
    assert!(first.ends_with(" []"), "the application sees {first}");
    assert!(get_over_unix(&site, "web.sock").ends_with(&first));
    starter.signal(Signal::HUP);
    wait_for("the next program", || (replaced(&starter) == 1).then_some(()));
    let second = starter.get("/").text();
    assert_ne!(second, first);
    assert!(
        get_over_unix(&site, "web.sock").ends_with(&second),
        "the first program has left the socket alone"
    );
    assert!(!starter.log().contains("127.0.0.1:8080"), "{}", starter.log());
    starter.signal(Signal::TERM);
    assert_eq!(starter.wait().code(), Some(0));
    assert!(
        !starter.log().contains("WARN") && !starter.log().contains("ERROR"),
        "{}",
        starter.log()
    );
}

#[test]
fn listeners_get_sockets_by_address_and_the_others_are_bound() {
    let leases = [LeasedPort::lease(), LeasedPort::lease()];
    let [given, free] = leases.each_ref().map(LeasedPort::address);
    let listeners = format!(
        "threads = 3\n[[listener]]\naddress = \"{given}\"\n[[listener]]\naddress = \"{free}\"\n\
         [[listener]]\naddress = \"unix:web.sock\"\n"
    );
    let site = site().with("kirin.toml", listeners + APP_CONFIG);
    let path = site.path("web.sock");
    let options = ["--port", &given.to_string(), "--path", path.to_str().expect("UTF-8")];
    let starter = Kirin::start_command(&mut start_server(&site, &options, &["serve"]));
    let text = Client::connect(given).get("/").text();
    assert_eq!(Client::connect(free).get("/").text(), text);
    assert!(get_over_unix(&site, "web.sock").ends_with(&text));
    // The next program cannot bind an address that start_server does not hold.
    starter.signal(Signal::HUP);
    starter.wait_for_log(&format!("kirin: {free} is in use by another process"));
    starter.wait_for_log("start_server has to open it too");
    assert_eq!(Client::connect(given).get("/").text(), text);
}

#[test]
fn an_unused_socket_is_an_error_with_a_remedy() {
    let leases = [LeasedPort::lease(), LeasedPort::lease()];
    let [given, wanted] = leases.each_ref().map(LeasedPort::address);
    let site =
        site().with("kirin.toml", format!("[[listener]]\naddress = \"{wanted}\"\n{APP_CONFIG}"));
    let mut command = start_server(&site, &["--port", &given.to_string()], &["serve"]);
    let starter = Kirin::spawn_command(&mut command);
    starter.wait_for_log(&format!(
        "kirin: start_server has handed over {given}, which no listener of the configuration wants; \
         add a [[listener]] with address = \"{given}\""
    ));
}

#[test]
fn the_store_s_port_may_be_handed_over_as_well() {
    let lease = LeasedPort::lease();
    let given = lease.address();
    let listeners = format!(
        "[[listener]]\naddress = \"{given}\"\n[store]\nmemcached = [\"unix:store.sock\"]\n"
    );
    let site = site().with("kirin.toml", listeners + APP_CONFIG);
    let store = site.path("store.sock");
    let options = ["--port", &given.to_string(), "--path", store.to_str().expect("UTF-8")];
    let starter = Kirin::start_command(&mut start_server(&site, &options, &["serve"]));
    let mut client = Memcached::connect(&store);
    client.set("a", b"1");
    starter.signal(Signal::HUP);
    wait_for("the next program", || (replaced(&starter) == 1).then_some(()));
    // It has its own store.
    let mut client = Memcached::connect(&store);
    assert_eq!(client.send("get a\r\n").line(), "END");
}

#[test]
fn a_descriptor_that_is_not_a_listening_socket_is_refused() {
    let site = site();
    let refused = |value: &str, expected: &str| {
        let output = kirin_command(&site)
            .args(["serve", "app.psgi"])
            .env("SERVER_STARTER_PORT", value)
            .output()
            .expect("kirin runs");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains(expected), "{value}: {said}");
        assert_eq!(output.status.code(), Some(1));
    };
    refused("127.0.0.1:80=2", "descriptor 2, which SERVER_STARTER_PORT names, is not a socket");
    refused("127.0.0.1:80=99", "descriptor 99, which SERVER_STARTER_PORT names, is not open");
    refused("127.0.0.1:80", "SERVER_STARTER_PORT=`127.0.0.1:80` is not understood");
}

#[test]
fn a_program_that_ends_before_it_serves_takes_no_client() {
    let socket = TcpListener::bind("127.0.0.1:0").expect("a socket");
    let address = socket.local_addr().expect("an address");
    // The program gets it as a starter gives it, and so this process has it, too.
    fcntl_setfd(&socket, FdFlags::empty()).expect("fcntl");
    for program in ["open my $f, '>', 'loading'; sleep 600", "die 'no database'"] {
        let site = Site::new().with("app.psgi", program);
        let mut client = Client::connect(address);
        client.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
        let mut command = kirin_command(&site);
        command.args(["serve", "app.psgi"]);
        command.env("SERVER_STARTER_PORT", format!("{address}={}", socket.as_raw_fd()));
        let mut kirin = Kirin::spawn_command(&mut command);
        if program.contains("sleep") {
            wait_for("it loads", || site.path("loading").exists().then_some(()));
            kirin.signal(Signal::TERM);
        }
        kirin.wait();
        // The connection still waits for the next program.
        socket.set_nonblocking(true).expect("a mode");
        let (mut waiting, _) =
            socket.accept().unwrap_or_else(|error| panic!("{program}: {error}: {}", kirin.log()));
        let mut start = [0; 5];
        waiting.read_exact(&mut start).expect("the request");
        assert_eq!(&start, b"GET /", "{program}");
    }
}

/// Checks that a restart fails no request. Most clients use new connections. Others use kept ones
/// and obey `Connection: close`.
#[test]
fn no_request_fails_while_programs_come_and_go() {
    const REQUESTS: usize = 20_000;
    const RESTARTS: usize = 4;
    let site = site();
    let options = ["--port", "127.0.0.1:0"];
    let starter = Kirin::start_command(&mut start_server(
        &site,
        &options,
        &["serve", "app.psgi", "--workers", "2"],
    ));
    let (answered, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut restarts = 0;
    std::thread::scope(|scope| {
        let clients = SetAtEnd(&enough);
        let (answered, enough, starter) = (&answered, &enough, &starter);
        let kept = move || {
            let mut client = starter.connect();
            while !enough.load(Ordering::Relaxed) {
                let reply = client.get("/");
                assert_eq!(reply.status, 200, "{}", reply.head);
                answered.fetch_add(1, Ordering::Relaxed);
                if reply.field("connection") == Some("close") {
                    client = starter.connect();
                }
            }
        };
        let fresh = move || {
            while !enough.load(Ordering::Relaxed) {
                let reply = starter.connect().request("GET", "/", "Connection: close\r\n");
                assert_eq!(reply.status, 200, "{}", reply.head);
                answered.fetch_add(1, Ordering::Relaxed);
            }
        };
        let mut threads: Vec<_> = (0..3).map(|_| scope.spawn(fresh)).collect();
        threads.push(scope.spawn(kept));
        let has_failed = || threads.iter().any(std::thread::ScopedJoinHandle::is_finished);
        while !has_failed() && (restarts < RESTARTS || answered.load(Ordering::Relaxed) < REQUESTS)
        {
            starter.signal(Signal::HUP);
            restarts += 1;
            wait_for("the next program", || {
                (has_failed() || replaced(starter) >= restarts).then_some(())
            });
        }
        drop(clients);
        for thread in threads {
            assert!(thread.join().is_ok(), "a request has failed:\n{}", starter.log());
        }
    });
    assert!(
        !starter.log().contains("WARN") && !starter.log().contains("ERROR"),
        "{}",
        starter.log()
    );
    println!("{restarts} restarts, {} requests", answered.into_inner());
}
