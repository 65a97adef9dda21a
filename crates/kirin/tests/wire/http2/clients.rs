//! HTTP/2 clients that people use, over TLS and by prior knowledge: nghttp and h2load of nghttp2,
//! Python's h2, Go's net/http, and Node's http2.
//!
//! scripts/install-tools installs those that are not Debian packages. A missing client fails the
//! test.

use std::process::{Output, Stdio};

use kirin_tests::repository;

use super::*;

/// Returns the path of a client that no package installs.
fn installed(name: &str) -> PathBuf {
    let path = repository().join("target/http2-clients").join(name);
    assert!(path.exists(), "{} is missing: run tests/install_http2_clients.sh", path.display());
    path
}

/// Returns the path of a script beside this file.
fn script(name: &str) -> PathBuf {
    repository().join("crates/kirin/tests/wire/http2/client_programs").join(name)
}

/// Runs a client to its end. Returns what it printed.
fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| {
        let program = command.get_program().display();
        panic!("{program} does not start ({error}): run scripts/install-packages test")
    })
}

/// Returns a description of a run, for the message of a failure.
fn described(command: &Command, output: &Output) -> String {
    let (printed, errors) =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes)).into();
    let printed: String = printed.chars().take(20_000).collect();
    format!("{command:?} ended with {}\n{printed}\n{errors}", output.status)
}

/// Calls `client` with the site, and with the URL of each listener.
fn both_ways(client: impl Fn(&Site, &str)) {
    let (site, kirin) = serve();
    client(&site, &format!("http://{}", kirin.address()));
    client(&site, &format!("https://{}", kirin.address_of(1)));
}

/// Runs a program that says OK if all of its requests had the right answers.
fn says_ok(client: impl Fn() -> Command) {
    both_ways(|site, url| {
        let mut command = client();
        command.arg(url).arg(site.path("public/large.bin"));
        let output = run(&mut command);
        let is_ok = output.status.success() && output.stdout.ends_with(b"OK\n");
        assert!(is_ok, "{}", described(&command, &output));
    });
}

#[test]
fn python_h2_gets_the_answers_it_expects() {
    says_ok(|| {
        let mut command = Command::new(installed("python/bin/python"));
        command.arg(script("python_client.py"));
        command
    });
}

#[test]
fn go_net_http_gets_the_answers_it_expects() {
    says_ok(|| Command::new(installed("go_client")));
}

#[test]
fn chromium_gets_the_answers_it_expects_and_opens_a_websocket() {
    let far = format!(
        "{CONFIG}[[upstream]]\nname = \"far\"\nservers = [\"http://127.0.0.1:{}\"]\n\
         [[route]]\npath = \"/far\"\ntry = [\"proxy:far\"]\n",
        websocket::echo_server()
    );
    // Chromium speaks HTTP/2 over TLS only.
    let far = far.replacen("[listener.tls]", "access_log = \"tls.log\"\n[listener.tls]", 1);
    let (site, kirin) = serve_with(&far);
    let mut command = Command::new("node");
    command.arg(script("chromium_client.mjs"));
    command.arg(format!("https://{}", kirin.address_of(1))).arg(site.path("public/large.bin"));
    let output = run(&mut command);
    let is_ok = output.status.success() && output.stdout.ends_with(b"OK\n");
    assert!(is_ok, "{}", described(&command, &output));
    let lines = || std::fs::read_to_string(site.path("tls.log")).unwrap_or_default();
    wait_for("the log line of the WebSocket", || lines().contains(" /far ").then_some(()));
    // The WebSocket is a stream of the connection, and not an HTTP/1.1 connection of its own.
    let others = lines();
    let others: Vec<_> = others.lines().filter(|line| !line.contains(" HTTP/2.0\"")).collect();
    assert!(others.is_empty(), "{others:#?}");
}

#[test]
fn node_http2_gets_the_answers_it_expects() {
    says_ok(|| {
        let mut command = Command::new("node");
        command.arg(script("node_client.mjs"));
        command
    });
}

