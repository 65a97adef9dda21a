//! `proxy_cache`.

use super::check_rows;

#[test]
fn caches_are_written() {
    check_rows(&[
        (
            "proxy_cache_path /c keys_zone=a:10m max_size=1g ; server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_cache a;  } }",
            r#"[[listener]]
address = "*:80"
[store]
memory = "1GB"
[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
cache = true"#,
        ),
        (
            "proxy_cache_path /c keys_zone=a:10m max_size=1g ; server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_cache a; proxy_cache_valid 200 10m; } }",
            r#"[[listener]]
address = "*:80"
[store]
memory = "1GB"
[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
cache = { negative_ttl = "1s", ttl = "10m" }"#,
        ),
        (
            "proxy_cache_path /c keys_zone=a:10m max_size=1g ; server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_cache a; proxy_cache_valid 200 10m; proxy_cache_valid 404 1m; } }",
            r#"[[listener]]
address = "*:80"
[store]
memory = "1GB"
[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
cache = { negative_ttl = "60s", ttl = "10m" }"#,
        ),
        (
            "proxy_cache_path /c keys_zone=a:10m max_size=1g ; server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_cache a; proxy_cache_use_stale error timeout; } }",
            r#"[[listener]]
address = "*:80"
[store]
memory = "1GB"
[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
cache = { stale_if_error = "1h" }"#,
        ),
        (
            "proxy_cache_path /c keys_zone=a:10m max_size=1g ; server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_cache a; proxy_cache_use_stale updating; proxy_cache_background_update on; } }",
            r#"[[listener]]
address = "*:80"
[store]
memory = "1GB"
[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
cache = true"#,
        ),
        (
            "proxy_cache_path /c keys_zone=a:10m max_size=1g ; server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_cache a; proxy_cache_lock on; proxy_cache_lock_timeout 5s; } }",
            r#"[[listener]]
address = "*:80"
[store]
memory = "1GB"
[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
cache = { wait = "5s" }"#,
        ),
        (
            "proxy_cache_path /c keys_zone=a:10m max_size=1g ; server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_cache a; proxy_cache_bypass $cookie_admin; proxy_no_cache $cookie_admin; } }",
            r#"[[listener]]
address = "*:80"
[store]
memory = "1GB"
[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
cache = { bypass = ["cookie:admin"] }"#,
        ),
        (
            "proxy_cache_path /c keys_zone=a:10m max_size=1g ; server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_cache a; proxy_cache_bypass $skip; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            "proxy_cache_path /c keys_zone=a:10m max_size=1g ; server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_cache a; proxy_cache_key $scheme$host$request_uri; } }",
            r#"[[listener]]
address = "*:80"
[store]
memory = "1GB"
[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
cache = true"#,
        ),
        (
            "proxy_cache_path /c keys_zone=a:10m max_size=1g ; server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_cache a; proxy_cache_key $cookie_user$uri; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            "proxy_cache_path /c keys_zone=a:10m max_size=1g ; server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_cache a; proxy_ignore_headers Set-Cookie; } }",
            r#"[[listener]]
address = "*:80"
[store]
memory = "1GB"
[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
cache = { cookies = "ignore" }"#,
        ),
        (
            "proxy_cache_path /c keys_zone=a:10m max_size=1g ; server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_cache a; add_header X-Cache $upstream_cache_status; } }",
            r#"[[listener]]
address = "*:80"
[store]
memory = "1GB"
[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
cache = true"#,
        ),
    ]);
}
