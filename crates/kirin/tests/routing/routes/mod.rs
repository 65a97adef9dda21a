//! The keys of a route besides its places, through the built program.

mod directories;
mod passwords;
mod redirect_table;

use std::os::unix::ffi::OsStrExt;

use kirin_tests::{Client, Http2Client, Kirin, Memcached, Reply, Site, wait_for};

const LISTENER: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n\
    [store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n";

const APP: &str = "[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\n";

/// An application that answers with its request. `/status/NNN` answers with that status.
const PSGI: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    exit if $env->{PATH_INFO} eq '/exit';
    my $status = $env->{PATH_INFO} =~ m{/status/(\d+)} ? $1 : 200;
    my @names = qw(REQUEST_METHOD REQUEST_URI SCRIPT_NAME PATH_INFO QUERY_STRING REMOTE_USER AUTH_TYPE);
    my $text = join '', map { "$_=" . ($env->{$_} // '-') . "\n" } @names;
    return [$status, ['Content-Type' => 'text/plain', 'Server' => 'app', 'X-Powered-By' => 'perl'], [$text]];
};
"#;

fn serve(site: &Site, routes: &str) -> Kirin {
    Kirin::start(site, &format!("{LISTENER}{routes}"))
}

fn memcached(site: &Site) -> Memcached {
    Memcached::connect(&site.path("m.sock"))
}

fn fields<'a>(reply: &'a Reply, name: &str) -> Vec<&'a str> {
    let lines = reply.head.lines().skip(1).filter_map(|line| line.split_once(": "));
    lines.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value).collect()
}

#[test]
fn headers_are_on_every_response_of_the_route_and_on_no_other() {
    let site =
        Site::new().with("app.psgi", PSGI).with("public/f.txt", "file").with("public/app/x", "");
    let headers = "headers = { \"X-Frame-Options\" = \"DENY\", server = \"me\", \"X-Powered-By\" = \"\", \"Content-Type\" = \"text/x\" }\n";
    let kirin = serve(
        &site,
        &format!(
            "{APP}[[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\"]\n{headers}\
             [[route]]\npath = \"/app\"\ntry = [\"app:web\"]\n{headers}\
             [[route]]\npath = \"/old\"\nredirect = \"/f.txt\"\n{headers}\
             [[route]]\npath = \"/plain\"\ntry = [\"app:web\"]\n"
        ),
    );
    memcached(&site).set("/page", b"text/html\r\n<p>");
    let mut client = kirin.connect();
    for (target, status) in [
        ("/page", 200),
        ("/f.txt", 200),
        ("/gone", 404),
        ("/app/", 200),
        ("/app/status/500", 500),
        ("/old", 308),
    ] {
        let reply = client.get(target);
        assert_eq!(reply.status, status, "{target}");
        assert_eq!(fields(&reply, "x-frame-options"), ["DENY"], "{target}: {}", reply.head);
        assert_eq!(fields(&reply, "server"), ["me"], "{target}: {}", reply.head);
        assert_eq!(fields(&reply, "content-type"), ["text/x"], "{target}: {}", reply.head);
        assert_eq!(reply.field("x-powered-by"), None, "{target}: {}", reply.head);
        let etag = format!("If-None-Match: {}\r\n", reply.field("etag").unwrap_or("-"));
        let again = client.request("GET", target, &etag);
        if reply.field("etag").is_some() {
            assert_eq!((again.status, again.field("content-type")), (304, None), "{}", again.head);
            assert_eq!(fields(&again, "x-frame-options"), ["DENY"], "{}", again.head);
        }
    }
    let reply = client.get("/plain");
    assert_eq!((reply.field("server"), reply.field("x-frame-options")), (Some("app"), None));
}

