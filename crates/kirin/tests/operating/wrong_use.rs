//! Wrong command lines and wrong configurations: each answer names what is wrong and says what to
//! do.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::process::Command;

use kirin_tests::{Kirin, Site, kirin_command, run_kirin};
use rustix::process::geteuid;

use crate::command_line::run;
use crate::user::program_for_everybody;

/// The user id of `nobody` in Debian.
const NOBODY: u32 = 65534;

/// A command line, its exit status, and what the answer must contain: what is wrong and what to do.
type WrongCommand = (&'static [&'static str], i32, &'static [&'static str]);

/// The exit status of a command line that cannot be understood.
const USAGE: i32 = 2;

const COMMANDS: &[WrongCommand] = &[
    // Flags that would be ignored.
    (&["serve", "-c", "k.toml", "-l", "80"], USAGE, &["--listen", "--config", "[[listener]]"]),
    (&["serve", "-c", "k.toml", "-w", "3"], USAGE, &["--workers", "--config", "[[app]]"]),
    (&["serve", "-c", "k.toml", "-p", "80"], USAGE, &["--port", "`address` of a [[listener]]"]),
    (&["serve", "-c", "k.toml", "-o", "::"], USAGE, &["--host", "`address` of a [[listener]]"]),
    (&["serve", "-c", "k.toml", "--domain", "a.b"], USAGE, &["--domain", "`acme`"]),
    (&["serve", "www", "-w", "3"], USAGE, &["--workers", "`www` is a directory: leave it out"]),
    (&["serve", "http://127.0.0.1:1", "-w", "3"], USAGE, &["--workers", "another server"]),
    (&["serve", "app.psgi", "-c", "k.toml"], USAGE, &["[TARGET]", "'--config <FILE>'"]),
    (&["serve", "app.psgi", "-p", "1", "-l", "2"], USAGE, &["'--port <PORT>'", "'--listen"]),
    (&["serve", "app.psgi", "-o", "::", "-l", "2"], USAGE, &["'--host <IP>'", "'--listen"]),
    (&["serve", "www", "--email", "a@b.c"], USAGE, &["--domain <NAME>"]),
    (&["serve", "www", "--acme-directory", "https://a/"], USAGE, &["--domain <NAME>"]),
    (&["serve", "www", "--listen-http", "80"], USAGE, &["--domain <NAME>"]),
    (&["serve", "www", "--pid-file", "p", "--print-config"], USAGE, &["'--pid-file", "--print"]),
    (&["top", "--once", "--interval", "3"], USAGE, &["--interval", "--once"]),
    (&["reload", "--apps", "--app", "web"], USAGE, &["'--apps' cannot be used with '--app"]),
    (&["status", "--config", "k.toml", "--target", "www"], USAGE, &["'--config", "'--target"]),
    (
        &["purge", "--key", "a", "--admin", "1", "--target", "www"],
        USAGE,
        &["'--admin", "'--target"],
    ),
    // Values.
    (&["serve", "app.psgi", "-l", "web"], USAGE, &["'--listen <ADDRESS>'", "IP:PORT", "unix:PATH"]),
    (&["serve", "app.psgi", "-l", ":99999"], USAGE, &["`:99999`", "'--listen <ADDRESS>'", ":PORT"]),
    (&["serve", "app.psgi", "-p", "http"], USAGE, &["'--port <PORT>'", "allowed are 0 to 65535"]),
    (&["serve", "app.psgi", "-o", "a.b"], USAGE, &["'--host <IP>'", "an IP address, `localhost`"]),
    (&["serve", "app.psgi", "-w", "0"], USAGE, &["'--workers <NUMBER>'", "allowed are 1 to 4096"]),
    (&["serve", "app.psgi", "-w", "many"], USAGE, &["'many'", "allowed are 1 to 4096"]),
    (&["serve", "app.psgi", "--workers"], USAGE, &["a value is required for '--workers <NUMBER>'"]),
    (&["serve", "www", "--domain", "a"], USAGE, &["'--domain <NAME>'", "www.example.org"]),
    (
        &["serve", "www", "--domain", "a.b", "--email", "me"],
        USAGE,
        &["'--email <ADDRESS>'", "me@example.org"],
    ),
    (
        &["serve", "www", "--domain", "a.b", "--acme-directory", "http://a/"],
        USAGE,
        &["'--acme-directory <URL>'", "https:// address"],
    ),
    (&["reload", "--timeout", "0"], USAGE, &["'--timeout <SECONDS>'", "1 to 86400"]),
    (&["upgrade", "--timeout", "x"], USAGE, &["'--timeout <SECONDS>'", "allowed are 1 to"]),
    (&["workers", "web", "0"], USAGE, &["'[WORKERS]'", "allowed are 1 to 4096"]),
    (&["block", "host"], USAGE, &["'<NETWORK>'", "\"10.0.0.0/8\""]),
    (&["block", "::1", "--for", "x"], USAGE, &["'--for <TIME>'", "s, m, h or d"]),
    (&["profile", "--seconds", "0"], USAGE, &["'--seconds <SECONDS>'", "allowed are 1 to 600"]),
    (&["advise", "--seconds", "0"], USAGE, &["'--seconds <SECONDS>'", "allowed are 1 to 3600"]),
    (&["top", "--interval", "0"], USAGE, &["'--interval <SECONDS>'", "allowed are 0.1 to 3600"]),
    (&["status", "--admin", "web"], 1, &["`web` is not an address", "unix:PATH"]),
    (&["log", "sum", "a.log", "--sort", "x"], USAGE, &["'--sort <SORT>'", "sum, count, avg"]),
    (&["memcached", "-m", "x"], 64, &["-m x", "from 1 to"]),
    // What is missing.
    (&[], USAGE, &["Usage: kirin <COMMAND>", "serve "]),
    (
        &["serve"],
        1,
        &["a PSGI, Python or Rack file, a directory, an http:// address or --config FILE"],
    ),
    (&["purge"], USAGE, &["--key <KEY>|--prefix <PREFIX>|--tag <TAG>"]),
    (&["purge", "--soft"], USAGE, &["--key <KEY>|--prefix <PREFIX>|--tag <TAG>"]),
    (&["explain"], USAGE, &["<URL>"]),
    (&["explain", "GET"], 1, &["this is a method", "http://HOST/PATH?QUERY"]),
    (&["workers"], USAGE, &["<APP>"]),
    (&["upstream", "drain", "web"], USAGE, &["<SERVER>"]),
    (&["log"], USAGE, &["sum"]),
    (&["check"], 1, &["kirin.toml", "No such file", "--config FILE"]),
    (&["serve", "-c", "gone.toml"], 1, &["gone.toml", "No such file"]),
    (&["serve", "gone.psgi"], 1, &["`gone.psgi`", "give a PSGI file, a Python file or module"]),
    (&["serve", "k.toml"], 1, &["`kirin serve --config k.toml`"]),
    (&["serve", "http://"], 1, &["the host is not a name", "http://HOST"]),
    (&["serve", "ftp://a"], 1, &["the scheme is not http, https", "http://HOST"]),
    (&["serve", "3000"], 1, &["`kirin serve http://127.0.0.1:3000` serves another server"]),
    (&["serve", "localhost:3000"], 1, &["`kirin serve http://localhost:3000` serves another"]),
    (&["serve", "/dev/null"], 1, &["`/dev/null` is neither a file nor a directory"]),
    (&["check", "-c", "/dev/zero"], 1, &["it has more than 16 MB"]),
    (&["serve", "www", "-l", "unix:/gone/x"], 1, &["unix:/gone/x", "No such file"]),
    (&["serve", "www", "-l", "0", "--pid-file", "/gone/x"], 1, &["/gone/x", "no directory /gone"]),
    (&["status"], 1, &["no Kirin of this user is running", "--admin ADDRESS"]),
    (&["status", "--target", "www"], 1, &["with this target", "`kirin serve ", "starts it"]),
    // Words of other programs, and misspelt ones.
    (&["start"], USAGE, &["`kirin serve` starts a server"]),
    (&["statsu"], USAGE, &["'status'"]),
    (&["lanch"], USAGE, &["`kirin help` lists the commands"]),
    (&["-p", "80", "app.psgi"], USAGE, &["`-p` is an option of `kirin serve`"]),
    (&["check", "k.toml"], USAGE, &["`--config k.toml`"]),
    (&["serve", "--lisen", "80", "www"], USAGE, &["'--listen'"]),
    (&["serve", "-I", "lib", "app.psgi"], USAGE, &["PERL5LIB=lib kirin serve app.psgi"]),
    (&["serve", "-E", "x", "app.psgi"], USAGE, &["PLACK_ENV"]),
    (&["serve", "-D", "app.psgi"], USAGE, &["under systemd", "--pid-file"]),
];

