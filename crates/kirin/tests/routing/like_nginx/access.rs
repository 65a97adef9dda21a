//! `allow`, `deny` and methods that a location refuses.

use super::pair::{Pair, alike, differs};

/// Clients and methods that are refused.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "clients that are refused",
        nginx: r"server { listen {listen}; root {files};
            location /nobody { deny all; }
            location /gone { return 404; }
            location /local { allow 127.0.0.0/8; deny all; }
            location /others { deny 127.0.0.1; }
            location /elsewhere { allow 192.0.2.0/24; allow 2001:db8::/32; deny all; }
            location /elsewhere/free { allow all; } }",
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
[[route]]
path = "/nobody"
deny = 403
[[route]]
path = "/gone"
deny = 404
[[route]]
path = "/local"
try = ["files:files"]
allow = ["127.0.0.0/8"]
[[route]]
path = "/elsewhere"
try = ["files:files"]
allow = ["192.0.2.0/24", "2001:db8::/32"]
[[route]]
path = "/elsewhere/free"
try = ["files:files"]
"#,
        files: &[
            ("nobody/a.txt", "nobody"),
            ("gone/a.txt", "gone"),
            ("local/a.txt", "local"),
            ("elsewhere/a.txt", "elsewhere"),
            ("elsewhere/free/a.txt", "free"),
        ],
        requests: &[
            alike("GET /nobody/a.txt"),
            alike("GET /nobody/none"),
            alike("HEAD /nobody/a.txt"),
            alike("POST /nobody/a.txt\n\nbody"),
            alike("OPTIONS /nobody/a.txt"),
            alike("GET /gone/a.txt"),
            alike("GET /local/a.txt"),
            alike("GET /local/none"),
            alike("GET /elsewhere/a.txt"),
            alike("GET /elsewhere/free/a.txt"),
            alike("GET /elsewhere/free/../a.txt"),
            alike("GET /elsewhere/%66ree/../a.txt"),
            alike("GET //elsewhere//a.txt"),
            alike("GET /%65lsewhere/a.txt"),
        ],
    },
    Pair {
        name: "methods that are refused",
        nginx: r"server { listen {listen};
            location /read { limit_except GET { deny all; } proxy_pass http://{echo}; }
            location /write { limit_except POST PUT { deny all; } proxy_pass http://{echo}; }
            location /any { proxy_pass http://{echo}; } }",
        kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
host = "upstream"
[[route]]
path = "/read"
try = ["proxy:echo"]
match = { methods = ["GET"] }
[[route]]
path = "/write"
try = ["proxy:echo"]
match = { methods = ["POST", "PUT"] }
[[route]]
path = "/any"
try = ["proxy:echo"]
"#,
        files: &[],
        requests: &[
            alike("GET /read"),
            alike("HEAD /read"),
            differs(
                "POST /read\n\nbody",
                "403",
                "405; allow: GET, HEAD, OPTIONS",
                "405 names the methods that the path has; `limit_except` refuses with 403",
            ),
            differs(
                "OPTIONS /read",
                "403; body: own text",
                "204; allow: GET, HEAD, OPTIONS; body: ",
                "Kirin answers OPTIONS with the methods that the path has",
            ),
            alike("POST /write\n\nbody"),
            alike("PUT /write\n\nbody"),
            differs(
                "GET /write",
                "403",
                "405; allow: OPTIONS, POST, PUT",
                "405 names the methods that the path has; `limit_except` refuses with 403",
            ),
            alike("DELETE /any"),
            alike("PATCH /any\n\nbody"),
            alike("OPTIONS /any"),
            alike("PROPFIND /any"),
            alike("BREW /any"),
            differs(
                "get /any",
                "400; body: own text",
                "200; body: echo got get /any for {echo}; x-from: echo",
                "a method is case-sensitive, so this is another one, and a backend may know it",
            ),
            differs(
                "TRACE /any",
                "405",
                "501",
                "TRACE and CONNECT are not implemented, and 501 says so",
            ),
            differs(
                "CONNECT /any",
                "405",
                "501",
                "TRACE and CONNECT are not implemented, and 501 says so",
            ),
        ],
    },
    Pair {
        name: "which rule is asked first",
        nginx: r#"
            limit_req_zone $binary_remote_addr zone=order1:1m rate=1r/m;
            limit_req_zone $binary_remote_addr zone=order2:1m rate=1r/m;
            server { listen {listen}; root {files};
                location /moved { deny all; return 301 /new; }
                location /private { auth_basic "the club"; auth_basic_user_file {files}/.users; return 301 /new; }
                location /guessed { auth_basic "the club"; auth_basic_user_file {files}/.users;
                    limit_req zone=order1 burst=1 nodelay; }
                location /counted { deny all; limit_req zone=order2 burst=1 nodelay; }
                location /large { auth_basic "the club"; auth_basic_user_file {files}/.users;
                    client_max_body_size 3; proxy_pass http://{echo}; }
                location /denied { deny all; client_max_body_size 3; proxy_pass http://{echo}; }
                location /file { client_max_body_size 3; } }"#,
        kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
[[site]]
hosts = ["*"]
[[site.route]]
path = "= /moved"
redirect = "/new"
redirect_status = 301
deny = 403
[[site.route]]
path = "= /private"
redirect = "/new"
redirect_status = 301
basic_auth = "files/.users"
[[site.route]]
path = "/guessed"
try = ["files:files"]
basic_auth = "files/.users"
rate_limit = [{ rate = "1/m", burst = 2 }]
[[site.route]]
path = "/counted"
try = ["files:files"]
deny = 403
rate_limit = [{ rate = "1/m", burst = 2 }]
[[site.route]]
path = "/large"
try = ["proxy:echo"]
basic_auth = "files/.users"
body_limit = "3B"
[[site.route]]
path = "/denied"
try = ["proxy:echo"]
deny = 403
body_limit = "3B"
[[site.route]]
path = "/file"
try = ["files:files"]
body_limit = "3B"
"#,
        files: &[
            (".users", "nobody:$5$saltsalt$4NEBeCMO9KNtDGCX12S.OqmGJOmVMFPPt4vh0LEuNf.\n"),
            ("file/a.txt", "a"),
        ],
        requests: &[
            differs(
                "GET /moved",
                "301; location: /new",
                "403",
                "`deny` comes before `redirect`; nginx carries out `return` before it looks at clients",
            ),
            alike("GET /private"),
            alike("GET /guessed/a\nAuthorization: Basic Ym9iOndyb25n"),
            alike("GET /guessed/a\nAuthorization: Basic Ym9iOndyb25n"),
            differs(
                "GET /guessed/a\nAuthorization: Basic Ym9iOndyb25n",
                "503",
                "429; retry-after: present",
                "429 is the status for this (RFC 6585), and `Retry-After` says when to come again",
            ),
            alike("GET /counted/a"),
            alike("GET /counted/a"),
            differs(
                "GET /counted/a",
                "503",
                "403",
                "a client that is denied does not count for `rate_limit`",
            ),
            differs(
                "POST /large\n\nbody",
                "413",
                "401; www-authenticate: Basic",
                "Kirin asks for the password before it looks at the body",
            ),
            differs(
                "POST /denied\n\nbody",
                "413",
                "403",
                "`deny` comes before the limit of the body",
            ),
            differs(
                "POST /file/a.txt\n\nbody",
                "413",
                "405; allow: GET, HEAD, OPTIONS",
                "`files:` refuses the method with 405 and `Allow` and does not read the body",
            ),
            differs(
                "POST /file/a.txt\n\nbo",
                "",
                "allow: GET, HEAD, OPTIONS",
                "`files:` refuses the method with 405 and `Allow` and does not read the body",
            ),
            differs(
                "GET /file/a.txt\n\nbody",
                "413; body: own text",
                "200; body: a",
                "Kirin reads and drops a body that no place takes, so `body_limit` does not refuse it",
            ),
        ],
    },
];
