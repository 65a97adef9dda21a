//! Tests of files of redirects.

use std::fmt::Write as _;

use crate::check::tests::LISTENER;
use crate::source::ConfigSource;
use crate::{Config, read};

const ROUTE: &str = "[[route]]\npath = \"/\"\nredirects = \"old.tsv\"\ntry = [\"files:public\"]\n";

/// Checks routes with a table.
fn check(routes: &str, table: &str) -> Result<Config, String> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::create_dir(directory.path().join("public")).unwrap();
    std::fs::write(directory.path().join("old.tsv"), table).unwrap();
    let text = format!("{LISTENER}{routes}");
    let source = ConfigSource::from_text("kirin.toml", directory.path(), text);
    read(&source).map_err(|error| error.to_string())
}

#[test]
fn the_routes_of_a_site_share_the_table_of_the_site() {
    let config = check(
        "[[site]]\nhosts = [\"*\"]\nredirects = \"old.tsv\"\n[[site.route]]\npath = \"/\"\n\
         try = [\"files:public\"]\n[[site.route]]\npath = \"/a\"\nredirect = \"/b\"\nredirect_status = 301\n\
         [[site.route]]\npath = \"/b\"\ntry = [\"files:public\"]\nredirects = false\n\
         [[site.route]]\npath = \"/c\"\n",
        "/x\t/y\n",
    )
    .unwrap();
    let routes = &config.gateway.sites[0].routes;
    let tables: Vec<_> = routes.iter().map(|route| route.rules.redirects.as_ref()).collect();
    let [Some(first), Some(second), None, Some(_)] = tables.as_slice() else {
        panic!("{tables:?}")
    };
    assert!(std::sync::Arc::ptr_eq(&first.table, &second.table));
    let statuses = (first.default_status.as_u16(), second.default_status.as_u16());
    assert_eq!((first.table.len(), statuses), (1, (308, 301)));
    assert_eq!(config.redirect_files.len(), 1);
}

#[test]
fn all_errors_of_a_file_are_shown_up_to_a_number_and_once() {
    let site = "[[site]]\nhosts = [\"*\"]\nredirects = \"old.tsv\"\n[[site.route]]\npath = \"/\"\n\
                try = [\"files:public\"]\n[[site.route]]\npath = \"/a\"\ntry = [\"files:public\"]\n";
    let error = check(site, "/a\t/b\n/c /d\n\n/a\t/d\t301\n").unwrap_err();
    assert_eq!(
        error,
        "old.tsv:2: there is no tab: a line is `FROM`, a tab and `TO`\n    /c /d\n\
         old.tsv:4: line 1 already has a redirect for the same requests\n    /a\t/d\t301"
    );
    let mut many = String::new();
    for number in 0..25 {
        let _ = writeln!(many, "a{number}\t/b");
    }
    let error = check(ROUTE, &many).unwrap_err();
    assert!(error.contains("old.tsv:20: FROM `a19`") && !error.contains("old.tsv:21"), "{error}");
    assert!(error.contains("kirin.toml:5:13: `redirects`: old.tsv has 5 more errors"), "{error}");
    let error = check(&ROUTE.replace("old.tsv", "gone.tsv"), "").unwrap_err();
    assert!(error.contains("kirin.toml:5:13") && error.contains("cannot be read"), "{error}");
    let error = check(&format!("{ROUTE}redirect_status = 300\n"), "").unwrap_err();
    assert!(error.contains("kirin.toml:7:19") && error.contains("301, 302"), "{error}");
}

#[test]
fn a_circle_is_refused_with_its_way_and_lines() {
    let redirect = "[[route]]\npath = \"/key\"\nredirect = \"/a\"\n";
    for (routes, table, expected) in [
        ("", "/a\t/a\n", "old.tsv:1: /a leads to itself"),
        ("", "/a\t/%61?x\n", "old.tsv:1: redirects in a circle: /a (line 1) → /%61?x (line 1)"),
        (
            "",
            "/x\t/y\n/a\t/b\n/b\t/a#c\n",
            "old.tsv:2: redirects in a circle: /a (line 2) → /b (line 3) → /a#c (line 2)",
        ),
        ("", "/a/*\t/a/b/*\n", "old.tsv:1: redirects in a circle: /a (line 1) → /a/b (line 1)"),
        (
            "",
            "/a/*\t/b/*\n/b/x\t/a/x\n",
            "old.tsv:1: redirects in a circle: /a/x (line 1) → /b/x (line 2) → /a/x (line 1)",
        ),
        ("", "/*\t/new/*\n", "old.tsv:1: redirects in a circle: / (line 1) → /new/ (line 1)"),
        (
            "",
            "/i?a=1\t/i?a=2\n/i?a=2\t/i?a=1\n",
            "old.tsv:1: redirects in a circle: /i?a=1 (line 1) → /i?a=2 (line 2) → /i?a=1 (line 1)",
        ),
        (
            redirect,
            "/a\t/key\n",
            "old.tsv:1: redirects in a circle: /a (line 1) → /key → /a (line 1)",
        ),
    ] {
        let error = check(&format!("{ROUTE}{routes}"), table).unwrap_err();
        assert_eq!(error, expected, "{table}");
    }
    let chain =
        |length: usize| (0..length).map(|at| format!("/a{at}\t/a{}\n", at + 1)).collect::<String>();
    assert!(check(ROUTE, &chain(20)).is_ok());
    let error = check(ROUTE, &chain(21)).unwrap_err();
    assert_eq!(error, "old.tsv:1: more than 20 redirects follow one another");
    // They end, or another line or route answers.
    for (routes, table) in [
        ("", "/a\t/b\n/b\thttps://example.org/a\n"),
        ("", "/i?a=1\t/i\n"),
        ("", "/a/*\t/a/b/*\n/a/b/*\t/c/*\n"),
        ("", "/a/*\t/b/*\n/b\t/a/x/y\n"),
        ("[[route]]\npath = \"/b\"\ntry = [\"files:public\"]\n", "/a\t/b\n/b\t/a\n"),
        (
            "[[route]]\npath = \"/c\"\nredirect = \"/d\"\n[[route]]\npath = \"/d\"\n\
             redirect = \"/c\"\nredirects = \"old.tsv\"\n",
            "/d/*\t/e/*\n",
        ),
    ] {
        assert!(check(&format!("{ROUTE}{routes}"), table).is_ok(), "{table}");
    }
}

/// Prints what a table of 100,000 lines costs. `docs/routes.md` has the figures of a release.
#[test]
fn a_table_of_100_000_lines_is_read() {
    let mut table = String::new();
    for number in 0..100_000 {
        let _ =
            writeln!(table, "/archive/{}/article-{number}.html\t/articles/{number}", number % 97);
    }
    let begin = std::time::Instant::now();
    let config = check(ROUTE, &table).unwrap();
    println!("{:?} for {} bytes", begin.elapsed(), table.len());
    let redirects = config.gateway.sites[0].routes[0].rules.redirects.as_ref().unwrap();
    assert_eq!(redirects.table.len(), 100_000);
}
