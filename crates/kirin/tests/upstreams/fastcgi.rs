//! `proxy:NAME` in front of php-fpm (Debian's).

use std::fs;

use kirin_tests::{Kirin, PhpFpm, Reply, Site};

const INDEX: &str = r#"<?php
header('Content-Type: application/json');
header('X-Script: index');
$files = [];
foreach ($_FILES as $name => $file) {
    $files[$name] = [$file['name'], $file['size'], md5_file($file['tmp_name'])];
}
echo json_encode(['server' => $_SERVER, 'get' => $_GET, 'post' => $_POST, 'files' => $files], JSON_UNESCAPED_SLASHES);
"#;

const DO: &str = r#"<?php
switch ($_GET['do'] ?? '') {
case 'status':
    http_response_code(418);
    header('X-Many: a');
    header('X-Many: b', false);
    setcookie('c', 'd');
    echo 'teapot';
    break;
case 'redirect':
    header('Location: /elsewhere');
    break;
case 'unchanged':
    http_response_code(304);
    break;
case 'length':
    header('Content-Length: 5');
    echo 'whole';
    break;
case 'short':
    header('Content-Length: 50');
    echo 'short';
    break;
case 'stream':
    while (ob_get_level()) ob_end_flush();
    echo "first\n";
    flush();
    while (!file_exists(__DIR__ . '/../go')) { clearstatcache(); usleep(10000); }
    echo "second\n";
    break;
case 'wait':
    while (!file_exists(__DIR__ . '/../go')) { clearstatcache(); usleep(10000); }
    break;
case 'large':
    for ($i = 0; $i < 4096; $i++) echo str_repeat(chr(97 + $i % 26), 4096);
    break;
case 'body':
    $body = file_get_contents('php://input');
    echo strlen($body), ' ', md5($body), ' ', $_SERVER['CONTENT_LENGTH'];
    break;
case 'exit':
    echo 'before';
    exit(3);
case 'error':
    error_log("first line\nsecond " . str_repeat('x', 5000));
    echo 'logged';
    break;
case 'fatal':
    no_such_function();
case 'crash':
    while (ob_get_level()) ob_end_flush();
    echo str_repeat('x', 20000);
    flush();
    exec('kill -9 ' . getmypid());
case 'crash-early':
    exec('kill -9 ' . getmypid());
case 'pid':
    echo getmypid();
    break;
case 'later':
    header('Content-Length: 4');
    echo 'soon';
    while (ob_get_level()) ob_end_flush();
    flush();
    while (!file_exists(__DIR__ . '/../go')) { clearstatcache(); usleep(10000); }
    file_put_contents(__DIR__ . '/../done', 'done');
    break;
}
"#;

fn site() -> Site {
    Site::new()
        .with("public/index.php", INDEX)
        .with("public/do.php", DO)
        .with("public/admin/index.php", "<?php echo 'admin ', $_SERVER['SCRIPT_NAME'];")
        .with("public/style.css", "body {}")
        .with("public/uploads/x.jpg", "<?php echo 'evil';")
}

fn start(site: &Site, upstream: &str, route: &str) -> Kirin {
    start_before(site, "\"fastcgi://unix:php.sock\"", upstream, route)
}

fn start_before(site: &Site, servers: &str, upstream: &str, route: &str) -> Kirin {
    Kirin::start(
        site,
        &format!(
            "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
             [[upstream]]\nname = \"php\"\nservers = [{servers}]\nroot = \"public\"\n{upstream}\n\
             [[route]]\npath = \"/\"\ntry = [\"files:public\", \"proxy:php\"]\n{route}\n"
        ),
    )
}

fn php() -> (Site, PhpFpm, Kirin) {
    let site = site();
    let (php, kirin) = (PhpFpm::start(&site), start(&site, "", ""));
    (site, php, kirin)
}

