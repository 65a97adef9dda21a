//! `return`, `rewrite` and maps of old addresses.

use super::check_rows;

#[test]
fn redirects_are_written() {
    check_rows(&[
        (
            "server { location = /old { return 301 /new; } }",
            r#"[[site.route]]
path = "= /old"
redirect = "/new"
redirect_status = 301"#,
        ),
        (
            "server { location /old/ { return 301 /new; } }",
            r#"[[site.route]]
path = "/old"
redirect = "/new"
redirect_status = 301"#,
        ),
        (
            "server { location /old/ { rewrite ^/old/(.*)$ /new/$1 permanent; } }",
            r#"[[site.route]]
path = "/old"
redirect = "/new"
redirect_status = 301"#,
        ),
        (
            "server { return 301 https://example.org$request_uri; }",
            r#"[[site.route]]
path = "/"
redirect = "https://example.org/"
redirect_status = 301"#,
        ),
        (
            "server { listen 80; server_name a.example; return 301 https://$host$request_uri; }",
            r#"[[listener]]
address = "*:80"
redirect_to_https = 443
[[route]]
path = "/"
deny = 404"#,
        ),
        (
            "server { rewrite ^/users/([^/]+)$ /u/$1 redirect; location / { return 404; } }",
            r#"[[site.route]]
path = "= /users/{s1}"
redirect = "/u/{s1}"
redirect_status = 302
[[site.route]]
path = "/"
deny = 404"#,
        ),
        (
            "server { location /x { return 403; } }",
            r#"[[site.route]]
path = "/x"
deny = 403"#,
        ),
        (
            "server { location /x { return 404; } }",
            r#"[[site.route]]
path = "/x"
deny = 404"#,
        ),
        (
            r#"server { location = /t { return 200 "text"; } }"#,
            r#"[[site.route]]
path = "= /t"
try = ["lua:answer-1.lua"]"#,
        ),
        (
            "server { location = /g { return 410; } }",
            r#"[[site.route]]
path = "= /g"
try = ["lua:answer-1.lua"]"#,
        ),
        (
            "server { location /x { return 444; } }",
            r#"[[site.route]]
path = "/x"
deny = 403"#,
        ),
        (
            "server { location /x { return 503; } }",
            r#"[[site.route]]
path = "/x"
try = ["lua:answer-1.lua"]"#,
        ),
        (
            "server { return 302 $scheme://www.$host$uri; }",
            r#"[[site.route]]
path = "/"
redirect = "{scheme}://www.{host}/"
redirect_status = 302"#,
        ),
        (
            "server { location /x { return 301 /y?z=1; } }",
            r#"[[site.route]]
path = "= /x"
deny = 403"#,
        ),
        (
            "server { location /a { return 301 https://b.example; } }",
            r#"[[site.route]]
path = "/a"
redirect = "https://b.example"
redirect_status = 301"#,
        ),
        (
            "map $request_uri $new { /a /one; /p?id=5 /five; ~^/blog/(?<rest>.*)$ /news/$rest; } server { if ($new) { return 301 $new; } root /w; }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
redirects = "redirects-1.tsv""#,
        ),
    ]);
}

#[test]
fn redirects_of_a_server_hold_for_paths_without_a_location() {
    let import = super::import_text(
        "map $uri $new { /a /b; } server { if ($new) { return 301 $new; } location /x { return 418 y; } }",
    );
    let config = import.config();
    assert!(config.contains("redirects = \"redirects-1.tsv\""), "{config}");
    assert!(config.contains("path = \"/\""), "{config}");
    let files: Vec<_> = import.files.iter().map(|file| (file.name.as_str(), &*file.text)).collect();
    assert_eq!(files[0], ("redirects-1.tsv", "/a\t/b\t301\n"));
    assert_eq!(files[1].0, "answer-2.lua");
}
