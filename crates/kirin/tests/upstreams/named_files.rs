//! Files that servers of an upstream name, for Kirin to send: `X-Sendfile` and `X-Accel-Redirect`.

use kirin_tests::{Backend, Kirin, Reply, Site};

/// Answers with the field lines that `X-Answer` of the request has, separated by `|`.
fn backend() -> Backend {
    Backend::answering(|asked| {
        let lines = asked.field("x-answer").unwrap_or_default();
        let (status, lines) = match lines.split_once('|') {
            Some((status, lines)) if status.parse::<u16>().is_ok() => (status, lines),
            _ => ("200", lines),
        };
        let lines: String = lines.split('|').map(|line| format!("{line}\r\n")).collect();
        let target = asked.target().to_owned();
        let told = asked.field("x-sendfile-type").unwrap_or("none").to_owned()
            + " "
            + asked.field("x-accel-mapping").unwrap_or("none");
        format!(
            "HTTP/1.1 {status} Answer\r\nContent-Type: text/plain\r\nX-Told: {told}\r\nX-Target: {target}\r\n{lines}Content-Length: 4\r\n\r\nbody"
        )
    })
}

/// Answers by CGI: with a file, and with the field lines of its query.
const SCGI: &str = "use v5.16; use warnings; use IO::Socket::UNIX;
my $server = IO::Socket::UNIX->new(Listen => 9, Local => $ARGV[0]) or die $!;
while (my $client = $server->accept) {
    local $/ = ':'; my $length = <$client>; chop $length; read $client, my $block, $length + 1;
    print $client \"Status: 200\\r\\nContent-Type: text/plain\\r\\nX-Sendfile: $ARGV[1]/files/a.txt\\r\\n\\r\\nbody\";
    close $client;
}";

struct Running {
    kirin: Kirin,
    root: String,
    _backend: Backend,
    _site: Site,
}

fn serve() -> Running {
    let site = Site::new()
        .with("files/a.txt", "0123456789")
        .with("files/sub/b c.txt", "spaced")
        .with("private/secret.txt", "secret")
        .with("other/x.txt", "other");
    std::os::unix::fs::symlink(site.path("private/secret.txt"), site.path("files/link"))
        .expect("a link");
    let (backend, root) = (backend(), site.root().display().to_string());
    let address = backend.address();
    let upstream = |name: &str, keys: &str| {
        format!(
            "[[upstream]]\nname = \"{name}\"\nservers = [\"{address}\"]\n{keys}\n[[route]]\npath = \"/{name}\"\ntry = [\"proxy:{name}\"]\n"
        )
    };
    let config = [
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n".to_owned(),
        upstream("none", ""),
        upstream("sendfile", "sendfile = [\"files\", \"other\"]"),
        upstream(
            "accel",
            "accel_redirect = { \"/protected\" = \"files\", \"/protected/deep/\" = \"other\" }",
        ),
        upstream("rewritten", "sendfile = [\"files\"]") + "rewrite = \"/inner\"\n",
        upstream("cached", "sendfile = [\"files\"]") + "cache = { ttl = \"60s\" }\n",
    ];
    let kirin = Kirin::start(&site, &config.concat());
    Running { kirin, root, _backend: backend, _site: site }
}

fn ask(running: &Running, target: &str, answer: &str, fields: &str) -> Reply {
    let fields = format!("X-Answer: {answer}\r\n{fields}");
    running.kirin.connect().request("GET", target, &fields)
}

fn assert_clean(reply: &Reply) {
    for name in ["x-sendfile", "x-accel-redirect", "x-lighttpd-send-file"] {
        assert_eq!(reply.field(name), None, "{}", reply.head);
    }
}

