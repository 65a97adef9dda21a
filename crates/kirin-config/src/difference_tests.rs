//! Pairs of configurations with the lines that say what differs.

use std::fmt::Write;

use super::*;
use crate::reload_class::ReloadClass::{AtOnce, NewGeneration, Upgrade};

fn source(text: &str) -> ConfigSource {
    ConfigSource::from_text("kirin.toml", "/etc/kirin", text)
}

fn lines(old: &str, new: &str) -> Vec<String> {
    difference(&source(old), &source(new)).iter().map(ToString::to_string).collect()
}

/// Checks each row: an old text, a new one, and the lines that say what differs.
fn check(rows: &[(&str, &str, &[&str])]) {
    for (old, new, expected) in rows {
        assert_eq!(lines(old, new), *expected, "\n--- old\n{old}\n--- new\n{new}");
    }
}

#[test]
fn formatting_comments_and_the_order_of_keys_make_no_difference() {
    let old = "threads = 2\nurl_patterns = [\"/a\", \"/b\"]\n\
        [[listener]]\naddress = \"127.0.0.1:8080\"\nkeep_alive = \"75s\"\n\
        [listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }]\n\
        [listener.access_log]\npath = \"a.log\"\nsample = 0.10\n\
        [store]\nmemory = \"8MB\"\n[[upstream]]\nname = \"u\"\nservers = [\"10.0.0.1:80\"]\n\
        [[route]]\npath = \"/\"\ntry = [\"store\"]\nmatch = { methods = [\"GET\"] }\n\
        [[site]]\nhosts = [\"a.org\"]\n[[site.route]]\npath = \"/\"\ntry = [\"store\"]\n";
    let new = "# A comment.\nurl_patterns = [\n  '/a',\n  '/b', # Another one.\n]\nthreads = 0x2\n\
        [limits]\n\
        [[site]]\nhosts = ['a.org']\nroute = [{ try = ['store'], path = '/' }]\n\
        [[upstream]]\nservers = [{ address = '10.0.0.1:80' }]\nname = '''u'''\n\
        [[route]]\nmatch.methods = ['GET']\ntry = ['store']\npath = \"\\u002f\"\n\
        [[listener]]\nkeep_alive = '75s'\naddress = '127.0.0.1:8080'\n\
        access_log = { sample = 1e-1, path = 'a.log' }\n\
        [[listener.tls.certificates]]\nkey = 'a.key'\nchain = 'a.pem'\n\
        [store]\nmemory = '8MB'\n";
    check(&[(old, old, &[]), (old, new, &[]), (new, old, &[]), ("", "[lua]\n[store]\n", &[])]);
    assert!(difference(&source(old), &source(new)).is_empty());
    assert!(!difference(&source(""), &source("threads = 1")).is_empty());
}

#[test]
fn keys_of_tables_are_compared_one_by_one() {
    check(&[
        ("threads = 2", "threads = 4", &["threads 2 → 4"]),
        ("threads = 2", "", &["threads removed, was 2"]),
        ("", "connections = 9", &["connections added 9"]),
        ("", "[store]\nsession_cookie = 'sid'", &["[store]: session_cookie added \"sid\""]),
        ("[store]\nmemory = '8MB'", "", &["[store]: memory removed, was \"8MB\""]),
        (
            "[limits]\nclient_disk = '1GB'",
            "[limits]",
            &["[limits]: client_disk removed, was \"1GB\""],
        ),
        ("", "[admin]\naddress = 'unix:a'", &["[admin]: added"]),
        (
            "[admin]\naddress = 'unix:a'",
            "[admin]\naddress = 'unix:b'",
            &["[admin]: address \"unix:a\" → \"unix:b\""],
        ),
        ("[traces]\nendpoint = 'http://a'", "", &["[traces]: removed"]),
        // The order of the new file is that of the lines. What is removed comes last.
        (
            "user = 'a'\nthreads = 1",
            "connections = 1\nthreads = 2",
            &["connections added 1", "threads 1 → 2", "user removed, was \"a\""],
        ),
    ]);
}

