//! `auth_request`.

use super::pair::{Pair, alike, differs};

const OWN_BODY: &str = "Kirin passes the program's answer on, with its body and fields";

/// Programs that decide who may pass.
pub const PAIRS: &[Pair] = &[Pair {
    name: "another program decides",
    nginx: r#"server { listen {listen}; root {files};
            proxy_pass_request_body off; proxy_set_header Content-Length "";
            location = /auth200 { proxy_pass http://{echo}/status/200; }
            location = /auth299 { proxy_pass http://{echo}/status/299; }
            location = /auth302 { proxy_pass http://{echo}/location/x; }
            location = /auth401 { proxy_pass http://{echo}/status/401; }
            location = /auth403 { proxy_pass http://{echo}/status/403; }
            location = /auth404 { proxy_pass http://{echo}/status/404; }
            location = /auth500 { proxy_pass http://{echo}/status/500; }
            location = /authdead { proxy_pass http://{dead}; }
            location /p200 { auth_request /auth200; try_files /a.txt =404; }
            location /p299 { auth_request /auth299; try_files /a.txt =404; }
            location /p302 { auth_request /auth302; try_files /a.txt =404; }
            location /p401 { auth_request /auth401; try_files /a.txt =404; }
            location /p403 { auth_request /auth403; try_files /a.txt =404; }
            location /p404 { auth_request /auth404; try_files /a.txt =404; }
            location /p500 { auth_request /auth500; try_files /a.txt =404; }
            location /pdead { auth_request /authdead; try_files /a.txt =404; }
            location /body { auth_request /auth200; proxy_pass_request_body on; proxy_set_header Host {echo};
                proxy_pass http://{echo}/; }
            location /denied { auth_request /auth200; deny all; } }"#,
    kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
host = "upstream"
[[upstream]]
name = "dead"
servers = ["{dead}"]
[[route]]
path = "/p200"
try = ["files:files"]
rewrite = "/a.txt"
auth_request = { ask = "proxy:echo", path = "/status/200" }
[[route]]
path = "/p299"
try = ["files:files"]
rewrite = "/a.txt"
auth_request = { ask = "proxy:echo", path = "/status/299" }
[[route]]
path = "/p302"
try = ["files:files"]
rewrite = "/a.txt"
auth_request = { ask = "proxy:echo", path = "/location/x" }
[[route]]
path = "/p401"
try = ["files:files"]
rewrite = "/a.txt"
auth_request = { ask = "proxy:echo", path = "/status/401" }
[[route]]
path = "/p403"
try = ["files:files"]
rewrite = "/a.txt"
auth_request = { ask = "proxy:echo", path = "/status/403" }
[[route]]
path = "/p404"
try = ["files:files"]
rewrite = "/a.txt"
auth_request = { ask = "proxy:echo", path = "/status/404" }
[[route]]
path = "/p500"
try = ["files:files"]
rewrite = "/a.txt"
auth_request = { ask = "proxy:echo", path = "/status/500" }
[[route]]
path = "/pdead"
try = ["files:files"]
rewrite = "/a.txt"
auth_request = "proxy:dead"
[[route]]
path = "/body"
try = ["proxy:echo"]
rewrite = "/"
auth_request = { ask = "proxy:echo", path = "/status/200" }
[[route]]
path = "/denied"
try = ["files:files"]
auth_request = { ask = "proxy:echo", path = "/status/200" }
deny = 403
"#,
    files: &[("a.txt", "secret")],
    requests: &[
        alike("GET /p200"),
        alike("HEAD /p200"),
        alike("GET /p200\nRange: bytes=1-2"),
        alike("GET /p299"),
        differs(
            "GET /p302",
            "500; body: own text",
            "302; body: echo got GET /location/x for {echo}; location: http://{echo}/x; x-from: echo",
            "nginx takes no redirect, so its users turn 401 into one by `error_page`",
        ),
        differs(
            "GET /p401",
            "body: own text",
            "body: echo got GET /status/401 for {echo}; x-from: echo",
            OWN_BODY,
        ),
        differs(
            "GET /p403",
            "body: own text",
            "body: echo got GET /status/403 for {echo}; x-from: echo",
            OWN_BODY,
        ),
        alike("GET /p404"),
        alike("GET /p500"),
        differs("GET /pdead", "500", "502", "the failure of the program is told as what it is"),
        alike("POST /body\n\nhello"),
        alike("GET /denied"),
    ],
}];
