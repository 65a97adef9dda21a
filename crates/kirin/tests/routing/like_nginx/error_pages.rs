//! `error_page` and `error_pages`.

use super::pair::{Pair, alike, differs};

/// Pages for errors of the server itself and of a backend.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "pages for the errors of the server",
        nginx: r"server { listen {listen}; root {files};
            error_page 404 /errors/404.html; error_page 403 /errors/403.html;
            error_page 500 502 503 504 /errors/5xx.html;
            location /errors/ { internal; etag off; }
            location /forbidden { deny all; }
            location /down { proxy_pass http://{dead}; }
            location /nopage { error_page 404 /errors/none.html; } }",
        kirin: r#"
[[upstream]]
name = "dead"
servers = ["{dead}"]
[[site]]
hosts = ["*"]
error_pages = { 404 = "/errors/404.html", 403 = "/errors/403.html", 5xx = "/errors/5xx.html" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site.route]]
path = "/errors"
try = ["files:files"]
deny = 404
[[site.route]]
path = "/forbidden"
deny = 403
[[site.route]]
path = "/down"
try = ["proxy:dead"]
[[site.route]]
path = "/nopage"
try = ["files:files"]
error_pages = { 404 = "/errors/none.html" }
"#,
        files: &[
            ("errors/404.html", "<p>not found</p>"),
            ("errors/403.html", "<p>forbidden</p>"),
            ("errors/5xx.html", "<p>sorry</p>"),
            ("a.txt", "a"),
        ],
        requests: &[
            alike("GET /none"),
            alike("HEAD /none"),
            alike("POST /none\n\nbody"),
            alike("GET /none\nIf-None-Match: *"),
            alike("GET /none\nRange: bytes=0-1"),
            alike("GET /none\nIf-Modified-Since: Fri, 01 Jan 2038 00:00:00 GMT"),
            alike("GET /forbidden/x"),
            alike("GET /down"),
            alike("GET /nopage/x"),
            alike("GET /errors/404.html"),
            alike("GET /a.txt"),
            alike("GET /%zz"),
        ],
    },
    Pair {
        name: "pages in place of the errors of a backend",
        nginx: r"server { listen {listen}; root {files};
            error_page 404 /errors/404.html; error_page 500 502 503 504 /errors/5xx.html;
            location / { proxy_pass http://{echo}; }
            location /status/ { proxy_pass http://{echo}; proxy_intercept_errors on; }
            location /digest { proxy_pass http://{echo}; proxy_intercept_errors on; }
            location /errors/ { etag off; } }",
        kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
host = "upstream"
[[site]]
hosts = ["*"]
error_pages = { 404 = "/errors/404.html", 5xx = "/errors/5xx.html" }
[[site.route]]
path = "/"
try = ["proxy:echo"]
[[site.route]]
path = "/status"
try = ["proxy:echo"]
intercept_errors = true
[[site.route]]
path = "/digest"
try = ["proxy:echo"]
intercept_errors = true
[[site.route]]
path = "/errors"
try = ["files:files"]
"#,
        files: &[("errors/404.html", "<p>not found</p>"), ("errors/5xx.html", "<p>sorry</p>")],
        requests: &[
            differs(
                "GET /status/404",
                "",
                "x-from: echo",
                "Kirin keeps the fields of the response whose body it replaces; nginx does not",
            ),
            differs(
                "GET /status/500",
                "",
                "x-from: echo",
                "Kirin keeps the fields of the response whose body it replaces; nginx does not",
            ),
            differs(
                "GET /status/503",
                "",
                "x-from: echo",
                "Kirin keeps the fields of the response whose body it replaces; nginx does not",
            ),
            differs(
                "HEAD /status/404",
                "",
                "x-from: echo",
                "Kirin keeps the fields of the response whose body it replaces; nginx does not",
            ),
            differs(
                "POST /status/500\n\nbody",
                "",
                "x-from: echo",
                "Kirin keeps the fields of the response whose body it replaces; nginx does not",
            ),
            differs(
                "GET /digest",
                "",
                "x-from: echo",
                "Kirin keeps the fields of the response whose body it replaces; nginx does not",
            ),
            alike("GET /status/403"),
            alike("GET /status/200"),
            alike("GET /status/301"),
            alike("GET /errors/none.html"),
        ],
    },
    Pair {
        name: "maintenance",
        nginx: r"server { listen {listen}; root {files};
            location / { error_page 503 /page.html; add_header Retry-After 600 always; return 503; }
            location = /page.html { etag off; add_header Retry-After 600 always; }
            location /plain { add_header Retry-After 600 always; return 503; }
            location /open { } }",
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
maintenance = { page = "/page.html" }
[[route]]
path = "= /page.html"
try = ["files:files"]
[[route]]
path = "/plain"
try = ["files:files"]
maintenance = true
[[route]]
path = "/open"
try = ["files:files"]
"#,
        files: &[("page.html", "<p>back soon</p>"), ("open/a.txt", "open")],
        requests: &[
            alike("GET /"),
            alike("GET /a?b"),
            alike("HEAD /a"),
            alike("POST /a\n\nbody"),
            alike("GET /plain"),
            alike("OPTIONS /plain"),
            alike("GET /open/a.txt"),
        ],
    },
];
