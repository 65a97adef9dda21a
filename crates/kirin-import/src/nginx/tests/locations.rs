//! `location`, `if` and what locations that keep visitors out become.

use super::check_rows;

#[test]
fn locations_are_written() {
    check_rows(&[
        (
            "server { root /w; location /docs/ { root /d; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/docs"
try = ["files:/d"]"#,
        ),
        (
            "server { root /w; location = /favicon.ico { root /d; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "= /favicon.ico"
try = ["files:/d"]"#,
        ),
        (
            "server { root /w; location ^~ /docs/ { root /d; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/docs"
try = ["files:/d"]"#,
        ),
        (
            r"server { root /w; location ~ \.pdf$ { root /d; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "*.pdf"
try = ["files:/d"]"#,
        ),
        (
            r"server { root /w; location ~* \.(jpg|png)$ { root /d; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "*.jpg"
try = ["files:/d"]
[[site.route]]
path = "*.png"
try = ["files:/d"]"#,
        ),
        (
            "server { root /w; location ~ ^/users/(?<id>[^/]+)/photo { proxy_pass http://a:1/p/$id; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/users/{id}/photo"
try = ["proxy:a"]
rewrite = "/p/{id}"
body_limit = "1MB""#,
        ),
        (
            "server { root /w; location / { try_files $uri @web; } location @web { proxy_pass http://a:1; } }",
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
            "server { root /w; location /x/ { try_files $uri =404; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/x"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; location / { try_files $uri $uri/ /index.html; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
fallback = "index.html""#,
        ),
        (
            r"server { root /w; location / { try_files $uri $uri/ /index.php?$args; } location ~ \.php$ { fastcgi_pass unix:/run/php.sock; } }",
            r#"[[upstream]]
name = "php"
servers = ["fastcgi://unix:/run/php.sock"]
root = "/w"
path_info = false
[[site.route]]
path = "/"
try = ["files:/w", "proxy:php"]
body_limit = "1MB""#,
        ),
        (
            r"server { root /w; index index.php; location ~ \.php$ { fastcgi_pass unix:/run/php.sock; } }",
            r#"[[upstream]]
name = "php"
servers = ["fastcgi://unix:/run/php.sock"]
root = "/w"
path_info = false
[[site.route]]
path = "/"
try = ["files:/w", "proxy:php"]
body_limit = "1MB"
index = []"#,
        ),
        (
            "server { root /w; location /inner/ { rewrite ^/inner/(.*)$ /deep/$1 break; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/inner"
try = ["files:/w"]
rewrite = "/deep""#,
        ),
        (
            "server { root /w; error_page 404 /e/404.html; location /e/ { internal; } }",
            r#"error_pages = { 404 = "/e/404.html" }
[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/e"
try = ["files:/w"]
deny = 404"#,
        ),
        (
            "server { root /w; location /protected/ { internal; alias /srv/files/; } location / { proxy_pass http://a:1; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
accel_redirect = { "/protected" = "/srv/files" }
[[site.route]]
path = "/protected"
try = ["files:/srv/files"]
rewrite = "/"
deny = 404
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            "server { root /w; location /r { limit_except GET { deny all; } proxy_pass http://a:1; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/r"
match = { methods = ["GET"] }
try = ["proxy:a"]
body_limit = "1MB"
[[site.route]]
path = "/r"
deny = 403"#,
        ),
        (
            "server { root /w; location /b { if ($http_x_beta = 1) { proxy_pass http://b:1; } proxy_pass http://a:1; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
[[upstream]]
name = "b"
servers = ["b:1"]
host = "upstream"
body_limit = "1MB"
[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/b"
match = { headers = { X-Beta = "1" } }
try = ["proxy:b"]
[[site.route]]
path = "/b"
try = ["proxy:a"]"#,
        ),
        (
            "server { root /w; location /b { if ($cookie_beta) { return 302 /beta; } } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/b"
match = { cookies = { beta = "*" } }
redirect = "/beta"
redirect_status = 302
[[site.route]]
path = "/b"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; location /b { if ($arg_beta = 1) { return 302 /beta; } } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/b"
match = { query = { beta = "1" } }
redirect = "/beta"
redirect_status = 302
[[site.route]]
path = "/b"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; if ($scheme = http) { return 301 https://$host$request_uri; } }",
            r#"[[site.route]]
path = "/"
match = { scheme = "http" }
redirect = "https://{host}/"
redirect_status = 301
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; location /b { if ($request_method !~ ^(GET|HEAD)$) { return 405; } } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/b"
match = { not = { methods = ["GET", "HEAD"] } }
deny = 403
[[site.route]]
path = "/b"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; location /h { valid_referers example.org; if ($invalid_referer) { return 403; } } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/h"
match = { headers = { Referer = "https://example.org/*" } }
try = ["files:/w"]
[[site.route]]
path = "/h"
match = { headers = { Referer = "http://example.org/*" } }
try = ["files:/w"]
[[site.route]]
path = "/h"
deny = 403"#,
        ),
        (
            "server { root /w; if (-f /srv/maintenance) { return 503; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "server { root /w; location /d { } location /d/ { root /e; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/d"
try = ["files:/e"]"#,
        ),
        (
            "server { root /w; location /a/ { location /a/b/ { root /b; } } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/a"
try = ["files:/w"]
[[site.route]]
path = "/a/b"
try = ["files:/b"]"#,
        ),
        (
            r"server { root /w; location ~ /\. { deny all; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            r"server { root /w; location ~ /\.ht { deny all; } location / { proxy_pass http://a:1; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
[[site.route]]
path = "/.htaccess"
deny = 403
[[site.route]]
path = "/.htpasswd"
deny = 403
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            r"server { root /w; location ~ \.sql$ { deny all; } location /data/ { root /d; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "*.sql"
deny = 403
[[site.route]]
path = "/data/*.sql"
deny = 403
[[site.route]]
path = "/data"
try = ["files:/d"]"#,
        ),
        (
            "server { root /w; location ~ ^/(?:config|lib)(?:$|/) { return 404; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/config"
deny = 404
[[site.route]]
path = "/lib"
deny = 404"#,
        ),
        (
            "server { root /w; location ~ (?=x)y { deny all; } }",
            r#"[[site.route]]
path = "/"
deny = 403"#,
        ),
        (
            "server { root /w; location ~ ^/data/(?=x)y { deny all; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/data"
deny = 403"#,
        ),
        (
            "server { root /w; location ~ (?=x)y { root /d; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
        (
            "geo $inside { default 0; 10.0.0.0/8 1; } server { root /w; location /b { if ($inside = 0) { return 403; } } }",
            r#"[[site.route]]
path = "/"
try = ["files:/w"]
[[site.route]]
path = "/b"
match = { not = { clients = ["10.0.0.0/8"] } }
deny = 403
[[site.route]]
path = "/b"
try = ["files:/w"]"#,
        ),
        (
            "map $http_user_agent $bot { default 0; ~bot 1; } server { root /w; if ($bot) { return 403; } }",
            r#"[[site.route]]
path = "/"
match = { headers = { User-Agent = "*bot*" } }
deny = 403
[[site.route]]
path = "/"
try = ["files:/w"]"#,
        ),
    ]);
}
