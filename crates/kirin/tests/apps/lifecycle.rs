//! The life of an application through the built program: signals and new code.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use kirin_tests::{Kirin, SetAtEnd, Site, kirin_command, patient_seconds, wait_for};
use rustix::process::{Pid, Signal, kill_process};

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";

/// Returns an application that answers with its version, and waits at `/wait` for the file `go`.
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

/// Returns the number of takeovers in the log.
fn takeovers(kirin: &Kirin) -> usize {
    kirin.log().matches("new generation serves").count()
}

#[test]
fn a_reload_does_not_interrupt_a_waiting_application() {
    let program = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    return [200, ['Content-Type' => 'text/plain'], ['new']] if -e 'new';
    open my $begun, '>', "begun.$$";
    my $interrupted = select(undef, undef, undef, 4) < 0;
    [200, ['Content-Type' => 'text/plain'], [$interrupted ? 'interrupted' : 'not interrupted']];
};
"#;
    let site = Site::new().with("app.psgi", program);
    let kirin = Kirin::start(&site, CONFIG);
    let mut waiting = kirin.connect();
    waiting.send("GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    site.wait_for_files("begun.", 1);
    std::fs::write(site.path("new"), "").expect("a file");
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("new generation serves");
    assert_eq!(kirin.get("/").text(), "new");
    assert_eq!(waiting.read_reply().text(), "not interrupted");
}

#[test]
fn a_request_of_old_code_is_answered_although_the_parent_was_killed() {
    let program = r#"
use v5.16; use warnings;
sub {
    return [200, ['Content-Type' => 'text/plain'], ['new']] if -e 'new';
    # Kirin tells the workers of a parent that has ended to leave.
    local $SIG{TERM} = sub { open my $told, '>', "told.$$" };
    open my $begun, '>', 'begun.' . getppid;
    select undef, undef, undef, 0.01 until -e 'go';
    [200, ['Content-Type' => 'text/plain'], ['old']];
};
"#;
    let site = Site::new().with("app.psgi", program);
    let kirin = Kirin::start(&site, CONFIG);
    let mut waiting = kirin.connect();
    waiting.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n");
    site.wait_for_files("begun.", 1);
    std::fs::write(site.path("new"), "").expect("a file");
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("new generation serves");
    let files = std::fs::read_dir(site.path(".")).expect("files");
    let parent = files.filter_map(|file| {
        file.expect("a file").file_name().to_str()?.strip_prefix("begun.")?.parse().ok()
    });
    let parent = parent.last().and_then(Pid::from_raw).expect("the parent");
    kill_process(parent, Signal::KILL).expect("kill");
    site.wait_for_files("told.", 1);
    assert_eq!(kirin.get("/").text(), "new");
    std::fs::write(site.path("go"), "").expect("a file");
    assert_eq!(waiting.read_reply().text(), "old", "{}", kirin.log());
}

