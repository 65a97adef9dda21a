//! Tests of the table of redirects.

use super::super::redirect_file::parse;
use super::*;

const TABLE: &str = "/a\t/one\n/a/\t/two\n/index.php\t/home\n/index.php?id=5\t/five\n\
                     /index.php?id=6\t/six?x=1\n/blog/*\t/news/*\n/blog/old/*\thttps://old.test/*\n\
                     /blog/old/x\t/exact\t301\n/gone/*\t/sorry\n/caf%C3%A9\t/coffee\n/th\u{e9}\t/tea\n\
                     /away/*\t/*\n/part\t/whole#part\n";

fn location(table: &RedirectTable, target: &str) -> Option<String> {
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    };
    let path = RequestPath::parse(path).unwrap();
    Some(table.find(&path, query)?.location(&path, query))
}

#[test]
fn the_exact_line_counts_before_the_longest_path_above() {
    let table = parse("t", TABLE.as_bytes()).unwrap();
    assert_eq!(table.len(), 13);
    for (target, expected) in [
        ("/", None),
        ("/b", None),
        ("/a", Some("/one")),
        ("/a?x=y", Some("/one?x=y")),
        ("/a/", Some("/two")),
        ("/a/b", None),
        ("/x/../%61", Some("/one")),
        ("//a", Some("/one")),
        ("/index.php", Some("/home")),
        ("/index.php?id=5", Some("/five")),
        ("/index.php?id=6", Some("/six?x=1")),
        ("/index.php?id=7", Some("/home?id=7")),
        ("/index.php?id=%35", Some("/home?id=%35")),
        ("/blog", Some("/news")),
        ("/blog/", Some("/news/")),
        ("/blog/a/b?c", Some("/news/a/b?c")),
        ("/blogs", None),
        ("/blog/old", Some("https://old.test")),
        ("/blog/old/y/", Some("https://old.test/y/")),
        ("/blog/old/x", Some("/exact")),
        ("/blog/old/x/y", Some("https://old.test/x/y")),
        ("/gone/a/b?c", Some("/sorry?c")),
        ("/caf%c3%a9", Some("/coffee")),
        ("/caf\u{e9}", Some("/coffee")),
        ("/th%C3%A9", Some("/tea")),
        ("/away", Some("/")),
        ("/away//evil.test", Some("/evil.test")),
        ("/away/%2fevil.test", Some("/evil.test")),
        ("/away/%5cevil.test%0d%0aA:b", Some("/%5Cevil.test%0D%0AA:b")),
        ("/part?x", Some("/whole#part")),
        ("*", None),
    ] {
        assert_eq!(location(&table, target).as_deref(), expected, "{target}");
    }
}

#[test]
fn a_line_for_the_root_is_for_every_other_path() {
    let table = parse("t", b"/*\thttps://new.test/*\n/a\t/b\t303\n").unwrap();
    assert_eq!(location(&table, "/").as_deref(), Some("https://new.test/"));
    assert_eq!(location(&table, "/x/y?z").as_deref(), Some("https://new.test/x/y?z"));
    assert_eq!(location(&table, "/a").as_deref(), Some("/b"));
    assert_eq!(location(&table, "*"), None);
    let redirects = Redirects { table: Arc::new(table), default_status: StatusCode::FOUND };
    for (path, status) in [("/a", 303), ("/x", 302)] {
        let response = redirects.respond(&RequestPath::parse(path).unwrap(), None).unwrap();
        assert_eq!(response.status.as_u16(), status, "{path}");
    }
}

#[test]
fn each_line_has_examples_that_it_is_for() {
    let table = parse("t", TABLE.as_bytes()).unwrap();
    let mut numbers = Vec::new();
    for (target, line) in table.examples() {
        let (path, query) = match target.split_once('?') {
            Some((path, query)) => (path, Some(query)),
            None => (&*target, None),
        };
        let found = table.find(&RequestPath::parse(path).unwrap(), query).unwrap();
        assert!(found.number == line.number || target == "/blog/old/x", "{target}");
        numbers.push(line.number);
    }
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers, (1..=13).collect::<Vec<_>>());
}
