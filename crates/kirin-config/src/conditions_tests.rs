//! Tests of the paths and conditions of routes.

use crate::check::tests::{LISTENER, check_text};

/// Returns a configuration of two routes with these lines beside `try`.
fn two_routes(one: &str, other: &str) -> String {
    format!(
        "{LISTENER}[[route]]\n{one}\ntry = [\"files:public\"]\n[[route]]\n{other}\n\
         try = [\"files:public\"]\n"
    )
}

#[test]
fn a_route_with_conditions_is_understood() {
    let text = two_routes(
        r#"path = "/a/"
match = { methods = ["POST", "GET"], headers = { "X-Beta" = "1", Accept = "*json*", DNT = false }, query = { preview = "*" }, clients = ["10.0.0.0/8", "unix:"], cookies = { Beta = "1" }, scheme = "https", not = { query = { old = "*" } } }"#,
        "path = \"/a\"",
    );
    let site = check_text(&text).unwrap();
    let routes = &site.gateway.sites[0].routes;
    assert_eq!(
        (routes[0].path.to_string(), routes[1].path.to_string()),
        ("/a".into(), "/a".into())
    );
    assert_eq!(
        routes[0].conditions.to_string(),
        "client `10.0.0.0/8` or `unix:`, cookie Beta = `1`, header accept = `*json*`, \
         header dnt = none, header x-beta = `1`, method `GET` or `POST`, \
         not query argument old = `*`, query argument preview = `*`, scheme `https`"
    );
    assert!(routes[1].conditions.is_empty());
    let path = kirin_http::RequestPath::parse("/a/b").unwrap();
    assert_eq!(site.gateway.sites[0].table.possible(&path), [0, 1]);
}

#[test]
fn errors_in_paths_and_conditions_name_line_value_and_what_is_allowed() {
    let with_path = |path: &str| two_routes(&format!("path = \"{path}\""), "path = \"/\"");
    let with_match =
        |value: &str| two_routes(&format!("path = \"/a\"\nmatch = {value}"), "path = \"/\"");
    for (text, expected) in [
        (with_path("/a/*/b"), vec!["kirin.toml:4:8", "route path `/a/*/b`", "`/docs/*.pdf`"]),
        (with_path("/a/*"), vec!["kirin.toml:4:8", "leave out `*`"]),
        (with_path("/{id}.json"), vec!["kirin.toml:4:8", "complete segment"]),
        (with_path("/a/../b"), vec!["kirin.toml:4:8", "`//`, `.` or `..`"]),
        (with_path("= a"), vec!["kirin.toml:4:8", "must begin with `/`"]),
        (with_path("/"), vec!["kirin.toml:7:8", "a second [[route]] with the path `/`"]),
        (with_path("/*.pdf"), vec![]),
        (with_match("{ scheme = \"ftp\" }"), vec!["kirin.toml:5:20", "allowed are \"http\" and"]),
        (
            with_match("{ cookies = { \"a b\" = \"1\" } }"),
            vec!["kirin.toml:5:23", "name of a cookie"],
        ),
        (with_match("{ not = {} }"), vec!["kirin.toml:5:17", "`not` is empty"]),
        (
            with_match("{ not = { not = { scheme = \"http\" } } }"),
            vec!["kirin.toml:5:25", "`not` inside of `not`"],
        ),
        (
            two_routes("path = \"/u/{id}/x\"", "path = \"/u/{name}/x/\""),
            vec![
                "kirin.toml:7:8",
                "a second [[route]]",
                "`/u/{name}/x/`",
                "`/u/{id}/x` matches the same",
            ],
        ),
        (two_routes("path = \"= /a\"", "path = \"= /a/\""), vec![]),
        (
            two_routes(
                "path = \"/a\"\nmatch = { methods = [\"GET\"] }",
                "path = \"/a\"\nmatch = { methods = [\"GET\", \"GET\"] }",
            ),
            vec!["kirin.toml:8:8", "a second [[route]] with the path `/a` and the same `match`"],
        ),
        (
            two_routes(
                "path = \"/a\"\nmatch = { methods = [\"GET\"] }",
                "path = \"/a\"\nmatch = { methods = [\"POST\"] }",
            ),
            vec![],
        ),
        (with_match("{}"), vec!["kirin.toml:5:9", "`match` is empty", "clients"]),
        (
            with_match("{ method = \"GET\" }"),
            vec!["kirin.toml:5:11", "unknown key `method`", "methods"],
        ),
        (with_match("{ methods = [\"get\"] }"), vec!["kirin.toml:5:21", "write `GET`"]),
        (with_match("{ methods = [] }"), vec!["kirin.toml:5:21", "empty list"]),
        (
            with_match("{ headers = { \"A b\" = \"1\" } }"),
            vec!["kirin.toml:5:23", "name of a field"],
        ),
        (with_match("{ headers = { Host = \"a\" } }"), vec!["kirin.toml:5:23", "[[site]]"]),
        (
            with_match("{ headers = { A = \"a*b\" } }"),
            vec!["kirin.toml:5:27", "at the beginning, at the end"],
        ),
        (with_match("{ headers = { A = true } }"), vec!["kirin.toml:5:27", "write \"*\""]),
        (with_match("{ query = { A = 1 } }"), vec!["kirin.toml:5:25", "or false"]),
        (with_match("{ clients = [\"10.0.0.1/8\"] }"), vec!["kirin.toml:5:22", "10.0.0.0/8"]),
        (with_match("{ clients = [] }"), vec!["kirin.toml:5:21", "empty list"]),
    ] {
        match (check_text(&text), expected.is_empty()) {
            (Ok(_), is_good) => assert!(is_good, "{text}"),
            (Err(error), is_good) => {
                assert!(!is_good, "{text}\ngave: {error}");
                for part in expected {
                    assert!(error.contains(part), "{text}\ngave: {error}\nwithout: {part}");
                }
            }
        }
    }
}