/// Returns the value of a string in PHP's JSON.
fn value(reply: &Reply, name: &str) -> Option<String> {
    let text = reply.text();
    let (_, rest) = text.split_once(&format!("\"{name}\":\""))?;
    Some(rest.split('"').next()?.to_owned())
}

#[test]
fn php_sees_the_request_as_web_servers_show_it() {
    let (site, _php, kirin) = php();
    let mut client = kirin.connect();
    let root = std::fs::canonicalize(site.path("public")).expect("public").display().to_string();
    for (target, script, path_info) in [
        ("/", "/index.php", ""),
        ("/index.php/a/b%20c?d=e", "/index.php", "/a/b c"),
        ("/2024/01/hello/", "/index.php", "/2024/01/hello/"),
        ("/no/such.php", "/index.php", "/no/such.php"),
        ("/uploads/x.jpg/y.php", "/index.php", "/uploads/x.jpg/y.php"),
        ("/x/../?d=e", "/index.php", ""),
    ] {
        let reply =
            client.request("GET", target, "X-Some-Thing: yes\r\nProxy: evil\r\nCookie: a=b\r\n");
        assert_eq!(
            (reply.status, reply.field("x-script")),
            (200, Some("index")),
            "{target}: {}",
            reply.text()
        );
        let found = |name| value(&reply, name);
        assert_eq!(found("SCRIPT_NAME").as_deref(), Some(script), "{target}: {}", reply.text());
        assert_eq!(found("PATH_INFO").unwrap_or_default(), path_info, "{target}: {}", reply.text());
        let uri = target.replace("/x/../", "/");
        assert_eq!(found("REQUEST_URI"), Some(uri));
        assert_eq!(found("SCRIPT_FILENAME"), Some(format!("{root}{script}")));
        assert_eq!(found("DOCUMENT_ROOT"), Some(root.clone()));
        for (name, expected) in [
            ("REQUEST_METHOD", "GET"),
            ("HTTP_HOST", "test"),
            ("HTTP_X_SOME_THING", "yes"),
            ("HTTP_COOKIE", "a=b"),
            ("REMOTE_ADDR", "127.0.0.1"),
            ("SERVER_PROTOCOL", "HTTP/1.1"),
            ("GATEWAY_INTERFACE", "CGI/1.1"),
            ("REQUEST_SCHEME", "http"),
        ] {
            assert_eq!(found(name).as_deref(), Some(expected), "{name}");
        }
        assert!(found("HTTP_PROXY").is_none() && found("HTTPS").is_none());
    }
    assert_eq!(value(&client.get("/?d=e%20f"), "d").as_deref(), Some("e f"));
    assert_eq!(client.get("/admin/").text(), "admin /admin/index.php");
    let moved = client.get("/admin?a=b");
    assert_eq!((moved.status, moved.field("location")), (308, Some("/admin/?a=b")));
    assert_eq!(client.get("/a%00.php").status, 400);
}

#[test]
fn the_rewritten_path_finds_the_script_and_php_sees_the_sent_one() {
    let site = site();
    let _php = PhpFpm::start(&site);
    let kirin =
        start(&site, "", "[[route]]\npath = \"/v\"\nrewrite = \"/\"\ntry = [\"proxy:php\"]\n");
    let reply = kirin.get("/v/index.php/a?b=c");
    for (name, expected) in [
        ("SCRIPT_NAME", "/index.php"),
        ("PATH_INFO", "/a"),
        ("REQUEST_URI", "/v/index.php/a?b=c"),
        ("QUERY_STRING", "b=c"),
    ] {
        assert_eq!(value(&reply, name).as_deref(), Some(expected), "{name}: {}", reply.text());
    }
}

