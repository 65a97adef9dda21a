//! Configurations of several files.

use proptest::prelude::*;

use super::{FakeFiles, import, import_text, left_out, written};
use crate::files::Files;

#[test]
fn included_files_are_read_from_the_directory_of_the_first_one() {
    let files = FakeFiles::new(&[
        ("/etc/nginx/nginx.conf", "http { include sites/*; include none.conf; include /a/*.x; }"),
        ("/etc/nginx/sites/b", "server { server_name b.example; root /b; include sites/b; }"),
        ("/etc/nginx/sites/a", "server { server_name a.example; root /a; }"),
    ]);
    let error = import("/etc/nginx/nginx.conf", &files).expect_err("a circle").to_string();
    let expected =
        "/etc/nginx/sites/b:1: `/etc/nginx/sites/b` includes itself, directly or by other files";
    assert_eq!(error, expected);
    let files = FakeFiles::new(&[
        ("/e/n", "http { include sites/*; include none.conf; include /a/*.x; }"),
        ("/e/sites/a", "server { server_name a.example; root /a; }"),
        ("/e/sites/b", "server {\n server_name b.example; root /b; }"),
    ]);
    let import = import("/e/n", &files).expect("an import");
    let config = import.config();
    assert!(config.contains("# /e/sites/a:1\n[[site]]\nhosts = [\"a.example\"]"), "{config}");
    assert!(config.contains("# /e/sites/b:1\n[[site]]\nhosts = [\"b.example\"]"), "{config}");
    let report = import.report();
    assert!(report.contains("`/e/none.conf` cannot be read: there is no such file"), "{report}");
    assert!(report.contains("/e/sites/b:2  carried    server_name b.example;"), "{report}");
}

#[test]
fn a_file_that_includes_too_often_is_an_error() {
    let mut files = FakeFiles::default();
    for number in 0..40 {
        let text = format!("include f{};", number + 1);
        files.0.insert(format!("f{number}"), text);
    }
    let error = import("f0", &files).expect_err("too deep").to_string();
    assert!(error.contains("too many includes"), "{error}");
    let mut files = FakeFiles::default();
    for number in 0..15 {
        let next = format!("include f{};", number + 1);
        files.0.insert(format!("f{number}"), next.repeat(4));
    }
    files.0.insert("f15".into(), "a;".into());
    let error = import("f0", &files).expect_err("too many").to_string();
    assert!(error.contains("too many includes"), "{error}");
}

#[test]
fn a_first_file_that_is_not_there_is_an_error() {
    let error = import("n", &FakeFiles::default()).expect_err("no file").to_string();
    assert_eq!(error, "n:1: the file cannot be read: there is no such file");
}

#[test]
fn locations_alone_are_those_of_a_server() {
    let config = written("location /a/ { root /w; }");
    assert_eq!(config, "[[site.route]]\npath = \"/a\"\ntry = [\"files:/w\"]");
    assert!(left_out("location /a/ { root /w; }").is_empty());
}

#[test]
fn what_other_blocks_have_is_left_out() {
    let text = "stream { server { listen 53; proxy_pass dns; } } http { server { root /w; } }";
    assert_eq!(left_out(text).len(), 4, "{:#?}", left_out(text));
}

/// Returns a text that looks like a configuration.
fn configurations() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(vec![
        "server {",
        "location / {",
        "location ~ \\.php$ {",
        "location ~ ^/a/(.*)$ {",
        "location = /x {",
        "if ($http_a ~* b) {",
        "limit_except GET {",
        "}",
        "}",
        "upstream u { server a:1; }",
        "proxy_pass http://u;",
        "proxy_pass http://$x/$1;",
        "return 403;",
        "return 301 /y$request_uri;",
        "rewrite ^/a/(.*)$ /b/$1 permanent;",
        "allow 10.0.0.0/8;",
        "deny all;",
        "root /w;",
        "alias /v/;",
        "try_files $uri @n;",
        "location @n {",
        "fastcgi_pass unix:/p;",
        "listen 443 ssl;",
        "listen 80;",
        "server_name a.b *.c;",
        "add_header A $host;",
        "expires 1h;",
        "error_page 404 = @n;",
        "map $uri $m { ~^/a 1; default 0; }",
        "geo $g { 10.0.0.0/8 1; }",
        "if ($m) {",
        "set $x 1;",
        "internal;",
        "auth_request /x;",
        "satisfy any;",
        "auth_basic a;",
        "auth_basic_user_file f;",
    ]);
    prop::collection::vec(piece, 0..25).prop_map(|pieces| {
        let mut depth = 0_usize;
        let mut text = String::new();
        for piece in pieces {
            match piece {
                "}" if depth == 0 => continue,
                "}" => depth -= 1,
                piece if piece.ends_with('{') => depth += 1,
                _ => {}
            }
            text.push_str(piece);
            text.push('\n');
        }
        text + &"}".repeat(depth)
    })
}

proptest! {
    #[test]
    fn no_configuration_makes_the_importer_panic(text in configurations()) {
        let import = import_text(&text);
        let config: Result<toml::Table, _> = import.config().parse();
        prop_assert!(config.is_ok(), "{}", import.config());
        prop_assert!(!import.report().is_empty());
    }

    #[test]
    fn no_text_makes_the_importer_panic(text in ".{0,200}") {
        let files = FakeFiles::new(&[("n", &text)]);
        prop_assert!(files.read("n").is_ok());
        let _ = import("n", &files);
    }
}