#[test]
fn each_wrong_command_line_is_answered_with_what_to_do() {
    let site = Site::new()
        .with("app.psgi", "sub { [200, [], ['x']] }")
        .with("www/index.html", "x")
        .with("k.toml", "");
    for (arguments, status, parts) in COMMANDS {
        let (code, said) = run(&site, arguments);
        assert_eq!(code, Some(*status), "{arguments:?}: {said}");
        for part in *parts {
            assert!(said.contains(part), "{arguments:?}: `{part}` is not in: {said}");
        }
        for hidden in ["launch", "serve-loaded", "manual"] {
            assert!(!said.contains(hidden), "{arguments:?}: {said}");
        }
    }
}

/// The begin of a configuration that is good.
const GOOD: &str = "[[listener]]\naddress = \"127.0.0.1:8080\"\n[[route]]\npath = \"/\"\n\
                    try = [\"files:www\"]\n";

/// Lines after [`GOOD`], and what `kirin check` must say about them.
const LINES: &[(&str, &[&str])] = &[
    ("[[listener]]\naddress = \"8080\"", &["k.toml:7:11", "already the address of", "line 2"]),
    ("[[listener]]\naddress = \"web\"", &["k.toml:7:11", "IP:PORT"]),
    (
        "[[listener]]\naddress = \"1\"\naccess_log = \"/gone/a.log\"",
        &["k.toml:8:14", "the access log: there is no directory /gone: create it"],
    ),
    (
        "[[listener]]\naddress = \"1\"\naccess_log = \"www\"",
        &["k.toml:8:14", "www is a directory: name a file"],
    ),
    ("[[upstream]]\nservers = [\"127.0.0.1:1\"]", &["k.toml:6:1", "`name` is missing"]),
    ("[[upstream]]\nname = \"a\"\nservers = []", &["k.toml:7:8", "needs `servers`, such as"]),
    (
        "[[route]]\npath = \"/a\"\ntry = [\"proxy:gone\"]",
        &["k.toml:8:8", "there is no upstream `gone`"],
    ),
    ("[[route]]\npath = \"/a\"\ntry = [\"app:gone\"]", &["k.toml:8:8", "there is no app `gone`"]),
    ("[[route]]\npath = \"/\"\ntry = [\"store\"]", &["k.toml:7:8", "the first is on line 4"]),
    ("[[route]]\npath = \"/a\"\ntry = [\"file:www\"]", &["k.toml:8:8", "files:DIR"]),
    ("[[route]]\npath = \"a\"\ntry = [\"store\"]", &["k.toml:7:8", "must begin with `/`"]),
    ("[[route]]\npath = \"/a\"", &["k.toml:7:8", "name at least one of store"]),
    ("[[listner]]", &["k.toml:6:3", "did you mean `listener`?"]),
    ("[store]\nmemory = \"12\"", &["k.toml:7:10", "write \"12B\", \"12KB\" or \"12MB\""]),
    (
        "[admin]\naddress = \"*:9000\"",
        &["k.toml:7:11", "allowed are unix:PATH and a port on 127.0.0.1"],
    ),
    ("[[app]]\nname = \"a\"\nload = \"gone.psgi\"", &["k.toml:8:8", "there is no file"]),
    ("[[app]]\nname = \"a\"\nload = \"app.psgi\"\nworkers = 0", &["k.toml:9:11", "1 to 4096"]),
    ("cache = 1", &["k.toml:6:9", "allowed is true, false or a table"]),
    ("rate_limit = \"x\"", &["k.toml:6:14", "rate_limit = [\"x\"]"]),
    ("error_pages = { 200 = \"/x\" }", &["k.toml:6:23", "allowed are 400 to 599"]),
    ("match = { methods = [\"get\"] }", &["k.toml:6:21", "write `GET`"]),
    ("basic_auth = \"gone\"", &["k.toml:6:14", "gone: cannot be read"]),
    ("redirect = \"/${KIRIN_TEST_UNSET}\"", &["k.toml:6:12", "${KIRIN_TEST_UNSET:-VALUE}"]),
    ("[traces]\nendpoint = \"x\"", &["k.toml:7:12", "http://127.0.0.1:4318"]),
    ("try = [\"store\"]", &["k.toml:6:1", "try"]),
    ("x = ", &["k.toml:6:"]),
];

