//! Every parser of this crate costs no more than its input (`kirin-doubling`).

use kirin_doubling::Table;
use kirin_http::RequestPath;

use crate::filters::push::dictionary;
use crate::places::fallback::is_navigation;
use crate::purge::command::Purge;
use crate::request::test_requests::with_request;
use crate::routing::conditions::{Condition, RequestClient, RouteConditions, Wanted};
use crate::routing::host_table::{HostTable, SiteHost};
use crate::routing::path_pattern::PathPattern;
use crate::routing::path_template::PathTemplate;
use crate::routing::redirect_file;
use crate::routing::route_table::{Candidate, RouteTable};
use crate::routing::value_template::ValueTemplate;

#[test]
fn structured_fields_cost_no_more_than_their_bytes() {
    let mut table = Table::new();
    let different =
        |count: usize| (0..count).map(|number| format!("a{number}=1, ")).collect::<String>() + "a";
    table.check("members", 300, different, |value| dictionary::parse(value.as_bytes()).is_ok());
    for piece in ["a=1, ", "a=\"b\", ", "a,", " ", "a=\"", "\\\"", "a", "1"] {
        let value = |count: usize| piece.repeat(count);
        table.check(&format!("dictionary {piece}"), 300, value, |value| {
            dictionary::parse(value.as_bytes())
        });
        let tags = |count: usize| format!("tags=\"{}\"", piece.replace('"', "x").repeat(count));
        table.check(&format!("tags {piece}"), 300, tags, |value| {
            Purge::parse(value.as_bytes()).is_ok()
        });
        let keys = |count: usize| format!("keys=\"{}\"", "/a ".repeat(count));
        table.check("keys", 300, keys, |value| Purge::parse(value.as_bytes()).is_ok());
    }
    table.finish();
}

/// Builds a table of deep paths, all of which begin alike, and of suffixes at every depth.
fn deep_routes() -> RouteTable {
    let mut routes = Vec::new();
    for depth in 0..12 {
        for segment in ["/a", "/{x}"] {
            let path = segment.replace('x', "x0");
            let path: String = (0..depth).map(|at| path.replace('0', &at.to_string())).collect();
            for ending in ["/{y}/a", "/a/{y}/b", "/*.a", "/*a"] {
                routes.push((format!("{path}{ending}"), RouteConditions::default()));
            }
        }
    }
    let wanted = |text: &str| Wanted::parse(text).unwrap();
    let conditions = vec![
        Condition::argument("a", wanted("*b*")),
        Condition::field("Cookie", wanted("*aab*")).unwrap(),
        Condition::cookie("a", wanted("*aab*")).unwrap(),
    ];
    routes.push(("/".into(), RouteConditions::new(conditions)));
    routes.sort_by(|one, other| one.0.cmp(&other.0));
    routes.dedup_by(|one, other| one.0 == other.0);
    let parse = |(path, conditions): (String, _)| (PathPattern::parse(&path).unwrap(), conditions);
    RouteTable::new(routes.into_iter().map(parse)).unwrap()
}

#[test]
fn a_line_of_a_table_is_found_at_no_more_cost_than_the_path_has_bytes() {
    let mut table = Table::new();
    let mut lines = "/%62/*\t/x\n".to_owned();
    for depth in 0..12 {
        lines.push_str(&format!("{}/*\t/x/*\n/a/{depth}?a\t/x\n", "/a".repeat(depth)));
    }
    let redirects = redirect_file::parse("table", lines.as_bytes()).unwrap();
    for piece in ["/", "/a", "/b", "a", "/%2e", "//", "%2F", "/a/..", "/.a"] {
        let path = |count: usize| format!("/{}", piece.repeat(count));
        table.check(&format!("path {piece}"), 500, path, |path| {
            let path = RequestPath::parse(path).ok()?;
            Some(redirects.find(&path, Some(path.sent()))?.location(&path, None))
        });
    }
    table.finish();
}