#[test]
fn without_path_info_a_route_of_a_script_has_all_its_requests() {
    let site = site();
    let _php = PhpFpm::start(&site);
    let route = "[[route]]\npath = \"= /admin/index.php\"\ndeny = 403\n";
    let kirin = start(&site, "path_info = false\n", route);
    assert_eq!(kirin.get("/admin/index.php").status, 403);
    for target in ["/admin/index.php/", "/admin/index.php/x", "/admin/index.php%2Fx"] {
        let reply = kirin.get(target);
        let name = value(&reply, "SCRIPT_NAME");
        assert_eq!(name.as_deref(), Some("/index.php"), "{target}: {}", reply.text());
    }
    // A directory still has its script: it is denied by a route of its own.
    assert_eq!(kirin.get("/admin/").text(), "admin /admin/index.php");
}

#[test]
fn files_are_served_and_the_source_of_scripts_never_is() {
    let site = site();
    let _php = PhpFpm::start(&site);
    let other = "[[route]]\npath = \"/static\"\nrewrite = \"/\"\ntry = [\"files:public\"]\n\
                 [[route]]\npath = \"/all\"\nrewrite = \"/\"\ntry = [\"files:.\"]\n\
                 [[route]]\npath = \"/beside\"\nrewrite = \"/\"\ntry = [\"files:beside\"]\nlisting = true\n\
                 error_pages = { 404 = \"/beside/error.php\" }\n";
    fs::create_dir(site.path("beside")).expect("a directory");
    for name in ["config.php", "error.php", "style.css"] {
        fs::write(site.path("beside").join(name), "<?php secret").expect("a file");
    }
    let kirin = start(&site, "", other);
    let mut client = kirin.connect();
    assert_eq!(client.get("/style.css").text(), "body {}");
    assert_eq!(client.get("/static/style.css").text(), "body {}");
    for target in
        ["/do.php", "/do.%70hp", "/admin/../do.php", "/index.php", "/index.PHP", "/do.php/"]
    {
        let reply = client.get(target);
        assert!(!reply.text().contains("<?php"), "{target}: {}", reply.text());
        assert_eq!(reply.status, 200, "{target}");
    }
    for target in ["/static/do.php", "/static/do.%70hp", "/all/public/do.php"] {
        assert_eq!(client.get(target).status, 404, "{target}");
    }
    // The same holds for a directory that is unrelated to the server's root, such as another copy,
    // or files that scripts include.
    assert_eq!(client.get("/beside/style.css").status, 200);
    for target in
        ["/beside/config.php", "/beside/config.PHP", "/beside/config.%70hp/", "/beside/none"]
    {
        let reply = client.get(target);
        assert!(
            reply.status == 404 && !reply.text().contains("secret"),
            "{target}: {}",
            reply.text()
        );
    }
}

#[test]
fn forms_and_uploads_of_any_length_arrive() {
    let (_site, _php, kirin) = php();
    let mut client = kirin.connect();
    let reply = client.post("/", "application/x-www-form-urlencoded", b"name=zo%C3%AB&x=y");
    assert_eq!(value(&reply, "x").as_deref(), Some("y"), "{}", reply.text());
    let mut form =
        b"--b\r\nContent-Disposition: form-data; name=\"f\"; filename=\"big.bin\"\r\n\r\n".to_vec();
    form.extend((0..3_000_000u32).map(|number| number as u8));
    form.extend_from_slice(b"\r\n--b--\r\n");
    let reply = client.post("/", "multipart/form-data; boundary=b", &form);
    assert!(reply.text().contains("\"f\":[\"big.bin\",3000000,"), "{}", reply.text());
    for length in [0, 1, 65_535, 65_536, 200_000, 2_000_000] {
        let body: Vec<u8> = (0..length).map(|number: u32| (number % 251) as u8).collect();
        let whole = client.post("/do.php?do=body", "a/b", &body).text();
        assert!(
            whole.starts_with(&format!("{length} ")) && whole.ends_with(&format!(" {length}")),
            "{whole}"
        );
        // The length is unknown, so it is read completely first, because CGI needs the length.
        client.send(
            "POST /do.php?do=body HTTP/1.1\r\nHost: test\r\nTransfer-Encoding: chunked\r\n\r\n",
        );
        for part in body.chunks(10_000) {
            client.send(format!("{:x}\r\n", part.len())).send(part).send("\r\n");
        }
        client.send("0\r\n\r\n");
        assert_eq!(client.read_reply().text(), whole, "{length}");
    }
    client.send(
        "POST /do.php?do=body HTTP/1.1\r\nHost: test\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n",
    );
    assert_eq!(client.read_head_reply().status, 100);
    assert!(client.send("body").read_reply().text().starts_with("4 "));
}