#[test]
fn a_redirect_keeps_the_rest_and_the_query_and_stays_on_the_site() {
    let site = Site::new().with("public/x", "");
    let kirin = serve(
        &site,
        "[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n\
         [[route]]\npath = \"/old\"\nredirect = \"/new\"\n\
         [[route]]\npath = \"/up\"\nredirect = \"/\"\nredirect_status = 302\n\
         [[route]]\npath = \"/away\"\nredirect = \"https://example.org/\"\nredirect_status = 301\n",
    );
    let mut client = kirin.connect();
    for (target, status, location) in [
        ("/old/x?y", 308, "/new/x?y"),
        ("/old", 308, "/new"),
        ("/old/", 308, "/new/"),
        ("/old?", 308, "/new?"),
        ("/%6fld/a%20b", 308, "/new/a%20b"),
        ("/away/a/b?c=d", 301, "https://example.org/a/b?c=d"),
        ("/away", 301, "https://example.org/"),
        ("/up//evil.example", 302, "/evil.example"),
        ("/up/\\evil.example", 302, "/%5Cevil.example"),
        ("/up/%2f/evil.example", 302, "/evil.example"),
        ("/up/%0d%0aSet-Cookie:a", 302, "/%0D%0ASet-Cookie:a"),
        ("/up", 302, "/"),
    ] {
        let reply = client.get(target);
        assert_eq!(
            (reply.status, reply.field("location")),
            (status, Some(location)),
            "{target}: {}",
            reply.head
        );
        assert_eq!(reply.field("set-cookie"), None);
    }
    assert_eq!(client.get("/older").status, 404);
    // A body that nobody reads does not become the next request.
    let reply = client.post("/old/form", "text/plain", b"GET /evil HTTP/1.1\r\n\r\n");
    assert_eq!(reply.field("location"), Some("/new/form"));
    assert_eq!(client.get("/x").status, 200);
}

#[test]
fn a_rewrite_changes_the_path_for_places_and_applications() {
    let site = Site::new()
        .with("app.psgi", PSGI)
        .with("public/v2/a b.txt", "file")
        .with("public/v2/dir/index.html", "dir");
    let kirin = serve(
        &site,
        &format!(
            "{APP}[[route]]\npath = \"/shop\"\ntry = [\"store\", \"files:public\", \"app:web\"]\nrewrite = \"/v2\"\n\
             [[route]]\npath = \"/wiki x\"\ntry = [\"app:web\"]\nrewrite = \"/\"\n"
        ),
    );
    memcached(&site).set("/v2/page?a=b", b"text/plain\r\nstored");
    let mut client = kirin.connect();
    assert_eq!(client.get("/shop/page?a=b").text(), "stored");
    assert_eq!(client.get("/shop/a%20b.txt").text(), "file");
    assert_eq!(client.get("/shop/x/../a%20b.txt").text(), "file");
    let reply = client.get("/shop/dir?q");
    assert_eq!((reply.status, reply.field("location")), (301, Some("/shop/dir/?q")));
    assert_eq!(client.get("/shop/dir/").text(), "dir");
    for (target, expected) in [
        (
            "/shop/c%20d?q",
            "REQUEST_URI=/shop/c%20d?q\nSCRIPT_NAME=\nPATH_INFO=/v2/c d\nQUERY_STRING=q\n",
        ),
        ("/shop/x/../../shop/y", "REQUEST_URI=/shop/y\nSCRIPT_NAME=\nPATH_INFO=/v2/y\n"),
        (
            "/wiki%20x/Main%20Page",
            "REQUEST_URI=/wiki%20x/Main%20Page\nSCRIPT_NAME=/wiki x\nPATH_INFO=/Main Page\n",
        ),
        ("/wiki%20x/", "REQUEST_URI=/wiki%20x/\nSCRIPT_NAME=/wiki x\nPATH_INFO=/\n"),
        ("/wiki%20x", "REQUEST_URI=/wiki%20x\nSCRIPT_NAME=/wiki x\nPATH_INFO=\n"),
    ] {
        let reply = client.get(target);
        assert!(reply.text().contains(expected), "{target}: {} without {expected}", reply.text());
    }
    assert_eq!(client.get("/v2/page?a=b").status, 404);
}

