//! Tests of the keys of files: their values, and the messages for wrong ones.

use std::time::Duration;

use crate::check::tests::{LISTENER, check_text};

fn route(keys: &str) -> String {
    format!("{LISTENER}[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n{keys}\n")
}

#[test]
fn the_open_file_cache_has_defaults_and_takes_its_limits_from_the_file() {
    let site = check_text(&route("")).unwrap();
    let limits = site.gateway.open_file_cache;
    assert_eq!((limits.paths, limits.bytes, limits.small_file_bytes), (10_000, 64 << 20, 64 << 10));
    assert_eq!((limits.validity, site.file_descriptors), (Duration::from_secs(1), None));
    let text = route("")
        + "[open_file_cache]\npaths = 50000\nmemory = \"512MB\"\ndescriptors = 7\n\
           small_file = \"8KB\"\nvalidity = \"60s\"\n";
    let site = check_text(&text).unwrap();
    let limits = site.gateway.open_file_cache;
    assert_eq!((limits.paths, limits.bytes, limits.small_file_bytes), (50_000, 512 << 20, 8 << 10));
    assert_eq!((limits.validity, site.file_descriptors), (Duration::from_secs(60), Some(7)));
}

#[test]
fn a_route_has_index_names_and_variants_unless_it_says_otherwise() {
    for (keys, index, precompressed) in [
        ("", &["index.html"][..], true),
        ("index = [\"a.htm\", \"b c\"]\nprecompressed = false", &["a.htm", "b c"], false),
        ("index = []\nprecompressed = true", &[], true),
    ] {
        let site = check_text(&route(keys)).unwrap();
        let found = &site.gateway.sites[0].routes[0];
        assert_eq!(
            (&found.index[..], found.precompressed),
            (&index.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()[..], precompressed)
        );
    }
}

#[test]
fn errors_in_keys_of_files_name_line_value_and_what_is_allowed() {
    let scripts =
        "[[upstream]]\nname = \"php\"\nservers = [\"fastcgi://127.0.0.1:9\"]\nroot = \"public\"\n";
    for (text, expected) in [
        (route("index = [\"a/b\"]"), vec!["kirin.toml:6:10", "index `a/b` is not a file name"]),
        (
            route("fallback = \"index.PHP\"") + scripts,
            vec!["kirin.toml:6:12", "fallback `index.PHP`", "`.php` is a script"],
        ),
        (route("fallback = \"/index.html\""), vec!["kirin.toml:6:12", "name of a file below"]),
        (route("fallback = \"../a\""), vec!["fallback `../a`", "name of a file below"]),
        (
            route("fallback = \"index.html\"\nimmutable = true"),
            vec!["kirin.toml:6:12", "the page changes with each build"],
        ),
        (
            route("fallback = \"index.html\"").replace("public\"", "public\", \"proxy:php\"")
                + scripts,
            vec!["kirin.toml:6:12", "`proxy:php` always answers", "a route of its own"],
        ),
        (
            route("fallback = \"index.html\"").replace("files:public", "store"),
            vec!["`fallback` of route `/`: there is no files:DIR in `try`"],
        ),
        (
            route("immutable = true").replace("files:public", "store"),
            vec!["`immutable` of route `/`: there is no files:DIR in `try`"],
        ),
        (route("index = [\"\"]"), vec!["kirin.toml:6:10", "must not be empty"]),
        (route("index = [\".htaccess\"]"), vec!["kirin.toml:6:10", "start with `.`"]),
        (
            route("index = [\"index.html\", \"index.PHP\"]") + scripts,
            vec!["kirin.toml:6:24", "index `index.PHP`", "`.php` is a script"],
        ),
        (
            route("mime_types = { md = \"markdown\" }"),
            vec!["kirin.toml:6:21", "`markdown` is not a media type", "text/plain"],
        ),
        (
            route("mime_types = { md = \"text/plain\\r\\nX: y\" }"),
            vec!["kirin.toml:6:21", "is not a media type"],
        ),
        (
            route("mime_types = { \".md\" = \"text/markdown\" }"),
            vec!["kirin.toml:6:16", "`.md` is not an extension", "`*`"],
        ),
        (
            route("charset = \"utf 8\""),
            vec!["kirin.toml:6:11", "`utf 8` is not a charset", "\"utf-8\""],
        ),
        (
            route("") + "[open_file_cache]\npaths = -1\n",
            vec!["kirin.toml:8:9", "`paths` is -1", "allowed is 0"],
        ),
        (
            route("") + "[open_file_cache]\nentries = 1\n",
            vec!["kirin.toml:8:1", "unknown key `entries`", "`paths`"],
        ),
    ] {
        let error = check_text(&text).expect_err(&text);
        for part in expected {
            assert!(error.contains(part), "{text}\ngave: {error}\nwithout: {part}");
        }
    }
}

#[test]
fn keys_of_files_are_refused_where_no_place_has_files() {
    for key in [
        "precompressed = false",
        "index = [\"a\"]",
        "index = []",
        "mime_types = { a = \"b/c\" }",
        "charset = \"\"",
    ] {
        let text = format!("{LISTENER}[[route]]\npath = \"/\"\ntry = [\"store\"]\n{key}\n");
        let error = check_text(&text).unwrap_err();
        let name = key.split(' ').next().unwrap();
        assert!(
            error.contains(&format!("`{name}` of route `/`: there is no files:DIR")),
            "{error}"
        );
    }
}
