//! The built program without file descriptors, by a low `ulimit -n`: it pauses accepting and
//! continues with the rest.

use std::process::Command;
use std::time::{Duration, Instant};

use kirin_tests::{Client, Kirin, Site, kirin_command, wait_for};

const APP: &str = r#"
sub {
    my $env = shift;
    return [200, ['X-Sendfile' => "$ENV{PWD}/app/file"], []] if $env->{PATH_INFO} eq '/sent';
    [200, ['Content-Type' => 'text/plain'], ["$env->{PATH_INFO} $env->{CONTENT_LENGTH}"]];
};
"#;

/// The number of descriptors that the program may have.
const DESCRIPTORS: usize = 100;

/// A number of connections above that, so that the program has no descriptor left. A listener's
/// queue can hold them.
const CONNECTIONS: usize = 150;

/// Starts the program with these descriptors.
fn serve(threads: usize, top: &str) -> (Site, Kirin) {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("public/hello.txt", "hello\n")
        .with("public/other.txt", "other\n")
        .with("app/file", "sent\n");
    let config = format!(
        "threads = {threads}\n{top}\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\nsendfile = [\"app\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\", \"app:web\"]\n"
    );
    std::fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
    let kirin = kirin_command(&site);
    let mut command = Command::new("sh");
    command.current_dir(site.root()).env_remove("KIRIN_LOG");
    command
        .arg("-c")
        .arg(format!("ulimit -n {DESCRIPTORS} && exec \"$0\" serve --config kirin.toml"));
    command.arg(kirin.get_program());
    let kirin = Kirin::start_command(&mut command);
    (site, kirin)
}

/// Returns the clock ticks of CPU time that the process has used (proc(5)).
fn cpu_ticks(kirin: &Kirin) -> u64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", kirin.pid())).expect("stat");
    let (_, fields) = stat.rsplit_once(')').expect("a name");
    let fields: Vec<&str> = fields.split_whitespace().collect();
    let ticks = |index: usize| fields[index].parse::<u64>().expect("ticks");
    ticks(11) + ticks(12)
}

/// Takes all descriptors with connections.
fn exhaust(kirin: &Kirin) -> Vec<Client> {
    let clients = (0..CONNECTIONS).map(|_| kirin.connect()).collect();
    kirin.wait_for_log("accepting pauses; raise `ulimit -n`");
    // A worker that is still connecting returns a descriptor, which the next accept takes.
    let mut looks = 0;
    wait_for("all descriptors to be taken for a while", || {
        let used =
            std::fs::read_dir(format!("/proc/{}/fd", kirin.pid())).expect("descriptors").count();
        looks = if used >= DESCRIPTORS { looks + 1 } else { 0 };
        (looks == 20).then_some(())
    });
    clients
}

fn exhaustion_pauses_accepting(threads: usize) {
    let (_site, kirin) = serve(threads, "connections = 100000");
    let mut established: Vec<Client> = (0..5).map(|_| kirin.connect()).collect();
    for client in &mut established {
        assert_eq!(client.get("/hello.txt").text(), "hello\n");
        assert_eq!(client.get("/app").text(), "/app 0");
    }
    let mut idle = exhaust(&kirin);
    for client in &mut established {
        for _ in 0..20 {
            assert_eq!(client.get("/hello.txt").text(), "hello\n");
            assert_eq!(client.get("/app").text(), "/app 0");
        }
    }

    // A second has a hundred ticks, and a spinning loop uses all of them. Two seconds of a pause
    // use a few.
    let (before, start) = (cpu_ticks(&kirin), Instant::now());
    wait_for("two seconds of pause", || (start.elapsed() > Duration::from_secs(2)).then_some(()));
    let used = cpu_ticks(&kirin) - before;
    assert!(used < 60, "{used} ticks in a pause of two seconds");

    // The waiting connections are served when others end. Until these are closed, there is no
    // descriptor for the file.
    idle.drain(..CONNECTIONS - 30);
    for client in &mut idle {
        wait_for("the file", || (client.get("/hello.txt").text() == "hello\n").then_some(()));
    }
    drop(idle);
    assert_eq!(kirin.get("/app").text(), "/app 0");
    for client in &mut established {
        assert_eq!(client.get("/app").text(), "/app 0");
    }
}

#[test]
fn without_descriptors_accepting_pauses_and_nothing_spins() {
    exhaustion_pauses_accepting(1);
}

#[test]
fn without_descriptors_several_loops_pause_and_nothing_spins() {
    exhaustion_pauses_accepting(2);
}

#[test]
fn without_descriptors_requests_that_need_one_get_503() {
    let (_site, kirin) = serve(1, "connections = 100000");
    let large = vec![b'x'; 2_000_000];
    let (mut client, mut poster) = (kirin.connect(), kirin.connect());
    for client in [&mut client, &mut poster] {
        assert_eq!(client.get("/hello.txt").text(), "hello\n");
    }
    let idle = exhaust(&kirin);
    assert_eq!(client.get("/other.txt").status, 503, "a file that is not open yet");
    assert_eq!(client.get("/hello.txt").text(), "hello\n", "one that is");
    assert_eq!(client.get("/sent").status, 503, "a file that the application has named");
    assert_eq!(
        client.post("/small", "text/plain", b"hello").text(),
        "/small 5",
        "a body in memory"
    );
    // The rest of the body is not read.
    poster
        .send("POST /spooled HTTP/1.1\r\nHost: a\r\nContent-Length: 2000000\r\n\r\n")
        .try_send(&large);
    let reply = poster.read_reply();
    assert_eq!(
        (reply.status, reply.field("connection")),
        (503, Some("close")),
        "a body that is to be spooled"
    );
    drop((idle, poster));
    wait_for("files to be opened again", || (client.get("/other.txt").status == 200).then_some(()));
    assert_eq!(client.get("/sent").text(), "sent\n");
    assert_eq!(kirin.connect().post("/spooled", "text/plain", &large).text(), "/spooled 2000000");
}

#[test]
fn a_limit_on_connections_leaves_descriptors_for_files() {
    let (_site, kirin) = serve(1, "connections = 40");
    let mut client = kirin.connect();
    assert_eq!(client.get("/app").text(), "/app 0");
    let idle: Vec<Client> = (0..CONNECTIONS).map(|_| kirin.connect()).collect();
    kirin.wait_for_log("as many connections as `connections` allows");
    assert_eq!(client.get("/other.txt").text(), "other\n");
    assert_eq!(
        client.post("/spooled", "text/plain", &vec![b'x'; 2_000_000]).text(),
        "/spooled 2000000"
    );
    assert!(!kirin.log().contains("ulimit"), "{}", kirin.log());
    drop(idle);
}

#[test]
fn without_descriptors_few_lines_are_about_memcached_clients() {
    let (site, kirin) = serve(1, "[store]\nmemcached = [\"unix:m.sock\"]");
    let _idle = exhaust(&kirin);
    let _client = std::os::unix::net::UnixStream::connect(site.path("m.sock")).expect("connect");
    let text = "cannot accept memcached clients";
    kirin.wait_for_log(text);
    std::thread::sleep(Duration::from_secs(2));
    let count = kirin.log().matches(text).count();
    assert_eq!(count, 1, "{}", kirin.log());
}
