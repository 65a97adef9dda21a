//! Patterns in the paths of routes, and conditions beside them, through the built program.

use kirin_tests::{Client, Kirin, Memcached, Site};

const LISTENER: &str = r#"
threads = 2
[[listener]]
address = "127.0.0.1:0"
[store]
memory = "16MB"
memcached = ["unix:m.sock"]
purge_from = ["127.0.0.1"]
"#;

const APP: &str = r#"
[[app]]
name = "web"
load = "app.psgi"
workers = 1
"#;

/// An application that answers with the path that it sees.
const PSGI: &str = r#"
sub {
    my $env = shift;
    return [200, ['Content-Type' => 'text/plain'], ["app <$env->{SCRIPT_NAME}> <$env->{PATH_INFO}>"]];
};
"#;

/// `bob` with the password `opensesame`.
const MEMBERS: &str = "bob:$2y$08$48biTCX6hLFLuo1X9oacu.C9feoeVL5TxFGhMA0T2i1gjC8TRnAwi\n";
const BOB: &str = "Authorization: Basic Ym9iOm9wZW5zZXNhbWU=\r\n";

fn serve(site: &Site, routes: &str) -> Kirin {
    Kirin::start(site, &format!("{LISTENER}{routes}"))
}

/// Returns a route that has nothing and names itself in each response.
fn named(path: &str, name: &str, keys: &str) -> String {
    // A brace would begin a variable.
    let name = name.replace('{', "{{");
    format!(
        "[[route]]\npath = \"{path}\"\ntry = [\"store\"]\nheaders = {{ X-Route = \"{name}\" }}\n{keys}\n"
    )
}

/// Asserts which route answers each request: method, target, and further field lines.
fn assert_routes(client: &mut Client, cases: &[(&str, &str, &str, Option<&str>)]) {
    for (method, target, fields, route) in cases {
        let reply = client.request(method, target, fields);
        assert_eq!(reply.field("x-route"), *route, "{method} {target} {fields}: {}", reply.head);
    }
}

#[test]
fn the_most_specific_path_answers() {
    let paths = [
        "/",
        "*.pdf",
        "/docs",
        "/docs/*.pdf",
        "/docs/{id}/draft",
        "/users/{id}/avatar",
        "/users/me/avatar",
        "= /docs",
        "= /",
        "= /docs/",
    ];
    let routes: String = paths.iter().map(|path| named(path, path, "")).collect();
    let kirin = serve(&Site::new(), &routes);
    let cases = [
        ("/", "= /"),
        ("/.", "= /"),
        ("/a", "/"),
        ("/a.pdf", "*.pdf"),
        ("/x/y/a.pdf", "*.pdf"),
        ("/a.pdf/x", "/"),
        ("/a.PDF", "/"),
        ("/docs", "= /docs"),
        ("/docs/", "= /docs/"),
        ("/docs/a", "/docs"),
        ("/docs/a/b.pdf", "/docs/*.pdf"),
        ("/docs/7/draft", "/docs/{id}/draft"),
        ("/docs/7/draft/a.pdf", "/docs/{id}/draft"),
        ("/docs//7/%64raft", "/docs/{id}/draft"),
        ("/docs/draft", "/docs"),
        ("/users/7/avatar", "/users/{id}/avatar"),
        ("/users/7/avatar/small", "/users/{id}/avatar"),
        ("/users/me/avatar", "/users/me/avatar"),
        ("/users/7", "/"),
        ("/users/7/a.pdf", "*.pdf"),
    ];
    for (target, route) in cases {
        assert_routes(&mut kirin.connect(), &[("GET", target, "", Some(route))]);
    }
}

