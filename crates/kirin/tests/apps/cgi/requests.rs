//! What a program gets: its environment, its input and its directory.

use std::collections::BTreeSet;
use std::fs;

use kirin_tests::{Kirin, Site, kirin_command};

use super::{config, start, variable, with_program};

#[test]
fn a_program_gets_the_variables_of_rfc_3875() {
    let (site, kirin) = start("");
    let mut client = kirin.connect();
    for (target, path_info, query) in [
        ("/do?do=env", "", "do=env"),
        ("/do/", "/", ""),
        ("/do/a%20b/%C3%A9?do=env&x=%20", "/a b/\u{e9}", "do=env&x=%20"),
    ] {
        let fields = "X-Some-Thing: yes\r\nProxy: evil\r\nCookie: a=b\r\nX_Y: z\r\n";
        let reply = client.request("GET", target, fields);
        assert_eq!(reply.status, 200, "{target}: {}", reply.text());
        let program = site.path("cgi-bin/do").display().to_string();
        for (name, expected) in [
            ("SCRIPT_NAME", "/do"),
            ("PATH_INFO", path_info),
            ("QUERY_STRING", query),
            ("REQUEST_URI", target),
            ("REQUEST_METHOD", "GET"),
            ("SCRIPT_FILENAME", &program),
            ("GATEWAY_INTERFACE", "CGI/1.1"),
            ("SERVER_PROTOCOL", "HTTP/1.1"),
            ("SERVER_SOFTWARE", "kirin"),
            ("SERVER_NAME", "test"),
            ("SERVER_PORT", &kirin.address().port().to_string()),
            ("REMOTE_ADDR", "127.0.0.1"),
            ("REQUEST_SCHEME", "http"),
            ("HTTP_HOST", "test"),
            ("HTTP_X_SOME_THING", "yes"),
            ("HTTP_COOKIE", "a=b"),
        ] {
            let found = variable(&reply, name);
            assert_eq!(found.as_deref(), Some(expected), "{name} of {target}: {}", reply.text());
        }
        for name in ["HTTP_PROXY", "HTTPS", "HTTP_X_Y", "CONTENT_LENGTH", "REMOTE_USER"] {
            assert_eq!(variable(&reply, name), None, "{name}");
        }
    }
    assert_eq!(client.get("/do/a%00?do=env").status, 400);
    assert_eq!(client.get("/don?do=env").status, 404);
}

#[test]
fn the_environment_has_nothing_of_kirins_own_but_path() {
    let site = super::site();
    let rest = "cgi = { env = { GREETING = \"hello world\", SERVER_SOFTWARE = \"none\" } }\n";
    fs::write(site.path("kirin.toml"), config(rest)).expect("kirin.toml");
    let mut command = kirin_command(&site);
    command.args(["serve", "--config", "kirin.toml"]);
    command.env("DATABASE_PASSWORD", "secret").env("PATH", "/usr/bin:/bin");
    let kirin = Kirin::start_command(&mut command);
    let reply = kirin.get("/do");
    let text = reply.text();
    let names: BTreeSet<&str> =
        text.lines().filter_map(|line| Some(line.split_once('=')?.0)).collect();
    let expected = BTreeSet::from([
        "GATEWAY_INTERFACE",
        "GREETING",
        "HTTP_HOST",
        "HTTP_X_REQUEST_ID",
        "PATH",
        "PATH_INFO",
        "QUERY_STRING",
        "REDIRECT_STATUS",
        "REMOTE_ADDR",
        "REMOTE_PORT",
        "REQUEST_METHOD",
        "REQUEST_SCHEME",
        "REQUEST_URI",
        "SCRIPT_FILENAME",
        "SCRIPT_NAME",
        "SERVER_NAME",
        "SERVER_PORT",
        "SERVER_PROTOCOL",
        "SERVER_SOFTWARE",
    ]);
    assert_eq!(names, expected, "{text}");
    assert_eq!(variable(&reply, "PATH").as_deref(), Some("/usr/bin:/bin"));
    assert_eq!(variable(&reply, "GREETING").as_deref(), Some("hello world"));
    assert_eq!(variable(&reply, "SERVER_SOFTWARE").as_deref(), Some("none"));
}

