//! `basic_auth`: passwords, and what happens while they are checked.

use super::*;

const BOB: &str = "Authorization: Basic Ym9iOm9wZW5zZXNhbWU=\r\n";
const WRONG: &str = "Authorization: Basic Ym9iOndyb25n\r\n";
const NOBODY: &str = "Authorization: Basic bm9ib2R5Om9wZW5zZXNhbWU=\r\n";
const ZOE: &str = "Authorization: Basic em9lOm5ld3Bhc3M=\r\n";

const BOB_LINE: &str = "bob:$2y$08$48biTCX6hLFLuo1X9oacu.C9feoeVL5TxFGhMA0T2i1gjC8TRnAwi\n";
const ZOE_LINE: &str = "zoe:$2y$05$hVMNst6hY.7q7ttcHy.fv.njM23kUU7XrTQUqYJS1ZG2AgnSxkrd6\n";

const AUTH_ROUTES: &str = "[[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\", \"app:web\"]\n\
    [[route]]\npath = \"/members\"\ntry = [\"store\", \"files:public\"]\nbasic_auth = \"users\"\nbasic_auth_realm = \"the club\"\n\
    headers = { \"Cache-Control\" = \"private\" }\n\
    [[route]]\npath = \"/app\"\ntry = [\"app:web\"]\nbasic_auth = \"users\"\nrewrite = \"/\"\n";

#[test]
fn a_password_is_required_and_the_application_gets_the_name() {
    let site =
        Site::new().with("app.psgi", PSGI).with("public/members/f", "file").with("users", BOB_LINE);
    let kirin = serve(&site, &format!("{APP}{AUTH_ROUTES}"));
    memcached(&site).set("/members/page", b"text/plain\r\npage");
    let mut client = kirin.connect();
    for target in [
        "/members/f",
        "/members/page",
        "/members",
        "/%6dembers/f",
        "/x/../members/f",
        "//members/f",
        "/app/",
    ] {
        for fields in [
            "",
            WRONG,
            NOBODY,
            "Authorization: Bearer x\r\n",
            &format!("{WRONG}{BOB}"),
            "Authorization: Basic !\r\n",
        ] {
            let reply = client.request("GET", target, fields);
            assert_eq!(reply.status, 401, "{target} {fields}");
            let realm = if target == "/app/" { "Restricted" } else { "the club" };
            let challenge = format!("Basic realm=\"{realm}\", charset=\"UTF-8\"");
            assert_eq!(
                reply.field("www-authenticate"),
                Some(challenge.as_str()),
                "{target} {fields}"
            );
        }
    }
    // The request is sent twice: the first is answered by a check, the second from memory.
    for _ in 0..2 {
        let reply = client.request("GET", "/members/f", BOB);
        assert_eq!((reply.status, reply.text().as_str()), (200, "file"));
        assert_eq!(reply.field("cache-control"), Some("private"));
        assert_eq!(client.request("GET", "/members/page", BOB).text(), "page");
        let text = client.request("GET", "/app/x?y", BOB).text();
        assert!(
            text.contains("SCRIPT_NAME=/app\nPATH_INFO=/x\n")
                && text.contains("REMOTE_USER=bob\nAUTH_TYPE=Basic\n"),
            "{text}"
        );
        assert_eq!(client.request("GET", "/members/f", WRONG).status, 401);
    }
    let head = client.request("HEAD", "/members/f", BOB);
    assert_eq!((head.status, head.field("content-length")), (200, Some("4")));
    // No spelling of the path avoids the password.
    for target in
        ["/app%2Fx", "/%61pp/%0a", "/%61pp%2Fx", "/open/..%2Fapp/x", "/app/x/../y", "/app/%2e"]
    {
        assert_eq!(client.get(target).status, 401, "{target}");
    }
    for target in ["/app/../open", "/app%2F..%2Fopen", "/app/%2e%2e/open"] {
        let text = client.get(target).text();
        assert!(
            text.contains("PATH_INFO=/open\n") && text.contains("REQUEST_URI=/open\n"),
            "{target}: {text}"
        );
    }
    // A name without a checked password is not passed on.
    let text = client.request("GET", "/app/", &format!("{BOB}Remote-User: eve\r\n")).text();
    assert!(text.contains("REMOTE_USER=bob\n"), "{text}");
    wait_for("the log", || {
        let log = std::fs::read_to_string(site.path("access.log")).ok()?;
        let has = |part: &str| log.lines().any(|line| line.contains(part));
        (has("127.0.0.1 - bob [")
            && has("\"GET /members/f HTTP/1.1\" 401")
            && has("127.0.0.1 - - ["))
        .then_some(())
    });
    let logs = kirin.log() + &std::fs::read_to_string(site.path("access.log")).unwrap();
    assert!(!logs.contains("opensesame") && !logs.contains("Ym9iOm9wZW5zZXNhbWU"), "{logs}");
}

