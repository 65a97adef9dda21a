//! Background processes of an application continue, however its workers end.

use kirin_tests::{Kirin, Site, patient_seconds, wait_for};
use rustix::process::{Pid, Signal};

const CONFIG: &str = r#"
threads = 1
[[listener]]
address = "127.0.0.1:0"
[[app]]
name = "web"
load = "app.psgi"
workers = 2
[[route]]
path = "/"
try = ["app:web"]
"#;

/// Each background process waits for the file `go`, and then makes `done.NAME`.
const APP: &str = r#"
use v5.16; use warnings; use POSIX ();
sub background {
    my ($name, $daemon) = @_;
    my $pid = fork // die "fork: $!";
    return waitpid $pid, 0 if $pid && $daemon;
    return if $pid;
    if ($daemon) { POSIX::setsid() if $daemon eq 'session'; fork and POSIX::_exit(0) }
    open my $begun, '>', "begun.$name";
    for (1 .. 3000) { last if -e 'go'; select undef, undef, undef, 0.02 }
    open my $done, '>', "done.$name";
    POSIX::_exit(0);
}
background('loading') if !-e 'begun.loading';
sub {
    my $path = $_[0]{PATH_INFO};
    if ($path eq '/begin') { background('child'); background('daemon', 'group'); background('session', 'session') }
    if ($path eq '/hang') { background('hanging'); 1 while sleep 600 }
    [200, [], ["$$ " . getppid]];
};
"#;

fn start() -> (Site, Kirin) {
    start_with(CONFIG)
}

fn start_with(config: &str) -> (Site, Kirin) {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, config);
    assert_eq!(kirin.get("/begin").status, 200);
    site.wait_for_files("begun.", 4);
    (site, kirin)
}

fn assert_finish(site: &Site, count: usize) {
    std::fs::write(site.path("go"), "").expect("a file");
    site.wait_for_files("done.", count);
}

#[test]
fn a_stop_lets_background_processes_finish() {
    for signal in [Signal::TERM, Signal::INT] {
        let (site, mut kirin) = start();
        kirin.signal(signal);
        assert!(kirin.wait().success());
        assert_finish(&site, 4);
    }
}

#[test]
fn a_reload_lets_background_processes_finish() {
    let (site, kirin) = start();
    let old = kirin.worker_pids();
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("new generation serves");
    wait_for("the old workers to leave", || {
        kirin.worker_pids().iter().all(|pid| !old.contains(pid)).then_some(())
    });
    assert_finish(&site, 4);
}

#[test]
fn a_killed_worker_leaves_its_background_processes_alone() {
    // The first request must be answered in this time.
    let deadline = format!("workers = 2\ndeadline = \"{}\"", patient_seconds(5));
    let (site, kirin) = start_with(&CONFIG.replace("workers = 2", &deadline));
    assert_eq!(kirin.get("/hang").status, 504);
    wait_for("the worker to be replaced", || (kirin.worker_pids().len() == 2).then_some(()));
    assert_finish(&site, 5);
}

#[test]
fn a_killed_generation_leaves_its_background_processes_alone() {
    let (site, mut kirin) = start();
    let mut client = kirin.connect();
    client.send("GET /hang HTTP/1.1\r\nHost: x\r\n\r\n");
    site.wait_for_files("begun.hanging", 1);
    kirin.signal(Signal::INT);
    kirin.wait();
    assert_finish(&site, 5);
}

#[test]
fn a_dead_app_parent_is_replaced_and_its_background_processes_continue() {
    let (site, kirin) = start();
    let text = kirin.get("/").text();
    let (worker, parent) = text.split_once(' ').expect("two numbers");
    let parent = Pid::from_raw(parent.parse().expect("a number")).expect("a process id");
    rustix::process::kill_process(parent, Signal::KILL).expect("a signal");
    kirin.wait_for_log("app parent ended");
    wait_for("other workers", || {
        let pids = kirin.worker_pids();
        (pids.len() == 2 && !pids.iter().any(|pid| pid == worker)).then_some(())
    });
    assert_eq!(kirin.get("/").status, 200);
    assert_finish(&site, 4);
}
