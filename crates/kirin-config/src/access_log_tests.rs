//! Tests of the key `access_log`: its values, its errors, and logs that routes share.

use crate::check::Config;
use crate::check::tests::{LISTENER, check_text};

const ROUTE: &str = "[[route]]\npath = \"/\"\ntry = [\"store\"]\n";

fn check(key: &str) -> Result<Config, String> {
    check_text(&format!("{LISTENER}access_log = {key}\n{ROUTE}"))
}

fn described(key: &str) -> String {
    let config = check(key).unwrap_or_else(|error| panic!("{key}: {error}"));
    config.listeners[0].access_log.as_ref().map_or("none".into(), ToString::to_string)
}

#[test]
fn a_target_a_table_and_false_are_read() {
    for (key, expected) in [
        ("false", "none"),
        ("\"stdout\"", "stdout"),
        ("\"/var/log/a.log\"", "/var/log/a.log"),
        ("\"journald\"", "journald at /run/systemd/journal/socket"),
        ("\"journald:unix:/run/j\"", "journald at /run/j"),
        ("\"syslog\"", "syslog at /dev/log"),
        ("\"syslog:unix:/run/log\"", "syslog at /run/log"),
        ("\"syslog:logs.example.org:514\"", "syslog at logs.example.org:514 by UDP"),
        ("\"syslog:[::1]:514\"", "syslog at [::1]:514 by UDP"),
        ("{ path = \"stderr\" }", "stderr"),
        ("{ path = \"stderr\", format = \"combined\" }", "stderr"),
        ("{ path = \"/a\", format = \"ltsv\" }", "/a, format ltsv"),
        ("{ path = \"/a\", format = '%h %D' }", "/a, format %h %D"),
        (
            "{ path = \"/a\", status = [\"5xx\", 404, \"cut\"], slower_than = \"1s\" }",
            "/a, only status 5xx 404 cut or slower than 1000 ms",
        ),
        (
            "{ path = \"/a\", sample = 0.5, except = [\"/health\"] }",
            "/a, only a sample of 0.5 outside of /health",
        ),
        ("{ path = \"/a\", sample = 1, except = [] }", "/a, only a sample of 1"),
        (
            "{ path = \"/a\", except = [\"/health\", \"*.png\"] }",
            "/a, only paths outside of /health *.png",
        ),
    ] {
        assert_eq!(described(key), expected, "{key}");
    }
}

#[test]
fn excepted_paths_are_written_as_those_of_routes() {
    let config = check(
        "{ path = \"/a\", except = [\"/static\", \"= /health\", \"*.png\", \"/u/{id}/icon\"] }",
    )
    .unwrap();
    let log = config.listeners[0].access_log.as_ref().unwrap();
    let except = log.conditions.except.as_ref().unwrap();
    for (path, expected) in [
        ("/", false),
        ("/static", true),
        ("/static/a.css", true),
        ("/%73tatic/a", true),
        ("/x/../static", true),
        ("/statics", false),
        ("/health", true),
        ("/health/x", false),
        ("/a/b.png", true),
        ("/u/7/icon", true),
        ("/u/7", false),
        ("*", false),
        ("/%00", false),
    ] {
        assert_eq!(except.contains(path), expected, "{path}");
    }
}

