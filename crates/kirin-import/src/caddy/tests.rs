//! Patterns of Caddy's documentation, and what becomes a `kirin.toml`.

use proptest::prelude::*;

use super::import;
use crate::testing::{MemoryFiles, check, check_parts, imported};

#[test]
fn the_caddyfile_of_the_package_serves_files() {
    check(
        import,
        "# The Caddyfile is an easy way to configure your Caddy web server.
:80 {
	# Set this path to your site's directory.
	root * /usr/share/caddy

	# Enable the static file server.
	file_server

	# reverse_proxy localhost:8080
}
",
        r#"
# f:2
[[listener]]
address = "*:80"

# f:7
[[route]]
path = "/"
try = ["files:/usr/share/caddy"]
"#,
        "2 + :80\n4 + root * /usr/share/caddy\n7 + file_server",
    );
}

#[test]
fn a_password_is_asked_on_all_routes_of_its_paths() {
    check(
        import,
        "example.com

root * /srv
basic_auth /admin/* {
	bob $2a$14$hash
}
reverse_proxy /api/* localhost:9000
file_server
",
        r#"
# f:1
[[listener]]
address = "*:443"

[listener.tls]
acme = { domains = ["example.com"] }

# f:1, for http
[[listener]]
address = "*:80"
redirect_to_https = 443

# f:7
[[upstream]]
name = "localhost-9000"
servers = ["localhost:9000"]

[[site]]
hosts = ["example.com"]

# f:7
[[site.route]]
path = "/api"
try = ["proxy:localhost-9000"]

# f:8
# Write `f-4.htpasswd` with a line `NAME:HASH` for each user:
# bob:$2a$14$hash
[[site.route]]
path = "/admin"
try = ["files:/srv"]
basic_auth = "f-4.htpasswd"

# f:8
[[site.route]]
path = "/"
try = ["files:/srv"]
"#,
        "
1 + example.com
1 + automatic https
3 + root * /srv
4 + basic_auth /admin/*
7 + reverse_proxy /api/* localhost:9000
8 + file_server
",
    );
}

/// Directives of a site on port 80, with parts of the `kirin.toml` or of the notes.
const DIRECTIVES: &[(&str, &[&str])] = &[
    (
        "handle_path /v1/* {\n reverse_proxy unix//run/a.sock\n}",
        &[
            "servers = [\"unix:/run/a.sock\"]",
            "path = \"/v1\"\ntry = [\"proxy:run-a-sock\"]\n\
                                               rewrite = \"/\"",
        ],
    ),
    (
        "reverse_proxy https://a.example b:81 {\n lb_policy ip_hash\n health_uri /h\n\
         health_interval 1m30s\n max_fails 2\n fail_duration 30s\n header_up Host {upstream_hostport}\n\
         header_up X-Real-IP {remote_host}\n header_down -X-A\n transport http {\n\
         tls_insecure_skip_verify\n dial_timeout 1500ms\n }\n}",
        &[
            "servers = [\"https://a.example:443\", \"https://b:81\"]\nbalance = \"hash\"\n\
             hash_key = \"address\"\nmax_failures = 2\nejection_time = \"30s\"\nhost = \"upstream\"\n\
             connect_timeout = \"2s\"\nhealth = { interval = \"90s\", path = \"/h\" }\n\
             tls = { verify = false }",
            "headers = { X-A = \"\" }\nrequest_headers = { X-Real-IP = \"{client}\" }",
        ],
    ),
    (
        "reverse_proxy a:1 b:2 c:3 {\n lb_policy first\n}",
        &[
            "servers = [\"a:1\", { address = \"b:2\", backup = true }, { address = \"c:3\", backup = \
           true }]",
        ],
    ),
    ("reverse_proxy {http.vars.backend}", &["deny = 403", "The route is closed"]),
    (
        "root * /srv\nphp_fastcgi unix//run/php.sock\nfile_server",
        &[
            "servers = [\"fastcgi://unix:/run/php.sock\"]\nroot = \"/srv\"",
            "try = [\"files:/srv\", \"proxy:run-php-sock\"]",
        ],
    ),
    (
        "root * /srv\n@static file\nhandle @static {\n file_server\n}\nreverse_proxy a:1",
        &["try = [\"files:/srv\", \"proxy:a-1\"]"],
    ),
    (
        "redir https://www.example.com{uri}",
        &["redirect = \"https://www.example.com/\"\nredirect_status = 302"],
    ),
    (
        "redir /old/* /new 301",
        &["path = \"/old\"\nredirect = \"/new\"\nredirect_status = 301", "Kirin appends the rest"],
    ),
    ("redir https://{host}{uri} permanent", &["redirect = \"https://{host}{path}\""]),
    (
        "root * /srv\ntry_files {path} /index.html\nfile_server",
        &["try = [\"files:/srv\"]\nfallback = \"index.html\""],
    ),
    (
        "forward_auth auth:9091 {\n uri /verify\n copy_headers Remote-User\n}\nreverse_proxy a:1",
        &[
            "auth_request = { ask = \"proxy:auth-9091\", fields = [\"Remote-User\"], path = \"/verify\" }",
        ],
    ),
    (
        "@in remote_ip 10.0.0.1/8\nhandle @in {\n reverse_proxy a:1\n}\nrespond 403",
        &[
            "match = { clients = [\"10.0.0.0/8\"] }\ntry = [\"proxy:a-1\"]",
            "path = \"/\"\ndeny = 403",
        ],
    ),
    (
        "@x path_regexp ^/a/[0-9]+\nrespond @x 403\nfile_server",
        &["path = \"/a\"\ndeny = 403", "PROTECTION NOT CARRIED OVER, so the route is closed"],
    ),
    (
        "@x expression {path}.endsWith('x')\nbasic_auth @x {\n bob $2a$x\n}\nfile_server",
        &["path = \"/\"\ndeny = 403", "PROTECTION NOT CARRIED OVER"],
    ),
    (
        "@x {\n path /a/* /b/*\n method GET\n header X-A b*\n not query c=d\n protocol https\n}\n\
         respond @x 404",
        &[
            "path = \"/a\"\nmatch = { headers = { X-A = \"b*\" }, methods = [\"GET\"], not = { query = \
           { c = \"d\" } }, scheme = \"https\" }\ndeny = 404",
            "path = \"/b\"\nmatch",
        ],
    ),
    (
        "@x {\n path /a/*\n path /b.txt\n}\nrespond @x 404\nfile_server",
        &["path = \"/a\"\ndeny = 404", "path = \"= /b.txt\"\ndeny = 404"],
    ),
    ("@x header_regexp A b\nredir @x /c", &["It has no route, so that others answer its requests"]),
    (
        "file_server {\n hide secret.txt\n}",
        &["# Closed: `hide secret.txt` hides files.", "deny = 403"],
    ),
    (
        "file_server browse {\n index a.html b.html\n}",
        &["index = [\"a.html\", \"b.html\"]\nlisting = true"],
    ),
    (
        "header /a/* X-A {host}\nheader +X-B \"{\\\"a\\\"}\"\nfile_server",
        &["path = \"/a\"\ntry = [\"files:.\"]\nheaders = { X-A = \"{host}\", X-B = '{{\"a\"}' }"],
    ),
    ("header X-A a b\nfile_server", &["Kirin cannot set X-A so"]),
    (
        "encode gzip\nrequest_body {\n max_size 10MiB\n}\nreverse_proxy a:1",
        &["compress = [\"gzip\"]\nbody_limit = \"10MB\""],
    ),
    (
        "uri strip_prefix /api\nreverse_proxy a:1",
        &[
            "path = \"/api\"\ntry = [\"proxy:a-1\"]\nrewrite = \"/\"",
            "path = \"/\"\ntry = [\"proxy:a-1\"]\n",
        ],
    ),
    ("handle /a/* {\n rewrite * /b{uri}\n reverse_proxy a:1\n}", &["rewrite = \"/b/a\""]),
    (
        "log {\n output file /v/a.log\n format console\n}\nfile_server",
        &["access_log = \"/v/a.log\""],
    ),
    (
        "handle_errors {\n rewrite * /e.html\n file_server\n}\nfile_server",
        &["error_pages = { 4xx = \"/e.html\", 5xx = \"/e.html\" }"],
    ),
    ("respond \"Hello\"", &["# Closed: Caddy answered with a text.", "docs/lua.md"]),
    ("abort", &["deny = 403"]),
    (
        "route {\n basic_auth {\n  bob $2a$x\n }\n redir /a /b\n}",
        &[
            "# Closed: a redirect of Kirin asks for no password.\n[[route]]\npath = \"= /a\"\ndeny = 403",
        ],
    ),
    (
        "templates\nnew_thing\nfile_server",
        &["- templates: Kirin has directives of SSI", "- new_thing: not known here"],
    ),
];

#[test]
fn a_directive_becomes_routes() {
    for (directives, parts) in DIRECTIVES {
        check_parts(import, &format!(":80 {{\n{directives}\n}}\n"), parts);
    }
}

/// Complete files, with parts of the `kirin.toml` or of the notes.
const FILES: &[(&str, &[&str])] = &[
    (
        "{\n email a@b.example\n servers {\n  trusted_proxies static private_ranges\n  timeouts {\n   \
         idle 2m\n  }\n }\n}\nexample.com {\n file_server\n}",
        &[
            "acme = { domains = [\"example.com\"], email = \"a@b.example\" }",
            "trusted = [\"192.168.0.0/16\",",
            "keep_alive = \"2m\"",
        ],
    ),
    (
        "example.com {\n tls a.pem a.key\n file_server\n}",
        &["certificates = [{ chain = \"a.pem\", key = \"a.key\" }]"],
    ),
    (
        "localhost {\n file_server\n}",
        &["chain = \"localhost.pem\"", "Kirin has no authority of its own"],
    ),
    (
        "*.example.com {\n file_server\n}",
        &["chain = \"example-com.pem\"", "hosts = [\"*.example.com\"]"],
    ),
    (
        "example.com {\n file_server\n}\nhttp://example.com {\n redir https://example.com{uri}\n}",
        &[
            "path = \"/\"\ntry = [\"files:.\"]",
            "match = { scheme = \"http\" }\nredirect = \
           \"https://example.com/\"",
        ],
    ),
    (
        "a.example {\n file_server\n}\nhttp://b.example {\n file_server\n}",
        &[
            "match = { scheme = \"http\" }\nredirect = \"https://{host}{path}\"",
            "address = \"*:80\"\n",
        ],
    ),
    (
        "example.com {\n file_server\n}\nlocalhost:9000 {\n bind 127.0.0.1\n file_server\n}",
        &["- localhost:9000: every listener of Kirin serves all sites"],
    ),
    ("{\n default_bind 127.0.0.1\n}\n:80 {\n file_server\n}", &["address = \"127.0.0.1:80\""]),
    (
        "*.example.com {\n tls a.pem a.key\n @a host a.example.com\n handle @a {\n  reverse_proxy a:1\n \
         }\n handle {\n  respond 404\n }\n}",
        &[
            "hosts = [\"a.example.com\"]\n\n# f:5\n[[site.route]]\npath = \"/\"\ntry = [\"proxy:a-1\"]",
            "hosts = [\"*.example.com\"]\n\n# f:8\n[[site.route]]\npath = \"/\"\ndeny = 404",
        ],
    ),
    (
        "example.com {\n tls {\n  client_auth {\n   mode require\n   trusted_ca_cert_file ca.pem\n  }\n \
         }\n file_server\n}",
        &["client_ca = \"ca.pem\""],
    ),
    (
        "a.example {\n tls {\n  client_auth {\n   mode require\n   trusted_ca_cert_file ca.pem\n  }\n \
         }\n file_server\n}\nb.example {\n file_server\n}",
        &["# Closed: the site asked clients for certificates.", "PROTECTION NOT CARRIED OVER"],
    ),
    (
        "{$HOST} {\n header X-A {$A:b}\n file_server\n}",
        &["hosts = [\"${HOST}\"]", "headers = { X-A = \"${A:-b}\" }"],
    ),
    (":80 {\n header X-A ${b}\n file_server\n}", &["Kirin cannot set X-A so"]),
    (
        "(a) {\n header X-A {args[0]}\n}\n:80 {\n import a b\n file_server\n}",
        &["headers = { X-A = \"b\" }"],
    ),
];

#[test]
fn a_file_becomes_listeners_and_sites() {
    for (text, parts) in FILES {
        check_parts(import, text, parts);
    }
}

#[test]
fn a_site_of_an_inner_address_is_not_served_to_all() {
    let text =
        "example.com {\n respond 404\n}\n:9000 {\n bind 127.0.0.1\n reverse_proxy inner:1\n}";
    let config = imported(import, text).config();
    assert!(!config.contains("inner") && !config.contains("9000"), "{config}");
}

#[test]
fn errors_name_file_and_line() {
    for (text, expected) in [
        (":80 {\n file_server\n", "f:2: a `{` without its `}`"),
        ("a {\n}\nb\n", "f:3: a block `{ … }` must be behind the addresses of a site"),
        (":80\nimport none", "f:2: `none` is neither a snippet nor a file"),
        (
            "(a) {\n import a\n}\n:80\nimport a",
            "f:2: `a` imports itself, or there are too many imports",
        ),
        (":80\nrespond \"a", "f:2: a `\"` without the one that closes it"),
    ] {
        let error = import("f", &MemoryFiles::new(&[("f", text)])).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

#[test]
fn imports_of_files_are_beside_the_file() {
    let files = MemoryFiles::new(&[
        ("/e/Caddyfile", "import sites/*.caddy"),
        ("/e/sites/a.caddy", "a.example {\n respond 404\n}"),
        ("/e/sites/b.caddy", "b.example {\n respond 403\n}"),
    ]);
    let config = import("/e/Caddyfile", &files).expect("import").config();
    assert!(
        config.contains("# /e/sites/b.caddy:2\n[[site.route]]\npath = \"/\"\ndeny = 403"),
        "{config}"
    );
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(text in "\\PC*") {
        let _ = import("f", &MemoryFiles::new(&[("f", &text)]));
    }

    #[test]
    fn no_directive_causes_a_panic(
        lines in prop::collection::vec(("(@a|redir|reverse_proxy|handle_path|rewrite|uri|header|respond|\
            import|file_server|basic_auth|try_files|log|tls|root)", "[@a-c/*{}$:.\" é]{0,16}"), 0..10),
    ) {
        let lines: Vec<_> = lines.iter().map(|(name, rest)| format!("{name} {rest}")).collect();
        let text = format!("a.example {{\n{}\n}}", lines.join("\n"));
        let _ = import("f", &MemoryFiles::new(&[("f", &text)]));
    }
}
