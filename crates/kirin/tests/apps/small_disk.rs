//! Request bodies that the disk has no room for. A limit on the size of files stands for a full
//! disk, because it needs no rights: the same write fails, with another error.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use kirin_tests::{Backend, Kirin, LITTLE_SPACE, Site, kirin_command};

const CONFIG: &str = "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

/// An application that answers with its process id, the number of its runs, and the length and the
/// last byte of the body.
const APP: &str = r#"
use v5.16; use warnings;
my $runs = 0;
sub {
    my $env = shift;
    my ($length, $last) = (0, '');
    while (my $count = $env->{'psgi.input'}->read(my $bytes, 65536)) {
        ($length, $last) = ($length + $count, substr $bytes, -1);
    }
    return [200, [], [join ' ', $$, ++$runs, $length, $last]];
};
"#;

/// The block of `ulimit -f` in bytes.
const BLOCK: usize = 512;

/// Returns a body that ends in `z`.
fn body(bytes: usize) -> Vec<u8> {
    let mut body = vec![b'a'; bytes];
    body[bytes - 1] = b'z';
    body
}

#[test]
fn a_body_for_which_kirin_has_no_space_is_507_and_others_are_served() {
    // The memory for requests and answers counts as a file of 4.5 MB.
    let limit = 8 << 20;
    let backend = Backend::answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".into());
    let proxy = format!(
        "[[upstream]]\nname = \"api\"\nservers = [\"{}\"]\n[[route]]\npath = \"/proxy\"\n\
         try = [\"proxy:api\"]\nrequest_buffering = true\n",
        backend.address()
    );
    let site = Site::new().with("app.psgi", APP).with("kirin.toml", format!("{CONFIG}{proxy}"));
    let kirin = kirin_command(&site);
    let mut command = Command::new("sh");
    command.current_dir(site.root()).env_remove("KIRIN_LOG");
    command.env("KIRIN_ADMIN_DIRECTORY", site.admin_directory());
    command.arg("-c").arg(format!("ulimit -f {} && exec \"$0\" serve", limit / BLOCK));
    command.arg(kirin.get_program());
    let kirin = Kirin::start_command(&mut command);
    let pid = kirin.worker_pids()[0].clone();
    let small = body(limit / 2);
    for runs in 1..3 {
        for (path, line) in [("/", "request body is not taken"), ("/proxy", "request failed")] {
            let mut client = kirin.connect();
            // The rest is not read.
            let length = limit + 1_000_000;
            client
                .send(format!(
                    "POST {path} HTTP/1.1\r\nHost: a\r\nContent-Length: {length}\r\n\r\n"
                ))
                .try_send(body(length));
            let reply = client.read_reply();
            assert_eq!(reply.status, 507, "{path}: {reply:?}\n{}", kirin.log());
            kirin.wait_for_log(line);
        }
        let reply = kirin.connect().post("/", "text/plain", &small);
        assert_eq!(reply.text(), format!("{pid} {runs} {} z", small.len()), "{}", kirin.log());
        assert_eq!(kirin.connect().post("/proxy", "text/plain", &small).text(), "ok");
    }
    assert_eq!(kirin.log().matches("File too large").count(), 4, "{}", kirin.log());
}

/// Starts Kirin with a worker whose files may have only so many bytes.
fn start_with_limited_worker(limit: usize, ring: Option<&str>) -> (Site, Kirin) {
    let path = std::env::var("PATH").expect("PATH");
    let perl =
        format!("#!/bin/sh\nulimit -f {} && PATH='{path}' exec perl \"$@\"\n", limit / BLOCK);
    let site =
        Site::new().with("app.psgi", APP).with("kirin.toml", CONFIG).with("limited/perl", perl);
    let executable = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(site.path("limited/perl"), executable).expect("permissions");
    let mut command = kirin_command(&site);
    command.arg("serve").env_remove("KIRIN_RING").envs(ring.map(|value| ("KIRIN_RING", value)));
    command.env("PATH", format!("{}:{path}", site.path("limited").display()));
    let kirin = Kirin::start_command(&mut command);
    (site, kirin)
}

#[test]
fn a_worker_without_space_answers_507_and_serves_on() {
    let limit = 2 << 20;
    let (_site, kirin) = start_with_limited_worker(limit, Some("0"));
    let pid = kirin.worker_pids()[0].clone();
    let (large, fitting) = (body(3 * limit), body(limit - 1000));
    let mut client = kirin.connect();
    for runs in 1..4 {
        let reply = client.post("/large", "text/plain", &large);
        assert_eq!(reply.status, 507, "{reply:?}\n{}", kirin.log());
        assert!(reply.text().starts_with("Insufficient Storage\nRequest id: "), "{reply:?}");
        kirin.wait_for_log(&format!(
            "kirin: worker {pid}: POST /large: the request body is refused"
        ));
        let reply = client.post("/", "text/plain", &fitting);
        assert_eq!(reply.text(), format!("{pid} {runs} {} z", fitting.len()), "{}", kirin.log());
    }
    assert!(kirin.log().contains("File too large"), "{}", kirin.log());
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_worker_reads_a_large_body_from_the_file_of_kirin() {
    let limit = 1 << 20;
    let (site, kirin) = start_with_limited_worker(limit, None);
    let pid = kirin.worker_pids()[0].clone();
    let large = body(5 * limit + 1);
    let mut client = kirin.connect();
    for runs in 1..4 {
        // Another copy would be larger than a file may be.
        let reply = client.post("/", "text/plain", &large);
        let expected = format!("{pid} {} {} z", 2 * runs - 1, large.len());
        assert_eq!(reply.text(), expected, "{}", kirin.log());
        // Bodies of other sizes follow on the same connection.
        let reply = client.post("/", "text/plain", b"z");
        assert_eq!(reply.text(), format!("{pid} {} 1 z", 2 * runs));
    }
    let descriptors = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("descriptors");
    let deleted = descriptors.flatten().filter_map(|entry| std::fs::read_link(entry.path()).ok());
    let left: Vec<_> = deleted.filter(|path| path.starts_with(std::env::temp_dir())).collect();
    assert!(left.is_empty(), "{left:?}");
    drop(site);
}

#[test]
fn a_warning_says_at_the_start_that_there_is_too_little_space() {
    for (client_disk, is_too_much) in [("900000000GB", true), ("1MB", false)] {
        let site = Site::new().with("app.psgi", APP);
        let limits = format!("[limits]\nclient_disk = \"{client_disk}\"\n[[listener]]");
        let kirin = Kirin::start(&site, &CONFIG.replace("[[listener]]", &limits));
        assert_eq!(
            kirin.whole_log().contains(LITTLE_SPACE),
            is_too_much,
            "{client_disk}\n{}",
            kirin.whole_log()
        );
    }
}
