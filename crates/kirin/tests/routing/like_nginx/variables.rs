//! Variables in fields, redirects and paths.

use super::pair::{Pair, alike, differs};

const DECODED: &str = "`{query.q}` is decoded, and what no field can have is encoded again";

/// Variables of both.
pub const PAIRS: &[Pair] = &[Pair {
    name: "variables of the request",
    nginx: r#"server { listen {listen}; server_name _; root {files};
            location / {
                add_header X-Host $host; add_header X-Uri $uri; add_header X-Arg $arg_q;
                add_header X-Field $http_x_a; add_header X-Cookie $cookie_c;
                add_header X-Client $remote_addr; add_header X-Scheme $scheme; }
            location /moved { return 301 $scheme://www.$host$uri; }
            location /sites/ { try_files /$host/a.txt =404; }
            location /echo/ { proxy_set_header X-A $host; proxy_set_header X-B ""; proxy_pass http://{echo}/fields/; } }"#,
    kirin: r#"
[[upstream]]
name = "echo"
servers = ["{echo}"]
host = "upstream"
forwarded = "none"
[[route]]
path = "/"
try = ["files:files"]
headers = { X-Host = "{host}", X-Uri = "{path}", X-Arg = "{query.q}", X-Field = "{header.x-a}", X-Cookie = "{cookie.c}", X-Client = "{client}", X-Scheme = "{scheme}" }
[[route]]
path = "/moved"
redirect = "{scheme}://www.{host}{path}"
redirect_status = 301
[[route]]
path = "= /sites/"
try = ["files:files"]
rewrite = "/{host}/a.txt"
[[route]]
path = "/echo"
try = ["proxy:echo"]
rewrite = "/fields"
request_headers = { X-A = "{host}", X-B = "" }
"#,
    files: &[("a.txt", "a"), ("test/a.txt", "of test"), ("b c.txt", "b")],
    requests: &[
        alike("GET /a.txt"),
        alike("GET /a.txt?q=1&r=2"),
        alike("GET /a.txt?r=2"),
        alike("GET /a.txt\nX-A: 1\nCookie: b=1; c=2"),
        differs(
            "GET /a.txt\nX-A: 1\nX-A: 2",
            "x-field: 1",
            "x-field: 1, 2",
            "nginx takes the first line until 1.23, and joins all since then",
        ),
        alike("GET //x/../a.txt"),
        differs(
            "GET /b%20c.txt",
            "x-uri: /b c.txt",
            "x-uri: /b%20c.txt",
            "`{path}` is encoded, so it can stand in a URL",
        ),
        differs("GET /a.txt?q=a%20b+c", "x-arg: a%20b+c", "x-arg: a b c", DECODED),
        differs(
            "GET /a.txt?q=%0d%0aX-Evil:1",
            "x-arg: %0d%0aX-Evil:1",
            "x-arg: %0D%0AX-Evil:1",
            DECODED,
        ),
        alike("GET /a.txt HTTP/1.1\r\nHost: TEST.:80\r\nConnection: close\r\n\r\n"),
        alike("GET /moved/x"),
        differs(
            "GET /moved/x?y",
            "location: http://www.test/moved/x",
            "location: http://www.test/moved/x?y",
            "a redirect keeps the query",
        ),
        differs(
            "GET /moved/%0d%0aX-Evil:1",
            "location: http://www.test/moved/; x-evil: 1",
            "location: http://www.test/moved/%0D%0AX-Evil:1",
            "in nginx `$uri` lets a stranger begin another field",
        ),
        alike("GET /sites/"),
        alike("GET /sites/ HTTP/1.1\r\nHost: other\r\nConnection: close\r\n\r\n"),
        alike("GET /echo/x\nX-B: b"),
    ],
}];
