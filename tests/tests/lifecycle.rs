//! The life of an application through the built program: what signals, new code, age and time limits do to it.

use kirin_tests::{Kirin, Site, wait_for};
use rustix::process::Signal;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\nstart_limit = \"3s\"\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

/// An application that says which code it is, and waits at `/wait` for the file `go`.
fn app(version: &str) -> String {
    format!(
        r#"
use v5.16; use warnings;
sub {{
    my $env = shift;
    if ($env->{{PATH_INFO}} eq '/wait') {{
        open my $begun, '>', "begun.$$";
        select undef, undef, undef, 0.01 until -e 'go';
    }}
    [200, ['Content-Type' => 'text/plain'], ['{version}']];
}};
"#
    )
}

fn write_app(site: &Site, program: &str) {
    std::fs::write(site.path("app.psgi"), program).expect("app.psgi");
}

fn serve(version: &str) -> (Site, Kirin) {
    let site = Site::new().with("app.psgi", app(version));
    let kirin = Kirin::start(&site, CONFIG);
    (site, kirin)
}

/// Waits until so many workers are at a request of `/wait`.
fn wait_for_begun(site: &Site, count: usize) {
    wait_for("requests to begin", || {
        let entries = std::fs::read_dir(site.root()).expect("the site").flatten();
        let begun = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with("begun."));
        (begun.count() == count).then_some(())
    });
}

/// Takeovers so far, by what the log says.
fn takeovers(kirin: &Kirin) -> usize {
    kirin.log().matches("new generation serves").count()
}

#[test]
fn hup_brings_new_code_into_service() {
    let (site, kirin) = serve("one");
    let mut client = kirin.connect();
    assert_eq!(client.get("/").text(), "one");
    write_app(&site, &app("two"));
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("new generation serves");
    assert_eq!(client.get("/").text(), "two");
}

#[test]
fn a_request_in_progress_is_finished_by_the_generation_that_began_it() {
    let (site, kirin) = serve("one");
    let mut waiting = kirin.connect();
    waiting.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for_begun(&site, 1);
    write_app(&site, &app("two"));
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("new generation serves");
    assert_eq!(kirin.get("/").text(), "two");
    std::fs::write(site.path("go"), "").expect("a file");
    assert_eq!(waiting.read_reply().text(), "one");
}