#[test]
fn routes_are_found_at_no_more_cost_than_the_path_has_bytes() {
    let mut table = Table::new();
    let routes = deep_routes();
    for piece in ["/", "/a", "/b", "a", "/a.a", "/%2e", "//", "%2F", "/a/..", "/.a"] {
        // 500 times 8 pieces: 4,000 slashes.
        let path = |count: usize| format!("/{}", piece.repeat(count));
        table.check(&format!("path {piece}"), 500, path, |path| {
            RequestPath::parse(path).map(|path| routes.possible(&path).len())
        });
    }
    for piece in [",", "a,", "text/html", "text/html;", "; ", "a/b;q=0.1, "] {
        let head =
            |count: usize| format!("GET / HTTP/1.1\r\nHost: a\r\nAccept: a{}", piece.repeat(count));
        table.check(&format!("accept {piece}"), 100, head, |head| {
            with_request(head, |request| is_navigation(request.head))
        });
    }
    for piece in ["a", "a=a&", "a&", "%61=%61&", "a=+", "a=aab&", "&"] {
        let head = |count: usize| {
            format!("GET /?{} HTTP/1.1\r\nHost: a\r\nCookie: a", piece.repeat(count))
        };
        table.check(&format!("query {piece}"), 100, head, |head| {
            with_request(head, |request| {
                let client = RequestClient::of(request.origin);
                routes.find(&Candidate { path: request.path, head: request.head, client })
            })
        });
    }
    let field =
        |count: usize| format!("GET /?a=b HTTP/1.1\r\nHost: a\r\nCookie: {}", "a".repeat(count));
    table.check("field", 500, field, |head| {
        with_request(head, |request| {
            let client = RequestClient::of(request.origin);
            routes.find(&Candidate { path: request.path, head: request.head, client })
        })
    });
    table.finish();
}

#[test]
fn a_search_for_a_site_costs_no_more_than_the_bytes_of_the_host() {
    let mut hosts = HostTable::default();
    for (site, host) in
        ["*.example.org", "example.org", "a.*", "~^(a|a-)+[.]b$", "*"].into_iter().enumerate()
    {
        assert!(hosts.add(SiteHost::read(host).unwrap(), site));
    }
    let mut table = Table::new();
    for piece in ["a.", "a", ".", "a..", "-.", "example.org."] {
        let host = |count: usize| format!("{}example.org", piece.repeat(count));
        table.check(&format!("host {piece}"), 300, host, |host| hosts.find(host));
    }
    table.finish();
}

#[test]
fn values_of_variables_cost_no_more_than_the_head() {
    let pattern = PathPattern::parse("/{id}").unwrap();
    let text = "{id}|{host}|{path}|{query.a}|{header.x-a}|{cookie.a}|{client}|{scheme}";
    let value = ValueTemplate::parse(text, &pattern).unwrap();
    let path = PathTemplate::parse("/{id}{path}/{query.a}/{header.x-a}", &pattern, str::to_owned);
    let path = path.unwrap();
    let mut table = Table::new();
    for (name, begin, piece, end) in [
        ("segment", "GET /", "%0d", " HTTP/1.1\r\nHost: a"),
        ("path", "GET /a", "/./b", " HTTP/1.1\r\nHost: a"),
        ("query", "GET /a?a=", "%0d", " HTTP/1.1\r\nHost: a"),
        ("other arguments", "GET /a?", "b=c&", "a=d HTTP/1.1\r\nHost: a"),
        ("cookies", "GET /a HTTP/1.1\r\nHost: a\r\nCookie: ", "b=c; ", "a=d"),
        ("field", "GET /a HTTP/1.1\r\nHost: a\r\nX-A: b", "./", "c"),
    ] {
        let head = |count: usize| format!("{begin}{}{end}", piece.repeat(count));
        table.check(name, 200, head, |head| {
            with_request(head, |request| {
                (value.fill_field(&request.values()), path.fill(&request.values()).len())
            })
        });
    }
    let lines = |count: usize| format!("GET /a HTTP/1.1\r\nHost: a{}", "\r\nX-A: b".repeat(count));
    table.check("lines", 12, lines, |head| {
        with_request(head, |request| value.fill_field(&request.values()))
    });
    table.finish();
}
