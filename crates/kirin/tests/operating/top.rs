//! `kirin top` in a terminal and in a pipe, and the live table behind it.

use std::process::Output;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread::JoinHandle;

use kirin_tests::{Kirin, Site, Terminal, kirin_command, run_kirin, wait_for};
use rustix::process::Signal;
use serde_json::Value;

/// An application in which a request to `/wait` waits until the file `go` is there.
const APP: &str = r#"
    use Time::HiRes;
    sub {
        my $path = $_[0]{PATH_INFO};
        if ($path eq '/wait') { Time::HiRes::sleep(0.01) until -e 'go' }
        if ($path =~ m{^/slow}) { Time::HiRes::sleep(0.05) }
        [$path eq '/fails' ? 500 : 200, ['Content-Type' => 'text/plain'], ['x' x 100]];
    };
"#;

const CONFIG: &str = r#"
    threads = 2
    url_patterns = ["/@{user}/*"]
    [[listener]]
    address = "127.0.0.1:0"
    [admin]
    address = "unix:admin.sock"
    [store]
    memcached = ["unix:m.sock"]
    [[app]]
    name = "web"
    load = "app.psgi"
    workers = 3
    [[route]]
    path = "/"
    try = ["store", "app:web"]
"#;

fn serve() -> (Site, Kirin) {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    (site, kirin)
}

/// Two sites and a route of neither, all with the same paths.
const SITES: &str = r#"
    threads = 1
    url_patterns = ["/@{user}"]
    [[listener]]
    address = "127.0.0.1:0"
    [admin]
    address = "unix:admin.sock"
    [[app]]
    name = "web"
    load = "app.psgi"
    [[route]]
    path = "/"
    try = ["app:web"]
    [[site]]
    hosts = ["wiki.test"]
    [[site.route]]
    path = "/"
    try = ["app:web"]
    [[site]]
    hosts = ["*.blog.test"]
    [[site.route]]
    path = "/"
    try = ["app:web"]
    [[site]]
    hosts = ["git.test"]
    [[site.route]]
    path = "/"
    try = ["app:web"]
"#;

/// Sends a request to a host.
fn get_from(kirin: &Kirin, host: &str, target: &str) {
    let mut client = kirin.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    client.read_reply();
}

fn terminal(site: &Site, arguments: &[&str]) -> Terminal {
    let mut command = kirin_command(site);
    command.arg("top").args(["--interval", "0.2"]).args(arguments);
    Terminal::start(&command, 80, 24)
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[output.stdout.as_slice(), &output.stderr].concat()).into_owned()
}

