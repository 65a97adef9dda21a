//! Pages written with the memcached protocol and served by HTTP.

use kirin_tests::{Kirin, Memcached, Site};

const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n\
    [[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\"]\n";

fn serve() -> (Site, Kirin, Memcached) {
    let site = Site::new().with("public/page", "from the file\n");
    let kirin = Kirin::start(&site, CONFIG);
    let memcached = Memcached::connect(&site.path("m.sock"));
    (site, kirin, memcached)
}

#[test]
fn a_page_is_served_as_soon_as_it_is_set_and_until_it_is_deleted() {
    let (_site, kirin, mut memcached) = serve();
    let mut client = kirin.connect();
    assert_eq!(client.get("/new").status, 404);
    memcached.set("/new", b"text/html; charset=UTF-8\r\n<p>one</p>");
    let reply = client.get("/new");
    assert_eq!((reply.status, reply.text().as_str()), (200, "<p>one</p>"));
    assert_eq!(reply.field("content-type"), Some("text/html; charset=UTF-8"));
    memcached.set("/new", b"text/plain\r\ntwo");
    let reply = client.get("/new");
    assert_eq!((reply.text().as_str(), reply.field("content-type")), ("two", Some("text/plain")));
    assert_eq!(memcached.delete("/new"), "DELETED");
    assert_eq!(client.get("/new").status, 404);
}

#[test]
fn a_miss_falls_through_to_the_next_place() {
    let (_site, kirin, mut memcached) = serve();
    assert_eq!(kirin.get("/page").text(), "from the file\n");
    memcached.set("/page", b"text/plain\r\nfrom the store");
    assert_eq!(kirin.get("/page").text(), "from the store");
    memcached.delete("/page");
    assert_eq!(kirin.get("/page").text(), "from the file\n");
}

#[test]
fn the_query_is_part_of_the_key() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set("/search?q=a", b"text/plain\r\nfound a");
    assert_eq!(kirin.get("/search?q=a").text(), "found a");
    assert_eq!(kirin.get("/search?q=b").status, 404);
    assert_eq!(kirin.get("/search").status, 404);
}

#[test]
fn only_pages_can_be_requested() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set("/session", b"{\"user\":1}");
    memcached.set("session", b"text/plain\r\nsecret");
    assert_eq!(kirin.get("/session").status, 404);
    assert_eq!(kirin.get("session").status, 400);
}

#[test]
fn includes_are_filled_from_the_store() {
    let (_site, kirin, mut memcached) = serve();
    memcached
        .set("/", b"text/html\r\n<h1><!--# include title --></h1><!--#include key=\"count\" -->.");
    memcached.set("title", b"Hello <!--# include name -->");
    memcached.set("name", b"World");
    memcached.set("count", b"7");
    let mut client = kirin.connect();
    let reply = client.get("/");
    assert_eq!(reply.text(), "<h1>Hello World</h1>7.");
    let etag = reply.field("etag").expect("an ETag").to_owned();
    let again = client.request("GET", "/", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!((again.status, again.field("etag")), (304, Some(etag.as_str())));
    // A page with a changed fragment is another page.
    memcached.send("incr count 1\r\n");
    assert_eq!(memcached.line(), "8");
    let changed = client.request("GET", "/", &format!("If-None-Match: {etag}\r\n"));
    assert_eq!((changed.status, changed.text().as_str()), (200, "<h1>Hello World</h1>8."));
    let head = client.request("HEAD", "/", "");
    assert_eq!(head.field("content-length"), Some(changed.body.len().to_string().as_str()));
}

#[test]
fn a_page_with_a_missing_include_is_left_to_the_next_place() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set("/page", b"text/html\r\na<!--# include gone -->b");
    assert_eq!(kirin.get("/page").text(), "from the file\n");
    memcached.set("gone", b"-");
    assert_eq!(kirin.get("/page").text(), "a-b");
}

#[test]
fn a_cycle_of_includes_ends_and_is_logged() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set("/circle", b"text/html\r\n<!--# include a -->end");
    memcached.set("a", b"a<!--# include b -->");
    memcached.set("b", b"b<!--# include a -->");
    let reply = kirin.get("/circle");
    assert_eq!(reply.status, 200);
    assert!(reply.text().starts_with("abab") && reply.text().ends_with("end"), "{}", reply.text());
    kirin.wait_for_log("includes go in a circle");
}

#[test]
fn plain_pages_have_an_etag_and_answer_304_and_head() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set("/p", b"text/plain\r\nhello");
    let mut client = kirin.connect();
    let etag = client.get("/p").field("etag").expect("an ETag").to_owned();
    assert_eq!(
        client.request("GET", "/p", &format!("If-None-Match: \"x\", W/{etag}\r\n")).status,
        304
    );
    assert_eq!(client.request("GET", "/p", "If-None-Match: *\r\n").status, 304);
    assert_eq!(client.request("GET", "/p", "If-None-Match: \"x\"\r\n").status, 200);
    assert_eq!(client.request("HEAD", "/p", "").field("content-length"), Some("5"));
}

#[test]
fn a_complete_response_can_be_stored() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set(
        "/old",
        b"HTTP/1.1 301 Moved Permanently\r\nLocation: /new\r\nCache-Control: max-age=60\r\nContent-Length: 5\r\n\r\nmoved",
    );
    let reply = kirin.get("/old");
    assert_eq!(
        (reply.status, reply.field("location"), reply.text().as_str()),
        (301, Some("/new"), "moved")
    );
    assert_eq!(reply.field("cache-control"), Some("max-age=60"));
}

#[test]
fn a_stored_value_cannot_split_the_response() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set("/a", b"text/html\rX-Evil: 1\r\nbody");
    memcached.set("/b", b"HTTP/1.1 200 OK\r\nX: a\rb\r\n\r\nbody");
    assert_eq!(kirin.get("/a").status, 404);
    assert_eq!(kirin.get("/b").status, 404);
}

#[test]
fn a_page_expires() {
    let (_site, kirin, mut memcached) = serve();
    memcached.send("set /p 0 -1 16\r\ntext/plain\r\ngone\r\n");
    assert_eq!(memcached.line(), "STORED");
    assert_eq!(kirin.get("/p").status, 404);
}
