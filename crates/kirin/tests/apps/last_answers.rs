//! Answers of workers that end right after them. They reach the client even if Kirin looks late.

use kirin_tests::{Client, Kirin, Site, wait_for};
use rustix::process::Signal;

const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

const APP: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    my $number = $env->{QUERY_STRING};
    open my $begun, '>>', "begun.$number" or die $!;
    syswrite $begun, "$$\n";
    close $begun;
    my $wait = sub { select undef, undef, undef, 0.01 until -e "go.$number" };
    my @head = (200, ['Content-Type' => 'text/plain']);
    return sub {
        my $writer = shift->([@head]);
        $wait->();
        $writer->write('first ');
        kill KILL => $$;
    } if $path eq '/cut';
    $wait->();
    push @{ $env->{'psgix.cleanup.handlers'} }, sub { kill KILL => $$ } if $path eq '/killed';
    $env->{'psgix.harakiri.commit'} = 1 if $path eq '/leaves';
    [@head, ['0123456789' x 6000]];
};
"#;

/// Sends a POST that a worker answers and ends, all while Kirin is stopped. Returns what came.
fn answered_while_stopped(site: &Site, kirin: &Kirin, path: &str, number: usize) -> Client {
    let mut client = kirin.connect();
    let target = format!("{path}?{number}");
    client.send(format!(
        "POST {target} HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    ));
    let begun = site.path(&format!("begun.{number}"));
    let worker = wait_for("a worker to begin", || {
        let text = std::fs::read_to_string(&begun).ok()?;
        text.ends_with('\n').then(|| text.trim().to_owned())
    });
    kirin.signal(Signal::STOP);
    std::fs::write(site.path(&format!("go.{number}")), "").expect("a file");
    wait_for("the worker to end", || (!kirin.worker_pids().contains(&worker)).then_some(()));
    kirin.signal(Signal::CONT);
    client
}

#[test]
fn the_answer_of_a_worker_that_has_ended_reaches_the_client() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    for number in 0..6 {
        let path = ["/leaves", "/killed"][number % 2];
        let mut client = answered_while_stopped(&site, &kirin, path, number);
        let reply = client.read_reply();
        assert_eq!((reply.status, reply.body.len()), (200, 60_000), "{path}: {}", reply.head);
    }
}

#[test]
fn an_answer_that_is_cut_is_not_requested_again() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    for number in 0..4 {
        let mut client = answered_while_stopped(&site, &kirin, "/cut", number);
        let received = String::from_utf8_lossy(&client.read_to_end()).into_owned();
        assert!(received.contains("first ") && !received.ends_with("0\r\n\r\n"), "{received}");
        let begun = std::fs::read_to_string(site.path(&format!("begun.{number}")));
        assert_eq!(begun.expect("a file").lines().count(), 1);
    }
}
