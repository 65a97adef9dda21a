//! Projects that somebody has made to harm the reader.

use std::os::unix::net::UnixListener;
use std::path::Path;

use kirin_config::ConfigSource;
use kirin_init::{InitError, Plan};
use rustix::fs::{CWD, FileType, Mode, mknodat};

use crate::support::{find, project, settings, write};

/// Returns the problems of a project in which nothing can be served.
fn problems(directory: &Path) -> String {
    match find(directory) {
        Err(InitError::Nothing { problems, .. }) => {
            problems.iter().map(|problem| format!("{problem}\n")).collect()
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn an_empty_directory_is_an_error_that_says_what_was_looked_for() {
    let error = find(project(&[]).path()).unwrap_err().to_string();
    for part in ["nothing to serve", "app.psgi", "index.html", "Procfile", "kirin serve DIRECTORY"]
    {
        assert!(error.contains(part), "{part} is not in: {error}");
    }
}

#[test]
fn a_missing_directory_and_a_file_are_errors() {
    let directory = project(&[("file", "")]);
    for name in ["none", "file"] {
        let error = find(&directory.path().join(name)).unwrap_err();
        assert!(matches!(error, InitError::Directory { .. }), "{error}");
        assert!(error.to_string().contains("cannot be opened as a directory"), "{error}");
    }
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let huge = format!("web: x -p 3000\n{}", "x".repeat(10 * 1024 * 1024));
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let huge_json = format!("{{\"a\": \"{}\"}}", "x".repeat(2 * 1024 * 1024));
    for (path, contents, problem) in [
        ("Procfile", huge.as_str(), "Procfile is larger than 1 MB, so it was not read\n"),
        ("package.json", &huge_json, "package.json is larger than 1 MB, so it was not read\n"),
        (
            "package.json",
            &deep,
            "package.json is not JSON: recursion limit exceeded at line 1 column 128\n",
        ),
        (
            "package.json",
            "{",
            "package.json is not JSON: EOF while parsing an object at line 1 column 1\n",
        ),
        ("package.json", "[]", "package.json is not a JSON object\n"),
        (
            "Procfile",
            "->/etc/passwd",
            "Procfile is a link that leads out of the project, so it was not read\n",
        ),
        (
            "Procfile",
            "->../x",
            "Procfile is a link that leads out of the project, so it was not read\n",
        ),
        ("Procfile/", "", "Procfile is not a regular file, so it was not read\n"),
    ] {
        assert_eq!(problems(project(&[(path, contents)]).path()), problem, "{path}");
    }
}

#[test]
fn circles_of_links_end() {
    let directory = project(&[("Procfile", "->Procfile"), ("dist", "->dist"), ("public", "->.")]);
    let problems = problems(directory.path());
    assert!(problems.contains("Procfile could not be read: Too many levels"), "{problems}");
    write(directory.path(), "index.html", "x");
    assert!(matches!(find(directory.path()).unwrap().plan, Plan::Site(_)));
}

#[test]
fn a_fifo_is_not_waited_for() {
    let directory = project(&[]);
    let mode = Mode::from_raw_mode(0o600);
    for name in ["Procfile", "package.json", "app.psgi", "index.html"] {
        let path = directory.path().join(name);
        mknodat(CWD, &path, FileType::Fifo, mode, 0).unwrap();
    }
    let problems = problems(directory.path());
    assert!(problems.contains("Procfile is not a regular file"), "{problems}");
}

#[test]
fn bytes_that_are_no_utf_8_are_replaced() {
    let directory = project(&[]);
    std::fs::write(directory.path().join("Procfile"), b"web: \xff\xfe -p 3000\n").unwrap();
    std::fs::write(directory.path().join("package.json"), b"{\"\xff\": 1}").unwrap();
    let found = find(directory.path()).unwrap();
    assert_eq!(found.evidence[0].fact, "starts the web process: \u{fffd}\u{fffd} -p 3000");
}

#[test]
fn no_text_of_a_project_ends_a_comment_or_moves_the_cursor() {
    let commands = [
        "x\r[[route]]\rpath = \"/x\"",
        "x\u{b}[admin]",
        "x\u{1b}[2J\u{7}",
        "x\u{85}[[route]]",
        "x\u{2028}[[route]]",
        "x\u{202e}gnihtyna",
        "x\u{ad}y",
        "x\u{e0041}y",
        "x\0y",
        &"long ".repeat(10_000),
        &"long".repeat(10_000),
    ];
    for command in commands {
        let directory = project(&[("Procfile", &format!("web: {command}\n"))]);
        let found = find(directory.path()).unwrap();
        let config = kirin_init::config(&found);
        let expected = "[[upstream]]\nname = \"web\"\nservers = [\"http://127.0.0.1:3000\"]\n\
                        [[route]]\npath = \"/\"\ntry = [\"store\", \"proxy:web\"]\n";
        assert_eq!(settings(&config), expected, "{command:?}");
        let text = format!("{config}{}", found.report("kirin serve"));
        let is_bad = |character: char| {
            (character.is_control() && character != '\n') || "\u{2028}\u{202e}".contains(character)
        };
        assert!(!text.contains(is_bad), "{text:?}");
        assert!(text.len() < 10_000, "{}", text.len());
    }
}

#[test]
fn a_name_stays_inside_its_string() {
    for name in [
        "a\"b.psgi",
        "a'b.psgi",
        "a'''b\"\"\".psgi",
        "a\\.psgi",
        "${HOME}.psgi",
        "$${HOME}.psgi",
        "# x.psgi",
        "a\"\u{e4}] [admin].psgi",
    ] {
        let directory = project(&[(name, "sub { }")]);
        let config = kirin_init::config(&find(directory.path()).unwrap());
        let source = ConfigSource::from_text("kirin.toml", directory.path(), config.as_str());
        // Reading fails if the file of `load` is not there.
        let read = kirin_config::read(&source);
        assert!(read.is_ok(), "{name}: {}\n{config}", read.err().unwrap());
    }
}

#[test]
fn a_name_that_cannot_be_shown_is_not_used() {
    for name in ["a\nb.psgi", "a\u{1b}[2J.psgi", "a\u{202e}b.psgi"] {
        assert_eq!(problems(project(&[(name, "sub { }")]).path()), "", "{name:?}");
    }
}

#[test]
fn a_suggested_command_has_no_name_that_a_shell_obeys() {
    let script = "use Catalyst::ScriptRunner;";
    let directory = project(&[("script/$(x)_server.pl", script), ("script/a;b_server.pl", script)]);
    assert_eq!(problems(directory.path()), "");
    let package = r#"{"dependencies": {"express": "5"}, "main": "$(touch x).js"}"#;
    let found = find(project(&[("package.json", package)]).path()).unwrap();
    assert_eq!(found.steps[0].command, "PORT=3000 node server.js");
}

#[test]
fn an_output_directory_is_one_of_the_project() {
    for output in ["/etc", "../x", "a/../../x", "$(x)", "a b", "\"\"", "-x"] {
        let directory = project(&[("_config.yml", &format!("destination: {output}\n"))]);
        let Plan::Site(site) = find(directory.path()).unwrap().plan else { panic!("no site") };
        assert_eq!(site.directory, "_site", "{output}");
    }
}

#[test]
fn a_package_name_is_no_way_out_of_the_project() {
    for name in ["../../etc", "/etc", "$(x)", "-x", "a b"] {
        let package = format!(r#"{{"name": "{name}", "dependencies": {{"@angular/core": "21"}}}}"#);
        let directory = project(&[("package.json", &package)]);
        assert_eq!(problems(directory.path()), "", "{name}");
    }
}

#[test]
fn the_newest_socket_of_php_fpm_is_taken() {
    let directory = project(&[("index.php", ""), ("run/php99-fpm.sock", "no socket")]);
    let sockets = directory.path().join("run");
    let names =
        ["php-fpm.sock", "php7.4-fpm.sock", "php8.9-fpm.sock", "php8.10-fpm.sock", "x.sock"];
    let listeners = names.map(|name| UnixListener::bind(sockets.join(name)).unwrap());
    let found = kirin_init::find_with_sockets(directory.path(), &sockets).unwrap();
    let Plan::Php(php) = &found.plan else { panic!("{found:?}") };
    assert_eq!(Path::new(&php.socket), sockets.join("php8.10-fpm.sock"));
    assert!(php.has_socket);
    assert!(found.steps.is_empty(), "{found:?}");
    drop(listeners);
}