#[test]
fn conditions_choose_between_routes_of_one_path() {
    let routes = [
        named("/a", "rest", ""),
        named("/a", "write", "match = { methods = [\"POST\", \"PUT\"] }"),
        named("/a", "beta", "match = { headers = { X-Beta = \"1\", X-Old = false } }"),
        named("/a", "json", "match = { headers = { Accept = \"*json*\" }, methods = [\"GET\"] }"),
        named("/a", "preview", "match = { query = { preview = \"*\" } }"),
        named("/a", "elsewhere", "match = { clients = [\"10.0.0.0/8\", \"unix:\"] }"),
        named("/a/b", "local", "match = { clients = [\"127.0.0.0/8\"], query = { x = \"a b\" } }"),
    ];
    let kirin = serve(&Site::new(), &routes.concat());
    assert_routes(
        &mut kirin.connect(),
        &[
            ("GET", "/a", "", Some("rest")),
            ("POST", "/a", "X-Beta: 1\r\n", Some("write")),
            ("GET", "/a", "x-beta: 2\r\nX-BETA: 1\r\n", Some("beta")),
            ("GET", "/a", "X-Beta: 1\r\nX-Old: \r\n", Some("rest")),
            ("GET", "/a", "X-Beta: 11\r\n", Some("rest")),
            ("GET", "/a", "Accept: text/html, application/json\r\n", Some("json")),
            ("DELETE", "/a", "Accept: application/json\r\n", Some("rest")),
            ("GET", "/a?preview", "", Some("preview")),
            ("GET", "/a/c?x=1&%70review=", "", Some("preview")),
            ("GET", "/a?previews=1", "", Some("rest")),
            ("GET", "/a/b?x=a+b", "", Some("local")),
            ("GET", "/a/b?x=a%20b&x=c", "", Some("local")),
            // The more specific path has no route for this request. The less specific one answers.
            ("GET", "/a/b?x=ab&preview", "", Some("preview")),
            ("GET", "/a/b", "", Some("rest")),
        ],
    );
    // `HEAD` goes with `GET`.
    let head = kirin
        .connect()
        .send("HEAD /a HTTP/1.1\r\nHost: a\r\nAccept: json\r\n\r\n")
        .read_head_reply();
    assert_eq!(head.field("x-route"), Some("json"), "{}", head.head);
}

#[test]
fn a_method_that_no_route_takes_is_answered_405() {
    let routes = [
        named("/a", "read", "match = { methods = [\"GET\"] }"),
        named("/a/b", "write", "match = { methods = [\"POST\"] }"),
        named("/a", "beta", "match = { methods = [\"DELETE\"], headers = { X-Beta = \"1\" } }"),
    ];
    let kirin = serve(&Site::new(), &routes.concat());
    let mut client = kirin.connect();
    for (method, target, fields, status, allow) in [
        ("PUT", "/a", "", 405, Some("GET, HEAD, OPTIONS")),
        ("DELETE", "/a/b", "", 405, Some("GET, HEAD, OPTIONS, POST")),
        ("PUT", "/a", "X-Beta: 1\r\n", 405, Some("DELETE, GET, HEAD, OPTIONS")),
        ("DELETE", "/a", "X-Beta: 1\r\n", 404, None),
        ("OPTIONS", "/a/b", "", 204, Some("GET, HEAD, OPTIONS, POST")),
        ("OPTIONS", "*", "", 204, Some("GET, HEAD, OPTIONS")),
        ("PUT", "/b", "", 404, None),
        ("OPTIONS", "/b", "", 404, None),
    ] {
        let reply = client.request(method, target, fields);
        let found = (reply.status, reply.field("allow"));
        assert_eq!(found, (status, allow), "{method} {target} {fields}: {}", reply.head);
    }
}

#[test]
fn no_spelling_of_a_path_goes_around_its_route() {
    // The open route has the same directory and the same application.
    let open = "[[route]]\npath = \"/\"\ntry = [\"files:public\", \"app:web\"]\n";
    for (pattern, path) in [
        ("/admin", "/admin/page"),
        ("/users/{id}/keys", "/users/seven/keys"),
        ("*.secret", "/some/a.secret"),
        ("/docs/*.pdf", "/docs/x/a.pdf"),
        ("= /exact", "/exact"),
        ("= /deep/{id}", "/deep/exact"),
    ] {
        let site = Site::new().with("app.psgi", PSGI).with("members", MEMBERS);
        let site = site.with(&format!("public{path}"), "secret");
        let protected = format!(
            "[[route]]\npath = \"{pattern}\"\ntry = [\"files:public\", \"app:web\"]\nbasic_auth = \"members\"\n"
        );
        let kirin = serve(&site, &format!("{APP}{open}{protected}"));
        let mut client = kirin.connect();
        assert_eq!(client.request("GET", path, BOB).text(), "secret");
        let below = &path[1..];
        let encoded_letter = format!("/%{:x}{}", below.as_bytes()[0], &below[1..]);
        let authority = kirin.address();
        let same = [
            path.to_owned(),
            format!("{path}?x"),
            format!("/{path}"),
            format!("///{below}"),
            format!("/.{path}"),
            format!("/x/..{path}"),
            format!("/x/y/../..{path}"),
            format!("/x/%2e%2e{path}"),
            format!("/x%2F..%2f{below}"),
            format!("/%2e/{below}"),
            format!("/%2F{below}"),
            encoded_letter,
            format!("/{}", below.replace('/', "%2F")),
            format!("/{}", below.replace('/', "//")),
            format!("/{}", below.replace('/', "/./")),
            format!("/{}", below.replace('.', "%2e")),
            format!("{path}/x/../../{}", path.rsplit('/').next().unwrap()),
            format!("http://{authority}{path}"),
            format!("http://{authority}/x/..{path}"),
        ];
        for target in &same {
            for method in ["GET", "POST"] {
                let reply = client.request(method, target, "");
                assert_eq!(reply.status, 401, "{pattern}: {method} {target}: {}", reply.text());
            }
        }
        // A slash at the end makes another path for an exact route, and for files.
        let is_exact = pattern.starts_with('=');
        for target in ["/", "/.", "%2F", "//", "/x/..", "/%2e"] {
            let reply = client.get(&format!("{path}{target}"));
            assert_ne!(reply.text(), "secret", "{pattern}: {target}");
            assert!(is_exact || reply.status == 401, "{pattern}: {target}: {}", reply.text());
        }
        // These are other paths, or none.
        for target in [
            path.to_uppercase(),
            format!("{path}%00"),
            format!("{path}%"),
            format!("/..{path}"),
            format!("{path}%20"),
            path.replace('/', "%5C"),
            path.replacen('/', "/%252F", 1),
        ] {
            let reply = client.get(&target);
            assert_ne!(reply.text(), "secret", "{pattern}: {target}");
            let path_info = format!("<> <{path}>");
            assert!(!reply.text().contains(&path_info), "{pattern}: {target}: {}", reply.text());
            if reply.status == 400 {
                client = kirin.connect();
            }
        }
    }
}

