//! Configuration files with the configurations that they make, or with their errors.

use std::time::Duration;

use super::*;

pub(in super::super) fn check_text(text: &str) -> Result<Config, String> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("app.psgi"), "sub {}").unwrap();
    std::fs::create_dir(directory.path().join("public")).unwrap();
    let source = ConfigSource::from_text("kirin.toml", directory.path(), text);
    read(&source).map_err(|error| error.to_string())
}

pub(in super::super) const LISTENER: &str = "[[listener]]\naddress = \"8080\"\n";

#[test]
fn a_complete_configuration_is_understood() {
    let site = check_text(
        "threads = 2\n[[listener]]\naddress = \"unix:web.sock\"\naccess_log = \"stdout\"\n[store]\nmemory = \"8MB\"\n\
         memcached = [\"11211\"]\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 3\nslow = \"300ms\"\nenv = { A = \"b\" }\n\
         [[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\", \"app:web\"]\n[[route]]\npath = \"/s/\"\n\
         try = [\"files:public\"]\n",
    )
    .unwrap();
    assert_eq!(site.threads, 2);
    assert_eq!(site.store.engine.memory_bytes, 8 << 20);
    assert_eq!(site.apps[0].workers, 3);
    assert_eq!(site.apps[0].slow, Some(Duration::from_millis(300)));
    assert_eq!(site.gateway.sites[0].routes[1].path.to_string(), "/s");
    assert_eq!(site.gateway.sites[0].routes[0].places[2].to_string(), "app:web");
}

#[test]
fn a_route_says_what_is_compressed() {
    use kirin_compress::{Coding, Codings};
    let gzip = Codings::NONE.with(Coding::Gzip);
    for (key, shared, app) in [
        ("", Codings::ALL, Codings::NONE),
        ("compress = true", Codings::ALL, Codings::ALL),
        ("compress = false", Codings::NONE, Codings::NONE),
        ("compress = []", Codings::NONE, Codings::NONE),
        ("compress = [\"gzip\"]", gzip, gzip),
    ] {
        let text = format!("{LISTENER}[[route]]\npath = \"/\"\ntry = [\"store\"]\n{key}\n");
        let compress = check_text(&text).unwrap().gateway.sites[0].routes[0].compress;
        assert_eq!((compress.for_shared(), compress.for_code()), (shared, app), "{key}");
    }
}

#[test]
fn a_route_says_what_is_cached() {
    let app = "[[app]]\nname = \"web\"\nload = \"app.psgi\"\n[store]\nitem_limit = \"64KB\"\n";
    let check = |key: &str| {
        check_text(&format!("{LISTENER}{app}[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n{key}\n"))
    };
    for key in ["", "cache = false"] {
        assert!(check(key).unwrap().gateway.sites[0].routes[0].cache.is_none(), "{key}");
    }
    for key in ["cache = true", "cache = {}"] {
        let site = check(key).unwrap();
        let cache = site.gateway.sites[0].routes[0].cache.as_ref().expect(key);
        assert_eq!(
            (cache.item_limit_bytes, cache.rules.default_ttl, cache.obeys_reload),
            (64 << 10, None, false)
        );
        assert_eq!((cache.wait, cache.rules.ignore_cookies), (Duration::from_secs(5), false));
    }
    let site = check(
        "[route.cache]\nitem_limit = \"1MB\"\nttl = \"10s\"\nnegative_ttl = \"1m\"\nstale_if_error = \"1h\"\ncookies = \"ignore\"\n\
         bypass = [\"cookie:a\", \"header:B\", \"query:c\"]\nignore_query = [\"utm_*\"]\nwait = \"1s\"\nreload = true",
    )
    .unwrap();
    let cache = site.gateway.sites[0].routes[0].cache.as_ref().unwrap();
    let rules = kirin_cache::StorageRules {
        default_ttl: Some(10),
        negative_ttl: Some(60),
        stale_if_error: Some(3600),
        ignore_cookies: true,
    };
    assert_eq!((cache.item_limit_bytes, &cache.rules, cache.bypass.len()), (64 << 10, &rules, 3));
    assert!(
        cache.obeys_reload
            && cache.wait == Duration::from_secs(1)
            && cache.ignore_query == ["utm_*"]
    );
    for (key, expected) in [
        ("cache = \"yes\"", "true, false or a table"),
        ("cache = { tl = \"1s\" }", "unknown key `tl`"),
        ("cache = { cookies = \"drop\" }", "allowed are \"pass\" and \"ignore\""),
        ("cache = { bypass = [\"cookies:a\"] }", "allowed are cookie:NAME"),
        ("cache = { bypass = [\"cookie:\"] }", "allowed are cookie:NAME"),
        (
            "cache = true\n[[route]]\npath = \"/s\"\ntry = [\"store\"]\ncache = true",
            "there is no app:NAME, proxy:NAME or cgi:PROGRAM",
        ),
    ] {
        let error = check(key).unwrap_err();
        assert!(error.contains(expected), "{key}: {error}");
    }
}

