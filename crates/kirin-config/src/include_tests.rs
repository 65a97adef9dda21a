//! Configurations of several files with what they make, or with their errors.

use std::ffi::OsString;
use std::path::Path;

use crate::check::{Config, read};
use crate::difference::difference;
use crate::source::ConfigSource;
use crate::source_file::SourceFile;

/// The variables of the tests.
const VARIABLES: [(&str, &str); 7] = [
    ("PORT", "8080"),
    ("WORKERS", "3"),
    ("ZERO", "0"),
    ("YES", "true"),
    ("WORD", "hunter22"),
    ("DIRECTORY", "sites"),
    ("EMPTY", ""),
];

fn variable(name: &str) -> Option<OsString> {
    let found = VARIABLES.iter().find(|(other, _)| *other == name);
    found.map(|(_, value)| OsString::from(value))
}

/// Writes files. The first is the main file.
pub(in super::super) fn write(directory: &Path, files: &[(&str, &str)]) {
    std::fs::create_dir_all(directory.join("public")).unwrap();
    std::fs::write(directory.join("app.psgi"), "sub {}").unwrap();
    for (name, text) in files {
        let path = directory.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
}

pub(in super::super) fn source(directory: &Path, files: &[(&str, &str)]) -> ConfigSource {
    write(directory, files);
    let (main, text) = files[0];
    let path = directory.join(main);
    let main = SourceFile::new(main.to_owned(), text.to_owned(), 0);
    ConfigSource::new(main, Some(&path), directory.to_owned(), &variable)
}

/// Reads a configuration of these files. Errors have no paths of the test's directory.
pub(in super::super) fn check_files(files: &[(&str, &str)]) -> Result<Config, String> {
    let directory = tempfile::tempdir().unwrap();
    let source = source(directory.path(), files);
    let inside = format!("{}/", directory.path().display());
    read(&source).map_err(|errors| errors.to_string().replace(&inside, ""))
}

pub(in super::super) const LISTENER: &str = "[[listener]]\naddress = \"8080\"\n";

pub(in super::super) const ROUTE: &str = "[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n";

pub(in super::super) fn site(host: &str) -> String {
    format!(
        "[[site]]\nhosts = [\"{host}\"]\n[[site.route]]\npath = \"/\"\ntry = [\"files:public\"]\n"
    )
}

/// Returns the names of the sites, in their order.
pub(in super::super) fn names(config: &Config) -> Vec<&str> {
    config.gateway.sites.iter().filter_map(|site| site.name.as_deref()).collect()
}

#[test]
fn lists_of_all_files_are_added_up_in_the_order_of_the_files() {
    let main = format!("include = [\"last.toml\", \"sites/*.toml\", \"none/*\"]\n{LISTENER}");
    let config = check_files(&[
        ("kirin.toml", &main),
        ("last.toml", &format!("include = [\"more/x.toml\"]\nthreads = 2\n{}", site("a.org"))),
        ("more/x.toml", &format!("[store]\nmemory = \"8MB\"\n{}", site("x.org"))),
        ("sites/2.toml", &site("c.org")),
        ("sites/10.toml", &format!("{}{}", site("b.org"), LISTENER.replace('8', "9"))),
        ("sites/.hidden.toml", "["),
        ("sites/old.toml~", "["),
    ])
    .unwrap();
    assert_eq!(names(&config), ["a.org", "x.org", "b.org", "c.org"]);
    assert_eq!((config.threads, config.listeners.len()), (2, 2));
    assert_eq!(config.store.engine.memory_bytes, 8 << 20);
    let paths: Vec<_> = config
        .included_paths
        .iter()
        .map(|path| path.file_name().unwrap().to_string_lossy())
        .collect();
    assert_eq!(paths, ["sites", "last.toml", "x.toml", "10.toml", "2.toml"]);
}

#[test]
fn relative_paths_of_an_included_file_begin_at_the_main_file() {
    let files = [
        ("kirin.toml", &*format!("include = [\"sites/a.toml\"]\n{LISTENER}")),
        ("sites/a.toml", "include = [\"sites/b.toml\"]\n"),
        ("sites/b.toml", &site("b.org")),
    ];
    assert_eq!(names(&check_files(&files).unwrap()), ["b.org"]);
}

#[test]
fn every_error_names_its_file_and_line() {
    let main = format!("include = [\"sites/*.toml\"]\n{LISTENER}{ROUTE}");
    for (file, expected) in [
        (
            "threads = 1\n[[site]\nhosts = 1\n",
            "sites/a.toml:2:8: unclosed array table, expected `]`\n    [[site]",
        ),
        (
            "[[site]]\nhosts = a.org\n",
            "sites/a.toml:2:9: string values must be quoted, expected literal string; text is written in quotes: `hosts = \"a.org\"`\n    hosts = a.org",
        ),
        (
            "\nthread = 1\n",
            "sites/a.toml:2:1: unknown key `thread`: allowed are `include`, `threads`, `user`, \
             `connections`, `limits`, `listener`, `store`, `admin`, `traces`, `metrics`, \
             `url_patterns`, `app`, `open_file_cache`, `lua`, `upstream`, `route`, `site`; did you \
             mean `threads`?\n    thread = 1",
        ),
        (
            "# A comment.\n\n[[app]]\nname = 5\nload = \"app.psgi\"\n",
            "sites/a.toml:4:8: `name` is the number 5: allowed is a text in quotes; write \
             `name = \"5\"`\n    name = 5",
        ),
        ("[[app]]\nload = \"app.psgi\"\n", "sites/a.toml:1:1: `name` is missing\n    [[app]]"),
        (
            "[[route]]\npath = \"/a\"\ntry = [\"files:none\"]\n",
            "sites/a.toml:3:8: there is no directory none\n    try = [\"files:none\"]",
        ),
        (
            "[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n",
            "sites/a.toml:2:8: a second [[route]] with the path `/`; the first is on line 5 of \
             kirin.toml\n    path = \"/\"",
        ),
        (
            "[[listener]]\naddress = \"127.0.0.1:8080\"\n",
            "sites/a.toml:2:11: `127.0.0.1:8080` is already the address of a [[listener]], on line \
             3 of kirin.toml\n    address = \"127.0.0.1:8080\"",
        ),
        (
            "[[app]]\nname = \"a\"\nload = \"app.psgi\"\n[[app]]\nname = \"a\"\nload = \"app.psgi\"\n",
            "sites/a.toml:5:8: a second [[app]] with the name `a`; the first is on line 2\n    name = \"a\"",
        ),
        (
            "[[site]]\nhosts = [\"a.org\"]\nlisting = true\n[[site.route]]\npath = \"/\"\nredirect = \"https://b.org/\"\n",
            "sites/a.toml:3:1: `listing` has no effect: no route of the site has files:DIR in \
             `try`, which it is for\n    listing = true",
        ),
        (
            "[site]\nhosts = [\"a.org\"]\n",
            "sites/a.toml:1:1: `site` is a table: allowed is a list; write `[[site]]`\n    [site]",
        ),
        (
            "[lua]\ninclude = [\"x\"]\n",
            "sites/a.toml:2:1: unknown key `include`: allowed are `time_limit`, `memory_limit`, \
             `body_limit`; `include` stands before the first [table] of a file\n    \
             include = [\"x\"]",
        ),
        (
            "include = \"x\"\n",
            "sites/a.toml:1:11: `include` is \"x\": allowed is a list; write `include = [\"x\"]`\n    \
             include = \"x\"",
        ),
    ] {
        let said = check_files(&[("kirin.toml", &main), ("sites/a.toml", file)]).unwrap_err();
        assert_eq!(said, expected);
    }
}

#[test]
fn errors_of_all_files_are_reported_in_the_order_of_the_files() {
    let said = check_files(&[
        ("kirin.toml", &format!("include = [\"a.toml\", \"b.toml\"]\nuser = 1\n{LISTENER}{ROUTE}")),
        ("a.toml", "[[app]]\nname = 1\n"),
        ("b.toml", "\n\n[[app]]\nnam = 1\n"),
    ])
    .unwrap_err();
    let places: Vec<_> = said.lines().filter(|line| line.contains(".toml:")).collect();
    let begins = ["kirin.toml:2:8: ", "a.toml:2:8: ", "b.toml:4:1: "];
    assert_eq!(places.len(), begins.len(), "{said}");
    assert!(places.iter().zip(begins).all(|(line, begin)| line.starts_with(begin)), "{said}");
}

#[test]
fn a_key_that_is_no_list_is_in_one_file() {
    let said = check_files(&[
        ("kirin.toml", &format!("include = [\"a.toml\"]\nthreads = 1\n{LISTENER}{ROUTE}[store]\n")),
        ("a.toml", "threads = 1\nurl_patterns = []\n[store]\nmemory = \"8MB\"\n"),
    ]);
    assert_eq!(
        said.unwrap_err(),
        "a.toml:1:1: `threads` is already on line 2 of kirin.toml; only one file of a configuration \
         has it\n    threads = 1\n\
         a.toml:3:2: `store` is already on line 8 of kirin.toml; only one file of a configuration \
         has it\n    [store]"
    );
}

#[test]
fn what_cannot_be_included_is_named_with_the_line_of_include() {
    let at = |column: usize, message: &str, line: &str| {
        format!("kirin.toml:1:{column}: `include`: {message}\n    include = {line}")
    };
    for (line, expected) in [
        (
            "[\"none.toml\"]",
            at(
                12,
                "cannot read none.toml: No such file or directory (os error 2)",
                "[\"none.toml\"]",
            ),
        ),
        ("[\"public\"]", at(12, "cannot read public: is a directory", "[\"public\"]")),
        (
            "[\"**/a\"]",
            at(12, "`**/a` has `**`, but `*` matches names in one directory", "[\"**/a\"]"),
        ),
        (
            "[\"${NONE}/*\"]",
            at(
                12,
                "the environment variable `NONE` is not set: set it, or write a default, such as \
                 `${NONE:-VALUE}`",
                "[\"${NONE}/*\"]",
            ),
        ),
        (
            "[\"c.toml\", \"c.t?ml\"]",
            at(
                22,
                "c.toml is included twice; the first time is on line 1",
                "[\"c.toml\", \"c.t?ml\"]",
            ),
        ),
        (
            "[\"kirin.toml\"]",
            at(
                12,
                "files include each other in a circle: kirin.toml, kirin.toml",
                "[\"kirin.toml\"]",
            ),
        ),
        (
            "[\"c.toml\", \"d.toml\"]",
            "d.toml:2:12: `include`: c.toml is included twice; the first time is on line 1 of \
             kirin.toml\n    include = [\"c.toml\"]"
                .into(),
        ),
        (
            "[\"a.toml\"]",
            "b.toml:1:12: `include`: files include each other in a circle: a.toml, b.toml, \
             a.toml\n    include = [\"./a.toml\"]"
                .into(),
        ),
    ] {
        let said = check_files(&[
            ("kirin.toml", &format!("include = {line}\n")),
            ("a.toml", "include = [\"b.toml\"]"),
            ("b.toml", "include = [\"./a.toml\"]"),
            ("c.toml", ""),
            ("d.toml", "# Twice.\ninclude = [\"c.toml\"]"),
        ]);
        assert_eq!(said.unwrap_err(), expected);
    }
}

#[test]
fn two_links_to_one_file_are_one_file() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), &[("available/a.toml", ""), ("sites/x", "")]);
    for link in ["sites/1.toml", "sites/2.toml"] {
        std::os::unix::fs::symlink("../available/a.toml", directory.path().join(link)).unwrap();
    }
    let source = source(directory.path(), &[("kirin.toml", "include = [\"sites/*.toml\"]\n")]);
    let said = read(&source).unwrap_err().to_string();
    assert!(
        said.contains("sites/1.toml is included twice; the first time is on line 1\n"),
        "{said}"
    );
}