/// Returns the answer to `GET /top`.
fn snapshot(site: &Site) -> Value {
    let mut child = kirin_command(site)
        .args(["top", "--stream"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("kirin top");
    let mut line = String::new();
    let mut output = std::io::BufReader::new(child.stdout.take().expect("its output"));
    std::io::BufRead::read_line(&mut output, &mut line).expect("a line");
    drop(output);
    child.kill().expect("kill");
    child.wait().expect("wait");
    serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
}

/// A client that sends requests until it is dropped.
struct Load {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Load {
    fn start(kirin: &Kirin) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let (ending, address) = (Arc::clone(&stop), kirin.address());
        let thread = std::thread::spawn(move || {
            let mut client = kirin_tests::Client::connect(address);
            let mut number = 0;
            while !ending.load(Relaxed) {
                number += 1;
                client.get(&format!("/memo/{number}"));
                client.get(&format!("/@user{number}/feed"));
                if number % 10 == 0 {
                    client.get("/slow");
                }
                std::thread::sleep(std::time::Duration::from_millis(5));
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Returns the last word of the first row of the table.
fn first_url(terminal: &Terminal) -> String {
    let lines = terminal.lines();
    let row = lines.get(3).map(String::as_str).unwrap_or_default();
    row.split_whitespace().last().unwrap_or_default().to_owned()
}

#[test]
fn the_screen_is_sorted_filtered_and_paused_by_keys() {
    let (site, kirin) = serve();
    let _load = Load::start(&kirin);
    let mut terminal = terminal(&site, &[]);
    for text in ["kirin 0.", "requests/s", "GET /memo/{id}", "GET /slow", "q quit"] {
        terminal.wait_for(text);
    }
    terminal.press("3");
    terminal.wait_until("URLs by sum of time", |screen| {
        screen.contains("sum↓") && !screen.contains("requests/s")
    });
    // The slow handler has the largest sum, and the smallest count.
    wait_for("the slow URL to be first", || (first_url(&terminal) == "/slow").then_some(()));
    terminal.press("\x1b[C");
    terminal.wait_for("count↓");
    wait_for("another URL to be first", || (first_url(&terminal) != "/slow").then_some(()));
    terminal.press("r");
    terminal.wait_for("count↑");
    wait_for("the slow URL to be first", || (first_url(&terminal) == "/slow").then_some(()));
    terminal.press("/@{USER");
    terminal.wait_for("filter: @{USER_");
    terminal.press("\r");
    terminal.wait_until("the filtered rows only", |screen| {
        screen.contains("GET /@{user}/*") && !screen.contains("/memo")
    });
    terminal.press("\x1b");
    terminal.wait_for("GET /memo/{id}");
    terminal.press(" ");
    terminal.wait_for("PAUSED");
    let paused = terminal.text();
    let requests = || snapshot(&site)["live"]["requests"].as_u64().expect("requests");
    let before = requests();
    wait_for("more requests", || (requests() > before + 20).then_some(()));
    assert_eq!(terminal.text(), paused);
    terminal.press(" ");
    terminal.wait_until("newer numbers", |screen| !screen.contains("PAUSED") && screen != paused);
    terminal.press("q");
    assert!(terminal.wait().success(), "{}", terminal.text());
}

#[test]
fn a_worker_is_shown_with_its_request() {
    let (site, kirin) = serve();
    let mut client = kirin.connect();
    client.send("GET /wait?token=secret HTTP/1.1\r\nHost: localhost\r\n\r\n");
    let mut terminal = terminal(&site, &[]);
    terminal.wait_for("workers");
    terminal.press("2");
    // The terminal may get a screen in parts, and a worker is not idle before it has started.
    terminal.wait_until("a busy worker and two idle ones", |screen| {
        let is_busy =
            |line: &str| line.contains(" busy ") && line.trim_end().ends_with("GET /wait");
        screen.lines().any(is_busy) && screen.matches(" idle ").count() == 2
    });
    assert!(!terminal.text().contains("secret"));
    std::fs::write(site.path("go"), "").expect("go");
    assert_eq!(client.read_reply().status, 200);
    terminal.wait_until("three idle workers", |screen| screen.matches(" idle ").count() == 3);
    terminal.press("\t\t");
    terminal.wait_for("web ready");
    terminal.press("\x03");
    assert!(terminal.wait().success());
}

#[test]
fn a_signal_leaves_the_terminal_as_it_was() {
    let (site, _kirin) = serve();
    for signal in [Signal::TERM, Signal::INT, Signal::HUP] {
        let mut terminal = terminal(&site, &[]);
        terminal.wait_for("q quit");
        terminal.signal(signal);
        terminal.wait();
    }
}

#[test]
fn the_screen_says_that_kirin_has_gone_and_shows_the_next_one() {
    let (site, mut kirin) = serve();
    let mut terminal = terminal(&site, &[]);
    terminal.wait_for("q quit");
    kirin.signal(Signal::TERM);
    kirin.wait();
    terminal.wait_for("NO ANSWER");
    let next = Kirin::start(&site, CONFIG);
    terminal.wait_for(&format!("pid {}", next.pid()));
    terminal.press("q");
    assert!(terminal.wait().success());
}

#[test]
fn a_pipe_gets_plain_text() {
    let (site, kirin) = serve();
    for target in ["/memo/1", "/memo/2?x=1", "/fails", "/@alice/feed"] {
        kirin.get(target);
    }
    for arguments in [&["top"][..], &["top", "--once"]] {
        let output = run_kirin(&site, arguments);
        let text = said(&output);
        assert!(output.status.success() && !text.contains('\x1b'), "{text}");
        for part in ["URLS, last minute", "GET /memo/{id}", "GET /@{user}/*", "WORKERS", "APPS"] {
            assert!(text.contains(part), "no {part} in\n{text}");
        }
    }
    let output = run_kirin(&site, &["top", "--admin", "unix:nowhere.sock"]);
    assert!(
        !output.status.success() && said(&output).contains("nowhere.sock"),
        "{}",
        said(&output)
    );
    let output = run_kirin(&site, &["top", "--interval", "0"]);
    assert!(said(&output).contains("allowed are 0.1 to 3600"), "{}", said(&output));
}

#[test]
fn requests_are_counted_by_pattern_place_and_status() {
    let (site, kirin) = serve();
    let mut memcached = kirin_tests::Memcached::connect(&site.path("m.sock"));
    memcached.send("ms /stored 13\r\ntext/plain\r\np\r\n");
    assert_eq!(memcached.line(), "HD");
    let mut client = kirin.connect();
    for target in ["/stored", "/stored", "/stored?2", "/memo/1", "/memo/2", "/fails"] {
        client.get(target);
    }
    client.send("POST /memo/7 HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n\r\nab");
    client.read_reply();
    let snapshot = wait_for("all requests to be counted, and all workers to be there", || {
        let snapshot = snapshot(&site);
        let workers = snapshot["workers"].as_array().map_or(0, Vec::len);
        (snapshot["live"]["total"]["requests"] == 7 && workers == 3).then_some(snapshot)
    });
    let live = &snapshot["live"];
    let row = |method: &str, pattern: &str| {
        let rows = live["urls"].as_array().expect("rows");
        let found = rows.iter().find(|row| row["method"] == method && row["pattern"] == pattern);
        found.unwrap_or_else(|| panic!("no {method} {pattern} in {live:#}")).clone()
    };
    let stored = row("GET", "/stored");
    assert_eq!(stored["places"], serde_json::json!([["store", 2], ["app:web", 1]]), "{live:#}");
    assert_eq!((&stored["recent"]["hits"], &stored["total"]["requests"]), (&2.into(), &3.into()));
    assert_eq!(row("GET", "/memo/{id}")["recent"]["requests"], 2);
    assert_eq!(row("POST", "/memo/{id}")["places"][0][0], "app:web");
    let fails = row("GET", "/fails");
    assert_eq!(fails["total"]["by_class"], serde_json::json!([0, 0, 0, 0, 1]));
    assert_eq!((&live["requests"], &fails["total"]["bytes"]), (&7.into(), &100.into()));
    let workers = snapshot["workers"].as_array().expect("workers");
    let served: u64 = workers.iter().filter_map(|worker| worker["requests"].as_u64()).sum();
    assert_eq!((workers.len(), served), (3, 5), "{workers:?}");
    assert!(workers.iter().all(|worker| worker["resident_bytes"].as_u64() > Some(1 << 20)));
}

#[test]
fn another_machine_is_shown_by_ssh() {
    let (site, kirin) = serve();
    kirin.get("/memo/1");
    // It does what ssh does, but on this machine: it runs the words after the host in a shell.
    let program = kirin_tests::binary();
    let ssh = format!(
        "#!/bin/sh\n[ \"$1 $2 $3\" = '-T -- www.example.org' ] || {{ echo \"ssh: wrong: $*\" >&2; exit 9; }}\n\
         kirin() {{ '{}' \"$@\"; }}\neval \"$4\"\n",
        program.display()
    );
    let site = site.with("bin/ssh", ssh);
    let file = site.path("bin/ssh");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(file, mode).expect("mode");
    let path = format!("{}:{}", site.path("bin").display(), std::env::var("PATH").expect("PATH"));
    let admin = format!("unix:{}", site.path("admin.sock").display());
    let command = |arguments: &[&str]| {
        let mut command = kirin_command(&site);
        command.env("PATH", &path).current_dir("/").arg("top").args(arguments);
        command
    };
    let output = command(&["--once", "--ssh", "www.example.org", "--admin", &admin]).output();
    let output = output.expect("kirin top");
    assert!(said(&output).contains("GET /memo/{id}"), "{}", said(&output));
    let all = ["--all", "--once", "--ssh", "www.example.org", "--admin", &admin];
    let output = command(&all).output().expect("kirin top");
    let expected = "ssh www.example.org: kirin: this Kirin knows no other machines";
    assert!(said(&output).contains(expected), "{}", said(&output));
    let interactive =
        command(&["--ssh", "www.example.org", "--admin", &admin, "--interval", "0.2"]);
    let mut terminal = Terminal::start(&interactive, 80, 24);
    terminal.wait_for("GET /memo/{id}");
    kirin.get("/later");
    terminal.wait_for("GET /later");
    terminal.press("q");
    assert!(terminal.wait().success());
    for (host, message) in
        [("other", "ssh: wrong"), ("-oProxyCommand=id", "does not begin with `-`")]
    {
        let output = command(&["--once", &format!("--ssh={host}"), "--admin", &admin]).output();
        let output = output.expect("kirin top");
        assert!(!output.status.success() && said(&output).contains(message), "{}", said(&output));
    }
}

#[test]
fn each_site_has_rows_of_its_own() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, SITES);
    // So many words are merged, but those of another site are not.
    for number in 0..50 {
        get_from(&kirin, "wiki.test", &format!("/word{number}x"));
    }
    for host in ["wiki.test", "git.test", "other.test", "a.blog.test", "b.blog.test"] {
        for target in ["/", "/index.php", "/@alice"] {
            get_from(&kirin, host, target);
        }
    }
    let snapshot = wait_for("all requests to be counted", || {
        let snapshot = snapshot(&site);
        (snapshot["live"]["total"]["requests"] == 65).then_some(snapshot)
    });
    let urls = snapshot["live"]["urls"].as_array().expect("rows");
    let mut rows: Vec<String> = urls
        .iter()
        .map(|url| {
            let site = url["site"].as_str().unwrap_or("-");
            format!("{site} {} {}", url["pattern"].as_str().unwrap(), url["total"]["requests"])
        })
        .collect();
    rows.sort();
    let expected = [
        "*.blog.test / 2",
        "*.blog.test /@{user} 2",
        "*.blog.test /index.php 2",
        "- / 1",
        "- /@{user} 1",
        "- /index.php 1",
        "git.test / 1",
        "git.test /@{user} 1",
        "git.test /index.php 1",
        "wiki.test / 1",
        "wiki.test /@{user} 1",
        "wiki.test /{name} 50",
        "wiki.test /{name}.php 1",
    ];
    assert_eq!(rows, expected, "{snapshot:#}");
    let text = said(&run_kirin(&site, &["top", "--once"]));
    let has_row = |words: &[&str]| {
        text.lines().any(|line| line.split_whitespace().collect::<Vec<_>>().ends_with(words))
    };
    for words in [
        &["site", "place", "URL"][..],
        &["wiki.test", "app:web", "GET", "/"],
        &["git.test", "app:web", "GET", "/"],
        &["-", "app:web", "GET", "/"],
    ] {
        assert!(has_row(words), "no {words:?} in\n{text}");
    }
    let text = said(&run_kirin(&site, &["top", "--once", "--site", "git.test"]));
    assert!(text.contains("git.test") && !text.contains("wiki.test"), "{text}");
    let mut terminal = terminal(&site, &[]);
    terminal.press("3");
    terminal.wait_for("wiki.test");
    terminal.press("/GIT.\r");
    terminal.wait_until("the rows of one site", |screen| {
        screen.contains("git.test") && !screen.contains("wiki.test")
    });
    terminal.press("q");
    assert!(terminal.wait().success());
}

#[test]
fn without_a_site_there_is_no_column_for_it() {
    let (site, kirin) = serve();
    kirin.get("/memo/1");
    let text = said(&run_kirin(&site, &["top", "--once"]));
    assert!(text.contains("hits 4xx 5xx place   URL"), "{text}");
    assert_eq!(snapshot(&site)["live"]["urls"][0].get("site"), None);
}

#[test]
fn a_url_is_one_row_whichever_loop_has_counted_it() {
    let (site, kirin) = serve();
    // One connection stays on one event loop. So many words are merged there only.
    let mut client = kirin.connect();
    for number in 0..50 {
        client.get(&format!("/word{number}x.php"));
        client.get(&format!("/word{number}x/Special:Version"));
    }
    for _ in 0..30 {
        kirin.get("/index.php");
        kirin.get("/wiki/Special:Version");
    }
    let snapshot = wait_for("all requests to be counted", || {
        let snapshot = snapshot(&site);
        (snapshot["live"]["total"]["requests"] == 160).then_some(snapshot)
    });
    let urls = snapshot["live"]["urls"].as_array().expect("rows");
    let row =
        |url: &Value| format!("{} {}", url["pattern"].as_str().unwrap(), url["total"]["requests"]);
    let mut rows: Vec<_> = urls.iter().map(row).collect();
    rows.sort();
    assert_eq!(rows, ["/{name}.php 80", "/{name}/Special:Version 80"], "{urls:#?}");
}

#[test]
fn patterns_may_name_the_parameters_that_matter() {
    let site = Site::new().with("app.psgi", APP);
    let patterns = r#"["/gitweb?a", "/doku.php?id&do", "/search?type={type}", "/@{user}/*"]"#;
    let kirin = Kirin::start(&site, &CONFIG.replace(r#"["/@{user}/*"]"#, patterns));
    for target in [
        "/gitweb?p=a.git;a=blob;f=x",
        "/gitweb?p=b.git;a=blob;f=y",
        "/gitweb?p=b.git&a=tree",
        "/gitweb",
        "/doku.php?id=start&rev=1",
        "/doku.php?do=edit&id=start&secret=x",
        "/search?type=a&q=b",
        "/search?q=b",
        "/other?a=blob",
    ] {
        kirin.get(target);
    }
    // Too many values are one row. Each event loop gets more than 40 of them.
    for number in 0..100 {
        for _ in 0..2 {
            kirin.get(&format!("/doku.php?id=page{number}x&do=diff"));
        }
    }
    let snapshot = wait_for("all requests to be counted", || {
        let snapshot = snapshot(&site);
        (snapshot["live"]["total"]["requests"] == 209).then_some(snapshot)
    });
    let urls = snapshot["live"]["urls"].as_array().expect("rows");
    let row = |url: &Value| {
        format!("{} {}", url["pattern"].as_str().expect("a pattern"), url["total"]["requests"])
    };
    let rows: Vec<_> = urls.iter().map(row).collect();
    for expected in [
        "/gitweb?a=blob 2",
        "/gitweb?a=tree 1",
        "/gitweb 1",
        "/search?type={type} 1",
        "/search 1",
        "/other 1",
    ] {
        assert!(rows.iter().any(|row| row == expected), "no {expected} in {rows:#?}");
    }
    assert!(rows.iter().any(|row| row == "/doku.php?id={name}&do=diff 200"), "{rows:#?}");
    assert!(rows.len() <= 10 && !rows.iter().any(|row| row.contains("secret")), "{rows:#?}");
    let text = said(&run_kirin(&site, &["top", "--once"]));
    assert!(text.contains("GET /gitweb?a=blob"), "{text}");
}
