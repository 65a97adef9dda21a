//! A configuration of several files with variables: it is served, reloaded, checked and explained.

use std::fs;
use std::process::{Command, Output};

use kirin_tests::{Kirin, LeasedPort, Site, kirin_command, wait_for};
use rustix::process::Signal;

/// The main file. It has no site.
const MAIN: &str = r#"
include = ["sites/*.toml"]
threads = "${THREADS}"
[[listener]]
address = "${LISTEN:-127.0.0.1}:0"
"#;

/// A secret that no output may have.
const SECRET: &str = "correct-horse-battery";

fn site_file(name: &str) -> String {
    format!(
        "# The site {name}.\n[[site]]\nhosts = [\"{name}.test\"]\n[[site.route]]\npath = \"/\"\n\
         try = [\"files:{name}\"]\n"
    )
}

fn site() -> Site {
    Site::new()
        .with("kirin.toml", MAIN)
        .with("a/x", "a")
        .with("b/x", "b")
        .with("c/x", "c")
        .with("sites/a.toml", site_file("a"))
        .with("sites/b.toml", site_file("b"))
}

/// Returns a command in the environment of the configuration.
fn command(site: &Site, words: &[&str]) -> Command {
    let mut command = kirin_command(site);
    command.args(words).env("THREADS", "2").env("SECRET", SECRET);
    command
}

/// Runs a command in an environment without the variables of the configuration.
fn run(site: &Site, words: &[&str]) -> Output {
    kirin_command(site).args(words).output().expect("kirin")
}

fn start(site: &Site) -> Kirin {
    Kirin::start_command(&mut command(site, &["serve"]))
}

/// Returns what a site answers, or its status if that is not 200.
fn answer(kirin: &Kirin, name: &str) -> String {
    let request = format!("GET /x HTTP/1.1\r\nHost: {name}.test\r\n\r\n");
    let reply = kirin.connect().send(&request).read_reply();
    if reply.status == 200 { reply.text() } else { reply.status.to_string() }
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).into_owned()
}

/// Returns what a command prints that succeeds.
fn printed(output: &Output) -> String {
    assert!(output.status.success(), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Returns the error of a command that fails.
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(1), "{}", text(&output.stdout));
    text(&output.stderr)
}

#[test]
fn a_reload_reads_new_files_and_forgets_removed_ones() {
    let site = site();
    let kirin = start(&site);
    assert_eq!(["a", "b", "c"].map(|name| answer(&kirin, name)), ["a", "b", "421"]);
    fs::write(site.path("sites/c.toml"), site_file("c")).expect("a file");
    fs::remove_file(site.path("sites/a.toml")).expect("the file of a");
    let said = printed(&run(&site, &["reload"]));
    assert_eq!(said, "[[site]] c.test: added\n[[site]] a.test: removed\nreloaded\n");
    assert_eq!(["a", "b", "c"].map(|name| answer(&kirin, name)), ["421", "b", "c"]);
    fs::write(site.path("sites/a.toml"), site_file("a")).expect("a file");
    kirin.signal(Signal::HUP);
    wait_for("the site", || (answer(&kirin, "a") == "a").then_some(()));
}

#[test]
fn a_bad_file_is_refused_by_name_and_line_while_the_others_serve() {
    let site = site();
    let kirin = start(&site);
    fs::write(site.path("sites/b.toml"), site_file("c")).expect("a file");
    for (bad, place) in [
        ("[[site]]\nhosts = [\"x.test\"]\n\n[[site.rout]]\n", "sites/x.toml:4:8: unknown key"),
        ("\n[[site]\n", "sites/x.toml:2:8: "),
        ("[[route]]\npath = \"/\"\ntry = [\"files:none\"]\n", "sites/x.toml:3:8: there is no"),
        ("threads = 2\n", "sites/x.toml:1:1: `threads` is already on line 3 of "),
        ("user = \"${NONE}\"\n", "sites/x.toml:1:8: `user`: the environment variable `NONE`"),
        ("include = [\"y.toml\"]\n", "sites/x.toml:1:12: `include`: cannot read "),
        ("\nmetrics = \"${SECRET}\"\n", "sites/x.toml:2:11: `${SECRET}` is not an address"),
    ] {
        fs::write(site.path("sites/x.toml"), bad).expect("a file");
        let said = [
            refused(&run(&site, &["reload"])),
            refused(&command(&site, &["check"]).output().expect("kirin")),
            refused(&command(&site, &["explain", "http://a.test/x"]).output().expect("kirin")),
            refused(&command(&site, &["serve"]).output().expect("kirin")),
        ];
        for said in said {
            assert!(said.contains(place) && !said.contains(SECRET), "{said}\n{place}");
        }
        assert_eq!(["a", "b", "c"].map(|name| answer(&kirin, name)), ["a", "b", "421"], "{bad}");
    }
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("sites/x.toml:2:11: ");
    kirin.wait_for_log("the configuration of before serves on");
    assert!(!kirin.log().contains(SECRET), "{}", kirin.log());
    fs::remove_file(site.path("sites/x.toml")).expect("the bad file");
    assert!(printed(&run(&site, &["reload"])).ends_with("reloaded\n"));
    assert_eq!(["a", "b", "c"].map(|name| answer(&kirin, name)), ["a", "421", "c"]);
}

#[test]
fn values_of_variables_are_used_and_not_shown() {
    let site = site();
    let leased = LeasedPort::lease();
    let port = leased.number();
    let listener = "[[listener]]\naddress = \"127.0.0.1:${PORT}\"\n";
    let headers =
        "[[route]]\npath = \"/\"\ntry = [\"files:a\"]\nheaders = { X = \"<${SECRET}>\" }\n";
    fs::write(site.path("sites/z.toml"), format!("{listener}{headers}")).expect("a file");
    let mut serve = command(&site, &["serve"]);
    let kirin = Kirin::start_command(serve.env("PORT", port.to_string()));
    let reply = kirin.get("/x");
    assert_eq!(reply.field("x"), Some(&*format!("<{SECRET}>")));
    assert_eq!(kirin.address_of(1), leased.address());
    // Commands find the running Kirin without its variables.
    let status = printed(&run(&site, &["status", "--json"]));
    assert!(status.contains(&port.to_string()) && !status.contains(SECRET), "{status}");
    let patterns = "url_patterns = [\"/${SECRET}\"]\n";
    fs::write(site.path("sites/y.toml"), patterns).expect("a file");
    let said = printed(&run(&site, &["reload"]));
    assert_eq!(said, "url_patterns added [\"/${SECRET}\"]\nreloaded\n");
    let said = printed(&run(&site, &["serve", "--print-config"]));
    assert_eq!(said, MAIN);
    assert!(!kirin.log().contains(SECRET), "{}", kirin.log());
    let explained = command(&site, &["explain", "http://b.test/x"])
        .env("PORT", port.to_string())
        .output()
        .expect("kirin");
    assert!(printed(&explained).contains("b.test"));
    let said = refused(&run(&site, &["check"]));
    assert!(said.contains("kirin.toml:3:11: `threads`: the environment variable"), "{said}");
}
