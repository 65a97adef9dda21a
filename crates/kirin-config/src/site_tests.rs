//! Sites in a configuration: the routes that they make, and the errors.

use std::path::Path;

use kirin_gateway::routing::settings::RouteConfig;

use crate::check::Config;
use crate::source::ConfigSource;

/// Two applications' worth of keys before the sites.
const BEFORE: &str = "[[listener]]\naddress = \"8080\"\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\n\
    [[upstream]]\nname = \"far\"\nservers = [\"127.0.0.1:1\"]\n";

fn directory() -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, content) in [
        ("app.psgi", "sub {}"),
        ("users", "a:$2y$05$abcdefghijklmnopqrstuuJ0zBPXqV1HjPzFbMPjOjTzjTzjTzjTy\n"),
        ("others", "b:$2y$05$abcdefghijklmnopqrstuuJ0zBPXqV1HjPzFbMPjOjTzjTzjTzjTy\n"),
    ] {
        std::fs::write(directory.path().join(name), content).unwrap();
    }
    std::fs::create_dir(directory.path().join("public")).unwrap();
    directory
}

fn check_in(directory: &Path, text: &str) -> Result<Config, String> {
    let text = format!("{BEFORE}{text}");
    let source = ConfigSource::from_text("kirin.toml", directory, text);
    crate::check::read(&source).map_err(|error| error.to_string())
}

fn check(text: &str) -> Result<Config, String> {
    check_in(directory().path(), text)
}

/// Returns everything that a route says, without the number of its log.
fn described(route: &RouteConfig) -> String {
    format!("{route:?}")
}

#[test]
fn a_key_of_a_site_is_as_if_each_route_without_it_had_it() {
    let directory = directory();
    for (site_key, route_key, both) in [
        ("listing = true", "listing = false", "listing = false"),
        ("follow_links = true", "follow_links = \"owner\"", "follow_links = \"owner\""),
        ("body_limit = \"1MB\"", "body_limit = \"2MB\"", "body_limit = \"2MB\""),
        ("compress = false", "compress = [\"gzip\"]", "compress = [\"gzip\"]"),
        ("cache = { ttl = \"1h\" }", "cache = false", "cache = false"),
        // A table that is not joined replaces the other.
        ("cache = { ttl = \"1h\" }", "cache = { wait = \"1s\" }", "cache = { wait = \"1s\" }"),
        ("ssi = true", "ssi = false", "ssi = false"),
        ("esi = true", "esi = false", "esi = false"),
        ("request_buffering = true", "request_buffering = false", "request_buffering = false"),
        ("basic_auth = \"users\"", "basic_auth = \"others\"", "basic_auth = \"others\""),
        ("basic_auth = \"users\"", "basic_auth = false", ""),
        (
            "basic_auth = \"users\"",
            "basic_auth_realm = \"Staff\"",
            "basic_auth = \"users\"\nbasic_auth_realm = \"Staff\"",
        ),
        (
            "rate_limit = [{ rate = \"1/s\" }]",
            "rate_limit = [{ rate = \"2/s\" }]",
            "rate_limit = [{ rate = \"2/s\" }]",
        ),
        ("rate_limit = [{ rate = \"1/s\" }]", "rate_limit = []", ""),
        ("access_log = \"site.log\"", "access_log = \"site.log\"", "access_log = \"site.log\""),
        ("access_log = \"site.log\"", "access_log = false", "access_log = false"),
        (
            "headers = { A = \"1\" }",
            "headers = { B = \"2\" }",
            "headers = { A = \"1\", B = \"2\" }",
        ),
        ("headers = { A = \"1\" }", "headers = { a = \"2\" }", "headers = { a = \"2\" }"),
        (
            "error_pages = { 404 = \"/f/4\", 5xx = \"/f/5\" }",
            "error_pages = { 404 = \"/f/o\" }",
            "error_pages = { 404 = \"/f/o\", 5xx = \"/f/5\" }",
        ),
        ("intercept_errors = true", "intercept_errors = false", "intercept_errors = false"),
    ] {
        let routes = |of_first: &str, of_second: &str, of_site: &str| {
            let text = format!(
                "[[site]]\nhosts = [\"a.org\"]\n{of_site}\n\
                 [[site.route]]\npath = \"/\"\ntry = [\"files:public\", \"proxy:far\"]\n{of_first}\n\
                 [[site.route]]\npath = \"/s\"\ntry = [\"files:public\", \"proxy:far\"]\n{of_second}\n\
                 [[site.route]]\npath = \"/f\"\ntry = [\"files:public\"]\n\
                 headers = {{}}\nerror_pages = {{}}\naccess_log = \"f.log\"\n"
            );
            let config = check_in(directory.path(), &text);
            let mut config = config.unwrap_or_else(|error| panic!("{text}\n{error}"));
            let mut routes = config.gateway.sites.remove(0).routes;
            routes.retain(|route| route.path.to_string() != "/f");
            routes.iter().map(described).collect::<Vec<_>>()
        };
        let inherited = routes("", route_key, site_key);
        assert_eq!(inherited, routes(site_key, both, ""), "{site_key} and {route_key}");
        assert_ne!(inherited, routes("", route_key, ""), "{site_key} must make a difference");
    }
}

