//! USR2 through the built program: a new program replaces the old one.

mod by_hand;
mod chaos;
mod command;
mod connections;
mod faults;
mod store;
mod tls_sessions;

use std::net::SocketAddr;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kirin_tests::{Client, Kirin, Memcached, SetAtEnd, Site, kirin_command, wait_for, wait_limit};
use rustix::process::{Pid, Signal, kill_process};

/// An application that shows the front behind which it runs. It waits at `/wait` for the file `go`.
const APP: &str = r#"
use v5.16; use warnings;
my $front = getppid;
my $seen = join ',', sort grep { /^KIRIN_(?:LISTENERS|PREDECESSOR)$/ } keys %ENV;
sub {
    my $env = shift;
    if ($env->{PATH_INFO} eq '/wait') {
        open my $begun, '>', "begun.$$";
        select undef, undef, undef, 0.01 until -e 'go';
    }
    [200, ['Content-Type' => 'text/plain'], ["$front [$seen]"]];
};
"#;

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[listener]]\naddress = \"unix:web.sock\"\n\
    [store]\nmemcached = [\"unix:store.sock\"]\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
    [[route]]\npath = \"/\"\ntry = [\"store\", \"app:web\"]\n";

/// A running program, whichever process it is. It is ended when it is dropped.
struct Service {
    site: Site,
    first: Kirin,
}

impl Service {
    /// Starts it as `./kirin`, a link that can be changed.
    fn start(config: &str) -> Self {
        Self::start_in(Site::new().with("app.psgi", APP), config)
    }

    /// Does the same in a site with an application of its own.
    fn start_in(site: Site, config: &str) -> Self {
        let site = site.with("kirin.toml", config);
        symlink(kirin_command(&site).get_program(), site.path("kirin")).expect("a link");
        let first = Kirin::start_command(&mut service_command(&site));
        Self { site, first }
    }

    fn pid(&self) -> Option<i32> {
        std::fs::read_to_string(self.site.path("pid")).ok()?.trim().parse().ok()
    }

    fn signal(&self, signal: Signal) {
        let pid = self.pid().and_then(Pid::from_raw).expect("a pid");
        kill_process(pid, signal).expect("kill");
    }

    /// Returns the address that the first program found free.
    fn address(&self) -> SocketAddr {
        self.first.address()
    }

    fn get(&self, target: &str) -> String {
        let reply = Client::connect(self.address()).get(target);
        assert_eq!(reply.status, 200, "{}", reply.head);
        reply.text()
    }

    /// Sends USR2 and waits until only the next program serves. Returns its pid.
    fn upgrade(&self) -> i32 {
        let before = self.pid().expect("a pid");
        self.signal(Signal::USR2);
        let pid = wait_for(&format!("the next program:\n{}", self.first.log()), || {
            self.pid().filter(|pid| *pid != before)
        });
        wait_for("the end of the old program", || has_ended(before).then_some(()));
        pid
    }