#[test]
fn a_program_gets_the_mount_and_the_user() {
    // bob's password is "opensesame".
    let users = "bob:$2y$08$48biTCX6hLFLuo1X9oacu.C9feoeVL5TxFGhMA0T2i1gjC8TRnAwi\n";
    let site = super::site().with("users", users);
    let rest = "[[route]]\npath = \"/u/{id}\"\nrewrite = \"/\"\ntry = [\"cgi:cgi-bin/do\"]\nbasic_auth = \"users\"\n\
                [[route]]\npath = \"/v\"\nrewrite = \"/w\"\ntry = [\"cgi:cgi-bin/do\"]\n\
                [[route]]\npath = \"= /exact\"\ntry = [\"cgi:cgi-bin/do\"]\n\
                [[route]]\npath = \"/\"\ntry = [\"cgi:cgi-bin/do\"]\n";
    let kirin = Kirin::start(&site, &config(rest));
    let mut client = kirin.connect();
    assert_eq!(client.get("/u/7/a").status, 401);
    let password = "Authorization: Basic Ym9iOm9wZW5zZXNhbWU=\r\n";
    let reply = client.request("GET", "/u/7/a", password);
    for (name, expected) in [
        ("SCRIPT_NAME", "/u/7"),
        ("PATH_INFO", "/a"),
        ("REMOTE_USER", "bob"),
        ("AUTH_TYPE", "Basic"),
    ] {
        assert_eq!(variable(&reply, name).as_deref(), Some(expected), "{name}: {}", reply.text());
    }
    for (target, script_name, path_info) in [
        ("/v/a", "", "/w/a"),
        ("/exact", "/exact", ""),
        ("/", "", "/"),
        ("/x//y/../z/", "", "/x/z/"),
        ("/x/../do/y", "/do", "/y"),
    ] {
        let reply = client.get(target);
        assert_eq!(variable(&reply, "SCRIPT_NAME").as_deref(), Some(script_name), "{target}");
        assert_eq!(variable(&reply, "PATH_INFO").as_deref(), Some(path_info), "{target}");
    }
}

#[test]
fn bodies_of_any_length_arrive() {
    let (_site, kirin) = start("");
    let mut client = kirin.connect();
    for length in [0, 1, 65_535, 65_537, 200_000, 3_000_000] {
        let body: Vec<u8> = (0..length).map(|number: u32| (number % 251) as u8).collect();
        let sum: u64 = body.iter().map(|byte| u64::from(*byte)).sum();
        let announced = if length == 0 { "none".into() } else { length.to_string() };
        let expected = format!("{length} {sum} {announced}");
        assert_eq!(client.post("/do?do=body", "a/b", &body).text(), expected);
        // The length is unknown before the body, and CGI needs it.
        client
            .send("POST /do?do=body HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n");
        for part in body.chunks(10_000) {
            client.send(format!("{:x}\r\n", part.len())).send(part).send("\r\n");
        }
        client.send("0\r\n\r\n");
        assert_eq!(client.read_reply().text(), format!("{length} {sum} {length}"));
    }
    assert_eq!(client.get("/do?do=body").text(), "0 0 none");
    client.send(
        "POST /do?do=body HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
    );
    assert_eq!(client.read_head_reply().status, 100);
    assert!(client.send("body").read_reply().text().starts_with("4 "));
}

#[test]
fn a_program_need_not_read_its_input() {
    let (_site, kirin) = start("");
    let mut client = kirin.connect();
    for length in [1, 100_000, 3_000_000] {
        let reply = client.post("/do?do=ignore", "a/b", &vec![b'x'; length]);
        assert_eq!((reply.status, reply.text().as_str()), (200, "ignored"), "{length}");
    }
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_body_over_the_limit_starts_no_program() {
    let (_site, kirin) = start("body_limit = \"1KB\"\n");
    let body = |length| vec![b'x'; length];
    assert_eq!(kirin.connect().post("/do?do=body", "a/b", &body(1024)).status, 200);
    assert_eq!(kirin.connect().post("/do?do=body", "a/b", &body(1025)).status, 413);
}

#[test]
fn a_program_runs_in_its_directory() {
    let pwd = "#!/bin/sh\nprintf 'Content-Type: text/plain\\n\\n'\npwd\n";
    let site = with_program(Site::new(), "cgi-bin/do", pwd);
    let kirin = Kirin::start(&site, &config(""));
    let directory = fs::canonicalize(site.path("cgi-bin")).expect("cgi-bin");
    assert_eq!(kirin.get("/do").text().trim_end(), directory.display().to_string());
}
