//! Requests that are malformed, or that could be read in two ways.

use super::pair::{Pair, alike, differs};

/// Hosts, request lines and fields. `docs/limits.md` compares many more of them.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "hosts that are malformed",
        nginx: r"server { listen {listen}; root {files}; }",
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
"#,
        files: &[("a.txt", "a")],
        requests: &[
            alike("GET /a.txt HTTP/1.1\r\nConnection: close\r\n\r\n"),
            alike("GET /a.txt HTTP/1.0\r\n\r\n"),
            alike("GET /a.txt HTTP/1.1\r\nHost: a\r\nHost: b\r\nConnection: close\r\n\r\n"),
            alike("GET /a.txt HTTP/1.1\r\nHost: a\r\nHost: a\r\nConnection: close\r\n\r\n"),
            alike("GET /a.txt HTTP/1.1\r\nHost:\r\nConnection: close\r\n\r\n"),
            alike("GET /a.txt\nHost: ."),
            alike("GET /a.txt\nHost: .."),
            alike("GET /a.txt\nHost: ..x"),
            alike("GET /a.txt\nHost: a..b"),
            alike("GET /a.txt\nHost: a b"),
            alike("GET /a.txt\nHost: a/b"),
            alike("GET /a.txt\nHost: a,b"),
            differs(
                "GET /a.txt\nHost: a@b",
                "200; body: a",
                "400; body: own text",
                "user information is not part of a host",
            ),
            differs(
                "GET /a.txt\nHost: a:b",
                "200; body: a",
                "400; body: own text",
                "the port is not a number up to 65,535",
            ),
            alike("GET /a.txt\nHost: a:"),
            differs(
                "GET /a.txt\nHost: a:99999",
                "200; body: a",
                "400; body: own text",
                "the port is not a number up to 65,535",
            ),
            alike("GET /a.txt\nHost: a.."),
            differs(
                "GET /a.txt\nHost: .a",
                "200; body: a",
                "400; body: own text",
                "the first label is empty",
            ),
            alike("GET /a.txt\nHost: [v1.a]"),
            differs(
                "GET /a.txt\nHost: [::1",
                "200; body: a",
                "400; body: own text",
                "the bracket is not closed",
            ),
            differs(
                "GET /a.txt\nHost: [fe80::1%25eth0]",
                "200; body: a",
                "400; body: own text",
                "RFC 3986 allows no zone in an address of IPv6",
            ),
            differs(
                "GET /a.txt\nHost: ünicode.example",
                "200; body: a",
                "400; body: own text",
                "a host beyond ASCII is no `uri-host`",
            ),
            alike("GET /a.txt\nHost: {a*300}"),
            alike("GET http://test/a.txt"),
            alike("GET http://test/a.txt HTTP/1.1\r\nConnection: close\r\n\r\n"),
            differs(
                "GET https://test/a.txt",
                "200; body: a",
                "421; body: own text",
                "a connection without TLS is not for https (RFC 9110 section 7.4)",
            ),
            differs(
                "GET ftp://test/a.txt",
                "200; body: a",
                "400; body: own text",
                "Kirin accepts only targets of http and https",
            ),
            alike("GET http:///a.txt"),
            alike("GET http://user@test/a.txt"),
            alike("GET HTTP://test/a.txt"),
            differs(
                "GET http://test?x",
                "403",
                "404",
                "Kirin treats a directory without index page and listing as missing",
            ),
        ],
    },
    Pair {
        name: "request lines and fields that are malformed",
        nginx: r"server { listen {listen}; root {files}; }",
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
"#,
        files: &[("a.txt", "a")],
        requests: &[
            differs(
                "GET /a.txt\r\n\r\n",
                "no head",
                "400; body: own text",
                "Kirin does not speak HTTP/0.9",
            ),
            differs(
                "GET  /a.txt HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n",
                "200; body: a",
                "400; body: own text",
                "the request line has two spaces",
            ),
            differs(
                "GET /a.txt HTTP/1.2\r\nHost: test\r\nConnection: close\r\n\r\n",
                "200; body: a",
                "505; body: own text",
                "only probes send this version, so Kirin refuses it; RFC 9110 section 2.5 recommends to read it as 1.1",
            ),
            alike("GET /a.txt HTTP/2.0\r\nHost: test\r\nConnection: close\r\n\r\n"),
            differs(
                "GET /a.txt HTTP/0.9\r\nHost: test\r\nConnection: close\r\n\r\n",
                "400",
                "505",
                "505 is the status for a well-formed version that is not supported",
            ),
            alike("GET /a.txt http/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"),
            alike("GET /a b.txt HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"),
            alike("GET a.txt HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n"),
            alike("G@T /a.txt"),
            differs(
                "TRACE /a.txt",
                "405",
                "501",
                "TRACE and CONNECT are not implemented, and 501 says so",
            ),
            differs(
                "CONNECT test:80",
                "400",
                "501",
                "TRACE and CONNECT are not implemented, and 501 says so",
            ),
            differs(
                "OPTIONS *",
                "400; body: own text",
                "204; allow: GET, HEAD, OPTIONS; body: ",
                "`OPTIONS *` asks about the server (RFC 9110 section 9.3.7)",
            ),
            alike("GET *"),
            differs(
                "GET /a.txt HTTP/1.1\nHost: test\nConnection: close\n\r\n\r\n",
                "200; body: a",
                "400; body: own text",
                "a bare LF ends no line",
            ),
            alike("GET /a.txt\nNo colon"),
            alike("GET /a.txt\nSpace : x"),
            alike(
                "GET /a.txt HTTP/1.1\r\nHost: test\r\nX-Folded: a\r\n b\r\nConnection: close\r\n\r\n",
            ),
            alike("GET /a.txt\nX-Nul: a\0b"),
            alike("GET /a.txt\nContent-Length: 1\nContent-Length: 2"),
            alike("GET /a.txt\nTransfer-Encoding: chunked\nContent-Length: 3"),
            differs(
                "GET /a.txt\nTransfer-Encoding: gzip",
                "501",
                "400",
                "without chunked the end of the body is unknown (RFC 9112 section 6.3)",
            ),
            differs(
                "GET /a.txt\nExpect: nonsense",
                "200; body: a",
                "417; body: own text",
                "Kirin cannot meet this expectation",
            ),
            alike("GET /{a*9000}"),
            alike("GET /a.txt?{a*9000}"),
            differs(
                "GET /a.txt\nX-Long: {a*9000}",
                "400; body: own text",
                "200; body: a",
                "Kirin limits the complete head to 32 KB; nginx limits a line to 8 KB",
            ),
            differs("GET /a.txt\nX-Long: {a*40000}", "400", "431", "431 says what is too large"),
        ],
    },
];
