//! Pages that programs have written over the memcached port or with Kirin::Store.

use kirin_tests::{run_kirin, wait_for};

use super::{Two, count_of_commands};

#[test]
fn a_page_that_a_program_has_written_is_served_by_all_machines() {
    let Two { redis, a, b } = Two::start();
    a.memcached().set("/only/m", b"text/html; charset=UTF-8\r\nby memcached");
    a.memcached()
        .set("/only/whole", b"HTTP/1.1 301 Moved Permanently\r\nLocation: /new\r\n\r\nmoved");
    assert_eq!(a.perl("set_page", "/only/p", "by Perl"), "stored");
    let serve = || {
        let reply = b.reply("/only/m");
        assert_eq!((reply.status, reply.text().as_str()), (200, "by memcached"));
        assert_eq!(reply.field("content-type"), Some("text/html; charset=UTF-8"));
        assert_eq!(b.get("/only/p"), "by Perl");
        let reply = b.reply("/only/whole");
        assert_eq!((reply.status, reply.field("location")), (301, Some("/new")));
    };
    serve();
    let commands = count_of_commands(&redis);
    for _ in 0..5 {
        serve();
    }
    assert_eq!(count_of_commands(&redis), commands, "the copies answer");
    assert_eq!(b.perl("get", "/only/p", ""), "text/html\r\nby Perl");
}

#[test]
fn a_page_that_is_written_again_is_the_new_one_on_all_machines() {
    let Two { redis: _redis, a, b } = Two::start();
    let mut memcached = a.memcached();
    for text in ["one", "two", "three"] {
        memcached.set("/only/page", format!("text/html\r\n{text}").as_bytes());
        // A machine reads its own writes.
        assert_eq!(a.get("/only/page"), text);
        b.wait_for_text("/only/page", text);
        assert_eq!(b.get("/only/page"), text, "it does not go back");
    }
    assert_eq!(b.perl("set_page", "/only/page", "four"), "stored");
    assert_eq!(b.get("/only/page"), "four");
    a.wait_for_text("/only/page", "four");
    assert_eq!(memcached.delete("/only/page"), "DELETED");
    assert_eq!(a.reply("/only/page").status, 404);
    wait_for("the page to be gone", || (b.reply("/only/page").status == 404).then_some(()));
}

#[test]
fn what_is_known_to_be_absent_costs_no_trip_until_it_is_written() {
    let Two { redis, a, b } = Two::start();
    assert_eq!(b.reply("/only/page").status, 404);
    assert_eq!(b.get("/page"), "b 1");
    let commands = count_of_commands(&redis);
    for _ in 0..5 {
        assert_eq!(b.reply("/only/page").status, 404);
        b.get("/page");
    }
    assert_eq!(count_of_commands(&redis), commands);
    a.memcached().set("/only/page", b"text/html\r\nwritten");
    b.wait_for_text("/only/page", "written");
}

#[test]
fn an_error_page_that_only_the_server_has_is_shown() {
    let Two { redis: _redis, a, b } = Two::start();
    a.memcached().set("/only/error", b"text/html\r\nsorry, <!--# include who -->");
    a.memcached().set("who", b"visitor");
    for _ in 0..2 {
        let reply = b.reply("/errors/nothing");
        assert_eq!((reply.status, reply.text().as_str()), (404, "sorry, visitor"));
    }
    assert_eq!(b.runs(), 0);
}

#[test]
fn only_pages_of_the_server_can_be_requested() {
    let Two { redis: _redis, a, b } = Two::start();
    a.memcached().set("/only/session", b"{\"user\":1}");
    a.memcached().set("/only/split", b"text/html\rX-Evil: 1\r\nbody");
    a.memcached().set("only/page", b"text/plain\r\nsecret");
    a.memcached().set("/only/text", b"text/plain\r\nserved");
    assert_eq!(b.get("/only/text"), "served", "this one is a page");
    assert_eq!(b.reply("/only/session").status, 404);
    assert_eq!(b.reply("/only/split").status, 404);
    assert_eq!(b.reply("/only/page").status, 404);
    let long = format!("/only/{}", "x".repeat(300));
    assert_eq!(b.reply(&long).status, 404, "no key is that long");
}

#[test]
fn a_page_as_large_as_an_item_may_be_is_served_by_all_machines() {
    let Two { redis: _redis, a, b } = Two::start();
    let body = "0123456789".repeat(9_500);
    a.memcached().set("/only/large", format!("text/plain\r\n{body}").as_bytes());
    for _ in 0..2 {
        let got = b.get("/only/large");
        assert!(got == body, "{} bytes", got.len());
    }
}

#[test]
fn a_page_that_the_next_place_has_is_the_stores_once_it_is_written() {
    let Two { redis: _redis, a, b } = Two::start();
    // The methods and bodies that the application gets are those of the client, though the server
    // was asked before.
    let reply = b.ask("GET", "/page", "X-Value: told\r\n");
    assert_eq!(reply.text(), "told");
    let body = "X-Value: none\r\nContent-Length: 4\r\n\r\nbody";
    for method in ["GET", "POST"] {
        let mut client = b.connect();
        client.send(format!("{method} /{method}/echo HTTP/1.1\r\nHost: test\r\n{body}"));
        assert_eq!(client.read_reply().text(), "body", "{method}");
        // The connection goes on behind the body.
        assert_eq!(client.request("GET", "/page", "X-Value: again\r\n").text(), "again");
    }
    let runs = b.runs();
    let reply = b.ask("HEAD", "/page", "");
    assert_eq!((reply.status, b.runs()), (200, runs + 1));
    a.memcached().set("/page", b"text/plain\r\nstored");
    b.wait_for_text("/page", "stored");
    a.memcached().delete("/page");
    wait_for("the application", || b.get("/page").starts_with("b ").then_some(()));
}

#[test]
fn the_explanation_of_a_request_knows_the_page_that_only_the_server_has() {
    let Two { redis: _redis, a, b } = Two::start();
    a.memcached().set("/only/page", b"text/html\r\na page");
    for (path, text) in [("/only/page", "text/html"), ("/only/none", "there is no page")] {
        let output = run_kirin(&b.site, &["explain", "GET", &format!("http://127.0.0.1{path}")]);
        let explanation = String::from_utf8_lossy(&output.stdout);
        assert!(explanation.contains(text), "{path}: {explanation}");
    }
}
