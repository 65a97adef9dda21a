//! Servers behind Kirin.

use super::check_rows;

#[test]
fn upstreams_are_written() {
    check_rows(&[
        (
            "server { location / { proxy_pass http://127.0.0.1:3000; } }",
            r#"[[upstream]]
name = "local-3000"
servers = ["127.0.0.1:3000"]
host = "upstream"
[[site.route]]
path = "/"
try = ["proxy:local-3000"]
body_limit = "1MB""#,
        ),
        (
            "server { location /v1/ { proxy_pass http://a:1/v2/; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
[[site.route]]
path = "/v1"
try = ["proxy:a"]
rewrite = "/v2"
body_limit = "1MB""#,
        ),
        (
            "server { location /shop/ { proxy_pass http://a:1/; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
[[site.route]]
path = "/shop"
try = ["proxy:a"]
rewrite = "/"
body_limit = "1MB""#,
        ),
        (
            "server { location / { proxy_pass http://$name; } }",
            r#"[[site.route]]
path = "/"
deny = 403"#,
        ),
        (
            "server { set $name a:1; location / { proxy_pass http://$name; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            "server { location / { proxy_pass https://b.example; } }",
            r#"[[upstream]]
name = "b"
servers = ["https://b.example:443"]
host = "upstream"
tls = { verify = false }
[[site.route]]
path = "/"
try = ["proxy:b"]
body_limit = "1MB""#,
        ),
        (
            "server { location / { proxy_pass https://b.example; proxy_ssl_verify on; proxy_ssl_trusted_certificate ca.pem; proxy_ssl_name n.example; proxy_ssl_certificate c.pem; proxy_ssl_certificate_key c.key; } }",
            r#"[[upstream]]
name = "b"
servers = ["https://b.example:443"]
host = "upstream"
tls = { ca = "ca.pem", certificate = { chain = "c.pem", key = "c.key" }, server_name = "n.example" }
[[site.route]]
path = "/"
try = ["proxy:b"]
body_limit = "1MB""#,
        ),
        (
            "server { location / { proxy_pass http://a:1; proxy_set_header Host $host;  } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            r#"server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Real-IP $remote_addr; proxy_set_header Connection ""; proxy_set_header Upgrade $http_upgrade; proxy_http_version 1.1; } }"#,
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
request_headers = { X-Real-IP = "{client}" }"#,
        ),
        (
            "server { location / { proxy_pass http://a:1; proxy_set_header Host backend.example; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "backend.example"
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            r#"server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_set_header Accept-Encoding ""; } }"#,
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            "server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_hide_header X-Powered-By; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
headers = { X-Powered-By = "" }"#,
        ),
        (
            "server { location / { grpc_pass grpc://127.0.0.1:50051; } }",
            r#"[[upstream]]
name = "local-50051"
servers = ["h2c://127.0.0.1:50051"]
host = "upstream"
[[site.route]]
path = "/"
try = ["proxy:local-50051"]
body_limit = "1MB""#,
        ),
        (
            "server { location / { grpc_pass grpcs://g.example; grpc_ssl_verify on; } }",
            r#"[[upstream]]
name = "g"
servers = ["https://g.example:443"]
host = "upstream"
[[site.route]]
path = "/"
try = ["proxy:g"]
body_limit = "1MB""#,
        ),
        (
            "upstream u { server 10.0.0.2:80 weight=3 max_conns=8; server 10.0.0.3 backup; server 10.0.0.4 down; } server { location / { proxy_pass http://u; proxy_set_header Host $host; } }",
            r#"[[upstream]]
name = "u"
servers = [{ address = "10.0.0.2:80", max_in_flight = 8, weight = 3 }, { address = "10.0.0.3:80", backup = true }]
[[site.route]]
path = "/"
try = ["proxy:u"]
body_limit = "1MB""#,
        ),
        (
            "upstream u { server a:1 max_fails=3 fail_timeout=10s slow_start=30s; } server { location / { proxy_pass http://u; proxy_set_header Host $host; } }",
            r#"[[upstream]]
name = "u"
servers = ["a:1"]
max_failures = 3
ejection_time = "10s"
slow_start = "30s"
[[site.route]]
path = "/"
try = ["proxy:u"]
body_limit = "1MB""#,
        ),
        (
            "upstream u { least_conn; server a:1; } server { location / { proxy_pass http://u; proxy_set_header Host $host; } }",
            r#"[[upstream]]
name = "u"
servers = ["a:1"]
balance = "least-connections"
[[site.route]]
path = "/"
try = ["proxy:u"]
body_limit = "1MB""#,
        ),
        (
            "upstream u { ip_hash; server a:1; } server { location / { proxy_pass http://u; proxy_set_header Host $host; } }",
            r#"[[upstream]]
name = "u"
servers = ["a:1"]
balance = "hash"
hash_key = "address"
[[site.route]]
path = "/"
try = ["proxy:u"]
body_limit = "1MB""#,
        ),
        (
            "upstream u { hash $request_uri consistent; server a:1; } server { location / { proxy_pass http://u; proxy_set_header Host $host; } }",
            r#"[[upstream]]
name = "u"
servers = ["a:1"]
balance = "hash"
hash_key = "target"
[[site.route]]
path = "/"
try = ["proxy:u"]
body_limit = "1MB""#,
        ),
        (
            "upstream u { random two least_time=header; server a:1; } server { location / { proxy_pass http://u; proxy_set_header Host $host; } }",
            r#"[[upstream]]
name = "u"
servers = ["a:1"]
balance = "latency"
[[site.route]]
path = "/"
try = ["proxy:u"]
body_limit = "1MB""#,
        ),
        (
            "upstream u { sticky cookie srv; server a:1; } server { location / { proxy_pass http://u; proxy_set_header Host $host; } }",
            r#"[[upstream]]
name = "u"
servers = ["a:1"]
sticky_cookie = "srv"
[[site.route]]
path = "/"
try = ["proxy:u"]
body_limit = "1MB""#,
        ),
        (
            "upstream u { server a:1; keepalive 32; keepalive_timeout 60s; } server { location / { proxy_pass http://u; proxy_set_header Host $host; } }",
            r#"[[upstream]]
name = "u"
servers = ["a:1"]
keep_connections = 32
keep_time = "60s"
[[site.route]]
path = "/"
try = ["proxy:u"]
body_limit = "1MB""#,
        ),
        (
            "upstream u { server unix:/run/a.sock; } server { location / { proxy_pass http://u; proxy_set_header Host $host; } }",
            r#"[[upstream]]
name = "u"
servers = ["unix:/run/a.sock"]
[[site.route]]
path = "/"
try = ["proxy:u"]
body_limit = "1MB""#,
        ),
        (
            "upstream u { server a:1 down; } server { location / { proxy_pass http://u; proxy_set_header Host $host; } }",
            r#"[[site.route]]
path = "/"
deny = 403"#,
        ),
        (
            "server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_connect_timeout 5s; proxy_send_timeout 1m; proxy_read_timeout 90s; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
connect_timeout = "5s"
send_timeout = "60s"
first_byte_timeout = "90s"
idle_timeout = "90s"
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            "server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_next_upstream error timeout; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
retry_percent = 20
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            "server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_next_upstream off; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
retry_percent = 0
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            "server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_request_buffering on; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
request_buffering = true"#,
        ),
        (
            "server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_buffering off; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            "server { error_page 500 502 503 504 /50x.html; location / { proxy_pass http://a:1; proxy_intercept_errors on; } location = /50x.html { root /w; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
error_pages = { 5xx = "/50x.html" }
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB"
intercept_errors = true
[[site.route]]
path = "= /50x.html"
try = ["files:/w"]"#,
        ),
        (
            "server { location / { proxy_pass http://a:1; proxy_set_header Host $host; proxy_redirect off; } }",
            r#"[[upstream]]
name = "a"
servers = ["a:1"]
[[site.route]]
path = "/"
try = ["proxy:a"]
body_limit = "1MB""#,
        ),
        (
            r#"server { location / { set $memcached_key "$uri?$args"; memcached_pass 127.0.0.1:11211; error_page 404 502 504 = @f; } location @f { proxy_pass http://a:1; } }"#,
            r#"[[listener]]
address = "*:80"
[store]
memcached = ["127.0.0.1:11211"]
[[upstream]]
name = "a"
servers = ["a:1"]
host = "upstream"
[[site.route]]
path = "/"
try = ["store", "proxy:a"]
body_limit = "1MB""#,
        ),
        (
            "server { location / { fastcgi_pass unix:/run/php/php8.2-fpm.sock; fastcgi_param SCRIPT_FILENAME /srv/www/public$fastcgi_script_name; fastcgi_param A b; } }",
            r#"[[upstream]]
name = "php"
servers = ["fastcgi://unix:/run/php/php8.2-fpm.sock"]
root = "/srv/www/public"
[[site.route]]
path = "/"
try = ["proxy:php"]
body_limit = "1MB""#,
        ),
        (
            "server { location / { scgi_pass 127.0.0.1:4000; } }",
            r#"[[upstream]]
name = "local-4000"
servers = ["scgi://127.0.0.1:4000"]
[[site.route]]
path = "/"
try = ["proxy:local-4000"]
body_limit = "1MB""#,
        ),
        (
            "server { location / { uwsgi_pass 127.0.0.1:4000; include uwsgi_params; } }",
            r#"[[upstream]]
name = "local-4000"
servers = ["uwsgi://127.0.0.1:4000"]
[[site.route]]
path = "/"
try = ["proxy:local-4000"]
body_limit = "1MB""#,
        ),
        (
            "server { root /usr/lib; location /cgi-bin/ { fastcgi_pass unix:/run/fcgiwrap.socket; fastcgi_param NAME value; fastcgi_param SCRIPT_FILENAME /usr/lib$fastcgi_script_name; } }",
            r#"[[site.route]]
path = "/"
try = ["files:/usr/lib"]
[[site.route]]
path = "/cgi-bin"
try = ["cgi:/usr/lib/cgi-bin"]
body_limit = "1MB"
cgi = { env = { NAME = "value" } }"#,
        ),
    ]);
}
