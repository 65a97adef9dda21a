//! Responses that an application has stored and purged, through the built program.

use kirin_tests::{Backend, Client, Kirin, Memcached, Site, wait_for};

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
    [store]\nmemory = \"16MB\"\nitem_limit = \"100KB\"\nmemcached = [\"unix:m.sock\"]\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n\
    [[route]]\npath = \"/\"\ntry = [\"store\", \"app:web\"]\n\
    [[route]]\npath = \"/v1\"\ntry = [\"store\", \"app:web\"]\nrewrite = \"/v2\"\n\
    [[route]]\npath = \"/direct\"\ntry = [\"app:web\"]\n\
    [[route]]\npath = \"/only\"\ntry = [\"store\", \"files:.\"]\n\
    [[route]]\npath = \"/includes\"\ntry = [\"store\", \"app:web\"]\nssi = true\n\
    [[route]]\npath = \"/esi\"\ntry = [\"store\", \"app:web\"]\nesi = true\n\
    [[route]]\npath = \"/both\"\ntry = [\"store\", \"app:web\"]\nssi = true\nesi = true\n\
    [[route]]\npath = \"/comments\"\ntry = [\"store\", \"app:web\"]\nssi = false\n\
    [[route]]\npath = \"/assembled\"\ntry = [\"store\", \"app:web\"]\nssi = true\nesi = true\n";

/// An application whose bodies have the number of its calls. The fields `X-Store` and `X-Purge` of
/// a request come back as Kirin's fields, and `X-Status` as the status.
const APP: &str = r#"
use v5.16; use warnings;
sub ran { open my $runs, '>>', 'runs' or die $!; syswrite $runs, 'x'; return -s 'runs' }
sub content { open my $file, '<', 'data' or return 'none'; return scalar <$file> }
sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    my @fields = ('Content-Type' => 'text/html; charset=utf-8');
    push @fields, 'Kirin-Store' => $env->{HTTP_X_STORE} if defined $env->{HTTP_X_STORE};
    push @fields, 'Kirin-Purge' => $env->{HTTP_X_PURGE} if defined $env->{HTTP_X_PURGE};
    push @fields, 'Set-Cookie'  => 'a=b' if $path eq '/cookie';
    push @fields, 'Vary'        => 'Cookie' if $path eq '/vary';
    push @fields, 'ETag' => '"own"', 'Cache-Control' => 'max-age=5', 'Date' => 'Sat, 21 Nov 2020 15:00:00 GMT' if $path eq '/fields';
    push @fields, 'Content-Range' => 'bytes 0-9/1000' if $path eq '/range';
    my $run = ran();
    if ($path eq '/slow') {
        my $content = content();
        open my $begun, '>', 'begun' or die $!;
        select undef, undef, undef, 0.01 until -e 'go';
        return [200, \@fields, ["$content, run $run"]];
    }
    if ($path eq '/change') {
        open my $file, '>', 'data' or die $!;
        print $file 'new';
        close $file;
    }
    if ($path =~ m{^/stream/(\w+)}) {
        my $kind = $1;
        return sub {
            my $writer = shift->([200, \@fields]);
            $writer->write("run $run\n");
            if ($kind eq 'cut') { select undef, undef, undef, 0.05; kill KILL => $$ }
            if ($kind eq 'wait') { select undef, undef, undef, 0.01 until -e 'go' }
            $writer->write('x' x 1000) for 1 .. ($kind eq 'large' ? 200 : 3);
            $writer->close;
        };
    }
    return [200, \@fields, ["run $run<!--# include title --><esi:include src='/only/title'/>"]]
        if $path =~ m{^/(?:includes|esi|both|comments|unsaid)$};
    return [200, \@fields, ['x' x 200_000, $run]] if $path eq '/large';
    return [$env->{HTTP_X_STATUS} // 200, \@fields, ["run $run"]];
};
"#;

struct Running {
    site: Site,
    kirin: Kirin,
    client: Client,
}

fn serve() -> Running {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    let client = kirin.connect();
    Running { site, kirin, client }
}

impl Running {
    /// Returns the body of a GET whose response has this `Kirin-Store`.
    fn get(&mut self, target: &str, store: &str) -> String {
        let reply = self.client.request("GET", target, &format!("X-Store: {store}\r\n"));
        assert!(!reply.head.to_ascii_lowercase().contains("kirin-"), "{}", reply.head);
        reply.text()
    }

