//! The status page on the admin listener and behind a route.

use std::net::SocketAddr;

use kirin_tests::{ADMIN, Client, Kirin, Reply, Site, run_kirin, wait_for};
use serde_json::Value;

const APP: &str = "sub { [200, ['Content-Type' => 'text/plain'], ['ok']] };";

fn config(more: &str) -> String {
    format!(
        r#"
        [[listener]]
        address = "127.0.0.1:0"
        {ADMIN}
        [[app]]
        name = "web"
        load = "app.psgi"
        workers = 2
        [[route]]
        path = "/"
        try = ["app:web"]
        {more}
        "#
    )
}

/// A route with the page; its password is `hemmelig`.
const PROTECTED: &str = r#"
    [[route]]
    path = "/kirin"
    try = ["status"]
    basic_auth = "passwords"
"#;

const PASSWORDS: &str = "frida:$2y$04$0vs0jgbRDwhHvdB8mdfIYeeCAaJ1pisqm5cZGwrxoewkdxBxGKkXK\n";

fn admin_address(kirin: &Kirin) -> SocketAddr {
    wait_for("the admin listener", || {
        let log = kirin.log();
        let (_, rest) = log.split_once("admin on http://")?;
        rest.split_once('/')?.0.parse().ok()
    })
}

fn ask(address: SocketAddr, line: &str, fields: &str) -> Reply {
    let mut client = Client::connect(address);
    client.send(format!("{line} HTTP/1.1\r\nHost: {address}\r\n{fields}\r\n"));
    client.read_reply()
}

#[test]
fn browsers_get_the_page_and_curl_gets_the_text() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, &config(""));
    kirin.get("/memo/1");
    let admin = admin_address(&kirin);
    let text = ask(admin, "GET /", "Accept: */*\r\n");
    assert!(text.text().starts_with("GET /status\n"), "{}", text.text());
    let page = ask(admin, "GET /", "Accept: text/html,*/*;q=0.8\r\nSec-Fetch-Site: none\r\n");
    assert_eq!(page.status, 200);
    assert_eq!(page.field("content-type"), Some("text/html; charset=utf-8"));
    assert_eq!(page.field("cache-control"), Some("no-store"));
    let policy = page.field("content-security-policy").expect("a policy");
    assert!(policy.contains("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
    for part in ["<td>GET /memo/{id}</td>", "<td>app:web</td>", "<th scope=\"col\">request</th>"] {
        assert!(page.text().contains(part), "no {part} in\n{}", page.text());
    }
    for line in ["GET /?json", "GET /top"] {
        let reply = ask(admin, line, "");
        let json: Value = serde_json::from_slice(&reply.body)
            .unwrap_or_else(|error| panic!("{error}: {}", reply.text()));
        assert_eq!(json["live"]["urls"][0]["pattern"], "/memo/{id}", "{line}: {json:#}");
        assert_eq!(json["status"]["pid"], kirin.pid(), "{line}");
    }
    let refused = ask(admin, "GET /", "Accept: text/html\r\nSec-Fetch-Site: cross-site\r\n");
    assert_eq!(refused.status, 403);
    assert_eq!(ask(admin, "POST /top", "Content-Length: 0\r\n").status, 405);
}

#[test]
fn a_hostile_path_is_text_in_the_page() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, &config(""));
    for target in ["/'onclick='x", "/a&lt;b", "/%3Cscript%3Ealert(1)%3C/script%3E", "/{{7*7}}"] {
        kirin.get(target);
    }
    // httparse takes these characters, and so would a log or a page.
    for target in ["/<script>alert(2)</script>", "/\"><img src=x onerror=alert(3)>"] {
        let target = target.replace(' ', "\u{a0}");
        let mut client = kirin.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: x\r\n\r\n"));
        client.read_reply();
    }
    let page = ask(admin_address(&kirin), "GET /", "Accept: text/html\r\n").text();
    assert_eq!(page.matches("<script").count(), 1, "{page}");
    assert!(!page.contains("<img") && !page.contains("'onclick='"), "{page}");
    for part in ["/a&amp;lt;b", "&#39;onclick=&#39;x"] {
        assert!(page.contains(part), "no {part} in\n{page}");
    }
}

