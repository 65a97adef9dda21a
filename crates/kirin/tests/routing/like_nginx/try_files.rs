//! `try_files` and the places of a route.

use super::pair::{Pair, alike, differs};

/// Files first, then an application or nothing.
pub const PAIRS: &[Pair] = &[Pair {
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
}];