    /// Returns whether a page is served from the store.
    fn is_stored(&self, target: &str) -> bool {
        self.memcached().get(target).is_some()
    }

    fn memcached(&self) -> Memcached {
        Memcached::connect(&self.site.path("m.sock"))
    }

    fn purge(&mut self, purge: &str) {
        let reply = self.client.request("GET", "/purge", &format!("X-Purge: {purge}\r\n"));
        assert!(!reply.head.to_ascii_lowercase().contains("kirin-"), "{}", reply.head);
    }
}

#[test]
fn a_response_is_stored_under_its_target_and_served_without_a_worker() {
    let mut running = serve();
    assert_eq!(running.get("/page?a=1", "ttl=300"), "run 1");
    assert_eq!(running.get("/page?a=1", ""), "run 1");
    assert_eq!(running.get("/page?a=2", "ttl=300"), "run 2", "another query is another page");
    let stored = running.memcached().get("/page?a=1").expect("stored");
    assert_eq!(
        String::from_utf8_lossy(&stored),
        "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\nrun 1"
    );
    let mut memcached = running.memcached();
    memcached.send("mg /page?a=1 t\r\n");
    let line = memcached.line();
    let ttl: u32 = line.strip_prefix("HD t").and_then(|ttl| ttl.parse().ok()).expect(&line);
    assert!((200..=300).contains(&ttl), "{line}");
}

#[test]
fn status_and_fields_stay_and_the_date_is_that_of_the_delivery() {
    let mut running = serve();
    running.get("/fields", "");
    let reply = running.client.get("/fields");
    assert_eq!((reply.text().as_str(), reply.field("etag")), ("run 1", Some("\"own\"")));
    assert_eq!(reply.field("cache-control"), Some("max-age=5"));
    assert!(!reply.head.contains("2020"), "{}", reply.head);
    assert_eq!(running.client.request("GET", "/fields", "If-None-Match: \"own\"\r\n").status, 304);
    running.client.request("GET", "/gone", "X-Status: 404\r\nX-Store: ttl=10\r\n");
    let reply = running.client.get("/gone");
    assert_eq!((reply.status, reply.text().as_str()), (404, "run 2"));
}

#[test]
fn a_complete_page_has_no_content_range_and_a_part_has_its_own() {
    let mut running = serve();
    running.get("/range", "ttl=300");
    let item =
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Range: bytes 0-9/1000\r\n\r\nrun 1";
    running.memcached().set("/set", item);
    for target in ["/range", "/set"] {
        let mut ranges = |fields: &str| {
            let reply = running.client.request("GET", target, fields);
            let lines = reply.head.lines().filter(|line| line.starts_with("Content-Range:"));
            (reply.status, lines.map(str::to_owned).collect::<Vec<_>>(), reply.text())
        };
        assert_eq!(ranges(""), (200, vec![], "run 1".into()), "{target}");
        let line = "Content-Range: bytes 1-2/5".to_owned();
        assert_eq!(ranges("Range: bytes=1-2\r\n"), (206, vec![line], "un".into()), "{target}");
    }
}

#[test]
fn without_the_field_nothing_is_stored() {
    let mut running = serve();
    assert_eq!(running.client.get("/page").text(), "run 1");
    assert_eq!(running.client.get("/page").text(), "run 2");
    // A client cannot request it.
    running.client.request(
        "GET",
        "/page",
        "Kirin-Store: ttl=300\r\nKirin-Purge: prefixes=\"/\"\r\n",
    );
    assert_eq!(running.client.get("/page").text(), "run 4");
}

#[test]
fn a_response_for_one_visitor_is_served_and_not_stored() {
    let mut running = serve();
    for (target, message) in [
        ("/cookie", "every visitor would get that cookie"),
        ("/vary", "the response has `Vary: Cookie`"),
        ("/large", "larger than `store.item_limit` allows"),
    ] {
        assert!(running.get(target, "ttl=300").contains('1') || target != "/cookie");
        running.kirin.wait_for_log(message);
        assert!(!running.is_stored(target), "{target}");
    }
    running.client.request("GET", "/teapot", "X-Status: 418\r\nX-Store: ttl=300\r\n");
    running.kirin.wait_for_log("its status is 418; stored are 200");
    running.client.request("HEAD", "/head", "X-Store: ttl=300\r\n");
    running.client.request("POST", "/post", "Content-Length: 0\r\nX-Store: ttl=300\r\n");
    running.kirin.wait_for_log("it answers POST");
    running.get("/malformed", "ttl=5s");
    running.kirin.wait_for_log("no comma at byte 5; it is written as `ttl=300");
    for target in ["/teapot", "/head", "/post", "/malformed"] {
        assert!(!running.is_stored(target), "{target}");
    }
}