#[test]
fn names_stay_within_one_segment_of_a_redirect() {
    let kirin = serve(
        &Site::new(),
        r#"
[[route]]
path = "/users/{id}"
redirect = "/u/{id}"
[[route]]
path = "/go/{where}/{what}"
redirect = "https://example.org/{what}-{where}/"
[[route]]
path = "/top/{id}"
redirect = "/{id}"
[[route]]
path = "= /once"
redirect = "/twice"
[[route]]
path = "/pages/*.htm"
redirect = "/html"
"#,
    );
    let mut client = kirin.connect();
    for (target, location) in [
        ("/users/7?a=b", "/u/7?a=b"),
        ("/users/7/x/", "/u/7/x/"),
        ("/users/caf%c3%a9%20%25/x", "/u/caf%C3%A9%20%25/x"),
        ("/users/a%2Fb", "/u/a/b"),
        ("/users/x/%2e%2e/y", "/u/y"),
        ("/users/..%2fusers/z", "/u/z"),
        ("/go/a/b/c", "https://example.org/b-a/c"),
        (
            "/go/%0d%0aSet-Cookie:a/@evil.example",
            "https://example.org/@evil.example-%0D%0ASet-Cookie:a/",
        ),
        ("/top//evil.example", "/evil.example"),
        ("/top/%2F%2Fevil.example", "/evil.example"),
        ("/top/%5Cevil.example", "/%5Cevil.example"),
        ("/top/\\evil.example", "/%5Cevil.example"),
        ("/top/%3Fa%23b", "/%3Fa%23b"),
        ("/once?a", "/twice?a"),
        ("/pages/a/b.htm", "/html/a/b.htm"),
    ] {
        let reply = client.get(target);
        let found = (reply.status, reply.field("location"));
        assert_eq!(found, (308, Some(location)), "{target}: {}", reply.head);
        assert_eq!(reply.field("set-cookie"), None, "{target}");
    }
    assert!(
        ["/once/", "/users/", "/users/..", "/pages/a.html"]
            .iter()
            .all(|target| { client.get(target).status >= 400 })
    );
}

#[test]
fn places_see_what_a_rewrite_makes_of_names() {
    let site = Site::new()
        .with("app.psgi", PSGI)
        .with("public/v2/a b/file.txt", "file")
        .with("public/v2/dir/sub/index.html", "index")
        .with("public/once.txt", "once");
    let kirin = serve(
        &site,
        &format!(
            r#"{APP}
[[route]]
path = "/data/{{id}}"
try = ["store", "files:public"]
rewrite = "/v2/{{id}}"
[[route]]
path = "/wiki/{{name}}"
try = ["app:web"]
rewrite = "/"
[[route]]
path = "/api/{{id}}/keys"
try = ["app:web"]
rewrite = "/keys/{{id}}"
[[route]]
path = "= /robots.txt"
try = ["files:public"]
rewrite = "/once.txt"
[[route]]
path = "/x/*.cgi"
try = ["app:web"]
rewrite = "/"
"#
        ),
    );
    Memcached::connect(&site.path("m.sock")).set("/v2/7/page", b"text/plain\r\nstored");
    let mut client = kirin.connect();
    for (target, expected) in [
        ("/data/7/page", "stored"),
        ("/data/a%20b/file.txt", "file"),
        ("/data/x/../a%20b//file.txt", "file"),
        ("/data/dir/sub/", "index"),
        ("/robots.txt", "once"),
        ("/wiki/Main%20Page/edit", "app </wiki/Main Page> </edit>"),
        ("/wiki/a/", "app </wiki/a> </>"),
        ("/wiki/a", "app </wiki/a> <>"),
        ("/api/7%20/keys/x", "app <> </keys/7 /x>"),
        ("/x/y/a.cgi", "app </x> </y/a.cgi>"),
    ] {
        assert_eq!(client.get(target).text(), expected, "{target}");
    }
    // A name need not be UTF-8.
    assert_eq!(client.get("/wiki/%e9/a").body, b"app </wiki/\xe9> </a>");
    let reply = client.get("/data/dir/sub?q");
    assert_eq!((reply.status, reply.field("location")), (301, Some("/data/dir/sub/?q")));
    assert_eq!(client.get("/robots.txt/").status, 404);
}

