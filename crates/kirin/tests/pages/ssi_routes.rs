//! The `ssi` key of a route: directives in files and in responses of applications, and the fields
//! of these responses.

use std::io::Read;

use flate2::read::GzDecoder;
use kirin_tests::{Http2Client, Kirin, Memcached, Site, wait_for};

const CONFIG: &str = "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\nsendfile = [\"templates\"]\n\
    [[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\", \"app:web\"]\nssi = true\n\
    [[route]]\npath = \"/coded\"\ntry = [\"app:web\"]\nssi = true\ncompress = [\"gzip\"]\n\
    [[route]]\npath = \"/off\"\ntry = [\"store\", \"files:public\"]\nssi = false\n\
    [[route]]\npath = \"/memory\"\ntry = [\"store\"]\n\
    [[route]]\npath = \"/unsaid\"\ntry = [\"store\", \"files:public\", \"app:web\"]\n";

const APP: &str = r#"
use v5.16; use warnings; use Plack::Request; use Cwd;
sub {
    my $env = shift;
    my $request = Plack::Request->new($env);
    my $path = $env->{PATH_INFO};
    my $html = sub { [200, ['Content-Type' => 'text/html; charset=utf-8', ETag => '"own"', @{ $_[1] // [] }], [$_[0]]] };
    my $page = '<!--# include key -->, <!--# echo var="arg_q" -->, <!--# echo var="request_method" -->';
    return $html->($page, ['Set-Cookie' => 'page=1']) if $path =~ m{/page$};
    return $html->('<p>no directives</p>') if $path =~ m{/plain$};
    return [404, ['Content-Type' => 'text/html'], ['not <!--# echo var="uri" -->']] if $path =~ m{/none$};
    return [200, ['Content-Type' => 'text/plain'], [$page]] if $path =~ m{/text$};
    return [200, ['Content-Type' => 'text/html'], [$page x 40]] if $path =~ m{/long$};
    return sub {
        my $writer = shift->([200, ['Content-Type' => 'text/html']]);
        $writer->write($_) for '<!--# include', ' key --', '> streamed';
        $writer->close;
    } if $path =~ m{/stream$};
    return sub {
        my $writer = shift->([200, ['Content-Type' => 'text/html']]);
        $writer->write('<!--# include key -->' . 'x' x 1_000_000) for 1 .. 5;
        $writer->close;
    } if $path =~ m{/huge$};
    return [200, ['Content-Type' => 'text/html', 'X-Sendfile' => getcwd . '/templates/t.html'], []] if $path =~ m{/sendfile$};
    return $html->('x<!--# include virtual="/self" -->') if $path eq '/self';
    return $html->('<head></head><!--# include virtual="/wait" --> <!--# include virtual="/part" -->!') if $path =~ m{/slow$};
    return [200, ['Content-Type' => 'text/plain', 'Set-Cookie' => 'part=1'], ['a part']] if $path eq '/part';
    if ($path eq '/wait') {
        until (-e 'go') { select undef, undef, undef, 0.01 }
        return [200, ['Content-Type' => 'text/plain', 'Cache-Control' => 'max-age=7'], ['waited for']];
    }
    return $html->('<!--# include virtual="/wait" -->', ['Cache-Control' => 'public, max-age=60']) if $path eq '/kept';
    return [200, ['Content-Type' => 'text/plain', 'Cache-Control' => $request->param('as')], ['part']] if $path eq '/cache';
    [404, ['Content-Type' => 'text/plain'], ['not here']];
};
"#;

const FILE: &str = "<!--# include key --> <!--# echo var=\"arg_q\" default=\"none\" --> <!--# include file=\"part.html\" -->.";

fn serve() -> (Site, Kirin, Memcached) {
    let site = Site::new()
        .with("app.psgi", APP)
        .with("public/page.html", FILE)
        .with("public/large.html", format!("{FILE}{}", "large ".repeat(100_000)))
        .with("public/part.html", "part <!--# echo var=\"uri\" -->")
        .with("public/plain.html", "<p>plain</p>")
        .with("public/plain.css", "/* <!--# nonsense --> */")
        .with("public/off/page.html", FILE)
        .with("public/unsaid/page.html", FILE)
        .with("templates/t.html", "a template with <!--# include key -->");
    let kirin = Kirin::start(&site, CONFIG);
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.set("key", b"value");
    (site, kirin, memcached)
}

#[test]
fn files_are_pages_if_they_are_html_with_directives() {
    let (site, kirin, mut memcached) = serve();
    let mut client = kirin.connect();
    for _ in 0..2 {
        let reply = client.request("GET", "/page.html?q=<a>", "Range: bytes=0-1\r\n");
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (200, "value &lt;a&gt; part /part.html.")
        );
        assert_eq!((reply.field("last-modified"), reply.field("accept-ranges")), (None, None));
    }
    let reply = client.get("/page.html");
    let tag = reply.field("etag").unwrap().to_owned();
    let condition = format!("If-None-Match: {tag}\r\n");
    assert_eq!(client.request("GET", "/page.html", &condition).status, 304);
    let head = client.request("HEAD", "/page.html", "");
    let length = reply.body.len().to_string();
    assert_eq!(
        (head.field("etag"), head.field("content-length")),
        (Some(&tag[..]), Some(&length[..]))
    );
    memcached.set("key", b"new value");
    assert_eq!(
        client.request("GET", "/page.html", &condition).text(),
        "new value none part /part.html."
    );
    // A new version of the file is compiled again.
    std::fs::write(site.path("public/page.html"), "new: <!--# include key -->").unwrap();
    wait_for("the new version", || {
        (client.request("GET", "/page.html", &condition).text() == "new: new value").then_some(())
    });
    // Otherwise the kernel sends such a file.
    for _ in 0..2 {
        let reply = client.get("/large.html");
        assert!(
            reply.text().starts_with("new value none part /part.html.large large"),
            "{}",
            reply.head
        );
        assert_eq!(reply.body.len(), 600_031);
        let condition = format!("If-None-Match: {}\r\n", reply.field("etag").unwrap());
        assert_eq!(client.request("GET", "/large.html", &condition).status, 304);
    }
}

#[test]
fn pages_without_directives_are_served_as_without_the_filter() {
    let (_site, kirin, _memcached) = serve();
    let mut client = kirin.connect();
    for path in ["/plain.html", "/plain.css"] {
        for _ in 0..2 {
            let reply = client.get(path);
            let condition =
                format!("If-Modified-Since: {}\r\n", reply.field("last-modified").unwrap());
            assert_eq!(client.request("GET", path, &condition).status, 304);
            assert_eq!(client.request("GET", path, "Range: bytes=1-3\r\n").body, reply.body[1..=3]);
        }
    }
    assert_eq!(client.get("/plain").field("etag"), Some("\"own\""));
    assert!(client.get("/text").text().starts_with("<!--# include key -->"));
    let huge = client.get("/huge");
    assert_eq!(huge.body.len(), 5_000_105);
    kirin.wait_for_log("too large to be looked at for includes");
    // Afterwards the worker is free, and the connection is in order.
    assert_eq!(client.get("/stream").text(), "value streamed");
}

#[test]
fn the_ssi_key_decides_which_places_are_filtered() {
    let (_site, kirin, mut memcached) = serve();
    memcached.set("/off/stored", b"text/html\r\n<!--# include key -->");
    memcached.set("/unsaid/stored", b"text/html\r\n<!--# include key -->");
    for (path, shown) in [
        ("/off/page.html", FILE),
        ("/off/stored", "<!--# include key -->"),
        ("/unsaid/page.html", FILE),
        ("/unsaid/stored", "value"),
        (
            "/unsaid/page?q=x",
            "<!--# include key -->, <!--# echo var=\"arg_q\" -->, <!--# echo var=\"request_method\" -->",
        ),
        ("/page?q=x", "value, x, GET"),
    ] {
        assert_eq!(kirin.get(path).text(), shown, "{path}");
    }
}

#[test]
fn pages_of_applications_are_built() {
    let (_site, kirin, mut memcached) = serve();
    let mut client = kirin.connect();
    let reply = client.request("GET", "/page?q=x", "Range: bytes=0-1\r\nAccept-Encoding: gzip\r\n");
    assert_eq!((reply.status, reply.text().as_str()), (200, "value, x, GET"));
    assert_eq!(
        (reply.field("set-cookie"), reply.field("content-encoding")),
        (Some("page=1"), None)
    );
    let tag = reply.field("etag").unwrap().to_owned();
    assert_ne!(tag, "\"own\"");
    let condition = format!("If-None-Match: {tag}\r\n");
    assert_eq!(client.request("GET", "/page?q=x", &condition).status, 304);
    memcached.set("key", b"other");
    assert_eq!(client.request("GET", "/page?q=x", &condition).text(), "other, x, GET");
    let head = client.request("HEAD", "/page?q=x", "");
    assert_eq!((head.status, head.field("etag"), head.field("content-length")), (200, None, None));
    let posted = client.post("/page?q=x", "text/plain", b"body");
    assert_eq!((posted.text().as_str(), posted.field("etag")), ("other, x, POST", None));
    let missing = client.get("/none");
    assert_eq!(
        (missing.status, missing.text().as_str(), missing.field("etag")),
        (404, "not /none", None)
    );
    assert_eq!(client.get("/stream").text(), "other streamed");
    let sent = client.request("GET", "/sendfile", "Range: bytes=0-1\r\n");
    assert_eq!((sent.status, sent.text().as_str()), (200, "a template with other"));
    let own = client.get("/self").text();
    assert!(own.starts_with("xxxxxxxxx[an error occurred"), "{own}");
    kirin.wait_for_log("requests go in a circle");
}

fn gunzip(bytes: &[u8]) -> String {
    let mut text = String::new();
    GzDecoder::new(bytes).read_to_string(&mut text).expect("gzip");
    text
}

#[test]
fn pages_are_compressed_when_they_are_complete() {
    let (site, kirin, mut memcached) = serve();
    memcached.set(
        "/stored",
        format!("text/html\r\n{}", "<!--# include key -->, ".repeat(100)).as_bytes(),
    );
    memcached.set("key", b"a value that is longer than nothing");
    std::fs::write(site.path("public/long.html"), "<!--# include key -->, ".repeat(100)).unwrap();
    let mut client = kirin.connect();
    for (path, count) in [("/stored", 100), ("/long.html", 100), ("/coded/long", 40)] {
        let reply = client.request("GET", path, "Accept-Encoding: gzip\r\n");
        assert_eq!(reply.field("content-encoding"), Some("gzip"), "{path} {}", reply.head);
        assert!(reply.field("vary").unwrap().contains("Accept-Encoding"), "{path}");
        assert_eq!(gunzip(&reply.body).matches("longer than nothing").count(), count, "{path}");
        let tag = reply.field("etag").unwrap();
        assert!(tag.ends_with("-gzip\""), "{path} {tag}");
        let again = client.request(
            "GET",
            path,
            &format!("Accept-Encoding: gzip\r\nIf-None-Match: {tag}\r\n"),
        );
        assert_eq!((again.status, again.field("etag")), (304, Some(tag)), "{path}");
        let plain = client.get(path);
        assert_eq!((plain.status, plain.field("content-encoding")), (200, None), "{path}");
    }
    // A page that was built for one visitor may contain a secret, as a response of an application
    // may.
    let personal =
        format!("<!--# echo var=\"cookie_a\" -->{}", "<!--# include key -->, ".repeat(100));
    memcached.set("/stored", format!("text/html\r\n{personal}").as_bytes());
    std::fs::write(site.path("public/personal.html"), &personal).unwrap();
    std::fs::write(site.path("go"), "").unwrap();
    for path in ["/stored", "/personal.html", "/slow"] {
        let reply = client.request("GET", path, "Accept-Encoding: gzip\r\n");
        assert_eq!((reply.status, reply.field("content-encoding")), (200, None), "{path}");
    }
    let reply = client.request("GET", "/coded/slow", "Accept-Encoding: gzip\r\n");
    assert_eq!(
        (reply.field("content-encoding"), reply.field("cache-control")),
        (Some("gzip"), Some("no-store"))
    );
    assert_eq!(gunzip(&reply.body), "<head></head>waited for a part!");
}

#[test]
fn a_page_starts_before_it_is_complete() {
    let (site, kirin, mut memcached) = serve();
    memcached.set(
        "/stored",
        b"text/html\r\n<head></head><!--# include virtual=\"/wait\" --> <!--# include virtual=\"/part\" -->!",
    );
    std::fs::write(
        site.path("public/slow.html"),
        "<head></head><!--# include virtual=\"/wait\" --> <!--# include virtual=\"/part\" -->!",
    )
    .unwrap();
    for path in ["/stored", "/slow.html", "/slow"] {
        let mut client = kirin.connect();
        client.send(format!("GET {path} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let mut reply = client.read_head_reply();
        assert_eq!(
            (reply.status, reply.field("transfer-encoding")),
            (200, Some("chunked")),
            "{path}"
        );
        assert_eq!(
            (reply.field("cache-control"), reply.field("etag")),
            (Some("no-store"), None),
            "{path}"
        );
        assert_eq!(reply.field("set-cookie"), None, "{path}");
        client.read_until(b"</head>");
        std::fs::write(site.path("go"), "").unwrap();
        reply.body = client.read_until(b"!");
        let shown = reply.text().replace(['\r', '\n'], "");
        assert!(shown.contains("waited for") && shown.contains("a part"), "{path} {shown}");
        client.read_until(b"0\r\n\r\n");
        assert_eq!(client.get("/part").text(), "a part", "{path}");
        std::fs::remove_file(site.path("go")).unwrap();
    }
    // Clients that need the complete page get it.
    std::fs::write(site.path("go"), "").unwrap();
    for path in ["/stored", "/slow.html", "/slow"] {
        let mut client = kirin.connect();
        let reply = client.request("GET", path, "If-None-Match: \"x\"\r\n");
        assert_eq!(
            (reply.status, reply.text().as_str()),
            (200, "<head></head>waited for a part!"),
            "{path}"
        );
        let tag = reply.field("etag").unwrap();
        assert_eq!(
            client.request("GET", path, &format!("If-None-Match: {tag}\r\n")).status,
            304,
            "{path}"
        );
        client.send(format!("GET {path} HTTP/1.0\r\n\r\n"));
        assert!(client.read_to_end().ends_with(b"<head></head>waited for a part!"), "{path}");
    }
    let reply = Http2Client::connect(kirin.address()).get("/stored");
    assert_eq!(
        (reply.text().as_str(), reply.field("etag")),
        ("<head></head>waited for a part!", None)
    );
    let mut client = kirin.connect();
    let head = client.request("HEAD", "/stored", "");
    assert_eq!(head.field("content-length"), Some("31"));
    // Only its parts know the lifetime of a page that may be kept.
    let kept = client.get("/kept");
    assert_eq!(
        (kept.field("cache-control"), kept.text().as_str()),
        (Some("public, max-age=7"), "waited for")
    );
    assert!(kept.field("etag").is_some());
    // A client that disconnects in the middle leaves nothing behind.
    std::fs::remove_file(site.path("go")).unwrap();
    client.send("GET /stored HTTP/1.1\r\nHost: test\r\n\r\n");
    client.read_until(b"</head>");
    client.reset();
    std::fs::write(site.path("go"), "").unwrap();
    assert_eq!(kirin.get("/part").text(), "a part");
}

#[test]
fn the_strictest_of_page_and_parts_limits_the_lifetime() {
    let (_site, kirin, mut memcached) = serve();
    let condition = "If-None-Match: \"whole\"\r\nCookie: a=b\r\n";
    for (page, part, whole) in [
        ("Cache-Control: max-age=60", "max-age=5", Some("max-age=5")),
        ("Cache-Control: public, max-age=60", "private", Some("max-age=60, private")),
        ("X: y", "no-store", Some("no-store")),
        ("X: y", "max-age=5", None),
    ] {
        let value = format!(
            "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{page}\r\n\r\n<!--# include virtual=\"/cache?as={part}\" -->"
        );
        memcached.set("/stored", value.as_bytes());
        let reply = kirin.connect().request("GET", "/stored", condition);
        assert_eq!(
            (reply.text().as_str(), reply.field("cache-control")),
            ("part", whole),
            "{page} {part}"
        );
    }
    for (page, control) in [
        ("<!--# echo var=\"cookie_a\" -->", Some("private")),
        ("<!--# if expr=\"$cookie_none\" -->x<!--# endif -->", Some("private")),
        ("<!--# echo var=\"arg_q\" -->", None),
        ("<!--# include key -->", None),
        ("<!--# include none -->", Some("no-store")),
        ("<!--# include none stub=\"b\" --><!--# block name=\"b\" -->x<!--# endblock -->", None),
    ] {
        memcached.set("/memory/stored", format!("text/html\r\n{page}").as_bytes());
        let reply = kirin.connect().request("GET", "/memory/stored", condition);
        assert_eq!((reply.status, reply.field("cache-control")), (200, control), "{page}");
    }
}

#[test]
fn pages_of_other_servers_are_built() {
    let (_origin_site, origin, _) = serve();
    let site = Site::new();
    let config = format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemcached = [\"unix:m.sock\"]\n\
         [[upstream]]\nname = \"origin\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:origin\"]\nssi = true\n",
        origin.address()
    );
    let kirin = Kirin::start(&site, &config);
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.set("key", b"here");
    let reply = kirin.get("/unsaid/page?q=x");
    assert_eq!((reply.status, reply.text().as_str()), (200, "here, x, GET"));
    let condition = format!("If-None-Match: {}\r\n", reply.field("etag").unwrap());
    assert_eq!(kirin.connect().request("GET", "/unsaid/page?q=x", &condition).status, 304);
    assert_eq!(kirin.get("/plain.css").text(), "/* <!--# nonsense --> */");
}
