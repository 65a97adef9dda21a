//! Variables in values of the configuration, and what strangers write into them.

use kirin_tests::{Backend, Kirin, Reply, Site};

const ROUTES: &str = r#"
[[route]]
path = "/fields/{id}"
try = ["files:public"]
rewrite = "/"
headers = { "X-All" = "{id}|{host}|{path}|{query.q}|{header.x-a}|{cookie.c}|{client}|{scheme}", "X-Id" = "{request_id}", "X-Json" = '{"group":"a"}', "X-Empty" = "{query.none}", "Link" = '<{scheme}://{host}{path}>; rel="canonical"' }
[[route]]
path = "/to-server/{id}"
try = ["proxy:echo"]
request_headers = { "X-Tenant" = "{host}", "X-Forwarded-User" = "{header.x-user}", "X-Arg" = "{query.q}", "X-Gone" = "", "X-Original-URL" = "{scheme}://{host}{path}" }
[[route]]
path = "/to-app"
try = ["app:env"]
basic_auth = "users"
request_headers = { "Remote-User" = "{user}", "X-Arg" = "{query.q}" }
headers = { "X-User" = "{user}", "X-Path" = "{path}" }
[[route]]
path = "/moved"
redirect = "https://www.{host}{path}"
[[route]]
path = "/sites"
try = ["files:public"]
rewrite = "/tenants/{header.x-site}/pages"
error_pages = { 404 = "/errors/{header.x-site}.html" }
[[route]]
path = "/errors"
try = ["files:public"]
[[route]]
path = "/limited"
try = ["files:public"]
rewrite = "/"
rate_limit = [{ key = "{query.user}{header.x-a}", rate = "1/h", burst = 1 }]
"#;

struct Running {
    kirin: Kirin,
    _echo: Backend,
    _site: Site,
}

fn serve() -> Running {
    let echo = Backend::answering(|asked| {
        format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{}", asked.head.len(), asked.head)
    });
    let site = Site::new()
        .with("public/index.html", "public")
        .with("public/tenants/a/pages/x", "of a")
        .with("public/tenants/a/secret", "secret")
        .with("public/tenants/x", "secret")
        .with("public/pages/x", "secret")
        .with("public/x", "secret")
        .with("public/errors/a.html", "sorry, a")
        .with("users", "bob:$2y$08$48biTCX6hLFLuo1X9oacu.C9feoeVL5TxFGhMA0T2i1gjC8TRnAwi\n")
        .with("env.psgi", "sub { my $env = shift; [200, [], [map { \"$_=\" . ($env->{$_} // '') . \"\\n\" } qw(REMOTE_USER HTTP_REMOTE_USER HTTP_X_ARG)]] }");
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         [[upstream]]\nname = \"echo\"\nservers = [\"{}\"]\n\
         [[app]]\nname = \"env\"\nload = \"env.psgi\"\nworkers = 1\n{ROUTES}",
        echo.address()
    );
    let kirin = Kirin::start(&site, &config);
    Running { kirin, _echo: echo, _site: site }
}

fn ask(running: &Running, target: &str, fields: &str) -> Reply {
    let mut client = running.kirin.connect();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: Shop.Example:80\r\n{fields}\r\n"));
    client.read_reply()
}

#[test]
fn response_fields_have_the_values_of_the_request() {
    let running = serve();
    let reply = ask(&running, "/fields//7/?q=a+b", "X-A: 1\r\nX-A: 2\r\nCookie: c=d\r\n");
    assert_eq!(reply.status, 200, "{}", reply.head);
    assert_eq!(
        reply.field("x-all"),
        Some("7|shop.example|/fields/7/|a b|1, 2|d|127.0.0.1|http"),
        "{}",
        reply.head
    );
    assert_eq!(reply.field("link"), Some("<http://shop.example/fields/7/>; rel=\"canonical\""));
    assert_eq!(reply.field("x-json"), Some("{\"group\":\"a\"}"));
    assert_eq!(reply.field("x-empty"), None, "{}", reply.head);
    assert_eq!(reply.field("x-id").map(str::len), Some(32), "{}", reply.head);
}

