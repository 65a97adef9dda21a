//! `kirin import`: the configuration on standard output, and what became of each line on standard
//! error. tests/routing/like_nginx/imported.rs compares the answers with those of nginx.

use kirin_tests::{Kirin, Site, run_kirin};

const NGINX: &str = "worker_processes auto;
events {}
http {
    include sites/*;
}
";

const SITE: &str = "server {
    listen 127.0.0.1:0;
    root public;
    sendfile on;
    location /private/ { deny all; }
    location /old/ { return 301 /new/; }
    location / { try_files $uri $uri/ =404; sub_filter a b; }
}
";

#[test]
fn an_nginx_configuration_with_includes_is_served() {
    let site = Site::new()
        .with("nginx.conf", NGINX)
        .with("sites/one", SITE.replace("public", "PUBLIC"))
        .with("public/index.html", "home")
        .with("public/private/a.txt", "private");
    let public = site.path("public").display().to_string();
    std::fs::write(site.path("sites/one"), SITE.replace("public", &public)).expect("a file");
    let output = run_kirin(&site, &["import", "nginx.conf"]);
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{report}");
    for row in [
        "nginx.conf:1 by itself worker_processes auto;",
        "sites/one:2 carried listen 127.0.0.1:0;",
        "sites/one:5 carried deny all;",
        "sites/one:7 left out sub_filter a b;",
    ] {
        let is_there = report
            .lines()
            .any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ").contains(row));
        assert!(is_there, "no `{row}` in\n{report}");
    }
    assert!(report.trim_end().ends_with("1 left out"), "{report}");
    let config = String::from_utf8(output.stdout).expect("a configuration");
    assert!(config.contains("# sites/one:2\n[[listener]]"), "{config}");
    let kirin = Kirin::start(&site, &config);
    assert_eq!(kirin.get("/").text(), "home");
    assert_eq!(kirin.get("/private/a.txt").status, 403);
    assert_eq!(kirin.get("/old/x").field("location"), Some("/new/x"));
}

#[test]
fn a_configuration_that_cannot_be_read_is_named_with_its_line() {
    let site = Site::new().with("nginx.conf", "http {\n  server {\n    listen 80\n  }\n}\n");
    for (file, part) in
        [("nginx.conf", "nginx.conf:"), ("gone.conf", "gone.conf"), (".", "is a directory")]
    {
        let output = run_kirin(&site, &["import", file]);
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{file}: {said}");
        assert!(said.contains(part) && output.stdout.is_empty(), "{file}: {said}");
    }
}

#[test]
fn files_that_the_configuration_needs_are_written_beside_it() {
    let config = "map $uri $new { /old-1 /new; /old-2 https://example.org/x; }
server { listen 127.0.0.1:0; if ($new) { return 301 $new; }
    location /teapot { return 418 \"short\"; } }
";
    let site = Site::new().with("nginx.conf", config);
    let printed = run_kirin(&site, &["import", "nginx.conf"]);
    let report = String::from_utf8_lossy(&printed.stderr);
    assert!(report.contains("`--into DIRECTORY` writes all of them"), "{report}");
    let written = run_kirin(&site, &["import", "nginx.conf", "--into", "made/here"]);
    assert!(written.status.success(), "{}", String::from_utf8_lossy(&written.stderr));
    let said = String::from_utf8_lossy(&written.stdout);
    assert!(said.contains("made/here/kirin.toml is written"), "{said}");
    let path = site.path("made/here/kirin.toml");
    assert_eq!(std::fs::read(&path).expect("a file"), printed.stdout);
    let kirin = Kirin::start_with(&site, &["serve", "--config", "made/here/kirin.toml"]);
    assert_eq!(kirin.get("/old-1").field("location"), Some("/new"));
    assert_eq!(kirin.get("/old-2").field("location"), Some("https://example.org/x"));
    let teapot = kirin.get("/teapot");
    assert_eq!((teapot.status, teapot.text().as_str()), (418, "short"));
    let again = run_kirin(&site, &["import", "nginx.conf", "--into", "made/here"]);
    let said = String::from_utf8_lossy(&again.stderr);
    assert!(!again.status.success() && said.contains("is there already"), "{said}");
}

/// Configurations of other servers: the name of the file, its text, a part of the report and of the
/// kirin.toml.
const OTHERS: &[(&str, &str, &str, &str)] = &[
    (
        "unit.json",
        r#"{"listeners": {"127.0.0.1:0": {"pass": "applications/shop"}},
            "applications": {"shop": {"type": "perl", "processes": 4, "script": "app.psgi"}}}"#,
        "\"processes\": 4",
        "workers = 4",
    ),
    (
        "uwsgi.ini",
        "[uwsgi]\npsgi = app.psgi\nhttp = 127.0.0.1:0\nprocesses = 3\n\
         route = ^/admin/ basicauth:Admin,bob:hunter2\n",
        "route = ^/admin/ basicauth",
        "path = \"/admin\"\ndeny = 403",
    ),
    (
        "Caddyfile",
        "http://example.org {\n\troot * www\n\tfile_server\n}\n",
        "file_server",
        "hosts = [\"example.org\"]",
    ),
    (
        "sites-available/shop",
        "<VirtualHost *:8080>\n ServerName example.org\n DocumentRoot www\n</VirtualHost>\n",
        "DocumentRoot www",
        "address = \"*:8080\"",
    ),
    (
        "default.vcl",
        "vcl 4.1;\nbackend default { .host = \"127.0.0.1\"; .port = \"8080\"; }\n",
        "backend default",
        "cache = true",
    ),
];

#[test]
fn configurations_of_other_servers_are_told_apart_and_pass_the_check() {
    for (file, text, of_report, of_config) in OTHERS {
        let site = Site::new().with(file, text).with("app.psgi", "sub {}").with("www/a", "a");
        let output = run_kirin(&site, &["import", file]);
        let report = String::from_utf8_lossy(&output.stderr);
        let config = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && report.contains(of_report), "{file}: {report}");
        assert!(config.contains(of_config), "{file}: {config}");
        assert!(!report.contains("hunter2") && !config.contains("hunter2"), "{report}{config}");
        std::fs::write(site.path("kirin.toml"), &*config).expect("a file");
        let check = run_kirin(&site, &["check"]);
        assert!(check.status.success(), "{file}: {}", String::from_utf8_lossy(&check.stderr));
    }
}

#[test]
fn a_server_can_be_named_for_a_file_with_another_name() {
    let (_, text, _, part) = OTHERS[0];
    let site = Site::new().with("settings", text).with("app.psgi", "sub {}");
    for arguments in [&["import", "settings"][..], &["import", "settings", "--from", "unit"]] {
        let output = run_kirin(&site, arguments);
        let config = String::from_utf8_lossy(&output.stdout);
        assert!(config.contains(part), "{arguments:?}: {config}");
    }
    let output = run_kirin(&site, &["import", "settings", "--from", "lighttpd"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() == Some(2) && said.contains("nginx, apache, caddy"), "{said}");
}
