//! Configurations with variables, and what they make of them.

use std::ffi::OsString;

use kirin_files::FollowLinks;
use proptest::prelude::*;

use crate::check::read;
use crate::difference::difference;
use crate::include::tests::{LISTENER, ROUTE, check_files, names, site, source, write};
use crate::source::ConfigSource;
use crate::source_file::SourceFile;

#[test]
fn variables_are_values_of_keys() {
    let main = r#"
include = ["${DIRECTORY}/*.toml"]
threads = "${WORKERS}"
[[listener]]
address = "127.0.0.1:${PORT}"
access_log = { path = "a.log", sample = "${SAMPLE:-0.5}" }
[[app]]
name = "web"
load = "app.psgi"
workers = "${WORKERS:-5}"
env = { A = "${WORD}", B = "$${WORD} $1", "${X}" = "${EMPTY}" }
[[app]]
name = "other"
load = "app.psgi"
workers = "${NONE:-7}"
[[route]]
path = "/"
try = ["files:public"]
listing = "${YES}"
follow_links = "${YES}"
"#;
    let file = site("${NONE:-a}.org") + "cache = \"${YES}\"\n";
    let file = file.replace("files:public", "app:web");
    let config = check_files(&[("kirin.toml", main), ("sites/a.toml", &file)]).unwrap();
    assert_eq!((config.threads, names(&config)), (3, vec!["a.org"]));
    assert_eq!(config.listeners[0].address.to_string(), "127.0.0.1:8080");
    assert_eq!([config.apps[0].workers, config.apps[1].workers], [3, 7]);
    let mut variables: Vec<_> =
        config.apps[0].env.iter().map(|(a, b)| format!("{a:?}={b:?}")).collect();
    variables.sort();
    assert_eq!(variables, ["\"${X}\"=\"\"", "\"A\"=\"hunter22\"", "\"B\"=\"${WORD} $1\""]);
    let [top_level, site] = &config.gateway.sites[..] else { panic!("{:?}", config.gateway.sites) };
    assert!(site.routes[0].cache.is_some());
    let route = &top_level.routes[0];
    assert_eq!((route.listing, route.follow_links), (true, FollowLinks::All));
}

#[test]
fn errors_about_variables_name_them_and_not_their_values() {
    let form = "a variable is `${NAME}` or `${NAME:-DEFAULT}`, and `$${` stands for the \
                characters `${`";
    let app = |key: &str| format!("[[app]]\nname = \"a\"\nload = \"app.psgi\"\n{key}\n");
    let set = "is set in the environment";
    for (text, place, message) in [
        (
            app("directory = \"${NONE}\""),
            "4:13",
            "`directory`: the environment variable `NONE` is not set: set it, or write a default, \
             such as `${NONE:-VALUE}`"
                .to_owned(),
        ),
        (app("workers = \"${NONE\""), "4:11", format!("`workers`: `${{` has no `}}`: {form}")),
        (
            app("env = { A = \"${a-b}\" }"),
            "4:13",
            format!(
                "`A`: `a-b` is not the name of a variable, which has letters, digits and `_`: {form}"
            ),
        ),
        (
            app("workers = \"${WORD}\""),
            "4:11",
            format!("`workers` is \"${{WORD}}\": allowed is a whole number; `WORD` {set}"),
        ),
        (
            app("workers = \"${ZERO}\""),
            "4:11",
            format!("`workers` is ${{ZERO}}: allowed is 1 to 4096; `ZERO` {set}"),
        ),
        (app("workers = \"${NONE:-0}\""), "4:11", "`workers` is 0: allowed is 1 to 4096".into()),
        (
            app("workers = \"${YES}\""),
            "4:11",
            format!("`workers` is ${{YES}}: allowed is a whole number; `YES` {set}"),
        ),
        (
            app("workers = \"1${ZERO}\""),
            "4:11",
            format!("`workers` is \"1${{ZERO}}\": allowed is a whole number; `ZERO` {set}"),
        ),
        (
            app("deadline = \"${WORD}\""),
            "4:12",
            format!(
                "`${{WORD}}` is not a time: write a number above 0 and s, m, h or d, such as \
                 \"30s\"; `WORD` {set}"
            ),
        ),
        (
            app("directory = \"x/${WORD}\""),
            "4:13",
            format!("there is no directory x/${{WORD}}; `WORD` {set}"),
        ),
        (
            "[[route]]\npath = \"/a\"\ntry = [\"app:${WORD}\"]\n".into(),
            "3:8",
            format!("there is no app `${{WORD}}`; apps: there is no [[app]]; `WORD` {set}"),
        ),
    ] {
        let main = format!("include = [\"a.toml\"]\n{LISTENER}{ROUTE}");
        let said = check_files(&[("kirin.toml", &main), ("a.toml", &text)]).unwrap_err();
        let line: usize = place.split(':').next().unwrap().parse().unwrap();
        let line = text.lines().nth(line - 1).unwrap();
        assert_eq!(said, format!("a.toml:{place}: {message}\n    {line}"));
    }
}

#[test]
fn a_key_that_has_lost_its_variable_is_not_missing() {
    let said = check_files(&[(
        "kirin.toml",
        &format!("{LISTENER}{ROUTE}[[app]]\nname = \"${{NONE}}\"\nload = \"app.psgi\"\n"),
    )]);
    let said = said.unwrap_err();
    assert!(said.starts_with("kirin.toml:7:8: `name`: the environment variable `NONE`"), "{said}");
    assert_eq!(said.matches("kirin.toml:").count(), 1, "{said}");
}

#[test]
fn a_difference_shows_variables_and_not_their_values() {
    let directory = tempfile::tempdir().unwrap();
    let listener = |address: &str| format!("[[listener]]\naddress = \"{address}\"\n");
    let main = |rest: &str| format!("{rest}{}", listener("${PORT}"));
    let check = |old: &str, new: &str, expected: &[&str]| {
        let [from, to] = [old, new].map(|text| source(directory.path(), &[("kirin.toml", text)]));
        let said: Vec<_> = difference(&from, &to).iter().map(ToString::to_string).collect();
        assert_eq!(said, expected, "{old}\n{new}");
    };
    check(&main(""), &listener("8080"), &[]);
    check(&main(""), &listener("${NONE:-8080}"), &[]);
    check(
        &main("user = \"${WORD}\"\n"),
        &main("user = \"a${EMPTY}\"\n"),
        &["user \"${WORD}\" → \"a${EMPTY}\""],
    );
    check(&main("user = \"${WORD}\"\n"), &main("user = \"hunter22\"\n"), &[]);
    check(
        &main(""),
        &main("url_patterns = [\"${WORD}\"]\n"),
        &["url_patterns added [\"${WORD}\"]"],
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_variable_never_leaves_its_string(value in "[\"'\\n\\\\$\\{\\}\\[\\]#=a-z ]{1,30}") {
        let text = format!(
            "{LISTENER}{ROUTE}[[app]]\nname = \"a\"\nload = \"app.psgi\"\nenv = {{ A = \"<${{SET}}>\" }}\n"
        );
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), &[]);
        let main = SourceFile::new("kirin.toml".into(), text, 0);
        let set = |name: &str| (name == "SET").then(|| OsString::from(&value));
        let source = ConfigSource::new(main, None, directory.path().to_owned(), &set);
        let config = read(&source).unwrap();
        let (name, text) = &config.apps[0].env[0];
        prop_assert_eq!((name.as_str(), text.as_str()), ("A", &*format!("<{value}>")));
    }
}
