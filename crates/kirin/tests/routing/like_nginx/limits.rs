//! Rates of requests and sizes of bodies.

use super::pair::{Pair, alike, differs};

/// `limit_req` and `client_max_body_size`.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "a rate of requests",
        nginx: r"
            limit_req_zone $binary_remote_addr zone=one:1m rate=1r/m;
            limit_req_zone $http_x_key zone=two:1m rate=1r/m;
            server { listen {listen}; root {files};
                location /burst { limit_req zone=one burst=2 nodelay; }
                location /header { limit_req zone=two; }
                location /free { } }",
        kirin: r#"
[[route]]
path = "/burst"
try = ["files:files"]
rate_limit = [{ rate = "1/m", burst = 3 }]
[[route]]
path = "/header"
try = ["files:files"]
rate_limit = [{ rate = "1/m", burst = 1, key = "header:X-Key" }]
[[route]]
path = "/free"
try = ["files:files"]
"#,
        files: &[("burst/a.txt", "a"), ("free/a.txt", "free"), ("header/a.txt", "header")],
        requests: &[
            alike("GET /burst/a.txt"),
            alike("GET /burst/a.txt"),
            alike("GET /burst/none"),
            differs(
                "GET /burst/a.txt",
                "503",
                "429; retry-after: present",
                "429 is the status for this (RFC 6585), and `Retry-After` says when to come again",
            ),
            differs(
                "HEAD /burst/a.txt",
                "503",
                "429; retry-after: present",
                "429 is the status for this (RFC 6585), and `Retry-After` says when to come again",
            ),
            differs(
                "POST /burst/a.txt\n\nbody",
                "503",
                "429; retry-after: present",
                "429 is the status for this (RFC 6585), and `Retry-After` says when to come again",
            ),
            alike("GET /free/a.txt"),
            alike("GET /header/a.txt\nX-Key: a"),
            alike("GET /header/a.txt\nX-Key: b"),
            differs(
                "GET /header/a.txt\nX-Key: a",
                "503",
                "429; retry-after: present",
                "429 is the status for this (RFC 6585), and `Retry-After` says when to come again",
            ),
            alike("GET /header/a.txt"),
            differs(
                "GET /header/a.txt",
                "200; body: header",
                "429; body: own text; retry-after: present",
                "a request without the field counts for its address; nginx does not limit it",
            ),
        ],
    },
    Pair {
        name: "sizes of request bodies",
        nginx: r"server { listen {listen}; client_max_body_size 10;
            location / { proxy_pass http://{echo}; }
            location /large { client_max_body_size 0; proxy_pass http://{echo}; } }",
        kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
host = "upstream"
[[route]]
path = "/"
try = ["proxy:echo"]
body_limit = "10B"
[[route]]
path = "/large"
try = ["proxy:echo"]
"#,
        files: &[],
        requests: &[
            alike("POST /a\n\n1234567890"),
            alike("POST /a\n\n12345678901"),
            alike("PUT /a\n\n12345678901"),
            alike("GET /a\n\n12345678901"),
            alike("POST /large\n\n12345678901"),
            alike("POST /a\nContent-Length: 99999999"),
            alike("POST /a\nExpect: 100-continue\nContent-Length: 11"),
            alike(
                "POST /a HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\nb\r\n12345678901\r\n0\r\n\r\n",
            ),
            alike(
                "POST /a HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n2\r\n12\r\n0\r\n\r\n",
            ),
            alike("POST /a\nContent-Length: x"),
            alike("POST /a\nContent-Length: -1"),
        ],
    },
];
