//! Tests of explanations: a configuration, requests, and lines that the command prints.

use clap::Parser;

use super::*;
use crate::command::ConsoleCommand;

const CONFIG: &str = r#"
[[listener]]
address = "127.0.0.1:8080"
[[listener]]
address = "127.0.0.1:8081"
redirect_to_https = 8443
[store]
purge_from = ["127.0.0.1"]
[[upstream]]
name = "far"
servers = ["127.0.0.1:1"]
[[upstream]]
name = "php"
servers = ["fastcgi://127.0.0.1:2"]
root = "public"

[[site]]
hosts = ["example.org", "*.example.org"]
[[site.route]]
path = "/"
try = ["store", "files:public"]
error_pages = { 404 = "/lost.html", 5xx = "/sorry.html" }
headers = { "X-B" = "1", "X-A" = "2" }
compress = ["gzip"]
ssi = true
access_log = false
[[site.route]]
path = "/a/{id}"
match = { methods = ["POST"], query = { x = "1" } }
try = ["proxy:far"]
[[site.route]]
path = "*.txt"
match = { clients = ["10.0.0.0/8"] }
try = ["files:public"]
[[site.route]]
path = "/closed"
deny = 404
[[site.route]]
path = "/office"
allow = ["10.0.0.0/8", "unix:"]
maintenance = { retry_after = "10m", allow = ["10.1.0.0/16"] }
rate_limit = [{ rate = "10/s", burst = 20 }]
rewrite = "/v2"
try = ["store", "proxy:far"]
cache = { bypass = ["cookie:sid"] }
access_log = "office.log"
[[site.route]]
path = "/old"
redirect = "/new"
redirect_status = 301
[[site.route]]
path = "/secret"
basic_auth = "users"
try = ["lua:s.lua", "proxy:far"]
[[site.route]]
path = "/only"
match = { methods = ["POST"] }
try = ["proxy:far"]

[[site]]
hosts = ["shop.test"]
name = "shop"
[[site.route]]
path = "/x"
try = ["store", "proxy:far"]
[[site.route]]
path = "/only"
match = { methods = ["PUT", "POST"] }
try = ["proxy:far"]

[[site]]
hosts = ["*"]
[[site.route]]
path = "/"
try = ["store"]
"#;

const USERS: &str = "a:$2y$05$abcdefghijklmnopqrstuuJ0zBPXqV1HjPzFbMPjOjTzjTzjTzjTy\n";

#[derive(Parser)]
struct CommandLine {
    #[command(subcommand)]
    command: ConsoleCommand,
}

/// Explains `request`: the method, the URL, and then fields and the client as options.
fn explained(directory: &tempfile::TempDir, request: &[&str]) -> Result<String, String> {
    let file = directory.path().join("kirin.toml");
    let mut arguments = vec!["kirin", "explain"];
    arguments.extend(request);
    arguments.extend(["--config", file.to_str().unwrap()]);
    let line = CommandLine::try_parse_from(arguments).map_err(|error| error.to_string())?;
    match line.command {
        ConsoleCommand::Explain(arguments) => explain(&arguments),
        _ => panic!("another command"),
    }
}

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for name in ["public", "public/d"] {
        std::fs::create_dir(directory.path().join(name)).unwrap();
    }
    for (name, content) in [
        ("kirin.toml", CONFIG),
        ("users", USERS),
        ("s.lua", "return function() end"),
        ("public/there", "x"),
        ("public/a.txt", "x"),
        ("public/d/index.html", "x"),
        ("public/x.php", "x"),
    ] {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    directory
}

/// Asserts that the explanation of each request has these parts, and not those after a `!`.
fn assert_parts(rows: &[(&[&str], &[&str])]) {
    let directory = directory();
    for (request, parts) in rows {
        let text = explained(&directory, request).unwrap_or_else(|error| panic!("{error}"));
        for part in *parts {
            match part.strip_prefix('!') {
                Some(part) => assert!(!text.contains(part), "{part}\n{text}"),
                None => assert!(text.contains(part), "{part}\n{text}"),
            }
        }
    }
}

