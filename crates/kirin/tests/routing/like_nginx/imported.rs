//! The same requests to nginx and to a Kirin with the imported configuration of nginx.

use std::fmt::Write as _;
use std::fs;

use kirin_tests::{Kirin, run_kirin};

use super::backends::Backends;
use super::pair::{Expected, Pair, Request};
use super::{Comparison, Prepared, TOPICS};

/// Returns the configuration that `kirin import` makes of nginx's side of a pair.
pub fn imported(prepared: &Prepared<'_>, backends: &Backends) -> String {
    let text = prepared.filled(prepared.pair.nginx, backends);
    fs::write(prepared.site.path("nginx.conf"), format!("http {{ {text} }}\n")).expect("a file");
    let output = run_kirin(&prepared.site, &["import", "nginx.conf", "--into", "."]);
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {report}", prepared.pair.name);
    let config = fs::read_to_string(prepared.site.path("kirin.toml")).expect("a configuration");
    // nginx listens at its own address.
    let config = config.replace(&prepared.port.address().to_string(), "127.0.0.1:0");
    // Servers of an upstream take turns on each event loop.
    format!("threads = 1\n{config}")
}

/// Requests whose answers differ in another way than with the configuration of the pair, and why.
const DIFFERENCES: &[(&str, &str, &str)] = &[
    ("the defaults of both", "GET /fields", FORWARDED),
    ("the defaults of both", "GET /fields\nX-Forwarded-For: 192.0.2.1", FORWARDED),
    ("the defaults of both", "GET /fields\nAccept-Encoding: gzip", FORWARDED),
    (
        "the defaults of both",
        "GET /location/inner",
        "the server gets its own address as the host, as from nginx, and Kirin changes no Location",
    ),
    ("variables of the request", "GET /echo/x\nX-B: b", FORWARDED),
    ("responses that are compressed", "GET /a.html\nAccept-Encoding: gzip, deflate, br", CODINGS),
    ("responses that are compressed", "GET /a.txt\nAccept-Encoding: br", CODINGS),
    ("responses that are compressed", "GET /a.txt\nAccept-Encoding: *", CODINGS),
];

const FORWARDED: &str = "Kirin tells servers who the client is, and no key turns that off";
const CODINGS: &str = "Kirin compresses with the best coding that the client accepts";

/// Says whether the answers to a request are as listed, or what is wrong.
fn problem(pair: &Pair, request: &Request, nginx: &str, kirin: &str) -> Option<&'static str> {
    let listed =
        DIFFERENCES.iter().find(|(name, text, _)| (*name, *text) == (pair.name, request.text));
    let is_of_pair = match request.expected {
        Expected::Alike => false,
        Expected::Differs { nginx: of_nginx, kirin: of_kirin, .. } => {
            (of_nginx, of_kirin) == (nginx, kirin)
        }
    };
    let is_good = nginx.is_empty() && kirin.is_empty() || is_of_pair;
    match (is_good, listed) {
        (true, None) | (false, Some(_)) => None,
        (true, Some(_)) => Some("the listed difference has gone"),
        (false, None) => Some("they differ in another way than with the written configuration"),
    }
}

#[test]
fn an_imported_configuration_answers_as_nginx_or_as_one_that_somebody_has_written() {
    let all = Comparison::start(TOPICS.iter().copied().flatten());
    let reports = all.of_each(|prepared| {
        let config = imported(prepared, &all.backends);
        let kirin = Kirin::start(&prepared.site, &config);
        let mut problems = String::new();
        for request in prepared.pair.requests {
            let (nginx, kirin) = all.differences(prepared, &kirin, request.text);
            if let Some(problem) = problem(prepared.pair, request, &nginx, &kirin) {
                let _ = writeln!(
                    problems,
                    "=== {}: {problem}\n{:?}\nnginx: {nginx}\nkirin: {kirin}",
                    prepared.pair.name, request.text
                );
            }
        }
        if !problems.is_empty() {
            problems += &config;
        }
        problems
    });
    let problems = reports.concat();
    assert!(problems.is_empty(), "{problems}");
}
