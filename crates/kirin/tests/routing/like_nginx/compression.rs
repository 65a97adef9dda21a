//! `gzip`, `gzip_static` and `compress`.

use super::pair::{Pair, alike, differs};

/// A text that is worth compressing.
const LONG: &str = "\
a text that repeats, and is long enough that both compress it, a text that repeats
a text that repeats, and is long enough that both compress it, a text that repeats
a text that repeats, and is long enough that both compress it, a text that repeats
a text that repeats, and is long enough that both compress it, a text that repeats
a text that repeats, and is long enough that both compress it, a text that repeats
a text that repeats, and is long enough that both compress it, a text that repeats
a text that repeats, and is long enough that both compress it, a text that repeats
a text that repeats, and is long enough that both compress it, a text that repeats
";

/// Codings that clients accept or refuse.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "responses that are compressed",
        nginx: r"server { listen {listen}; root {files};
            gzip on; gzip_vary on; gzip_min_length 512; gzip_http_version 1.0; gzip_types text/plain;
            location /app/ { gzip_proxied any; proxy_pass http://{echo}/; }
            location /off/ { gzip off; } }",
        kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
host = "upstream"
[[route]]
path = "/"
try = ["files:files"]
compress = ["gzip"]
[[route]]
path = "/app"
try = ["proxy:echo"]
rewrite = "/"
compress = ["gzip"]
[[route]]
path = "/off"
try = ["files:files"]
compress = false
"#,
        files: &[
            ("a.txt", LONG),
            ("a.html", LONG),
            ("a.png", LONG),
            ("small.txt", "small"),
            ("off/a.txt", LONG),
        ],
        requests: &[
            alike("GET /a.txt"),
            alike("GET /a.txt\nAccept-Encoding: gzip"),
            differs(
                "HEAD /a.txt\nAccept-Encoding: gzip",
                "length: none",
                "length: 94",
                "Kirin keeps the compressed file and knows its length; nginx compresses each time",
            ),
            alike("GET /a.html\nAccept-Encoding: gzip, deflate, br"),
            alike("GET /a.txt\nAccept-Encoding: br"),
            alike("GET /a.txt\nAccept-Encoding: gzip;q=0"),
            alike("GET /a.txt\nAccept-Encoding: gzip;q=0.5"),
            differs(
                "GET /a.txt\nAccept-Encoding: *",
                "accept-ranges: bytes",
                "content-encoding: gzip",
                "`*` stands for gzip, and `x-gzip` is another name of it (RFC 9110 section 8.4.1.3)",
            ),
            alike("GET /a.txt\nAccept-Encoding: identity"),
            differs(
                "GET /a.txt\nAccept-Encoding: x-gzip",
                "accept-ranges: bytes",
                "content-encoding: gzip",
                "`*` stands for gzip, and `x-gzip` is another name of it (RFC 9110 section 8.4.1.3)",
            ),
            alike("GET /a.txt\nAccept-Encoding: GZIP"),
            differs(
                "GET /a.txt\nAccept-Encoding: gzip\nRange: bytes=0-3",
                "200; body: a text that repeats, and is long enough that both compress it, a text that repeats / a text that repeats, and is long enough that both compress it, a text that …; content-encoding: gzip",
                "206; body: a te; content-range: bytes 0-3/664",
                "a part is never compressed; nginx compresses all and sends no part",
            ),
            differs(
                "GET /a.txt\nAccept-Encoding: gzip\nIf-None-Match: {etag}",
                "",
                "vary: Accept-Encoding",
                "a 304 has the `Vary` of the 200 (RFC 9110 section 15.4.5)",
            ),
            alike("GET /a.png\nAccept-Encoding: gzip"),
            alike("GET /small.txt\nAccept-Encoding: gzip"),
            alike("GET /off/a.txt\nAccept-Encoding: gzip"),
            alike("POST /app/x\nAccept-Encoding: gzip\n\n{a*600}"),
            alike("POST /app/x\nAccept-Encoding: gzip\nVia: 1.1 proxy\n\n{a*600}"),
            alike("POST /app/x\n\n{a*600}"),
        ],
    },
    Pair {
        name: "compressed variants beside files",
        nginx: r"server { listen {listen}; root {files}; gzip_static on; gzip_vary on; gzip_proxied any; }",
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
compress = false
"#,
        files: &[
            ("a.txt", "original"),
            ("a.txt.gz", "variant"),
            ("alone.txt", "alone"),
            ("only.txt.gz", "only the variant"),
        ],
        requests: &[
            alike("GET /a.txt"),
            differs(
                "GET /a.txt\nAccept-Encoding: gzip",
                "",
                "accept-ranges: bytes",
                "Kirin serves ranges of a variant",
            ),
            differs(
                "HEAD /a.txt\nAccept-Encoding: gzip",
                "",
                "accept-ranges: bytes",
                "Kirin serves ranges of a variant",
            ),
            differs(
                "GET /a.txt\nAccept-Encoding: br, gzip;q=0.1",
                "",
                "accept-ranges: bytes",
                "Kirin serves ranges of a variant",
            ),
            alike("GET /a.txt\nAccept-Encoding: gzip;q=0"),
            differs(
                "GET /a.txt\nAccept-Encoding: gzip\nRange: bytes=0-3",
                "200; body: variant",
                "206; body: vari; content-range: bytes 0-3/7",
                "Kirin serves ranges of a variant",
            ),
            alike("GET /alone.txt\nAccept-Encoding: gzip"),
            differs(
                "GET /only.txt\nAccept-Encoding: gzip",
                "200; body: only the variant; content-encoding: gzip",
                "404; body: own text",
                "Kirin looks for a variant only if the file itself exists",
            ),
            differs(
                "GET /a.txt.gz",
                "content-type: application/octet-stream",
                "content-type: application/gzip",
                "nginx has no type for .gz",
            ),
            differs(
                "GET /only.txt.gz\nAccept-Encoding: gzip",
                "content-type: application/octet-stream",
                "content-type: application/gzip",
                "nginx has no type for .gz",
            ),
        ],
    },
];