#[test]
fn the_listener_is_that_of_scheme_and_port() {
    assert_parts(&[
        (&["GET", "http://example.org:8080/"], &["listener    127.0.0.1:8080 (http)\n", "places"]),
        (&["GET", "http://example.org/"], &["none has this port", "places"]),
        (
            &["GET", "https://example.org:8080/"],
            &["127.0.0.1:8080 has only http: no route is asked", "!\nroute"],
        ),
        (
            &["GET", "http://example.org:8081/x?y"],
            &["redirect_to_https: 308 to https://example.org:8443/x?y", "!\nroute"],
        ),
        (
            &["PURGE", "http://example.org:8081/x"],
            &["127.0.0.1:8081 (http)\n", "PURGE: the client is in `purge_from`", "!redirect"],
        ),
        (
            &["PURGE", "http://example.org:8081/x", "--client", "10.1.2.3"],
            &["redirect_to_https: 308", "!\nroute"],
        ),
    ]);
}

#[test]
fn the_site_is_that_of_the_host() {
    assert_parts(&[
        (
            &["GET", "http://EXAMPLE.org./"],
            &["`example.org` is one of `hosts`", "begin with `example.org:`"],
        ),
        (
            &["GET", "http://a.example.org/x?y"],
            &[
                "`a.example.org` matches `*.example.org`",
                "begin with `a.example.org:`",
                "the key `a.example.org:/x?y`",
            ],
        ),
        (&["GET", "http://shop.test/x"], &["begin with `shop:`", "the key `shop:/x`"]),
        (
            &["GET", "http://else.test/x"],
            &["that of all other hosts; `else.test`", "no name of a site", "the key `/x`"],
        ),
    ]);
    let directory = directory();
    let config = CONFIG.split("[[site]]\nhosts = [\"*\"]").next().unwrap();
    std::fs::write(directory.path().join("kirin.toml"), config).unwrap();
    let text = explained(&directory, &["GET", "http://else.test/x"]).unwrap();
    assert!(
        text.contains("none has the host `else.test`: 421") && !text.contains("route"),
        "{text}"
    );
}

#[test]
fn the_route_is_named_with_those_that_were_passed_over() {
    assert_parts(&[
        (
            &["GET", "http://example.org/a/1.txt"],
            &[
                "route       /\n",
                "not /a/{id} with method `POST`, query argument x = `1`: method is `GET`, wanted \
                 method `POST`; query argument `x` is missing, wanted `1`",
                "not /*.txt with client `10.0.0.0/8`: client is 127.0.0.1, wanted",
            ],
        ),
        (
            &["GET", "http://example.org/a.txt", "--client", "10.2.3.4"],
            &["route       /*.txt with client", "after it /\n", "!not /"],
        ),
        (
            &["POST", "http://example.org/a/1?x=1", "-H", "X-A: 1"],
            &["route       /a/{id} with", "after it /\n", "1. proxy:far: answers every request"],
        ),
        (&["GET", "http://shop.test/y"], &["route       none: 404", "!\nplaces", "!log"]),
        (
            &["GET", "http://shop.test/only"],
            &["none for GET: 405, there is POST, PUT", "not /only with method"],
        ),
        (&["OPTIONS", "http://shop.test/only"], &["none for OPTIONS: 204"]),
    ]);
}

