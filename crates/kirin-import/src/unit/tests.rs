//! Configurations of Unit's documentation, and what becomes a `kirin.toml`.

use proptest::prelude::*;

use super::import;
use crate::testing::{MemoryFiles, check, check_parts, imported};

#[test]
fn an_application_in_perl_runs_in_kirin() {
    check(
        import,
        r#"{
    "listeners": { "*:80": { "pass": "applications/blog" } },
    "applications": {
        "blog": {
            "type": "perl",
            "script": "/www/psgi/app.psgi",
            "working_directory": "/www/",
            "processes": { "max": 10, "spare": 5, "idle_timeout": 20 },
            "user": "www",
            "group": "www",
            "environment": { "LANG": "de" }
        }
    }
}"#,
        r#"
user = "www"

# f:2
[[listener]]
address = "*:80"

# f:4
[[app]]
name = "blog"
load = "/www/psgi/app.psgi"
directory = "/www/"
workers = 10
env = { LANG = "de" }

# f:2
[[route]]
path = "/"
try = ["app:blog"]
"#,
        r#"
2 + "*:80"
2 + "pass"
5 + "type": "perl"
6 + "script": "/www/psgi/app.psgi"
7 + "working_directory": "/www/"
8 + "processes": {…}
9 + "user": "www"
10 - "group": "www"
11 + "environment": {…}
"#,
    );
}

#[test]
fn the_first_step_that_matches_counts() {
    check(
        import,
        r#"{
    "listeners": { "*:80": { "pass": "routes" } },
    "routes": [
        { "match": { "source": "!10.0.0.0/8" }, "action": { "return": 403 } },
        { "match": { "uri": "/admin/*" }, "action": { "proxy": "http://127.0.0.1:8080" } },
        { "action": { "share": "/www/static$uri" } }
    ]
}"#,
        r#"
# f:2
[[listener]]
address = "*:80"

[[upstream]]
name = "127-0-0-1-8080"
servers = ["127.0.0.1:8080"]

# f:4
[[route]]
path = "/"
match = { not = { clients = ["10.0.0.0/8"] } }
deny = 403

# f:6
[[route]]
path = "/"
try = ["files:/www/static"]

# f:4
[[route]]
path = "/admin"
match = { not = { clients = ["10.0.0.0/8"] } }
deny = 403

# f:5
[[route]]
path = "/admin"
try = ["proxy:127-0-0-1-8080"]
"#,
        r#"
2 + "*:80"
2 + "pass"
4 + "source": "!10.0.0.0/8"
4 + "return": 403
5 + "uri": "/admin/*"
5 + "proxy": "http://127.0.0.1:8080"
6 + "share": "/www/static$uri"
"#,
    );
}

#[test]
fn hosts_become_sites_with_the_steps_for_all_hosts() {
    check_parts(
        import,
        r#"{ "listeners": { "*:80": { "pass": "routes/main" } }, "routes": { "main": [
            { "match": { "host": "*.example.com", "uri": "/a/*" }, "action": { "return": 404 } },
            { "match": { "host": "www.example.com" }, "action": { "share": "/www$uri" } } ] } }"#,
        &[
            "[[site]]\nhosts = [\"*.example.com\"]\n\n# f:2\n[[site.route]]\npath = \"/a\"\ndeny = 404",
            "[[site]]\nhosts = [\"www.example.com\"]\n\n# f:2\n[[site.route]]\npath = \"/a\"\n\
             deny = 404\n\n# f:3\n[[site.route]]\npath = \"/\"\ntry = [\"files:/www\"]",
        ],
    );
}