#[test]
fn a_key_names_the_page_even_for_a_post() {
    let mut running = serve();
    assert_eq!(running.get("/page?utm=1", "key=\"/page\""), "run 1");
    assert_eq!(running.get("/page", ""), "run 1");
    running.client.request(
        "POST",
        "/post",
        "Content-Length: 0\r\nX-Store: key=\"/memo/7\", ttl=60\r\n",
    );
    assert_eq!(running.get("/memo/7", ""), "run 2");
}

#[test]
fn behind_a_rewrite_the_key_is_the_rewritten_path() {
    let mut running = serve();
    assert_eq!(running.get("/v1/a", "ttl=60"), "run 1");
    assert_eq!(running.get("/v1/a", ""), "run 1");
    assert!(running.is_stored("/v2/a") && !running.is_stored("/v1/a"));
}

#[test]
fn a_stream_is_stored_at_its_end_and_only_then() {
    let mut running = serve();
    let whole = running.get("/stream/whole", "ttl=300");
    assert!(whole.starts_with("run 1\nxxx") && whole.len() == 3006, "{whole}");
    assert_eq!(running.get("/stream/whole", ""), whole, "from the store");
    assert!(running.get("/stream/large", "ttl=300").len() > 200_000);
    running.kirin.wait_for_log("larger than `store.item_limit` allows");
    assert!(!running.is_stored("/stream/large"));
    // A worker dies inside the response.
    let mut client = running.kirin.connect();
    client.send("GET /stream/cut HTTP/1.1\r\nHost: a\r\nX-Store: ttl=300\r\n\r\n");
    let got = client.read_to_end();
    assert!(!got.ends_with(b"0\r\n\r\n"), "{}", String::from_utf8_lossy(&got));
    assert!(!running.is_stored("/stream/cut"));
    // A client disconnects inside the response.
    let mut client = running.kirin.connect();
    client.send("GET /stream/wait HTTP/1.1\r\nHost: a\r\nX-Store: ttl=300\r\n\r\n");
    client.read_until(b"run");
    assert!(!running.is_stored("/stream/wait"));
    drop(client);
}

#[test]
fn a_purged_page_is_gone_before_the_purging_response_arrives() {
    let mut running = serve();
    let fill = |running: &mut Running| {
        running.get("/a", "tags=\"memo-7 user-3\"");
        running.get("/b", "tags=\"memo-8\"");
        running.get("/recent/0", "");
        running.get("/recent/1?x", "ttl=5");
    };
    let left = |running: &Running| {
        let all = ["/a", "/b", "/recent/0", "/recent/1?x"];
        all.into_iter().filter(|target| running.is_stored(target)).collect::<Vec<_>>()
    };
    fill(&mut running);
    assert_eq!(left(&running).len(), 4);
    running.purge("tags=\"user-3 never\"");
    assert_eq!(left(&running), ["/b", "/recent/0", "/recent/1?x"]);
    running.purge("prefixes=\"/recent/\"");
    assert_eq!(left(&running), ["/b"]);
    running.purge("keys=\"/b /a\"");
    assert_eq!(left(&running).len(), 0);
    fill(&mut running);
    running.purge("tags=\"memo-7\", keys=\"/recent/0 /b\", prefixes=\"/recent/1\"");
    assert_eq!(left(&running).len(), 0);
    running.purge("tag=\"memo-7\"");
    running
        .kirin
        .wait_for_log("Kirin-Purge has no effect: `tag` is not known; it is written as `tags=");
}

/// Returns whether a page that was made from old data stays in the store. One worker makes the
/// page. In this time the other one changes the data and purges. Then the first one ends.
fn is_old_page_kept(purge: &str) -> bool {
    let mut running = serve();
    let mut slow = running.kirin.connect();
    slow.send("GET /slow HTTP/1.1\r\nHost: a\r\nX-Store: tags=\"memo-7\"\r\n\r\n");
    wait_for("the slow page to begin", || running.site.path("begun").exists().then_some(()));
    running.client.request(
        "POST",
        "/change",
        &format!("Content-Length: 0\r\nX-Purge: {purge}\r\n"),
    );
    std::fs::write(running.site.path("go"), "").expect("go");
    assert!(slow.read_reply().text().starts_with("none, run 1"), "made from old data");
    // The page is stored before the response has arrived.
    let kept = running.is_stored("/slow");
    assert_eq!(running.get("/slow", ""), if kept { "none, run 1" } else { "new, run 3" });
    kept
}

