//! Sizes, times, proxies in front, logs and the process.

use super::check_rows;

#[test]
fn connections_are_written() {
    check_rows(&[
        (
            "server { root /w; client_max_body_size 10m; location /p { proxy_pass http://a:1; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/p"
try = ["proxy:a"]
body_limit = "10MB""#,
        ),
        (
            "server { client_max_body_size 0; location /p { proxy_pass http://a:1; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
[[site.route]]
path = "/p"
try = ["proxy:a"]"#,
        ),
        (
            "server { root /w; client_header_timeout 60s; client_body_timeout 30s; send_timeout 2m; keepalive_timeout 75s; }",
            r#"[[listener]]
address = "*:80"
keep_alive = "75s"
head_timeout = "60s"
body_timeout = "30s"
write_timeout = "2m"
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; large_client_header_buffers 4 8k; }",
            r#"[[listener]]
address = "*:80"
head_limit = "32KB"
request_line_limit = "8KB"
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; set_real_ip_from 10.0.0.0/8; real_ip_header X-Forwarded-For; real_ip_recursive on; }",
            r#"[[listener]]
address = "*:80"
trusted = ["10.0.0.0/8"]
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; set_real_ip_from 10.0.0.0/8; real_ip_header X-Real-IP; }",
            r#"[[listener]]
address = "*:80"
trusted = ["10.0.0.0/8"]
forwarded = "X-Real-IP"
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; listen 80 proxy_protocol; set_real_ip_from 10.0.0.1; real_ip_header proxy_protocol; }",
            r#"[[listener]]
address = "*:80"
proxy_protocol = true
trusted = ["10.0.0.1"]
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; access_log /var/log/nginx/access.log; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
access_log = "/var/log/kirin/access.log""#,
        ),
        (
            "access_log /var/log/nginx/access.log; server { root /w; location /a { access_log off; } }",
            r#"[[listener]]
address = "*:80"
access_log = "/var/log/kirin/access.log"
[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
try = ["files:/w"]
access_log = false"#,
        ),
        (
            r#"log_format main '$remote_addr "$request" $status 5%'; server { root /w; access_log a.log main; }"#,
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
access_log = { format = '%h "%r" %s 5%%', path = "a.log" }"#,
        ),
        (
            r#"log_format j escape=json '{"a":"$uri"}'; server { root /w; access_log a.log j; }"#,
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
access_log = { format = "json", path = "a.log" }"#,
        ),
        (
            "map $status $error { ~^[23] 0; default 1; } server { root /w; access_log a.log combined if=$error; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
access_log = { path = "a.log", status = ["1xx", "4xx", "5xx"] }"#,
        ),
        (
            "server { root /w; access_log syslog:server=10.0.0.9:514; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
access_log = "syslog:10.0.0.9:514""#,
        ),
        (
            "server { root /w; location /s { stub_status; allow 127.0.0.1; deny all; } }",
            r#"metrics = "127.0.0.1:9145"
[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/s"
try = ["status"]
allow = ["127.0.0.1"]"#,
        ),
        (
            "server { root /w; location /s { stub_status; } }",
            r#"metrics = "127.0.0.1:9145"
[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/s"
deny = 403"#,
        ),
        (
            "user www-data; worker_processes 4; events { worker_connections 4096; } http { server { root /w;  } }",
            r#"user = "www-data"
threads = 4
connections = 4096
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
    ]);
}