#[test]
fn error_pages_replace_kirins_own_errors() {
    let site = Site::new()
        .with("app.psgi", PSGI)
        .with("public/errors/404.html", "<p>not here</p>")
        .with("public/errors/5xx.html", "<p>sorry</p>");
    let pages = "error_pages = { 404 = \"/errors/404.html\", 405 = \"/e/store\", 5xx = \"/errors/5xx.html\", 403 = \"/errors/gone\" }\n";
    let kirin = serve(
        &site,
        &format!(
            "{APP}[[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\"]\n{pages}\
             [[route]]\npath = \"/app\"\ntry = [\"app:web\"]\n{pages}rewrite = \"/\"\n\
             [[route]]\npath = \"/all\"\ntry = [\"app:web\"]\n{pages}intercept_errors = true\n"
        ),
    );
    memcached(&site).set("/e/store", b"text/html\r\nfrom the store");
    let mut client = kirin.connect();
    let reply = client.get("/nothing");
    assert_eq!((reply.status, reply.text().as_str()), (404, "<p>not here</p>"));
    assert_eq!(fields(&reply, "content-type"), ["text/html; charset=utf-8"]);
    assert_eq!((reply.field("etag"), reply.field("last-modified")), (None, None), "{}", reply.head);
    // Neither a range nor a condition of the request applies to the error page.
    let reply = client.request("GET", "/nothing", "Range: bytes=0-1\r\nIf-None-Match: *\r\n");
    assert_eq!((reply.status, reply.text().as_str()), (404, "<p>not here</p>"));
    let head = client.request("HEAD", "/nothing", "");
    assert_eq!((head.status, head.field("content-length")), (404, Some("15")));
    let reply = client.request("DELETE", "/errors/404.html", "");
    assert_eq!((reply.status, reply.text().as_str()), (405, "from the store"));
    assert_eq!(reply.field("allow"), Some("GET, HEAD, OPTIONS"));
    // The page itself, when it is requested, is an ordinary page.
    assert_eq!(client.get("/errors/404.html").status, 200);
    // A response of an application stays unchanged, unless configured otherwise.
    assert!(client.get("/app/status/404").text().contains("PATH_INFO=/status/404"));
    assert_eq!(client.get("/all/status/404").text(), "<p>not here</p>");
    let reply = client.get("/all/status/502");
    assert_eq!(
        (reply.status, reply.text().as_str(), reply.field("server")),
        (502, "<p>sorry</p>", Some("app"))
    );
    // A missing page leaves the error unchanged.
    assert!(client.get("/all/status/403").text().contains("PATH_INFO="));
    // The application dies in the middle. That is Kirin's own 502.
    let reply = client.post("/app/exit", "text/plain", b"");
    assert_eq!((reply.status, reply.text().as_str()), (502, "<p>sorry</p>"));
}

#[test]
fn error_pages_are_built_as_other_pages() {
    let page = "no <!--# echo var=\"request_uri\" -->: <!--# include file=\"foot.html\" -->, <!--# include virtual=\"/app/x\" -->, \
                <!--# echo var=\"cookie_c\" -->, <!--# include virtual=\"/gone\" -->";
    let site = Site::new()
        .with("app.psgi", PSGI)
        .with("public/errors/404.html", page)
        .with("public/errors/foot.html", "foot of <!--# echo var=\"arg_q\" -->");
    let pages = "error_pages = { 404 = \"/errors/404.html\" }\n";
    let kirin = serve(
        &site,
        &format!(
            "{APP}[[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\"]\nssi = true\n{pages}\
             [[route]]\npath = \"/app\"\ntry = [\"app:web\"]\n{pages}intercept_errors = true\n"
        ),
    );
    let mut client = kirin.connect();
    for target in ["/nothing?q=1", "/app/status/404?q=2"] {
        let reply = client.request("GET", target, "Cookie: c=d\r\nIf-None-Match: *\r\n");
        let text = reply.text();
        assert_eq!(reply.status, 404, "{target}");
        assert!(
            text.starts_with(&format!("no {target}: foot of (none), REQUEST_METHOD=GET")),
            "{text}"
        );
        // A part that is an error has no error page of its own, which would include the part again.
        assert!(
            text.ends_with(", d, [an error occurred while processing the directive]"),
            "{text}"
        );
        assert_eq!(reply.field("etag"), None);
        assert!(client.request("HEAD", target, "").status == 404);
    }
    // The same holds for the store.
    memcached(&site).set("/errors/404.html", b"text/html\r\n<!--# include virtual=\"/app/x\" -->");
    assert!(client.get("/nothing").text().contains("PATH_INFO=/app/x"));
}