#[test]
fn errors_say_where_and_what_is_allowed() {
    for (key, expected) in [
        ("true", vec!["kirin.toml:3:14", "a text or false, or a table"]),
        ("7", vec!["kirin.toml:3:14", "a text or false, or a table"]),
        ("\"\"", vec!["kirin.toml:3:14", "no path"]),
        ("{}", vec!["kirin.toml:3:14", "`path` is missing"]),
        ("{ path = \"\" }", vec!["kirin.toml:3:23", "no path"]),
        ("{ path = \"a\", fromat = \"json\" }", vec!["`fromat`", "did you mean `format`?"]),
        ("\"syslog:514\"", vec!["`syslog:514` is no syslog daemon", "syslog:HOST:PORT"]),
        ("\"syslog:unix:\"", vec!["is no syslog daemon"]),
        ("\"syslog:a:0\"", vec!["is no syslog daemon"]),
        ("\"journald:/run/x\"", vec!["is no journal", "journald:unix:PATH"]),
        (
            "{ path = \"a\", format = \"jsno\" }",
            vec!["kirin.toml:3:37", "`format` is `jsno`", "combined, common, json, ltsv"],
        ),
        (
            "{ path = \"a\", format = '%h %y' }",
            vec!["kirin.toml:3:37", "there is no `%y`; allowed are %%, %h", "request_id"],
        ),
        ("{ path = \"a\", format = '%h %' }", vec!["ends within `%`"]),
        ("{ path = \"a\", format = '%{plaec}k' }", vec!["`%{plaec}k`: allowed are place"]),
        ("{ path = \"a\", status = [\"errors\"] }", vec!["`errors` is no status", "\"5xx\""]),
        ("{ path = \"a\", status = [600] }", vec!["`600` is no status"]),
        (
            "{ path = \"a\", status = \"5xx\" }",
            vec!["allowed is a list; write `status = [\"5xx\"]`"],
        ),
        ("{ path = \"a\", slower_than = 1 }", vec!["`1` is not a time", "1ms"]),
        ("{ path = \"a\", sample = 0 }", vec!["kirin.toml:3:37", "above 0 and up to 1"]),
        ("{ path = \"a\", sample = 1.5 }", vec!["`sample` is 1.5"]),
        ("{ path = \"a\", sample = nan }", vec!["above 0 and up to 1"]),
        (
            "{ path = \"a\", except = [\"health\"] }",
            vec!["kirin.toml:3:38", "`except` of the access log: `health`", "begin with `/`"],
        ),
        ("{ path = \"a\", except = [\"/a/**\"] }", vec!["`except` of the access log: `/a/**`"]),
        ("{ path = \"a\", except = [\"/a\", \"/a/\"] }", vec!["in `except` twice"]),
    ] {
        let error = check(key).expect_err(key);
        for expected in expected {
            assert!(error.contains(expected), "{key}: {error}");
        }
    }
}

#[test]
fn one_file_has_one_format() {
    let both = |of_listener: &str, of_route: &str| {
        check_text(&format!(
            "{LISTENER}access_log = {of_listener}\n{ROUTE}access_log = {of_route}\n"
        ))
    };
    let json = "{ path = \"a.log\", format = \"json\" }";
    for (first, second) in [
        ("\"a.log\"", "{ path = \"a.log\", format = \"combined\", status = [\"5xx\"] }"),
        (json, json),
        (json, "\"b.log\""),
        (json, "false"),
        ("\"stdout\"", "{ path = \"stdout\", format = \"json\" }"),
    ] {
        assert!(both(first, second).is_ok(), "{first} {second}: {:?}", both(first, second).err());
    }
    let error = both("\"a.log\"", json).unwrap_err();
    assert!(
        error.contains("kirin.toml:7:41") && error.contains("one file has one format"),
        "{error}"
    );
    assert!(error.contains("a.log is already an access log with the format `combined`"), "{error}");
}

#[test]
fn the_routes_of_a_site_share_its_log() {
    let site = |log: &str| {
        check_text(&format!(
            "{LISTENER}[[site]]\nhosts = [\"a.org\"]\naccess_log = {log}\n\
             [[site.route]]\npath = \"/\"\ntry = [\"store\"]\n\
             [[site.route]]\npath = \"/b\"\ntry = [\"store\"]\n"
        ))
        .unwrap()
    };
    for log in ["\"a.log\"", "{ path = \"a.log\", format = \"json\" }"] {
        let config = site(log);
        assert_eq!(config.route_logs.len(), 1, "{log}");
        let routes = &config.gateway.sites[0].routes;
        assert_eq!(routes[0].log, routes[1].log, "{log}");
    }
}
