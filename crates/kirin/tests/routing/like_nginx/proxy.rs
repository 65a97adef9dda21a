//! `proxy_pass`: what backends get, and what clients get from them.

use super::pair::{Pair, alike, differs};

/// Requests and responses that pass through.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "what a backend gets",
        nginx: r"server { listen {listen}; proxy_http_version 1.1;
            location / { proxy_pass http://{echo}; proxy_set_header Host $http_host; }
            location /fields { proxy_pass http://{echo}; proxy_set_header Host $host;
                proxy_set_header X-Forwarded-For $remote_addr; proxy_set_header X-Forwarded-Proto $scheme;
                proxy_set_header X-Forwarded-Host $http_host; }
            location /v1/ { proxy_pass http://{echo}/v2/; proxy_set_header Host $http_host; }
            location /named/ { proxy_pass http://{echo}/; proxy_set_header Host backend.example; }
            location /mount/ { proxy_pass http://{echo}/; proxy_set_header Host $http_host; } }",
        kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
[[upstream]]
name = "named"
servers = ["{echo}"]
host = "backend.example"
[[route]]
path = "/"
try = ["proxy:echo"]
[[route]]
path = "/v1"
try = ["proxy:echo"]
rewrite = "/v2"
[[route]]
path = "/named"
try = ["proxy:named"]
rewrite = "/"
[[route]]
path = "/mount"
try = ["proxy:echo"]
rewrite = "/"
"#,
        files: &[],
        requests: &[
            alike("GET /a?b=c"),
            alike("HEAD /a"),
            alike("GET /a\nHost: example.org:8080"),
            alike("GET /a\nHost: EXAMPLE.org"),
            alike("POST /a\n\nthe body"),
            alike("PUT /a\n\nthe body"),
            alike("DELETE /a"),
            alike("GET /a\n\nbody of a GET"),
            alike(
                "POST /a HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n3\r\nabc\r\n0\r\n\r\n",
            ),
            differs(
                "GET http://example.org/a\nHost: other",
                "body: echo got GET /a for other",
                "body: echo got GET /a for example.org",
                "the host of an absolute target has precedence (RFC 9112 section 3.2.2)",
            ),
            alike("GET /v1/a?x"),
            alike("GET /v1/"),
            differs(
                "GET /v1",
                "301; body: own text; location: /v1/",
                "200; body: echo got GET /v2 for test; x-from: echo",
                "a route is its path with and without a slash at the end",
            ),
            alike("GET /named/a"),
            alike("GET /mount/a/b?c"),
            alike("GET /fields"),
            alike("GET /fields\nX-Custom: a\nAccept: */*\nCookie: a=b; c=d\nUser-Agent: tests"),
            alike("GET /fields\nX-Forwarded-For: 192.0.2.1"),
            differs(
                "GET /fields\nX-Real-IP: 192.0.2.1",
                "body: host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http x-real-ip=192.0.2.1",
                "body: host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http",
                "fields about the client come from trusted proxies only",
            ),
            differs(
                "GET /fields\nForwarded: for=192.0.2.1",
                "body: forwarded=for=192.0.2.1 host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http",
                "body: host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http",
                "fields about the client come from trusted proxies only",
            ),
            differs(
                "GET /fields\nX-Forwarded-User: admin",
                "body: host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http x-forwarded-user=admin",
                "body: host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http",
                "fields about the client come from trusted proxies only",
            ),
            alike("GET /fields\nX_Custom: a"),
            alike("GET /fields\nX-Empty:"),
            alike("GET /fields\nX-Twice: a\nX-Twice: b"),
            alike("GET /fields\nCookie: a=b\nCookie: c=d"),
            differs(
                "GET /fields\nTE: gzip\nKeep-Alive: 5\nProxy-Connection: close",
                "body: host=test proxy-connection=close x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http",
                "body: host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http",
                "`Proxy-Connection` belongs to the connection",
            ),
            differs(
                "GET /fields HTTP/1.1\r\nHost: test\r\nConnection: close, X-Hop\r\nX-Hop: a\r\n\r\n",
                "body: host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http x-hop=a",
                "body: host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http",
                "fields that `Connection` names end here (RFC 9110 section 7.6.1)",
            ),
            differs(
                "GET /fields\nProxy: http://evil.example/",
                "body: host=test proxy=http://evil.example/ x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http",
                "body: host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http",
                "the field `Proxy` would become HTTP_PROXY in a CGI program",
            ),
            alike("GET /fields\nAccept-Encoding: gzip, br"),
            alike("GET /fields\nAuthorization: Basic eDp5"),
            alike("GET /fields\nIf-None-Match: \"a\"\nRange: bytes=0-1"),
            alike("GET /fields\nExpect: 100-continue"),
            alike("GET /fields\nUpgrade: h2c"),
            alike("GET /fields HTTP/1.0\r\nHost: test\r\n\r\n"),
        ],
    },
    Pair {
        name: "what a client gets",
        nginx: r"server { listen {listen};
            location / { proxy_pass http://{echo}; proxy_set_header Host $http_host; }
            location /mount/ { proxy_pass http://{echo}/; proxy_set_header Host $proxy_host; } }",
        kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
[[upstream]]
name = "own"
servers = ["{echo}"]
host = "upstream"
[[route]]
path = "/"
try = ["proxy:echo"]
[[route]]
path = "/mount"
try = ["proxy:own"]
rewrite = "/"
"#,
        files: &[],
        requests: &[
            alike("GET /status/200"),
            alike("GET /status/204"),
            alike("GET /status/206"),
            alike("GET /status/304"),
            alike("GET /status/404"),
            alike("GET /status/418"),
            alike("GET /status/599"),
            alike("GET /status/500"),
            alike("GET /status/503"),
            alike("HEAD /status/404"),
            alike("GET /location/inner"),
            differs(
                "GET /mount/location/inner",
                "location: /mount/inner",
                "location: http://{echo}/inner",
                "Kirin never changes the `Location` of a backend; nginx does by default (`proxy_redirect`)",
            ),
            alike("GET /cookies"),
            alike("GET /mount/cookies"),
            differs(
                "GET /private",
                "",
                "x-accel-buffering: no; x-accel-expires: 0; x-pad: a",
                "nginx obeys and removes `X-Accel-*`; Kirin passes them on",
            ),
        ],
    },
    Pair {
        name: "the defaults of both",
        nginx: r"server { listen {listen}; location / { proxy_pass http://{echo}; } }",
        kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
[[route]]
path = "/"
try = ["proxy:echo"]
"#,
        files: &[],
        requests: &[
            differs(
                "GET /a",
                "body: echo got GET /a for {echo}",
                "body: echo got GET /a for test",
                "the default `host` is the one that the client asked for",
            ),
            differs(
                "GET /fields",
                "body: host={echo}",
                "body: host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http",
                "Kirin passes on the client's host and says who the client is",
            ),
            differs(
                "GET /fields\nX-Forwarded-For: 192.0.2.1",
                "body: host={echo} x-forwarded-for=192.0.2.1",
                "body: host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http",
                "Kirin passes on the client's host and says who the client is",
            ),
            differs(
                "GET /fields\nAccept-Encoding: gzip",
                "body: accept-encoding=gzip host={echo}",
                "body: accept-encoding=gzip host=test x-forwarded-for=127.0.0.1 x-forwarded-host=test x-forwarded-proto=http",
                "Kirin passes on the client's host and says who the client is",
            ),
            differs(
                "POST /a\n\nbody",
                "body: echo got POST /a for {echo} with body",
                "body: echo got POST /a for test with body",
                "the default `host` is the one that the client asked for",
            ),
            differs(
                "GET /location/inner",
                "body: echo got GET /location/inner for {echo}",
                "body: echo got GET /location/inner for test",
                "the default `host` is the one that the client asked for",
            ),
        ],
    },
];