    fn replace_program(&self, with: impl FnOnce(PathBuf)) {
        let path = self.site.path("kirin");
        // It may have been removed before.
        let _ = std::fs::remove_file(&path);
        with(path);
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        // The first program is ended by its own drop.
        if let Some(pid) =
            self.pid().filter(|pid| *pid as u32 != self.first.pid()).and_then(Pid::from_raw)
        {
            let _ = kill_process(pid, Signal::INT);
            let start = std::time::Instant::now();
            while !has_ended(pid.as_raw_nonzero().get()) && start.elapsed() < wait_limit() {
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
        }
    }
}

fn service_command(site: &Site) -> Command {
    let mut command = Command::new("./kirin");
    command.args(["serve", "--config", "kirin.toml", "--pid-file", "pid"]);
    command.current_dir(site.root()).env_remove("KIRIN_LOG");
    command.env("KIRIN_ADMIN_DIRECTORY", site.admin_directory());
    command
}

/// Returns whether a process has ended. A process that nobody has waited for counts as ended.
fn has_ended(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit_once(')').and_then(|(_, rest)| rest.split_whitespace().next());
    // The first thread is a zombie already while others still have the sockets open.
    let threads = || std::fs::read_dir(format!("/proc/{pid}/task")).map_or(0, Iterator::count);
    state.is_none_or(|state| state == "Z" && threads() <= 1)
}

#[test]
fn usr2_starts_a_new_program_and_the_old_one_ends() {
    let mut service = Service::start(CONFIG);
    let first = service.pid().expect("a pid");
    assert_eq!(first as u32, service.first.pid());
    assert_eq!(service.get("/"), format!("{first} []"));
    let second = service.upgrade();
    assert_eq!(service.get("/"), format!("{second} []"));
    assert_eq!(service.first.wait().code(), Some(0));
    let third = service.upgrade();
    assert_eq!(service.get("/"), format!("{third} []"));
    assert!(
        !service.first.log().contains("WARN") && !service.first.log().contains("ERROR"),
        "{}",
        service.first.log()
    );
    assert!(service.site.path("web.sock").exists(), "the ends of the others took nothing away");
    service.signal(Signal::TERM);
    wait_for("the end", || has_ended(third).then_some(()));
    assert_eq!(service.pid(), None, "the pid file is gone");
    for socket in ["web.sock", "store.sock"] {
        assert!(!service.site.path(socket).exists(), "{socket}");
    }
}

#[test]
fn the_store_is_carried_over_and_its_clients_find_the_new_one() {
    let service = Service::start(CONFIG);
    let store = service.site.path("store.sock");
    let mut client = Memcached::connect(&store);
    client.set("/page", b"text/plain\r\nkept");
    for number in 0..1000 {
        client.set(&format!("item{number}"), &vec![b'x'; number]);
    }
    for _ in 0..2 {
        service.upgrade();
        assert_eq!(service.get("/page"), "kept");
        let mut client = Memcached::connect(&store);
        assert_eq!(client.send("get item7\r\n").line(), "VALUE item7 0 7");
    }
    service.first.wait_for_log("the store is handed over items=1001");
}

#[test]
fn clients_of_the_store_are_not_sent_to_the_new_one_before_it_has_the_contents() {
    let service = Service::start(CONFIG);
    let store = service.site.path("store.sock");
    Memcached::connect(&store).set("/page", b"text/plain\r\nkept");
    let first = service.pid().expect("a pid");
    let slow = format!(
        "open my $f, '>', 'loading'; close $f; select undef, undef, undef, 0.01 until -e 'load';\n{APP}"
    );
    std::fs::write(service.site.path("app.psgi"), slow).expect("app.psgi");
    service.signal(Signal::USR2);
    service.site.wait_for_files("loading", 1);
    // The old program closes connections when the new one serves, perhaps in the middle of a
    // command. Such commands are sent again.
    let get = || loop {
        if let Some(line) = Memcached::connect(&store).try_ask("get /page\r\n") {
            return line;
        }
    };
    for _ in 0..50 {
        assert_eq!(get(), "VALUE /page 0 16");
    }
    // Items that reach the old store before the copy are carried over.
    Memcached::connect(&store).set("late", b"1");
    std::fs::write(service.site.path("load"), "").expect("a file");
    wait_for("the next program", || {
        assert_eq!(get(), "VALUE /page 0 16");
        service.pid().filter(|pid| *pid != first)
    });
    wait_for("the end of the old program", || has_ended(first).then_some(()));
    assert_eq!(get(), "VALUE /page 0 16");
    assert_eq!(Memcached::connect(&store).send("get late\r\n").line(), "VALUE late 0 1");
}

#[test]
fn a_request_in_progress_is_finished_by_the_program_that_began_it() {
    let service = Service::start(CONFIG);
    let first = service.pid().expect("a pid");
    let mut waiting = Client::connect(service.address());
    waiting.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    service.site.wait_for_files("begun.", 1);
    service.signal(Signal::USR2);
    let second = wait_for("the next program", || service.pid().filter(|pid| *pid != first));
    service.first.wait_for_log("upgraded: the new program serves");
    // The old program accepts for a moment more.
    wait_for("the new program alone", || {
        (service.get("/") == format!("{second} []")).then_some(())
    });
    assert!(!has_ended(first));
    std::fs::write(service.site.path("go"), "").expect("a file");
    let reply = waiting.read_reply();
    // The connection goes on, in the new program.
    assert_eq!((reply.text(), reply.field("connection")), (format!("{first} []"), None));
    wait_for("the end of the old program", || has_ended(first).then_some(()));
}

#[test]
fn a_new_program_that_never_serves_changes_nothing() {
    let service = Service::start(CONFIG);
    let first = service.pid().expect("a pid");
    Memcached::connect(&service.site.path("store.sock")).set("/page", b"text/plain\r\nkept");
    let failing = |script: &'static str| {
        move |path: PathBuf| {
            std::fs::write(&path, format!("#!/bin/sh\n{script}\n")).expect("a program");
            let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
            std::fs::set_permissions(&path, executable).expect("chmod");
        }
    };
    let assert_goes_on = |reason: &str| {
        wait_for(&format!("`{reason}` in:\n{}", service.first.log()), || {
            let log = service.first.log();
            let line = log
                .lines()
                .find(|line| line.contains("upgrade failed") && line.contains(reason))?;
            assert!(line.contains("this program keeps serving"), "{line}");
            Some(())
        });
        assert_eq!(service.pid(), Some(first));
        assert_eq!(service.get("/"), format!("{first} []"));
        assert_eq!(service.get("/page"), "kept");
    };
    service.replace_program(|_| {});
    service.signal(Signal::USR2);
    assert_goes_on("./kirin cannot be started");
    service.replace_program(failing("exit 3"));
    service.signal(Signal::USR2);
    assert_goes_on("the new program ended before it served");
    service.replace_program(failing(
        r#"exec perl -e 'open my $old, "+<&=", $ENV{KIRIN_PREDECESSOR} =~ /(\d+)/; syswrite $old, "{\"hello\":1}\n"; sleep 60'"#,
    ));
    service.signal(Signal::USR2);
    assert_goes_on("is it another program than kirin? It said \"{\\\"hello\\\":1}\\n\"");