#[test]
fn items_are_recognised_by_what_identifies_them() {
    let listener =
        |address: &str, rest: &str| format!("[[listener]]\naddress = '{address}'\n{rest}\n");
    let app = |name: &str, workers: u8| {
        format!("[[app]]\nname = '{name}'\nload = 'app.psgi'\nworkers = {workers}\n")
    };
    let upstream = |servers: &str| format!("[[upstream]]\nname = 'u'\nservers = [{servers}]\n");
    let (local, all) = ("127.0.0.1:8080", "*:443");
    check(&[
        (
            &(listener(local, "keep_alive = '75s'") + &listener("9", "")),
            &(listener(all, "") + &listener(local, "keep_alive = '60s'")),
            &[
                "[[listener]] *:443: added",
                "[[listener]] 127.0.0.1:8080: keep_alive \"75s\" → \"60s\"",
                "[[listener]] 9: removed",
            ],
        ),
        (
            &(listener("0", "keep_alive = '1s'") + &listener("0", "keep_alive = '2s'")),
            &(listener("0", "keep_alive = '1s'") + &listener("0", "keep_alive = '3s'")),
            &["[[listener]] 0: keep_alive \"2s\" → \"3s\""],
        ),
        (
            &(app("web", 2) + &app("api", 1)),
            &(app("api", 1) + &app("web", 4)),
            &["[[app]] web: workers 2 → 4"],
        ),
        (
            &upstream("'a:80', 'b:80', { address = 'c:80', weight = 2 }"),
            &upstream(
                "{ address = 'a:80', backup = true }, { address = 'c:80', weight = 3 }, 'd:80'",
            ),
            &[
                "[[upstream]] u: server a:80, backup added true",
                "[[upstream]] u: server c:80, weight 2 → 3",
                "[[upstream]] u: server d:80 added",
                "[[upstream]] u: server b:80 removed",
            ],
        ),
        (
            &upstream("'a:80', 'b:80'"),
            &upstream("'b:80', 'a:80'"),
            &["[[upstream]] u: servers are in another order"],
        ),
    ]);
}

#[test]
fn nested_tables_have_dotted_keys() {
    let listener = |rest: &str| format!("[[listener]]\naddress = '1'\n{rest}\n");
    let route = |rest: &str| format!("[[route]]\npath = '/'\n{rest}\n");
    let upstream = |rest: &str| format!("[[upstream]]\nname = 'u'\nservers = []\n{rest}\n");
    check(&[
        (
            &listener("tls.client_ca = 'a'\ntls.acme.domains = ['a']"),
            &listener("tls.client_ca = 'b'\ntls.acme.domains = ['b']"),
            &[
                "[[listener]] 1: tls.client_ca \"a\" → \"b\"",
                "[[listener]] 1: tls.acme.domains [\"a\"] → [\"b\"]",
            ],
        ),
        (
            &listener(""),
            &listener("tls.client_ca = 'b'"),
            &["[[listener]] 1: tls added { client_ca = \"b\" }"],
        ),
        (
            &listener("access_log = 'a'"),
            &listener("access_log.path = 'a'"),
            &["[[listener]] 1: access_log \"a\" → { path = \"a\" }"],
        ),
        (
            &listener("access_log.path = 'a'"),
            &listener("access_log.path = 'b'"),
            &["[[listener]] 1: access_log.path \"a\" → \"b\""],
        ),
        (
            &route("cache = { ttl = '1s', wait = '1s' }"),
            &route("cache.ttl = '2s'"),
            &[
                "[[route]] /: cache.ttl \"1s\" → \"2s\"",
                "[[route]] /: cache.wait removed, was \"1s\"",
            ],
        ),
        (
            &route("error_pages = { 404 = '/a' }"),
            &route("error_pages = { 404 = '/b', 5xx = '/c' }"),
            &[
                "[[route]] /: error_pages.404 \"/a\" → \"/b\"",
                "[[route]] /: error_pages.5xx added \"/c\"",
            ],
        ),
        (
            &route("mime_types = { 'a.b' = 'x' }"),
            &route("mime_types = { 'a.b' = 'y' }"),
            &["[[route]] /: mime_types.\"a.b\" \"x\" → \"y\""],
        ),
        (
            &route("match.methods = ['GET']"),
            &route("match.methods = ['PUT']"),
            &["[[route]] / (PUT): match.methods [\"GET\"] → [\"PUT\"]"],
        ),
        (
            &upstream("health.interval = '1s'"),
            &upstream("health.interval = '2s'"),
            &["[[upstream]] u: health.interval \"1s\" → \"2s\""],
        ),
        (&upstream("health = {}"), &upstream(""), &["[[upstream]] u: health removed, was {}"]),
    ]);
}

