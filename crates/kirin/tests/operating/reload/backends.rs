//! Applications and upstreams that a reload starts, changes and stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kirin_tests::{Backend, Site, run_kirin, wait_for};

use super::{Served, printed};

const LISTENER: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n";

/// Answers with an environment variable and its process id. `/wait` waits until there is a file.
const APP: &str = r#"
sub {
    my $env = shift;
    if ($env->{PATH_INFO} eq '/wait') {
        open my $file, '>', "waits"; close $file;
        select undef, undef, undef, 0.01 until -e "goes-on";
    }
    [200, [], [($ENV{COLOUR} // 'none') . " $$"]]
}
"#;

fn app(name: &str, more: &str) -> String {
    format!("[[app]]\nname = \"{name}\"\nload = \"app.psgi\"\nworkers = 2\n{more}")
}

fn route(path: &str, place: &str) -> String {
    format!("[[route]]\npath = \"{path}\"\ntry = [\"{place}\"]\n")
}

fn colour(colour: &str) -> String {
    format!("env = {{ COLOUR = \"{colour}\" }}\n")
}

fn pids(served: &Served) -> Vec<String> {
    let mut pids = served.kirin.worker_pids();
    pids.sort();
    pids
}

fn first_word(text: &str) -> String {
    text.split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn only_an_application_with_other_settings_gets_new_workers() {
    let config = |web: &str| {
        let apps = format!("{}{}", app("web", web), app("other", ""));
        format!("{LISTENER}{apps}{}{}", route("/other", "app:other"), route("/", "app:web"))
    };
    let served = Served::start(Site::new().with("app.psgi", APP), &config(&colour("red")));
    let other = served.text("/other");
    assert_eq!(first_word(&served.text("/")), "red");
    let said = served.reload(&config(&colour("blue")));
    assert_eq!(said, "[[app]] web: env changed\nreloaded\n");
    for _ in 0..8 {
        assert_eq!(first_word(&served.text("/")), "blue");
    }
    let pid_of_other = other.split(' ').nth(1).expect("a pid").to_owned();
    assert!(pids(&served).contains(&pid_of_other));
    // The workers of before end.
    wait_for("four workers", || (pids(&served).len() == 4).then_some(()));
    // An application that was started for the reload is not loaded a second time by --apps.
    served.write(&config(&colour("green")));
    let said = printed(&served.command(&["reload", "--apps"]));
    assert_eq!(said, "[[app]] web: env changed\napp `other`: loaded again\nreloaded\n");
    assert_eq!(first_word(&served.text("/")), "green");
}

#[test]
fn a_request_of_the_workers_of_before_is_answered_by_them() {
    let config = |more: &str| format!("{LISTENER}{}{}", app("web", more), route("/", "app:web"));
    let served = Served::start(Site::new().with("app.psgi", APP), &config(&colour("red")));
    let mut waiting = served.kirin.connect();
    waiting.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    wait_for("the request", || served.site.path("waits").exists().then_some(()));
    served.reload(&config(&colour("blue")));
    assert_eq!(first_word(&served.text("/")), "blue");
    std::fs::write(served.site.path("goes-on"), "").expect("a file");
    assert_eq!(first_word(&waiting.read_reply().text()), "red");
    assert_eq!(first_word(&waiting.get("/").text()), "blue");
    wait_for("the end of the old workers", || (pids(&served).len() == 2).then_some(()));
    served.kirin.wait_for_log("the workers of before have ended");
}

#[test]
fn applications_come_and_go() {
    let site = Site::new().with("app.psgi", APP).with("one/a.txt", "one");
    let files = route("/a.txt", "files:one");
    let served = Served::start(site, &format!("{LISTENER}{files}"));
    let both = format!("{LISTENER}{}{files}{}", app("web", &colour("red")), route("/", "app:web"));
    let said = served.reload(&both);
    assert!(said.contains("[[app]] web: added"), "{said}");
    assert_eq!(first_word(&served.text("/")), "red");
    // The socket of the store is there for applications that come later.
    assert_eq!(pids(&served).len(), 2);
    let said = served.reload(&format!("{LISTENER}{files}"));
    assert!(said.contains("[[app]] web: removed"), "{said}");
    assert_eq!(served.kirin.get("/").status, 404);
    wait_for("the end of the workers", || pids(&served).is_empty().then_some(()));
    assert_eq!(
        first_word(&{
            served.reload(&both);
            served.text("/")
        }),
        "red"
    );
}

#[test]
fn an_application_goes_soon_with_its_listener() {
    let one = format!("{LISTENER}{}{}", app("web", ""), route("/", "app:web"));
    let other = app("other", "deadline = \"10m\"\n");
    let two = format!(
        "{one}[[listener]]\naddress = \"unix:web.sock\"\n{other}{}",
        route("/other", "app:other"),
    );
    let served = Served::start(Site::new().with("app.psgi", APP), &two);
    served.text("/other");
    served.reload(&one);
    // Nothing of the listener that has closed needs them.
    wait_for("the workers of the other one end", || (pids(&served).len() == 2).then_some(()));
}

#[test]
fn an_application_that_does_not_load_changes_nothing() {
    let site = Site::new().with("app.psgi", APP).with("bad.psgi", "die 'no such table'");
    let config = |routes: &str, load: &str| {
        let app = app("web", "").replace("app.psgi", load);
        format!("{LISTENER}{app}{routes}{}", route("/", "app:web"))
    };
    let served = Served::start(site, &config("", "app.psgi"));
    let before = pids(&served);
    let redirect = "[[route]]\npath = \"/x\"\nredirect = \"/y\"\n";
    let said = served.refused(&config(redirect, "bad.psgi"));
    assert!(said.contains("web") && said.contains("nothing is changed"), "{said}");
    assert_eq!(first_word(&served.text("/")), "none");
    assert_eq!(served.kirin.get("/x").status, 200);
    assert_eq!(pids(&served), before);
}

#[test]
fn the_number_of_workers_changes_in_the_same_generation() {
    let config = |workers: usize| {
        let app = app("web", "").replace("workers = 2", &format!("workers = {workers}"));
        format!("{LISTENER}{app}{}", route("/", "app:web"))
    };
    let served = Served::start(Site::new().with("app.psgi", APP), &config(2));
    let before = pids(&served);
    let said = served.reload(&config(4));
    assert_eq!(said, "[[app]] web: workers 2 → 4\nreloaded\n");
    wait_for("four workers", || (pids(&served).len() == 4).then_some(()));
    assert!(before.iter().all(|pid| pids(&served).contains(pid)));
    served.reload(&config(1));
    wait_for("one worker", || (pids(&served).len() == 1).then_some(()));
    assert_eq!(first_word(&served.text("/")), "none");
}

#[test]
fn servers_of_an_upstream_change_and_those_that_stay_keep_their_state() {
    let answering = |text: &'static str| {
        Backend::answering(move |_| {
            format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{text}", text.len())
        })
    };
    let (first, second) = (answering("first"), answering("second"));
    let config = |servers: &[&Backend], more: &str| {
        let servers: Vec<String> =
            servers.iter().map(|server| format!("\"{}\"", server.address())).collect();
        format!(
            "{LISTENER}[[upstream]]\nname = \"api\"\nservers = [{}]\n{more}{}",
            servers.join(", "),
            route("/", "proxy:api")
        )
    };
    let served = Served::start(Site::new(), &config(&[&first], ""));
    assert!((0..6).all(|_| served.text("/") == "first"));
    served.reload(&config(&[&first, &second], ""));
    wait_for("the second server", || (served.text("/") == "second").then_some(()));
    let requests = |server: &Backend| {
        let output = run_kirin(&served.site, &["status", "--json"]);
        let status: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let servers = status["upstreams"]["api"]["servers"].as_array().expect("servers").clone();
        let address = server.address().to_string();
        let is_of = |known: &&serde_json::Value| {
            known["server"].as_str().is_some_and(|name| name.contains(&address))
        };
        let of = servers.iter().find(is_of);
        of.and_then(|server| server["requests"].as_u64()).expect("a count")
    };
    assert!(requests(&first) >= 6, "{}", requests(&first));
    served.reload(&config(&[&second], "max_failures = 5\n"));
    assert!((0..6).all(|_| served.text("/") == "second"));
}

#[test]
fn an_unchanged_upstream_keeps_its_connections_and_a_request_its_server() {
    let goes_on = Arc::new(AtomicBool::new(false));
    let backend_goes_on = Arc::clone(&goes_on);
    let backend = Backend::start(move |mut connection| {
        while let Some(request) = connection.read_request() {
            if request.target() == "/wait" {
                wait_for("the reload", || backend_goes_on.load(Ordering::Relaxed).then_some(()));
            }
            connection.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok");
        }
    });
    let upstream = |more: &str| {
        format!("[[upstream]]\nname = \"api\"\nservers = [\"{}\"]\n{more}", backend.address())
    };
    let config = |upstream: &str, more: &str| {
        format!("{LISTENER}{upstream}{more}{}", route("/", "proxy:api"))
    };
    let served = Served::start(Site::new(), &config(&upstream(""), ""));
    let mut client = served.kirin.connect();
    (0..3).for_each(|_| assert_eq!(client.get("/").text(), "ok"));
    let redirect = "[[route]]\npath = \"/x\"\nredirect = \"/y\"\n";
    served.reload(&config(&upstream(""), redirect));
    (0..3).for_each(|_| assert_eq!(client.get("/").text(), "ok"));
    assert_eq!(backend.connections(), 1);
    // The upstream of a request in progress is gone. The request finishes.
    client.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    let other = Backend::answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nother".into());
    let changed =
        upstream("").replace(&backend.address().to_string(), &other.address().to_string());
    served.reload(&config(&changed, ""));
    assert_eq!(served.text("/"), "other");
    goes_on.store(true, Ordering::Relaxed);
    assert_eq!(client.read_reply().text(), "ok");
    assert_eq!(client.get("/").text(), "other");
}

#[test]
fn a_number_of_workers_that_was_set_by_hand_stays_until_the_file_says_another() {
    let config = |workers: usize, colour: &str| {
        let more = format!("env = {{ COLOUR = \"{colour}\" }}\n");
        let app = app("web", &more).replace("workers = 2", &format!("workers = {workers}"));
        format!("{LISTENER}{app}{}", route("/", "app:web"))
    };
    let served = Served::start(Site::new().with("app.psgi", APP), &config(2, "red"));
    let has = |count: usize| {
        wait_for(&format!("{count} workers"), || (pids(&served).len() == count).then_some(()));
    };
    let by_hand = || {
        let said = printed(&served.command(&["status"]));
        said.lines().find(|line| line.contains("by an operator")).map(str::to_owned)
    };
    let said = printed(&served.command(&["workers", "web", "4"]));
    assert_eq!(said, "app web: 4 workers; configured are 2\n");
    has(4);
    wait_for("the status", || by_hand()?.contains("4 workers by an operator").then_some(()));
    // The new generation has as many.
    served.reload(&config(2, "blue"));
    assert_eq!(first_word(&served.text("/")), "blue");
    has(4);
    served.reload(&config(3, "blue"));
    has(3);
    wait_for("the status", || by_hand().is_none().then_some(()));
    printed(&served.command(&["workers", "web", "1"]));
    has(1);
    printed(&served.command(&["workers", "web"]));
    has(3);
    for (words, status, part) in [
        (&["workers", "shop", "1"][..], 1, "there is no app `shop`; there is web"),
        (&["workers", "web", "0"], 2, "allowed are 1 to 4096"),
    ] {
        let output = served.command(words);
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(status) && said.contains(part), "{said}");
    }
}