#[test]
fn a_route_says_what_its_cgi_programs_may_take() {
    let check = |place: &str, key: &str| {
        check_text(&format!("{LISTENER}[[route]]\npath = \"/\"\ntry = [\"{place}\"]\n{key}\n"))
    };
    let site = check("cgi:/bin/sh", "").unwrap();
    let programs = site.gateway.sites[0].routes[0].programs.as_ref().unwrap();
    let limits = programs.pool.limits();
    assert_eq!((limits.max_in_flight.get(), limits.queue), (8, 1024));
    assert_eq!((limits.queue_wait.as_secs(), programs.deadline.as_secs()), (30, 60));
    let key = "cgi = { max_in_flight = 2, queue = 0, queue_wait = \"1s\", deadline = \"1h\", env = { A = \"b=c\" } }";
    let site = check("cgi:/bin", key).unwrap();
    let programs = site.gateway.sites[0].routes[0].programs.as_ref().unwrap();
    let limits = programs.pool.limits();
    assert_eq!((limits.max_in_flight.get(), limits.queue), (2, 0));
    assert_eq!((limits.queue_wait.as_secs(), programs.deadline.as_secs()), (1, 3600));
    assert_eq!(programs.environment, [("A".to_owned(), "b=c".to_owned())]);
    for (place, key, expected) in [
        ("cgi:/bin/sh", "cgi = true", "allowed is a table"),
        ("cgi:/bin/sh", "cgi = { max_in_flight = 0 }", "nonzero"),
        ("cgi:/bin/sh", "cgi = { wait = \"1s\" }", "unknown key `wait`"),
        ("cgi:/bin/sh", "cgi = { env = { \"A=B\" = \"c\" } }", "`env` has `A=B`"),
        ("cgi:/bin/sh", "cgi = { env = { A = \"\\u0000\" } }", "`env.A` has a NUL"),
        ("cgi:/none", "", "there is no program /none"),
        ("cgi:/etc/passwd", "", "/etc/passwd is not executable (chmod +x)"),
        ("store", "cgi = {}", "there is no cgi:PROGRAM in `try`"),
    ] {
        let error = check(place, key).map(|_| ()).unwrap_err();
        assert!(error.contains(expected), "{place} {key}: {error}");
    }
}