#[test]
fn routes_are_recognised_by_path_and_match() {
    let memo = "[[route]]\npath = '/memo/'\ntry = ['store']\n";
    let memo_app = "[[route]]\npath = '/memo/'\ntry = ['store', 'app:web']\n";
    let post = "[[route]]\npath = '/memo/'\nmatch = { methods = ['POST'] }\ntry = ['app:web']\n";
    let root = "[[route]]\npath = '/'\ntry = ['files:public']\n";
    let try_changed = "[[route]] /memo/: try [\"store\"] → [\"store\", \"app:web\"]";
    let order = "routes are in another order";
    check(&[
        (memo, memo_app, &[try_changed]),
        (memo, &format!("{post}{memo_app}"), &["[[route]] /memo/ (POST): added", try_changed]),
        (
            &format!("{post}{memo}{root}"),
            &format!("{root}{memo}"),
            &[order, "[[route]] /memo/ (POST): removed"],
        ),
        (&format!("{root}{memo}"), &format!("{memo_app}{root}"), &[order, try_changed]),
        (
            &format!("{memo}{root}"),
            &format!("{memo}{post}{root}"),
            &["[[route]] /memo/ (POST): added"],
        ),
        (
            "[[route]]\npath = '/a'\n[[route]]\npath = '/a'\n",
            "[[route]]\npath = '/a'\n[[route]]\npath = '/a'\nlisting = true\n",
            &["[[route]] /a: listing added true"],
        ),
    ]);
}

#[test]
fn sites_are_recognised_by_name_or_hosts() {
    let site = |hosts: &str, rest: &str| {
        format!(
            "[[site]]\nhosts = [{hosts}]\n{rest}\n[[site.route]]\npath = '/'\ntry = ['store']\n"
        )
    };
    let (org, com) = ("'example.org'", "'example.com', 'www.example.com'");
    let memo = "[[site.route]]\npath = '/memo/'\ntry = ['store']\n";
    check(&[
        (
            &(site(org, "") + memo + &site(com, "")),
            &(site(com, "charset = ''")
                + &site(org, "")
                + &memo.replace("['store']", "['app:web']")),
            &[
                "[[site]] example.com: charset added \"\"",
                "[[site]] example.org, [[route]] /memo/: try [\"store\"] → [\"app:web\"]",
            ],
        ),
        (
            &site(org, ""),
            &(site(org, "") + memo),
            &["[[site]] example.org, [[route]] /memo/: added"],
        ),
        (
            &(site(org, "") + memo),
            &site(com, ""),
            &["[[site]] example.com: added", "[[site]] example.org: removed"],
        ),
        (
            &site(org, "name = 'shop'"),
            &site(com, "name = 'shop'"),
            &["[[site]] shop: hosts [\"example.org\"] → [\"example.com\", \"www.example.com\"]"],
        ),
        // A site with other hosts, or with a new name, is the same one.
        (
            &site(org, ""),
            &site("'example.org', 'b.org'", "name = 'shop'"),
            &[
                "[[site]] shop: hosts [\"example.org\"] → [\"example.org\", \"b.org\"]",
                "[[site]] shop: name added \"shop\"",
            ],
        ),
        (
            &(site(org, "cache = { ttl = '1s' }") + memo),
            "[[site]]\nhosts = ['example.org']\ncache = { ttl = '2s' }\n[[site.route]]\n\
             path = '/memo/'\ntry = ['store']\n[[site.route]]\npath = '/'\ntry = ['store']\n",
            &[
                "[[site]] example.org: cache.ttl \"1s\" → \"2s\"",
                "[[site]] example.org: routes are in another order",
            ],
        ),
    ]);
}

