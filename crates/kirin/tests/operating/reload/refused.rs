//! A configuration that cannot come into force changes nothing, and the operator learns why.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kirin_tests::{Backend, Site, wait_for};
use rustix::process::Signal;

use super::{Served, printed};

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[route]]\npath = \"/\"\ntry = [\"files:one\"]\n";

fn served() -> Served {
    Served::start(Site::new().with("one/a.txt", "one").with("two/a.txt", "two"), CONFIG)
}

#[test]
fn every_error_is_reported_and_nothing_changes() {
    let served = served();
    let bad = CONFIG.replace("files:one", "files:two");
    let cases = [
        (
            format!("{bad}listing = 1\n[[route]]\npath = \"/x\"\ntry = [\"file:two\"]\n"),
            vec!["kirin.toml:7:11: ", "kirin.toml:10:8: "],
        ),
        (
            format!("{bad}[[route]]\npath = \"/two\"\ntry = [\"files:three\"]\n"),
            vec!["kirin.toml:9:8: ", "three"],
        ),
        (format!("{bad}access_log = {{ path = \"missing/a.log\" }}\n"), vec!["missing/a.log"]),
        (bad.replace("threads = 2", "threads = 3"), vec!["another start", "threads 2 → 3"]),
        (format!("{bad}[store]\nsnapshot = \"s\"\n"), vec!["[store]: snapshot"]),
        (
            format!("{bad}[[listener]]\naddress = \"unix:one/a.txt\"\n"),
            vec!["one/a.txt exists and is not a socket"],
        ),
        ("threads = 2\n[[listener\n".into(), vec!["kirin.toml:2:"]),
    ];
    for (config, parts) in cases {
        let said = served.refused(&config);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}\n{parts:?}\n{config}");
        assert_eq!(served.text("/a.txt"), "one", "{config}");
    }
    assert!(served.reload(&bad.replace("threads = 2", "threads=2")).contains("files:two"));
    assert_eq!(served.text("/a.txt"), "two");
}

#[test]
fn a_script_that_does_not_compile_changes_nothing_on_any_loop() {
    let served = served();
    std::fs::write(served.site.path("bad.lua"), "return function(").expect("a file");
    let config = CONFIG.replace("files:one", "files:two");
    let config = format!("{config}[[route]]\npath = \"/lua\"\ntry = [\"lua:bad.lua\"]\n");
    let said = served.refused(&config);
    assert!(said.contains("bad.lua"), "{said}");
    for _ in 0..8 {
        assert_eq!(served.text("/a.txt"), "one");
        assert_eq!(served.kirin.get("/lua").status, 404);
    }
}

#[test]
fn the_log_has_the_errors_of_a_reload_by_hup() {
    let served = served();
    served.write(&CONFIG.replace("try", "trry"));
    served.kirin.signal(Signal::HUP);
    served.kirin.wait_for_log("did you mean `try`?");
    assert!(served.kirin.log().contains("the configuration of before serves on"));
    assert_eq!(served.text("/a.txt"), "one");
}

#[test]
fn a_dry_run_only_says_what_would_change() {
    let served = served();
    served.write(&CONFIG.replace("files:one", "files:two"));
    for words in [&["reload", "--dry-run"][..], &["diff"]] {
        let said = printed(&served.command(words));
        assert_eq!(
            said,
            "[[route]] /: try [\"files:one\"] → [\"files:two\"]\nnothing is changed: this was a dry run\n"
        );
        assert_eq!(served.text("/a.txt"), "one");
    }
    served.write(&CONFIG.replace("threads = 2", "threads = 4"));
    let output = served.command(&["diff"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("threads 2 → 4"));
}

#[test]
fn an_unknown_application_is_refused() {
    let served = served();
    let output = served.command(&["reload", "--app", "web"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("there is no app `web`"));
    let output = served.command(&["reload", "--apps", "--app", "web"]);
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn an_application_that_does_not_load_keeps_its_workers_and_the_command_says_so() {
    let site = Site::new().with("app.psgi", "sub { [200, [], ['first']] }");
    let config = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\n[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n";
    let served = Served::start(site, config);
    std::fs::write(served.site.path("app.psgi"), "die 'no such table'").expect("a file");
    let output = served.command(&["reload", "--apps"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("app `web`") && said.contains("workers of before"), "{said}");
    assert_eq!(served.text("/"), "first");
}

#[test]
fn there_is_no_reload_while_kirin_stops() {
    let goes_on = Arc::new(AtomicBool::new(false));
    let backend_goes_on = Arc::clone(&goes_on);
    let backend = Backend::start(move |mut connection| {
        if connection.read_request().is_some() {
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 8\r\n\r\nbegi");
            wait_for("the end", || backend_goes_on.load(Ordering::Relaxed).then_some(()));
            connection.send("nend");
        }
    });
    let config = format!(
        "{CONFIG}[[upstream]]\nname = \"api\"\nservers = [\"{}\"]\n[[route]]\npath = \"/slow\"\ntry = [\"proxy:api\"]\n",
        backend.address()
    );
    let served = Served::start(Site::new().with("one/a.txt", "one"), &config);
    let mut slow = served.kirin.connect();
    slow.send("GET /slow HTTP/1.1\r\nHost: a\r\n\r\n");
    slow.read_until(b"begi");
    served.kirin.signal(Signal::TERM);
    served.kirin.wait_until_draining();
    let output = served.command(&["reload"]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stdout));
    goes_on.store(true, Ordering::Relaxed);
    assert!(slow.try_read_until(b"nend"), "the response was cut");
}
