//! `kirin maintenance`: an operator holds sites and routes while Kirin runs.

use kirin_tests::{Client, Kirin, Site};

use crate::admin::admin_address;
use crate::reload::{Served, printed};

const CONFIG: &str = r#"
threads = 2
[[listener]]
address = "127.0.0.1:0"
[[site]]
hosts = ["a.test", "www.a.test"]
[[site.route]]
path = "/"
try = ["files:public"]
[[site.route]]
path = "/shop/"
try = ["files:public"]
error_pages = { 404 = "/sorry.html" }
[[site.route]]
path = "/staff/"
try = ["files:public"]
deny = 404
allow = ["10.0.0.0/8"]
[[site]]
hosts = ["b.test"]
[[site.route]]
path = "/"
try = ["files:public"]
"#;

fn serve() -> Served {
    let site = Site::new()
        .with("public/index.html", "index")
        .with("public/shop/index.html", "shop")
        .with("public/sorry.html", "sorry");
    Served::start(site, CONFIG)
}

/// Returns the status and the body that a client gets.
fn get(kirin: &Kirin, host: &str, path: &str) -> (u16, String) {
    let mut client = Client::connect(kirin.address());
    client.send(format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
    let reply = client.read_reply();
    (reply.status, reply.text())
}

fn statuses(served: &Served) -> [u16; 4] {
    [("a.test", "/"), ("a.test", "/shop/"), ("a.test", "/staff/"), ("b.test", "/")]
        .map(|(host, path)| get(&served.kirin, host, path).0)
}

#[test]
fn a_route_a_site_and_everything_are_held_and_served_again() {
    let served = serve();
    let maintenance =
        |words: &[&str]| printed(&served.command(&[&["maintenance"], words].concat()));
    let shop = &["--site", "www.a.test", "--route", "/shop/"][..];
    let said =
        maintenance(&[&["on", "--page", "/sorry.html", "--retry-after", "2m"], shop].concat());
    assert_eq!(said, "site a.test, route /shop is in maintenance: clients get 503\n");
    assert_eq!(statuses(&served), [200, 503, 404, 200]);
    assert_eq!(get(&served.kirin, "a.test", "/shop/"), (503, "sorry".into()));
    let mut kept = Client::connect(served.kirin.address());
    let field = "GET /shop/ HTTP/1.1\r\nHost: a.test\r\n\r\n";
    assert_eq!(kept.send(field).read_reply().field("retry-after"), Some("120"));
    let status = printed(&served.command(&["status"]));
    assert!(
        status.contains("! site a.test, route /shop: in maintenance by an operator"),
        "{status}"
    );
    // Who is refused anyway does not hear of it.
    maintenance(&["on", "--site", "a.test"]);
    assert_eq!(statuses(&served), [503, 503, 404, 200]);
    maintenance(&["on"]);
    assert_eq!(statuses(&served), [503, 503, 404, 503]);
    maintenance(&["off"]);
    maintenance(&["off", "--site", "a.test"]);
    assert_eq!(statuses(&served), [200, 503, 404, 200]);
    // Somebody may look at the new version.
    maintenance(&[&["on", "--allow", "127.0.0.0/8", "--allow", "unix:"], shop].concat());
    assert_eq!(statuses(&served), [200, 200, 404, 200]);
    assert_eq!(
        maintenance(&[&["off"], shop].concat()),
        "site a.test, route /shop is served again\n"
    );
    assert_eq!(kept.send(field).read_reply().status, 200);
    assert!(!printed(&served.command(&["status"])).contains("maintenance"));
}

#[test]
fn a_reload_keeps_maintenance_unless_the_file_says_something_else() {
    let served = serve();
    printed(&served.command(&["maintenance", "on", "--route", "/shop/"]));
    printed(&served.command(&["maintenance", "on", "--site", "b.test"]));
    let with_route = format!("{CONFIG}[[site.route]]\npath = \"/x/\"\ntry = [\"files:public\"]\n");
    served.reload(&with_route);
    assert_eq!(statuses(&served), [200, 503, 404, 503]);
    // A new route of the site is held, too.
    assert_eq!(get(&served.kirin, "b.test", "/x/").0, 503);
    let shop = "path = \"/shop/\"\n";
    let serves =
        with_route.replace(shop, &format!("{shop}maintenance = {{ allow = [\"127.0.0.0/8\"] }}\n"));
    served.reload(&serves);
    assert_eq!(statuses(&served), [200, 200, 404, 503]);
    served.kirin.wait_for_log("route /shop: the maintenance by an operator has ended");
    let without_b = serves.split("[[site]]\nhosts = [\"b.test\"]").next().expect("a text");
    served.reload(without_b);
    served.reload(&serves);
    assert_eq!(statuses(&served), [200, 200, 404, 200]);
}

#[test]
fn a_request_for_maintenance_that_a_reload_overtakes_holds_the_new_routes() {
    let config = format!("{CONFIG}[admin]\naddress = \"127.0.0.1:0\"\n");
    let site = Site::new().with("public/index.html", "index").with("public/x/index.html", "new");
    let served = Served::start(site, &config);
    let body = r#"{"action": "on", "site": "b.test"}"#;
    let admin = admin_address(&served.kirin);
    let mut operator = Client::connect(admin);
    operator.send(format!(
        "POST /maintenance HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
        body.len()
    ));
    // Kirin has the head now, and waits for the body.
    operator.read_until(b"100 Continue\r\n\r\n");
    served.write(&format!("{config}[[site.route]]\npath = \"/x/\"\ntry = [\"files:public\"]\n"));
    printed(&served.command(&["reload", "--admin", &admin.to_string()]));
    assert_eq!(get(&served.kirin, "b.test", "/x/"), (200, "new".into()));
    let reply = operator.send(body).read_reply();
    assert_eq!(
        (reply.status, reply.text().as_str()),
        (200, "site b.test is in maintenance: clients get 503\n")
    );
    assert_eq!(get(&served.kirin, "b.test", "/").0, 503);
    assert_eq!(get(&served.kirin, "b.test", "/x/").0, 503);
}

#[test]
fn what_cannot_be_held_says_what_there_is() {
    let served = serve();
    for (words, part) in [
        (&["on", "--site", "c.test"][..], "no site has the name or the host `c.test`"),
        (&["on", "--route", "/shops/"], "there is no route `/shops/`; there is /, /shop, /staff"),
        (&["on", "--site", "b.test", "--route", "/shop/"], "there is /\n"),
        (&["on", "--allow", "office"], "allow: `office` is not an address or a network"),
        (&["on", "--page", "sorry.html"], "page `sorry.html`: it must be a path"),
        (&["on", "--retry-after", "soon"], "such as \"30s\""),
        (&["off"], "no operator has put this in maintenance: all routes (nothing is)"),
    ] {
        let output = served.command(&[&["maintenance"], words].concat());
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(!output.status.success() && said.contains(part), "{words:?}: {said}");
    }
    assert_eq!(statuses(&served), [200, 200, 404, 200]);
}
