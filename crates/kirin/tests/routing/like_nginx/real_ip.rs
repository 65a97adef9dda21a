//! The client behind proxies: `real_ip` and `trusted`.

use super::pair::{Pair, alike, differs};

/// Trusted proxies, one or all of them.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "X-Forwarded-For of trusted proxies",
        nginx: r"server { listen {listen}; root {files};
            set_real_ip_from 127.0.0.1; set_real_ip_from 10.0.0.0/8; set_real_ip_from 2001:db8:1::/48;
            real_ip_header X-Forwarded-For; real_ip_recursive on;
            location / { allow 192.0.2.0/24; allow 2001:db8:7::/48; deny all; }
            location /local { allow 127.0.0.1; deny all; }
            location /proxies { allow 10.0.0.0/8; deny all; } }",
        kirin: r#"
trusted = ["127.0.0.1", "10.0.0.0/8", "2001:db8:1::/48"]
[[route]]
path = "/"
try = ["files:files"]
allow = ["192.0.2.0/24", "2001:db8:7::/48"]
[[route]]
path = "/local"
try = ["files:files"]
allow = ["127.0.0.1"]
[[route]]
path = "/proxies"
try = ["files:files"]
allow = ["10.0.0.0/8"]
"#,
        files: &[("a.txt", "a"), ("local/a.txt", "local"), ("proxies/a.txt", "proxies")],
        requests: &[
            alike("GET /a.txt"),
            alike("GET /local/a.txt"),
            alike("GET /a.txt\nX-Forwarded-For: 192.0.2.1"),
            alike("GET /local/a.txt\nX-Forwarded-For: 192.0.2.1"),
            alike("GET /a.txt\nX-Forwarded-For: 198.51.100.1"),
            alike("GET /a.txt\nX-Forwarded-For: 192.0.2.1, 10.1.1.1"),
            alike("GET /a.txt\nX-Forwarded-For: 198.51.100.1, 192.0.2.1"),
            alike("GET /a.txt\nX-Forwarded-For: 192.0.2.1, 198.51.100.1"),
            alike("GET /a.txt\nX-Forwarded-For: 192.0.2.1,10.1.1.1,10.2.2.2"),
            alike("GET /a.txt\nX-Forwarded-For: 192.0.2.1\nX-Forwarded-For: 10.1.1.1"),
            alike("GET /a.txt\nX-Forwarded-For: 10.1.1.1\nX-Forwarded-For: 192.0.2.1"),
            alike("GET /a.txt\nX-Forwarded-For: 2001:db8:7::1"),
            alike("GET /a.txt\nX-Forwarded-For: 2001:db8:7::1, 2001:db8:1::9"),
            alike("GET /a.txt\nX-Forwarded-For: [2001:db8:7::1]:4711"),
            alike("GET /a.txt\nX-Forwarded-For: 192.0.2.1:4711"),
            alike("GET /a.txt\nX-Forwarded-For: ::ffff:192.0.2.1"),
            alike("GET /proxies/a.txt\nX-Forwarded-For: 10.1.1.1"),
            alike("GET /proxies/a.txt\nX-Forwarded-For: 10.1.1.1, 10.2.2.2"),
            alike("GET /local/a.txt\nX-Forwarded-For: unknown"),
            alike("GET /local/a.txt\nX-Forwarded-For: "),
            alike("GET /a.txt\nX-Forwarded-For: garbage, 192.0.2.1"),
            alike("GET /proxies/a.txt\nX-Forwarded-For: garbage, 10.1.1.1"),
            alike("GET /a.txt\nX-Real-IP: 192.0.2.1"),
            alike("GET /a.txt\nForwarded: for=192.0.2.1"),
        ],
    },
    Pair {
        name: "X-Real-IP of trusted proxies",
        nginx: r"server { listen {listen}; root {files};
            set_real_ip_from 127.0.0.1; set_real_ip_from 10.0.0.0/8;
            real_ip_header X-Real-IP;
            location / { allow 192.0.2.0/24; allow 2001:db8:7::/48; deny all; }
            location /local { allow 127.0.0.1; deny all; }
            location /proxies { allow 10.0.0.0/8; deny all; } }",
        kirin: r#"
