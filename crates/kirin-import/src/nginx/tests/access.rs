//! Addresses, passwords and limits.

use super::check_rows;

#[test]
fn access_are_written() {
    check_rows(&[
        (
            "server { root /w; location /a { deny all; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
deny = 403"#,
        ),
        (
            "server { root /w; location /a { allow 10.1.2.3/8; deny all; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
try = ["files:/w"]
allow = ["10.0.0.0/8"]"#,
        ),
        (
            "server { root /w; location /a { deny 192.0.2.7; allow all; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
match = { clients = ["192.0.2.7"] }
deny = 403
[[site.route]]
path = "/a"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; location /a { allow 10.0.0.1; deny 10.0.0.0/8; allow all; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
match = { clients = ["10.0.0.0/8"], not = { clients = ["10.0.0.1"] } }
deny = 403
[[site.route]]
path = "/a"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; location /a { allow example.org; deny all; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
deny = 403"#,
        ),
        (
            r#"server { root /w; location /a { auth_basic "Members"; auth_basic_user_file members; } }"#,
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
try = ["files:/w"]
basic_auth = "members"
basic_auth_realm = "Members""#,
        ),
        (
            "server { root /w; auth_basic x; auth_basic_user_file m; location /a { auth_basic off; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
basic_auth = "m"
basic_auth_realm = "x"
[[site.route]]
path = "/a"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; location /a { auth_basic x; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
deny = 403"#,
        ),
        (
            "server { root /w; location /a { auth_request /auth; } location = /auth { internal; proxy_pass http://s:1/verify; } }",
            r#"[[upstream]]
name = "s"
servers = ["s:1"]
host = "upstream"
[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
try = ["files:/w"]
auth_request = { ask = "proxy:s", path = "/verify" }
[[site.route]]
path = "= /auth"
deny = 404"#,
        ),
        (
            "server { root /w; location /a { auth_request /auth; auth_request_set $u $upstream_http_remote_user; proxy_set_header Remote-User $u; proxy_pass http://a:1; } location = /auth { internal; proxy_pass http://s:1; } }",
            r#"[[upstream]]
name = "s"
servers = ["s:1"]
host = "upstream"
[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
try = ["proxy:a"]
auth_request = { ask = "proxy:s", fields = ["Remote-User"], path = "/auth" }
body_limit = "1MB"
[[site.route]]
path = "= /auth"
deny = 404"#,
        ),
        (
            "server { root /w; location /a { satisfy any; allow 10.0.0.0/8; deny all; auth_basic x; auth_basic_user_file m; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
match = { clients = ["10.0.0.0/8"] }
try = ["files:/w"]
[[site.route]]
path = "/a"
try = ["files:/w"]
basic_auth = "m"
basic_auth_realm = "x""#,
        ),
        (
            "server { root /w; location /a { satisfy all; allow 10.0.0.0/8; deny all; auth_basic x; auth_basic_user_file m; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
try = ["files:/w"]
allow = ["10.0.0.0/8"]
basic_auth = "m"
basic_auth_realm = "x""#,
        ),
        (
            "server { root /w; location /a { access_by_lua_block { return } } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
deny = 403"#,
        ),
        (
            "server { root /w; location /a { auth_jwt x; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
deny = 403"#,
        ),
        (
            "limit_req_zone $binary_remote_addr zone=a:10m rate=10r/s; server { root /w; limit_req zone=a burst=20 nodelay; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
rate_limit = [{ burst = 21, rate = "10/s" }]"#,
        ),
        (
            "limit_req_zone $binary_remote_addr zone=a:10m rate=10r/s; server { root /w; limit_req zone=a; limit_req_status 503; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
rate_limit = [{ burst = 1, rate = "10/s", status = 503 }]"#,
        ),
        (
            "limit_req_zone $binary_remote_addr zone=a:10m rate=10r/s; server { root /w; limit_req zone=a; limit_req_dry_run on; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
rate_limit = [{ burst = 1, dry_run = true, rate = "10/s" }]"#,
        ),
        (
            "limit_req_zone $http_x_key zone=a:10m rate=30r/m; server { root /w; limit_req zone=a; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
rate_limit = [{ burst = 1, key = "header:X-Key", rate = "30/m" }]"#,
        ),
        (
            "limit_conn_zone $binary_remote_addr zone=addr:10m; server { root /w; limit_conn addr 10; limit_conn_status 429; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
in_flight_limit = [{ max = 10, status = 429 }]"#,
        ),
        (
            "limit_conn_zone $server_name zone=per:10m; server { root /w; limit_conn per 200; limit_conn_dry_run on; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
in_flight_limit = [{ dry_run = true, key = "route", max = 200 }]"#,
        ),
    ]);
}
