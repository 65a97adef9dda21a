//! `alias` and `rewrite`: directories and applications below another path.

use super::pair::{Pair, alike, differs};

/// Directories with another path than their name.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "a directory below another path",
        nginx: r"server { listen {listen}; root {files}/site;
            location /assets/ { alias {files}/shared/; }
            location = /logo.txt { alias {files}/shared/a.txt; }
            location /inner/ { rewrite ^/inner/(.*)$ /deep/$1 break; } }",
        kirin: r#"
[[route]]
path = "/"
try = ["files:files/site"]
[[route]]
path = "/assets"
try = ["files:files/shared"]
rewrite = "/"
[[route]]
path = "= /logo.txt"
try = ["files:files/shared"]
rewrite = "/a.txt"
[[route]]
path = "/inner"
try = ["files:files/site"]
rewrite = "/deep"
"#,
        files: &[
            ("site/index.html", "home"),
            ("site/deep/a.txt", "deep"),
            ("site/deep/dir/index.html", "deep index"),
            ("site/assets/hidden.txt", "hidden by the mount"),
            ("shared/a.txt", "shared"),
            ("shared/index.html", "shared index"),
            ("shared/dir/index.html", "shared dir"),
            ("secret.txt", "secret"),
        ],
        requests: &[
            alike("GET /assets/a.txt"),
            alike("GET /assets/"),
            alike("GET /assets"),
            alike("HEAD /assets"),
            alike("GET /assets?a=b"),
            alike("GET /assets/dir"),
            alike("GET /assets/dir/"),
            alike("GET /assets/hidden.txt"),
            alike("GET /assets/none"),
            alike("GET /assets../secret.txt"),
            alike("GET /assets/../secret.txt"),
            alike("GET /assets/..%2fsecret.txt"),
            alike("GET /assets/%2e%2e/secret.txt"),
            alike("GET /assets//a.txt"),
            alike("GET /logo.txt"),
            alike("GET /inner/a.txt"),
            differs(
                "GET /inner/dir",
                "location: /deep/dir/",
                "location: /inner/dir/",
                "Kirin names the path that the client knows; nginx shows the rewritten one",
            ),
            alike("GET /inner/none"),
        ],
    },
    Pair {
        name: "an application below a name of the path",
        nginx: r"server { listen {listen};
            location ~ ^/users/([^/]+)/api(/.*)?$ { proxy_pass http://{echo}/v2/$1$2$is_args$args; }
            location / { return 404; } }",
        kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
host = "upstream"
[[route]]
path = "/users/{id}/api"
try = ["proxy:echo"]
rewrite = "/v2/{id}"
"#,
        files: &[],
        requests: &[
            alike("GET /users/7/api/x?y"),
            alike("GET /users/7/api"),
            alike("GET /users/7/api/"),
            alike("GET /users/7/apis"),
            alike("GET /users/7"),
            differs(
                "GET /users/a%20b/api/x",
                "body: echo got GET /v2/a for {echo}",
                "body: echo got GET /v2/a%20b/x for {echo}",
                "nginx writes a captured part decoded into the request line, where its space ends the target",
            ),
            alike("GET /users/a%2Fb/api/x"),
            differs(
                "GET /users/7/api/a%20b",
                "body: echo got GET /v2/7/a for {echo}",
                "body: echo got GET /v2/7/a%20b for {echo}",
                "nginx writes a captured part decoded into the request line, where its space ends the target",
            ),
            differs(
                "GET /users/7/api/%0d%0aX:y",
                "404; body: own text",
                "200; body: echo got GET /v2/7/%0D%0AX:y for {echo}; x-from: echo",
                "the dot of nginx's expression does not match a line end; Kirin encodes the line end again",
            ),
        ],
    },
];