#[test]
fn names_and_redirects_are_checked_against_the_route() {
    let redirect = |path: &str, target: &str, other: &str| {
        format!(
            "{LISTENER}[[route]]\n{path}\nredirect = \"{target}\"\n[[route]]\n{other}\n\
             try = [\"files:public\"]\n"
        )
    };
    let root = "path = \"/\"";
    for (text, expected) in [
        (redirect("path = \"/users/{id}\"", "/u/{id}", root), None),
        (redirect("path = \"/users/{id}\"", "/u/{name}", root), Some("its names are `{id}`")),
        (redirect("path = \"/u/{id}\"", "/u/{id}/x", root), Some("leads back")),
        (redirect("path = \"/u/{id}\"", "/u/{id}/x", "path = \"/u/{id}/x\""), None),
        (redirect("path = \"= /a\"", "/a/", root), None),
        (redirect("path = \"= /a\"", "/%61", root), Some("leads back")),
        (redirect("path = \"*.htm\"", "/old", root), Some("leads back")),
        (redirect("path = \"*.htm\"", "/old", "path = \"/old\""), None),
        (
            redirect("path = \"/a\"\nmatch = { headers = { A = \"1\" } }", "/a", root),
            Some("leads back"),
        ),
        (redirect("path = \"/a\"\nmatch = { methods = [\"POST\"] }", "/a", root), None),
        (
            redirect("path = \"/a\"", "/a/b", "path = \"/a/b\"\nmatch = { query = { c = \"1\" } }"),
            Some("leads back"),
        ),
        (two_routes("path = \"/u/{id}\"\nrewrite = \"/{id}\"", root), None),
        (two_routes("path = \"/u/{id}\"\nrewrite = \"/{name}\"", root), Some("rewrite `/{name}`")),
    ] {
        match (check_text(&text), expected) {
            (Ok(_), None) => {}
            (Err(error), Some(expected)) => assert!(error.contains(expected), "{text}\n{error}"),
            (checked, _) => panic!("{text}\n{:?}", checked.err()),
        }
    }
}

#[test]
fn an_error_page_needs_a_route_without_conditions() {
    let pages = |conditions: &str| {
        let one = format!("path = \"/errors\"{conditions}");
        let other = "path = \"/a\"\nerror_pages = { 404 = \"/errors/404.html\" }";
        check_text(&two_routes(&one, other)).map(|_| ())
    };
    assert_eq!(pages(""), Ok(()));
    let error = pages("\nmatch = { methods = [\"GET\"] }").unwrap_err();
    assert!(error.contains("no route without `match` has it"), "{error}");
}