    // The program is the same, but the application does not start.
    let program = kirin_command(&service.site).get_program().to_owned();
    service.replace_program(|path| symlink(program, path).expect("a link"));
    std::fs::write(service.site.path("app.psgi"), "die 'no such table: memo'").expect("app.psgi");
    service.signal(Signal::USR2);
    service.first.wait_for_log("no such table: memo");
    assert_goes_on("the new program does not start");
    std::fs::write(service.site.path("app.psgi"), APP).expect("app.psgi");
    let second = service.upgrade();
    assert_eq!(service.get("/"), format!("{second} []"));
    assert_eq!(service.get("/page"), "kept");
}

#[test]
fn a_program_that_is_told_to_end_while_it_upgrades_ends_with_the_new_one() {
    let mut service = Service::start(CONFIG);
    let slow = format!(
        "open my $f, '>', 'loading'; print {{$f}} getppid; close $f; sleep 1 while 1;\n{APP}"
    );
    std::fs::write(service.site.path("app.psgi"), slow).expect("app.psgi");
    service.signal(Signal::USR2);
    let path = service.site.path("loading");
    let successor =
        wait_for("the new program", || std::fs::read_to_string(&path).ok()?.parse::<i32>().ok());
    // A second USR2 is refused. So is a reload, because the new program reads the configuration.
    service.signal(Signal::USR2);
    service.first.wait_for_log("USR2 has no effect: an upgrade is going on");
    service.signal(Signal::HUP);
    service.first.wait_for_log("HUP has no effect: an upgrade is going on");
    service.signal(Signal::TERM);
    assert_eq!(service.first.wait().code(), Some(0));
    wait_for("the end of the new program", || has_ended(successor).then_some(()));
}

