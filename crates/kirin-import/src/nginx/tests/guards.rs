//! What keeps visitors out is never lost without a word, and never open.

use super::{import_text, left_out, written};
use crate::report::Outcome;

/// Blocks that keep visitors out in ways that Kirin does not have, each inside of a server.
const GUARDS: [&str; 12] = [
    "location ~ (?=a)b { deny all; } location / { root /w; }",
    "location ~ ^/private/(?!x)y { allow 10.0.0.0/8; deny all; }",
    "location /a { root /w; allow example.org; deny all; }",
    "location /a { root /w; auth_basic x; }",
    "location /a { root /w; auth_basic $x; auth_basic_user_file f; }",
    "location /a { root /w; auth_request $x; }",
    "location /a { root /w; access_by_lua_file f; }",
    "location /a { root /w; if ($args ~ x) { return 403; } }",
    "location /a { root /w; if ($http_a ~ \"x.*y\") { return 401; } }",
    "location /a { root /w; valid_referers ~x; if ($invalid_referer) { return 403; } }",
    "location /a { secure_link $arg_m; root /w; if ($secure_link = \"\") { return 403; } }",
    "root /w; set $bad 0; if ($args ~ x) { set $bad 1; } if ($bad = 1) { return 403; }",
];

#[test]
fn a_guard_that_kirin_lacks_is_told_and_its_route_is_closed() {
    for guard in GUARDS {
        let text = format!("server {{ {guard} }}");
        let lost: Vec<_> =
            left_out(&text).into_iter().filter(|line| line.contains("PROTECTION LOST: ")).collect();
        assert!(!lost.is_empty(), "{text}\n{:#?}", import_text(&text).notes);
        let config = written(&text);
        assert!(config.contains("deny = 403"), "{text}\n{config}");
        let closed = import_text(&text).config();
        assert!(closed.contains("# CLOSED: n:1: "), "{text}\n{closed}");
    }
}

#[test]
fn every_directive_has_a_note_that_is_not_about_nothing() {
    let text = "unknown_thing a b; events { } http { server { root /w; unknown_other; \
                sub_filter a b; sendfile on; location / { proxy_pass http://a:1; } } }";
    let import = import_text(text);
    assert_eq!(import.notes.len(), 10, "{:#?}", import.notes);
    let unknown = "not a directive that this importer knows";
    let is_unknown =
        |outcome: &Outcome| matches!(outcome, Outcome::LeftOut(text) if text == unknown);
    let names: Vec<_> = import
        .notes
        .iter()
        .filter(|note| is_unknown(&note.outcome))
        .map(|note| note.directive.as_str())
        .collect();
    assert_eq!(names, ["unknown_thing a b;", "unknown_other;"]);
}

#[test]
fn a_condition_that_keeps_nobody_out_closes_nothing() {
    let text =
        "server { root /w; if ($args ~ x) { set $a 1; } if ($uri ~ (?=x)) { return 301 /y; } }";
    let config = written(text);
    assert!(!config.contains("deny"), "{config}");
    assert_eq!(left_out(text).len(), 4, "{:#?}", left_out(text));
}