#[test]
fn a_page_started_before_a_purge_is_not_stored_after_it() {
    for purge in
        ["tags=\"memo-7\"", "keys=\"/slow\"", "prefixes=\"/sl\"", "prefixes=\"/\", tags=\"x\""]
    {
        assert!(!is_old_page_kept(purge), "{purge}");
    }
    assert!(
        is_old_page_kept("tags=\"memo-8\", keys=\"/\", prefixes=\"/slower\""),
        "purged was something else"
    );
}

#[test]
fn deletions_by_a_memcached_client_count_too() {
    for command in ["delete /slow\r\n", "md memo-7 Ptag\r\n", "md /s Pprefix\r\n", "flush_all\r\n"]
    {
        let mut running = serve();
        let mut slow = running.kirin.connect();
        slow.send("GET /slow HTTP/1.1\r\nHost: a\r\nX-Store: tags=\"memo-7\"\r\n\r\n");
        wait_for("the slow page to begin", || running.site.path("begun").exists().then_some(()));
        let mut memcached = running.memcached();
        memcached.send(command);
        memcached.line();
        std::fs::write(running.site.path("go"), "").expect("go");
        slow.read_reply();
        assert!(!running.is_stored("/slow"), "{command}");
        running.get("/slow", "ttl=5");
        assert!(running.is_stored("/slow"), "the next one is stored");
    }
}

#[test]
fn a_stream_that_is_purged_while_it_is_sent_is_not_stored() {
    let mut running = serve();
    let mut slow = running.kirin.connect();
    slow.send("GET /stream/wait HTTP/1.1\r\nHost: a\r\nX-Store: tags=\"memo-7\"\r\n\r\n");
    slow.read_until(b"run 1");
    running.purge("tags=\"memo-7\"");
    std::fs::write(running.site.path("go"), "").expect("go");
    slow.read_until(b"\r\n0\r\n\r\n");
    assert!(!running.is_stored("/stream/wait"));
}

#[test]
fn a_response_that_purges_itself_is_not_stored() {
    let mut running = serve();
    let fields = "X-Store: tags=\"memo-7\"\r\nX-Purge: tags=\"memo-7\"\r\n";
    assert_eq!(running.client.request("GET", "/page", fields).text(), "run 1");
    assert!(!running.is_stored("/page"));
    let fields = "X-Store: tags=\"memo-7\"\r\nX-Purge: tags=\"recent\"\r\n";
    assert_eq!(running.client.request("GET", "/page", fields).text(), "run 2");
    assert!(running.is_stored("/page"), "and one that purges something else is");
}

#[test]
fn includes_of_a_stored_response_are_filled_when_it_is_served() {
    let mut running = serve();
    running.get("/includes", "ttl=300");
    running.memcached().set("title", b"one");
    let tag = "<esi:include src='/only/title'/>";
    assert_eq!(running.get("/includes", ""), format!("run 1one{tag}"));
    running.memcached().set("title", b"two");
    assert_eq!(running.get("/includes", ""), format!("run 1two{tag}"));
}

