//! Workers that hang between two requests, and workers that have lost their Kirin.

use std::time::{Duration, Instant};

use kirin_tests::{ADMIN, Kirin, Site, kirin_command, patient, patient_seconds, wait_for};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// An application that does what the path says, before or after its answer.
const PROGRAM: &str = r#"
use v5.16; use warnings;
package Hanging { sub DESTROY { open my $f, '>', "hangs.$$"; 1 while 1 } }
sub ring_memory {
    open my $maps, '<', '/proc/self/maps' or die $!;
    my ($start) = map { /\A([0-9a-f]+)-.*kirin-ring/ ? hex $1 : () } <$maps>;
    return $start;
}
sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    $env->{'test.object'} = bless [], 'Hanging' if $path eq '/hang';
    exec 'sleep', '600' if $path eq '/exec';
    if ($path eq '/wait') { open my $f, '>', "waits.$$"; sleep 600 }
    if ($path eq '/overwrite') {
        open my $memory, '+<:raw', '/proc/self/mem' or die $!;
        # The head of the queue.
        sysseek $memory, ring_memory() + 256, 0 or die $!;
        syswrite $memory, pack('Q', 1 << 40) or die $!;
    }
    [200, ['Content-Type' => 'text/plain'], [$$]];
};
"#;

/// The deadline in seconds, without the factor of slow machines.
const DEADLINE: u64 = 2;

fn config(workers: usize) -> String {
    format!(
        "threads = 2\n{ADMIN}[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = {workers}\ndeadline = \"{}\"\n\
         queue_wait = \"{}\"\n[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n",
        patient_seconds(DEADLINE),
        patient_seconds(15)
    )
}

fn start(workers: usize) -> (Site, Kirin) {
    let (site, kirin) = start_with(&config(workers), None);
    wait_for("all workers", || (idle(&kirin) == workers as u64).then_some(()));
    (site, kirin)
}

/// Starts Kirin through the ring, unless `ring` has another value of `KIRIN_RING`.
fn start_with(config: &str, ring: Option<&str>) -> (Site, Kirin) {
    let site = Site::new().with("app.psgi", PROGRAM).with("kirin.toml", config);
    let mut command = kirin_command(&site);
    command.arg("serve").env_remove("KIRIN_RING").envs(ring.map(|value| ("KIRIN_RING", value)));
    let kirin = Kirin::start_command(&mut command);
    (site, kirin)
}

fn idle(kirin: &Kirin) -> u64 {
    kirin.status()["apps"][0]["idle_workers"].as_u64().expect("a number")
}

fn process(pid: &str) -> Pid {
    Pid::from_raw(pid.parse().expect("a process id")).expect("a process id")
}

fn send(pid: &str, signal: Signal) {
    kill_process(process(pid), signal).expect("the process is there");
}

/// Returns whether a process is there, and not only its exit status.
fn is_alive(pid: &str) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    test_kill_process(process(pid)).is_ok() && !status.contains("State:\tZ")
}

fn wait_for_end_of(pids: &[String]) {
    wait_for(&format!("the end of {pids:?}"), || {
        pids.iter().all(|pid| !is_alive(pid)).then_some(())
    });
}

#[test]
fn workers_that_hang_after_their_answers_are_busy_and_then_replaced() {
    let (site, kirin) = start(2);
    let hanging = [kirin.get("/hang").text(), kirin.get("/hang").text()];
    assert_ne!(hanging[0], hanging[1]);
    site.wait_for_files("hangs.", 2);
    wait_for("the status to say so", || (idle(&kirin) == 0).then_some(()));
    let reply = kirin.get("/");
    assert_eq!(reply.status, 200, "{}", kirin.log());
    assert!(!hanging.contains(&reply.text()), "{}", kirin.log());
    wait_for_end_of(&hanging);
    wait_for("two idle workers", || (idle(&kirin) == 2).then_some(()));
    kirin.wait_for_log("worker has not looked for a request in time; it is killed");
    let counters = &kirin.status()["apps"][0]["counters"];
    assert!(counters["silent_workers"].as_u64() >= Some(1), "{counters}");
}

#[test]
fn one_worker_that_hangs_is_replaced_while_the_other_one_answers() {
    let (site, kirin) = start(2);
    let hanging = [kirin.get("/hang").text()];
    site.wait_for_files("hangs.", 1);
    wait_for("its end", || {
        assert_eq!(kirin.get("/").status, 200);
        (!is_alive(&hanging[0])).then_some(())
    });
    wait_for("two idle workers", || (idle(&kirin) == 2).then_some(()));
}