#[test]
fn buffered_bodies_of_many_bytes_arrive_from_their_file() {
    let site = site();
    let _php = PhpFpm::start(&site);
    let kirin = start(&site, "", "request_buffering = true");
    let reply = kirin.connect().post("/do.php?do=body", "a/b", &vec![b'x'; 3_000_000]);
    assert!(reply.text().starts_with("3000000 "), "{}", reply.text());
}

#[test]
fn responses_have_php_s_status_fields_and_body() {
    let (_site, _php, kirin) = php();
    let mut client = kirin.connect();
    let reply = client.get("/do.php?do=status");
    assert_eq!((reply.status, reply.text().as_str()), (418, "teapot"));
    assert!(reply.head.contains("X-Many: a\r\nX-Many: b"), "{}", reply.head);
    assert!(
        reply.field("status").is_none() && reply.field("set-cookie") == Some("c=d"),
        "{}",
        reply.head
    );
    // It arrived completely, so its length is known.
    assert_eq!(reply.field("content-length"), Some("6"));
    let reply = client.get("/do.php?do=redirect");
    assert_eq!((reply.status, reply.field("location")), (302, Some("/elsewhere")));
    assert_eq!(client.get("/do.php?do=unchanged").status, 304);
    let head = client.request("HEAD", "/do.php?do=length", "");
    assert_eq!((head.status, head.field("content-length")), (200, Some("5")));
    assert_eq!(client.get("/do.php?do=length").text(), "whole");
    assert_eq!(client.request("HEAD", "/do.php?do=large", "").status, 200);
    let large = client.get("/do.php?do=large");
    assert_eq!(
        (large.body.len(), large.body.first(), large.body.last()),
        (16 << 20, Some(&b'a'), Some(&b'n'))
    );
    assert_eq!(client.get("/do.php?do=exit").text(), "before");
    assert_eq!(client.get("/do.php?do=fatal").status, 500);
    kirin.wait_for_log("no_such_function");
}

#[test]
fn a_response_is_streamed_as_it_is_made() {
    let (site, _php, kirin) = php();
    let mut client = kirin.connect();
    client.send("GET /do.php?do=stream HTTP/1.1\r\nHost: test\r\n\r\n");
    client.read_until(b"first\n");
    std::fs::write(site.path("go"), "").expect("go");
    client.read_until(b"second\n");
    client.read_until(b"0\r\n\r\n");
    assert_eq!(client.get("/do.php?do=length").text(), "whole");
}

#[test]
fn error_output_comes_into_the_log_with_its_server_in_short_lines() {
    let (_site, _php, kirin) = php();
    assert_eq!(kirin.get("/do.php?do=error").text(), "logged");
    kirin.wait_for_log("second xxx");
    let log = kirin.log();
    let line = log.lines().find(|line| line.contains("first line")).expect("a line");
    assert!(line.contains("php.sock") && line.contains("upstream=\"php\""), "{line}");
    assert!(log.lines().all(|line| line.len() < 3000), "{log}");
}