/// Checks an application that has not escaped a visitor's comment with a directive. The directive
/// must not show items of the store.
#[test]
fn text_in_the_first_response_is_text_from_the_store() {
    let mut running = serve();
    running.memcached().set("title", b"SSI");
    running.memcached().set("/only/title", b"text/html\r\nESI");
    let (directive, tag) = ("<!--# include title -->", "<esi:include src='/only/title'/>");
    for (path, ssi, esi) in [
        ("/unsaid", directive, tag),
        ("/comments", directive, tag),
        ("/includes", "SSI", tag),
        ("/esi", directive, "ESI"),
        ("/both", "SSI", "ESI"),
    ] {
        let first = running.get(path, "ttl=300");
        assert!(running.is_stored(path), "{path}");
        let (run, rest) = first.split_at(first.find('<').unwrap_or(5).min(5));
        assert_eq!(rest, format!("{ssi}{esi}"), "{path}: {run}");
        let reply = running.client.get(path);
        assert_eq!(reply.text(), first, "{path}");
        assert_eq!(reply.field("kirin-store"), None, "{path}");
    }
    // The same holds where another route serves it, and where another page includes it.
    running.get("/unsaid", "");
    let pushed = running.get("/comments?again", "key=\"/assembled/comments\"");
    assert!(pushed.ends_with(&format!("{directive}{tag}")), "{pushed}");
    assert_eq!(running.client.get("/assembled/comments").text(), pushed);
    running
        .memcached()
        .set("/assembled/all", b"text/html\r\n(<!--# include key=\"/assembled/comments\" -->)");
    assert_eq!(running.client.get("/assembled/all").text(), format!("({pushed})"));
    // A page that a program writes into the store itself has the store's own format. The page can
    // set a field against that.
    let response = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n";
    running.memcached().set("/written", format!("{response}\r\n{directive}").as_bytes());
    assert_eq!(running.client.get("/written").text(), "SSI");
    let inert = format!("{response}Kirin-Store: ssi=?0\r\n\r\n{directive}");
    running.memcached().set("/written", inert.as_bytes());
    assert_eq!(running.client.get("/written").text(), directive);
    running.memcached().set("style", b"text/css\r\nb {}");
    running.memcached().set("/written", b"text/html\r\n<style><!--# include style --></style>");
    assert_eq!(running.client.get("/written").text(), "<style>b {}</style>");
}

#[test]
fn a_softly_purged_page_is_served_while_one_request_renews_it() {
    let mut running = serve();
    assert_eq!(running.get("/page", "tags=\"memo-7\""), "run 1");
    running.purge("tags=\"memo-7\", soft");
    assert!(running.is_stored("/page"));
    // A HEAD cannot renew the page.
    assert_eq!(running.client.request("HEAD", "/page", "").status, 200);
    assert_eq!(running.client.get("/page").text(), "run 3", "this one has gone to the application");
    wait_for("the page for others", || {
        (running.client.get("/page").text() == "run 1").then_some(())
    });
    // The first request has stored nothing, so another one goes.
    let renewed = wait_for("the next", || {
        let text = running.get("/page", "tags=\"memo-7\"");
        (text != "run 1").then_some(text)
    });
    assert_eq!(
        [running.client.get("/page").text(), running.client.get("/page").text()],
        [renewed.clone(), renewed]
    );
    running.purge("keys=\"/page\", soft=?0");
    assert!(!running.is_stored("/page"));
}

#[test]
fn a_stale_page_without_an_application_is_served_unchanged() {
    let running = serve();
    running.memcached().set("/only/a", b"text/plain\r\na");
    let mut memcached = running.memcached();
    assert_eq!(memcached.send("md /only/ Pprefix I\r\n").line(), "HD");
    for _ in 0..3 {
        assert_eq!(running.kirin.get("/only/a").text(), "a");
    }
}

#[test]
fn a_page_that_answers_no_request_is_logged_once() {
    let mut running = serve();
    let (served, unserved) = (["/page", "/v1/page", "/v2/page"], ["/direct/page", "/direct/other"]);
    for target in served {
        running.get(target, "ttl=300");
    }
    running.get("/page2", "key=\"/v2/of-v1\"");
    assert!(!running.kirin.log().contains("no `store` in its `try`"), "{}", running.kirin.log());
    for target in unserved {
        running.get(target, "ttl=300");
        assert!(running.is_stored(target), "pages may include it");
    }
    running.kirin.wait_for_log("no `store` in its `try`");
    assert_eq!(
        running.kirin.log().matches("no `store` in its `try`").count(),
        1,
        "{}",
        running.kirin.log()
    );
}

#[test]
fn a_server_of_an_upstream_stores_and_purges_nothing() {
    let backend = Backend::answering(|request| {
        format!(
            "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nKirin-Store: ttl=60\r\n\
             Kirin-Purge: prefixes=\"/kept\"\r\n\r\n{}",
            request.target().len(),
            request.target()
        )
    });
    let config = format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemcached = [\"unix:m.sock\"]\n\
         [[upstream]]\nname = \"other\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"store\", \"proxy:other\"]\n",
        backend.address()
    );
    let site = Site::new();
    let kirin = Kirin::start(&site, &config);
    let mut memcached = Memcached::connect(&site.path("m.sock"));
    memcached.set("/kept", b"text/plain\r\nkept");
    for _ in 0..3 {
        assert_eq!(kirin.get("/page").text(), "/page");
    }
    assert_eq!(memcached.get("/page"), None);
    assert_eq!(kirin.get("/kept").text(), "kept");
}
