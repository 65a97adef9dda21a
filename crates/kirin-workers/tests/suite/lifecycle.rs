//! Start, stop, and what happens to the processes.

use std::time::Duration;

use kirin_workers::{AppCode, AppError};
use rustix::process::Signal;

use crate::support::{Site, eventually, is_alive, kill, parent_of, patient, wait_limit};

const HELLO: &str = "sub { [200, [], [\"$$\"]] }";

#[test]
fn an_application_that_dies_while_it_is_loaded_says_why() {
    let error = Site::start_with("die \"no database\\nat all\\n\"; sub { }", |_| {}).err().unwrap();
    let AppError::Load { message, .. } = &error else { panic!("{error}") };
    assert!(message.contains("no database\nat all"), "{message}");
}

#[test]
fn an_application_that_is_none_says_so() {
    let error = Site::start_with("42", |_| {}).err().unwrap();
    assert!(error.to_string().contains("does not return a PSGI application"), "{error}");
}

#[test]
fn an_application_with_a_syntax_error_says_where() {
    let error = Site::start_with("sub {\n[200, [], [ }", |_| {}).err().unwrap();
    assert!(error.to_string().contains("app.psgi line 2"), "{error}");
}

#[test]
fn an_application_that_exits_while_it_is_loaded_is_reported_with_its_status() {
    let error = Site::start_with("exit 7", |_| {}).err().unwrap();
    assert!(matches!(&error, AppError::Ended { .. }) && error.to_string().contains('7'), "{error}");
}

#[test]
fn an_application_that_loads_too_long_is_given_up() {
    let error = Site::start_with("sleep 1 while 1", |config| {
        config.start_limit = Duration::from_millis(200)
    })
    .err()
    .unwrap();
    assert!(matches!(error, AppError::TooSlow { .. }), "{error}");
}

#[test]
fn a_missing_file_perl_or_adapter_is_an_error_that_names_it() {
    let error =
        Site::start_with(HELLO, |config| config.code = AppCode::Psgi("/nonexistent.psgi".into()))
            .err()
            .unwrap();
    assert!(
        matches!(&error, AppError::NoSuchFile { .. })
            && error.to_string().contains("/nonexistent.psgi"),
        "{error}"
    );
    let error =
        Site::start_with(HELLO, |config| config.interpreter = Some("/nonexistent/perl".into()))
            .err()
            .unwrap();
    assert!(
        matches!(&error, AppError::NoInterpreter { .. })
            && error.to_string().contains("/nonexistent/perl"),
        "{error}"
    );
    let error = Site::start_with(HELLO, |config| config.adapter = Some("/nonexistent".into()))
        .err()
        .unwrap();
    assert!(
        matches!(&error, AppError::NotAnAdapter { .. })
            && error.to_string().contains("/nonexistent"),
        "{error}"
    );
}

#[test]
fn stopping_leaves_no_process_behind() {
    let site = Site::start_with(HELLO, |config| config.workers = 3).unwrap();
    eventually("all workers are there", || site.app.idle_workers() == 3);
    let mut pids = site.app.worker_pids();
    pids.push(parent_of(pids[0]));
    site.stop(patient(Duration::from_secs(10)));
    for pid in pids {
        assert!(!is_alive(pid), "{pid}");
    }
    assert_eq!(site.get("/").status, 503);
}

#[test]
fn a_request_in_progress_ends_before_the_application_does() {
    let site = Site::start(
        "sub { open my $h, '>', 'begun'; select undef, undef, undef, 0.3; [200, [], ['done']] }",
    );
    let mut client = site.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the request has begun", || site.directory.path().join("begun").exists());
    site.stop(patient(Duration::from_secs(10)));
    assert_eq!(client.reply().text(), "done");
}

#[test]
fn a_worker_that_does_not_stop_is_killed_after_the_limit() {
    let site =
        Site::start("sub { $SIG{TERM} = 'IGNORE'; open my $h, '>', 'begun'; sleep 1 while 1 }");
    let pid = site.worker();
    let mut client = site.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("the request has begun", || site.directory.path().join("begun").exists());
    site.stop(Duration::from_millis(100));
    eventually("the worker is dead", || !is_alive(pid));
    // The GET would have been tried again, but nobody is there any more.
    assert_eq!(client.reply().status, 503);
}

