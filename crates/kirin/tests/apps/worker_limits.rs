//! Limits that end a worker before the application ends, through the built program: age, memory,
//! the request deadline.

use std::time::{Duration, Instant};

use kirin_tests::{Kirin, Site, patient_seconds, wait_for};

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

/// Returns a site whose only worker is replaced by `limit`, a line of the configuration.
fn serve_limited(limit: &str) -> (Site, Kirin) {
    let program = r#"
use v5.16; use warnings; use Time::HiRes;
my @grown;
sub {
    my $env = shift;
    push @grown, 'x' x 150_000_000 if $env->{PATH_INFO} =~ /grow/;
    if ($env->{PATH_INFO} =~ /wait/) {
        open my $begun, '>', "begun.$$";
        select undef, undef, undef, 0.01 until -e 'go';
    }
    [200, ['Content-Type' => 'text/plain'], [$$]];
};
"#;
    let site = Site::new().with("app.psgi", program);
    let kirin =
        Kirin::start(&site, &CONFIG.replace("workers = 2", &format!("workers = 1\n{limit}")));
    (site, kirin)
}

/// Returns a configuration with one worker. The requests that do not hang must be answered before
/// the deadline.
fn with_deadline() -> String {
    let deadline = format!("workers = 1\ndeadline = \"{}\"", patient_seconds(3));
    CONFIG.replace("workers = 2", &deadline)
}

#[test]
fn a_worker_is_replaced_at_its_age_but_not_inside_a_request() {
    let (site, kirin) = serve_limited("max_age = \"1s\"");
    let first = kirin.get("/").text();
    wait_for("an idle worker to be replaced", || (kirin.get("/").text() != first).then_some(()));
    let mut client = kirin.connect();
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    site.wait_for_files("begun.", 1);
    let before = kirin.worker_pids();
    let start = Instant::now();
    wait_for("more than its age", || (start.elapsed() > Duration::from_secs(3)).then_some(()));
    assert_eq!(kirin.worker_pids(), before, "the busy worker stays");
    std::fs::write(site.path("go"), "").expect("a file");
    let reply = client.read_reply();
    assert_eq!(vec![reply.text()], before);
    let next = client.get("/");
    assert_eq!(next.status, 200);
    assert_ne!(vec![next.text()], before);
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_worker_is_replaced_when_its_memory_has_grown_but_not_inside_a_request() {
    let (site, kirin) = serve_limited("max_memory = \"120MB\"");
    let mut client = kirin.connect();
    let small = client.get("/").text();
    client.send("GET /grow-and-wait HTTP/1.1\r\nHost: a\r\n\r\n");
    site.wait_for_files("begun.", 1);
    kirin.wait_for_log("worker is replaced because of its memory");
    assert_eq!(kirin.worker_pids(), vec![small.clone()]);
    std::fs::write(site.path("go"), "").expect("a file");
    assert_eq!(client.read_reply().text(), small, "the request is finished");
    let next = client.get("/");
    assert_eq!(next.status, 200);
    assert_ne!(next.text(), small);
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_request_past_its_deadline_logs_its_stack_before_its_worker_is_killed() {
    let program = r#"
use v5.16; use warnings;
package Shop::Basket {
    sub wait_for_stock { my ($how) = @_; $how eq 'sleep' ? sleep 600 : $how eq 'read' ? <$Shop::never> : 1 while 1 }
}
pipe $Shop::never, my $writer;
sub {
    my ($how) = $_[0]{PATH_INFO} =~ m{^/hang/(.*)} or return [200, ['Content-Type' => 'text/plain'], ["$$"]];
    Shop::Basket::wait_for_stock($how);
};
"#;
    let site = Site::new().with("app.psgi", program);
    let kirin = Kirin::start(&site, &with_deadline());
    for how in ["sleep", "read", "loop"] {
        let before = kirin.get("/").text();
        let target = format!("/hang/{how}");
        assert_eq!(kirin.get(&target).status, 504);
        kirin.wait_for_log(&format!("worker {before}: GET {target}: took too long"));
        let call = format!("Shop::Basket::wait_for_stock(\"{how}\") called at");
        kirin.wait_for_log(&call);
        let log = kirin.log();
        let line =
            log.lines().skip_while(|line| !line.contains(&format!("GET {target}: took"))).nth(1);
        assert!(line.is_some_and(|line| line.contains("app.psgi line 4")), "{log}");
        wait_for("the worker to end", || (!kirin.worker_pids().contains(&before)).then_some(()));
        assert_ne!(kirin.get("/").text(), before);
    }
    let log = kirin.log();
    assert_eq!(log.matches("request failed").count(), 3, "{log}");
    assert!(!log.contains("worker ended"), "{log}");
}

#[test]
fn a_worker_that_finishes_after_its_deadline_is_not_used_again() {
    let program = r#"
use v5.16; use warnings;
sub {
    # USR2 ends the pause early, and the application goes on as if nothing had happened.
    select undef, undef, undef, 60 if $_[0]{PATH_INFO} eq '/slow';
    [200, ['Content-Type' => 'text/plain'], ["$$"]];
};
"#;
    let site = Site::new().with("app.psgi", program);
    let kirin = Kirin::start(&site, &with_deadline());
    let before = kirin.get("/").text();
    assert_eq!(kirin.get("/slow").status, 504);
    for _ in 0..50 {
        let reply = kirin.get("/");
        assert_eq!(reply.status, 200);
        assert_ne!(reply.text(), before);
    }
}
