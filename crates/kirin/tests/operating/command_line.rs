//! The command line and its messages about errors.

use kirin_tests::{Kirin, Site, run_kirin};

/// Runs the program to its end. Returns its exit status and output.
pub fn run(site: &Site, arguments: &[&str]) -> (Option<i32>, String) {
    let output = run_kirin(site, arguments);
    let said = [&output.stdout[..], &output.stderr].concat();
    (output.status.code(), String::from_utf8_lossy(&said).into_owned())
}

#[test]
fn a_directory_is_served_without_a_file() {
    let site = Site::new().with("www/index.html", "<p>home").with("www/a.txt", "a");
    let kirin = Kirin::start_with(&site, &["serve", "www", "--listen", "0"]);
    assert_eq!(kirin.get("/").text(), "<p>home");
    assert_eq!(kirin.get("/a.txt").text(), "a");
}

#[test]
fn the_printed_configuration_is_the_one_in_use() {
    let site = Site::new().with("app.psgi", "sub {}").with("public/a.txt", "a");
    let (code, printed) =
        run(&site, &["serve", "--print-config", "app.psgi", "--listen", "127.0.0.1:0"]);
    assert_eq!(code, Some(0), "{printed}");
    assert!(printed.contains("try = [\"store\", \"files:public\", \"app:web\"]"), "{printed}");
    std::fs::write(site.path("kirin.toml"), printed).expect("kirin.toml");
    let (code, said) = run(&site, &["check"]);
    assert_eq!((code, said.as_str()), (Some(0), "kirin.toml: good\n"));
}

#[test]
fn errors_are_reported_with_file_and_line() {
    let site = Site::new().with("public/a", "").with(
        "kirin.toml",
        "[[listener]]\naddress = \"0\"\n[[route]]\npath = \"/\"\ntry = [\"files:public\"]\nfilter = 1\n",
    );
    for command in [&["check"][..], &["serve"], &["serve", "--config", "kirin.toml"]] {
        let (code, said) = run(&site, command);
        assert_eq!(code, Some(1), "{said}");
        for part in ["kirin.toml:6:1", "unknown key `filter`", "`path`"] {
            assert!(said.contains(part), "{said}");
        }
    }
}

#[test]
fn all_errors_of_a_file_are_reported_with_the_name_that_was_meant() {
    let site = Site::new().with("public/a", "").with(
        "kirin.toml",
        "[[listener]]\nadress = \"x\"\naddress = \"0\"\nmin_rate = \"5\"\n[[app]]\nname = \"shop\"\n\
         load = \"gone.psgi\"\n[[route]]\npath = \"/\"\ntry = [\"files:publik\", \"app:shob\"]\n",
    );
    for command in [&["check"][..], &["serve"]] {
        let (code, said) = run(&site, command);
        assert_eq!(code, Some(1), "{said}");
        let places: Vec<_> =
            said.lines().filter_map(|line| line.split_once("kirin.toml:")).collect();
        let expected = [
            ("2:1: ", "did you mean `address`?"),
            ("4:12: ", "`5` is not a size"),
            ("7:8: ", "there is no file"),
            ("10:8: ", "there is no directory"),
            ("10:24: ", "apps: shop; did you mean `shop`?"),
        ];
        assert_eq!(places.len(), expected.len(), "{said}");
        for ((_, place), (position, message)) in places.iter().zip(expected) {
            assert!(place.starts_with(position) && place.contains(message), "{said}");
        }
    }
}

#[test]
fn commands_and_options_of_other_programs_lead_to_kirins() {
    let site = Site::new().with("app.psgi", "sub {}");
    for (command, tip) in [
        (&["start"][..], "tip: `kirin serve` starts a server"),
        (&["restart"], "tip: `kirin reload --apps` reads the configuration again"),
        (&["stop"], "tip: a signal ends a server: `kill PID`"),
        (&["app.psgi"], "tip: to serve it: `kirin serve app.psgi`"),
        (&["serve", "app.psgi", "--bind", "80"], "tip: `--listen` says where"),
        (&["serve", "app.psgi", "--bind=80"], "tip: `--listen` says where"),
        (&["--port", "80"], "tip: `--port` is an option of `kirin serve`"),
        (&["serve", "--listne", "80", "app.psgi"], "a similar argument exists: '--listen'"),
        (&["statsu"], "'status'"),
    ] {
        let (code, said) = run(&site, command);
        assert_eq!(code, Some(2), "{said}");
        assert!(said.contains(tip), "{command:?}: {said}");
    }
    // Other commands have no server to listen.
    let (code, said) = run(&site, &["check", "--port", "80"]);
    assert!(code == Some(2) && !said.contains("--listen"), "{said}");
}