/// Runs nghttp, and returns what it printed.
fn nghttp(arguments: &[&str], url: &str) -> Vec<u8> {
    let mut command = Command::new("nghttp");
    command.args(["--no-verify-peer", "--timeout=60"]).args(arguments).arg(url);
    let output = run(&mut command);
    assert!(output.status.success(), "{}", described(&command, &output));
    // It warns of a certificate that it does not trust, and ends well all the same.
    assert!(!output.stdout.is_empty(), "{}", described(&command, &output));
    output.stdout
}

#[test]
fn nghttp_downloads_and_uploads_large_files() {
    both_ways(|site, url| {
        assert_eq!(nghttp(&[], &format!("{url}/hello.txt")), b"hello\n", "{url}");
        let large_url = format!("{url}/large.bin");
        for options in [
            &[][..],
            &["--window-bits=10"],
            &["--window-bits=30", "--connection-window-bits=30"],
            &["--header-table-size=0"],
            &["--no-rfc7540-pri"],
            &["--header=priority: u=1, i"],
        ] {
            let body = nghttp(options, &large_url);
            assert!(body == large(), "{options:?} {large_url}: {} bytes", body.len());
        }
        let upload = site.path("public/large.bin");
        let upload = format!("--data={}", upload.to_str().expect("UTF-8"));
        let body_url = format!("{url}/app/body");
        for options in [
            &[upload.as_str()][..],
            &[&upload, "--padding=200"],
            &[&upload, "--no-content-length"],
            &[&upload, "--expect-continue"],
            &[&upload, "--continuation"],
            &[&upload, "--no-dep"],
            &[&upload, "--trailer=x-a: trailer"],
        ] {
            let answer = nghttp(options, &body_url);
            let answer = String::from_utf8_lossy(&answer);
            assert!(answer.starts_with("3000000 "), "{options:?} {body_url}: {answer}");
        }
    });
}

#[test]
fn nghttp_has_a_hundred_requests_on_one_connection() {
    both_ways(|_, url| {
        let url = format!("{url}/page.html");
        let printed = nghttp(&["--verbose", "--null-out", "--multiply=100"], &url);
        let printed = String::from_utf8_lossy(&printed);
        let count = |text: &str| printed.matches(text).count();
        let (good, ends) = (count(":status: 200"), count("; END_STREAM"));
        assert_eq!((good, count("Connected")), (100, 1), "{url}\n{printed}");
        // Each request and each response ends its stream.
        assert!(ends >= 200, "{ends} ends of streams, {url}\n{printed}");
        assert_eq!(count("RST_STREAM"), 0, "{url}\n{printed}");
        assert!(
            url.starts_with("http:") || printed.contains("negotiated protocol: h2"),
            "{printed}"
        );
    });
}

#[test]
fn h2load_gets_good_answers_to_all_of_many_requests() {
    both_ways(|site, url| {
        let upload = site.path("public/page.html");
        let upload = format!("--data={}", upload.to_str().expect("UTF-8"));
        for (options, paths) in [
            (&["--max-concurrent-streams=1"][..], &["/hello.txt"][..]),
            (&["--max-concurrent-streams=100"], &["/hello.txt", "/page.html"]),
            (&["--max-concurrent-streams=50"], &["/app/protocol", "/page.html"]),
            (&["--max-concurrent-streams=10", &upload], &["/app/body"]),
        ] {
            let mut command = Command::new("h2load");
            command.args(["--requests=1000", "--clients=5"]).args(options);
            command.args(paths.iter().map(|path| format!("{url}{path}")));
            let output = run(&mut command);
            let printed = String::from_utf8_lossy(&output.stdout);
            let is_good = output.status.success()
                && printed.contains("Application protocol: h2")
                && printed.contains("1000 done, 1000 succeeded, 0 failed, 0 errored, 0 timeout")
                && printed.contains("status codes: 1000 2xx, 0 3xx, 0 4xx, 0 5xx");
            assert!(is_good, "{}", described(&command, &output));
        }
    });
}