#[test]
fn trace_is_refused_and_options_lists_the_allowed_methods() {
    let site = Site::new().with("app.psgi", PSGI).with("public/f", "");
    let kirin = serve(
        &site,
        &format!(
            "{APP}[[route]]\npath = \"/s\"\ntry = [\"store\", \"files:public\"]\nrewrite = \"/\"\n\
             [[route]]\npath = \"/app\"\ntry = [\"store\", \"app:web\"]\n"
        ),
    );
    memcached(&site).set("/page", b"text/plain\r\nx");
    let mut client = kirin.connect();
    let allow = Some("GET, HEAD, OPTIONS");
    for target in ["/s/f", "/s/page"] {
        let reply = client.request("OPTIONS", target, "");
        assert_eq!((reply.status, reply.field("allow")), (204, allow), "{target}");
        let reply = client.request("POST", target, "Content-Length: 0\r\n");
        assert_eq!((reply.status, reply.field("allow")), (405, allow), "{target}");
    }
    assert_eq!(client.request("OPTIONS", "/s/gone", "").status, 404);
    let reply = client.request("OPTIONS", "/app/x", "");
    assert!(
        reply.status == 200 && reply.text().contains("REQUEST_METHOD=OPTIONS"),
        "{}",
        reply.head
    );
    let reply = client.request("OPTIONS", "*", "");
    assert_eq!(
        (reply.status, reply.field("allow")),
        (204, Some("GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"))
    );
    for target in ["/s/f", "/s/gone", "/app/", "/nowhere"] {
        let reply = kirin.connect().request("TRACE", target, "Cookie: secret=1\r\n");
        assert_eq!(reply.status, 501, "{target}");
        assert!(!reply.text().contains("secret"), "{}", reply.text());
    }
}

#[test]
fn a_raw_byte_and_its_escape_are_one_path() {
    let site = Site::new().with("app.psgi", PSGI).with("public/x", "");
    let name = std::ffi::OsStr::from_bytes(b"f\xff");
    std::fs::write(site.path("public").join(name), "file").expect("a file");
    let kirin = serve(
        &site,
        &format!(
            "{APP}[[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\"]\n\
             [[route]]\npath = \"/caf\u{e9}\"\ntry = [\"app:web\"]\n\
             [[route]]\npath = \"/old\"\nredirect = \"/new\"\n"
        ),
    );
    memcached(&site).set("/p%C3%A9?q=%FF", b"text/plain\r\npage");
    let mut client = kirin.connect();
    let mut get = |target: &[u8]| {
        client.send([b"GET ", target, b" HTTP/1.1\r\nHost: a\r\n\r\n"].concat());
        client.read_reply()
    };
    for target in [&b"/p\xc3\xa9?q=\xff"[..], b"/p%C3%A9?q=%FF", b"/p\xc3%A9?q=\xff"] {
        assert_eq!(get(target).text(), "page", "{target:?}");
    }
    assert_eq!(get(b"/f\xff").text(), "file");
    let seen = get(b"/caf\xc3\xa9/\xe9?\xe9").text();
    assert!(
        seen.contains("REQUEST_URI=/caf%C3%A9/%E9?%E9\n") && seen.contains("QUERY_STRING=%E9\n"),
        "{seen}"
    );
    assert_eq!(get(b"/old/\xe9?\xe9").field("location"), Some("/new/%E9?%E9"));
    let mut http2 = Http2Client::connect(kirin.address());
    assert!(http2.get("/caf\u{e9}/x").text().contains("REQUEST_URI=/caf%C3%A9/x\n"));
    wait_for("the escaped targets in the log", || {
        let log = std::fs::read_to_string(site.path("access.log")).ok()?;
        (log.contains("GET /p%C3%A9?q=%FF HTTP/1.1") && log.contains("GET /caf%C3%A9/x HTTP/2.0"))
            .then_some(())
    });
}