#[test]
fn a_route_shows_the_page_to_those_with_a_password() {
    let site = Site::new().with("app.psgi", APP).with("passwords", PASSWORDS);
    let kirin = Kirin::start(&site, &config(PROTECTED));
    let address = kirin.address();
    assert_eq!(ask(address, "GET /kirin", "").status, 401);
    assert_eq!(ask(address, "GET /kirin?json", "").status, 401);
    // frida:hemmelig
    let password = "Authorization: Basic ZnJpZGE6aGVtbWVsaWc=\r\n";
    let page = ask(address, "GET /kirin", password);
    assert!(page.status == 200 && page.text().contains("<h1>Kirin</h1>"), "{}", page.text());
    assert!(page.field("content-security-policy").is_some());
    let json = ask(address, "GET /kirin?json", password);
    assert_eq!(json.field("content-type"), Some("application/json"));
    let mut client = Client::connect(address);
    client.send(format!("HEAD /kirin HTTP/1.1\r\nHost: {address}\r\n{password}\r\n"));
    assert_eq!(client.read_head_reply().status, 200);
    // It is to read only: the path of a purge is one more name of the page.
    for line in ["POST /kirin", "POST /kirin/purge", "DELETE /kirin"] {
        let fields = format!("{password}Content-Length: 0\r\n");
        assert_eq!(ask(address, line, &fields).status, 405, "{line}");
    }
}

#[test]
fn a_status_page_for_everybody_must_be_configured_expressly() {
    for (more, is_good) in [
        ("", false),
        ("basic_auth = false", false),
        ("allow = [\"10.0.0.0/8\"]", true),
        ("allow = [\"0.0.0.0/0\", \"::/0\"]", true),
        ("basic_auth = \"passwords\"", true),
    ] {
        let route = format!("[[route]]\npath = \"/kirin\"\ntry = [\"status\"]\n{more}\n");
        let site = Site::new()
            .with("app.psgi", APP)
            .with("passwords", PASSWORDS)
            .with("kirin.toml", config(&route));
        let output = run_kirin(&site, &["check"]);
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.success(), is_good, "{more}: {text}");
        assert!(is_good || text.contains("add `basic_auth = \"FILE\"` or `allow ="), "{text}");
    }
}

#[test]
fn each_site_has_rows_of_its_own_and_can_be_chosen() {
    let site = Site::new().with("app.psgi", APP);
    let more = |host: &str| {
        format!(
            "[[site]]\nhosts = [\"{host}\"]\n[[site.route]]\npath = \"/\"\ntry = [\"app:web\"]\n"
        )
    };
    let kirin = Kirin::start(&site, &config(&(more("wiki.test") + &more("git.test"))));
    let admin = admin_address(&kirin);
    let html = |target: &str| ask(admin, &format!("GET {target}"), "Accept: text/html\r\n").text();
    let column = "<th scope=\"col\">site</th>";
    kirin.get("/");
    assert!(!html("/").contains(column), "{}", html("/"));
    for host in ["wiki.test", "git.test"] {
        let mut client = kirin.connect();
        client.send(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        client.read_reply();
    }
    for part in [
        column,
        "<td>wiki.test</td><td>app:web</td><td>GET /</td>",
        "<td>git.test</td><td>app:web</td><td>GET /</td>",
        "<td>-</td><td>app:web</td><td>GET /</td>",
    ] {
        // A request is counted a moment after its client has the response.
        wait_for(part, || html("/").contains(part).then_some(()));
    }
    for query in ["site=git.test", "site=git%2etest&x"] {
        let page = html(&format!("/?{query}"));
        assert!(page.contains("<td>git.test</td>") && !page.contains("wiki.test"), "{page}");
    }
    for line in ["GET /?json&site=wiki.test", "GET /top?site=wiki.test"] {
        let json: Value = serde_json::from_slice(&ask(admin, line, "").body).expect(line);
        let urls = json["live"]["urls"].as_array().expect("rows");
        assert!(urls.len() == 1 && urls[0]["site"] == "wiki.test", "{line}: {json:#}");
    }
}