#[test]
fn a_killed_parent_is_replaced_and_its_workers_do_not_stay() {
    let site = Site::start_with(HELLO, |config| config.workers = 2).unwrap();
    eventually("both workers are there", || site.app.idle_workers() == 2);
    let workers = site.app.worker_pids();
    let parent = parent_of(workers[0]);
    kill(parent, Signal::KILL);
    for pid in &workers {
        eventually("the orphan has ended", || !is_alive(*pid));
    }
    let reply = site.get("/");
    assert_eq!(reply.status, 200);
    assert!(!workers.contains(&reply.text().parse().unwrap()));
}

#[test]
fn a_worker_is_replaced_after_its_number_of_requests() {
    let site = Site::start_with(HELLO, |config| config.max_requests = Some(3)).unwrap();
    let mut pids: Vec<String> = (0..7).map(|_| site.get("/").text()).collect();
    pids.dedup();
    assert_eq!(pids.len(), 3, "{pids:?}");
    assert_eq!(site.app.counters().failed + site.app.counters().retried, 0);
}

#[test]
fn the_application_runs_with_its_directory_and_environment() {
    let site = Site::start_with(
        "use Cwd; my $loaded = getcwd(); sub { [200, [], [\"$loaded $ENV{PLACK_ENV} $ENV{MINE}\"]] }",
        |config| config.env = vec![("MINE".into(), "x y".into())],
    )
    .unwrap();
    let directory = site.directory.path().canonicalize().unwrap();
    assert_eq!(site.get("/").text(), format!("{} deployment x y", directory.display()));
}

#[test]
fn many_requests_at_once_are_all_answered_and_none_twice() {
    let site = Site::start_with("my $n = 0; sub { [200, [], [\"$$ \" . ++$n]] }", |config| {
        config.workers = 3
    })
    .unwrap();
    let answers = std::sync::Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let mut client = site.connect();
                let mut mine = Vec::new();
                for _ in 0..100 {
                    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
                    mine.push(client.reply().text());
                }
                answers.lock().unwrap().extend(mine);
            });
        }
    });
    let mut answers = answers.into_inner().unwrap();
    answers.sort();
    answers.dedup();
    assert_eq!(answers.len(), 800);
}

/// Says to a process of this test program that it is the front, which is to be killed.
const AS_FRONT: &str = "KIRIN_TEST_AS_FRONT";

/// Serves until it is killed; ends with the test's own limit at the latest.
fn front_to_be_killed() {
    let site = Site::start_with(
        "sub { open my $h, '>', 'begun'; select undef, undef, undef, 0.01 until -e 'gate'; [200, [], []] }",
        |config| {
            config.workers = 3;
            config.run_directory = config.directory.clone();
        },
    )
    .unwrap();
    eventually("all workers are there", || site.app.idle_workers() == 3);
    let mut client = site.connect();
    client.send("GET / HTTP/1.1\r\nHost: test\r\n\r\n");
    eventually("one is busy", || site.directory.path().join("begun").exists());
    let pids: Vec<String> = site.app.worker_pids().iter().map(u32::to_string).collect();
    println!("\nworkers {} in {}", pids.join(" "), site.directory.path().display());
    std::thread::sleep(wait_limit());
}

#[test]
fn a_front_that_is_killed_leaves_no_process_behind() {
    use std::io::BufRead;
    if std::env::var_os(AS_FRONT).is_some() {
        return front_to_be_killed();
    }
    let mut front = std::process::Command::new(std::env::current_exe().unwrap())
        .args([
            "lifecycle::a_front_that_is_killed_leaves_no_process_behind",
            "--exact",
            "--nocapture",
        ])
        .env(AS_FRONT, "1")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines = std::io::BufReader::new(front.stdout.take().unwrap()).lines();
    let line = lines.map_while(Result::ok).find(|line| line.starts_with("workers ")).unwrap();
    let (pids, directory) = line.strip_prefix("workers ").unwrap().split_once(" in ").unwrap();
    let mut pids: Vec<u32> = pids.split(' ').map(|pid| pid.parse().unwrap()).collect();
    pids.push(parent_of(pids[0]));
    assert_eq!(pids.len(), 4);

    front.kill().unwrap();
    front.wait().unwrap();
    // The busy worker may finish what it is at; the others have nothing to wait for.
    eventually("the idle ones have ended", || {
        pids.iter().filter(|pid| is_alive(**pid)).count() <= 2
    });
    std::fs::write(std::path::Path::new(directory).join("gate"), "").unwrap();
    for pid in pids {
        eventually("the process has ended", || !is_alive(pid));
    }
    let left: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(
        !left.iter().any(|name| name.to_string_lossy().starts_with("kirin-")),
        "the socket is gone: {left:?}"
    );
    std::fs::remove_dir_all(directory).unwrap();
}
