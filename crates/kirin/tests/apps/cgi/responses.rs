//! What clients get of a program's response, and what the log has when a program fails.

use kirin_tests::{Kirin, Site, wait_for};

use super::{config, start, touch, wait_for_file, with_program};

#[test]
fn responses_have_the_programs_status_fields_and_body() {
    let (_site, kirin) = start("");
    let mut client = kirin.connect();
    let reply = client.get("/do?do=status");
    assert_eq!((reply.status, reply.text().as_str()), (418, "teapot"));
    assert!(reply.head.contains("X-Many: a\r\nX-Many: b"), "{}", reply.head);
    assert!(reply.field("status").is_none(), "{}", reply.head);
    assert_eq!(reply.field("set-cookie"), Some("c=d"));
    let reply = client.get("/do?do=redirect");
    assert_eq!((reply.status, reply.field("location")), (302, Some("/elsewhere?a=b")));
    assert_eq!(client.get("/do?do=unchanged").status, 304);
    let reply = client.get("/do?do=length");
    assert_eq!((reply.field("content-length"), reply.text().as_str()), (Some("5"), "whole"));
    assert_eq!(client.get("/do?do=long").text(), "whole");
    let large = client.get("/do?do=large");
    assert_eq!((large.body.len(), large.body.last()), (4 << 20, Some(&b'j')));
    // The exit status of a script is that of its last command, and says nothing about the page.
    assert_eq!(client.get("/do?do=failing").text(), "before");
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_response_to_head_has_no_body() {
    let (_site, kirin) = start("");
    let mut client = kirin.connect();
    let mut head = |target: &str| {
        client.send(format!("HEAD {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
        client.read_head_reply()
    };
    let reply = head("/do?do=length");
    assert_eq!((reply.status, reply.field("content-length")), (200, Some("5")));
    assert_eq!(head("/do?do=status").status, 418);
    // The program must not fail because nobody wants its body.
    assert_eq!(head("/do?do=large").status, 200);
    assert_eq!(client.get("/do?do=length").text(), "whole");
    assert!(!kirin.log().contains("WARN"), "{}", kirin.log());
}

#[test]
fn a_response_is_streamed_as_it_is_made() {
    let (site, kirin) = start("");
    let mut client = kirin.connect();
    client.send("GET /do?do=stream HTTP/1.1\r\nHost: test\r\n\r\n");
    client.read_until(b"first\n");
    touch(&site, "go");
    client.read_until(b"second\n");
    client.read_until(b"0\r\n\r\n");
    assert_eq!(client.get("/do?do=length").text(), "whole");
}

#[test]
fn a_program_may_go_on_after_its_response() {
    for (what, expected) in
        [("after", "whole"), ("nothing", ""), ("later", "soon"), ("background", "started")]
    {
        let (site, kirin) = start("");
        assert_eq!(kirin.get(&format!("/do?do={what}")).text(), expected);
        touch(&site, "go");
        wait_for_file(&site, "done");
    }
}

#[test]
fn error_output_comes_into_the_log_in_bounded_length() {
    let (_site, kirin) = start("");
    assert_eq!(kirin.get("/do?do=errors").text(), "logged");
    kirin.wait_for_log("more error output of a CGI program than is logged");
    let log = kirin.log();
    let line = log.lines().find(|line| line.contains("first line")).expect("a line");
    assert!(line.contains("cgi-bin/do"), "{line}");
    assert!(log.lines().all(|line| line.len() < 3000), "{log}");
    assert_eq!(log.matches("error output of a CGI program").count(), 51, "{log}");
}

#[test]
fn a_program_without_a_head_is_a_bad_gateway_and_the_log_says_why() {
    let scripts = [
        ("no-interpreter", "#!/no/such/interpreter\n", "cannot be started: No such file"),
        (
            "no-magic",
            "echo 'Content-Type: text/plain'\necho\necho no shell runs it\n",
            "Exec format",
        ),
    ];
    let site = scripts.iter().fold(super::site(), |site, (name, script, _)| {
        with_program(site, &format!("cgi-bin/{name}"), script)
    });
    let kirin =
        Kirin::start(&site, &config("[[route]]\npath = \"/cgi-bin\"\ntry = [\"cgi:cgi-bin\"]\n"));
    let mut client = kirin.connect();
    for (target, why) in [
        ("/do?do=silent", "before the end of the response's head; it exited with status 3"),
        ("/do?do=kill", "before the end of the response's head; signal 9 ended it"),
        ("/do?do=garbage", "response head"),
        ("/do?do=nph", "response head"),
        ("/do?do=endless", "sent a response head of more than 65536 bytes"),
        ("/cgi-bin/no-interpreter", scripts[0].2),
        ("/cgi-bin/no-magic", scripts[1].2),
    ] {
        assert_eq!(client.get(target).status, 502, "{target}");
        kirin.wait_for_log(&format!("request=\"GET {target}\""));
        let log = kirin.log();
        let is_it = |line: &&str| line.contains(&format!("request=\"GET {target}\""));
        let line = log.lines().find(is_it).expect("a line");
        let program = target.trim_start_matches("/cgi-bin").split('?').next().expect("a name");
        assert!(line.contains(why) && line.contains(&format!("cgi-bin{program}")), "{line}");
    }
    assert_eq!(client.get("/do?do=length").text(), "whole");
}

#[test]
fn a_program_that_dies_never_looks_like_one_that_ended() {
    let (_site, kirin) = start("");
    for (target, end) in [("/do?do=cut", "xxx"), ("/do?do=short", "short")] {
        let mut client = kirin.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let got = String::from_utf8_lossy(&client.read_to_end()).into_owned();
        assert!(got.starts_with("HTTP/1.1 200"), "{got}");
        assert!(got.trim_end().ends_with(end), "{got}");
    }
    kirin.wait_for_log("error=\"signal 9 ended it\"");
    kirin.wait_for_log("its output ended 45 bytes before its `Content-Length`");
}

/// A page that counts how often it was made, in the files beside it.
const COUNTING: &str = r#"#!/bin/sh
echo x >> count
printf 'Content-Type: text/html\nCache-Control: %s\n\n' "$POLICY"
printf 'made %s <!--#echo var="DATE_GMT" -->' "$(wc -l < count | tr -d ' ')"
"#;

#[test]
fn the_filters_of_a_route_are_around_its_programs() {
    let site = with_program(Site::new(), "cgi-bin/do", COUNTING);
    let rest = "cache = true\nssi = true\ncgi = { env = { POLICY = \"max-age=1000\" } }\n\
                [[route]]\npath = \"/private\"\ntry = [\"cgi:cgi-bin/do\"]\ncache = true\n\
                cgi = { env = { POLICY = \"no-store\" } }\n\
                [[route]]\npath = \"/small\"\ntry = [\"cgi:cgi-bin/do\"]\ncompress = [\"gzip\"]\n";
    let kirin = Kirin::start(&site, &config(rest));
    let mut client = kirin.connect();
    let first = client.get("/do").text();
    assert!(first.starts_with("made 1 ") && !first.contains("<!--"), "{first}");
    wait_for("the stored response", || client.get("/do").text().starts_with("made ").then_some(()));
    let count = std::fs::read_to_string(site.path("cgi-bin/count")).expect("count").lines().count();
    for _ in 0..3 {
        assert!(client.get("/do").text().starts_with(&format!("made {count} ")));
    }
    assert!(client.get("/private").text().starts_with(&format!("made {} <!--", count + 1)));
    assert!(client.get("/private").text().starts_with(&format!("made {} <!--", count + 2)));
    let reply = client.request("GET", "/small", "Accept-Encoding: gzip\r\n");
    assert_eq!((reply.status, reply.field("content-encoding")), (200, Some("gzip")));
}

#[test]
fn a_program_stores_pages_as_an_application_does() {
    let push = "#!/bin/sh\nprintf 'Content-Type: text/html\\nKirin-Store: ttl=60\\n\\npage'\n";
    let site = with_program(Site::new(), "cgi-bin/do", push);
    let rest = "[[route]]\npath = \"/page\"\ntry = [\"store\", \"cgi:cgi-bin/do\"]\n";
    let kirin = Kirin::start(&site, &config(rest));
    let mut client = kirin.connect();
    let reply = client.get("/page");
    assert_eq!((reply.text().as_str(), reply.field("kirin-store")), ("page", None));
    std::fs::remove_file(site.path("cgi-bin/do")).expect("removed");
    assert_eq!(client.get("/page").text(), "page");
    assert_eq!(client.get("/page/other").status, 502);
}