#[test]
fn errors_name_line_value_and_what_is_allowed() {
    let route = "[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n";
    for (text, expected) in [
        ("", vec!["kirin.toml: no [[listener]]"]),
        (LISTENER, vec!["kirin.toml: no [[route]]"]),
        (
            &format!("{LISTENER}{LISTENER}{route}"),
            vec!["kirin.toml:4:11", "`8080` is already the address of a [[listener]], on line 2"],
        ),
        (
            &format!("metrics = \"127.0.0.1:8080\"\n{LISTENER}{route}"),
            vec!["kirin.toml:1:11", "is already the address of a [[listener]]"],
        ),
        (
            &format!("{LISTENER}{route}[store]\nmemcached = [\"unix:s\", \"unix:s\"]\n"),
            vec!["`unix:s` is already the address of `store.memcached`"],
        ),
        (
            "[[listener]]\nadress = \"x\"\n",
            vec!["kirin.toml:2:1", "unknown key `adress`", "`address`"],
        ),
        (
            "threads = \"two\"\n",
            vec!["kirin.toml:1:11", "`threads` is \"two\": allowed is a whole number"],
        ),
        (
            &format!("threads = 0\n{LISTENER}{route}"),
            vec!["kirin.toml:1:11", "allowed is 1 to 1024"],
        ),
        (
            "[[listener]]\naddress = \"host:port\"\n[[route]]\npath = \"/\"\ntry = [\"store\"]\n",
            vec!["kirin.toml:2:11", "`host:port` is not an address", "unix:PATH"],
        ),
        (
            &format!("{LISTENER}[store]\nmemory = \"64\"\n{route}"),
            vec!["kirin.toml:4:10", "write \"64B\", \"64KB\" or \"64MB\""],
        ),
        (&format!("{LISTENER}[store]\nmemory = \"64KB\"\n{route}"), vec!["at least 1MB"]),
        (
            &format!("{LISTENER}[lua]\nmemory_limit = \"64KB\"\n{route}"),
            vec!["lua.memory_limit", "at least 1MB"],
        ),
        (
            &format!("{LISTENER}[store]\nsession_cookie = \"a=b\"\n{route}"),
            vec!["kirin.toml:4:18", "`a=b` is not the name of a cookie"],
        ),
        (
            &format!("{LISTENER}[[route]]\npath = \"x\"\ntry = [\"store\"]\n"),
            vec!["kirin.toml:4:8", "begin with `/`"],
        ),
        (
            &format!("{LISTENER}[[route]]\npath = \"/\"\ntry = []\n"),
            vec!["kirin.toml:4:8", "is empty"],
        ),
        (
            &format!("url_patterns = [\"/a\", \"b/{{id}}\"]\n{LISTENER}{route}"),
            vec!["kirin.toml:1:23", "`url_patterns`: pattern \"b/{id}\" must begin with \"/\""],
        ),
        (
            &format!("url_patterns = [\"/a?b\", \"/a?b&{{c}}\"]\n{LISTENER}{route}"),
            vec!["kirin.toml:1:25", "parameter \"{c}\" of pattern \"/a?b&{c}\" must be a name"],
        ),
        (
            &format!("{LISTENER}[[route]]\npath = \"/s\"\ntry = [\"status\"]\n"),
            vec!["route `/s`", "`status` would show everybody", "`basic_auth = \"FILE\"`"],
        ),
        (
            &format!("{LISTENER}[[route]]\npath = \"/\"\ntry = [\"shop\"]\n"),
            vec!["kirin.toml:5:8", "`shop` is not a place", "app:NAME"],
        ),
        (
            &format!("{LISTENER}[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n"),
            vec!["no app `web`", "no [[app]]"],
        ),
        (
            &format!("{LISTENER}[[route]]\npath = \"/\"\ntry = [\"files:gone\"]\n"),
            vec!["kirin.toml:5:8", "no directory", "gone"],
        ),
        (
            &format!("{LISTENER}[[app]]\nname = \"web\"\nload = \"gone.psgi\"\n{route}"),
            vec!["kirin.toml:5:8", "no file", "gone.psgi"],
        ),
        (
            &format!("{LISTENER}[[app]]\nname = \"a b\"\nload = \"app.psgi\"\n{route}"),
            vec!["kirin.toml:4:8", "app name `a b`"],
        ),
        (
            &format!(
                "{LISTENER}[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 0\n{route}"
            ),
            vec!["kirin.toml:6:11", "allowed is 1 to 4096"],
        ),
        (
            &format!(
                "{LISTENER}[[app]]\nname = \"web\"\nload = \"app.psgi\"\nshared_memory = \"64KB\"\n{route}"
            ),
            vec!["kirin.toml:6:17", "64KB", "5 workers need at least 320KB", "\"0B\" is for none"],
        ),
        (
            &format!(
                "{LISTENER}[[app]]\nname = \"web\"\nload = \"app.psgi\"\nslow = \"60s\"\n{route}"
            ),
            vec!["kirin.toml:6:8", "`slow` of app `web` is 60s, but `deadline` is 60s"],
        ),
        (
            &format!(
                "{LISTENER}[[app]]\nname = \"web\"\nload = \"app.psgi\"\n[[route]]\npath = \"/\"\ntry = [\"app:web\", \"store\"]\n"
            ),
            vec!["kirin.toml:8:8", "must be the last"],
        ),
        (
            &format!("{LISTENER}{route}compress = \"gzip\"\n"),
            vec!["kirin.toml:6:12", "true, false or a list such as [\"br\", \"zstd\", \"gzip\"]"],
        ),
        (
            &format!("{LISTENER}{route}compress = [\"gzip\", \"deflate\"]\n"),
            vec!["kirin.toml:6:12", "`deflate` is not a coding", "br, zstd and gzip"],
        ),
        (
            &format!("user = \"nobody-here\"\n{LISTENER}{route}"),
            vec!["kirin.toml:1:8", "no user `nobody-here`"],
        ),
        (
            &format!("connections = 0\n{LISTENER}{route}"),
            vec!["kirin.toml:1:15", "`connections` is 0"],
        ),
        (
            &format!("{LISTENER}connections_per_address = 0\n{route}"),
            vec!["kirin.toml:3:27", "`connections_per_address` is 0"],
        ),
        (
            &format!("{LISTENER}head_limit = \"4KB\"\n{route}"),
            vec!["kirin.toml:2:11", "`head_limit` is 4KB and `request_line_limit` 8KB"],
        ),
        (&format!("{LISTENER}head_limit = \"2MB\"\n{route}"), vec!["up to 1MB"]),
        (
            &format!("{LISTENER}min_rate = \"10/s\"\n{route}"),
            vec!["kirin.toml:3:12", "is not a size"],
        ),
        (
            &format!("{LISTENER}{route}rate_limit = [{{ rate = \"10\" }}]\n"),
            vec!["kirin.toml:6:24", "write \"10/s\""],
        ),
        (
            &format!("{LISTENER}{route}rate_limit = [{{ rate = \"10/s\", burst = 0 }}]\n"),
            vec!["kirin.toml:6:40", "`burst` is 0"],
        ),
        (
            &format!("{LISTENER}{route}rate_limit = [{{ rate = \"10/s\", key = \"header:\" }}]\n"),
            vec!["kirin.toml:6:38", "rate limit key `header:`", "cookie:NAME"],
        ),
        (&format!("{LISTENER}{route}{route}"), vec!["kirin.toml:7:8", "second [[route]]"]),
    ] {
        let error = check_text(text).expect_err(text);
        for part in expected {
            assert!(error.contains(part), "{text}\ngave: {error}\nwithout: {part}");
        }
    }
}