/// Conditions and actions, with parts of the `kirin.toml` or of the notes.
const STEPS: &[(&str, &[&str])] = &[
    (
        r#"{ "match": { "uri": "~^/secret/\\d+" }, "action": { "return": 403 } }"#,
        &["path = \"/secret\"\ndeny = 403", "PROTECTION NOT CARRIED OVER, so the route is closed"],
    ),
    (
        r#"{ "match": { "uri": "~\\.git" }, "action": { "return": 404 } }"#,
        &["# Closed: `uri`: `~\\.git`", "path = \"/\"\ndeny = 403"],
    ),
    (
        r#"{ "match": { "source": "10.0.0.1-10.0.0.9" }, "action": { "share": "/x$uri" } }"#,
        &["path = \"/\"\ndeny = 403", "without ranges and ports"],
    ),
    (
        r#"{ "match": { "uri": "/admin*" }, "action": { "return": 403 } }"#,
        &["path = \"/admin\"\ndeny = 403", "PROTECTION NOT CARRIED OVER for such names"],
    ),
    (
        r#"{ "match": { "method": ["GET", "POST"], "scheme": "!https", "headers": [{ "A": "*b" },
            { "C": "!d" }] }, "action": { "share": "/x$uri" } }"#,
        &[
            r#"match = { headers = { A = "*b" }, methods = ["GET", "POST"], scheme = "http" }"#,
            r#"methods = ["GET", "POST"], not = { headers = { C = "d" } }, scheme = "http" }"#,
        ],
    ),
    (
        r#"{ "action": { "share": ["/a$uri", "/b$uri"], "index": "main.html",
            "fallback": { "share": "/b/index.html" } } }"#,
        &[r#"try = ["files:/a", "files:/b"]"#, r#"fallback = "index.html""#],
    ),
    (
        r#"{ "action": { "share": "/a$uri", "types": "image/*" } }"#,
        &["path = \"/\"\ndeny = 403", "PROTECTION NOT CARRIED OVER: Kirin has no filter"],
    ),
    (
        r#"{ "action": { "share": "/www/$host$uri" } }"#,
        &["try = [\"files:/www\"]\nrewrite = \"/{host}\""],
    ),
    (
        r#"{ "match": { "uri": "/a/*" }, "action": { "return": 308,
            "location": "https://other.example$request_uri" } }"#,
        &["redirect = \"https://other.example{path}\"\nredirect_status = 308"],
    ),
    (
        r#"{ "match": { "uri": "/v1/*" }, "action": { "rewrite": "/v2$uri",
            "proxy": "http://unix:/run/a.sock" } }"#,
        &["rewrite = \"/v2/v1\"", "servers = [\"unix:/run/a.sock\"]"],
    ),
    (
        r#"{ "action": { "share": "/a$uri", "response_headers": { "A": "${host} {x}", "B": null,
            "Date": "x" } } }"#,
        &[r#"headers = { A = "{host} {{x}", B = "" }"#, "Kirin cannot set Date so"],
    ),
    (
        r#"{ "match": { "uri": "/a/*" }, "action": { "pass": "routes" } }"#,
        &["path = \"/a\"\ndeny = 403", "they pass to themselves"],
    ),
    (r#"{ "action": { "return": 500 } }"#, &["# Closed: Unit answered 500.", "deny = 403"]),
    (r#"{ "action": { "pass": "applications/none" } }"#, &["deny = 403", "no such application"]),
    (r#"{ "new": 1, "action": { "share": "/a$uri" } }"#, &["1 - \"new\": not known here"]),
];

#[test]
fn a_step_becomes_a_route() {
    for (step, parts) in STEPS {
        let step = step.replace('\n', " ");
        let text = format!(
            r#"{{ "listeners": {{ "*:80": {{ "pass": "routes" }} }}, "routes": [{step}] }}"#
        );
        check_parts(import, &text, parts);
    }
}

#[test]
fn a_listener_that_only_redirects_has_a_key_for_that() {
    check_parts(
        import,
        r#"{ "listeners": {
            "*:80": { "pass": "routes/https" },
            "*:443": { "pass": "routes/main", "tls": { "certificate": "bundle" } },
            "127.0.0.1:9000": { "pass": "routes/inner" } },
          "routes": {
            "https": [{ "action": { "return": 301, "location": "https://$host$request_uri" } }],
            "main": [{ "action": { "share": "/www$uri" } }],
            "inner": [{ "action": { "share": "/secret$uri" } }] } }"#,
        &[
            "address = \"*:80\"\nredirect_to_https = 443",
            "[listener.tls]\ncertificates = [{ chain = \"/var/lib/unit/certs/bundle\"",
            "4 - \"127.0.0.1:9000\": every listener of Kirin serves all routes",
            "8 - \"inner\"",
        ],
    );
}

#[test]
fn routes_of_a_listener_that_was_left_out_are_not_served() {
    let import = imported(
        import,
        r#"{ "listeners": { "*:80": { "pass": "routes/a" }, "[::1]:81": { "pass": "routes/b" } },
        "routes": { "a": [{ "action": { "share": "/a$uri" } }],
            "b": [{ "action": { "share": "/b$uri" } }] } }"#,
    );
    assert!(!import.config().contains("/b"), "{}", import.config());
}

#[test]
fn other_applications_lead_to_an_upstream() {
    check_parts(
        import,
        r#"{ "listeners": { "*:80": { "pass": "routes" } },
        "routes": [{ "match": { "uri": "*.php" }, "action": { "pass": "applications/p/all" } },
            { "action": { "pass": "applications/w" } }],
        "applications": {
            "w": { "type": "external", "executable": "server" },
            "p": { "type": "php", "targets": { "all": { "root": "/srv/p", "script": "i.php" } } } } }"#,
        &[
            "path = \"*.php\"\ntry = [\"proxy:p-all\"]",
            "servers = [\"fastcgi://unix:/run/php/php-fpm.sock\"]\nroot = \"/srv/p\"\nindex = \"i.php\"",
            "path = \"/\"\ntry = [\"proxy:w\"]",
            "let it listen for HTTP itself",
        ],
    );
}

