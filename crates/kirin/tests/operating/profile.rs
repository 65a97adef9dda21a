//! `kirin profile` and the log of slow requests, through the built program: both point at the slow
//! line of an application, and the application does not notice.

use std::process::{Child, Output, Stdio};
use std::thread::JoinHandle;

use kirin_tests::memo::EXAMPLE;
use kirin_tests::{ADMIN, Kirin, Reply, Site, kirin_command, run_kirin, wait_for};
use serde_json::{Value, json};

/// The memo example with slow handlers. Those below `/until/` end when a file is there.
const SLOW: &str = r#"use v5.16;
use warnings;
use IO::Socket::UNIX;
use Plack::Util;
use Socket qw(AF_UNIX SOCK_STREAM PF_UNSPEC);
use Time::HiRes;

package Slow;

sub computes {
    my $stop = shift;
    my $sum = 0;
    until (-e $stop) {
        for (1 .. 10_000) { $sum += sqrt $sum } # COMPUTES
    }
    return $sum;
}

sub sleeps {
    my $stop = shift;
    until (-e $stop) {
        sleep 1; # SLEEPS
    }
    return 'slept';
}

# Returns what a signal would change: the results of calls that wait.
sub waits {
    my @seen;
    push @seen, 'sleep ' . (sleep(1) >= 1 ? 'whole' : 'cut');
    my $start = Time::HiRes::time();
    my $ready = select undef, undef, undef, 0.5;
    my $whole = Time::HiRes::time() - $start >= 0.49;
    push @seen, "select $ready " . ($whole ? 'whole' : 'cut');
    my ($here, $there) = IO::Socket->socketpair(Socket::AF_UNIX, Socket::SOCK_STREAM, Socket::PF_UNSPEC);
    my $pid = fork // die;
    if (!$pid) { select undef, undef, undef, 0.5; syswrite $there, 'hello'; require POSIX; POSIX::_exit(0) }
    my $count = sysread $here, my $data, 100;
    push @seen, 'sysread ' . ($count // "cut: $!");
    waitpid $pid, 0;
    my $alarms = 0;
    local $SIG{ALRM} = sub { $alarms++; die "alarm\n" };
    eval { alarm 1; 1 while 1 };
    push @seen, "alarms $alarms";
    local $SIG{PROF} = sub { $alarms++ };
    push @seen, 'PROF ' . (Time::HiRes::getitimer(Time::HiRes::ITIMER_PROF()) ? 'taken' : 'free');
    return join ', ', @seen;
}

package main;

my $memo = Plack::Util::load_psgi($ENV{MEMO_PSGI});
sub {
    my $env = shift;
    my ($what, $stop) = $env->{PATH_INFO} =~ m{\A/slow/(\w+)/(.+)\z} or return $memo->($env);
    $env->{'psgix.harakiri.commit'} = 1 if $stop =~ /last/;
    my $code = Slow->can($what);
    my $result = $code->("$ENV{STOPS}/$stop");
    return [200, ['Content-Type' => 'text/plain'], [$result]];
};
"#;

/// Returns the frame of a sub of [`SLOW`] in the line with this comment.
fn frame(sub: &str, comment: &str) -> String {
    let line =
        SLOW.lines().position(|line| line.ends_with(&format!("# {comment}"))).expect(comment);
    format!("Slow::{sub} (slow.psgi:{})", line + 1)
}

fn serve(app: &str, workers: usize, more: &str) -> (Site, Kirin) {
    let site = Site::new().with("slow.psgi", app);
    let root = site.root().display();
    let config = format!(
        r#"{ADMIN}
[[listener]]
address = "127.0.0.1:0"

[[app]]
name = "web"
load = "slow.psgi"
workers = {workers}
env = {{ MEMO_PSGI = "{EXAMPLE}/app.psgi", MEMO_DATABASE = "{root}/memo.sqlite", STOPS = "{root}" }}
{more}

[[route]]
path = "/"
try = ["app:web"]
"#
    );
    let kirin = Kirin::start(&site, &config);
    (site, kirin)
}

fn admin(kirin: &Kirin) -> String {
    wait_for("the admin listener", || {
        let log = kirin.log();
        let (_, rest) = log.split_once("admin on http://")?;
        Some(rest.split_once('/')?.0.to_owned())
    })
}

pub(crate) fn get(kirin: &Kirin, target: &str) -> JoinHandle<Reply> {
    let (mut client, target) = (kirin.connect(), target.to_owned());
    std::thread::spawn(move || client.get(&target))
}

pub(crate) fn stop(site: &Site, name: &str) {
    std::fs::write(site.path(name), "").expect(name);
}

/// Runs `kirin profile` to its end.
pub(crate) fn profile(site: &Site, kirin: &Kirin, arguments: &[&str]) -> Output {
    let admin = admin(kirin);
    run_kirin(site, &[&["profile", "--admin", &admin], arguments].concat())
}

/// Starts `kirin profile`, and waits until it has begun.
fn begin_profile(site: &Site, kirin: &Kirin, arguments: &[&str]) -> Child {
    let admin = admin(kirin);
    let mut command = kirin_command(site);
    command.args(["profile", "--admin", &admin]).args(arguments);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("kirin");
    wait_for("the profile to begin", || samples(kirin));
    child
}

/// Returns the number of samples of the running profile, if there is one.
fn samples(kirin: &Kirin) -> Option<u64> {
    kirin.status()["apps"][0]["profile_samples"].as_u64()
}

pub(crate) fn text(output: &Output) -> String {
    assert!(output.status.success(), "{}", error(output));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn error(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the most frequent of the folded stacks in which a sub is.
pub(crate) fn most_frequent<'a>(folded: &'a str, sub: &str) -> &'a str {
    let line = folded.lines().find(|line| line.contains(sub));
    line.unwrap_or_else(|| panic!("{sub} is not in {folded}"))
}

#[test]
fn a_profile_points_at_the_line_that_computes_and_at_the_one_that_sleeps() {
    let (site, kirin) = serve(SLOW, 2, "");
    let requests = ["computes", "sleeps"].map(|sub| get(&kirin, &format!("/slow/{sub}/stop")));
    // The requests are in progress before, during and after the profile.
    let folded = wait_for("samples of both requests", || {
        let folded = text(&profile(&site, &kirin, &["--seconds", "1"]));
        (folded.contains("Slow::computes") && folded.contains("Slow::sleeps")).then_some(folded)
    });
    for (sub, comment) in [("computes", "COMPUTES"), ("sleeps", "SLEEPS")] {
        let line = most_frequent(&folded, &format!("Slow::{sub}"));
        let (stack, count) = line.rsplit_once(' ').expect("a count");
        assert!(stack.ends_with(&frame(sub, comment)), "{folded}");
        assert!(count.parse::<u64>().is_ok_and(|count| count > 0), "{folded}");
    }

    let output = profile(&site, &kirin, &["--app", "web", "--seconds", "1", "-o", "slow.svg"]);
    assert_eq!(text(&output), "");
    assert!(error(&output).contains("samples of requests in 2 workers"), "{}", error(&output));
    let svg = std::fs::read_to_string(site.path("slow.svg")).expect("slow.svg");
    assert!(svg.contains("<svg") && svg.contains(&frame("sleeps", "SLEEPS")), "{svg}");
    stop(&site, "stop");
    for request in requests {
        assert_eq!(request.join().expect("a reply").status, 200);
    }
}

#[test]
fn a_profile_of_the_memo_example_has_its_own_subs() {
    let (site, kirin) = serve(SLOW, 1, "");
    let child = begin_profile(&site, &kirin, &["--seconds", "2", "--hz", "1000"]);
    let mut client = kirin.connect();
    let output = std::thread::spawn(move || child.wait_with_output().expect("kirin"));
    while !output.is_finished() {
        assert_eq!(client.get("/").status, 200);
    }
    let folded = text(&output.join().expect("a profile"));
    assert!(folded.contains("Memo::"), "{folded}");
    // Frames are where the application was called, and not the adapter.
    assert!(!folded.contains("Kirin::Worker::serve"), "{folded}");
}

#[test]
fn calls_that_wait_are_not_cut_short_by_a_profile() {
    let (site, kirin) = serve(SLOW, 1, "slow = \"100ms\"");
    let mut child = begin_profile(&site, &kirin, &["--seconds", "600", "--hz", "1000"]);
    let reply = kirin.get("/slow/waits/x");
    assert_eq!(
        reply.text(),
        "sleep whole, select 0 whole, sysread 5, alarms 1, PROF free",
        "{}",
        kirin.log()
    );
    assert!(samples(&kirin).is_some(), "{}", kirin.status());
    child.kill().expect("kill");
    child.wait().expect("wait");
}

#[test]
fn there_is_one_profile_at_a_time_and_it_ends_with_its_client() {
    let (site, kirin) = serve(SLOW, 1, "");
    let mut child = begin_profile(&site, &kirin, &["--seconds", "600"]);
    let second = profile(&site, &kirin, &["--seconds", "1"]);
    let expected = "409 Conflict: app `web` is being profiled already, for ";
    assert!(error(&second).contains(expected), "{}", error(&second));
    child.kill().expect("kill");
    child.wait().expect("wait");
    wait_for("the end of the profile", || samples(&kirin).is_none().then_some(()));
}

#[test]
fn a_worker_that_is_new_is_in_the_profile() {
    let (site, kirin) = serve(SLOW, 1, "");
    let child = begin_profile(&site, &kirin, &["--seconds", "6"]);
    // The worker leaves after this request.
    let first = get(&kirin, "/slow/sleeps/last");
    wait_for("a sample", || samples(&kirin).filter(|samples| *samples > 0));
    stop(&site, "last");
    assert_eq!(first.join().expect("a reply").status, 200);
    let second = get(&kirin, "/slow/sleeps/stop");
    let output = child.wait_with_output().expect("kirin");
    assert!(error(&output).contains(" in 2 workers"), "{}", error(&output));
    stop(&site, "stop");
    assert_eq!(second.join().expect("a reply").status, 200);
}

/// Sends requests until one is found in the line with a comment when it becomes slow. Others may be
/// found a moment before or after it. Returns what the status has of it, and how many were sent.
fn slow_in_line(site: &Site, kirin: &Kirin, sub: &str, comment: &str) -> (Value, usize) {
    for number in 1..=50 {
        let path = format!("/slow/{sub}/stop{number}");
        let request = get(kirin, &format!("{path}?token=secret"));
        let slow = wait_for("a slow request", || {
            let status = kirin.status();
            let slow = status["apps"][0]["slow_requests"].as_array()?;
            slow.iter().find(|slow| slow["path"] == *path).cloned()
        });
        stop(site, &format!("stop{number}"));
        // The request continues after that.
        assert_eq!(request.join().expect("a reply").status, 200);
        if slow["stack"][0] == *frame(sub, comment) {
            return (slow, number);
        }
    }
    panic!("no slow request in {}:\n{}", frame(sub, comment), kirin.log());
}

#[test]
fn a_slow_request_is_logged_with_its_line_and_continues() {
    let (site, kirin) = serve(SLOW, 2, "slow = \"200ms\"");
    for (sub, comment) in [("computes", "COMPUTES"), ("sleeps", "SLEEPS")] {
        let before = kirin.status()["apps"][0]["counters"]["slow"].as_u64().expect("a count");
        let (slow, requests) = slow_in_line(&site, &kirin, sub, comment);
        assert_eq!(slow["method"], "GET");
        assert!(slow["elapsed_ms"].as_u64().is_some_and(|elapsed| elapsed >= 200), "{slow}");
        assert!(slow["time"].is_u64() && slow["pid"].is_u64(), "{slow}");
        let path = slow["path"].as_str().expect("a path");
        kirin.wait_for_log(&format!("request=\"GET {path}\" stack=\n\t{}\n", frame(sub, comment)));
        // Each request is logged once.
        let status = kirin.status();
        assert_eq!(status["apps"][0]["counters"]["slow"], before + requests as u64, "{status}");
        for number in 1..=requests {
            std::fs::remove_file(site.path(&format!("stop{number}"))).expect("stop");
        }
    }
    assert!(!kirin.log().contains("secret"), "{}", kirin.log());
}

#[test]
fn top_shows_a_slow_url_with_its_query_and_the_status_page_and_the_log_do_not() {
    let app =
        "use Time::HiRes; sub { Time::HiRes::sleep(0.01) until -e 'go'; [200, [], ['slow']] }";
    let site = Site::new().with("slow.psgi", app).with("passwords", "");
    let kirin = Kirin::start(
        &site,
        &format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n{ADMIN}\n[[app]]\nname = \"web\"\n\
             load = \"slow.psgi\"\nworkers = 2\nslow = \"50ms\"\n[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n\
             [[route]]\npath = \"/kirin\"\ntry = [\"status\"]\nallow = [\"127.0.0.1\"]\n\
             [[site]]\nhosts = [\"wiki.test\"]\n[[site.route]]\npath = \"/\"\ntry = [\"app:web\"]\n"
        ),
    );
    let long = "x".repeat(600);
    let slow = || kirin.status()["apps"][0]["slow_requests"].clone();
    let mut clients = Vec::new();
    for target in ["/doku.php?id=start&token=s3same", &format!("/long?{long}")] {
        let mut client = kirin.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: wiki.test\r\n\r\n"));
        clients.push(client);
        let count = clients.len();
        wait_for("a slow request", || {
            (slow().as_array().is_some_and(|slow| slow.len() == count)).then_some(())
        });
    }
    std::fs::write(site.path("go"), "").expect("go");
    clients.iter_mut().for_each(|client| assert_eq!(client.read_reply().status, 200));
    let output = run_kirin(&site, &["top", "--once", "--admin", &admin(&kirin)]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let row = text.lines().find(|line| line.contains("/doku.php?"));
    let row = row.unwrap_or_else(|| panic!("no slow URL in\n{text}"));
    assert!(row.contains(" wiki.test GET /doku.php?id=start&token=s3same"), "{row}");
    assert!(text.contains(&long[..512]) && !text.contains(&long[..513]), "{text}");
    let slow = &slow()[1];
    assert_eq!(
        (&slow["path"], &slow["query"]),
        (&json!("/doku.php"), &json!("id=start&token=s3same"))
    );
    for target in ["/kirin", "/kirin?json"] {
        let page = kirin.get(target).text();
        assert!(page.contains("/doku.php") && !page.contains("s3same"), "{target}: {page}");
    }
    kirin.wait_for_log("request=\"GET /doku.php\"");
    assert!(!kirin.log().contains("s3same"), "{}", kirin.log());
}

#[test]
fn a_fast_request_is_not_slow() {
    let (_site, kirin) = serve("sub { [200, [], ['fast']] }", 1, "slow = \"30s\"");
    assert_eq!(kirin.get("/").text(), "fast");
    let status = kirin.status();
    assert_eq!(status["apps"][0]["slow_requests"], json!([]), "{status}");
}

#[test]
fn a_profile_that_cannot_be_made_says_why() {
    let (site, kirin) = serve("sub { [200, [], ['fast']] }", 1, "");
    for (arguments, expected) in [
        (&["--app", "wbe"][..], "there is no app `wbe`, but `web`"),
        (&["--seconds", "1"], "app `web` had no request in these 1 s"),
        (&["--seconds", "601"], "allowed are 1 to 600"),
        (&["--hz", "0"], "allowed are 1 to 1000"),
        (&["-o", "no/such/directory.svg"], "no/such/directory.svg: "),
        (&["-o", "/tmp"], "/tmp is a directory"),
    ] {
        let output = profile(&site, &kirin, arguments);
        assert!(!output.status.success() && output.stdout.is_empty(), "{arguments:?}");
        assert!(error(&output).contains(expected), "{arguments:?}: {}", error(&output));
    }
    let output = run_kirin(&site, &["profile", "--admin", "unix:none.sock"]);
    assert!(error(&output).contains("none.sock"), "{}", error(&output));
}

#[test]
fn an_adapter_that_does_not_say_where_its_stack_is_cannot_be_profiled() {
    let app = "no warnings; *Kirin::StackLayout::greeting_word = sub { };\n\
               sub { select undef, undef, undef, 0.2; [200, [], ['fast']] }";
    let (site, kirin) = serve(app, 1, "slow = \"100ms\"");
    let output = profile(&site, &kirin, &["--seconds", "1"]);
    let expected = "its adapter does not say where the stack is";
    assert!(
        error(&output).contains("501") && error(&output).contains(expected),
        "{}",
        error(&output)
    );
    assert_eq!(kirin.get("/").text(), "fast");
    kirin.wait_for_log("stack=not read: its adapter does not say where the stack is");
}