#[test]
fn if_new_code_cannot_be_loaded_the_old_code_serves_and_the_log_says_why() {
    // The good programs must be ready in this time.
    let limit = patient_seconds(8);
    let site = Site::new().with("app.psgi", app("one"));
    let workers = format!("workers = 2\nstart_limit = \"{limit}\"");
    let kirin = Kirin::start(&site, &CONFIG.replace("workers = 2", &workers));
    let too_slow = format!("was not ready within {limit}");
    for (program, reason) in [
        ("die 'no such table: memo'", "no such table: memo"),
        ("sub { [ }", "syntax error"),
        ("exit 3", "exit status: 3"),
        ("sleep 1 while 1", too_slow.as_str()),
    ] {
        write_app(&site, program);
        kirin.signal(Signal::HUP);
        kirin.wait_for_log(reason);
        wait_for("the reload to be given up", || {
            let log = kirin.log();
            let line =
                log.lines().find(|line| line.contains("reload failed") && line.contains(reason));
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
    // Loading waits, so that all signals except the first come during it.
    let slow = |version: &str| {
        format!("select undef, undef, undef, 0.01 until -e 'load';\n{}", app(version))
    };
    let site = Site::new().with("app.psgi", slow("one")).with("load", "");
    let kirin = Kirin::start(&site, CONFIG);
    std::fs::remove_file(site.path("load")).expect("remove");
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("generation=2");
    write_app(&site, &slow("two"));
    for _ in 0..20 {
        kirin.signal(Signal::HUP);
    }
    // The kernel delivers this one behind them.
    kirin.signal(Signal::TTIN);
    kirin.wait_for_log("workers=3");
    std::fs::write(site.path("load"), "").expect("a file");
    wait_for("the last code to serve", || {
        (kirin.get("/").text() == "two" && takeovers(&kirin) == 2).then_some(())
    });
    assert!(!kirin.log().contains("generation=4"), "{}", kirin.log());
}

#[test]
fn a_normal_stop_logs_two_lines_without_a_warning() {
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
fn a_stop_while_applications_load_logs_no_slow_workers() {
    let site = Site::new().with("app.psgi", "sleep 1 while 1").with("kirin.toml", CONFIG);
    let mut kirin = Kirin::spawn(&site, &["serve"]);
    kirin.wait_for_log("app parent started");
    kirin.signal(Signal::TERM);
    assert_eq!(kirin.wait().code(), Some(0), "{}", kirin.log());
    kirin.wait_for_log("app has ended");
    assert!(!kirin.log().contains("WARN") && !kirin.log().contains("ERROR"), "{}", kirin.log());
}

fn wait_for_workers(kirin: &Kirin, count: usize) {
    wait_for(&format!("{count} workers"), || (kirin.worker_pids().len() == count).then_some(()));
}

/// Sends as many requests as there are workers, and waits until all have started.
fn assert_parallel(site: &Site, kirin: &Kirin, count: usize) {
    let mut clients: Vec<_> = (0..count).map(|_| kirin.connect()).collect();
    for client in &mut clients {
        client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    }
    site.wait_for_files("begun.", count);
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
    assert_eq!(kirin.worker_pids().len(), 3);
}

#[test]
fn ttou_never_ends_the_last_worker() {
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
fn a_number_of_workers_changed_during_a_reload_holds_for_the_new_generation() {
    let (site, kirin) = serve("one");
    // The kernel does not count signals of one kind, so each must be seen before the next.
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
fn usr1_reopens_the_access_log() {
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
    kirin.wait_for_log("is reopened");
    client.get("/after");
    wait_for("a line in the new file", || has("access.log", "/after"));
    assert!(has("access.log", "/renamed").is_none() && has("access.log.1", "/after").is_none());
}

#[test]
fn a_log_that_cannot_be_reopened_is_still_written() {
    let site = Site::new().with("app.psgi", app("one")).with("logs/access.log", "");
    let config = CONFIG.replacen("[[app]]", "access_log = \"logs/access.log\"\n[[app]]", 1);
    let kirin = Kirin::start(&site, &config);
    std::fs::rename(site.path("logs"), site.path("moved")).expect("rename");
    kirin.signal(Signal::USR1);
    kirin.wait_for_log("cannot be reopened");
    assert_eq!(kirin.get("/still").status, 200);
    wait_for("a line in the old file", || {
        let content = std::fs::read_to_string(site.path("moved/access.log")).expect("the log");
        content.contains("/still").then_some(())
    });
}

/// Checks that a reload fails no request.
#[test]
fn no_request_fails_while_generations_come_and_go() {
    const THREADS: usize = 4;
    const REQUESTS: usize = 20_000;
    const RELOADS: usize = 5;
    let (_site, kirin) = serve("one");
    let (answered, enough) = (AtomicUsize::new(0), AtomicBool::new(false));
    let mut reloads = 0;
    std::thread::scope(|scope| {
        let clients = SetAtEnd(&enough);
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
        // A thread ends early only if a request has failed.
        let has_failed = || threads.iter().any(std::thread::ScopedJoinHandle::is_finished);
        while !has_failed() && (reloads < RELOADS || answered.load(Ordering::Relaxed) < REQUESTS) {
            kirin.signal(Signal::HUP);
            reloads += 1;
            wait_for("the next generation", || {
                (has_failed() || takeovers(kirin) >= reloads).then_some(())
            });
        }
        drop(clients);
    });
    for sign in ["request failed", "another worker tries", "took too long", "reload failed"] {
        assert!(!kirin.log().contains(sign), "{}", kirin.log());
    }
    println!("{reloads} reloads, {} requests", answered.into_inner());
}

#[test]
fn a_start_removes_the_directories_of_killed_kirins_and_no_others() {
    // The killed Kirin has no application, because the application's processes would remove the
    // directory themselves.
    const ALONE: &str =
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\ntry = [\"files:.\"]\n";
    let site = Site::new()
        .with("app.psgi", app("one"))
        .with("kirin.toml", CONFIG)
        .with("alone.toml", ALONE);
    std::fs::create_dir(site.path("tmp")).expect("a directory");
    let start_with = |config| {
        let mut command = kirin_command(&site);
        let command = command.args(["serve", "--config", config]);
        Kirin::start_command(command.env("TMPDIR", site.path("tmp")))
    };
    let start = || start_with("kirin.toml");
    let directories = || {
        let entries = std::fs::read_dir(site.path("tmp")).expect("the directory").flatten();
        entries.map(|entry| entry.path()).collect::<Vec<_>>()
    };
    let living = start();
    let of_living = directories();
    assert_eq!(of_living.len(), 1);
    let mut killed = start_with("alone.toml");
    assert_eq!(directories().len(), 2);
    killed.signal(Signal::KILL);
    killed.wait();
    assert_eq!(directories().len(), 2);
    let mut third = start();
    let left = directories();
    assert!(left.len() == 2 && left.contains(&of_living[0]), "{left:?}");
    assert_eq!(living.get("/").text(), "one");
    third.signal(Signal::TERM);
    third.wait();
    assert_eq!(directories(), of_living);
}
