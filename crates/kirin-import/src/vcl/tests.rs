//! Configurations of Varnish's documentation, and what becomes a `kirin.toml`.

use proptest::prelude::*;

use super::import;
use crate::testing::{MemoryFiles, check, check_parts, imported};

#[test]
fn the_shipped_default_vcl_is_a_cache_before_a_server() {
    check(
        import,
        r#"#
# This is an example VCL file for Varnish.
# Marker to tell the VCL compiler that this VCL has been written with the
# 4.0 or 4.1 syntax.
vcl 4.1;

# Default backend definition. Set this to point to your content server.
backend default {
    .host = "127.0.0.1";
    .port = "8080";
}

sub vcl_recv {
    # Happens before we check if we have this in cache already.
}

sub vcl_backend_response {
    # Happens after we have read the response headers from the backend.
}

sub vcl_deliver {
    # Happens when we have all the pieces we need.
}
"#,
        r#"
# Write the address that `varnishd -a` had.
[[listener]]
address = "*:80"

# f:8
[[upstream]]
name = "default"
servers = ["127.0.0.1:8080"]

# f:1
[[route]]
path = "/"
try = ["proxy:default"]
cache = true
"#,
        "
5 = vcl 4.1
8 + backend default
9 + .host = \"127.0.0.1\";
10 + .port = \"8080\";
",
    );
}

/// What is beside a default backend, with parts of the `kirin.toml` or of the notes.
const PARTS: &[(&str, &[&str])] = &[
    (
        "probe p { .url = \"/h\"; .interval = 5s; .window = 5; .threshold = 3; }\n\
         backend b { .host = \"b\"; .port = \"81\"; .probe = p; .max_connections = 10; \
         .first_byte_timeout = 30s; }\nsub vcl_recv { set req.backend_hint = b; }",
        &[
            "name = \"b\"\nservers = [\"b:81\"]\nmax_in_flight = 10\nfirst_byte_timeout = \"30s\"\n\
           health = { healthy_after = 3, interval = \"5s\", path = \"/h\" }",
            "path = \"/\"\ntry = [\"proxy:b\"]",
        ],
    ),
    (
        "import directors;\nbackend c { .host = \"c\"; }\nsub vcl_init { new d = directors.round_robin(); \
         d.add_backend(default); d.add_backend(c); }\nsub vcl_recv { set req.backend_hint = d.backend(); }",
        &["name = \"d\"\nservers = [\"127.0.0.1:8080\", \"c:80\"]", "try = [\"proxy:d\"]"],
    ),
    (
        "backend c { .host = \"c\"; }\nsub vcl_init { new d = directors.hash(); d.add_backend(default, 1.0); \
         d.add_backend(c, 2.0); }\nsub vcl_recv { set req.backend_hint = d.backend(client.identity); }",
        &[
            "servers = [\"127.0.0.1:8080\", { address = \"c:80\", weight = 2 }]\nbalance = \"hash\"\n\
           hash_key = \"address\"",
        ],
    ),
    (
        "backend c { .host = \"c\"; }\nsub vcl_init { new d = directors.fallback(); d.add_backend(default); \
         d.add_backend(c); }\nsub vcl_recv { set req.backend_hint = d.backend(); }",
        &["{ address = \"c:80\", backup = true }"],
    ),
    (
        "backend api { .host = \"a\"; }\nsub vcl_recv { if (req.url ~ \"^/api/\") { \
         set req.backend_hint = api; } else { set req.backend_hint = default; } }",
        &[
            "path = \"/api\"\ntry = [\"proxy:api\"]\ncache = true",
            "path = \"/\"\ntry = [\"proxy:default\"]",
        ],
    ),
    (
        "backend api { .host = \"a\"; }\nsub vcl_recv { if (req.http.host ~ \"^(www\\.)?a\\.example$\") { \
         set req.backend_hint = api; } }",
        &["hosts = [\"www.a.example\", \"a.example\"]"],
    ),
    (
        "sub vcl_recv { if (req.url ~ \"^/admin/\") { return (pass); } }",
        &["path = \"/admin\"\ntry = [\"proxy:default\"]\n\n"],
    ),
    (
        "sub vcl_recv { if (req.url ~ \"^/admin\") { return (pass); } }",
        &["carried for whole segments"],
    ),
    (
        "sub vcl_recv { if (req.method != \"GET\" && req.method != \"HEAD\") { return (pass); } }",
        &["only GET and HEAD are answered by the cache"],
    ),
    (
        "sub vcl_recv { if (req.http.Cookie ~ \"(session|user)=\") { return (pass); } }",
        &["cache = { bypass = [\"cookie:session\", \"cookie:user\"] }"],
    ),
    (
        "sub vcl_recv { if (req.http.Authorization || req.http.X-Debug) { return (pass); } }",
        &["cache = { bypass = [\"header:X-Debug\"] }"],
    ),
    ("sub vcl_recv { unset req.http.Cookie; }", &["cache = { cookies = \"ignore\" }"]),
    (
        "sub vcl_recv { if (req.url ~ \"\\.(png|css)(\\?.*)?$\") { unset req.http.Cookie; return (hash); } }",
        &["path = \"*.png\"\ntry = [\"proxy:default\"]\ncache = { cookies = \"ignore\" }"],
    ),
    (
        "acl purge { \"localhost\"; \"10.0.0.0\"/8; }\nsub vcl_recv { if (req.method == \"PURGE\") { \
         if (!client.ip ~ purge) { return (synth(405, \"no\")); } return (purge); } }",
        &["[store]\npurge_from = [\"127.0.0.1\", \"::1\", \"10.0.0.0/8\"]"],
    ),
    (
        "acl in { \"10.0.0.0\"/8; }\nsub vcl_recv { if (req.url ~ \"^/admin/\" && client.ip !~ in) { \
         return (synth(403)); } }",
        &["path = \"/admin\"\nmatch = { not = { clients = [\"10.0.0.0/8\"] } }\ndeny = 403"],
    ),
    (
        "acl in { ! \"10.0.0.1\"; }\nsub vcl_recv { if (client.ip !~ in) { return (synth(403)); } }",
        &["path = \"/\"\ndeny = 403", "PROTECTION NOT CARRIED OVER"],
    ),
    (
        "sub vcl_recv { if (req.http.Authorization != \"Basic Zm9v\") { return (synth(401)); } }",
        &["match = { not = { headers = { Authorization = \"Basic Zm9v\" } } }\ndeny = 403"],
    ),
    (
        "sub vcl_recv { if (std.ip(req.http.X, \"::\") ~ a) { return (synth(403)); } }",
        &["path = \"/\"\ndeny = 403", "PROTECTION NOT CARRIED OVER"],
    ),
    (
        "acl in { \"::1\"; }\nsub vcl_recv { if (client.ip ~ in) { set req.http.X-In = \"1\"; } else { \
      return (synth(403)); } }",
        &[
            "match = { not = { clients = [\"::1\"] } }\ndeny = 403",
            "request_headers = { X-In = \"1\" }",
        ],
    ),
    (
        "sub vcl_recv { set req.http.host = regsub(req.http.host, \":[0-9]+\", \"\"); \
      set req.http.X-Forwarded-For = client.ip; unset req.http.proxy; return (hash); }",
        &["= set req.http.host", "= set req.http.X-Forwarded-For", "= unset req.http.proxy"],
    ),
    (
        "sub vcl_recv { set req.url = regsuball(req.url, \"&(utm_source|gclid)=([^&]+)\", \"\"); }",
        &["cache = { ignore_query = [\"utm_*\", \"gclid\"] }"],
    ),
    (
        "sub vcl_recv { set req.http.cookie = regsuball(req.http.cookie, \"_ga=[^;]+\", \"\"); }",
        &["Kirin does not change cookies"],
    ),
    (
        "sub vcl_hash { hash_data(req.url); hash_data(req.http.X-User); }",
        &["path = \"/\"\ntry = [\"proxy:default\"]\n\n", "PROTECTION NOT CARRIED OVER: the key"],
    ),
    (
        "sub vcl_backend_response { set beresp.ttl = 1h; set beresp.grace = 2d; set beresp.do_esi = true; \
      unset beresp.http.set-cookie; set beresp.http.X-A = \"b\"; }",
        &[
            "cache = { cookies = \"ignore\", stale_if_error = \"2d\", ttl = \"1h\" }",
            "esi = true",
            "headers = { X-A = \"b\" }",
        ],
    ),
    (
        "sub vcl_backend_response { if (bereq.url ~ \"^/img/\") { set beresp.ttl = 1w; } }",
        &["path = \"/img\"\ntry = [\"proxy:default\"]\ncache = { ttl = \"7d\" }"],
    ),
    (
        "sub vcl_deliver { unset resp.http.X-Powered-By; set resp.http.X-Cache = \"HIT\"; \
      set resp.http.X-B = \"{c}\"; }",
        &["headers = { X-B = \"{{c}\", X-Powered-By = \"\" }", "= set resp.http.X-Cache"],
    ),
    (
        "sub vcl_synth { set resp.http.Location = \"/\"; }",
        &["- set resp.http.Location = \"/\";: it is in vcl_synth"],
    ),
    ("sub vcl_recv { std.mystery(req.url); }", &["- std.mystery(req.url);"]),
];