#[test]
fn a_key_for_a_kind_of_place_goes_to_the_routes_that_have_it() {
    let config = check(
        "[[site]]\nhosts = [\"a.org\"]\nlisting = true\ncache = true\ncompress = false\n\
         [[site.route]]\npath = \"/f\"\ntry = [\"files:public\"]\n\
         [[site.route]]\npath = \"/app\"\ntry = [\"app:web\"]\n\
         [[site.route]]\npath = \"/old\"\nredirect = \"/f\"\n",
    )
    .unwrap();
    let routes: Vec<_> = (config.gateway.sites[0].routes.iter())
        .map(|route| (route.path.to_string(), route.listing, route.cache.is_some()))
        .collect();
    let expected = [("/f", true, false), ("/app", false, true), ("/old", false, false)];
    let expected = expected.map(|(path, listing, cache)| (path.to_owned(), listing, cache));
    assert_eq!(routes, expected);
}

#[test]
fn the_top_level_and_other_sites_do_not_inherit() {
    let config = check(
        "[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n\
         [[site]]\nhosts = [\"a.org\"]\nlisting = true\n\
         [[site.route]]\npath = \"/\"\ntry = [\"files:public\"]\n\
         [[site]]\nhosts = [\"b.org\"]\n\
         [[site.route]]\npath = \"/\"\ntry = [\"files:public\"]\n",
    )
    .unwrap();
    let listings: Vec<_> = config.gateway.sites.iter().map(|site| site.routes[0].listing).collect();
    assert_eq!(listings, [false, true, false]);
}

#[test]
fn each_site_has_a_name_in_the_store() {
    let config = check(
        "[[route]]\npath = \"/\"\ntry = [\"store\"]\n\
         [[site]]\nhosts = [\"*.a.org\", \"B.org.\", \"c.org\"]\n[[site.route]]\npath = \"/\"\ntry = [\"store\"]\n\
         [[site]]\nhosts = [\"*.d.org\"]\n[[site.route]]\npath = \"/\"\ntry = [\"store\"]\n\
         [[site]]\nhosts = [\"*.e.org\", \"[::1]\"]\nname = \"e\"\n[[site.route]]\npath = \"/\"\ntry = [\"store\"]\n",
    )
    .unwrap();
    let names: Vec<_> = (config.gateway.sites.iter())
        .map(|site| (site.name.as_deref(), site.separates_hosts))
        .collect();
    assert_eq!(names, [(None, false), (Some("b.org"), true), (None, true), (Some("e"), false)]);
}