#[test]
fn idle_workers_that_were_stopped_are_replaced_without_any_request() {
    let (_site, kirin) = start(2);
    let workers = kirin.worker_pids();
    workers.iter().for_each(|pid| send(pid, Signal::STOP));
    wait_for("the status to say so", || (idle(&kirin) == 0).then_some(()));
    wait_for_end_of(&workers);
    wait_for("two idle workers", || (idle(&kirin) == 2).then_some(()));
    assert_eq!(kirin.get("/").status, 200);
}

#[test]
fn idle_workers_are_kept_for_many_deadlines() {
    let (_site, kirin) = start(2);
    let workers = kirin.worker_pids();
    let start = Instant::now();
    while start.elapsed() < patient(Duration::from_secs(4 * DEADLINE)) {
        std::thread::sleep(Duration::from_millis(50));
        assert_eq!(kirin.worker_pids(), workers, "{}", kirin.log());
    }
    // One that is asked to look is idle again when it has looked.
    wait_for("two idle workers", || (idle(&kirin) == 2).then_some(()));
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_stop_does_not_wait_for_workers_that_are_stopped() {
    // The deadline is longer than the limit of the stop.
    let long = config(2).replace(&patient_seconds(DEADLINE), "600s");
    let (_site, mut kirin) = start_with(&long, None);
    wait_for("all workers", || (idle(&kirin) == 2).then_some(()));
    let workers = kirin.worker_pids();
    workers.iter().for_each(|pid| send(pid, Signal::STOP));
    // The limit of the stop, 30 s, is longer than that of this wait.
    kirin.signal(Signal::TERM);
    let status = kirin.wait();
    assert!(status.success(), "{status}: {}", kirin.log());
    wait_for_end_of(&workers);
}

#[test]
fn a_worker_that_becomes_another_program_is_ended_and_replaced() {
    let (_site, kirin) = start(1);
    let worker = [kirin.get("/").text()];
    assert_eq!(kirin.get("/exec").status, 502, "{}", kirin.log());
    assert_eq!(kirin.get("/").status, 200, "{}", kirin.log());
    wait_for_end_of(&worker);
    wait_for("an idle worker", || (idle(&kirin) == 1).then_some(()));
}

#[test]
fn an_overwritten_queue_starts_again_and_loses_no_request() {
    let (_site, kirin) = start(2);
    assert_eq!(kirin.get("/overwrite").status, 200, "{}", kirin.log());
    for _ in 0..20 {
        assert_eq!(kirin.get("/").status, 200, "{}", kirin.log());
    }
    kirin.wait_for_log("has overwritten the memory of the ring");
}

/// Kills Kirin and its app parent at once.
fn kill_both(kirin: &mut Kirin) {
    let children = format!("/proc/{0}/task/{0}/children", kirin.pid());
    let children = std::fs::read_to_string(&children).expect("the children of Kirin");
    let parent = children.split_whitespace().next().expect("the app parent").to_owned();
    kirin.signal(Signal::KILL);
    send(&parent, Signal::KILL);
    kirin.wait();
}

/// Starts workers of which one hangs after its answer and one in a request, kills Kirin, and waits
/// for their ends.
fn outlived(ring: Option<&str>, kill: fn(&mut Kirin)) {
    // The worker in the request must not be killed by its deadline before Kirin is.
    let config = config(3).replace(&patient_seconds(DEADLINE), &patient_seconds(2 * DEADLINE));
    let (site, mut kirin) = start_with(&config, ring);
    wait_for("all workers", || (kirin.worker_pids().len() == 3).then_some(()));
    let mut client = kirin.connect();
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    site.wait_for_files("waits.", 1);
    kirin.get("/hang");
    site.wait_for_files("hangs.", 1);
    let workers = kirin.worker_pids();
    kill(&mut kirin);
    wait_for_end_of(&workers);
}

#[test]
fn no_worker_outlives_a_killed_kirin_and_app_parent() {
    outlived(None, kill_both);
}

#[test]
fn no_worker_outlives_a_killed_kirin() {
    let kill_front = |kirin: &mut Kirin| {
        kirin.signal(Signal::KILL);
        kirin.wait();
    };
    outlived(None, kill_front);
}

#[test]
fn no_worker_without_the_ring_outlives_a_killed_kirin_and_app_parent() {
    outlived(Some("0"), kill_both);
}
