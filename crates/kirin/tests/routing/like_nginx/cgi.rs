//! CGI programs: nginx with Debian's fcgiwrap, and `cgi:`.

use super::pair::{Pair, alike, differs};

/// A program that shows its variables and its body.
const SHOW: &str = "#!/bin/sh
printf 'Content-Type: text/plain; charset=utf-8\\r\\n\\r\\n'
for name in REQUEST_METHOD SCRIPT_NAME PATH_INFO QUERY_STRING REQUEST_URI CONTENT_LENGTH CONTENT_TYPE \\
    HTTP_X_A HTTP_PROXY GATEWAY_INTERFACE SERVER_PROTOCOL; do
    eval \"printf '%s=%s ' $name \\\"\\$$name\\\"\"
done
printf 'body='; cat
";

const NO_PROGRAM: &str = "what names no program is missing; fcgiwrap refuses it";

/// Programs of a directory.
pub const PAIRS: &[Pair] = &[Pair {
    name: "CGI programs of a directory",
    nginx: r#"server { listen {listen}; root {files};
            location /bin/ {
                fastcgi_split_path_info ^(/bin/[^/]+)(.*)$;
                include /etc/nginx/fastcgi_params;
                fastcgi_param SCRIPT_FILENAME $document_root$fastcgi_script_name;
                fastcgi_param PATH_INFO $fastcgi_path_info; fastcgi_param HTTP_PROXY "";
                fastcgi_param SERVER_PROTOCOL $server_protocol;
                fastcgi_pass unix:{fcgiwrap}; } }"#,
    kirin: r#"
[[route]]
path = "/bin"
try = ["cgi:files/bin"]
"#,
    files: &[
        ("bin/show", SHOW),
        (
            "bin/teapot",
            "#!/bin/sh\nprintf 'Status: 418 Teapot\\nX-From: cgi\\nContent-Type: text/plain; charset=utf-8\\n\\nteapot'",
        ),
        ("bin/moved", "#!/bin/sh\nprintf 'Location: /elsewhere\\n\\n'"),
        (
            "bin/away",
            "#!/bin/sh\nprintf 'Location: http://other.example/\\nStatus: 301 Moved\\n\\n'",
        ),
        (
            "bin/cookies",
            "#!/bin/sh\nprintf 'Set-Cookie: a=1\\nSet-Cookie: b=2\\nContent-Type: text/plain; charset=utf-8\\n\\nx'",
        ),
        (
            "bin/length",
            "#!/bin/sh\nprintf 'Content-Type: text/plain; charset=utf-8\\nContent-Length: 3\\n\\nabc'",
        ),
        ("bin/empty", "#!/bin/sh\nexit 0"),
        (
            "bin/noise",
            "#!/bin/sh\necho noise >&2\nprintf 'Content-Type: text/plain; charset=utf-8\\n\\nx'",
        ),
        ("bin/plain", "no program"),
    ],
    requests: &[
        alike("GET /bin/show"),
        alike("GET /bin/show/a/b%20c?d=e&f"),
        alike("GET /bin/show/?x"),
        alike("POST /bin/show\nContent-Type: text/x\n\nhello"),
        alike("PUT /bin/show/x\n\nhello"),
        alike("HEAD /bin/show"),
        alike("GET /bin/show\nX-A: 1\nProxy: http://evil.example/"),
        alike("GET /bin/teapot"),
        alike("GET /bin/moved"),
        alike("GET /bin/away"),
        alike("GET /bin/cookies"),
        alike("GET /bin/length"),
        differs(
            "GET /bin/empty",
            "body: An error occurred while reading CGI reply (no response received)",
            "body: own text",
            "both answer 502",
        ),
        alike("GET /bin/noise"),
        differs("GET /bin/none", "403", "404", NO_PROGRAM),
        differs("GET /bin/plain", "403", "404", NO_PROGRAM),
        differs("GET /bin/", "403", "404", NO_PROGRAM),
        differs("GET /bin/;id", "403", "404", NO_PROGRAM),
        differs("GET /bin/show;id", "403", "404", NO_PROGRAM),
    ],
}];
