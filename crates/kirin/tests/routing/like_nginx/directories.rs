//! Index pages, listings and the slash behind a directory.

use super::pair::{Pair, alike, differs};

/// Directories with and without an index page.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "index pages",
        nginx: r"server { listen {listen}; root {files}; index index.html index.htm; }",
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
index = ["index.html", "index.htm"]
"#,
        files: &[
            ("index.html", "home"),
            ("with/index.html", "with"),
            ("old/index.htm", "old"),
            ("both/index.htm", "second"),
            ("both/index.html", "first"),
            ("without/a.txt", "a"),
            ("with space/index.html", "space"),
            ("a%b/index.html", "percent"),
        ],
        requests: &[
            alike("GET /"),
            alike("HEAD /"),
            alike("GET /with/"),
            alike("GET /with"),
            alike("HEAD /with"),
            alike("GET /with?a=b"),
            differs(
                "POST /with\n\nbody",
                "301; location: /with/",
                "405; allow: GET, HEAD, OPTIONS",
                "Kirin refuses the method before it redirects to the slash",
            ),
            alike("GET //with"),
            alike("GET /x/../with"),
            alike("GET /old/"),
            alike("GET /both/"),
            differs(
                "GET /without/",
                "403",
                "404",
                "Kirin treats a directory without index page and listing as missing, because an application may have the path",
            ),
            differs(
                "GET /without",
                "301; location: /without/",
                "404",
                "Kirin treats a directory without index page and listing as missing, because an application may have the path",
            ),
            alike("GET /with%20space"),
            alike("GET /with%20space/"),
            alike("GET /a%25b"),
            alike("GET /none/"),
            alike("GET /with/index.html/"),
            alike("GET /index.html/x"),
        ],
    },
    Pair {
        name: "listings",
        nginx: r"server { listen {listen}; root {files}; autoindex on; }",
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
listing = true
"#,
        files: &[
            ("list/b.txt", "b"),
            ("list/a.txt", "a"),
            ("list/sub/x", "x"),
            ("list/.hidden", "h"),
            ("list/B.txt", "B"),
            ("list/with space.txt", "s"),
            ("list/a&b.txt", "amp"),
            ("list/quote\"'<.txt", "q"),
            ("list/a%b?c#d;e.txt", "odd"),
            ("list/ü.txt", "u"),
            ("list/a:b", "colon"),
            ("paged/index.html", "page"),
        ],
        requests: &[
            alike("GET /list/"),
            differs(
                "HEAD /list/",
                "length: none",
                "length: 1178",
                "Kirin builds the list and knows its length; nginx sends chunks",
            ),
            alike("GET /list"),
            alike("GET /list/sub/"),
            alike("GET /paged/"),
            alike("GET /list/?C=M;O=A"),
            differs(
                "POST /list/\n\nbody",
                "403",
                "405; allow: GET, HEAD, OPTIONS",
                "405 names the methods",
            ),
            differs(
                "GET /list/.hidden",
                "200; body: h",
                "404; body: own text",
                "files whose names begin with a dot are not served",
            ),
            alike("GET /list/with%20space.txt"),
            alike("GET /list/a%25b%3Fc%23d;e.txt"),
        ],
    },
];
