//! `redirects`: a table of redirects, through the built program.

use std::fmt::Write as _;

use kirin_tests::{Site, run_kirin};

use super::serve;

const ROUTES: &str = "[[site]]\nhosts = [\"*\"]\nname = \"s\"\nredirects = \"old.tsv\"\n\
    [[site.route]]\npath = \"/\"\ntry = [\"files:public\"]\nheaders = { A = \"b\" }\n\
    [[site.route]]\npath = \"/mine\"\nallow = [\"10.0.0.0/8\"]\ntry = [\"files:public\"]\n\
    [[site.route]]\npath = \"/password\"\nbasic_auth = \"users\"\ntry = [\"files:public\"]\n\
    [[site.route]]\npath = \"/key\"\nredirect = \"/new\"\nredirect_status = 302\n\
    [[site.route]]\npath = \"/off\"\ntry = [\"files:public\"]\nredirects = false\n";

const TABLE: &str = "# FROM\tTO\n/there\t/new\n/mine/a\t/new\n/password/a\t/new\n/key/a\t/b\t307\n\
    /off\t/new\n/index.php?id=5\t/five\n/wiki/*\thttps://wiki.test/*\n";

fn site(table: &str) -> Site {
    let users = "bob:$2y$05$abcdefghijklmnopqrstuuJ7nKy3wUw2xHSoaH2hG1aYzPLDgy6pG\n";
    Site::new()
        .with("public/there", "file")
        .with("public/off", "file")
        .with("public/other", "file")
        .with("users", users)
        .with("old.tsv", table)
}

#[test]
fn a_line_of_the_table_answers_before_passwords_and_places() {
    let site = site(TABLE);
    let kirin = serve(&site, ROUTES);
    let mut client = kirin.connect();
    for (target, status, location) in [
        ("/there", 308, Some("/new")),
        ("/%74here?x", 308, Some("/new?x")),
        ("/other", 200, None),
        ("/mine/a", 403, None),
        ("/password/a", 308, Some("/new")),
        ("/password/b", 401, None),
        ("/key/a", 307, Some("/b")),
        ("/key/b", 302, Some("/new/b")),
        ("/off", 200, None),
        ("/index.php?id=5", 308, Some("/five")),
        ("/index.php?id=6", 404, None),
        ("/wiki//a/../b%20c?d", 308, Some("https://wiki.test/b%20c?d")),
    ] {
        let reply = client.get(target);
        let found = (reply.status, reply.field("location"));
        assert_eq!(found, (status, location), "{target}: {}", reply.head);
    }
    assert_eq!(client.get("/there").field("a"), Some("b"), "`headers` are on redirects");
    // A body that nobody reads does not become the next request.
    let reply = client.post("/there", "text/plain", b"GET /evil HTTP/1.1\r\n\r\n");
    assert_eq!((reply.status, reply.field("location")), (308, Some("/new")));
    assert_eq!(client.get("/other").status, 200);
}

#[test]
fn kirin_explain_names_the_line_and_kirin_check_all_errors() {
    let site = site(TABLE);
    let kirin = serve(&site, ROUTES);
    let config = site.path("kirin.toml").display().to_string();
    for (url, expected) in [
        ("http://x/there?a", "redirects: 308 to /new?a, by line 2 of old.tsv"),
        ("http://x/other", "redirects: no line of old.tsv is for the path"),
        ("http://x/key/a", "redirects: 307 to /b, by line 5 of old.tsv"),
    ] {
        let output = run_kirin(&site, &["explain", url, "--config", &config]);
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(said.contains(expected), "{url}: {said}");
    }
    drop(kirin);
    std::fs::write(site.path("old.tsv"), "/a\t/b\n/a\t/c\nx\t/y\n").unwrap();
    let output = run_kirin(&site, &["check", "--config", &config]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "{said}");
    for expected in ["old.tsv:2: line 1 already has a redirect", "old.tsv:3: FROM `x`: it must be"]
    {
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn a_table_of_100_000_lines_is_served() {
    let mut table = String::new();
    for number in 0..100_000 {
        let _ = writeln!(table, "/archive/{}/{number}.html\t/articles/{number}", number % 97);
    }
    let site = site(&table);
    let kirin = serve(&site, ROUTES);
    let mut client = kirin.connect();
    for number in [0, 1, 54_321, 99_999] {
        let reply = client.get(&format!("/archive/{}/{number}.html", number % 97));
        let expected = format!("/articles/{number}");
        assert_eq!(reply.field("location"), Some(&*expected), "{}", reply.head);
    }
    assert_eq!(client.get("/archive/0/100000.html").status, 404);
}
