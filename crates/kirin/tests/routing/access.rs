//! `deny`, `allow` and `maintenance` of a route, through the built program.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use kirin_tests::{Http2Client, Kirin, Memcached, Reply, Site};

const LISTENERS: &str = r#"
threads = 1
[[listener]]
address = "127.0.0.1:0"
trusted = ["127.0.0.1", "unix:"]
[[listener]]
address = "unix:web.sock"
[store]
memory = "16MB"
memcached = ["unix:m.sock"]
"#;

const OFFICE: &str = "X-Forwarded-For: 10.1.2.3\r\n";
const OFFICE_V6: &str = "X-Forwarded-For: 2001:db8::7\r\n";
const ELSEWHERE: &str = "X-Forwarded-For: 192.0.2.1\r\n";

fn serve(site: &Site, routes: &str) -> Kirin {
    Kirin::start(site, &format!("{LISTENERS}{routes}"))
}

fn ask(kirin: &Kirin, target: &str, fields: &str) -> Reply {
    kirin.connect().request("GET", target, fields)
}

/// Returns the status that a client of the unix socket gets.
fn status_by_unix_socket(site: &Site, target: &str) -> u16 {
    let mut stream = UnixStream::connect(site.path("web.sock")).expect("a connection");
    let request = format!("GET {target} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut reply = String::new();
    stream.read_to_string(&mut reply).expect("a response");
    reply.get(9..12).and_then(|status| status.parse().ok()).unwrap_or_else(|| panic!("{reply}"))
}

#[test]
fn a_route_serves_the_clients_that_it_allows() {
    let site = Site::new().with("public/x", "hello").with("public/a/x", "hello");
    let mut routes = String::from("[[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\"]\n");
    let rows: [(&str, &str, [u16; 4]); 8] = [
        ("/a", "", [200; 4]),
        ("/b", "deny = 403", [403; 4]),
        ("/c", "deny = 404", [404; 4]),
        ("/d", "allow = [\"10.0.0.0/8\"]", [200, 403, 403, 403]),
        ("/e", "allow = [\"10.0.0.0/8\", \"2001:db8::/32\"]\ndeny = 404", [200, 200, 404, 404]),
        ("/f", "allow = [\"unix:\"]", [403, 403, 403, 200]),
        ("/g", "maintenance = { allow = [\"10.1.2.3\"] }", [200, 503, 503, 503]),
        (
            "/h",
            "allow = [\"10.0.0.0/8\", \"2001:db8::/32\"]\nmaintenance = { allow = [\"2001:db8::7\"] }",
            [503, 200, 403, 403],
        ),
    ];
    for (path, keys, _) in &rows {
        routes.push_str(&format!(
            "[[route]]\npath = \"{path}\"\ntry = [\"files:public\"]\nrewrite = \"/\"\n{keys}\n"
        ));
    }
    let kirin = serve(&site, &routes);
    for (path, keys, expected) in &rows {
        let target = format!("{path}/x");
        let by_tcp = [OFFICE, OFFICE_V6, ELSEWHERE].map(|by| ask(&kirin, &target, by).status);
        let found = [by_tcp[0], by_tcp[1], by_tcp[2], status_by_unix_socket(&site, &target)];
        assert_eq!(&found, expected, "{keys}: IPv4, IPv6, another, unix");
        // Other ways to write the path lead to the same route.
        let encoded = format!("/z/..//%{:x}/x", path.as_bytes()[1]);
        assert_eq!(ask(&kirin, &encoded, ELSEWHERE).status, expected[2], "{encoded}");
    }
    // The other routes are as they were.
    assert_eq!(ask(&kirin, "/x", ELSEWHERE).status, 200);
}

#[test]
fn a_refusal_has_the_fields_and_the_error_page_of_its_route() {
    let site = Site::new()
        .with("public/errors/403.html", "<p>for members of the office</p>")
        .with("public/errors/404.html", "<p>nothing here</p>");
    let pages = "error_pages = { 403 = \"/errors/403.html\", 404 = \"/errors/404.html\" }\n\
                 headers = { \"X-Frame-Options\" = \"DENY\" }\n";
    let kirin = serve(
        &site,
        // The page of an error is shown even if its own route refuses its path.
        &format!(
            "[[route]]\npath = \"/errors\"\ntry = [\"files:public\"]\ndeny = 404\n\
             [[route]]\npath = \"/closed\"\ndeny = 404\n{pages}\
             [[route]]\npath = \"/office\"\ntry = [\"files:public\"]\nallow = [\"10.0.0.0/8\"]\n{pages}"
        ),
    );
    for (target, status, text) in [
        ("/closed/x", 404, "<p>nothing here</p>"),
        ("/office/x", 403, "<p>for members of the office</p>"),
    ] {
        let reply = ask(&kirin, target, "");
        assert_eq!((reply.status, reply.text().as_str()), (status, text), "{target}");
        assert_eq!(reply.field("x-frame-options"), Some("DENY"), "{target}");
        let head = kirin.connect().request("HEAD", target, "");
        let length = text.len().to_string();
        assert_eq!((head.status, head.field("content-length")), (status, Some(&length[..])));
        let reply = Http2Client::connect(kirin.address()).get(target);
        assert_eq!((reply.status, reply.text().as_str()), (status, text), "{target}");
    }
    assert_eq!(ask(&kirin, "/errors/404.html", "").status, 404);
    // The connection serves on after a request whose body nobody wants.
    let mut client = kirin.connect();
    let reply = client.post("/closed/x", "text/plain", b"GET /office/x HTTP/1.1\r\n\r\n");
    assert_eq!(reply.status, 404);
    assert_eq!(client.get("/office/x").status, 403);
}

#[test]
fn clients_of_a_route_in_maintenance_get_its_page() {
    let site = Site::new()
        .with("public/errors/sorry.html", "<p>back soon</p>")
        .with("public/errors/5xx.html", "<p>an error</p>")
        .with("public/x", "hello");
    let route = |path: &str, keys: &str| {
        format!("[[route]]\npath = \"{path}\"\ntry = [\"store\", \"files:public\"]\n{keys}\n")
    };
    let page = "page = \"/errors/sorry.html\"";
    let kirin = serve(
        &site,
        &[
            route("/", ""),
            route("/file", &format!("maintenance = {{ {page}, retry_after = \"2h\" }}")),
            route("/stored", "maintenance = { page = \"/errors/stored.html\" }"),
            route("/plain", "maintenance = true"),
            route("/class", "maintenance = true\nerror_pages = { 5xx = \"/errors/5xx.html\" }"),
            route("/gone", "maintenance = { page = \"/errors/gone.html\" }"),
            route(
                "/testers",
                &format!("rewrite = \"/\"\nmaintenance = {{ {page}, allow = [\"10.0.0.0/8\"] }}"),
            ),
        ]
        .concat(),
    );
    let mut store = Memcached::connect(&site.path("m.sock"));
    store.set("/errors/stored.html", b"text/html\r\n<p>at <!--# echo var=\"request_uri\" --></p>");
    for (target, text, seconds) in [
        ("/file/x", "<p>back soon</p>", "7200"),
        ("/stored/x?y", "<p>at /stored/x?y</p>", "600"),
        ("/plain", "503 Service Unavailable\nRequest id: ", "600"),
        ("/class", "<p>an error</p>", "600"),
        ("/gone", "503 Service Unavailable\nRequest id: ", "600"),
        ("/testers/x", "<p>back soon</p>", "600"),
    ] {
        let reply = ask(&kirin, target, ELSEWHERE);
        assert!(reply.status == 503 && reply.text().starts_with(text), "{target}: {reply:?}");
        assert_eq!(reply.field("retry-after"), Some(seconds), "{target}: {}", reply.head);
    }
    let reply = ask(&kirin, "/testers/x", OFFICE);
    assert_eq!((reply.status, reply.text().as_str()), (200, "hello"));
}