#[test]
fn a_stranger_cannot_begin_another_field() {
    let running = serve();
    for attack in ["%0d%0aX-Evil:%201", "%0aX-Evil:1", "%0D", "%00", "a%0d%0a%0d%0abody", "%7f"] {
        let reply = ask(&running, &format!("/fields/{attack}/?q={attack}"), "");
        assert_eq!(reply.field("x-evil"), None, "{attack}: {}", reply.head);
        // Kirin refuses an encoded NUL in a path of a file.
        if reply.status == 200 {
            assert_eq!(reply.text(), "public", "{attack}");
            let value = reply.field("x-all").expect("the field");
            assert!(value.bytes().all(|byte| byte >= b' '), "{value:?}");
        }
        let sent = ask(&running, &format!("/to-server/x?q={attack}"), "").text();
        assert!(!sent.to_ascii_lowercase().contains("\nx-evil"), "{attack}: {sent}");
        assert!(sent.contains("X-Arg: "), "{sent}");
    }
}

#[test]
fn places_get_the_fields_of_the_route_and_not_those_of_the_client() {
    let running = serve();
    let forged = "X-Tenant: other\r\nx_tenant: other\r\nX-Gone: forged\r\nX-Arg: forged\r\nX-User: mari\r\n\
                  X-Forwarded-User: root\r\nX-Original-URL: /admin\r\nConnection: X-Tenant\r\n";
    let sent = ask(&running, "/to-server/7?q=1", forged).text();
    for line in [
        "X-Tenant: shop.example",
        "X-Forwarded-User: mari",
        "X-Arg: 1",
        "X-Original-URL: http://shop.example/to-server/7",
    ] {
        assert_eq!(sent.lines().filter(|other| *other == line).count(), 1, "{line}: {sent}");
    }
    for part in ["other", "forged", "root", "/admin"] {
        assert!(!sent.contains(part), "{part}: {sent}");
    }
    // Without a value the field is removed.
    let sent = ask(&running, "/to-server/7", "X-Arg: forged\r\n").text();
    assert!(!sent.to_ascii_lowercase().contains("x-arg"), "{sent}");
    // The user of a password is known to them.
    let password = "Authorization: Basic Ym9iOm9wZW5zZXNhbWU=\r\nRemote-User: root\r\n";
    // The second time the password is known.
    for _ in 0..2 {
        let reply = ask(&running, "/to-app?q=2", password);
        assert_eq!(reply.text(), "REMOTE_USER=bob\nHTTP_REMOTE_USER=bob\nHTTP_X_ARG=2\n");
        assert_eq!((reply.field("x-user"), reply.field("x-path")), (Some("bob"), Some("/to-app")));
    }
    let refused = ask(&running, "/to-app", "");
    assert_eq!((refused.status, refused.field("x-user")), (401, None));
}

#[test]
fn a_redirect_keeps_path_and_query_on_a_host_made_of_the_own() {
    let running = serve();
    for (target, location) in [
        ("/moved", "https://www.shop.example/moved"),
        ("/moved//a%20b/../c?d=e", "https://www.shop.example/moved/c?d=e"),
        ("/moved/%0d%0aSet-Cookie:a=b", "https://www.shop.example/moved/%0D%0ASet-Cookie:a=b"),
        ("/moved/@evil.example/%5c", "https://www.shop.example/moved/@evil.example/%5C"),
    ] {
        let reply = ask(&running, target, "");
        assert_eq!((reply.status, reply.field("location")), (308, Some(location)), "{target}");
    }
}

