//! The keys of a route besides its places, through the built program.

use std::os::unix::ffi::OsStrExt;

use kirin_tests::{Client, Http2Client, Kirin, Memcached, Reply, Site, wait_for};

const LISTENER: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n\
    [store]\nmemory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n";

const APP: &str = "[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 1\ndeadline = \"1s\"\n";

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

#[test]
fn links_out_of_the_directory_are_followed_as_the_route_says() {
    let site = Site::new()
        .with("public/inside/f", "inside")
        .with("shared/f", "shared")
        .with("shared/deep/f", "deep")
        .with("others/f", "others")
        .with("themes/style.css", "theme");
    let link = |target: &str, name: &str| {
        let target = target.replace("SITE", &site.root().display().to_string());
        std::os::unix::fs::symlink(target, site.path(name)).expect("a link");
    };
    link("inside/f", "public/in");
    link("SITE/public/inside/f", "public/back-in");
    link("../shared", "public/uploads");
    link("SITE/shared/f", "public/absolute");
    link("uploads", "public/chain");
    link("../others", "public/others");
    link("../others/f", "public/file-of-others");
    link("../others", "shared/hop");
    link("loop", "public/loop");
    link("../gone", "public/gone");
    link("/proc/self/cwd", "public/magic");
    let is_root = rustix::process::geteuid().is_root();
    if is_root {
        for path in ["others", "others/f"] {
            std::os::unix::fs::chown(site.path(path), Some(65_534), None).expect("chown");
        }
    }
    let route = |path: &str, follow: &str| {
        format!(
            "[[route]]\npath = \"/{path}\"\nrewrite = \"/\"\ntry = [\"files:public\"]\nlisting = true\nfollow_links = {follow}\n"
        )
    };
    let routes = route("none", "false") + &route("owner", "\"owner\"") + &route("all", "true");
    let kirin = serve(&site, &routes);
    for (path, none, owner, all) in [
        ("inside/f", 200, 200, 200),
        ("in", 200, 200, 200),
        ("back-in", 403, 200, 200),
        ("uploads/f", 403, 200, 200),
        ("uploads/deep/f", 403, 200, 200),
        ("absolute", 403, 200, 200),
        ("chain/f", 403, 200, 200),
        ("others/f", 403, 403, 200),
        ("file-of-others", 403, 403, 200),
        ("uploads/hop/f", 403, 403, 200),
        ("uploads/../inside/f", 200, 200, 200),
        ("uploads/", 403, 200, 200),
        ("loop", 403, 403, 403),
        ("gone", 403, 404, 404),
        ("magic/kirin.toml", 403, 403, 403),
    ] {
        for (route, expected) in [("none", none), ("owner", owner), ("all", all)] {
            if is_root || !(path.contains("others") || path.contains("hop")) || route != "owner" {
                let status = kirin.get(&format!("/{route}/{path}")).status;
                assert_eq!(status, expected, "{route} {path}: {}", kirin.log());
            }
        }
    }
    assert_eq!(kirin.get("/owner/chain/deep/f").text(), "deep");
    let log = kirin.log();
    let shared = site.path("public/uploads").display().to_string();
    assert!(log.contains(&format!("{shared} is a symbolic link of uid")), "{log}");
    assert!(
        log.contains("to ../shared") && log.contains("`follow_links = \"owner\"` on the route"),
        "{log}"
    );
    if is_root {
        assert!(
            log.contains(
                "to ../others, which belongs to uid 65534: `follow_links = \"owner\"` follows"
            ),
            "{log}"
        );
    }
}

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

#[test]
fn directories_are_listed_only_where_the_route_says_so() {
    let site = Site::new()
        .with("public/docs/a b&c.txt", "12345")
        .with("public/docs/.hidden", "")
        .with("public/docs/sub/x", "")
        .with("outside", "");
    let kirin = serve(
        &site,
        "[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n\
         [[route]]\npath = \"/list\"\ntry = [\"files:public\"]\nlisting = true\nrewrite = \"/\"\n",
    );
    let mut client = kirin.connect();
    assert_eq!(client.get("/docs/").status, 404);
    assert_eq!(client.get("/docs").status, 404);
    let reply = client.get("/list/docs");
    assert_eq!((reply.status, reply.field("location")), (301, Some("/list/docs/")));
    let reply = client.get("/list/docs/");
    assert_eq!(
        (reply.status, reply.field("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    let text = reply.text();
    assert!(
        text.contains("href=\"./a%20b%26c.txt\">a b&amp;c.txt</a>") && text.contains("<td>5</td>"),
        "{text}"
    );
    assert!(
        text.contains("href=\"./sub/\"") && !text.contains("hidden") && !text.contains("outside"),
        "{text}"
    );
    assert_eq!(client.get("/list/docs/a%20b%26c.txt").text(), "12345");
    assert_eq!(client.request("HEAD", "/list/docs/", "").status, 200);
    let reply = client.request("OPTIONS", "/list/docs/", "");
    assert_eq!(reply.status, 204);
    assert_eq!(client.get("/list/docs/../../../").status, 400);
}