#[test]
fn requests_in_the_queue_are_served_by_the_generation_that_comes() {
    let (site, kirin) = serve("one");
    let mut busy: Vec<_> = (0..2).map(|_| kirin.connect()).collect();
    for client in &mut busy {
        client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    wait_for_begun(&site, 2);
    // Both workers stay busy until the end of this test, so that only new code can answer this one.
    let mut queued = kirin.connect();
    queued.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    write_app(&site, &app("two"));
    kirin.signal(Signal::HUP);
    assert_eq!(queued.read_reply().text(), "two");
    std::fs::write(site.path("go"), "").expect("a file");
    for client in &mut busy {
        assert_eq!(client.read_reply().status, 200);
    }
}

#[test]
fn code_that_cannot_be_loaded_leaves_the_old_one_serving_and_the_log_says_why() {
    let (site, kirin) = serve("one");
    for (program, reason) in [
        ("die 'no such table: memo'", "no such table: memo"),
        ("sub { [ }", "syntax error"),
        ("exit 3", "exit status: 3"),
        ("sleep 1 while 1", "was not ready within 3s"),
    ] {
        write_app(&site, program);
        kirin.signal(Signal::HUP);
        kirin.wait_for_log(reason);
        wait_for("the reload to be given up", || {
            let log = kirin.log();
            let line = log.lines().find(|line| line.contains("reload failed") && line.contains(reason));
            line.map(|line| assert!(line.contains("generation 1 keeps serving"), "{line}"))
        });
        assert_eq!(kirin.get("/").text(), "one", "{program}");
    }
    write_app(&site, &app("two"));
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("new generation serves");
    assert_eq!(kirin.get("/").text(), "two");
}

#[test]
fn several_reloads_in_a_row_become_two_and_the_last_code_serves() {
    // Loading waits, so that all signals but the first come while it does.
    let slow = |version: &str| format!("select undef, undef, undef, 0.5;\n{}", app(version));
    let site = Site::new().with("app.psgi", slow("one"));
    let kirin = Kirin::start(&site, CONFIG);
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("generation=2");
    write_app(&site, &slow("two"));
    for _ in 0..20 {
        kirin.signal(Signal::HUP);
    }
    wait_for("the last code to serve", || {
        (kirin.get("/").text() == "two" && takeovers(&kirin) == 2).then_some(())
    });
    assert!(!kirin.log().contains("generation=4"), "{}", kirin.log());
}

#[test]
fn a_normal_stop_is_told_in_two_lines_without_a_warning() {
    let (_site, mut kirin) = serve("one");
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("new generation serves");
    assert_eq!(kirin.get("/").status, 200);
    kirin.signal(Signal::TERM);
    assert_eq!(kirin.wait().code(), Some(0));
    let log = wait_for("the last line", || {
        let log = kirin.log();
        log.contains("app has ended").then_some(log)
    });
    let said: Vec<&str> = log.lines().skip_while(|line| !line.contains("stopping")).collect();
    assert_eq!(said.len(), 2, "{log}");
    assert!(!log.contains("WARN") && !log.contains("ERROR"), "{log}");
}

#[test]
fn a_stop_while_applications_load_does_not_speak_of_workers_that_take_too_long() {
    let site = Site::new().with("app.psgi", "sleep 1 while 1").with("kirin.toml", CONFIG);
    let mut kirin = Kirin::spawn(&site, &["serve"]);
    kirin.wait_for_log("app parent started");
    kirin.signal(Signal::TERM);
    assert_eq!(kirin.wait().code(), Some(0), "{}", kirin.log());
    kirin.wait_for_log("app has ended");
    assert!(!kirin.log().contains("WARN") && !kirin.log().contains("ERROR"), "{}", kirin.log());
}

/// Pids of the processes with the title of a worker of this program's application.
fn workers_of(kirin: &Kirin) -> Vec<String> {
    let list = |arguments: &[&str]| {
        let output = Command::new("ps").args(arguments).output().expect("ps");
        String::from_utf8_lossy(&output.stdout).into_owned()
    };
    let parents = list(&["-o", "pid=", "--ppid", &kirin.pid().to_string()]);
    let mut workers = Vec::new();
    for parent in parents.split_whitespace() {
        for line in list(&["-o", "pid=,stat=,args=", "--ppid", parent]).lines() {
            let mut fields = line.split_whitespace();
            if let (Some(pid), Some(state)) = (fields.next(), fields.next())
                && !state.starts_with('Z')
                && line.contains("worker")
            {
                workers.push(pid.to_owned());
            }
        }
    }
    workers
}

fn wait_for_workers(kirin: &Kirin, count: usize) {
    wait_for(&format!("{count} workers"), || (workers_of(kirin).len() == count).then_some(()));
}

/// Sends as many requests at once as there are workers, and sees them all begun.
fn assert_parallel(site: &Site, kirin: &Kirin, count: usize) {
    let mut clients: Vec<_> = (0..count).map(|_| kirin.connect()).collect();
    for client in &mut clients {
        client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    wait_for_begun(site, count);
    std::fs::write(site.path("go"), "").expect("a file");
    for client in &mut clients {
        assert_eq!(client.read_reply().status, 200);
    }
}

#[test]
fn ttin_and_ttou_change_the_number_of_workers_and_new_generations_keep_it() {
    let (site, kirin) = serve("one");
    wait_for_workers(&kirin, 2);
    kirin.signal(Signal::TTIN);
    wait_for_workers(&kirin, 3);
    kirin.signal(Signal::TTIN);
    wait_for_workers(&kirin, 4);
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("new generation serves");
    wait_for_workers(&kirin, 4);
    kirin.signal(Signal::TTOU);
    wait_for_workers(&kirin, 3);
    assert_parallel(&site, &kirin, 3);
    assert_eq!(workers_of(&kirin).len(), 3);
}

#[test]
fn the_last_worker_stays() {
    let (_site, kirin) = serve("one");
    kirin.signal(Signal::TTOU);
    wait_for_workers(&kirin, 1);
    kirin.signal(Signal::TTOU);
    kirin.wait_for_log("the number of workers stays");
    assert_eq!(kirin.get("/").text(), "one");
    kirin.signal(Signal::TTIN);
    wait_for_workers(&kirin, 2);
}

#[test]
fn a_number_that_changes_while_code_is_loaded_is_the_new_generations_too() {
    let (site, kirin) = serve("one");
    // Signals of one kind are not counted, so that each is seen before the next.
    write_app(&site, &format!("select undef, undef, undef, 0.01 until -e 'load';\n{}", app("two")));
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("generation=2");
    for count in 3..=5 {
        kirin.signal(Signal::TTIN);
        kirin.wait_for_log(&format!("workers={count}"));
    }
    std::fs::write(site.path("load"), "").expect("a file");
    kirin.wait_for_log("new generation serves");
    wait_for_workers(&kirin, 5);
    assert_eq!(kirin.get("/").text(), "two");
}

#[test]
fn usr1_opens_the_access_log_anew() {
    let site = Site::new().with("app.psgi", app("one"));
    let config = CONFIG.replacen("[[app]]", "access_log = \"access.log\"\n[[app]]", 1);
    let kirin = Kirin::start(&site, &config);
    let has = |name: &str, text: &str| {
        let content = std::fs::read_to_string(site.path(name)).unwrap_or_default();
        content.contains(text).then_some(())
    };
    let mut client = kirin.connect();
    client.get("/before");
    wait_for("the first line", || has("access.log", "/before"));
    std::fs::rename(site.path("access.log"), site.path("access.log.1")).expect("rename");
    client.get("/renamed");
    wait_for("a line in the renamed file", || has("access.log.1", "/renamed"));
    kirin.signal(Signal::USR1);
    kirin.wait_for_log("is opened anew");
    client.get("/after");
    wait_for("a line in the new file", || has("access.log", "/after"));
    assert!(has("access.log", "/renamed").is_none() && has("access.log.1", "/after").is_none());
}

#[test]
fn a_log_that_cannot_be_opened_anew_is_written_on() {
    let site = Site::new().with("app.psgi", app("one")).with("logs/access.log", "");
    let config = CONFIG.replacen("[[app]]", "access_log = \"logs/access.log\"\n[[app]]", 1);
    let kirin = Kirin::start(&site, &config);
    std::fs::rename(site.path("logs"), site.path("moved")).expect("rename");
    kirin.signal(Signal::USR1);
    kirin.wait_for_log("cannot be opened anew");
    assert_eq!(kirin.get("/still").status, 200);
    wait_for("a line in the old file", || {
        let content = std::fs::read_to_string(site.path("moved/access.log")).expect("the log");
        content.contains("/still").then_some(())
    });
}

/// A site whose only worker is replaced by `limit`, a line of the configuration.
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
    let kirin = Kirin::start(&site, &CONFIG.replace("workers = 2", &format!("workers = 1\n{limit}")));
    (site, kirin)
}

#[test]
fn a_worker_is_replaced_at_its_age_but_not_inside_a_request() {
    let (site, kirin) = serve_limited("max_age = \"1s\"");
    let first = kirin.get("/").text();
    wait_for("an idle worker to be replaced", || (kirin.get("/").text() != first).then_some(()));
    let mut client = kirin.connect();
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for_begun(&site, 1);
    let before = workers_of(&kirin);
    let start = Instant::now();
    wait_for("more than its age", || (start.elapsed() > Duration::from_secs(3)).then_some(()));
    assert_eq!(workers_of(&kirin), before, "the busy worker stays");
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
    wait_for_begun(&site, 1);
    kirin.wait_for_log("worker is replaced because of its memory");
    assert_eq!(workers_of(&kirin), vec![small.clone()]);
    std::fs::write(site.path("go"), "").expect("a file");
    assert_eq!(client.read_reply().text(), small, "the request is finished");
    let next = client.get("/");
    assert_eq!(next.status, 200);
    assert_ne!(next.text(), small);
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_request_past_its_deadline_tells_where_it_hangs_before_its_worker_is_killed() {
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
    let config = CONFIG.replace("workers = 2", "workers = 1\ndeadline = \"1s\"");
    let kirin = Kirin::start(&site, &config);
    for how in ["sleep", "read", "loop"] {
        let before = kirin.get("/").text();
        let target = format!("/hang/{how}");
        assert_eq!(kirin.get(&target).status, 504);
        kirin.wait_for_log(&format!("worker {before}: GET {target}: took too long"));
        let call = format!("Shop::Basket::wait_for_stock(\"{how}\") called at");
        kirin.wait_for_log(&call);
        let log = kirin.log();
        let line = log.lines().skip_while(|line| !line.contains(&format!("GET {target}: took"))).nth(1);
        assert!(line.is_some_and(|line| line.contains("app.psgi line 4")), "{log}");
        wait_for("the worker to end", || (!workers_of(&kirin).contains(&before)).then_some(()));
        assert_ne!(kirin.get("/").text(), before);
    }
    let log = kirin.log();
    assert_eq!(log.matches("request failed").count(), 3, "{log}");
    assert!(!log.contains("worker ended"), "{log}");
}

#[test]
fn a_worker_that_comes_to_its_end_after_all_is_not_used_again() {
    let program = r#"
use v5.16; use warnings;
sub {
    # USR2 ends the pause early, and the application goes on as if nothing had happened.
    select undef, undef, undef, 60 if $_[0]{PATH_INFO} eq '/slow';
    [200, ['Content-Type' => 'text/plain'], ["$$"]];
};
"#;
    let site = Site::new().with("app.psgi", program);
    let config = CONFIG.replace("workers = 2", "workers = 1\ndeadline = \"1s\"");
    let kirin = Kirin::start(&site, &config);
    let before = kirin.get("/").text();
    assert_eq!(kirin.get("/slow").status, 504);
    for _ in 0..50 {
        let reply = kirin.get("/");
        assert_eq!(reply.status, 200);
        assert_ne!(reply.text(), before);
    }
}

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
    if ($path eq '/hang') { push @{ $env->{'psgix.cleanup.handlers'} }, sub { sleep 600 }; }
    elsif ($path eq '/die') { push @{ $env->{'psgix.cleanup.handlers'} }, sub { die "a bad handler\n" }; $cleanup->() }
    elsif ($path eq '/leave') { $env->{'psgix.harakiri.commit'} = 1; $cleanup->() }
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
        // The response is whole while the handler still waits.
        let cleaning = client.get(path).text();
        wait_for_begun(&site, 1);
        for _ in 0..20 {
            let reply = client.get("/");
            assert_eq!(reply.status, 200);
            assert_ne!(reply.text(), cleaning, "{path}: the other worker answers");
            assert_eq!(reply.field("kirin-cleanup"), None);
        }
        std::fs::remove_file(site.path(&format!("begun.{cleaning}"))).expect("remove");
        std::fs::write(site.path("go"), "").expect("a file");
        kirin.wait_for_log(&format!("cleaned up after {path}"));
        wait_for("the worker to serve again", || (kirin.get("/").text() == cleaning).then_some(()));
    }
    kirin.wait_for_log("GET /die: a bad handler");
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_worker_that_leaves_cleans_up_before() {
    let site = Site::new().with("app.psgi", CLEANUP);
    let kirin = Kirin::start(&site, &CONFIG.replace("workers = 2", "workers = 1"));
    let before = kirin.get("/leave").text();
    wait_for_begun(&site, 1);
    std::fs::write(site.path("go"), "").expect("a file");
    kirin.wait_for_log("cleaned up after /leave");
    assert_ne!(kirin.get("/").text(), before);
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_cleanup_that_hangs_has_the_requests_deadline() {
    let site = Site::new().with("app.psgi", CLEANUP);
    let config = CONFIG.replace("workers = 2", "workers = 1\ndeadline = \"1s\"");
    let kirin = Kirin::start(&site, &config);
    let before = kirin.get("/hang").text();
    let after = kirin.get("/");
    assert_eq!(after.status, 200);
    assert_ne!(after.text(), before);
    kirin.wait_for_log("cleanup after a response took too long");
    kirin.wait_for_log("GET /hang: took too long");
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
    let mut kirin = Kirin::start(&site, &CONFIG.replace("workers = 2", "workers = 1"));
    let first = kirin.get("/").text();
    assert!(first.parse::<u32>().is_ok(), "{first}");
    // A generation whose workers cannot begin is not ready, however well it was loaded.
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

/// The promise of a reload: nobody notices.
#[test]
fn no_request_fails_while_generations_come_and_go() {
    const THREADS: usize = 4;
    const REQUESTS: usize = 20_000;
    const RELOADS: usize = 5;
    let (_site, kirin) = serve("one");
    let (answered, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut reloads = 0;
    std::thread::scope(|scope| {
        let (answered, enough, kirin) = (&answered, &enough, &kirin);
        let client = move || {
            let mut client = kirin.connect();
            while !enough.load(Ordering::Relaxed) {
                let reply = match answered.fetch_add(1, Ordering::Relaxed) % 3 {
                    0 => client.post("/", "text/plain", b"hello"),
                    _ => client.get("/"),
                };
                assert_eq!((reply.status, reply.text().as_str()), (200, "one"), "{}", reply.head);
            }
        };
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(client)).collect();
        // A thread ends before it is told to only when a request has failed.
        let has_failed = || threads.iter().any(std::thread::ScopedJoinHandle::is_finished);
        while !has_failed() && (reloads < RELOADS || answered.load(Ordering::Relaxed) < REQUESTS) {
            kirin.signal(Signal::HUP);
            reloads += 1;
            wait_for("the next generation", || (has_failed() || takeovers(kirin) >= reloads).then_some(()));
        }
        enough.store(true, Ordering::Relaxed);
    });
    for sign in ["request failed", "another worker tries", "took too long", "reload failed"] {
        assert!(!kirin.log().contains(sign), "{}", kirin.log());
    }
    println!("{reloads} reloads, {} requests", answered.into_inner());
}