#[test]
fn check_names_the_line_of_each_error_and_what_is_allowed() {
    let site = Site::new().with("app.psgi", "sub {}").with("www/index.html", "x");
    std::fs::write(site.path("k.toml"), GOOD).expect("k.toml");
    let good = run_kirin(&site, &["check", "--config", "k.toml"]);
    assert_eq!(String::from_utf8_lossy(&good.stdout), "k.toml: good\n");
    for (lines, parts) in LINES {
        std::fs::write(site.path("k.toml"), format!("{GOOD}{lines}\n")).expect("k.toml");
        let (code, said) = run(&site, &["check", "--config", "k.toml"]);
        assert_eq!(code, Some(1), "{lines}: {said}");
        for part in *parts {
            assert!(said.contains(part), "{lines}: `{part}` is not in: {said}");
        }
    }
}

#[test]
fn check_finds_a_log_that_this_user_cannot_create() {
    let config = GOOD.replacen("8080\"", "8080\"\naccess_log = \"logs/a.log\"", 1);
    let site = Site::new().with("www/index.html", "x").with("k.toml", &config).with("logs/x", "");
    for (name, mode) in [("", 0o755), ("logs", 0o555)] {
        fs::set_permissions(site.path(name), fs::Permissions::from_mode(mode)).expect("a mode");
    }
    let mut check = Command::new(program_for_everybody(&site));
    check.args(["check", "--config", "k.toml"]).current_dir(site.root());
    if geteuid().is_root() {
        check.uid(NOBODY);
    }
    let output = check.output().expect("kirin runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(1), "{said}");
    for part in ["k.toml:3:14", "logs/a.log cannot be created", "run `kirin check` as the user"] {
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn no_text_of_a_file_controls_the_terminal() {
    let config = format!("{GOOD}# \u{1b}[31m\n\"\\u001b[31mkey\" = 1 # \u{1b}]0;title\u{7}\n");
    let site = Site::new().with("www/index.html", "x").with("k.toml", &config);
    for arguments in
        [&["check", "-c", "k.toml"][..], &["log", "sum", "\u{1b}[31m"], &["import", "\u{1b}"]]
    {
        let output = run_kirin(&site, arguments);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{arguments:?}: {said:?}");
        let is_control = |c: char| c.is_control() && c != '\n';
        assert!(!said.contains(is_control), "{arguments:?}: {said:?}");
    }
}

#[test]
fn a_directory_whose_name_is_not_utf_8_is_served() {
    let site = Site::new();
    let directory = site.root().join(OsStr::from_bytes(b"b\xff"));
    fs::create_dir(&directory).expect("a directory");
    fs::write(directory.join("app.psgi"), "sub { [200, [], ['served']] }").expect("a file");
    let mut command = kirin_command(&site);
    command.current_dir(&directory).args(["serve", "app.psgi", "--listen", "127.0.0.1:0"]);
    let kirin = Kirin::start_command(&mut command);
    assert_eq!(kirin.get("/").text(), "served");
}

#[test]
fn check_warns_of_ports_that_others_can_reach() {
    let config = format!("metrics = \"*:9100\"\n{GOOD}[store]\nmemcached = [\"*:11211\"]\n");
    let site = Site::new().with("www/index.html", "x").with("k.toml", &config);
    let output = run_kirin(&site, &["check", "--config", "k.toml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    for part in ["k.toml:1:11: warning: `metrics`", "k.toml:8:14: warning: `store.memcached`"] {
        assert!(said.contains(part), "{said}");
    }
    assert_eq!(output.status.code(), Some(0), "{said}");
}

#[test]
fn check_warns_of_applications_and_servers_that_no_route_names() {
    let config = format!(
        "{GOOD}[[app]]\nname = \"web\"\nload = \"app.psgi\"\n[[upstream]]\nname = \"api\"\n\
         servers = [\"127.0.0.1:1\"]\n[[upstream]]\nname = \"who\"\nservers = [\"127.0.0.1:1\"]\n\
         [[route]]\npath = \"/in\"\ntry = [\"store\"]\nauth_request = \"proxy:who\"\n"
    );
    let site =
        Site::new().with("app.psgi", "sub {}").with("www/index.html", "x").with("k.toml", &config);
    let output = run_kirin(&site, &["check", "--config", "k.toml"]);
    let said = String::from_utf8_lossy(&output.stderr);
    for part in ["k.toml:7:8: warning: no route has `app:web`", "no route has `proxy:api`"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!said.contains("proxy:who") && output.status.code() == Some(0), "{said}");
}
