//! Tests of the table of routes: precedence, and the same answers as a simple search.

use proptest::prelude::*;

use super::*;
use crate::request::test_requests::with_request;
use crate::routing::conditions::{RequestClient, Wanted};

fn pattern(text: &str) -> PathPattern {
    PathPattern::parse(text).unwrap()
}

/// Builds a table of these paths without conditions.
fn table(paths: &[&str]) -> RouteTable {
    let routes = paths.iter().map(|path| (pattern(path), RouteConditions::default()));
    RouteTable::new(routes).unwrap()
}

fn find(paths: &[&str], path: &str) -> Option<usize> {
    table(paths).find_by_path(&RequestPath::parse(path).unwrap())
}

/// Makes conditions on the method, if there are methods, and on `X-A`, if there is a value.
fn conditions(methods: &[&str], value: &str) -> RouteConditions {
    let mut conditions = Vec::new();
    if !methods.is_empty() {
        conditions.push(Condition::methods(methods.iter().copied()).unwrap());
    }
    if !value.is_empty() {
        conditions.push(Condition::field("X-A", Wanted::parse(value).unwrap()).unwrap());
    }
    RouteConditions::new(conditions)
}

/// Calls `work` with the request of this line and `X-A`.
fn with_candidate<R>(line: &str, value: &str, work: impl FnOnce(&Candidate<'_>) -> R) -> R {
    with_request(&format!("{line} HTTP/1.1\r\nHost: a\r\nX-A: {value}"), |request| {
        let client = RequestClient::of(request.origin);
        work(&Candidate { path: request.path, head: request.head, client })
    })
}

#[test]
fn each_form_of_a_path_matches_what_it_says() {
    for (route, yes, no) in [
        ("/", &["/", "/a", "/a/b/", "/.", "//"][..], &["*"][..]),
        (
            "/static",
            &["/static", "/static/", "/static/a", "/x/../st%61tic"],
            &["/statics", "/Static", "/a/static"],
        ),
        (
            "/u/{id}",
            &["/u/1", "/u/1/", "/u/1/a/b", "/u/%20", "/u/a%2Fb", "/u//1"],
            &["/u", "/u/", "/u/.", "/u/%2F", "/u/1/.."],
        ),
        ("/u/{id}/a", &["/u/1/a", "/u/a/a/b"], &["/u/1", "/u/1/b", "/u//a", "/u/a"]),
        (
            "*.pdf",
            &["/a.pdf", "/x/y/a.pdf", "/.pdf", "/a.pdf/", "/a%2epdf"],
            &["/a.PDF", "/a.pdf/b", "/a.pdfx", "/pdf"],
        ),
        (
            "/d/*.pdf",
            &["/d/a.pdf", "/d/x/a.pdf", "/d/.pdf", "/d/.pdf/"],
            &["/d.pdf", "/d", "/e/a.pdf", "/d/a.pdf/x"],
        ),
        ("/u/{id}/*.jpg", &["/u/1/a.jpg", "/u/1/b/a.jpg"], &["/u/a.jpg", "/u/1.jpg/"]),
        ("= /a", &["/a", "/./a", "/%61"], &["/a/", "/a/b", "/", "/a/.", "/A"]),
        ("= /a/", &["/a/", "/a/.", "/a/b/..", "/a%2F"], &["/a", "/a/b"]),
        ("= /", &["/", "//", "/.", "/a/.."], &["/a", "*"]),
        ("= /u/{id}", &["/u/1"], &["/u/1/", "/u/1/a", "/u", "/u/"]),
        ("/caf\u{e9} x", &["/caf%C3%A9%20x/y"], &["/caf%E9%20x"]),
    ] {
        for (paths, expected) in [(yes, Some(0)), (no, None)] {
            for path in paths {
                assert_eq!(find(&[route], path), expected, "route {route}, path {path}");
            }
        }
    }
}

#[test]
fn the_most_specific_path_comes_first() {
    // Every path is before all that follow it, for all requests.
    let by_precedence = [
        "= /docs/a/b.pdf",
        "/docs/a/b.pdf",
        "/docs/a",
        "= /docs/{x}/b.pdf",
        "/docs/{x}/b.pdf",
        "/docs/{x}",
        "/docs/*b.pdf",
        "/docs/*.pdf",
        "/docs",
        "/{x}/a/b.pdf",
        "/{x}/{y}/{z}",
        "/{x}/{y}",
        "/{x}/*.pdf",
        "/{x}",
        "*.pdf",
        "*f",
        "/",
    ];
    let mut order: Vec<usize> = (0..by_precedence.len()).collect();
    for _ in 0..by_precedence.len() {
        order.rotate_left(5);
        order.swap(1, 3);
        let paths: Vec<_> = order.iter().map(|number| by_precedence[*number]).collect();
        let table = table(&paths);
        with_candidate("GET /docs/a/b.pdf", "1", |candidate| {
            let explained = table.explain(candidate);
            let found: Vec<_> = explained.iter().map(|(route, _)| paths[*route]).collect();
            assert_eq!(found, by_precedence);
        });
    }
}

#[test]
fn an_extension_is_between_a_directory_and_the_root() {
    let paths = ["/", "*.pdf", "/docs"];
    for (path, expected) in [("/docs/a.pdf", 2), ("/a.pdf", 1), ("/x/a.pdf", 1), ("/a", 0)] {
        assert_eq!(find(&paths, path), Some(expected), "{path}");
    }
}

#[test]
fn a_search_comes_back_from_a_path_that_leads_nowhere() {
    let paths = ["/a/{x}/c", "/a/b/d", "/{x}/b/e", "/{x}/{y}/{z}/f"];
    for (path, expected) in [
        ("/a/b/c", Some(0)),
        ("/a/b/d", Some(1)),
        ("/a/b/e", Some(2)),
        ("/a/b/c/f", Some(0)),
        ("/a/b/x/f", Some(3)),
        ("/a/b/x", None),
        ("/a", None),
    ] {
        assert_eq!(find(&paths, path), expected, "{path}");
    }
}

#[test]
fn routes_of_one_path_are_asked_in_order_and_the_one_without_conditions_last() {
    let routes = [
        ("/a", conditions(&[], "")),
        ("/a", conditions(&["POST"], "")),
        ("/a", conditions(&["POST", "PUT"], "1")),
        ("/", conditions(&["PUT"], "")),
        ("/a", conditions(&[], "2")),
        ("/b", conditions(&["POST"], "1")),
        ("/b", conditions(&["DELETE"], "")),
    ];
    let routes = routes.map(|(path, conditions)| (pattern(path), conditions));
    let table = RouteTable::new(routes.into_iter()).unwrap();
    for (line, value, expected) in [
        ("POST /a", "1", Some(1)),
        ("PUT /a", "1", Some(2)),
        ("PUT /a", "2", Some(4)),
        ("PUT /a", "3", Some(0)),
        ("PUT /b", "3", Some(3)),
        ("POST /b", "1", Some(5)),
        ("POST /b", "2", None),
    ] {
        let found = with_candidate(line, value, |candidate| table.find(candidate));
        assert_eq!(found, expected, "{line} {value}");
    }
    let path = |path| RequestPath::parse(path).unwrap();
    assert_eq!(table.possible(&path("/a/x")), [1, 2, 4, 0]);
    assert_eq!(table.possible(&path("/b")), [5, 6, 3]);
    assert_eq!(table.find_by_path(&path("/b")), None);
    assert_eq!(table.find_by_path(&path("/a")), Some(0));
    // `X-A` does not hold for the route of POST, so this route would not take a POST either.
    let wanted = with_candidate("GET /b", "2", |candidate| table.wanted_methods(candidate));
    assert_eq!(wanted, [Method::DELETE, Method::PUT]);
    with_candidate("PUT /b", "2", |candidate| {
        let fails =
            |lines: &[&str]| Verdict::Fails(lines.iter().map(ToString::to_string).collect());
        assert_eq!(
            table.explain(candidate),
            [
                (
                    5,
                    fails(&[
                        "header `x-a` is `2`, wanted `1`",
                        "method is `PUT`, wanted method `POST`",
                    ])
                ),
                (6, fails(&["method is `PUT`, wanted method `DELETE`"])),
                (3, Verdict::Holds),
            ]
        );
    });
}

#[test]
fn all_routes_that_are_never_found_are_named() {
    let routes = [
        ("/a", conditions(&["GET"], "")),
        ("/u/{id}", conditions(&[], "")),
        ("/a/", conditions(&["GET"], "1")),
        ("/a/", conditions(&["GET"], "")),
        ("/u/{name}", conditions(&[], "")),
        ("= /a", conditions(&["GET"], "")),
    ];
    let routes = routes.map(|(path, conditions)| (pattern(path), conditions));
    let duplicates = RouteTable::new(routes.into_iter()).unwrap_err();
    let duplicate = |first, second| DuplicateRoute { first, second };
    assert_eq!(duplicates, [duplicate(0, 3), duplicate(1, 4)]);
}

#[test]
fn a_table_is_shared_by_threads() {
    fn is_shared<T: Send + Sync>(_: &T) {}
    is_shared(&table(&["/"]));
}

/// Returns the routes that match in order of precedence, by a search through all of them.
fn by_sorting(routes: &[(PathPattern, RouteConditions)], sent: &RequestPath<'_>) -> Vec<usize> {
    let text = String::from_utf8(sent.normalized().to_vec()).unwrap();
    let path: Vec<&str> = text.split('/').filter(|segment| !segment.is_empty()).collect();
    let has_slash = path.is_empty() || sent.is_directory();
    let matches = |pattern: &PathPattern| {
        let segments = pattern.segments();
        let begins = segments.len() <= path.len()
            && segments.iter().zip(&path).all(|(segment, sent)| match segment {
                Segment::Literal(text) => text == sent,
                Segment::Name(_) => true,
            });
        let rest = &path[segments.len().min(path.len())..];
        begins
            && match pattern.ending() {
                Ending::Below => true,
                Ending::Suffix(suffix) => rest.last().is_some_and(|last| last.ends_with(suffix)),
                Ending::Exact { slash } => rest.is_empty() && *slash == has_slash,
            }
    };
    let rank = |number: &usize| {
        let (pattern, conditions) = &routes[*number];
        let segments = pattern.segments().iter().map(|segment| match segment {
            Segment::Literal(_) => 0,
            Segment::Name(_) => 1,
        });
        let ending = match pattern.ending() {
            Ending::Exact { .. } => (0, 0),
            Ending::Suffix(suffix) => (1, usize::MAX - suffix.len()),
            Ending::Below => (2, 0),
        };
        (segments.chain([2]).collect::<Vec<_>>(), ending, conditions.is_empty(), *number)
    };
    let mut found: Vec<usize> =
        (0..routes.len()).filter(|number| matches(&routes[*number].0)).collect();
    found.sort_by_key(rank);
    found
}

proptest! {
    #[test]
    fn the_table_agrees_with_a_search_through_all_routes(
        routes in prop::collection::vec(
            (
                "(= )?(/(a|b|ab|\\{[xy]\\})){0,4}/?|(/(a|b|\\{x\\})){0,2}/\\*(a|b|ab)",
                0..4usize,
                0..3usize,
            ),
            0..24,
        ),
        sent in prop::collection::vec("(/(a|b|ab|%61|\\.\\.?|)){0,6}", 1..8),
        method in 0..3usize,
        value in 1..4u8,
    ) {
        let of_methods: [&[&str]; 4] = [&[], &["GET"], &["POST"], &["GET", "POST"]];
        let mut all: Vec<(PathPattern, RouteConditions)> = Vec::new();
        for (path, methods, value) in routes {
            let Ok(pattern) = PathPattern::parse(&path) else { continue };
            let conditions = conditions(of_methods[methods], ["", "1", "2"][value]);
            let mut with_new = all.clone();
            with_new.push((pattern, conditions));
            if RouteTable::new(with_new.iter().cloned()).is_ok() {
                all = with_new;
            }
        }
        let table = RouteTable::new(all.iter().cloned()).unwrap();
        for sent in &sent {
            let line = format!("{} {}", ["GET", "HEAD", "POST"][method], if sent.is_empty() { "/" } else { sent });
            if RequestPath::parse(sent).is_err() {
                continue;
            }
            with_candidate(&line, &value.to_string(), |candidate| {
                let expected = by_sorting(&all, candidate.path);
                let explained: Vec<_> = table.explain(candidate).into_iter().map(|(route, _)| route).collect();
                prop_assert_eq!(&explained, &expected, "{}", line);
                let holds = |route: &usize| all[*route].1.hold(candidate.head, candidate.client);
                prop_assert_eq!(table.find(candidate), expected.iter().copied().find(holds), "{}", line);
                let always = |route: &usize| all[*route].1.is_empty();
                prop_assert_eq!(table.find_by_path(candidate.path), expected.iter().copied().find(always));
                Ok(())
            })?;
        }
    }
}