#[test]
fn a_page_is_purged_where_a_get_finds_it() {
    let site = Site::new();
    let routes = [
        "[[route]]\npath = \"/a\"\ntry = [\"store\"]\nrewrite = \"/v2\"\nmatch = { methods = [\"GET\"] }\n",
        "[[route]]\npath = \"/\"\ntry = [\"store\"]\n",
    ];
    let kirin = serve(&site, &routes.concat());
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.set("/v2/page", b"text/plain\r\nstored");
    let mut client = kirin.connect();
    assert_eq!(client.get("/a/page").text(), "stored");
    let reply = client.request("PURGE", "/a/page", "");
    assert_eq!(reply.status, 200, "{}", reply.head);
    assert_eq!(client.get("/a/page").status, 404);
}

#[test]
fn a_route_never_serves_the_cached_responses_of_another() {
    let site = Site::new();
    let psgi = r#"
        sub {
            my $path = shift->{PATH_INFO};
            return [200, ['Content-Type' => 'text/plain', 'Cache-Control' => 'max-age=60'], [$path]];
        };
    "#;
    std::fs::write(site.path("app.psgi"), psgi).expect("app.psgi");
    let route = |rewrite: &str, keys: &str| {
        format!(
            "[[route]]\npath = \"/a\"\ntry = [\"app:web\"]\ncache = true\nrewrite = \"{rewrite}\"\n{keys}\n"
        )
    };
    let routes = [
        APP.to_owned(),
        route("/beta", "match = { headers = { X-Beta = \"1\" } }"),
        route("/internal", "match = { clients = [\"10.0.0.0/8\"], query = { q = \"*\" } }"),
        route("/usual", ""),
    ];
    let kirin = serve(&site, &routes.concat());
    let mut client = kirin.connect();
    for round in ["uri-miss", "hit"] {
        for (fields, path) in [("X-Beta: 1\r\n", "/beta/x"), ("", "/usual/x")] {
            let reply = client.request("GET", "/a/x", fields);
            let status = reply.field("cache-status").unwrap_or_default();
            assert_eq!(reply.text(), path, "{fields} {}", reply.head);
            assert!(status.contains(round), "{round} {fields}: {status}");
        }
    }
}

#[test]
fn routes_are_chosen_by_cookie_scheme_and_what_must_not_hold() {
    let site = Site::new();
    let mut site = site;
    for name in ["beta", "secure", "outside", "rest"] {
        site = site.with(&format!("{name}/x"), name);
    }
    let route = |name: &str, condition: &str| {
        format!("[[route]]\npath = \"/\"\ntry = [\"files:{name}\"]\n{condition}\n")
    };
    let config = [
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\ntrusted = [\"127.0.0.1\"]\n"
            .to_owned(),
        route("beta", "match = { cookies = { beta = \"1\" } }"),
        route("secure", "match = { scheme = \"https\" }"),
        route(
            "outside",
            "match = { not = { clients = [\"10.0.0.0/8\"], headers = { \"X-In\" = \"*\" } } }",
        ),
        route("rest", ""),
    ];
    let kirin = Kirin::start(&site, &config.concat());
    for (fields, expected) in [
        ("Cookie: a=b; beta=1\r\nX-Forwarded-Proto: https\r\n", "beta"),
        ("Cookie: beta=2\r\nX-Forwarded-Proto: https\r\n", "secure"),
        ("X-Forwarded-For: 192.0.2.1\r\n", "outside"),
        ("X-Forwarded-For: 10.0.0.1\r\n", "rest"),
        ("X-Forwarded-For: 192.0.2.1\r\nX-In: 1\r\n", "rest"),
    ] {
        let reply = kirin.connect().request("GET", "/x", fields);
        assert_eq!(reply.text(), expected, "{fields}");
    }
}
