//! The extensions of PSGI through the built program.

use kirin_tests::{Kirin, Site, patient_seconds, wait_for};
use rustix::process::Signal;

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

const CLEANUP: &str = r#"
use v5.16; use warnings; use Time::HiRes;
sub {
    my $env = shift;
    my ($path, $text) = ($env->{PATH_INFO}, ['Content-Type' => 'text/plain']);
    my $cleanup = sub {
        push @{ $env->{'psgix.cleanup.handlers'} }, sub {
            open my $begun, '>', "begun.$$";
            select undef, undef, undef, 0.01 until -e 'go';
            rename 'go', 'gone';
            print STDERR "cleaned up after $_[0]{PATH_INFO}\n";
        };
    };
    return [200, $text, ["$$"]] if $path eq '/';
    if ($path eq '/die') { push @{ $env->{'psgix.cleanup.handlers'} }, sub { die "a bad handler\n" }; $cleanup->() }
    elsif ($path ne '/late') { $cleanup->() }
    return sub {
        my $writer = shift->([200, $text]);
        $writer->write("$$");
        $cleanup->() if $path eq '/late';
        $writer->close;
    } if $path =~ /late|stream/;
    [200, $text, ["$$"]];
};
"#;

#[test]
fn cleanup_costs_the_client_nothing_and_no_request_waits_behind_it() {
    let site = Site::new().with("app.psgi", CLEANUP);
    let kirin = Kirin::start(&site, CONFIG);
    for path in ["/whole", "/stream", "/late", "/die"] {
        let mut client = kirin.connect();
        // The response is complete while the handler still waits.
        let cleaning = client.get(path).text();
        site.wait_for_files("begun.", 1);
        for _ in 0..20 {
            let reply = client.get("/");
            assert_eq!(reply.status, 200);
            assert_ne!(reply.text(), cleaning, "{path}: the other worker answers");
            assert_eq!(reply.field("kirin-cleanup"), None);
        }
        std::fs::remove_file(site.path(&format!("begun.{cleaning}"))).expect("remove");
        std::fs::write(site.path("go"), "").expect("a file");
        kirin.wait_for_log(&format!("cleaned up after {path}"));
        // While one of the two workers cleans up once more, the other one serves: both are there.
        let held = kirin.get("/whole").text();
        site.wait_for_files("begun.", 1);
        let free = kirin.get("/").text();
        assert_ne!(held, free, "{path}");
        assert!(held == cleaning || free == cleaning, "{path}: {cleaning} serves again");
        std::fs::remove_file(site.path(&format!("begun.{held}"))).expect("remove");
        std::fs::write(site.path("go"), "").expect("a file");
        wait_for("the cleanup", || (!site.path("go").exists()).then_some(()));
    }
    kirin.wait_for_log("GET /die: a bad handler");
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn hooks_run_in_each_worker_after_its_fork_and_before_its_end() {
    let program = r#"
use v5.16; use warnings; use Kirin::Worker::Hooks qw(after_fork before_exit);
my $connected = 'nowhere';
after_fork(sub { die "no database\n" if -e 'down'; $connected = $$ });
before_exit(sub { print STDERR "good bye from $$\n" });
sub { [200, ['Content-Type' => 'text/plain'], [$connected == $$ ? $$ : "not connected: $connected"]] };
"#;
    let site = Site::new().with("app.psgi", program);
    // The first generation must be ready in this time.
    let limit = format!("workers = 1\nstart_limit = \"{}\"", patient_seconds(10));
    let mut kirin = Kirin::start(&site, &CONFIG.replace("workers = 2", &limit));
    let first = kirin.get("/").text();
    assert!(first.parse::<u32>().is_ok(), "{first}");
    // A generation whose workers cannot start is not ready, even if it is loaded.
    std::fs::write(site.path("down"), "").expect("a file");
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("no database");
    kirin.wait_for_log("reload failed");
    assert_eq!(kirin.get("/").text(), first);
    std::fs::remove_file(site.path("down")).expect("remove");
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("new generation serves");
    kirin.wait_for_log(&format!("good bye from {first}"));
    let second = kirin.get("/").text();
    kirin.signal(Signal::TERM);
    assert_eq!(kirin.wait().code(), Some(0));
    kirin.wait_for_log(&format!("good bye from {second}"));
}

#[test]
fn psgix_logger_writes_to_the_log() {
    let program = r#"
use v5.16; use warnings; use utf8;
sub {
    my $env = shift;
    $env->{'psgix.logger'}->({ level => 'warn', message => "the stock of Käse is low\n" });
    my @true = grep { $env->{$_} } map { "psgix.$_" } qw(input.buffered output.buffered cleanup harakiri);
    [200, ['Content-Type' => 'text/plain'], ["@true"]];
};
"#;
    let site = Site::new().with("app.psgi", program);
    let kirin = Kirin::start(&site, CONFIG);
    assert_eq!(
        kirin.get("/").text(),
        "psgix.input.buffered psgix.output.buffered psgix.cleanup psgix.harakiri"
    );
    kirin.wait_for_log(": warn: the stock of Käse is low request_id=");
}