#[test]
fn statements_become_keys_of_routes() {
    for (text, parts) in PARTS {
        let text = format!(
            "vcl 4.1;\nbackend default {{ .host = \"127.0.0.1\"; .port = \"8080\"; }}\n{text}\n"
        );
        check_parts(import, &text, parts);
    }
}

#[test]
fn a_configuration_without_a_backend_is_closed() {
    let config = imported(import, "vcl 4.1;\nbackend default none;\n").config();
    assert!(config.contains("deny = 403"), "{config}");
}

#[test]
fn errors_name_file_and_line() {
    for (text, expected) in [
        ("sub vcl_recv {\n", "f:1: a `{` without its `}`"),
        ("sub vcl_recv {\n if req.url { }\n}", "f:2: a `(` is missing"),
        ("\nbackend a { .host = \"b }", "f:2: a string without the quote that closes it"),
        ("include \"f\";", "f:1: `f` includes itself, or too many files do"),
        ("sub a { set b = c }", "f:1: a `;` is missing before `}`"),
    ] {
        let error = import("f", &MemoryFiles::new(&[("f", text)])).expect_err(text);
        assert_eq!(error.to_string(), expected, "{text}");
    }
}

proptest! {
    #[test]
    fn no_text_causes_a_panic(text in "\\PC*") {
        let _ = import("f", &MemoryFiles::new(&[("f", &text)]));
    }

    #[test]
    fn no_subroutine_causes_a_panic(
        words in prop::collection::vec(prop::sample::select(vec![
            "if (", ")", "{", "}", ";", "req.url", "~", "\"^/a\"", "==", "&&", "||", "!", "return (",
            "pass", "synth(", "403", "set", "req.http.A", "=", "else", "client.ip", "unset", "é",
        ]), 0..24),
    ) {
        let text = format!("sub vcl_recv {{ {} }}", words.join(" "));
        let _ = import("f", &MemoryFiles::new(&[("f", &text)]));
    }
}
