//! Certificates.

use super::check_rows;

#[test]
fn certificates_are_written() {
    check_rows(&[
        (
            "server { listen 443 ssl http2; ssl_certificate a.pem; ssl_certificate_key a.key; root /w;  }",
            r#"[[listener]]
address = "*:443"
[listener.tls]
certificates = [{ chain = "a.pem", key = "a.key" }]
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { listen 443 ssl http2; ssl_certificate a.pem; ssl_certificate_key a.key; root /w; ssl_protocols TLSv1.2; }",
            r#"[[listener]]
address = "*:443"
[listener.tls]
certificates = [{ chain = "a.pem", key = "a.key" }]
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { listen 443 ssl http2; ssl_certificate a.pem; ssl_certificate_key a.key; root /w; ssl_client_certificate ca.pem; ssl_verify_client on; }",
            r#"[[listener]]
address = "*:443"
[listener.tls]
certificates = [{ chain = "a.pem", key = "a.key" }]
client_ca = "ca.pem"
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { listen 443 ssl http2; ssl_certificate a.pem; ssl_certificate_key a.key; root /w; ssl_client_certificate ca.pem; ssl_verify_client optional; }",
            r#"[[listener]]
address = "*:443"
[listener.tls]
certificates = [{ chain = "a.pem", key = "a.key" }]
client_ca = "ca.pem"
client_verify = "optional"
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            r#"server { listen 443 ssl http2; ssl_certificate a.pem; ssl_certificate_key a.key; root /w; add_header Strict-Transport-Security "max-age=31536000; includeSubDomains"; }"#,
            r#"[[listener]]
address = "*:443"
[listener.tls]
certificates = [{ chain = "a.pem", key = "a.key" }]
hsts = "365d"
hsts_subdomains = true
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            r#"server { listen 443 ssl http2; ssl_certificate a.pem; ssl_certificate_key a.key; root /w; add_header Strict-Transport-Security "max-age=31536000; preload"; }"#,
            r#"[[listener]]
address = "*:443"
[listener.tls]
certificates = [{ chain = "a.pem", key = "a.key" }]
[[site.route]]
path = "/"
try = ["files:/w"]
headers = { Strict-Transport-Security = "max-age=31536000; preload" }"#,
        ),
        (
            "server { listen 443 ssl; server_name a.example; ssl_certificate a.pem; ssl_certificate_key a.key; root /w; ssl_client_certificate ca.pem; ssl_verify_client on; } server { listen 443 ssl; server_name b.example; ssl_certificate b.pem; ssl_certificate_key b.key; root /b; }",
            r#"[[listener]]
address = "*:443"
[listener.tls]
certificates = [{ chain = "a.pem", key = "a.key" }, { chain = "b.pem", key = "b.key" }]
[[site]]
hosts = ["a.example"]
[[site.route]]
path = "/"
deny = 403
[[site]]
hosts = ["b.example"]
[[site.route]]
path = "/"
try = ["files:/b"]"#,
        ),
    ]);
}