#[test]
fn errors_of_sites_name_the_line_and_what_is_allowed() {
    let route = "[[site.route]]\npath = \"/\"\ntry = [\"files:public\"]\n";
    // The text begins in line 9.
    for (text, expected) in [
        ("[[site]]\n", vec!["kirin.toml:9:1", "`hosts` is missing"]),
        ("[[site]]\nhosts = []\n", vec!["kirin.toml:10:9", "`hosts` is empty"]),
        ("[[site]]\nhosts = \"a.org\"\n", vec!["kirin.toml:10:9", "write `hosts = [\"a.org\"]`"]),
        ("[[site]]\nhosts = [\"a.org\"]\n", vec!["kirin.toml:10:9", "without a [[site.route]]"]),
        (
            &format!("[[site]]\nhosts = [\"a.org:80\"]\n{route}"),
            vec!["kirin.toml:10:10", "`a.org:80` is not a host", "leave out the port", "`*`"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\", \"a.*\"]\n{route}"),
            vec!["kirin.toml:10:19", "`a.*` stands for", "give the site a `name`"],
        ),
        (
            &format!("[[site]]\nname = \"a\"\nhosts = ['~^(www\\d+$']\n{route}"),
            vec!["kirin.toml:11:10", "`~^(www\\d+$` is not a host", "unclosed group"],
        ),
        (
            &format!("[[site]]\nname = \"a\"\nhosts = [\"~a\", \"~a\"]\n{route}"),
            vec!["kirin.toml:11:16", "`~a` is already a host of a site"],
        ),
        (
            &format!("[[site]]\nhosts = [\"https://a.org/\"]\n{route}"),
            vec!["kirin.toml:10:10", "a scheme or a path"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\", \"A.ORG.\"]\n{route}"),
            vec!["kirin.toml:10:19", "`A.ORG.` is already a host of a site"],
        ),
        (
            &format!(
                "[[site]]\nhosts = [\"a.org\"]\n{route}[[site]]\nhosts = [\"b.org\", \"a.org\"]\n{route}"
            ),
            vec!["kirin.toml:15:19", "`a.org` is already a host of a site"],
        ),
        (
            &format!(
                "[[site]]\nhosts = [\"*.a.org\"]\n{route}[[site]]\nhosts = [\"*.a.org\"]\n{route}"
            ),
            vec!["kirin.toml:15:10", "`*.a.org` is already a host of a site"],
        ),
        (
            &format!(
                "[[route]]\npath = \"/\"\ntry = [\"store\"]\n[[site]]\nhosts = [\"*\"]\n{route}"
            ),
            vec!["kirin.toml:13:10", "the [[route]]s at the top level are that already"],
        ),
        (
            &format!("[[site]]\nhosts = [\"*\"]\n{route}[[site]]\nhosts = [\"*\"]\n{route}"),
            vec!["kirin.toml:15:10", "another site or"],
        ),
        (
            &format!("[[site]]\nhosts = [\"*\", \"a.org\"]\n{route}"),
            vec!["kirin.toml:10:9", "leave out the other hosts"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\nname = \"A.org\"\n{route}"),
            vec!["kirin.toml:11:8", "`A.org` is not a name for a site", "lower-case"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\nname = \"\"\n{route}"),
            vec!["kirin.toml:11:8", "1 to 128"],
        ),
        (
            &format!(
                "[[site]]\nhosts = [\"a.org\"]\nname = \"x\"\n{route}[[site]]\nhosts = [\"b.org\"]\nname = \"x\"\n{route}"
            ),
            vec!["kirin.toml:17:8", "another site has the name `x`"],
        ),
        (
            &format!(
                "[[site]]\nhosts = [\"a.org\"]\nname = \"x\"\n{route}[[site]]\nhosts = [\"x\"]\n{route}"
            ),
            vec!["kirin.toml:16:10", "another site has the name `x`"],
        ),
        (
            &format!("[[site]]\nhosts = [\"[::1]\"]\n{route}"),
            vec!["kirin.toml:10:10", "give the site a `name`"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\nhost = \"b.org\"\n{route}"),
            vec!["kirin.toml:11:1", "unknown key `host`", "did you mean `hosts`?"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\nbasic_aut = \"users\"\n{route}"),
            vec!["kirin.toml:11:1", "did you mean `basic_auth`?"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\ntry = [\"store\"]\n{route}"),
            vec!["kirin.toml:11:1", "unknown key `try`"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\n{route}lissting = true\n"),
            vec!["kirin.toml:14:1", "did you mean `listing`?"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\n{route}{route}"),
            vec!["kirin.toml:15:8", "with the path `/`"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\ncompress = \"gzip\"\n{route}"),
            vec!["kirin.toml:11:12", "true, false or a list"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\nheaders = {{ A = \"a\\nb\" }}\n{route}"),
            vec!["kirin.toml:11:17"],
        ),
        (
            "[[site]]\nhosts = [\"a.org\"]\nerror_pages = { 404 = \"/x\" }\n\
             [[site.route]]\npath = \"/a\"\ntry = [\"files:public\"]\n",
            vec!["kirin.toml:11:23", "error page `/x`: no route without `match` has it"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\nbasic_auth = \"gone\"\n{route}"),
            vec!["kirin.toml:11:14", "`basic_auth`", "gone"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\nbasic_auth = true\n{route}"),
            vec!["kirin.toml:11:14", "a text or false"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\naccess_log = true\n{route}"),
            vec!["kirin.toml:11:14", "a text or false"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\ncache = true\n{route}"),
            vec!["kirin.toml:11:1", "`cache` has no effect", "app:NAME, proxy:NAME or cgi:PROGRAM"],
        ),
        (
            &format!("[[site]]\nhosts = [\"a.org\"]\ncache = {{ ttl = 5 }}\n{route}"),
            vec!["kirin.toml:11:1", "`cache` has no effect"],
        ),
        (
            "[[site]]\nhosts = [\"a.org\"]\nlisting = true\n[[site.route]]\npath = \"/\"\nredirect = \"/x\"\n",
            vec!["kirin.toml:11:1", "`listing` has no effect", "files:DIR"],
        ),
    ] {
        let error = check(text).expect_err(text);
        for part in expected {
            assert!(error.contains(part), "{text}\ngave: {error}\nwithout: {part}");
        }
    }
}

#[test]
fn an_error_in_a_key_of_a_site_is_reported_once() {
    let routes: String = (0..10)
        .map(|number| format!("[[site.route]]\npath = \"/{number}\"\ntry = [\"files:public\"]\n"))
        .collect();
    for key in [
        "compress = \"gzip\"",
        "basic_auth = \"gone\"",
        "basic_auth = 7",
        "rate_limit = [{ rate = \"10/s\", burst = 0 }]",
        "body_limit = \"7\"",
        "headers = { \"a b\" = \"c\" }",
        "error_pages = { 404 = \"/x\" }",
        "error_pages = { 200 = \"/1\" }",
        "cache = true",
        "access_log = 7",
        "unknown = 7",
    ] {
        let error = check(&format!("[[site]]\nhosts = [\"a.org\"]\n{key}\n{routes}")).unwrap_err();
        assert_eq!(error.matches("kirin.toml:11:").count(), 1, "{key}: {error}");
        assert_eq!(error.matches("kirin.toml:").count(), 1, "{key}: {error}");
    }
}

#[test]
fn a_site_key_that_concerns_only_some_routes_is_allowed() {
    for key in ["cache = true", "listing = true", "cache = false", "request_buffering = false"] {
        let text = format!(
            "[[site]]\nhosts = [\"a.org\"]\n{key}\n\
             [[site.route]]\npath = \"/f\"\ntry = [\"files:public\"]\n\
             [[site.route]]\npath = \"/\"\ntry = [\"app:web\"]\n"
        );
        assert!(check(&text).is_ok(), "{key}: {}", check(&text).unwrap_err());
    }
}
