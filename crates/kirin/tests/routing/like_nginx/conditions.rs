//! Methods, ranges and conditions of requests for files.

use super::pair::{Pair, alike, differs};

/// A file whose ends are far from each other.
const LONG: &str = "\
01234567890123456789012345678901234567890123456789012345678901234567890123456789\
01234567890123456789012345678901234567890123456789012345678901234567890123456789\
01234567890123456789012345678901234567890123456789012345678901234567890123456789\
01234567890123456789012345678901234567890123456789012345678901234567890123456789\
01234567890123456789012345678901234567890123456789012345678901234567890123456789\
01234567890123456789012345678901234567890123456789012345678901234567890123456789\
";

/// Files, their tags and their times.
pub const PAIRS: &[Pair] = &[Pair {
    name: "methods, conditions and ranges of files",
    nginx: r"server { listen {listen}; root {files}; }",
    kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
"#,
    files: &[
        ("a.txt", "0123456789"),
        ("empty.txt", ""),
        ("a.html", "<p>"),
        ("a.js", "1"),
        ("a.css", "a{}"),
        ("a.json", "1"),
        ("a.svg", "<svg/>"),
        ("a.unknown", "x"),
        ("noext", "x"),
        ("long.txt", LONG),
    ],
    requests: &[
        alike("GET /a.txt"),
        alike("HEAD /a.txt"),
        alike("GET /empty.txt"),
        alike("HEAD /empty.txt"),
        alike("GET /a.html"),
        differs(
            "GET /a.js",
            "content-type: application/javascript; charset=utf-8",
            "content-type: text/javascript; charset=utf-8",
            "RFC 9239 makes text/javascript the type of scripts",
        ),
        alike("GET /a.css"),
        alike("GET /a.json"),
        alike("GET /a.svg"),
        alike("GET /a.unknown"),
        alike("GET /noext"),
        differs(
            "POST /a.txt\n\nbody",
            "",
            "allow: GET, HEAD, OPTIONS",
            "405 must have `Allow` (RFC 9110 section 15.5.6)",
        ),
        differs(
            "PUT /a.txt\n\nbody",
            "",
            "allow: GET, HEAD, OPTIONS",
            "405 must have `Allow` (RFC 9110 section 15.5.6)",
        ),
        differs(
            "DELETE /a.txt",
            "",
            "allow: GET, HEAD, OPTIONS",
            "405 must have `Allow` (RFC 9110 section 15.5.6)",
        ),
        differs(
            "OPTIONS /a.txt",
            "405; body: own text",
            "204; allow: GET, HEAD, OPTIONS; body: ",
            "Kirin answers OPTIONS with the methods that a file has",
        ),
        differs(
            "OPTIONS *",
            "400; body: own text",
            "204; allow: GET, HEAD, OPTIONS; body: ",
            "`OPTIONS *` asks about the server (RFC 9110 section 9.3.7)",
        ),
        differs(
            "PATCH /none\n\nbody",
            "405",
            "404",
            "nginx refuses the method before it looks for the file",
        ),
        alike("GET /a.txt\nIf-None-Match: {etag}"),
        alike("HEAD /a.txt\nIf-None-Match: {etag}"),
        alike("GET /a.txt\nIf-None-Match: W/{etag}"),
        alike("GET /a.txt\nIf-None-Match: \"other\", {etag}"),
        alike("GET /a.txt\nIf-None-Match: \"other\""),
        alike("GET /a.txt\nIf-None-Match: *"),
        alike("GET /none\nIf-None-Match: *"),
        alike("GET /a.txt\nIf-Modified-Since: {modified}"),
        differs(
            "GET /a.txt\nIf-Modified-Since: Fri, 01 Jan 2038 00:00:00 GMT",
            "200; body: 0123456789",
            "304; body: own text",
            "the file has not changed since; nginx wants exactly its time (`if_modified_since exact`)",
        ),
        alike("GET /a.txt\nIf-Modified-Since: Sat, 01 Jan 2000 00:00:00 GMT"),
        alike("GET /a.txt\nIf-Modified-Since: nonsense"),
        alike("GET /a.txt\nIf-None-Match: \"other\"\nIf-Modified-Since: {modified}"),
        alike("GET /a.txt\nIf-Match: {etag}"),
        alike("GET /a.txt\nIf-Match: *"),
        alike("GET /a.txt\nIf-Match: \"other\""),
        alike("GET /a.txt\nIf-Match: W/{etag}"),
        alike("GET /a.txt\nIf-Unmodified-Since: {modified}"),
        alike("GET /a.txt\nIf-Unmodified-Since: Sat, 01 Jan 2000 00:00:00 GMT"),
        alike("GET /a.txt\nRange: bytes=0-3"),
        alike("GET /a.txt\nRange: bytes=4-"),
        alike("GET /a.txt\nRange: bytes=-3"),
        alike("GET /a.txt\nRange: bytes=-30"),
        alike("GET /a.txt\nRange: bytes=5-30"),
        alike("GET /a.txt\nRange: bytes=10-"),
        alike("GET /a.txt\nRange: bytes=-0"),
        differs(
            "GET /a.txt\nRange: bytes=3-1",
            "416; body: own text; content-range: bytes */10",
            "200; body: 0123456789",
            "Kirin ignores a malformed range, as RFC 9110 section 14.2 allows",
        ),
        differs(
            "GET /a.txt\nRange: bytes=a-b",
            "416; body: own text; content-range: bytes */10",
            "200; body: 0123456789",
            "Kirin ignores a malformed range, as RFC 9110 section 14.2 allows",
        ),
        alike("GET /a.txt\nRange: lines=0-1"),
        differs(
            "GET /a.txt\nRange: bytes=0-1,8-9",
            "body: --BOUNDARY / Content-Type: text/plain; charset=utf-8 / Content-Range: bytes 0-1/10 /  / 01 / --BOUNDARY / Content-Type: text/plain; charset=utf-8 / Content-Rang…; content-type: multipart",
            "body: 0123456789; content-range: bytes 0-9/10; content-type: text/plain; charset=utf-8",
            "ranges with a small gap are joined, because the head of a part is longer",
        ),
        differs(
            "GET /a.txt\nRange: bytes=0-5,3-9",
            "200; accept-ranges: bytes",
            "206; content-range: bytes 0-9/10",
            "ranges that overlap are joined, and one range is not multipart",
        ),
        alike("GET /a.txt\nRange: bytes=0-0,20-"),
        alike("GET /long.txt\nRange: bytes=0-1,400-401"),
        alike("GET /long.txt\nRange: bytes=400-401,0-1"),
        differs(
            "GET /a.txt\nRange: bytes=0-,0-,0-,0-",
            "200; accept-ranges: bytes",
            "206; content-range: bytes 0-9/10",
            "ranges that overlap are joined, and one range is not multipart",
        ),
        differs(
            "HEAD /a.txt\nRange: bytes=0-3",
            "206; content-range: bytes 0-3/10; length: 4",
            "200; accept-ranges: bytes; length: 10",
            "range handling is defined for GET only (RFC 9110 section 14.2)",
        ),
        differs(
            "POST /a.txt\nRange: bytes=0-3\n\nbody",
            "",
            "allow: GET, HEAD, OPTIONS",
            "405 must have `Allow` (RFC 9110 section 15.5.6)",
        ),
        differs(
            "GET /empty.txt\nRange: bytes=0-3",
            "200; body: ",
            "416; body: own text; content-range: bytes */0",
            "an empty file has no first byte, so the range is not satisfiable (RFC 9110 section 14.1.2)",
        ),
        alike("GET /a.txt\nRange: bytes=0-3\nIf-Range: {etag}"),
        alike("GET /a.txt\nRange: bytes=0-3\nIf-Range: \"other\""),
        alike("GET /a.txt\nRange: bytes=0-3\nIf-Range: {modified}"),
        alike("GET /a.txt\nRange: bytes=0-3\nIf-Range: Sat, 01 Jan 2000 00:00:00 GMT"),
        alike("GET /a.txt\nRange: bytes=0-3\nIf-None-Match: {etag}"),
        alike("GET /none\nRange: bytes=0-3"),
    ],
}];
