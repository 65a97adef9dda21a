//! `listen`, `server_name`, and which server answers for which hosts.

use super::check_rows;

#[test]
fn servers_are_written() {
    check_rows(&[
        (
            "server { listen 80; return 404; }",
            r#"[[site.route]]
path = "/"
deny = 404"#,
        ),
        (
            "server { listen 127.0.0.1:8080; return 404; }",
            r#"[[listener]]
address = "127.0.0.1:8080"
[[site.route]]
path = "/"
deny = 404"#,
        ),
        (
            "server { listen [::]:80; listen 80; return 404; }",
            r#"[[listener]]
address = "[::]:80"
[[site.route]]
path = "/"
deny = 404"#,
        ),
        (
            "server { listen unix:/run/web.sock; return 404; }",
            r#"[[listener]]
address = "unix:/run/web.sock"
[[site.route]]
path = "/"
deny = 404"#,
        ),
        (
            "server { server_name example.org www.example.org; root /w; }",
            r#"[[site]]
hosts = ["example.org", "www.example.org"]
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { server_name *.example.org; root /w; }",
            r#"[[site]]
hosts = ["*.example.org"]
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { server_name .example.org; root /w; }",
            r#"[[site]]
hosts = ["example.org", "*.example.org"]
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { server_name example.*; root /w; }",
            r#"[[site]]
hosts = ["example.*"]
name = "example"
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            r"server { server_name ~^www\d+\.example\.org$; root /w; }",
            r#"[[site]]
hosts = ['~^www\d+\.example\.org$']
name = "www-d-example-org"
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { listen 80 default_server; server_name example.org; root /w; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { server_name _; root /w; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { server_name a.example; root /a; } server { server_name b.example; root /b; }",
            r#"[[site]]
hosts = ["a.example"]
[[site.route]]
path = "/"
try = ["files:/a"]
[[site]]
hosts = ["b.example"]
[[site.route]]
path = "/"
try = ["files:/b"]"#,
        ),
        (
            "server { server_name a.example; root /a; } server { return 444; }",
            r#"[[site]]
hosts = ["a.example"]
[[site.route]]
path = "/"
try = ["files:/a"]"#,
        ),
        (
            "server { listen 80; server_name a.example; root /a; } server { listen 8080; server_name a.example; root /b; }",
            r#"[[listener]]
address = "*:8080"
[[site]]
hosts = ["a.example"]
[[site.route]]
path = "/"
try = ["files:/a"]"#,
        ),
        (
            "server { server_name a.example b.example; root /w; if ($host = b.example) { return 301 http://a.example$request_uri; } }",
            r#"[[site]]
hosts = ["a.example"]
[[site.route]]
path = "/"
try = ["files:/w"]
[[site]]
hosts = ["b.example"]
[[site.route]]
path = "/"
redirect = "http://a.example/"
redirect_status = 301"#,
        ),
        (
            "server { listen 80; server_name a.example; root /a; } server { listen 127.0.0.1:8080; server_name b.example; root /b; }",
            r#"[[listener]]
address = "127.0.0.1:8080"
[[site]]
hosts = ["a.example"]
[[site.route]]
path = "/"
try = ["files:/a"]
[[site]]
hosts = ["b.example"]
[[site.route]]
path = "/"
try = ["files:/b"]
allow = ["127.0.0.0/8", "::1"]"#,
        ),
        (
            "server { listen 80; server_name a.example; root /a; } server { listen 10.0.0.1:80; server_name b.example; root /b; }",
            r#"[[listener]]
address = "10.0.0.1:80"
[[site]]
hosts = ["a.example"]
[[site.route]]
path = "/"
try = ["files:/a"]
[[site]]
hosts = ["b.example"]
[[site.route]]
path = "/"
deny = 403"#,
        ),
        (
            "server { listen 80; server_name a.example; location /x { root /p; } } server { listen 443 ssl; server_name a.example; ssl_certificate c; ssl_certificate_key k; root /t; }",
            r#"[[listener]]
address = "*:443"
[listener.tls]
certificates = [{ chain = "c", key = "k" }]
[[site]]
hosts = ["a.example"]
[[site.route]]
path = "/"
match = { scheme = "https" }
try = ["files:/t"]
[[site.route]]
path = "/x"
match = { scheme = "http" }
try = ["files:/p"]"#,
        ),
    ]);
}
