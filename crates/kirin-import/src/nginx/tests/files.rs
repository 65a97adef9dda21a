//! `root`, `alias`, and the fields of files.

use super::check_rows;

#[test]
fn files_are_written() {
    check_rows(&[
        (
            "server { root /w;  }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; location /assets/ { alias /srv/shared/; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/assets"
try = ["files:/srv/shared"]
rewrite = "/""#,
        ),
        (
            "server { root /w; location = /logo.png { alias /srv/l.png; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "= /logo.png"
try = ["files:/srv"]
rewrite = "/l.png""#,
        ),
        (
            "server { root /w; index index.html index.htm; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
index = ["index.html", "index.htm"]"#,
        ),
        (
            "server { root /w; autoindex on; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
listing = true"#,
        ),
        (
            "server { root /w; error_page 404 /errors/404.html; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
error_pages = { 404 = "/errors/404.html" }"#,
        ),
        (
            "server { root /w; error_page 500 502 503 504 /50x.html; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
error_pages = { 5xx = "/50x.html" }"#,
        ),
        (
            "server { root /w; error_page 404 = @web; location @web { proxy_pass http://a:1; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
[[site.route]]
path = "/"
try = ["files:/w", "proxy:a"]
body_limit = "1MB""#,
        ),
        (
            "server { root /w; add_header X-Frame-Options DENY always; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
headers = { X-Frame-Options = "DENY" }"#,
        ),
        (
            "server { root /w; add_header A 1; location /b { add_header B 2; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
headers = { A = "1" }
[[site.route]]
path = "/b"
try = ["files:/w"]
headers = { B = "2" }"#,
        ),
        (
            "server { root /w; expires 1h; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
headers = { Cache-Control = "max-age=3600" }"#,
        ),
        (
            "server { root /w; expires -1; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
headers = { Cache-Control = "no-cache" }"#,
        ),
        (
            "server { root /w; location /a/ { expires 1y; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
try = ["files:/w"]
immutable = true"#,
        ),
        (
            "server { root /w; types { text/html webc; } default_type text/plain; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
mime_types = { "*" = "text/plain", webc = "text/html" }"#,
        ),
        (
            "server { root /w; charset utf-8; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; charset off; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
charset = """#,
        ),
        (
            "server { root /w; gzip on; location /p { proxy_pass http://a:1; } }",
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
body_limit = "1MB"
compress = true"#,
        ),
        (
            "server { root /w; gzip off; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
compress = false"#,
        ),
        (
            "server { root /w; gzip_static on; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; gzip_static off; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
precompressed = false"#,
        ),
        (
            "server { root /w; disable_symlinks if_not_owner; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
follow_links = "owner""#,
        ),
        (
            "server { root /w; disable_symlinks off; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
follow_links = true"#,
        ),
        (
            "server { root /w; ssi on; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
ssi = true"#,
        ),
        (
            r#"server { root /w; add_header Link "<$scheme://$host$uri>"; add_header A $arg_q; add_header B $http_x_b; add_header C $cookie_c; add_header D $remote_addr; }"#,
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
headers = { A = "{query.q}", B = "{header.X-B}", C = "{cookie.c}", D = "{client}", Link = "<{scheme}://{host}{path}>" }"#,
        ),
        (
            "server { root /w; root /srv/$host/public; }",
            r#"[[site.route]]
path = "/"
try = ["files:/srv"]
rewrite = "/{host}/public{path}""#,
        ),
        (
            "server { root /w; location /sites/ { try_files /$host/a.txt =404; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "= /sites/"
try = ["files:/w"]
rewrite = "/{host}/a.txt"
[[site.route]]
path = "/sites"
try = ["files:/w"]
rewrite = "/{host}/a.txt""#,
        ),
        (
            "server { root /w; sub_filter a b; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "open_file_cache max=50000; open_file_cache_valid 5s; server { root /w;  }",
            r#"[[listener]]
address = "*:80"
[open_file_cache]
paths = 50000
validity = "5s"
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
    ]);
}