#[test]
fn an_application_in_ruby_runs_in_kirin() {
    check_parts(
        import,
        r#"{ "listeners": { "*:80": { "pass": "applications/shop" } },
        "applications": { "shop": {
            "type": "ruby 3.1", "script": "config.ru", "working_directory": "/srv/shop",
            "hooks": "hooks.rb", "threads": 5, "processes": 4 } } }"#,
        &[
            "name = \"shop\"\nload = \"/srv/shop/config.ru\"\ndirectory = \"/srv/shop\"\n\
             workers = 4",
            "try = [\"app:shop\"]",
            "- \"hooks\": \"hooks.rb\": write its hooks into config/kirin.rb",
            "- \"threads\": 5: a worker of Kirin serves one request at a time",
        ],
    );
}

#[test]
fn an_application_in_python_runs_in_kirin() {
    check_parts(
        import,
        r#"{ "listeners": { "*:80": { "pass": "applications/shop" } },
        "applications": { "shop": {
            "type": "python 3.11", "module": "shop.wsgi", "path": ["/srv/shop", "/srv/lib"],
            "home": "/srv/venv", "protocol": "wsgi", "working_directory": "/srv/shop",
            "environment": { "DEBUG": "0" }, "processes": 4, "threads": 2 } } }"#,
        &[
            "name = \"shop\"\nload = \"shop.wsgi:application\"\ndirectory = \"/srv/shop\"\n",
            "env = { DEBUG = \"0\", PYTHONPATH = \"/srv/shop:/srv/lib\", VIRTUAL_ENV = \"/srv/venv\" }",
            "workers = 4",
            "try = [\"app:shop\"]",
            "= \"protocol\": \"wsgi\": Kirin sees it by the application",
            "- \"threads\": 2: a worker of Kirin serves one request at a time",
        ],
    );
}

#[test]
fn each_target_of_an_application_in_python_is_an_application() {
    check_parts(
        import,
        r#"{ "listeners": { "*:80": { "pass": "routes" } },
        "routes": [{ "match": { "uri": "/api/*" }, "action": { "pass": "applications/p/api" } },
            { "action": { "pass": "applications/p/pages" } }],
        "applications": { "p": { "type": "python", "processes": 2, "targets": {
            "api": { "module": "api", "callable": "make", "factory": true, "path": "/srv/api" },
            "pages": { "callable": "app" } } } } }"#,
        &[
            "name = \"p-api\"\nload = \"api:make()\"\nworkers = 2\nenv = { PYTHONPATH = \"/srv/api\" }",
            "name = \"p-pages\"\nload = \"app:application\"\nworkers = 2\n",
            "- \"p-pages\": it has no `module`",
            "path = \"/api\"\ntry = [\"app:p-api\"]",
            "path = \"/\"\ntry = [\"app:p-pages\"]",
        ],
    );
}

#[test]
fn upstreams_settings_and_the_log_are_carried() {
    check_parts(
        import,
        r#"{ "listeners": { "*:80": { "pass": "upstreams/u", "forwarded": {
            "client_ip": "X-Real-IP", "source": ["10.0.0.1", "!10.0.0.2", "unix"] } } },
        "upstreams": { "u": { "servers": { "10.0.0.1:80": {}, "10.0.0.2:80": { "weight": 0.5 } } } },
        "settings": { "http": { "header_read_timeout": 10, "max_body_size": 1048576 } },
        "access_log": { "path": "/var/log/unit.log", "format": "$status $header_x_a" } }"#,
        &[
            "servers = [{ address = \"10.0.0.1:80\", weight = 2 }, \"10.0.0.2:80\"]",
            "forwarded = \"X-Real-IP\"\ntrusted = [\"10.0.0.1\", \"unix:\"]",
            "It does not trust !10.0.0.2",
            "head_timeout = \"10s\"",
            "body_limit = \"1MB\"",
            "access_log = { format = \"%s %{x-a}i\", path = \"/var/log/unit.log\" }",
        ],
    );
}

#[test]
fn an_error_names_file_and_line() {
    let files = MemoryFiles::new(&[("u.json", "{\n\"a\" 1}")]);
    let error = import("u.json", &files).expect_err("no JSON");
    assert_eq!(error.to_string(), "u.json:2: `1` where a colon behind the key should be");
    let error = import("none", &files).expect_err("no file");
    assert_eq!(error.to_string(), "none:1: there is no such file");
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(text in "\\PC*") {
        let _ = import("f", &MemoryFiles::new(&[("f", &text)]));
    }

    #[test]
    fn no_step_causes_a_panic(
        uri in "[~!*/a.{}$^ é]{0,12}",
        action in prop::sample::select(vec!["share", "pass", "return", "rewrite", "proxy", "types"]),
        value in "[~!*/a.{}$^ é]{0,12}|\\$uri|/a/\\$host\\$uri|routes",
    ) {
        let text = format!(
            r#"{{ "listeners": {{ "*:80": {{ "pass": "routes" }} }}, "routes": [
                {{ "match": {{ "uri": "{uri}", "host": "{uri}" }}, "action": {{ "{action}": "{value}",
                    "location": "{value}" }} }}] }}"#
        );
        imported(import, &text);
    }
}