#[test]
fn rules_are_listed_up_to_the_one_that_answers() {
    let office = ["--client", "10.1.2.3"];
    assert_parts(&[
        (&["GET", "http://example.org/closed"], &["deny: 404 for everybody", "!\nplaces"]),
        (
            &["GET", "http://example.org/office/x"],
            &[
                "allow: 403: 127.0.0.1 is not one of 10.0.0.0/8, unix:",
                "!maintenance",
                "!rewrite",
                "!\nplaces",
                "office.log",
            ],
        ),
        (
            &["GET", "http://example.org/office/x", "--client", "unix:"],
            &["unix: is served", "maintenance: 503 with `Retry-After: 600`", "!rate_limit"],
        ),
        (
            &["GET", "http://example.org/office/x?y", office[0], office[1]],
            &[
                "allow: 10.1.2.3 is served: one of 10.0.0.0/8",
                "maintenance: 10.1.2.3 is served: one of 10.1.0.0/16",
                "rate_limit: one request in 100ms on average and 20 at once for each address",
                "rewrite: places look for /v2/x",
                "the key `example.org:/v2/x?y`",
                "SCRIPT_NAME `` and PATH_INFO `/v2/x`",
                "unless the cache has its response",
                "not asked: no Kirin is running with this configuration",
            ],
        ),
        (
            &["GET", "http://example.org/office/x", office[0], office[1], "-H", "Cookie: sid=1"],
            &["past the cache (configured)"],
        ),
        (
            &["POST", "http://example.org/office/x", office[0], office[1]],
            &["1. store: not asked: it answers GET and HEAD only", "past the cache (method)"],
        ),
        (&["GET", "http://example.org/old/x?y"], &["redirect: 301 to /new/x?y", "!\nplaces"]),
        (
            &["GET", "http://example.org/secret/x"],
            &["basic_auth: 401: the request has no", "!\nplaces"],
        ),
        (
            &["GET", "http://example.org/secret/x", "-H", "Authorization: Basic eDp5"],
            &["a wrong one gets 401", "1. lua:s.lua: the script decides", "2. proxy:far"],
        ),
        (
            &["PURGE", "http://example.org/office/x"],
            &[
                "route       /office",
                "PURGE: the client is in `purge_from`",
                "!allow:",
                "!\nplaces",
            ],
        ),
        (
            &["PURGE", "http://example.org/x", "--client", "10.1.2.3"],
            &["1. store: not asked", "!purge_from"],
        ),
    ]);
}

#[test]
fn places_and_filters_are_listed() {
    assert_parts(&[
        (
            &["GET", "http://example.org/there"],
            &[
                "public/there (now: 200, application/octet-stream)",
                "otherwise 404\n",
                "response    ssi: directives run",
                "compress: gzip for all places",
                "error_pages: 404 = /lost.html, 5xx = /sorry.html, for errors of Kirin and of files",
                "headers: x-a, x-b",
                "access_log: not logged",
            ],
        ),
        (&["GET", "http://example.org/lost"], &["public/lost (now: not there)"]),
        (&["GET", "http://example.org/d"], &["(now: 301 to /d/)"]),
        (&["GET", "http://example.org/d/"], &["(now: 200, text/html; charset=utf-8)"]),
        (&["GET", "http://example.org/x.php"], &["not asked: the path names a script"]),
        (&["GET", "http://example.org/z/..//th%65re"], &["public/there (now: 200"]),
        (
            &["DELETE", "http://example.org/there"],
            &["otherwise 405 with `Allow: GET, HEAD, OPTIONS` if a place has the path"],
        ),
        (&["GET", "http://else.test/shop:x"], &["the key `/shop:x`"]),
    ]);
}

#[test]
fn a_request_that_no_route_gets_is_an_error() {
    let directory = directory();
    for (request, message) in [
        (
            &["GET", "http://a.test/../x"][..],
            "path climbs above the root; Kirin answers it with 400",
        ),
        (&["GET", "http://a.test/%0"], "malformed percent-encoding"),
        (&["GET", "http://a.test/", "--client", "me"], "allowed is an address"),
        (&["GET", "http://a.test/", "--admin", "x"], "use PORT (on 127.0.0.1), IP:PORT"),
        (&["GET"], "`GET`: this is a method, and the URL after it is missing"),
        (&[], "<URL>"),
    ] {
        let error = explained(&directory, request).unwrap_err();
        assert!(error.contains(message), "{request:?}: {error}");
    }
    std::fs::write(directory.path().join("kirin.toml"), "[[rout]]\n").unwrap();
    let error = explained(&directory, &["GET", "http://a.test/"]).unwrap_err();
    assert!(error.contains("did you mean `route`?"), "{error}");
}