#[test]
fn listeners_may_differ_between_the_old_configuration_and_the_new() {
    let service = Service::start(CONFIG);
    let config = CONFIG
        .replace("[[listener]]\naddress = \"unix:web.sock\"\n", "")
        .replace("threads = 2", "threads = 3");
    let config = format!("{config}[[listener]]\naddress = \"unix:other.sock\"\n");
    std::fs::write(service.site.path("kirin.toml"), config).expect("kirin.toml");
    let second = service.upgrade();
    assert_eq!(service.get("/"), format!("{second} []"));
    assert!(std::os::unix::net::UnixStream::connect(service.site.path("other.sock")).is_ok());
    assert!(std::os::unix::net::UnixStream::connect(service.site.path("web.sock")).is_err());
    service.first.wait_for_log("web.sock: closed");
    let third = service.upgrade();
    assert_eq!(service.get("/"), format!("{third} []"));
}

#[test]
fn systemd_hears_which_process_is_the_service_now() {
    let site = Site::new().with("app.psgi", APP).with("kirin.toml", CONFIG);
    let systemd = UnixDatagram::bind(site.path("notify")).expect("bind");
    systemd.set_read_timeout(Some(wait_limit())).expect("read timeout");
    symlink(kirin_command(&site).get_program(), site.path("kirin")).expect("a link");
    let notify = site.path("notify");
    let first = Kirin::start_command(service_command(&site).env("NOTIFY_SOCKET", notify));
    let service = Service { site, first };
    let next = || {
        let mut buffer = [0; 4096];
        let count = systemd.recv(&mut buffer).expect("a notification");
        String::from_utf8_lossy(&buffer[..count]).into_owned()
    };
    assert_eq!(next(), "READY=1");
    let second = service.upgrade();
    assert_eq!(next(), format!("MAINPID={second}"));
    service.signal(Signal::TERM);
    assert_eq!(next(), "STOPPING=1");
}

/// Checks that an upgrade fails no request.
#[test]
fn no_request_fails_while_programs_come_and_go() {
    const REQUESTS: usize = 20_000;
    const UPGRADES: usize = 6;
    let service = Service::start(CONFIG);
    let (answered, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut upgrades = 0;
    std::thread::scope(|scope| {
        let clients = SetAtEnd(&enough);
        let (answered, enough, service) = (&answered, &enough, &service);
        let fresh = move || {
            while !enough.load(Ordering::Relaxed) {
                let reply =
                    Client::connect(service.address()).request("GET", "/", "Connection: close\r\n");
                assert_eq!(reply.status, 200, "{}", reply.head);
                answered.fetch_add(1, Ordering::Relaxed);
            }
        };
        let kept = move || {
            let mut client = Client::connect(service.address());
            while !enough.load(Ordering::Relaxed) {
                let reply = client.get("/");
                assert_eq!(reply.status, 200, "{}", reply.head);
                answered.fetch_add(1, Ordering::Relaxed);
                if reply.field("connection") == Some("close") {
                    client = Client::connect(service.address());
                }
            }
        };
        let mut threads: Vec<_> = (0..3).map(|_| scope.spawn(fresh)).collect();
        threads.push(scope.spawn(kept));
        let has_failed = || threads.iter().any(std::thread::ScopedJoinHandle::is_finished);
        while !has_failed() && (upgrades < UPGRADES || answered.load(Ordering::Relaxed) < REQUESTS)
        {
            service.upgrade();
            upgrades += 1;
        }
        drop(clients);
    });
    assert!(
        !service.first.log().contains("WARN") && !service.first.log().contains("ERROR"),
        "{}",
        service.first.log()
    );
    println!("{upgrades} upgrades, {} requests", answered.into_inner());
}

/// Returns a service with an item that is in its snapshot, and the snapshot's bytes.
fn service_with_snapshot() -> (Service, Vec<u8>) {
    let service =
        Service::start(&CONFIG.replace("[store]\n", "[store]\nsnapshot = \"store.snapshot\"\n"));
    let mut memcached = Memcached::connect(&service.site.path("store.sock"));
    memcached.set("/page", b"text/plain\r\nkept");
    memcached.send("snapshot\r\n");
    assert_eq!(memcached.line(), "OK");
    service.first.wait_for_log("snapshot written");
    let snapshot = std::fs::read(service.site.path("store.snapshot")).expect("a snapshot");
    (service, snapshot)
}

/// Sends USR2 with an application that loads for ever. Returns the new program's process id.
fn begin_upgrade(service: &Service) -> i32 {
    let path = service.site.path("loading");
    let _ = std::fs::remove_file(&path);
    let slow = format!(
        "open my $f, '>', 'loading'; print {{$f}} getppid; close $f; sleep 1 while 1;\n{APP}"
    );
    std::fs::write(service.site.path("app.psgi"), slow).expect("app.psgi");
    service.signal(Signal::USR2);
    wait_for("the new program", || std::fs::read_to_string(&path).ok()?.parse::<i32>().ok())
}

#[test]
fn a_failed_upgrade_does_not_touch_the_snapshot() {
    let (service, snapshot) = service_with_snapshot();
    let unchanged = || {
        let now = std::fs::read(service.site.path("store.snapshot")).expect("a snapshot");
        assert!(now == snapshot, "the snapshot has changed:\n{}", service.first.log());
    };
    // This application does not start.
    std::fs::write(service.site.path("app.psgi"), "die 'no such table: memo'").expect("app.psgi");
    service.signal(Signal::USR2);
    service.first.wait_for_log("upgrade failed");
    unchanged();
    // The new program gets each of the two signals to end, or is killed.
    for (failures, signal) in [(2, Signal::TERM), (3, Signal::INT), (4, Signal::KILL)] {
        let successor = begin_upgrade(&service);
        kill_process(Pid::from_raw(successor).expect("a pid"), signal).expect("kill");
        wait_for("the failure", || {
            (service.first.log().matches("upgrade failed").count() == failures).then_some(())
        });
        wait_for("the end of the new program", || has_ended(successor).then_some(()));
        unchanged();
    }
    assert_eq!(service.get("/page"), "kept");
    let left: Vec<_> =
        std::fs::read_dir(service.site.root()).expect("the site").flatten().collect();
    let left = left
        .iter()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("store.snapshot"));
    assert_eq!(left.count(), 1, "no other file is left");
}

