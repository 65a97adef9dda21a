//! `return`, `rewrite` and `redirect`.

use super::pair::{Pair, alike, differs};

/// Redirects with a rest of the path, and with hostile paths.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "redirects of a whole directory",
        nginx: r"server { listen {listen};
            location /old { rewrite ^/old(/.*)?$ /new$1 permanent; }
            location /tmp { rewrite ^/tmp(/.*)?$ /new$1 redirect; }
            location /root { rewrite ^/root/?(.*)$ /$1 permanent; }
            location /away { rewrite ^/away/?(.*)$ https://example.org/$1 permanent; }
            location = /exact { return 301 /new/exact; }
            location = /exact-query { return 302 /new/exact?x=1; }
            location /whole { return 308 https://example.org$request_uri; }
            location /seeother { return 303 /new; }
            location /keep { return 307 /new; } }",
        kirin: r#"
[[route]]
path = "/old"
redirect = "/new"
redirect_status = 301
[[route]]
path = "/tmp"
redirect = "/new"
redirect_status = 302
[[route]]
path = "/root"
redirect = "/"
redirect_status = 301
[[route]]
path = "/away"
redirect = "https://example.org/"
redirect_status = 301
[[route]]
path = "= /exact"
redirect = "/new/exact"
redirect_status = 301
[[route]]
path = "/whole"
redirect = "https://example.org/whole"
[[route]]
path = "= /seeother"
redirect = "/new"
redirect_status = 303
[[route]]
path = "= /keep"
redirect = "/new"
redirect_status = 307
"#,
        files: &[],
        requests: &[
            alike("GET /old"),
            alike("GET /old/"),
            alike("GET /old/a/b"),
            alike("GET /old/a/b?x=y&z"),
            differs(
                "GET /old/?",
                "location: /new/",
                "location: /new/?",
                "Kirin keeps the question mark of an empty query",
            ),
            alike("HEAD /old/a"),
            alike("POST /old/a\n\nbody"),
            alike("GET /older"),
            alike("GET /tmp/a?x"),
            alike("GET /root/a"),
            alike("GET /root"),
            alike("GET /away/a?x=y"),
            alike("GET /away"),
            alike("GET /exact"),
            differs(
                "GET /exact?a=b",
                "location: /new/exact",
                "location: /new/exact?a=b",
                "Kirin appends the query; `return` does not",
            ),
            alike("GET /exact/more"),
            alike("GET /whole/a?x=y"),
            alike("GET /whole/a%20b"),
            differs(
                "GET /whole/../whole/a",
                "location: https://example.org/whole/../whole/a",
                "location: https://example.org/whole/a",
                "Kirin redirects to the resolved path; `$request_uri` is the path as the client sent it",
            ),
            alike("GET /seeother"),
            alike("POST /keep\n\nbody"),
            alike("GET /old/a%20b"),
            alike("GET /old/%C3%A4"),
            alike("GET /old/a%2Fb"),
            differs(
                "GET /old/a%3Fb%23c",
                "location: /new/a?b%23c",
                "location: /new/a%3Fb%23c",
                "Kirin encodes the question mark again; nginx starts a query with it",
            ),
            alike("GET /old/%25"),
            differs(
                "GET /old/x%0d%0aSet-Cookie:%20a=b",
                "404",
                "301; location: /new/x%0D%0ASet-Cookie:%20a=b",
                "the dot of nginx's expression does not match a line end; Kirin encodes the line end again",
            ),
            differs(
                "GET /old/%0aX",
                "404",
                "301; location: /new/%0AX",
                "the dot of nginx's expression does not match a line end; Kirin encodes the line end again",
            ),
            alike("GET /old//evil.example/"),
            alike("GET /root//evil.example/"),
            alike("GET /root/%2f%2fevil.example/"),
            differs(
                "GET /root/%5cevil.example",
                "location: /\\evil.example",
                "location: /%5Cevil.example",
                "a backslash is encoded, because browsers read it as a slash",
            ),
            differs(
                "GET /root/\\evil.example",
                "location: /\\evil.example",
                "location: /%5Cevil.example",
                "a backslash is encoded, because browsers read it as a slash",
            ),
            alike("GET /away/@evil.example"),
            alike("GET /away//evil.example/%2e%2e/x"),
            alike("GET /old/../../x"),
            alike("GET /old/%2e%2e/secret"),
            differs(
                "GET /old/\"><script>",
                "location: /new/\"><script>",
                "location: /new/%22%3E%3Cscript%3E",
                "characters that are in no URI are encoded",
            ),
        ],
    },
    Pair {
        name: "a site that has moved",
        nginx: r"
            server { listen {listen}; server_name www.example.org; return 301 https://example.org$request_uri; }
            server { listen {listen}; server_name old.example.org; location / { return 302 https://example.org/archive$request_uri; } }
            server { listen {listen} default_server; location / { return 308 https://example.org/; } }",
        kirin: r#"
[[site]]
hosts = ["www.example.org"]
[[site.route]]
path = "/"
redirect = "https://example.org/"
redirect_status = 301
[[site]]
hosts = ["old.example.org"]
[[site.route]]
path = "/"
redirect = "https://example.org/archive"
redirect_status = 302
[[route]]
path = "/"
redirect = "https://example.org/"
"#,
        files: &[],
        requests: &[
            alike("GET /\nHost: www.example.org"),
            alike("GET /a/b?c=d\nHost: www.example.org"),
            differs(
                "GET /a%2Fb\nHost: www.example.org",
                "location: https://example.org/a%2Fb",
                "location: https://example.org/a/b",
                "defect: Kirin writes %2F as a slash, so the target of the redirect names another path",
            ),
            alike("GET /a%20b\nHost: www.example.org"),
            differs(
                "GET /%61\nHost: www.example.org",
                "location: https://example.org/%61",
                "location: https://example.org/a",
                "Kirin redirects to the resolved path; `$request_uri` is the path as the client sent it",
            ),
            differs(
                "GET //a//b\nHost: www.example.org",
                "location: https://example.org//a//b",
                "location: https://example.org/a/b",
                "Kirin redirects to the resolved path; `$request_uri` is the path as the client sent it",
            ),
            differs(
                "GET /a/../b\nHost: www.example.org",
                "location: https://example.org/a/../b",
                "location: https://example.org/b",
                "Kirin redirects to the resolved path; `$request_uri` is the path as the client sent it",
            ),
            alike("GET /?a=b?c\nHost: www.example.org"),
            alike("GET /.@evil.example/\nHost: www.example.org"),
            alike("POST /a\nHost: www.example.org\n\nbody"),
            alike("GET /\nHost: old.example.org"),
            alike("GET /a?b\nHost: old.example.org"),
            alike("GET /\nHost: other.example.org"),
        ],
    },
    Pair {
        name: "redirects with a part of the path",
        nginx: r"server { listen {listen};
            location / { rewrite ^/users/([^/]+)(/.*)?$ /u/$1$2 permanent; return 404; } }",
        kirin: r#"
[[route]]
path = "/users/{id}"
redirect = "/u/{id}"
redirect_status = 301
"#,
        files: &[],
        requests: &[
            alike("GET /users/7"),
            alike("GET /users/7/photos?a=b"),
            alike("GET /users/7/"),
            alike("GET /users/"),
            alike("GET /users/a%20b"),
            alike("GET /users/a%2Fb"),
            alike("GET /users/%2e%2e/x"),
            alike("GET /users/%0d%0a"),
        ],
    },
    Pair {
        name: "a table of old addresses",
        // A table of Kirin is a file; a pair has files below `{files}`.
        nginx: r#"map $request_uri $new {
                /a /one;
                /index.php?id=5 /five;
                /index.php?id=6 /six?x=1;
                ~^/blog(?<rest>/[^?]*)?(?<query>\?.*)?$ /news$rest$query;
                /away https://example.org/;
                /caf%C3%A9 /coffee;
            }
            server { listen {listen};
                if ($new) { return 301 $new; }
                location / { return 404; } }"#,
        kirin: r#"
[[route]]
path = "/"
redirects = "{files}/old-urls.tsv"
redirect_status = 301
"#,
        files: &[(
            "old-urls.tsv",
            "/a\t/one\n/index.php?id=5\t/five\n/index.php?id=6\t/six?x=1\n\
             /blog/*\t/news/*\n/away\thttps://example.org/\n/caf%C3%A9\t/coffee\n",
        )],
        requests: &[
            alike("GET /a"),
            alike("HEAD /a"),
            alike("POST /a\n\nbody"),
            alike("GET /b"),
            alike("GET /a/b"),
            alike("GET /a/"),
            alike("GET /index.php?id=5"),
            alike("GET /index.php?id=6"),
            alike("GET /index.php?id=7"),
            alike("GET /index.php"),
            alike("GET /blog"),
            alike("GET /blog/"),
            alike("GET /blog/a/b?x=y"),
            alike("GET /blogs"),
            alike("GET /away"),
            alike("GET /caf%C3%A9"),
            alike("GET /caf%c3%a9"),
            differs(
                "GET //%61",
                "404",
                "301; location: /one",
                "`$request_uri` is the path as the client sent it; Kirin finds all spellings",
            ),
            differs(
                "GET /A",
                "301; location: /one",
                "404",
                "`map` ignores case; paths of Kirin do not",
            ),
            differs(
                "GET /a?utm_source=x",
                "404",
                "301; location: /one?utm_source=x",
                "`$request_uri` has the query; a line of Kirin without a query is for all queries",
            ),
        ],
    },
];