#[test]
fn a_path_with_a_value_of_a_stranger_leads_nowhere_else() {
    let running = serve();
    assert_eq!(ask(&running, "/sites/x", "X-Site: a\r\n").text(), "of a");
    for site in [
        "",
        "..",
        ".",
        "../..",
        "../../..",
        "a/..",
        "a/../..",
        "/",
        "a/",
        "%2e%2e",
        "..%2f",
        "a%2f..",
        "a/pages/../..",
        "..\\",
        "a\\..",
        "...",
        "*",
        "a?x=",
        "a#",
        "a;b",
        "//a",
        "a%00",
    ] {
        let reply = ask(&running, "/sites/x", &format!("X-Site: {site}\r\n"));
        assert!(!reply.text().contains("secret"), "{site:?}: {}", reply.text());
        assert_eq!(reply.status, 404, "{site:?}: {}", reply.text());
        let reply = ask(&running, "/sites/secret", &format!("X-Site: {site}\r\n"));
        assert!(!reply.text().contains("secret"), "{site:?}: {}", reply.text());
    }
    // The error page is chosen in the same way.
    let reply = ask(&running, "/sites/none", "X-Site: a\r\n");
    assert_eq!((reply.status, reply.text().as_str()), (404, "sorry, a"));
    let reply = ask(&running, "/sites/none", "X-Site: ../tenants/a/secret\r\n");
    assert!(reply.status == 404 && reply.text().starts_with("404"), "{}", reply.text());
}

#[test]
fn a_rate_is_counted_by_the_values_together() {
    let running = serve();
    let status = |target: &str, fields: &str| ask(&running, target, fields).status;
    assert_eq!(status("/limited/?user=a", "X-A: bc\r\n"), 200);
    assert_eq!(status("/limited/?user=a", "X-A: bc\r\n"), 429);
    assert_eq!(status("/limited/?user=ab", "X-A: c\r\n"), 200, "another pair of values");
    assert_eq!(status("/limited/?user=a", ""), 200);
    assert_eq!(status("/limited/", ""), 200, "without values the address counts");
    assert_eq!(status("/limited/", ""), 429);
}

#[test]
fn the_cache_keeps_responses_to_other_values_apart() {
    let echo = Backend::answering(|asked| {
        let tenant = asked.field("x-tenant").unwrap_or("none");
        let body = format!("{} of {tenant}", asked.target());
        format!(
            "HTTP/1.1 200 OK\r\nCache-Control: public, max-age=60\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        )
    });
    let site = Site::new();
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\npurge_from = [\"127.0.0.1\"]\n\
         [[upstream]]\nname = \"echo\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/path\"\ntry = [\"proxy:echo\"]\nrewrite = \"/t/{{header.x-key}}\"\ncache = true\n\
         [[route]]\npath = \"/field\"\ntry = [\"proxy:echo\"]\ncache = {{ cookies = \"ignore\" }}\n\
         request_headers = {{ X-Tenant = \"{{cookie.tenant}}\" }}\n\
         [[route]]\npath = \"/{{id}}/host\"\ntry = [\"proxy:echo\"]\nrewrite = \"/{{host}}/{{id}}\"\ncache = true\n",
        echo.address()
    );
    let kirin = Kirin::start(&site, &config);
    let get = |target: &str, fields: &str| {
        let reply = kirin.connect().request("GET", target, fields);
        let status = reply.field("cache-status").unwrap_or_default().to_owned();
        (reply.text(), status.contains("; hit"))
    };
    for (target, name) in [("/path/x", "X-Key: "), ("/field/x", "Cookie: tenant=")] {
        let field = |value: &str| format!("{name}{value}\r\n");
        let [of_a, of_b] = ["a", "b"].map(|value| get(target, &field(value)));
        assert_ne!(of_a.0, of_b.0, "{target}");
        assert!(!of_a.1 && !of_b.1, "{target}");
        assert_eq!(get(target, &field("a")), (of_a.0, true), "{target}");
        assert_eq!(get(target, &field("b")), (of_b.0, true), "{target}");
        // A purge of the target reaches all of them.
        assert_eq!(kirin.connect().request("PURGE", target, "").status, 200);
        assert!(!get(target, &field("a")).1 && !get(target, &field("b")).1, "{target}");
    }
    // What is in the target is in the key already.
    assert!(!get("/7/host/x", "").1 && get("/7/host/x", "").1);
}
