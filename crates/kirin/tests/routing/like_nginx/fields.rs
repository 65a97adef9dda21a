//! `add_header`, `expires` and `headers`.

use super::pair::{Pair, alike, differs};

/// Fields that the configuration adds to responses.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "fields that are added to responses",
        nginx: r#"server { listen {listen}; root {files};
            location / { add_header X-Frame-Options DENY; }
            location /always { add_header X-Frame-Options DENY always; }
            location /cached { expires 1h; }
            location /never { expires -1; }
            location /app/ { proxy_pass http://{echo}/; add_header X-Frame-Options DENY always; }
            location /replaced/ { proxy_pass http://{echo}/; proxy_hide_header X-From; add_header X-From edge always; }
            location /removed/ { proxy_pass http://{echo}/; proxy_hide_header X-From; }
            location /moved { add_header X-Frame-Options DENY always; rewrite ^ /a.txt permanent; }
            location /denied { add_header X-Frame-Options DENY always; deny all; } }"#,
        kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
host = "upstream"
[[route]]
path = "/"
try = ["files:files"]
headers = { X-Frame-Options = "DENY" }
[[route]]
path = "/always"
try = ["files:files"]
headers = { X-Frame-Options = "DENY" }
[[route]]
path = "/cached"
try = ["files:files"]
headers = { Cache-Control = "max-age=3600" }
[[route]]
path = "/never"
try = ["files:files"]
headers = { Cache-Control = "no-cache" }
[[route]]
path = "/app"
try = ["proxy:echo"]
rewrite = "/"
headers = { X-Frame-Options = "DENY" }
[[route]]
path = "/replaced"
try = ["proxy:echo"]
rewrite = "/"
headers = { X-From = "edge" }
[[route]]
path = "/removed"
try = ["proxy:echo"]
rewrite = "/"
headers = { X-From = "" }
[[route]]
path = "= /moved"
redirect = "/a.txt"
redirect_status = 301
headers = { X-Frame-Options = "DENY" }
[[route]]
path = "/denied"
deny = 403
headers = { X-Frame-Options = "DENY" }
"#,
        files: &[
            ("a.txt", "a"),
            ("always/a.txt", "a"),
            ("cached/a.txt", "a"),
            ("never/a.txt", "a"),
        ],
        requests: &[
            alike("GET /a.txt"),
            alike("GET /a.txt\nIf-None-Match: {etag}"),
            alike("GET /a.txt\nRange: bytes=0-0"),
            alike("GET /a.txt\nRange: bytes=9-"),
            differs(
                "GET /none",
                "",
                "x-frame-options: DENY",
                "`headers` are for every status, as with `always`",
            ),
            alike("GET /always/a.txt"),
            alike("GET /always/none"),
            differs(
                "GET /always/a.txt\nRange: bytes=9-",
                "x-frame-options: DENY, DENY",
                "x-frame-options: DENY",
                "nginx adds the field twice to 416",
            ),
            differs(
                "POST /always/a.txt\n\nbody",
                "",
                "allow: GET, HEAD, OPTIONS",
                "405 must have `Allow` (RFC 9110 section 15.5.6)",
            ),
            differs(
                "GET /cached/a.txt",
                "expires: present",
                "",
                "Kirin has no `expires`, and all caches of HTTP/1.1 obey `Cache-Control`",
            ),
            differs(
                "GET /cached/none",
                "",
                "cache-control: max-age=3600",
                "`headers` are for every status; `expires` is for good ones",
            ),
            differs(
                "GET /cached/a.txt\nIf-None-Match: {etag}",
                "expires: present",
                "",
                "Kirin has no `expires`, and all caches of HTTP/1.1 obey `Cache-Control`",
            ),
            differs(
                "GET /never/a.txt",
                "expires: present",
                "",
                "Kirin has no `expires`, and all caches of HTTP/1.1 obey `Cache-Control`",
            ),
            alike("GET /app/status/200"),
            alike("GET /app/status/500"),
            alike("GET /replaced/x"),
            alike("GET /removed/x"),
            alike("GET /moved"),
            alike("GET /denied"),
        ],
    },
    Pair {
        name: "media types",
        nginx: r#"server { listen {listen}; root {files};
            location / { types { text/html webc; text/plain log; } default_type application/x-other; }
            location /latin { charset iso-8859-1; }
            location /none { charset off; } }"#,
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
mime_types = { webc = "text/html", log = "text/plain", "*" = "application/x-other" }
[[route]]
path = "/latin"
try = ["files:files"]
charset = "iso-8859-1"
[[route]]
path = "/none"
try = ["files:files"]
charset = ""
"#,
        files: &[
            ("a.webc", "a"),
            ("a.log", "a"),
            ("a.unknown", "a"),
            ("A.LOG", "a"),
            ("a.txt", "a"),
            ("latin/a.txt", "a"),
            ("latin/a.html", "a"),
            ("latin/a.png", "a"),
            ("none/a.txt", "a"),
            ("none/a.css", "a"),
            ("none/a.tar.gz", "a"),
            ("none/a.woff2", "a"),
            ("none/a.webp", "a"),
            ("none/a.mp4", "a"),
            ("none/a.pdf", "a"),
            ("none/a.xml", "a"),
            ("none/a.ico", "a"),
            ("none/a.wasm", "a"),
        ],
        requests: &[
            alike("GET /a.webc"),
            alike("GET /a.log"),
            alike("GET /A.LOG"),
            alike("GET /a.unknown"),
            differs(
                "GET /a.txt",
                "content-type: application/x-other",
                "content-type: text/plain; charset=utf-8",
                "`mime_types` are added to the common ones; `types` replaces them",
            ),
            alike("GET /latin/a.txt"),
            alike("GET /latin/a.html"),
            alike("GET /latin/a.png"),
            alike("GET /none/a.txt"),
            alike("GET /none/a.css"),
            differs(
                "GET /none/a.tar.gz",
                "content-type: application/octet-stream",
                "content-type: application/gzip",
                "nginx has no type for .gz",
            ),
            alike("GET /none/a.woff2"),
            alike("GET /none/a.webp"),
            alike("GET /none/a.mp4"),
            alike("GET /none/a.pdf"),
            alike("GET /none/a.xml"),
            alike("GET /none/a.ico"),
            alike("GET /none/a.wasm"),
        ],
    },
    Pair {
        name: "fields of the server and of a location",
        nginx: r#"server { listen {listen}; root {files};
            add_header X-Server all always; add_header X-Frame-Options DENY always;
            location /own { add_header X-Frame-Options SAMEORIGIN always; }
            location /more { add_header X-More more always; } }"#,
        kirin: r#"
[[site]]
hosts = ["*"]
headers = { X-Server = "all", X-Frame-Options = "DENY" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site.route]]
path = "/own"
try = ["files:files"]
headers = { X-Frame-Options = "SAMEORIGIN" }
[[site.route]]
path = "/more"
try = ["files:files"]
headers = { X-More = "more" }
"#,
        files: &[("a.txt", "a"), ("own/a.txt", "a"), ("more/a.txt", "a")],
        requests: &[
            alike("GET /a.txt"),
            alike("GET /none"),
            differs(
                "GET /own/a.txt",
                "",
                "x-server: all",
                "`headers` of a site and of a route are added together; `add_header` in a location replaces those around it",
            ),
            differs(
                "GET /more/a.txt",
                "",
                "x-frame-options: DENY; x-server: all",
                "`headers` of a site and of a route are added together; `add_header` in a location replaces those around it",
            ),
            differs(
                "GET /more/none",
                "",
                "x-frame-options: DENY; x-server: all",
                "`headers` of a site and of a route are added together; `add_header` in a location replaces those around it",
            ),
        ],
    },
];
