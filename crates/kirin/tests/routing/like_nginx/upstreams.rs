//! Servers that fail, backup servers, and the next server.

use super::pair::{Pair, alike, differs};

/// Failures of one server, and of one of several.
pub const PAIRS: &[Pair] = &[
    Pair {
        name: "failures of the only server",
        nginx: r"server { listen {listen};
            location / { proxy_pass http://{broken}; proxy_read_timeout 100ms; }
            location /dead { proxy_pass http://{dead}; } }",
        kirin: r#"
[[upstream]]
name = "broken"
servers = ["{broken}"]
host = "upstream"
first_byte_timeout = "1s"
[[upstream]]
name = "dead"
servers = ["{dead}"]
[[route]]
path = "/"
try = ["proxy:broken"]
[[route]]
path = "/dead"
try = ["proxy:dead"]
"#,
        files: &[],
        requests: &[
            alike("GET /dead"),
            alike("HEAD /dead"),
            alike("POST /dead\n\nbody"),
            alike("GET /closes"),
            alike("POST /closes\n\nbody"),
            alike("GET /early"),
            differs(
                "GET /garbage",
                "no head",
                "502; body: own text",
                "nginx takes bytes without a status line for HTTP/0.9",
            ),
            alike("GET /cut"),
            alike("GET /silent"),
            alike("GET /fine"),
        ],
    },
    Pair {
        name: "backup servers",
        nginx: r"
            upstream backed { server {dead}; server {echo} backup; }
            upstream unneeded { server {echo}; server {second} backup; }
            upstream down { server {dead}; server {dead} backup; }
            server { listen {listen};
                location /backed { proxy_pass http://backed; }
                location /unneeded { proxy_pass http://unneeded; }
                location /down { proxy_pass http://down; } }",
        kirin: r#"
[[upstream]]
name = "backed"
servers = ["{dead}", { address = "{echo}", backup = true }]
host = "backed"
[[upstream]]
name = "unneeded"
servers = ["{echo}", { address = "{second}", backup = true }]
host = "unneeded"
[[route]]
path = "/backed"
try = ["proxy:backed"]
[[route]]
path = "/unneeded"
try = ["proxy:unneeded"]
"#,
        files: &[],
        requests: &[
            alike("GET /backed"),
            alike("GET /backed"),
            alike("POST /backed\n\nbody"),
            alike("GET /unneeded"),
            alike("GET /unneeded"),
        ],
    },
    Pair {
        name: "the next server after a failure",
        nginx: r"
            upstream mixed { server {dead} max_fails=2 fail_timeout=60s; server {echo}; }
            upstream closing { server {broken} max_fails=1 fail_timeout=60s; server {echo}; }
            server { listen {listen};
                location /mixed { proxy_pass http://mixed; }
                location /closes { proxy_pass http://closing; }
                location /status/ { proxy_pass http://mixed; } }",
        kirin: r#"
[[upstream]]
name = "mixed"
servers = ["{dead}", "{echo}"]
host = "mixed"
max_failures = 2
ejection_time = "1m"
[[upstream]]
name = "closing"
servers = ["{broken}", "{echo}"]
host = "closing"
max_failures = 1
ejection_time = "1m"
[[route]]
path = "/mixed"
try = ["proxy:mixed"]
[[route]]
path = "/closes"
try = ["proxy:closing"]
[[route]]
path = "/status"
try = ["proxy:mixed"]
"#,
        files: &[],
        requests: &[
            alike("GET /mixed"),
            alike("GET /mixed"),
            alike("POST /mixed\n\nbody"),
            alike("POST /mixed\n\nbody"),
            alike("GET /status/503"),
            alike("POST /closes\n\nbody"),
            alike("GET /closes"),
            alike("GET /closes"),
        ],
    },
    Pair {
        name: "servers in turn",
        nginx: r"
            upstream turns { server {echo}; server {second}; }
            upstream weighted { server {echo} weight=2; server {second}; }
            upstream refused { server {echo} down; server {second}; }
            server { listen {listen}; proxy_set_header Host $http_host;
                location /turns { proxy_pass http://turns; }
                location /weighted { proxy_pass http://weighted; }
                location /refused { proxy_pass http://refused; } }",
        kirin: r#"
[[upstream]]
name = "turns"
servers = ["{echo}", "{second}"]
[[upstream]]
name = "weighted"
servers = [{ address = "{echo}", weight = 2 }, "{second}"]
[[upstream]]
name = "refused"
servers = ["{second}"]
[[route]]
path = "/turns"
try = ["proxy:turns"]
[[route]]
path = "/weighted"
try = ["proxy:weighted"]
[[route]]
path = "/refused"
try = ["proxy:refused"]
"#,
        files: &[],
        requests: &[
            alike("GET /turns"),
            alike("GET /turns"),
            alike("GET /turns"),
            alike("GET /weighted"),
            alike("GET /weighted"),
            alike("GET /weighted"),
            alike("GET /weighted"),
            alike("GET /refused"),
            alike("GET /refused"),
        ],
    },
];
