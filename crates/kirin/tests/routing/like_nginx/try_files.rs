//! `try_files` and the places of a route.

use super::pair::{Pair, alike, differs};

/// Files first, then an application or nothing.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "files, then an application",
        nginx: r"server { listen {listen}; root {files};
            location / { try_files $uri $uri/index.html @app; }
            location /only/ { try_files $uri =404; }
            location @app { proxy_pass http://{echo}; } }",
        kirin: r#"
[[upstream]]
name = "app"
servers = ["{echo}"]
host = "upstream"
[[route]]
path = "/"
try = ["files:files", "proxy:app"]
[[route]]
path = "/only"
try = ["files:files"]
"#,
        files: &[
            ("a.txt", "a"),
            ("dir/index.html", "dir"),
            ("plain/a.txt", "plain"),
            ("only/a.txt", "only"),
            (".env", "SECRET=1"),
        ],
        requests: &[
            alike("GET /a.txt"),
            alike("GET /a.txt?x=y"),
            alike("GET /none"),
            alike("GET /none?x=y"),
            alike("POST /none\n\nbody"),
            differs(
                "POST /a.txt\n\nbody",
                "405; body: own text",
                "200; body: echo got POST /a.txt for {echo} with body; x-from: echo",
                "`files:` has GET and HEAD; other methods are for the next place",
            ),
            differs(
                "DELETE /a.txt",
                "405; body: own text",
                "200; body: echo got DELETE /a.txt for {echo}; x-from: echo",
                "`files:` has GET and HEAD; other methods are for the next place",
            ),
            differs(
                "OPTIONS /a.txt",
                "405; body: own text",
                "200; body: echo got OPTIONS /a.txt for {echo}; x-from: echo",
                "`files:` has GET and HEAD; other methods are for the next place",
            ),
            alike("GET /dir/"),
            differs(
                "GET /dir",
                "200; body: dir",
                "301; body: own text; location: /dir/",
                "a directory has one address, with a slash at its end",
            ),
            alike("GET /plain/"),
            alike("GET /plain"),
            alike("GET /a.txt/more"),
            differs(
                "GET /.env",
                "accept-ranges: bytes; body: SECRET=1; content-type: application/octet-stream; etag: present; last-modified: Sun, 09 Sep 2001 01:46:40 GMT",
                "body: echo got GET /.env for {echo}; content-type: text/plain; charset=utf-8; x-from: echo",
                "files whose names begin with a dot are not served",
            ),
            alike("GET /only/a.txt"),
            alike("GET /only/none"),
            alike("GET /only/"),
            alike("GET /n%6Fne"),
            alike("GET //none"),
            differs(
                "GET /a/../none",
                "body: echo got GET /a/../none for {echo}",
                "body: echo got GET /none for {echo}",
                "Kirin sends the resolved path, by which it has found the route",
            ),
        ],
    },
    Pair {
        name: "a single-page application",
        nginx: r#"server { listen {listen}; root {files};
            location / { try_files $uri /index.html; }
            location = /index.html {
                add_header Cache-Control no-cache; add_header Vary "Accept, Sec-Fetch-Mode"; }
            location /assets/ {
                add_header Cache-Control "public, max-age=31536000, immutable"; } }"#,
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
fallback = "index.html"
[[route]]
path = "/assets"
try = ["files:files"]
immutable = true
"#,
        files: &[("index.html", "app"), ("a.txt", "a"), ("assets/a-4B_zcIE0.txt", "asset")],
        requests: &[
            alike("GET /a.txt\nSec-Fetch-Mode: cors"),
            alike("GET /users/7\nSec-Fetch-Mode: navigate"),
            alike("GET /users/7\nAccept: text/html"),
            alike("HEAD /users/7\nAccept: text/html"),
            alike(
                "GET /users/7\nAccept: text/html\nIf-Modified-Since: Sun, 09 Sep 2001 01:46:40 GMT",
            ),
            alike("GET /assets/a-4B_zcIE0.txt"),
            alike("GET /assets/none"),
            differs(
                "GET /users/7\nSec-Fetch-Mode: cors",
                "200; body: app; cache-control: no-cache",
                "404; body: own text",
                "Kirin gives the page to navigations only",
            ),
            differs(
                "POST /users/7\nAccept: text/html",
                "405",
                "404",
                "the path is no file, so it has no other method",
            ),
        ],
    },
];
