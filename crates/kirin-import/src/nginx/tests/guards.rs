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
        let lost: Vec<_> = left_out(&text)
            .into_iter()
            .filter(|line| line.contains("PROTECTION NOT CARRIED OVER: "))
            .collect();
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

#[test]
fn a_guard_of_an_expression_is_before_the_routes_that_nginx_asks_later() {
    for (nginx, guard) in [
        ("location /data/ { root /d; } location ~ \\.sql$ { deny all; }", "/data/*.sql"),
        (
            "location ~ \\.sql$ { deny all; } location ~ ^/api/ { proxy_pass http://a:1; }",
            "/api/*.sql",
        ),
        (
            "location /wp-content/ { root /d; } location ~ /uploads/.*\\.x$ { deny all; }",
            "/wp-content/uploads/*.x",
        ),
        ("location /data/open/ { root /d; } location ~ ^/data/ { return 404; }", "/data/open"),
        ("location /a/ { root /d; } if ($uri ~ \\.sql$) { return 403; }", "/a/*.sql"),
        ("location = /x.sql { root /d; } if ($uri ~ \\.sql$) { return 403; }", "= /x.sql"),
        ("location ~ \\.sql$ { deny all; } location ~ ^/a/.*\\.sql$ { root /d; }", "/a/*.sql"),
    ] {
        let config = written(&format!("server {{ root /w; {nginx} }}"));
        let found = config.split("[[site.route]]").any(|route| {
            route.contains(&format!("path = \"{guard}\"\n")) && route.contains("deny = 40")
        });
        assert!(found, "{nginx}\n{config}");
    }
}

#[test]
fn a_guard_of_the_location_with_the_program_holds_for_the_route() {
    for nginx in [
        "location / { try_files $uri @a; } location @a { GUARD proxy_pass http://a:1; }",
        "location / { try_files $uri /index.php; } location ~ \\.php$ { GUARD fastcgi_pass unix:/p; }",
        "index index.php; location ~ \\.php$ { GUARD fastcgi_pass unix:/p; }",
        "error_page 404 = @a; location / { } location @a { GUARD proxy_pass http://a:1; }",
    ] {
        let guard = "allow 10.0.0.0/8; deny all;";
        let config = written(&format!("server {{ root /w; {} }}", nginx.replace("GUARD", guard)));
        let with_program = config.split("[[site.route]]").filter(|route| route.contains("proxy:"));
        for route in with_program {
            let is_hoisted =
                config.split("[[site.route]]").next().is_some_and(|site| site.contains("allow ="));
            assert!(is_hoisted || route.contains("allow = [\"10.0.0.0/8\"]"), "{nginx}\n{config}");
        }
        let guard = "if ($http_a) { return 403; }";
        let config = written(&format!("server {{ root /w; {} }}", nginx.replace("GUARD", guard)));
        assert!(
            config.contains("match = { headers = { A = \"*\" } }\ndeny = 403"),
            "{nginx}\n{config}"
        );
    }
}

#[test]
fn a_guard_whose_path_kirin_cannot_have_closes_what_is_around_it() {
    for (path, closed) in [("/a/b*c", "/a"), ("/x?y", "/")] {
        let text = format!("server {{ root /w; location {path} {{ deny all; }} }}");
        let config = written(&text);
        let route = format!("path = \"{closed}\"\ndeny = 403");
        assert!(config.contains(&route), "{text}\n{config}");
        assert!(
            left_out(&text).iter().any(|line| line.contains("PROTECTION NOT CARRIED OVER")),
            "{text}"
        );
    }
}

#[test]
fn conditions_guard_the_methods_that_limit_except_lets_pass() {
    let text = "server { location /a/ { root /w; limit_except POST { deny all; } \
                if ($arg_k = 1) { return 403; } } }";
    let expected = "[[site.route]]\npath = \"/a\"\nmatch = { query = { k = \"1\" } }\ndeny = 403\n\
                    [[site.route]]\npath = \"/a\"\nmatch = { methods = [\"POST\"] }\n\
                    try = [\"files:/w\"]\n[[site.route]]\npath = \"/a\"\ndeny = 403";
    assert_eq!(written(text), expected);
}

#[test]
fn a_script_runs_for_its_own_path_only_unless_nginx_splits_the_path() {
    for (pattern, split, expected) in [
        ("\\.php$", "", true),
        ("\\.php$", "fastcgi_split_path_info ^(.+\\.php)(/.+)$;", false),
        ("[^/]\\.php(/|$)", "fastcgi_split_path_info ^(.+?\\.php)(/.*)$;", false),
    ] {
        let text = format!(
            "server {{ root /w; location / {{ try_files $uri $uri/ /index.php?$args; }}
            location ~ {pattern} {{ fastcgi_pass unix:/run/php.sock; {split}
                fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name; }} }}"
        );
        let config = super::import_text(&text).config();
        assert_eq!(config.contains("path_info = false"), expected, "{config}");
    }
}

/// What goes around a rule, and what the report must say about it.
const AROUND: &[(&str, &str)] = &[
    (
        "server { root /w; location ~ \\.html$ { auth_basic x; auth_basic_user_file /p; } }",
        "not for the directory of which the page is the index",
    ),
    (
        "server { root /w; location /admin/ { include gone/rules.conf; } }",
        "`gone/rules.conf` cannot be read",
    ),
    (
        "server { listen 80; root /w; } server { listen 8081; server_name a; root /v; }",
        "every listener serves every site",
    ),
    (
        "server { location / { proxy_pass http://a; rewrite ^/secret/(.*)$ /private/$1 last; }
            location /private/ { deny all; } }",
        "no other route is looked for",
    ),
    (
        "server { root /w; if ($arg_debug = 1) { return 403; } }",
        "nginx finds names of arguments in any case",
    ),
    ("server { root /w; location ~ /secret { deny all; } }", ", and not for "),
];

#[test]
fn the_report_tells_of_each_way_around_a_rule() {
    for (text, expected) in AROUND {
        let report = super::import_text(text).report();
        let is_told =
            |line: &str| line.contains("PROTECTION NOT CARRIED OVER") && line.contains(expected);
        assert!(report.lines().any(is_told), "{text}\n{report}");
    }
}

#[test]
fn files_of_parameters_and_media_types_keep_nobody_out() {
    for name in ["fastcgi_params", "mime.types", "snippets/ssl-params.conf"] {
        let report = super::import_text(&format!("server {{ root /w; include {name}; }}")).report();
        assert!(!report.contains("PROTECTION NOT CARRIED OVER"), "{report}");
    }
}

#[test]
fn a_condition_with_a_variable_on_its_right_side_closes_the_route() {
    for condition in ["$http_x_k != $cookie_k", "$arg_t != \"$http_x_sig\""] {
        let text = format!("server {{ root /w; if ({condition}) {{ return 403; }} }}");
        let config = super::import_text(&text).config();
        assert!(config.contains("deny = 403") && !config.contains("match ="), "{config}");
    }
}

#[test]
fn a_field_without_text_is_refused_as_a_missing_one() {
    let text = "server { root /w; if ($http_user_agent = \"\") { return 403; } }";
    let config = super::import_text(text).config();
    for value in ["User-Agent = false", "User-Agent = \"\""] {
        assert!(config.contains(value), "{config}");
    }
}