trusted = ["127.0.0.1", "10.0.0.0/8"]
forwarded = "X-Real-IP"
[[route]]
path = "/"
try = ["files:files"]
allow = ["192.0.2.0/24", "2001:db8:7::/48"]
[[route]]
path = "/local"
try = ["files:files"]
allow = ["127.0.0.1"]
[[route]]
path = "/proxies"
try = ["files:files"]
allow = ["10.0.0.0/8"]
"#,
        files: &[("a.txt", "a"), ("local/a.txt", "local"), ("proxies/a.txt", "proxies")],
        requests: &[
            alike("GET /a.txt"),
            alike("GET /local/a.txt"),
            alike("GET /a.txt\nX-Real-IP: 192.0.2.1"),
            alike("GET /local/a.txt\nx-real-ip: 192.0.2.1"),
            alike("GET /a.txt\nX-Real-IP: 198.51.100.1"),
            alike("GET /a.txt\nX-Real-IP: 2001:db8:7::1"),
            alike("GET /a.txt\nX-Real-IP: [2001:db8:7::1]:4711"),
            alike("GET /a.txt\nX-Real-IP: 192.0.2.1:4711"),
            alike("GET /proxies/a.txt\nX-Real-IP: 10.1.1.1"),
            alike("GET /local/a.txt\nX-Real-IP: unknown"),
            alike("GET /local/a.txt\nX-Real-IP: "),
            alike("GET /local/a.txt\nX-Forwarded-For: 192.0.2.1"),
            alike("GET /a.txt\nX-Real-IP: 192.0.2.1\nX-Forwarded-For: 198.51.100.1"),
            differs(
                "GET /a.txt\nX-Real-IP: 198.51.100.1, 192.0.2.1",
                "200; body: a",
                "403; body: own text",
                "the value is one address, not a list: the proxy itself is the client",
            ),
            differs(
                "GET /a.txt\nX-Real-IP: 192.0.2.1\nX-Real-IP: 198.51.100.1",
                "200; body: a",
                "403; body: own text",
                "it is not known which line the proxy has written: the proxy itself is the client",
            ),
        ],
    },
    Pair {
        name: "the client's address in a field of another name",
        nginx: r"server { listen {listen}; root {files};
            set_real_ip_from 127.0.0.1; real_ip_header CF-Connecting-IP;
            location / { allow 192.0.2.0/24; deny all; }
            location /local { allow 127.0.0.1; deny all; } }",
        kirin: r#"
trusted = ["127.0.0.1"]
forwarded = "CF-Connecting-IP"
[[route]]
path = "/"
try = ["files:files"]
allow = ["192.0.2.0/24"]
[[route]]
path = "/local"
try = ["files:files"]
allow = ["127.0.0.1"]
"#,
        files: &[("a.txt", "a"), ("local/a.txt", "local")],
        requests: &[
            alike("GET /a.txt\nCF-Connecting-IP: 192.0.2.1"),
            alike("GET /local/a.txt\nX-Real-IP: 192.0.2.1"),
        ],
    },
    Pair {
        name: "no trusted proxy",
        nginx: r"server { listen {listen}; root {files};
            location / { allow 192.0.2.0/24; deny all; }
            location /local { allow 127.0.0.1; deny all; } }",
        kirin: r#"
[[route]]
path = "/"
try = ["files:files"]
allow = ["192.0.2.0/24"]
[[route]]
path = "/local"
try = ["files:files"]
allow = ["127.0.0.1"]
"#,
        files: &[("a.txt", "a"), ("local/a.txt", "local")],
        requests: &[
            alike("GET /a.txt\nX-Forwarded-For: 192.0.2.1"),
            alike("GET /local/a.txt\nX-Forwarded-For: 192.0.2.1"),
            alike("GET /local/a.txt\nX-Real-IP: 192.0.2.1"),
        ],
    },
    Pair {
        name: "what a backend gets from trusted proxies",
        nginx: r"server { listen {listen}; proxy_http_version 1.1;
            set_real_ip_from 127.0.0.1; real_ip_header X-Forwarded-For; real_ip_recursive on;
            location / { proxy_pass http://{echo}; proxy_set_header Host $http_host;
                proxy_set_header X-Forwarded-For '$http_x_forwarded_for, $realip_remote_addr';
                proxy_set_header X-Forwarded-Proto $http_x_forwarded_proto;
                proxy_set_header X-Forwarded-Host $http_host; } }",
        kirin: r#"
trusted = ["127.0.0.1"]
[[upstream]]
name = "echo"
servers = ["{echo}"]
[[route]]
path = "/"
try = ["proxy:echo"]
"#,
        files: &[],
        requests: &[
            alike("GET /fields\nX-Forwarded-For: 192.0.2.1\nX-Forwarded-Proto: https"),
            alike(
                "GET /fields\nX-Forwarded-For: 192.0.2.1, 198.51.100.1\nX-Forwarded-Proto: https",
            ),
            alike(
                "GET /fields\nX-Forwarded-For: 192.0.2.1\nX-Forwarded-Proto: http\nX-Real-IP: 192.0.2.1",
            ),
        ],
    },
];