#[test]
fn a_file_below_a_configured_directory_is_sent() {
    let running = serve();
    let root = &running.root;
    for (target, answer, body) in [
        ("/sendfile", format!("X-Sendfile: {root}/files/a.txt"), "0123456789"),
        ("/sendfile", format!("x-lighttpd-send-file: {root}/files/sub/b c.txt"), "spaced"),
        ("/sendfile", format!("X-Sendfile: {root}/files/../other/x.txt"), "other"),
        ("/accel", "X-Accel-Redirect: /protected/a.txt".into(), "0123456789"),
        ("/accel", "X-Accel-Redirect: /protected/sub/b%20c.txt?x=y".into(), "spaced"),
        ("/accel", "X-Accel-Redirect: /protected/sub/b c.txt".into(), "spaced"),
        ("/accel", "X-Accel-Redirect: /protected//sub/../a.txt".into(), "0123456789"),
        ("/accel", "X-Accel-Redirect: /protected/deep/x.txt".into(), "other"),
    ] {
        let reply = ask(&running, target, &format!("{answer}|Cache-Control: no-cache"), "");
        assert_eq!((reply.status, reply.text().as_str()), (200, body), "{answer}");
        assert_eq!(reply.field("content-type"), Some("text/plain"));
        assert_eq!(reply.field("cache-control"), Some("no-cache"));
        assert_clean(&reply);
    }
    // Conditions and ranges are those of a file.
    let answer = format!("X-Sendfile: {root}/files/a.txt");
    let tag = ask(&running, "/sendfile", &answer, "").field("etag").expect("a tag").to_owned();
    let part = ask(&running, "/sendfile", &answer, "Range: bytes=2-4\r\n");
    assert_eq!((part.status, part.text().as_str()), (206, "234"));
    assert_eq!(
        ask(&running, "/sendfile", &answer, &format!("If-None-Match: {tag}\r\n")).status,
        304
    );
    let mut client = running.kirin.connect();
    client.send(format!("HEAD /sendfile HTTP/1.1\r\nHost: a\r\nX-Answer: {answer}\r\n\r\n"));
    let head = client.read_head_reply();
    assert_eq!((head.status, head.field("content-length")), (200, Some("10")), "{}", head.head);
    // Another status has the complete file.
    let reply = ask(&running, "/sendfile", &format!("403|{answer}"), "Range: bytes=2-4\r\n");
    assert_eq!((reply.status, reply.text().as_str()), (403, "0123456789"));
    // The cache stores the response with the file.
    for expected in ["fwd=uri-miss", "hit"] {
        let reply = ask(&running, "/cached", &answer, "");
        assert_eq!(reply.text(), "0123456789");
        let status = reply.field("cache-status").unwrap_or_default();
        assert!(status.contains(expected), "{status}");
    }
}

#[test]
fn no_other_file_is_sent_and_no_path_reaches_a_client() {
    let running = serve();
    let root = &running.root;
    for (target, answer, expected) in [
        ("/sendfile", format!("X-Sendfile: {root}/private/secret.txt"), 500),
        ("/sendfile", format!("X-Sendfile: {root}/files/../private/secret.txt"), 500),
        ("/sendfile", format!("X-Sendfile: {root}/files/link"), 500),
        ("/sendfile", format!("X-Sendfile: {root}/files/sub"), 500),
        ("/sendfile", format!("X-Sendfile: {root}/files/missing"), 404),
        ("/sendfile", "X-Sendfile: files/a.txt".into(), 500),
        ("/sendfile", "X-Sendfile: ".into(), 500),
        ("/sendfile", format!("X-Sendfile: {root}/private/missing"), 500),
        ("/sendfile", "X-Accel-Redirect: /protected/a.txt".into(), 500),
        ("/accel", format!("X-Sendfile: {root}/files/a.txt"), 500),
        ("/accel", "X-Accel-Redirect: /elsewhere/a.txt".into(), 500),
        ("/accel", "X-Accel-Redirect: /protected".into(), 500),
        ("/accel", "X-Accel-Redirect: /protected/../../private/secret.txt".into(), 500),
        ("/accel", "X-Accel-Redirect: /protected/%2e%2e/private/secret.txt".into(), 500),
        ("/accel", "X-Accel-Redirect: /protected/..%2f..%2fprivate/secret.txt".into(), 500),
        ("/accel", "X-Accel-Redirect: /protected/a.txt%00".into(), 500),
        ("/accel", "X-Accel-Redirect: /protected/link".into(), 500),
        ("/accel", "X-Accel-Redirect: /protected/missing".into(), 404),
        ("/accel", "X-Accel-Redirect: @named".into(), 500),
        ("/accel", "X-Accel-Redirect: http://127.0.0.1/".into(), 500),
        ("/none", format!("X-Sendfile: {root}/files/a.txt"), 502),
        ("/none", "X-Accel-Redirect: /protected/a.txt".into(), 502),
        ("/none", "X-LIGHTTPD-send-file: /a".into(), 502),
    ] {
        let reply = ask(&running, target, &answer, "");
        assert_eq!(reply.status, expected, "{target} {answer}: {}", reply.text());
        assert!(
            !reply.text().contains("secret") && !reply.head.contains(root.as_str()),
            "{answer}"
        );
        assert_clean(&reply);
    }
    running.kirin.wait_for_log("the file that a server names is not sent");
    running.kirin.wait_for_log("add `sendfile` or `accel_redirect`");
    // A path is no route, and a client cannot name a file.
    assert_eq!(running.kirin.get("/protected/a.txt").status, 404);
    let forged =
        format!("X-Sendfile: {root}/files/a.txt\r\nX-Accel-Redirect: /protected/a.txt\r\n");
    assert_eq!(ask(&running, "/sendfile", "X-A: b", &forged).text(), "body");
}