#[test]
fn a_request_body_waits_for_the_password_check() {
    let site = Site::new().with("app.psgi", PSGI).with("users", BOB_LINE);
    let kirin = serve(
        &site,
        &format!("{APP}[[route]]\npath = \"/\"\ntry = [\"app:web\"]\nbasic_auth = \"users\"\n"),
    );
    let mut client = kirin.connect();
    let body = "x".repeat(300_000);
    client.send(format!(
        "POST / HTTP/1.1\r\nHost: t\r\n{BOB}Content-Length: {}\r\n\r\n{body}",
        body.len()
    ));
    let reply = client.read_reply();
    assert!(reply.status == 200 && reply.text().contains("REQUEST_METHOD=POST"), "{}", reply.head);
    let mut client = kirin.connect();
    client.send(format!("POST / HTTP/1.1\r\nHost: t\r\n{WRONG}Content-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: t\r\n{BOB}\r\n"));
    assert_eq!(client.read_reply().status, 401);
}

#[test]
fn password_checks_do_not_delay_other_visitors() {
    // With cost 10 a check takes some 50 ms.
    let slow = "bob:$2y$10$XU7t5jn0iM3a0d/Im00MJeyYUrAYoi/uzU/nFjQ4JqgvGDR59OYxW\n";
    let site = Site::new()
        .with("app.psgi", PSGI)
        .with("public/members/f", "")
        .with("public/open", "open")
        .with("users", slow);
    let kirin = Kirin::start(
        &site,
        &format!("{LISTENER}{APP}{AUTH_ROUTES}").replace("threads = 2", "threads = 1"),
    );
    let mut guessers: Vec<Client> = (0..40).map(|_| kirin.connect()).collect();
    for guesser in &mut guessers {
        guesser.send(format!("GET /members/f HTTP/1.1\r\nHost: t\r\n{WRONG}\r\n"));
    }
    assert_eq!(kirin.get("/open").text(), "open");
    for guesser in &mut guessers {
        assert_eq!(guesser.read_reply().status, 401);
    }
    // The only loop was free while the requests waited for their turn.
    wait_for("the log, with others answered before the last guess", || {
        let log = std::fs::read_to_string(site.path("access.log")).ok()?;
        let guesses = log.lines().filter(|line| line.contains("\" 401 ")).count();
        (guesses == 40 && log.lines().position(|line| line.contains("GET /open"))? < 40)
            .then_some(())
    });
}

#[test]
fn a_weak_hash_is_accepted_with_a_warning_when_the_file_is_read() {
    const WEAK: &str = "bob:$apr1$abcdefgh$hnz8AY7O7E7QvKAVjuw920\n";
    let site =
        Site::new().with("app.psgi", PSGI).with("public/members/f", "file").with("users", WEAK);
    let kirin = serve(&site, &format!("{APP}{AUTH_ROUTES}"));
    let warning = "the password of `bob` is hashed with MD5";
    kirin.wait_for_log(warning);
    assert_eq!(kirin.log().matches(warning).count(), 1, "{}", kirin.log());
    let mut client = kirin.connect();
    assert_eq!(client.request("GET", "/members/f", BOB).status, 200);
    assert_eq!(client.request("GET", "/members/f", WRONG).status, 401);
    std::fs::write(site.path("users.new"), format!("{ZOE_LINE}{WEAK}")).expect("write");
    std::fs::rename(site.path("users.new"), site.path("users")).expect("rename");
    wait_for("the new file", || {
        (client.request("GET", "/members/f", ZOE).status == 200).then_some(())
    });
    kirin.wait_for_log("password file is read again");
    wait_for("another warning", || (kirin.log().matches(warning).count() == 2).then_some(()));
}

#[test]
fn a_changed_password_file_counts_at_once_and_a_bad_one_not_at_all() {
    let site =
        Site::new().with("app.psgi", PSGI).with("public/members/f", "file").with("users", BOB_LINE);
    let kirin = serve(&site, &format!("{APP}{AUTH_ROUTES}"));
    let mut client = kirin.connect();
    assert_eq!(client.request("GET", "/members/f", BOB).status, 200);
    let replace = |text: &str| {
        std::fs::write(site.path("users.new"), text).expect("write");
        std::fs::rename(site.path("users.new"), site.path("users")).expect("rename");
    };
    replace(ZOE_LINE);
    wait_for("the new file", || {
        (client.request("GET", "/members/f", ZOE).status == 200).then_some(())
    });
    assert_eq!(client.request("GET", "/members/f", BOB).status, 401);
    replace("eve:plain-password\n");
    wait_for("the bad file", || {
        assert_eq!(client.request("GET", "/members/f", ZOE).status, 200);
        kirin.log().contains("password file is not taken").then_some(())
    });
    assert!(
        kirin.log().contains("line 1: the password of `eve`")
            && !kirin.log().contains("plain-password")
    );
}