#[test]
fn all_errors_of_a_file_are_reported_at_once_in_its_order() {
    let text = "threads = 0\n[[listener]]\nadress = \"x\"\naddress = \"8080\"\nmin_rate = \"5\"\n\
                [[upstream]]\nname = \"api\"\nservers = [\"ftp://x\"]\n[[route]]\npath = \"/\"\n\
                try = [\"shop\", \"proxy:ap\"]\n[[route]]\npath = \"x\"\ntri = [\"store\"]\n";
    let said = check_text(text).unwrap_err();
    let places: Vec<&str> =
        said.lines().filter_map(|line| line.strip_prefix("kirin.toml:")).collect();
    let expected = [
        ("1:11: ", "`threads` is 0: allowed is 1 to 1024"),
        ("3:1: ", "did you mean `address`?"),
        ("5:12: ", "`5` is not a size"),
        ("8:12: ", "`ftp://x` is not a server"),
        ("11:8: ", "`shop` is not a place"),
        ("11:16: ", "there is no upstream `ap`; upstreams: api; did you mean `api`?"),
        ("14:1: ", "did you mean `try`?"),
    ];
    assert_eq!(places.len(), expected.len(), "{said}");
    for (place, (position, message)) in places.iter().zip(expected) {
        assert!(place.starts_with(position) && place.contains(message), "{place}");
    }
}

#[test]
fn an_error_that_follows_from_another_is_not_reported() {
    // Without the wrong key, `try` would be missing and the route would have no path.
    let route = "[[route]]\npath = \"/\"\ntry = \"store\"\nssi = 1\n";
    let said = check_text(&format!("{LISTENER}{route}")).unwrap_err();
    assert_eq!(said.matches("kirin.toml:").count(), 2, "{said}");
    assert!(!said.contains("is empty"), "{said}");
    let said =
        check_text(&format!("{LISTENER}[[route]]\ntry = [\"app:a\"]\nesi = 2\n")).unwrap_err();
    assert_eq!(said.matches("kirin.toml:").count(), 2, "{said}");
    assert!(said.contains("`path` is missing") && !said.contains("no app"), "{said}");
}