#[test]
fn a_rewrite_holds_for_upstreams_that_name_files() {
    let running = serve();
    let answer = format!("X-Sendfile: {}/files/a.txt", running.root);
    let reply = ask(&running, "/rewritten/x?y", &answer, "");
    assert_eq!((reply.status, reply.text().as_str()), (200, "0123456789"));
    let reply = ask(&running, "/rewritten/x?y", "X-A: b", "");
    assert_eq!(reply.field("x-target"), Some("/inner/x?y"), "{}", reply.head);
}

#[test]
fn informational_responses_and_switches_name_no_file() {
    let backend = Backend::start(|mut connection| {
        while let Some(asked) = connection.read_request() {
            let file = "X-Sendfile: /etc/passwd\r\nX-Accel-Redirect: /x\r\n";
            connection.send(match asked.field("upgrade") {
                None => format!(
                    "HTTP/1.1 103 Early\r\nLink: </a>\r\n{file}\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                ),
                Some(_) => format!(
                    "HTTP/1.1 101 Switching\r\nConnection: Upgrade\r\nUpgrade: echo\r\n{file}\r\n"
                ),
            });
        }
    });
    let site = Site::new().with("files/a.txt", "");
    let address = backend.address();
    let kirin = Kirin::start(
        &site,
        &format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n\
             [[upstream]]\nname = \"a\"\nservers = [\"{address}\"]\nsendfile = [\"files\"]\n\
             [[upstream]]\nname = \"b\"\nservers = [\"{address}\"]\n\
             [[route]]\npath = \"/a\"\ntry = [\"proxy:a\"]\n[[route]]\npath = \"/b\"\ntry = [\"proxy:b\"]\n"
        ),
    );
    for target in ["/a", "/b"] {
        let mut client = kirin.connect();
        let early = client.request("GET", target, "");
        assert_eq!((early.status, early.field("link")), (103, Some("</a>")), "{}", early.head);
        assert_clean(&early);
        assert_eq!(client.read_reply().text(), "ok");
        let upgrade = "Connection: Upgrade\r\nUpgrade: echo\r\n";
        let switched = kirin.connect().request("GET", target, upgrade);
        assert_eq!(switched.status, 101, "{}", switched.head);
        assert_clean(&switched);
    }
}

#[test]
fn servers_are_told_which_field_they_may_use() {
    let running = serve();
    let forged = "X-Sendfile-Type: X-Forged\r\nX-Accel-Mapping: /=/\r\n";
    for (target, expected) in [
        ("/none", "none none".to_owned()),
        ("/sendfile", "X-Sendfile none".to_owned()),
        (
            "/accel",
            format!(
                "X-Accel-Redirect {root}/other/=/protected/deep/,{root}/files/=/protected/",
                root = running.root
            ),
        ),
    ] {
        let reply = ask(&running, target, "X-A: b", forged);
        assert_eq!(reply.field("x-told"), Some(expected.as_str()), "{target}");
    }
}

#[test]
fn a_cgi_server_may_name_a_file_too() {
    let site = Site::new().with("files/a.txt", "0123456789").with("server.pl", SCGI);
    let root = site.root().display().to_string();
    let socket = site.path("scgi.sock");
    let mut server = std::process::Command::new("perl")
        .args([site.path("server.pl").as_os_str(), socket.as_os_str(), root.as_ref()])
        .spawn()
        .expect("perl");
    kirin_tests::wait_for("the server", || socket.exists().then_some(()));
    let kirin = Kirin::start(
        &site,
        &format!(
            "[[listener]]\naddress = \"127.0.0.1:0\"\n\
             [[upstream]]\nname = \"a\"\nservers = [\"scgi://unix:{0}\"]\nsendfile = [\"files\"]\n\
             [[upstream]]\nname = \"b\"\nservers = [\"scgi://unix:{0}\"]\n\
             [[route]]\npath = \"/a\"\ntry = [\"proxy:a\"]\n[[route]]\npath = \"/b\"\ntry = [\"proxy:b\"]\n",
            socket.display()
        ),
    );
    let (sent, refused) = (kirin.get("/a"), kirin.get("/b"));
    let _ = server.kill();
    let _ = server.wait();
    assert_eq!((sent.status, sent.text().as_str()), (200, "0123456789"), "{}", sent.head);
    assert_clean(&sent);
    assert_eq!(refused.status, 502);
    assert_clean(&refused);
}