#[test]
fn a_script_that_dies_never_looks_like_one_that_ended() {
    let (_site, _php, kirin) = php();
    let mut client = kirin.connect();
    client.send("GET /do.php?do=crash HTTP/1.1\r\nHost: test\r\n\r\n");
    let got = String::from_utf8_lossy(&client.read_to_end()).into_owned();
    assert!(got.starts_with("HTTP/1.1 200") && !got.ends_with("0\r\n\r\n"), "{got}");
    let mut client = kirin.connect();
    client.send("GET /do.php?do=short HTTP/1.1\r\nHost: test\r\n\r\n");
    let got = String::from_utf8_lossy(&client.read_to_end()).into_owned();
    assert!(got.contains("Content-Length: 50") && got.ends_with("short"), "{got}");
    kirin.wait_for_log("response was cut");
    assert_eq!(kirin.connect().post("/do.php?do=crash-early", "a/b", b"x").status, 502);
    assert_eq!(kirin.get("/do.php?do=length").text(), "whole");
}

#[test]
fn connections_are_kept_if_the_configuration_says_so() {
    let site = site();
    let _php = PhpFpm::start(&site);
    let kirin = start(&site, "keep_connections = 1", "");
    let mut client = kirin.connect();
    // Kept connections lead to one process. New ones would lead to both, in turn or at random.
    let first = client.get("/do.php?do=pid").text();
    for target in
        ["/do.php?do=length", "/style.css", "/do.php?do=large", "/do.php?do=body", "/admin/"]
    {
        assert_eq!(client.get(target).status, 200);
        assert_eq!(client.request("HEAD", target, "").status, 200);
        assert_eq!(client.post("/do.php?do=body", "a/b", &[b'x'; 100_000]).status, 200);
    }
    for _ in 0..20 {
        assert_eq!(client.get("/do.php?do=pid").text(), first);
    }
}

#[test]
fn a_script_may_continue_after_its_response_is_complete() {
    let (site, _php, kirin) = php();
    assert_eq!(kirin.get("/do.php?do=later").text(), "soon");
    std::fs::write(site.path("go"), "").expect("go");
    site.wait_for_files("done", 1);
}

#[test]
fn another_server_by_tcp_replaces_an_unreachable_one() {
    let site = site();
    let php = PhpFpm::start(&site);
    let servers = format!("\"fastcgi://unix:gone.sock\", \"fastcgi://127.0.0.1:{}\"", php.port);
    let kirin = start_before(&site, &servers, "max_failures = 1", "");
    let mut client = kirin.connect();
    for _ in 0..4 {
        assert_eq!(
            client.post("/do.php?do=body", "a/b", b"abc").text().split(' ').next(),
            Some("3")
        );
    }
    kirin.wait_for_log("has failed too often");
    assert_eq!(kirin.log().matches("request goes to another server").count(), 1, "{}", kirin.log());
}

#[test]
fn a_server_is_healthy_if_it_accepts_connections() {
    let site = site();
    let php = PhpFpm::start(&site);
    let servers = format!("\"fastcgi://unix:gone.sock\", \"fastcgi://127.0.0.1:{}\"", php.port);
    let health = "health = { interval = \"1s\", unhealthy_after = 1 }";
    let kirin = start_before(&site, &servers, health, "");
    kirin.wait_for_log("is not healthy");
    let log = kirin.log();
    let line = log.lines().find(|line| line.contains("is not healthy")).expect("a line");
    assert!(line.contains("gone.sock"), "{line}");
    assert_eq!(kirin.get("/do.php?do=length").text(), "whole");
    assert!(!kirin.log().contains("another server"), "{}", kirin.log());
}

#[test]
fn a_script_that_is_silent_for_too_long_is_given_up() {
    let site = site();
    let _php = PhpFpm::start(&site);
    let kirin = start(&site, "first_byte_timeout = \"1s\"\nidle_timeout = \"1s\"", "");
    // The script sends its head only at the end.
    assert_eq!(kirin.get("/do.php?do=wait").status, 504);
    let mut client = kirin.connect();
    client.send("GET /do.php?do=stream HTTP/1.1\r\nHost: test\r\n\r\n");
    client.read_until(b"first\n");
    assert!(!text(&client.read_to_end()).contains("0\r\n\r\n"));
    kirin.wait_for_log("response was cut");
    std::fs::write(site.path("go"), "").expect("go");
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}