#[test]
fn values_that_may_be_secrets_are_not_shown() {
    let app = |env: &str| format!("[[app]]\nname = 'web'\nload = 'app.psgi'\n{env}\n");
    let route = |rest: &str| format!("[[route]]\npath = '/'\n{rest}\n");
    let site = |rest: &str| format!("[[site]]\nhosts = ['a.org']\n{rest}\n");
    let upstream = |rest: &str| format!("[[upstream]]\nname = 'u'\nservers = []\n{rest}\n");
    let traces = |rest: &str| format!("[traces]\nendpoint = 'http://{rest}'\n");
    let listener = |rest: &str| format!("[[listener]]\naddress = '1'\n{rest}\n");
    let rows: [(&str, &str, &[&str]); 13] = [
        (
            &app("env = { A = 'S3CRET' }"),
            &app("env = { A = 'S3CRET2' }"),
            &["[[app]] web: env changed"],
        ),
        (&app(""), &app("[app.env]\nA = 'S3CRET'"), &["[[app]] web: env added"]),
        (&app("env.A = 'S3CRET'"), &app(""), &["[[app]] web: env removed"]),
        (
            &route("headers.X = 'S3CRET'"),
            &route("headers.X = 'S3CRET2'"),
            &["[[route]] /: headers.X changed"],
        ),
        (
            &site("headers.X = 'S3CRET'"),
            &site("headers.Y = 'S3CRET2'"),
            &["[[site]] a.org: headers.Y added", "[[site]] a.org: headers.X removed"],
        ),
        (
            &route("match.headers.X-Token = 'S3CRET'\nmatch.query.key = 'S3CRET'"),
            &route("match.headers.X-Token = 'S3CRET'\nmatch.query.key = 'S3CRET2'"),
            &["[[route]] / (headers X-Token, query key): match.query.key changed"],
        ),
        (
            &route(""),
            &route("match.query.key = 'S3CRET'"),
            &["[[route]] / (query key): match added"],
        ),
        (
            &route("match.clients = []\nmatch.methods = []"),
            &(route("match.query.key = 'S3CRET'")
                + &route("match.clients = []\nmatch.methods = []")),
            &["[[route]] / (query key): added"],
        ),
        (
            &upstream(""),
            &upstream("health.path = '/?key=S3CRET'"),
            &["[[upstream]] u: health added"],
        ),
        (
            &upstream("health.path = '/?S3CRET'"),
            &upstream("health.path = '/'"),
            &["[[upstream]] u: health.path changed"],
        ),
        (&traces("u:S3CRET@a"), &traces("a"), &["[traces]: endpoint changed"]),
        (
            &listener(""),
            &listener("tls.acme = { domains = ['a'], directory = 'https://u:S3CRET@a' }"),
            &["[[listener]] 1: tls added"],
        ),
        (
            "[store]\norigin = 'redis://:S3CRET@a'\n",
            "[store]\norigin = 'redis://:S3CRET2@a'\n",
            &["[store]: origin changed"],
        ),
    ];
    check(&rows);
    for (old, new, _) in rows {
        let shown = format!("{:?}", difference(&source(old), &source(new)));
        assert!(!shown.contains("S3CRET"), "{shown}");
    }
}

#[test]
fn a_change_is_one_short_line_whatever_names_and_values_hold() {
    let route = |path: &str, rest: &str| format!("[[route]]\npath = \"{path}\"\n{rest}\n");
    let evil = "/\\n[store]: added\\u001b[2J\\u2028\\u202e";
    let long = "é".repeat(500);
    check(&[
        (
            &route(evil, ""),
            &route(evil, "rewrite = \"/\\n\\u0000\""),
            &[
                "[[route]] /\\n[store]: added\\u001B[2J\\u2028\\u202E: rewrite added \"/\\n\\u0000\"",
            ],
        ),
        (
            &route("/", ""),
            &route("/", "mime_types = { 'x' = '1' }\nheaders = { \"a\\nb\" = '1' }"),
            &["[[route]] /: mime_types added { x = \"1\" }", "[[route]] /: headers added"],
        ),
        (
            &route("/", "headers = {}"),
            &route("/", "headers = { \"a\\nb\" = '1' }"),
            &["[[route]] /: headers.\"a\\nb\" added"],
        ),
        ("", "[[app]]\nname = \"a\\r\\nb\"", &["[[app]] a\\r\\nb: added"]),
        ("", "[[site]]\nhosts = [\"a\\nb\"]", &["[[site]] a\\nb: added"]),
        (&route(&long, ""), "", &[&format!("[[route]] {}…: removed", "é".repeat(79))]),
        (
            &route("/", ""),
            &route("/", &format!("rewrite = '{long}'")),
            &[&format!("[[route]] /: rewrite added \"{}…", "é".repeat(78))],
        ),
        (
            &route("/", &format!("rewrite = '{long}a'")),
            &route("/", &format!("rewrite = '{long}b'")),
            &[&format!("[[route]] /: rewrite …{0}a\" → …{0}b\"", "é".repeat(19))],
        ),
    ]);
}

