//! Locations and routes: which one has precedence.

use super::pair::{Pair, alike, differs};

/// Prefixes, exact paths, regular expressions, names.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "prefixes and exact paths",
        nginx: r"server { listen {listen}; root {files};
            add_header X-Route root always;
            location /static { add_header X-Route static always; }
            location /static/deep { add_header X-Route deep always; }
            location = /static/exact.txt { add_header X-Route exact always; }
            location = / { add_header X-Route home always; }
            location /UPPER { add_header X-Route upper always; } }",
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
headers = { X-Route = "root" }
[[route]]
path = "/static"
try = ["files:files"]
headers = { X-Route = "static" }
[[route]]
path = "/static/deep"
try = ["files:files"]
headers = { X-Route = "deep" }
[[route]]
path = "= /static/exact.txt"
try = ["files:files"]
headers = { X-Route = "exact" }
[[route]]
path = "= /"
try = ["files:files"]
headers = { X-Route = "home" }
[[route]]
path = "/UPPER"
try = ["files:files"]
headers = { X-Route = "upper" }
"#,
        files: &[
            ("index.html", "home"),
            ("a.txt", "a"),
            ("static/a.txt", "static a"),
            ("static/exact.txt", "exact"),
            ("static/exact.txt.old/x", "x"),
            ("static/deep/a.txt", "deep a"),
            ("statics/a.txt", "statics a"),
        ],
        requests: &[
            differs(
                "GET /",
                "x-route: root",
                "x-route: home",
                "the index page is part of the route; nginx looks for the location of /index.html",
            ),
            alike("GET /index.html"),
            alike("GET /a.txt"),
            alike("GET /static/a.txt"),
            alike("GET /static/exact.txt"),
            alike("GET /static/exact.txt?a=b"),
            alike("GET /static/exact.txt.old/x"),
            alike("GET /static/exact.txt/"),
            alike("GET /static/deep/a.txt"),
            alike("GET /static/deep/none"),
            differs(
                "GET /static/deeper",
                "x-route: deep",
                "x-route: static",
                "a path of a route matches whole segments",
            ),
            alike("GET /static/none"),
            differs(
                "GET /statics/a.txt",
                "x-route: static",
                "x-route: root",
                "a path of a route matches whole segments",
            ),
            alike("GET /upper/none"),
            alike("GET /UPPER/none"),
            alike("GET /%73tatic/deep/a.txt"),
            alike("GET /static/../a.txt"),
            alike("GET /static/deep/../a.txt"),
            alike("GET //static//deep//a.txt"),
        ],
    },
    Pair {
        name: "regular expressions for file name extensions",
        nginx: r"server { listen {listen}; root {files};
            location / { add_header X-Route root always; }
            location ~ \.pdf$ { add_header X-Route pdf always; }
            location ~* \.(jpg|png)$ { add_header X-Route image always; }
            location /docs { add_header X-Route docs always; }
            location ^~ /raw { add_header X-Route raw always; } }",
        kirin: r##"
[[route]]
path = "/"
try = ["files:files"]
headers = { X-Route = "root" }
[[route]]
path = "*.pdf"
try = ["files:files"]
headers = { X-Route = "pdf" }
[[route]]
path = "*.jpg"
try = ["files:files"]
headers = { X-Route = "image" }
[[route]]
path = "*.png"
try = ["files:files"]
headers = { X-Route = "image" }
[[route]]
path = "/docs"
try = ["files:files"]
headers = { X-Route = "docs" }
[[route]]
path = "/raw"
try = ["files:files"]
headers = { X-Route = "raw" }
"##,
        files: &[
            ("a.pdf", "a"),
            ("a.JPG", "A"),
            ("a.jpg", "a"),
            ("docs/a.pdf", "docs"),
            ("raw/a.pdf", "raw"),
            ("x/y/z.png", "z"),
        ],
        requests: &[
            alike("GET /a.pdf"),
            alike("GET /a.pdf?x=.jpg"),
            alike("GET /a%2Epdf"),
            alike("GET /a.jpg"),
            differs(
                "GET /a.JPG",
                "x-route: image",
                "x-route: root",
                "patterns distinguish upper and lower case",
            ),
            alike("GET /x/y/z.png"),
            differs(
                "GET /docs/a.pdf",
                "x-route: pdf",
                "x-route: docs",
                "a segment that is written out has precedence over a pattern",
            ),
            alike("GET /docs/a.txt"),
            alike("GET /raw/a.pdf"),
            differs(
                "GET /a.pdf/",
                "x-route: root",
                "x-route: pdf",
                "a slash at the end makes no difference to a pattern",
            ),
            alike("GET /.pdf"),
            alike("GET /a.pdf.txt"),
        ],
    },
    Pair {
        name: "a regular expression for one segment",
        nginx: r"server { listen {listen}; root {files};
            location / { add_header X-Route root always; }
            location /users { add_header X-Route users always; }
            location ~ ^/users/[^/]+/avatar(/|$) { add_header X-Route avatar always; }
            location ~ ^/users/[^/]+ { add_header X-Route user always; } }",
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
headers = { X-Route = "root" }
[[route]]
path = "/users"
try = ["files:files"]
headers = { X-Route = "users" }
[[route]]
path = "/users/{id}"
try = ["files:files"]
headers = { X-Route = "user" }
[[route]]
path = "/users/{id}/avatar"
try = ["files:files"]
headers = { X-Route = "avatar" }
"#,
        files: &[("users/7/avatar", "picture")],
        requests: &[
            alike("GET /users/7/avatar"),
            alike("GET /users/8/avatar"),
            alike("GET /users/8/avatar/large"),
            alike("GET /users/8/avatars"),
            alike("GET /users//avatar"),
            alike("GET /users/%2e/avatar"),
            alike("GET /users/a%2Fb/avatar"),
            differs(
                "GET /users/7",
                "301; location: /users/7/",
                "404",
                "Kirin treats a directory without index page and listing as missing, because an application may have the path",
            ),
            differs(
                "GET /users/",
                "403",
                "404",
                "Kirin treats a directory without index page and listing as missing, because an application may have the path",
            ),
            differs(
                "GET /users",
                "301; location: /users/",
                "404",
                "Kirin treats a directory without index page and listing as missing, because an application may have the path",
            ),
        ],
    },
];