#[test]
fn a_configuration_has_a_largest_number_of_files() {
    let directory = tempfile::tempdir().unwrap();
    let sites = directory.path().join("sites");
    std::fs::create_dir(&sites).unwrap();
    for number in 0..10_000 {
        std::fs::write(sites.join(format!("{number}.toml")), "").unwrap();
    }
    let text = format!("include = [\"sites/*.toml\"]\n{LISTENER}{ROUTE}");
    let with_all = source(directory.path(), &[("kirin.toml", &text)]);
    let said = read(&with_all).unwrap_err().to_string();
    assert!(said.starts_with("kirin.toml:1:12: `include`: more than 10000 files\n"), "{said}");
    std::fs::remove_file(sites.join("7.toml")).unwrap();
    let source = source(directory.path(), &[("kirin.toml", &text)]);
    assert_eq!(read(&source).unwrap().included_paths.len(), 10_000);
}

#[test]
fn the_files_of_keys_make_no_difference() {
    let directory = tempfile::tempdir().unwrap();
    let lines = |old: &[(&str, &str)], new: &[(&str, &str)]| {
        let old = source(directory.path(), old);
        let new = source(directory.path(), new);
        difference(&old, &new).iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let (a, b) = (site("a.org"), site("b.org"));
    let include = format!("include = [\"s/*\"]\n{LISTENER}");
    let old = [("kirin.toml", &*include), ("s/1", &*a), ("s/2", &b)];
    let (joined, empty) = (format!("{a}{b}"), "");
    assert!(lines(&old, &[("kirin.toml", &include), ("s/1", &joined), ("s/2", empty)]).is_empty());
    let b = b.replace("path = \"/\"", "path = \"/x\"");
    let new = [("kirin.toml", &*include), ("s/1", &*b), ("s/2", &a)];
    assert_eq!(
        lines(&old, &new),
        ["[[site]] b.org, [[route]] /x: added", "[[site]] b.org, [[route]] /: removed"]
    );
}