#[test]
fn a_stop_during_an_upgrade_leaves_a_snapshot_with_all_items() {
    for signal in [Signal::TERM, Signal::INT, Signal::KILL] {
        let (mut service, _) = service_with_snapshot();
        let successor = begin_upgrade(&service);
        service.signal(signal);
        service.first.wait();
        wait_for("the end of the new program", || has_ended(successor).then_some(()));
        std::fs::write(service.site.path("app.psgi"), APP).expect("app.psgi");
        let kirin = Kirin::start_command(&mut service_command(&service.site));
        kirin.wait_for_log("snapshot loaded");
        assert_eq!(kirin.get("/page").text(), "kept", "{signal:?}");
    }
}

#[test]
fn an_application_cannot_save_a_store_that_its_kirin_does_not_have_yet() {
    let (service, snapshot) = service_with_snapshot();
    // While it loads, the application asks its own Kirin, whose store is empty, for a snapshot.
    let asking = r#"
use IO::Socket::UNIX;
my ($path) = $ENV{KIRIN_STORE} =~ /^unix:(.*)/;
my $store = IO::Socket::UNIX->new(Peer => $path) or die "$path: $!";
print {$store} "snapshot\r\n";
open my $f, '>', 'asked'; print {$f} scalar <$store>; close $f; rename 'asked', 'answer';
"#;
    std::fs::write(service.site.path("app.psgi"), format!("{asking}{APP}")).expect("app.psgi");
    service.signal(Signal::USR2);
    let answer =
        wait_for("the answer", || std::fs::read_to_string(service.site.path("answer")).ok());
    assert!(answer.starts_with("SERVER_ERROR"), "{answer}");
    let now = std::fs::read(service.site.path("store.snapshot")).expect("a snapshot");
    assert!(now == snapshot, "the snapshot has changed");
    service.first.wait_for_log("upgraded: the new program serves");
}
