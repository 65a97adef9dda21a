//! `auth_basic` and `basic_auth`.

use super::pair::{Pair, alike, differs};

/// The passwords: bob has opensesame in bcrypt, six and five have open in SHA-crypt, and apache has
/// open in Apache's MD5.
const USERS: &str = "bob:$2y$08$48biTCX6hLFLuo1X9oacu.C9feoeVL5TxFGhMA0T2i1gjC8TRnAwi
six:$6$saltsalt$FzuFapuf4mrL1gK2UMSe2YAuAxql.reI8Bh1NW5EgkolSbvoQoSsxCRhDyy3gJnJX4zVQkNGbYuOtJKo0enhe0
five:$5$saltsalt$4NEBeCMO9KNtDGCX12S.OqmGJOmVMFPPt4vh0LEuNf.
apache:$apr1$saltsalt$BJ8ZoMQQVmQ9DSUqX7duf.
";

/// Right, wrong, missing and malformed passwords.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "passwords of a file",
        nginx: r#"server { listen {listen}; root {files};
            location /members { auth_basic "the club"; auth_basic_user_file {files}/.users; }
            location /members/open { auth_basic off; }
            location /app { auth_basic "the club"; auth_basic_user_file {files}/.users; proxy_pass http://{echo}; }
            location /both { auth_basic "the club"; auth_basic_user_file {files}/.users; allow 192.0.2.1; deny all; } }"#,
        kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
host = "upstream"
[[site]]
hosts = ["*"]
[[site.route]]
path = "/members"
try = ["files:files"]
basic_auth = "files/.users"
basic_auth_realm = "the club"
[[site.route]]
path = "/members/open"
try = ["files:files"]
[[site.route]]
path = "/app"
try = ["proxy:echo"]
basic_auth = "files/.users"
basic_auth_realm = "the club"
[[site.route]]
path = "/both"
try = ["files:files"]
basic_auth = "files/.users"
basic_auth_realm = "the club"
allow = ["192.0.2.1"]
"#,
        files: &[
            (".users", USERS),
            ("members/a.txt", "secret"),
            ("members/open/a.txt", "open"),
            ("both/a.txt", "both"),
        ],
        requests: &[
            alike("GET /members/a.txt"),
            alike("GET /members/none"),
            alike("HEAD /members/a.txt"),
            alike("POST /members/a.txt\n\nbody"),
            alike("OPTIONS /members/a.txt"),
            alike("GET /members/a.txt\nAuthorization: Basic Ym9iOm9wZW5zZXNhbWU="),
            alike("GET /members/none\nAuthorization: Basic Ym9iOm9wZW5zZXNhbWU="),
            alike("GET /members/a.txt\nAuthorization: basic Ym9iOm9wZW5zZXNhbWU="),
            alike("GET /members/a.txt\nAuthorization: Basic  Ym9iOm9wZW5zZXNhbWU="),
            differs(
                "GET /members/a.txt\nAuthorization: Basic Ym9iOm9wZW5zZXNhbWU",
                "200; body: secret",
                "401; body: own text; www-authenticate: Basic",
                "Kirin requires the padding of base64 (RFC 4648 section 3.2)",
            ),
            alike("GET /members/a.txt\nAuthorization: Basic c2l4Om9wZW4="),
            alike("GET /members/a.txt\nAuthorization: Basic Zml2ZTpvcGVu"),
            alike("GET /members/a.txt\nAuthorization: Basic YXBhY2hlOm9wZW4="),
            alike("GET /members/a.txt\nAuthorization: Basic YXBhY2hlOm9wZQ=="),
            alike("GET /members/a.txt\nAuthorization: Basic Ym9iOndyb25n"),
            alike("GET /members/a.txt\nAuthorization: Basic c2l4Om9wZQ=="),
            alike("GET /members/a.txt\nAuthorization: Basic bm9uZTo="),
            alike("GET /members/a.txt\nAuthorization: Basic Om9wZW4="),
            alike("GET /members/a.txt\nAuthorization: Basic !"),
            alike("GET /members/a.txt\nAuthorization: Basic"),
            alike("GET /members/a.txt\nAuthorization: Bearer x"),
            differs(
                "GET /members/a.txt\nAuthorization: Basic Ym9iOndyb25n\nAuthorization: Basic Ym9iOm9wZW5zZXNhbWU=",
                "400",
                "401; www-authenticate: Basic",
                "nginx refuses two fields as malformed; Kirin asks again",
            ),
            alike("GET /members/open/a.txt"),
            alike("GET /%6dembers/a.txt"),
            alike("GET /members/open/../a.txt"),
            alike("GET /app/x"),
            alike("GET /app/x\nAuthorization: Basic Ym9iOm9wZW5zZXNhbWU="),
            alike("GET /both/a.txt\nAuthorization: Basic Ym9iOm9wZW5zZXNhbWU="),
            alike("GET /both/a.txt"),
        ],
    },
    Pair {
        name: "a page for visitors without a password",
        nginx: r#"server { listen {listen}; root {files};
            error_page 401 /errors/401.html;
            location /errors { etag off; }
            location /members { auth_basic "the club"; auth_basic_user_file {files}/.users; } }"#,
        kirin: r#"
[[site]]
hosts = ["*"]
error_pages = { 401 = "/errors/401.html" }
[[site.route]]
path = "/members"
try = ["files:files"]
basic_auth = "files/.users"
[[site.route]]
path = "/errors"
try = ["files:files"]
"#,
        files: &[
            (".users", USERS),
            ("members/a.txt", "secret"),
            ("errors/401.html", "<p>who are you</p>"),
        ],
        requests: &[
            alike("GET /members/a.txt"),
            alike("HEAD /members/a.txt"),
            alike("POST /members/a.txt\n\nbody"),
            alike("GET /members/a.txt\nAuthorization: Basic c2l4Om9wZW4="),
        ],
    },
];