#[test]
fn a_change_has_the_class_of_its_key() {
    let base = "[[listener]]\naddress = '1'\n[[app]]\nname = 'web'\n[[upstream]]\nname = 'u'\n\
        servers = ['a:80']\n[[site]]\nhosts = ['a.org']\n[[site.route]]\npath = '/'\n";
    let after = |section: &str, key: &str| base.replace(section, &format!("{section}\n{key}"));
    for (new, section, key, class) in [
        (format!("threads = 1\n{base}"), "", Some("threads"), Upgrade),
        (format!("connections = 1\n{base}"), "", Some("connections"), AtOnce),
        (format!("{base}[store]\nmemory = '8MB'"), "store", Some("memory"), AtOnce),
        (format!("{base}[store]\npurge_from = []"), "store", Some("purge_from"), AtOnce),
        (format!("{base}[store]\nstale_limit = '9s'"), "store", Some("stale_limit"), Upgrade),
        (format!("{base}[traces]\nendpoint = 'a'"), "traces", None, AtOnce),
        (format!("{base}[[listener]]\naddress = '2'"), "listener", None, AtOnce),
        (format!("{base}[[route]]\npath = '/'"), "route", None, AtOnce),
        (format!("{base}[[site]]\nhosts = ['b.org']"), "site", None, AtOnce),
        (after("[[listener]]", "keep_alive = '1s'"), "listener", Some("keep_alive"), AtOnce),
        (after("[[listener]]", "tls.hsts = '1d'"), "listener", Some("tls"), AtOnce),
        (after("[[app]]", "env.A = '1'"), "app", Some("env"), NewGeneration),
        (after("'a:80'", ", 'b:80'"), "upstream", Some("server b:80"), AtOnce),
        (after("[[site]]", "access_log.path = 'a'"), "site", Some("access_log"), AtOnce),
        (after("[[site.route]]", "cache = true"), "route", Some("cache"), AtOnce),
    ] {
        let changes = difference(&source(base), &source(&new));
        let [change] = changes.as_slice() else { panic!("{changes:?}") };
        let found = (change.section.as_str(), change.key.as_deref(), change.class);
        assert_eq!(found, (section, key, class), "{new}");
    }
    let tls = |rest: &str| format!("[[listener]]\naddress = '1'\n[listener.tls]\n{rest}\n");
    let old = tls("hsts = '1d'\nacme.domains = ['a']");
    let new = tls("hsts = '2d'\nacme.domains = ['b']");
    let changes = difference(&source(&old), &source(&new));
    let found: Vec<_> =
        changes.iter().map(|change| (change.section.as_str(), change.class)).collect();
    assert_eq!(found, [("listener.tls", AtOnce), ("listener.tls.acme", AtOnce)]);
}

#[test]
fn a_thousand_sites_are_compared() {
    let text = |turned: bool, changed: usize| {
        let mut out = String::from("[[listener]]\naddress = '8080'\n");
        for number in 0..1000 {
            let number = if turned { 999 - number } else { number };
            let listing = number == changed;
            let _ = writeln!(out, "[[site]]\nhosts = ['s{number}.example.org', 'w{number}.org']");
            for route in 0..10 {
                let _ = writeln!(
                    out,
                    "[[site.route]]\npath = '/{route}'\ntry = ['store', 'files:public']\nlisting = {listing}"
                );
            }
        }
        out
    };
    let (old, new) = (text(false, 1000), text(true, 700));
    assert_eq!(lines(&old, &new).len(), 10);
    assert_eq!(
        lines(&old, &new)[3],
        "[[site]] s700.example.org, [[route]] /3: listing false → true"
    );
    let others = old.replace(".example.org", ".example.com").replace("w", "v");
    assert_eq!(lines(&old, &others).len(), 2000);
}
