//! Requests for the same response at several machines: one of them asks its application.

use std::path::PathBuf;

use kirin_tests::{Client, RedisServer, wait_for};

use super::{Machine, Two, count_of_commands};

/// The fields of a response that is kept.
const KEPT: &str = "X-Fields: Cache-Control: max-age=300|Surrogate-Key: t\r\n";

/// Sends a GET and does not wait for the response.
fn send(machine: &Machine, target: &str, fields: &str) -> Client {
    let mut client = machine.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
    client
}

/// Waits until the other machine asks the server again and again, because it waits.
fn wait_until_waiting(redis: &RedisServer) {
    let before = count_of_commands(redis);
    let missing = "commands of the machine that waits";
    wait_for(missing, || (count_of_commands(redis) >= before + 8).then_some(()));
}

/// Returns the directories in `/proc` of a machine's workers and of their parent.
pub(super) fn application_of(machine: &Machine) -> Vec<PathBuf> {
    let directory = |process: &str| PathBuf::from("/proc").join(process);
    let mut found = Vec::new();
    for worker in machine.kirin.worker_pids() {
        // proc_pid_stat(5): the parent is the second field behind the name, which is in brackets.
        let stat = std::fs::read_to_string(directory(&worker).join("stat")).expect("a process");
        let (_, fields) = stat.rsplit_once(')').expect("a name");
        found.push(directory(fields.split_ascii_whitespace().nth(1).expect("a parent")));
        found.push(directory(&worker));
    }
    assert!(!found.is_empty(), "no workers");
    found
}

#[test]
fn clients_of_all_machines_that_ask_together_are_one_call_of_an_application() {
    let two = Two::start();
    let Two { a, b, .. } = &two;
    let mut first = send(a, "/cached/wait", KEPT);
    a.wait_until_begun();
    let mut others: Vec<_> = (0..10).map(|_| send(b, "/cached/wait", KEPT)).collect();
    wait_until_waiting(&two.redis);
    assert_eq!(b.runs(), 0);
    a.go();
    assert_eq!(first.read_reply().text(), "a 1");
    for client in &mut others {
        let reply = client.read_reply();
        assert_eq!(reply.text(), "a 1", "{}", reply.head);
    }
    assert_eq!((a.runs(), b.runs()), (1, 0));
}

#[test]
fn a_response_that_nobody_else_may_have_keeps_no_machine_waiting() {
    let two = Two::start();
    let Two { a, b, .. } = &two;
    b.go();
    for fields in ["Cache-Control: private", "Cache-Control: no-store", "Set-Cookie: a=b"] {
        let fields = format!("X-Fields: {fields}\r\n");
        let target = format!("/cached/{}/wait", a.runs());
        drop(std::fs::remove_file(a.site.path("begun")));
        drop(std::fs::remove_file(a.site.path("go")));
        let mut first = send(a, &target, &fields);
        a.wait_until_begun();
        let mut other = send(b, &target, &fields);
        wait_until_waiting(&two.redis);
        a.go();
        assert!(first.read_reply().text().starts_with("a "), "{fields}");
        assert!(other.read_reply().text().starts_with("b "), "{fields}");
    }
}

#[test]
fn a_response_that_fails_is_made_by_the_next_machine() {
    let two = Two::start();
    let Two { a, b, .. } = &two;
    b.go();
    let mut first = send(a, "/cached/wait", "X-Status: 500\r\n");
    a.wait_until_begun();
    let mut other = send(b, "/cached/wait", KEPT);
    wait_until_waiting(&two.redis);
    a.go();
    assert_eq!(first.read_reply().status, 500);
    assert_eq!(other.read_reply().text(), "b 1");
}

#[test]
fn a_machine_that_dies_while_it_asks_its_application_does_not_hold_the_others() {
    let two = Two::start();
    let Two { redis, a, b } = &two;
    b.go();
    let _first = send(a, "/cached/wait", KEPT);
    a.wait_until_begun();
    let mut other = send(b, "/cached/wait", KEPT);
    wait_until_waiting(redis);
    let processes = application_of(a);
    a.kirin.signal(rustix::process::Signal::KILL);
    assert_eq!(other.read_reply().text(), "b 1");
    assert_eq!(b.runs(), 1);
    a.go();
    let are_gone = || !processes.iter().any(|process| process.exists());
    wait_for("the end of the application", || are_gone().then_some(()));
}

#[test]
fn a_client_that_goes_leaves_the_call_to_another_machine() {
    let two = Two::start();
    let Two { a, b, .. } = &two;
    b.go();
    let first = send(a, "/cached/wait", KEPT);
    a.wait_until_begun();
    let mut other = send(b, "/cached/wait", KEPT);
    wait_until_waiting(&two.redis);
    drop(first);
    // Either application may have made it: a call that has begun is not given up.
    a.go();
    let text = other.read_reply().text();
    assert!(["a 1", "b 1"].contains(&text.as_str()), "{text}");
}

#[test]
fn one_machine_renews_a_stale_response() {
    let two = Two::start();
    let Two { a, b, .. } = &two;
    let fields = "X-Fields: Surrogate-Key: t|Cache-Control: max-age=300, \
                  stale-while-revalidate=300\r\n";
    let slow = "/cached/slow/wait";
    a.go();
    assert_eq!(a.ask("GET", slow, fields).text(), "a 1");
    wait_for("the response on the other machine", || {
        let reply = b.ask("GET", slow, fields);
        b.go();
        (reply.text() == "a 1").then_some(())
    });
    for machine in [a, b] {
        drop(std::fs::remove_file(machine.site.path("begun")));
        drop(std::fs::remove_file(machine.site.path("go")));
    }
    let before = a.runs() + b.runs();
    // The purge is a call of the application of `b`, too.
    assert_eq!(b.purge("tags=\"t\", soft").status, 200);
    for _ in 0..5 {
        for machine in [a, b] {
            assert_eq!(machine.ask("GET", slow, fields).text(), "a 1");
        }
    }
    wait_for("one of them to renew it", || {
        [a, b].iter().any(|machine| machine.site.path("begun").exists()).then_some(())
    });
    assert_eq!(a.runs() + b.runs(), before + 2, "the purge and one renewal");
    [a, b].iter().for_each(|machine| machine.go());
    for machine in [a, b] {
        wait_for("the new response", || {
            (machine.ask("GET", slow, fields).text() != "a 1").then_some(())
        });
    }
}
