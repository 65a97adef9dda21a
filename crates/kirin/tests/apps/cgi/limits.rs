//! The limits of programs: how many, how long, and their end.

use std::fs;
use std::process::Command;

use kirin_tests::{Client, Kirin, Reply, Site, run_kirin, wait_for};
use rustix::process::Signal;

use super::{config, pids, start, touch, wait_for_file, wait_until_gone, without_admin};

/// Returns the value of a series of the route `/do`.
fn metric(kirin: &Kirin, name: &str) -> u64 {
    let text = metrics(kirin).text();
    let value = text.lines().find_map(|line| {
        let (series, value) = line.rsplit_once(' ')?;
        (series.starts_with(name) && series.contains("route=\"/do\"")).then_some(value)
    });
    value.and_then(|value| value.parse().ok()).unwrap_or_else(|| panic!("{name} in\n{text}"))
}

fn metrics(kirin: &Kirin) -> Reply {
    let log = kirin.log();
    let (_, rest) = log.split_once("admin on http://").expect("the admin listener");
    let address = rest.split('/').next().expect("an address");
    let mut client = Client::connect(address.parse().expect("an address"));
    client.send(format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\n\r\n")).read_reply()
}

fn wait_for_metric(kirin: &Kirin, name: &str, value: u64) {
    wait_for(&format!("{name} to be {value}"), || (metric(kirin, name) == value).then_some(()));
}

fn ask(kirin: &Kirin, target: &str) -> Client {
    let mut client = kirin.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
    client
}

#[test]
fn past_the_deadline_the_program_and_its_children_are_ended() {
    let (site, kirin) = start("cgi = { deadline = \"1s\" }\n");
    let reply = kirin.get("/do?do=family");
    assert_eq!(reply.status, 504, "{}", reply.text());
    wait_until_gone(&pids(&site, 2));
    kirin.wait_for_log("took longer than `deadline`");
    // A part of the response has been sent.
    let mut client = ask(&kirin, "/do?do=family&begin");
    client.read_until(b"begun\n");
    let rest = String::from_utf8_lossy(&client.read_to_end()).into_owned();
    assert!(!rest.contains("0\r\n\r\n"), "{rest}");
    wait_until_gone(&pids(&site, 4));
    kirin.wait_for_log("response was cut");
    wait_for_metric(&kirin, "kirin_cgi_running", 0);
    assert_eq!(metric(&kirin, "kirin_cgi_failures"), 2);
}

#[test]
fn a_program_gets_sigterm_first_and_sigkill_if_it_ignores_that() {
    let (site, kirin) = start("cgi = { deadline = \"1s\" }\n");
    assert_eq!(kirin.get("/do?do=polite").status, 504);
    wait_for_file(&site, "term");
    assert_eq!(kirin.get("/do?do=family&stubborn").status, 504);
    wait_until_gone(&pids(&site, 3));
}

#[test]
fn the_program_of_a_client_that_has_gone_is_ended() {
    // While a body is sent, Kirin learns it when it writes.
    for target in ["/do?do=family", "/do?do=family&begin&more"] {
        let (site, kirin) = start("");
        let mut client = ask(&kirin, target);
        let pids = pids(&site, 2);
        if target.ends_with("more") {
            client.read_until(b"begun\n");
        }
        client.reset();
        wait_until_gone(&pids);
        wait_for_metric(&kirin, "kirin_cgi_running", 0);
    }
}

#[test]
fn requests_over_the_limit_wait_in_a_bounded_queue() {
    let (site, kirin) = start("cgi = { max_in_flight = 1, queue = 1 }\n");
    let mut first = ask(&kirin, "/do?do=wait");
    wait_for_file(&site, "waits");
    // Connections are on either of two event loops.
    let mut second = ask(&kirin, "/do?do=length");
    wait_for_metric(&kirin, "kirin_cgi_waiting_requests", 1);
    for _ in 0..4 {
        let refused = kirin.get("/do?do=length");
        assert_eq!((refused.status, refused.field("retry-after")), (503, Some("1")));
    }
    kirin.wait_for_log("the queue is full");
    assert_eq!(metric(&kirin, "kirin_cgi_running"), 1);
    touch(&site, "go");
    assert_eq!(first.read_reply().text(), "waited");
    assert_eq!(second.read_reply().text(), "whole");
    wait_for_metric(&kirin, "kirin_cgi_running", 0);
    assert_eq!(metric(&kirin, "kirin_cgi_requests"), 2);
    let text = metrics(&kirin).text();
    let refused = "kirin_cgi_queue_refused_total{site=\"\",route=\"/do\",reason=\"full\"} 4";
    assert!(text.contains(refused), "{text}");
}

#[test]
fn a_request_waits_for_queue_wait() {
    let (site, kirin) = start("cgi = { max_in_flight = 1, queue_wait = \"1s\" }\n");
    let mut first = ask(&kirin, "/do?do=wait");
    wait_for_file(&site, "waits");
    let refused = kirin.get("/do?do=length");
    assert_eq!((refused.status, refused.field("retry-after")), (503, Some("1")));
    kirin.wait_for_log("ran for as long as the request could wait");
    touch(&site, "go");
    assert_eq!(first.read_reply().text(), "waited");
}

#[test]
fn a_request_that_waits_leaves_with_its_client() {
    // So long that the metric is read while the request waits.
    let (site, kirin) = start("cgi = { max_in_flight = 1, queue_wait = \"600s\" }\n");
    let mut first = ask(&kirin, "/do?do=wait");
    wait_for_file(&site, "waits");
    let second = ask(&kirin, "/do?do=length");
    wait_for_metric(&kirin, "kirin_cgi_waiting_requests", 1);
    drop(second);
    wait_for_metric(&kirin, "kirin_cgi_waiting_requests", 0);
    touch(&site, "go");
    assert_eq!(first.read_reply().text(), "waited");
}

#[test]
fn a_reload_keeps_the_pool_of_a_route() {
    let keys = "cgi = { max_in_flight = 1, queue = 0 }\n";
    let site = super::site();
    let kirin = Kirin::start(&site, &without_admin(&config(keys)));
    let mut first = ask(&kirin, "/do?do=wait");
    wait_for_file(&site, "waits");
    let other = format!("{keys}[[route]]\npath = \"/other\"\nredirect = \"/\"\n");
    fs::write(site.path("kirin.toml"), without_admin(&config(&other))).expect("kirin.toml");
    let output = run_kirin(&site, &["reload"]);
    assert!(output.status.success(), "{output:?}");
    assert_eq!(kirin.get("/do?do=length").status, 503);
    touch(&site, "go");
    assert_eq!(first.read_reply().text(), "waited");
    wait_for("room", || (kirin.get("/do?do=length").status == 200).then_some(()));
}

#[test]
fn no_program_is_left_as_a_zombie() {
    let (_site, kirin) = start("cgi = { deadline = \"1s\" }\n");
    for what in ["length", "large", "silent", "kill", "cut", "garbage", "polite", "failing"] {
        let mut client = ask(&kirin, &format!("/do?do={what}"));
        client.read_until(b"HTTP/1.1 ");
    }
    let parent = kirin.pid().to_string();
    wait_for("the end of all programs", || {
        let found = Command::new("ps").args(["-o", "pid=,stat=,args=", "--ppid", &parent]).output();
        found.expect("ps").stdout.trim_ascii().is_empty().then_some(())
    });
}

#[test]
fn when_kirin_ends_its_programs_end() {
    let (site, mut kirin) = start("");
    let mut waiting = ask(&kirin, "/do?do=wait");
    wait_for_file(&site, "waits");
    let _lasting = ask(&kirin, "/do?do=family");
    let pids = pids(&site, 2);
    kirin.signal(Signal::TERM);
    kirin.wait_until_draining();
    // Responses in progress are finished.
    touch(&site, "go");
    assert_eq!(waiting.read_reply().text(), "waited");
    kirin.signal(Signal::TERM);
    kirin.wait();
    wait_until_gone(&pids);
}

#[test]
fn the_access_log_names_the_program() {
    let site: Site = super::site();
    let log = "access_log = { path = \"access.log\", format = \"json\" }\n[[route]]";
    let config = without_admin(&config("")).replacen("[[route]]", log, 1);
    let kirin = Kirin::start(&site, &config);
    assert_eq!(kirin.get("/do?do=length").status, 200);
    wait_for("a line of the access log", || {
        let text = fs::read_to_string(site.path("access.log")).ok()?;
        (text.contains("\"place\":\"cgi:do\"") && text.contains("\"worker\":")).then_some(())
    });
}
