//! `kirin init`: a project gets a configuration, and that serves it.

use std::net::TcpListener;

use kirin_tests::{Kirin, Site, run_kirin};

use crate::command_line::run;

/// Writes the configuration of a project, and starts Kirin with it on a free port.
fn start(site: &Site) -> Kirin {
    let (code, said) = run(site, &["init"]);
    assert_eq!(code, Some(0), "{said}");
    let config = std::fs::read_to_string(site.path("kirin.toml")).expect("kirin.toml");
    assert!(config.contains("\"127.0.0.1:8080\""), "{config}");
    let config = config.replacen("127.0.0.1:8080", "127.0.0.1:0", 1);
    std::fs::write(site.path("kirin.toml"), config).expect("kirin.toml");
    assert_eq!(run(site, &["check"]), (Some(0), "kirin.toml: good\n".to_owned()));
    Kirin::start_with(site, &["serve"])
}

#[test]
fn a_psgi_project_is_served_with_its_modules_and_files() {
    let app = "use Shop; sub { [200, ['Content-Type' => 'text/plain'], [Shop::name()]] }";
    let site = Site::new()
        .with("app.psgi", app)
        .with("lib/Shop.pm", "package Shop; sub name { 'shop' } 1;")
        .with("public/a.txt", "a file")
        .with("Dockerfile", "FROM perl\nEXPOSE 5000\n");
    let kirin = start(&site);
    assert_eq!(kirin.get("/").text(), "shop");
    assert_eq!(kirin.get("/a.txt").text(), "a file");
}

#[test]
fn a_static_site_has_its_own_page_for_missing_paths() {
    let site = Site::new()
        .with("public/index.html", "home")
        .with("public/404.html", "nothing here")
        .with("package.json", "{}");
    let kirin = start(&site);
    assert_eq!(kirin.get("/").text(), "home");
    let missing = kirin.get("/gone");
    assert_eq!((missing.status, missing.text().as_str()), (404, "nothing here"));
}

#[test]
fn a_procfile_leads_to_the_port_of_its_server() {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    std::thread::spawn(move || {
        use std::io::{Read, Write};
        let (mut stream, _) = listener.accept().expect("Kirin");
        let _ = stream.read(&mut [0; 4096]);
        let _ = stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nbehind");
    });
    let site = Site::new().with("Procfile", format!("web: ./server -p {port}\n"));
    assert_eq!(start(&site).get("/x").text(), "behind");
}

#[test]
fn a_configuration_is_never_overwritten() {
    let site = Site::new().with("www/index.html", "x").with("kirin.toml", "mine");
    let (code, said) = run(&site, &["init"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("is there already") && said.contains("kirin init --print"), "{said}");
    assert_eq!(std::fs::read_to_string(site.path("kirin.toml")).expect("a file"), "mine");
    let output = run_kirin(&site, &["init", "--print"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(printed.contains("try = [\"files:www\"]") && !printed.contains("Found"), "{printed}");
    assert!(String::from_utf8_lossy(&output.stderr).contains("Found a static site"));
}

#[test]
fn another_directory_gets_the_file_and_the_command_for_it() {
    let site = Site::new().with("shop/app.psgi", "sub {}");
    let (code, said) = run(&site, &["init", "shop"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("shop/kirin.toml is written"), "{said}");
    assert!(said.contains("kirin serve --config shop/kirin.toml"), "{said}");
    let (code, said) = run(&site, &["check", "--config", "shop/kirin.toml"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn a_directory_without_a_project_is_told_what_was_looked_for() {
    let site = Site::new().with("notes.txt", "x");
    let (code, said) = run(&site, &["init"]);
    assert_eq!(code, Some(1), "{said}");
    for part in ["nothing to serve was found", "a PSGI file", "kirin serve DIRECTORY"] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!site.path("kirin.toml").exists());
}
