//! `kirin upgrade` under HTTP/3: the next program has the UDP sockets, and gives the program before
//! what belongs to its connections.

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use super::*;

/// The program that serves after an upgrade. It ends when this is dropped.
struct NextProgram(Pid);

impl NextProgram {
    /// Upgrades. Returns when the next program serves.
    fn start(served: &Served) -> Self {
        let (succeeded, said) = said(&served.site, &["upgrade"]);
        let (_, pid) = said.split_once("upgraded: process ").expect(&said);
        let pid = pid.split_once(' ').and_then(|(pid, _)| pid.parse().ok()).expect(&said);
        assert!(succeeded, "{said}");
        Self(Pid::from_raw(pid).expect("a pid"))
    }
}

impl Drop for NextProgram {
    fn drop(&mut self) {
        if kill_process(self.0, Signal::INT).is_ok() {
            wait_for("the end of the next program", || test_kill_process(self.0).err());
        }
    }
}

fn write_config(served: &Served, config: &str) {
    std::fs::write(served.site.path("kirin.toml"), with_port(config, &served.port))
        .expect("kirin.toml");
}

/// Returns a client with a request in progress, and the stream of the request.
fn begin_to_wait(served: &Served, name: &str) -> (Http3Client, u64) {
    let mut client = served.connect();
    let stream = client.begin(&format!("/app/wait?{name}"), json!({}));
    wait_for("the request in the application", || {
        let entries = std::fs::read_dir(served.site.root()).expect("the site");
        let begun = |entry: std::fs::DirEntry| {
            let file = entry.file_name().into_string().ok()?;
            (file.starts_with("begun.") && file.ends_with(name)).then_some(())
        };
        entries.filter_map(Result::ok).find_map(begun)
    });
    (client, stream)
}

fn let_go(served: &Served) {
    std::fs::write(served.site.path("go"), "").expect("a file");
}

#[test]
fn requests_in_progress_are_answered_while_the_next_program_serves_new_clients() {
    // The next program has other loops than the one before, too few for its sockets or too many.
    for (before, after) in [(2, 2), (2, 1), (1, 3)] {
        let config = |threads| CONFIG.replace("threads = 2", &format!("threads = {threads}"));
        let mut served = serve(&config(before));
        let (mut waiting, wait) = begin_to_wait(&served, "wait");
        // The upload goes on through both programs.
        let mut uploading = served.connect();
        let upload = json!({ "method": "POST", "size": 1_000_000, "end": false });
        let upload = uploading.begin("/app/body", upload);
        let mut idle: Vec<Http3Client> = (0..8).map(|_| served.connect()).collect();
        write_config(&served, &config(after));
        let next = NextProgram::start(&served);
        for number in 0..20 {
            let reply = served.connect().get("/hello.txt");
            assert_eq!(
                reply.text(),
                "hello\n",
                "client {number} of {before} to {after}: {reply:?}"
            );
        }
        let rest = json!({ "do": "data", "stream": upload, "size": 2_000_000, "end": true });
        uploading.ask(&rest);
        let reply = uploading.finish(&[upload]).remove(0);
        assert!(reply.text().starts_with("3000000 "), "{before} to {after}: {reply:?}");
        let_go(&served);
        let reply = waiting.finish(&[wait]).remove(0);
        assert_eq!((reply.status(), reply.text()), (200, "waited"), "{reply:?}");
        for client in idle.iter_mut().chain([&mut waiting, &mut uploading]) {
            let closed = client.wait_closed();
            // They are told, and none finds it out by silence.
            assert_eq!((&closed["kind"], &closed["code"]), (&json!("application"), &json!(0x100)));
        }
        assert_eq!(served.kirin.wait().code(), Some(0), "{}", served.kirin.log());
        let log = served.kirin.whole_log();
        assert!(!log.contains("panic") && !log.contains("WARN"), "{log}");
        assert_eq!(served.connect().get("/hello.txt").text(), "hello\n");
        drop(next);
    }
}

#[test]
fn every_program_hands_over_to_the_next() {
    let mut served = serve(CONFIG);
    let first = NextProgram::start(&served);
    assert_eq!(served.kirin.wait().code(), Some(0), "{}", served.kirin.log());
    let (mut client, wait) = begin_to_wait(&served, "second");
    let second = NextProgram::start(&served);
    assert_eq!(served.connect().get("/hello.txt").text(), "hello\n");
    let_go(&served);
    let reply = client.finish(&[wait]).remove(0);
    assert_eq!((reply.status(), reply.text()), (200, "waited"), "{reply:?}");
    client.wait_closed();
    drop((first, second));
}

#[test]
fn a_program_that_does_not_come_up_takes_nothing_away() {
    let served = serve(CONFIG);
    let (mut client, wait) = begin_to_wait(&served, "wait");
    write_config(&served, &format!("{CONFIG}nonsense = 1\n"));
    for _ in 0..2 {
        let (succeeded, said) = said(&served.site, &["upgrade"]);
        assert!(!succeeded && said.contains("nonsense"), "{said}");
        assert_eq!(served.connect().get("/hello.txt").text(), "hello\n");
        assert_eq!(client.get("/hello.txt").text(), "hello\n");
    }
    write_config(&served, CONFIG);
    let next = NextProgram::start(&served);
    assert_eq!(served.connect().get("/hello.txt").text(), "hello\n");
    let_go(&served);
    assert_eq!(client.finish(&[wait]).remove(0).text(), "waited");
    drop(next);
}

#[test]
fn the_next_program_may_have_no_http3() {
    let mut served = serve(CONFIG);
    let (mut client, wait) = begin_to_wait(&served, "wait");
    write_config(&served, &CONFIG.replace("http3 = true", "http3 = false"));
    let next = NextProgram::start(&served);
    let_go(&served);
    assert_eq!(client.finish(&[wait]).remove(0).text(), "waited");
    client.wait_closed();
    assert_eq!(served.kirin.wait().code(), Some(0), "{}", served.kirin.log());
    drop(next);
}

#[test]
fn the_client_of_a_program_that_was_killed_hears_that_its_connection_is_gone() {
    let mut served = serve(CONFIG);
    let (mut client, _) = begin_to_wait(&served, "wait");
    let next = NextProgram::start(&served);
    served.kirin.signal(Signal::KILL);
    served.kirin.wait();
    client.begin("/hello.txt", json!({}));
    let closed = client.wait_closed();
    // A stateless reset (RFC 9000 section 10.3). Silence would end it as well, but later.
    assert_eq!(closed["kind"], "stateless reset", "{closed}");
    drop(next);
}