#[test]
fn a_target_that_cannot_be_served_is_named() {
    let site = Site::new().with("x.toml", "");
    for (target, expected) in
        [("gone.psgi", "no such file or directory"), ("x.toml", "kirin serve --config x.toml")]
    {
        let (code, said) = run(&site, &["serve", target]);
        assert_eq!(code, Some(1), "{said}");
        assert!(said.contains(expected), "{said}");
    }
    let (code, said) = run(&site, &["serve"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("no ./kirin.toml"), "{said}");
    let (_, said) = run(&site, &["serve", "--config", "gone.toml"]);
    assert!(said.contains("gone.toml: cannot read the configuration"), "{said}");
}

#[test]
fn a_port_in_use_is_named_also_by_a_second_kirin() {
    let site = Site::new().with("www/a.txt", "a");
    let kirin = Kirin::start_with(&site, &["serve", "www", "--listen", "0"]);
    let address = kirin.address().to_string();
    let (code, said) = run(&site, &["serve", "www", "--listen", &address]);
    assert_eq!(code, Some(1));
    assert!(said.contains(&format!("{address} is in use by another process")), "{said}");
}

#[test]
fn a_left_over_unix_socket_is_replaced_and_a_live_one_is_not() {
    let config = "[[listener]]\naddress = \"127.0.0.1:0\"\n[[listener]]\naddress = \"unix:web.sock\"\n\
        [[route]]\npath = \"/\"\ntry = [\"files:www\"]\n";
    let site = Site::new().with("www/a.txt", "a");
    drop(std::os::unix::net::UnixListener::bind(site.path("web.sock")).expect("a socket"));
    let _kirin = Kirin::start(&site, config);
    let (code, said) = run(&site, &["serve"]);
    assert_eq!(code, Some(1));
    assert!(said.contains("web.sock is in use"), "{said}");
}

#[test]
fn check_finds_addresses_used_twice_and_redirects_in_a_circle() {
    let site = Site::new().with("public/a", "").with(
        "kirin.toml",
        "[[listener]]\naddress = \"127.0.0.1:8080\"\n[[listener]]\naddress = \"127.0.0.1:8080\"\n\
         [[route]]\npath = \"/a\"\nredirect = \"/b\"\n[[route]]\npath = \"/b\"\nredirect = \"/a\"\n",
    );
    let (code, said) = run(&site, &["check"]);
    assert_eq!(code, Some(1), "{said}");
    for part in ["kirin.toml:4:11", "already the address of", "kirin.toml:7:12", "/a → /b → /a"]
    {
        assert!(said.contains(part), "{part}: {said}");
    }
}

#[test]
fn check_warns_about_weak_passwords_once_for_each_file() {
    let route = "[[route]]\npath = \"/PATH\"\ntry = [\"files:public\"]\nbasic_auth = \"users\"\n";
    let routes = ["a", "b"].map(|path| route.replace("PATH", path)).concat();
    let site = Site::new()
        .with("public/a", "")
        .with("users", "bob:$apr1$abcdefgh$hnz8AY7O7E7QvKAVjuw920\n")
        .with("kirin.toml", format!("[[listener]]\naddress = \"0\"\n{routes}"));
    let (code, said) = run(&site, &["check"]);
    assert_eq!(code, Some(0), "{said}");
    assert_eq!(
        said.matches("users: the password of `bob` is hashed with MD5").count(),
        1,
        "{said}"
    );
}

#[test]
fn check_warns_about_a_certificate_whose_name_is_only_its_common_name() {
    let site = Site::new().with("public/a", "").with(
        "kirin.toml",
        "[[listener]]\naddress = \"0\"\n[listener.tls]\n\
         certificates = [{ chain = \"a.pem\", key = \"a.key\" }]\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n",
    );
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name.push(rcgen::DnType::CommonName, "old.example");
    let key = rcgen::KeyPair::generate().expect("a key");
    let certificate = params.self_signed(&key).expect("a certificate");
    let site = site.with("a.pem", certificate.pem()).with("a.key", key.serialize_pem());
    let (code, said) = run(&site, &["check"]);
    assert_eq!(code, Some(0), "{said}");
    assert!(said.contains("a.pem has no subjectAltName") && said.contains("old.example"), "{said}");
}

#[test]
fn check_warns_about_a_fastcgi_root_that_does_not_exist() {
    for (root, is_there) in [("public", true), ("nowhere", false)] {
        let config = format!(
            "[[listener]]\naddress = \"0\"\n[[upstream]]\nname = \"php\"\n\
             servers = [\"fastcgi://127.0.0.1:9\"]\nroot = \"{root}\"\n\
             [[route]]\npath = \"/\"\ntry = [\"proxy:php\"]\n"
        );
        let site = Site::new().with("public/a", "").with("kirin.toml", config);
        let (code, said) = run(&site, &["check"]);
        assert_eq!(code, Some(0), "{said}");
        assert_eq!(said.contains("upstream `php`: its `root`"), !is_there, "{said}");
    }
}

#[test]
fn bash_completes_commands_and_flags() {
    let site = Site::new();
    let (code, script) = run(&site, &["completions", "bash"]);
    assert_eq!(code, Some(0), "{script}");
    std::fs::write(site.path("completions"), script).expect("completions");
    for (words, expected) in
        [("ser", "serve"), ("serve --print", "--print-config"), ("serve-l", ""), ("launc", "")]
    {
        let line = format!(
            "source {}; words=(kirin {words}); COMP_WORDS=(\"${{words[@]}}\"); \
             COMP_CWORD=$((${{#words[@]}} - 1)); _kirin kirin \"${{words[-1]}}\" \
             \"${{words[-2]}}\"; echo \"${{COMPREPLY[@]}}\"",
            site.path("completions").display()
        );
        let output = std::process::Command::new("bash").args(["-c", &line]).output();
        let completed = String::from_utf8(output.expect("bash").stdout).expect("text");
        assert_eq!(completed.trim(), expected, "{words}");
    }
}