#[test]
fn a_mistake_is_one_error() {
    let route = "[[route]]\npath = \"/\"\ntry = [\"store\"]\n";
    for (text, said) in [
        (
            format!("[[listener]]\naddress = 8080\n{route}"),
            "kirin.toml:2:11: `address` is the number 8080: allowed is a text in quotes; write \
             `address = \"8080\"`\n    address = 8080",
        ),
        (
            format!("[listener]\naddress = \"8080\"\n{route}"),
            "kirin.toml:1:1: `listener` is a table: allowed is a list; write `[[listener]]`\n    \
             [listener]",
        ),
        (
            format!("{LISTENER}[route]\npath = \"/\"\ntry = [\"store\"]\n"),
            "kirin.toml:3:1: `route` is a table: allowed is a list; write `[[route]]`\n    [route]",
        ),
        (
            format!("{LISTENER}{route}{route}"),
            "kirin.toml:7:8: a second [[route]] with the path `/`; the first is on line 4\n    \
             path = \"/\"",
        ),
        (
            format!("{LISTENER}[[route]]\npath = \"/\"\ntry = files:public\n"),
            "kirin.toml:5:7: invalid boolean, expected `false`; text is written in quotes: `try = \
             \"files:public\"`\n    try = files:public",
        ),
    ] {
        assert_eq!(check_text(&text).unwrap_err(), said, "{text}");
    }
    // Without its key, the table cannot be used. It is not told that the key is missing, too.
    let said = check_text(&format!("[[listener]]\nadress = \"8080\"\n{route}")).unwrap_err();
    assert!(said.contains("did you mean `address`?") && !said.contains("missing"), "{said}");
    // Of two tables, only the other one lacks the key.
    let said = check_text(&format!("[[listener]]\n[[listener]]\naddress = 8080\n{route}"));
    let said = said.unwrap_err();
    assert!(said.contains("kirin.toml:1:1: `address` is missing"), "{said}");
    assert_eq!(said.matches("kirin.toml:").count(), 2, "{said}");
    let said = check_text("listener = []\nroute = []\n").unwrap_err();
    assert!(said.contains("no [[listener]]") && said.contains("no [[route]]"), "{said}");
}

#[test]
fn all_errors_of_syntax_are_reported_without_errors_in_values() {
    let said = check_text("a = \n[[listener]\naddress = 5\n").unwrap_err();
    assert!(said.contains("kirin.toml:1:5") && said.contains("kirin.toml:2:12"), "{said}");
    assert!(!said.contains("kirin.toml:3"), "{said}");
}

#[test]
fn the_number_of_reported_errors_is_limited() {
    let text: String = (0..1000).map(|number| format!("key{number} = 1\n")).collect();
    let said = check_text(&text).unwrap_err();
    assert!((50..=51).contains(&said.matches("kirin.toml:").count()), "{said}");
}

#[test]
fn a_route_keeps_its_number_and_no_other_gets_it() {
    let route = |path: &str| format!("[[route]]\npath = \"{path}\"\nredirect = \"/\"\n");
    let text = |paths: &[&str]| {
        let routes: String = paths.iter().map(|path| route(path)).collect();
        format!("[[listener]]\naddress = \"127.0.0.1:0\"\n{routes}")
    };
    let numbers = |config: &Config| {
        let routes = config.gateway.sites.iter().flat_map(|site| &site.routes);
        routes.map(|route| (route.path.to_string(), route.number)).collect::<Vec<_>>()
    };
    let source = |paths: &[&str]| ConfigSource::from_text("kirin.toml", ".", text(paths));
    let first = read(&source(&["/a", "/b"])).unwrap();
    assert_eq!(numbers(&first), [("/a".into(), 0), ("/b".into(), 1)]);
    let second = read_after(&source(&["/new", "/b"]), &first).unwrap();
    assert_eq!(numbers(&second), [("/new".into(), 2), ("/b".into(), 1)]);
    let third = read_after(&source(&["/a", "/b", "/new"]), &second).unwrap();
    assert_eq!(numbers(&third), [("/a".into(), 3), ("/b".into(), 1), ("/new".into(), 2)]);
}
