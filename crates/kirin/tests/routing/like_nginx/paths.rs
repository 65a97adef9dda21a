//! Spellings of paths, and what files and backends get of them.

use super::pair::{Pair, alike, differs};

/// Slashes, dots, encodings.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "spellings of the path of a file",
        nginx: r"server { listen {listen}; root {files}; }",
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
"#,
        files: &[
            ("a.txt", "a"),
            ("dir/b.txt", "b"),
            ("with space.txt", "space"),
            ("ü.txt", "u"),
            ("plus+sign.txt", "plus"),
            ("back\\slash.txt", "backslash"),
            ("semi;colon.txt", "semi"),
            ("...", "three dots"),
            (".well-known/a.txt", "known"),
            (".git/config", "git"),
        ],
        requests: &[
            alike("GET //a.txt"),
            alike("GET /./a.txt"),
            alike("GET /%2e/a.txt"),
            alike("GET /dir/../a.txt"),
            alike("GET /dir/%2e%2e/a.txt"),
            alike("GET /dir/.%2e/a.txt"),
            alike("GET /none/../a.txt"),
            alike("GET /dir//b.txt"),
            differs(
                "GET /dir%2Fb.txt",
                "200; body: b",
                "404; body: own text",
                "no file name has a slash, and an encoded slash separates no directories",
            ),
            differs(
                "GET /dir/..%2Fa.txt",
                "200; body: a",
                "404; body: own text",
                "no file name has a slash, and an encoded slash separates no directories",
            ),
            alike("GET /.."),
            alike("GET /../a.txt"),
            alike("GET /%2e%2e/a.txt"),
            alike("GET /dir/../../a.txt"),
            alike("GET /..%2f..%2fetc/passwd"),
            alike("GET /a.txt%00"),
            alike("GET /a.txt%00.html"),
            alike("GET /%"),
            alike("GET /%a"),
            alike("GET /%zz"),
            alike("GET /a%252etxt"),
            alike("GET /%61.txt"),
            alike("GET /with%20space.txt"),
            alike("GET /with+space.txt"),
            alike("GET /plus+sign.txt"),
            alike("GET /%C3%BC.txt"),
            alike("GET /ü.txt"),
            alike("GET /back\\slash.txt"),
            alike("GET /back%5Cslash.txt"),
            alike("GET /semi;colon.txt"),
            alike("GET /semi%3Bcolon.txt"),
            alike("GET /a.txt;x=1"),
            alike("GET /a.txt?"),
            alike("GET /a.txt?%00%zz"),
            differs(
                "GET /a.txt#fragment",
                "200; body: a",
                "400; body: own text",
                "a fragment is no part of a target (RFC 9112 section 3.2)",
            ),
            differs(
                "GET /...",
                "200; body: three dots",
                "404; body: own text",
                "files whose names begin with a dot are not served",
            ),
            alike("GET /.well-known/a.txt"),
            differs(
                "GET /.git/config",
                "200; body: git",
                "404; body: own text",
                "files whose names begin with a dot are not served",
            ),
            alike("GET /a.txt."),
            alike("GET /A.TXT"),
            differs(
                "GET /dir/.",
                "403",
                "404",
                "Kirin treats a directory without index page and listing as missing",
            ),
            differs(
                "GET /dir/..",
                "403",
                "404",
                "Kirin treats a directory without index page and listing as missing",
            ),
            alike("GET /%0a"),
            alike("GET /{a*300}"),
            alike("GET /{a*5000}"),
        ],
    },
    Pair {
        name: "spellings of the path for a backend",
        nginx: r"server { listen {listen};
            location / { proxy_pass http://{echo}; }
            location /uri/ { proxy_pass http://{echo}/v2/; } }",
        kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
host = "upstream"
[[route]]
path = "/"
try = ["proxy:echo"]
[[route]]
path = "/uri"
try = ["proxy:echo"]
rewrite = "/v2"
"#,
        files: &[],
        requests: &[
            alike("GET /a%20b"),
            alike("GET /%61"),
            alike("GET //a//b"),
            differs(
                "GET /a/../b",
                "body: echo got GET /a/../b for {echo}",
                "body: echo got GET /b for {echo}",
                "Kirin sends the resolved path, by which it has found the route",
            ),
            differs(
                "GET /a/./b",
                "body: echo got GET /a/./b for {echo}",
                "body: echo got GET /a/b for {echo}",
                "Kirin sends the resolved path, by which it has found the route",
            ),
            alike("GET /a%2Fb"),
            differs(
                "GET /a/%2e%2e/b",
                "body: echo got GET /a/%2e%2e/b for {echo}",
                "body: echo got GET /b for {echo}",
                "Kirin sends the resolved path, by which it has found the route",
            ),
            alike("GET /%C3%BC"),
            differs(
                "GET /ü",
                "body: echo got GET /ü for {echo}",
                "body: echo got GET /%C3%BC for {echo}",
                "a target has ASCII characters of a URI only",
            ),
            alike("GET /a?b=%20+c"),
            alike("GET /a?"),
            alike("GET /a%3Fb"),
            alike("GET /a%00b"),
            alike("GET /../a"),
            alike("GET /uri/a%20b"),
            alike("GET /uri/%61"),
            alike("GET /uri//a"),
            alike("GET /uri/a%2Fb"),
            alike("GET /uri/a%3Fb?c"),
            alike("GET /uri/a%25b"),
            alike("GET /uri/x/../a"),
            alike("GET /uri/../uri/a"),
            alike("GET /uri/%C3%BC"),
            alike("GET /uri/a;b"),
            differs(
                "GET /uri/\"a\"",
                "body: echo got GET /v2/\"a\" for {echo}",
                "body: echo got GET /v2/%22a%22 for {echo}",
                "a target has ASCII characters of a URI only",
            ),
            alike("GET /uri/"),
            differs(
                "GET /uri",
                "301; body: own text; location: /uri/",
                "200; body: echo got GET /v2 for {echo}; x-from: echo",
                "a route is its path with and without a slash at the end",
            ),
        ],
    },
];
