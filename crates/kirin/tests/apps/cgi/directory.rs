//! `cgi:DIR`: the programs of a directory.

use std::fs;
use std::os::unix::fs::symlink;

use kirin_tests::{Kirin, Site, run_kirin};

use super::{config, make_executable, variable, with_program};

const ENV: &str = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\nenv\n";

/// Returns a site with programs, and things beside them that must not run.
fn site() -> Site {
    let site = with_program(super::site(), "cgi-bin/env.cgi", ENV);
    let site = with_program(site, "cgi-bin/sub/inner", ENV);
    let site = with_program(site, "cgi-bin/.hidden", ENV);
    let site = with_program(site, "outside", ENV);
    let site = site.with("cgi-bin/plain.txt", "secret source");
    symlink("../outside", site.path("cgi-bin/out")).expect("a link");
    symlink(site.path("outside"), site.path("cgi-bin/absolute")).expect("a link");
    symlink("sub/inner", site.path("cgi-bin/inside")).expect("a link");
    symlink("/", site.path("cgi-bin/root")).expect("a link");
    site
}

fn start(route: &str) -> (Site, Kirin) {
    let site = site();
    let rest = format!(
        "[[route]]\npath = \"/cgi-bin\"\ntry = [\"cgi:cgi-bin\"]\n{route}\n\
         [[route]]\npath = \"/both\"\nrewrite = \"/\"\ntry = [\"cgi:cgi-bin\", \"files:cgi-bin\"]\n"
    );
    let kirin = Kirin::start(&site, &config(&rest));
    (site, kirin)
}

#[test]
fn the_path_names_the_program() {
    let (site, kirin) = start("");
    let mut client = kirin.connect();
    for (target, script_name, path_info, file) in [
        ("/cgi-bin/env.cgi", "/cgi-bin/env.cgi", "", "env.cgi"),
        ("/cgi-bin/env.cgi/a%20b/", "/cgi-bin/env.cgi", "/a b/", "env.cgi"),
        ("/cgi-bin/%65nv.cgi/a?b", "/cgi-bin/env.cgi", "/a", "env.cgi"),
        ("/cgi-bin/sub/inner/env.cgi", "/cgi-bin/sub/inner", "/env.cgi", "sub/inner"),
        ("/cgi-bin//sub/x/../inner", "/cgi-bin/sub/inner", "", "sub/inner"),
        ("/cgi-bin/inside/a", "/cgi-bin/inside", "/a", "inside"),
        ("/both/env.cgi/a", "/both/env.cgi", "/a", "env.cgi"),
    ] {
        let reply = client.get(target);
        let file = site.path("cgi-bin").join(file).display().to_string();
        for (name, expected) in
            [("SCRIPT_NAME", script_name), ("PATH_INFO", path_info), ("SCRIPT_FILENAME", &file)]
        {
            let found = variable(&reply, name);
            assert_eq!(found.as_deref(), Some(expected), "{name} of {target}: {}", reply.text());
        }
    }
    assert_eq!(client.get("/both/plain.txt").text(), "secret source", "the next place has it");
}

#[test]
fn no_path_runs_anything_else() {
    let (_site, kirin) = start("");
    let mut client = kirin.connect();
    for target in [
        "/cgi-bin",
        "/cgi-bin/",
        "/cgi-bin/none",
        "/cgi-bin/plain.txt",
        "/cgi-bin/plain.txt/x",
        "/cgi-bin/.hidden",
        "/cgi-bin/%2ehidden",
        "/cgi-bin/sub",
        "/cgi-bin/sub/",
        "/cgi-bin/../outside",
        "/cgi-bin/%2e%2e/outside",
        "/cgi-bin/sub/../../outside",
        "/cgi-bin/sub/%2e%2e/%2e%2e/outside",
        "/cgi-bin/..%2Foutside",
        "/cgi-bin/sub%2F..%2F..%2Foutside",
        "/cgi-bin/sub%5Cinner",
        "/cgi-bin/out",
        "/cgi-bin/absolute",
        "/cgi-bin/root/bin/sh",
        "/cgi-bin/env.cgi%0a",
    ] {
        let reply = client.get(target);
        assert_eq!(reply.status, 404, "{target}: {}", reply.text());
        assert!(!reply.text().contains("secret"), "{target}");
    }
    assert_eq!(client.get("/cgi-bin/env.cgi%00").status, 400);
    kirin.wait_for_log("it leads out of the directory");
}

#[test]
fn links_out_of_the_directory_are_followed_if_the_route_says_so() {
    let (_site, kirin) = start("follow_links = \"owner\"");
    assert_eq!(kirin.get("/cgi-bin/out/a").status, 200);
}

#[test]
fn a_program_is_found_as_soon_as_it_is_there() {
    let (site, kirin) = start("");
    let mut client = kirin.connect();
    assert_eq!(client.get("/cgi-bin/new").status, 404);
    fs::write(site.path("cgi-bin/new"), ENV).expect("a file");
    assert_eq!(client.get("/cgi-bin/new").status, 404, "it is not executable");
    make_executable(&site.path("cgi-bin/new"));
    assert_eq!(client.get("/cgi-bin/new").status, 200);
}

#[test]
fn check_finds_what_cannot_run_and_explain_says_what_does() {
    let site = site();
    let check = |route: &str| {
        fs::write(site.path("kirin.toml"), config(route)).expect("kirin.toml");
        let output = run_kirin(&site, &["check", "--config", "kirin.toml"]);
        (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for (place, rest, why) in [
        ("cgi:none", "", "there is no program none"),
        ("cgi:cgi-bin/plain.txt", "", "cgi-bin/plain.txt is not executable"),
        ("cgi:cgi-bin/do", ", \"store\"", "`cgi:cgi-bin/do` always answers"),
    ] {
        let route = format!("[[route]]\npath = \"/x\"\ntry = [\"{place}\"{rest}]\n");
        let (is_right, errors) = check(&route);
        assert!(!is_right && errors.contains(why) && errors.contains("kirin.toml:"), "{errors}");
    }
    let (is_right, errors) = check("[[route]]\npath = \"/x\"\ntry = [\"store\"]\ncgi = {}\n");
    assert!(!is_right && errors.contains("there is no cgi:PROGRAM in `try`"), "{errors}");
    let (is_right, errors) = check("[[route]]\npath = \"/cgi-bin\"\ntry = [\"cgi:cgi-bin\"]\n");
    assert!(is_right, "{errors}");
    let explain = |target: &str| {
        let output = run_kirin(&site, &["explain", &format!("http://test{target}")]);
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        String::from_utf8_lossy(&said).into_owned()
    };
    let text = explain("/cgi-bin/sub/inner/x");
    let expected = "cgi-bin/sub/inner, with SCRIPT_NAME `/cgi-bin/sub/inner` and PATH_INFO `/x`";
    assert!(text.contains(expected), "{text}");
    let text = explain("/cgi-bin/none");
    assert!(text.contains("the path names no program") && text.contains("404"), "{text}");
    let text = explain("/do/a%20b");
    assert!(text.contains("SCRIPT_NAME `/do` and PATH_INFO `/a%20b`"), "{text}");
}
