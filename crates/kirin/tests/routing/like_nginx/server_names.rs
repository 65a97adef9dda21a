//! Names of servers and hosts of sites.

use super::pair::{Pair, alike, differs};

/// Exact names, wildcards, regular expressions, the default server.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "exact names, wildcards and a default server",
        nginx: r"
            server { listen {listen}; server_name example.org www.example.org; root {files}; add_header X-Site exact always; }
            server { listen {listen}; server_name *.example.org; root {files}; add_header X-Site wildcard always; }
            server { listen {listen}; server_name *.deep.example.org; root {files}; add_header X-Site deep always; }
            server { listen {listen}; server_name xn--mnchen-3ya.de; root {files}; add_header X-Site umlaut always; }
            server { listen {listen} default_server; root {files}; add_header X-Site default always; }",
        kirin: r#"
[[site]]
hosts = ["example.org", "www.example.org"]
headers = { X-Site = "exact" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site]]
hosts = ["*.example.org"]
headers = { X-Site = "wildcard" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site]]
hosts = ["*.deep.example.org"]
headers = { X-Site = "deep" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site]]
hosts = ["münchen.de"]
headers = { X-Site = "umlaut" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site]]
hosts = ["*"]
headers = { X-Site = "default" }
[[site.route]]
path = "/"
try = ["files:files"]
"#,
        files: &[("a.txt", "a")],
        requests: &[
            alike("GET /a.txt\nHost: example.org"),
            alike("GET /a.txt\nHost: EXAMPLE.org"),
            alike("GET /a.txt\nHost: example.org:8080"),
            alike("GET /a.txt\nHost: example.org."),
            alike("GET /a.txt\nHost: example.org.:80"),
            alike("GET /a.txt\nHost: www.example.org"),
            alike("GET /a.txt\nHost: api.example.org"),
            alike("GET /a.txt\nHost: a.b.example.org"),
            alike("GET /a.txt\nHost: x.deep.example.org"),
            alike("GET /a.txt\nHost: deep.example.org"),
            alike("GET /a.txt\nHost: notexample.org"),
            alike("GET /a.txt\nHost: example.org.evil.com"),
            differs(
                "GET /a.txt\nHost: .example.org",
                "200; body: a; x-site: wildcard",
                "400; body: own text",
                "a name with an empty label is not a host",
            ),
            alike("GET /a.txt\nHost: xn--mnchen-3ya.de"),
            alike("GET /a.txt\nHost: XN--MNCHEN-3YA.DE"),
            differs(
                "GET /a.txt\nHost: example%2Eorg",
                "x-site: default",
                "x-site: exact",
                "Kirin decodes a host before it compares it (RFC 3986 section 6.2.2)",
            ),
            alike("GET /a.txt\nHost: 127.0.0.1"),
            alike("GET /a.txt\nHost: [::1]"),
            alike("GET /a.txt\nHost: [::1]:80"),
            alike("GET /a.txt\nHost: a_b.example.org"),
            alike("GET http://www.example.org/a.txt\nHost: other.org"),
            alike("GET http://other.org/a.txt\nHost: www.example.org"),
            alike("GET /none\nHost: api.example.org"),
            alike("GET /a.txt HTTP/1.0\r\n\r\n"),
        ],
    },
    Pair {
        name: "names without a default server",
        nginx: r"
            server { listen {listen}; server_name one.example; root {files}; add_header X-Site one always; }
            server { listen {listen}; server_name two.example; root {files}; add_header X-Site two always; }",
        kirin: r#"
[[site]]
hosts = ["one.example"]
headers = { X-Site = "one" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site]]
hosts = ["two.example"]
headers = { X-Site = "two" }
[[site.route]]
path = "/"
try = ["files:files"]
"#,
        files: &[("a.txt", "a")],
        requests: &[
            alike("GET /a.txt\nHost: one.example"),
            alike("GET /a.txt\nHost: two.example"),
            differs(
                "GET /a.txt\nHost: three.example",
                "200; body: a; x-site: one",
                "421; body: own text",
                "a host that no site has is answered 421; for nginx the first server is the default",
            ),
            differs(
                "GET /a.txt HTTP/1.0\r\n\r\n",
                "200; body: a; x-site: one",
                "421; body: own text",
                "a host that no site has is answered 421; for nginx the first server is the default",
            ),
        ],
    },
    Pair {
        name: "wildcards at both ends and regular expressions",
        nginx: r"
            server { listen {listen}; server_name www.example.org; root {files}; add_header X-Site exact always; }
            server { listen {listen}; server_name ~^www\d*\.; root {files}; add_header X-Site first always; }
            server { listen {listen}; server_name ~^www2\.; root {files}; add_header X-Site second always; }
            server { listen {listen}; server_name *.example.org; root {files}; add_header X-Site start always; }
            server { listen {listen}; server_name www.example.*; root {files}; add_header X-Site end always; }
            server { listen {listen}; server_name www.*; root {files}; add_header X-Site short always; }
            server { listen {listen}; server_name ~^(?<part>a|b)\.Other\.net$; root {files}; add_header X-Site group always; }
            server { listen {listen} default_server; root {files}; add_header X-Site default always; }",
        kirin: r#"
[[site]]
hosts = ["www.example.org"]
headers = { X-Site = "exact" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site]]
name = "first"
hosts = ['~^www\d*\.']
headers = { X-Site = "first" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site]]
name = "second"
hosts = ['~^www2\.']
headers = { X-Site = "second" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site]]
hosts = ["*.example.org"]
headers = { X-Site = "start" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site]]
name = "end"
hosts = ["www.example.*"]
headers = { X-Site = "end" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site]]
name = "short"
hosts = ["www.*"]
headers = { X-Site = "short" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site]]
name = "group"
hosts = ['~^(?<part>a|b)\.Other\.net$']
headers = { X-Site = "group" }
[[site.route]]
path = "/"
try = ["files:files"]
[[site]]
hosts = ["*"]
headers = { X-Site = "default" }
[[site.route]]
path = "/"
try = ["files:files"]
"#,
        files: &[("a.txt", "a")],
        requests: &[
            alike("GET /a.txt\nHost: www.example.org"),
            alike("GET /a.txt\nHost: WWW.example.org:80"),
            alike("GET /a.txt\nHost: api.example.org"),
            alike("GET /a.txt\nHost: www.deep.example.org"),
            alike("GET /a.txt\nHost: www.example.com"),
            alike("GET /a.txt\nHost: www.example.co.uk"),
            alike("GET /a.txt\nHost: www.example"),
            alike("GET /a.txt\nHost: www.other.com"),
            alike("GET /a.txt\nHost: www"),
            alike("GET /a.txt\nHost: WWW7.example.com"),
            alike("GET /a.txt\nHost: www2.test"),
            alike("GET /a.txt\nHost: b.OTHER.net."),
            alike("GET /a.txt\nHost: b.other.net.evil"),
            alike("GET /a.txt\nHost: example.com"),
            alike("GET /a.txt\nHost: 127.0.0.1"),
        ],
    },
    Pair {
        name: "a default server that refuses",
        nginx: r"
            server { listen {listen}; server_name one.example; root {files}; }
            server { listen {listen} default_server; location / { return 421; } }",
        kirin: r#"
[[site]]
hosts = ["one.example"]
[[site.route]]
path = "/"
try = ["files:files"]
"#,
        files: &[("a.txt", "a")],
        requests: &[
            alike("GET /a.txt\nHost: one.example"),
            alike("GET /a.txt\nHost: two.example"),
            alike("GET /none\nHost: two.example"),
            alike("POST /a.txt\nHost: two.example\n\nbody"),
        ],
    },
];
