//! Scripts that send requests to other routes, and scripts that pass.

use kirin_tests::scripts::{PATIENT, handler, memcached, serve, serve_script};
use kirin_tests::{Client, Kirin, Site, wait_for};

const APP: &str = "[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\n";

const PSGI: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    my $body = '';
    $env->{'psgi.input'}->read($body, $env->{CONTENT_LENGTH}) if $env->{CONTENT_LENGTH};
    my @names = qw(REQUEST_METHOD REQUEST_URI SCRIPT_NAME PATH_INFO REMOTE_USER HTTP_X_SAID HTTP_COOKIE);
    my $text = join '', map { "$_=" . ($env->{$_} // '-') . "\n" } @names;
    return [200, ['Content-Type' => 'text/plain', 'X-App' => 'yes'], [$text, "body=$body"]];
};
"#;

#[test]
fn a_passed_request_reaches_the_next_place_with_its_body() {
    let site = Site::new()
        .with("app.psgi", PSGI)
        .with("public/f.txt", "file")
        .with(
            "pass.lua",
            handler(
                "if request.path == '/shop/waited' then request:body() return kirin.pass() end
                 if request.path == '/shop/asked' then kirin.fetch('/slow') kirin.fetch('/f.txt') return end
                 if request.path == '/mine' then return 'mine' end",
            ),
        )
        .with("slow.lua", handler("request:body() return 'slow'"));
    let kirin = serve(
        &site,
        &format!(
            "{PATIENT}{APP}[[route]]\npath = \"/\"\ntry = [\"store\", \"lua:pass.lua\", \"files:public\"]\n\
             [[route]]\npath = \"/slow\"\ntry = [\"app:web\"]\n\
             [[route]]\npath = \"/shop\"\nrewrite = \"/\"\ntry = [\"lua:pass.lua\", \"app:web\"]\n\
             [[route]]\npath = \"/members\"\ntry = [\"lua:other.lua\", \"app:web\"]\n"
        )
        .replace("lua:other.lua", "lua:pass.lua")
        .replace("rewrite = \"/\"\n", ""),
    );
    let mut client = kirin.connect();
    assert_eq!(client.get("/mine").text(), "mine");
    assert_eq!(client.get("/f.txt").text(), "file");
    assert_eq!(client.get("/none").status, 404);
    for (path, body) in
        [("/shop/waited", "the body"), ("/shop/asked", "another"), ("/shop/at-once", "third")]
    {
        let text = client.post(path, "text/plain", body.as_bytes()).text();
        assert!(
            text.contains(&format!("body={body}"))
                && text.contains(&format!("REQUEST_URI={path}\n")),
            "{path}: {text}"
        );
        assert!(text.contains("REQUEST_METHOD=POST"), "{text}");
    }
    let large = vec![b'x'; 500_000];
    let reply = client.post("/shop/waited", "text/plain", &large);
    assert_eq!(reply.body.len(), reply.text().find("body=").unwrap() + 5 + large.len());
}

#[test]
fn a_mounted_application_behind_a_script_that_waited_keeps_its_mount() {
    let site = Site::new().with("app.psgi", PSGI).with("pass.lua", handler("request:body()"));
    let kirin = serve(
        &site,
        &format!(
            "{PATIENT}{APP}[[route]]\npath = \"/shop\"\nrewrite = \"/\"\ntry = [\"lua:pass.lua\", \"app:web\"]\n"
        ),
    );
    let text = kirin.connect().post("/shop/cart?x=1", "text/plain", b"it").text();
    assert!(
        text.contains("SCRIPT_NAME=/shop\nPATH_INFO=/cart\n")
            && text.contains("REQUEST_URI=/shop/cart?x=1\n"),
        "{text}"
    );
    assert!(text.contains("body=it"), "{text}");
}

#[test]
fn subrequests_go_to_any_place() {
    let site = Site::new()
        .with("app.psgi", PSGI)
        .with("public/f.txt", "file content")
        .with(
            "page.lua",
            handler(
                "local all = kirin.fetch_all { '/f.txt', '/stored', { '/app/x?y=1', method = 'PUT', body = 'sent',
                   headers = { ['X-Said'] = 'hello', ['Content-Type'] = 'text/plain' } }, '/none', { '/f.txt', method = 'HEAD' } }
                 local out = {}
                 for i, r in ipairs(all) do out[i] = r.status .. ' ' .. (r.headers['content-type'] or '') .. ' ' .. r.body end
                 return table.concat(out, '|')",
            ),
        )
        .with("relay.lua", handler("return kirin.fetch('/f.txt')"));
    let kirin = serve(
        &site,
        &format!(
            "{PATIENT}{APP}[[route]]\npath = \"/\"\ntry = [\"store\", \"files:public\"]\n[[route]]\npath = \"/app\"\ntry = [\"app:web\"]\n\
             [[route]]\npath = \"/page\"\ntry = [\"lua:page.lua\"]\n[[route]]\npath = \"/relay\"\ntry = [\"lua:relay.lua\"]\n"
        ),
    );
    memcached(&site).set("/stored", b"text/css\r\nbody{}");
    let mut client = kirin.connect();
    let text =
        client.request("GET", "/page", "Cookie: sid=visitor\r\nIf-None-Match: \"x\"\r\n").text();
    let parts: Vec<&str> = text.split('|').collect();
    assert_eq!(parts[0], "200 text/plain; charset=utf-8 file content");
    assert_eq!(parts[1], "200 text/css body{}");
    assert!(parts[2].contains("REQUEST_METHOD=PUT\nREQUEST_URI=/app/x?y=1\n"), "{}", parts[2]);
    assert!(
        parts[2].contains("HTTP_X_SAID=hello\nHTTP_COOKIE=sid=visitor\nbody=sent"),
        "{}",
        parts[2]
    );
    assert!(parts[3].starts_with("404 "), "{}", parts[3]);
    assert_eq!(parts[4], "200 text/plain; charset=utf-8 ");
    let reply = client.get("/relay");
    assert_eq!(
        (reply.status, reply.text().as_str(), reply.field("content-length")),
        (200, "file content", Some("12"))
    );
}

/// An application with two requests. Each is answered when the other has arrived.
const MEETING: &str = r#"
use v5.16; use warnings;
sub {
    my $env = shift;
    my ($mine, $other) = $env->{PATH_INFO} =~ m{/a$} ? qw(a b) : qw(b a);
    open my $fh, '>', "met-$mine" or die $!;
    close $fh;
    for (1 .. 1500) {
        return [200, ['Content-Type' => 'text/plain'], ["$mine met $other"]] if -e "met-$other";
        select undef, undef, undef, 0.01;
    }
    return [500, [], ["$mine is alone"]];
};
"#;

#[test]
fn subrequests_of_one_call_run_at_the_same_time() {
    let site = Site::new().with("app.psgi", MEETING).with(
        "page.lua",
        handler(
            "local a, b = unpack(kirin.fetch_all { '/app/a', '/app/b' }) return a.body .. ', ' .. b.body",
        ),
    );
    let kirin = serve(
        &site,
        &format!(
            "{PATIENT}{APP}[[route]]\npath = \"/app\"\ntry = [\"app:web\"]\n[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n"
        ),
    );
    assert_eq!(kirin.get("/").text(), "a met b, b met a");
}

/// Starts a Kirin with one loop. Its script waits for `/app/a`, which waits for `/app/b`. At `/x`
/// the script answers at once.
fn serve_waiting() -> (Site, Kirin, Client) {
    let site = Site::new().with("app.psgi", MEETING).with(
        "page.lua",
        handler("if request.path == '/x' then return 'x' end return kirin.fetch('/app/a')"),
    );
    let kirin = serve(
        &site,
        &format!(
            "{PATIENT}{APP}[[route]]\npath = \"/app\"\ntry = [\"app:web\"]\n[[route]]\npath = \"/\"\ntry = [\"lua:page.lua\"]\n"
        ),
    );
    let mut waiting = kirin.connect();
    waiting.send("GET /waits HTTP/1.1\r\nHost: t\r\n\r\n");
    wait_for("the application to be asked", || site.path("met-a").exists().then_some(()));
    (site, kirin, waiting)
}

#[test]
fn the_loop_serves_others_while_a_script_waits() {
    let (_site, kirin, mut waiting) = serve_waiting();
    assert_eq!(kirin.get("/x").text(), "x");
    assert_eq!(kirin.get("/app/b").text(), "b met a");
    assert_eq!(waiting.read_reply().text(), "a met b");
}

#[test]
fn a_client_that_leaves_while_its_script_waits_does_no_harm() {
    let (_site, kirin, waiting) = serve_waiting();
    drop(waiting);
    assert_eq!(kirin.get("/x").text(), "x");
    assert_eq!(kirin.get("/app/b").text(), "b met a");
    assert_eq!(kirin.get("/x").text(), "x");
}

#[test]
fn a_script_that_requests_itself_is_stopped() {
    let (_site, kirin) = serve_script(&handler("return kirin.fetch('/again')"));
    assert_eq!(kirin.get("/").status, 500);
    kirin.wait_for_log("circle");
}

#[test]
fn an_answer_larger_than_the_limit_is_an_error() {
    let site = Site::new().with("public/large", vec![b'x'; 5000]).with(
        "page.lua",
        handler("local ok, why = pcall(kirin.fetch, '/large') return tostring(ok) .. why"),
    );
    let kirin = serve(
        &site,
        &format!(
            "{PATIENT}body_limit = \"4KB\"\n[[route]]\npath = \"/\"\ntry = [\"files:public\"]\n\
             [[route]]\npath = \"/page\"\ntry = [\"lua:page.lua\"]\n"
        ),
    );
    let text = kirin.get("/page").text();
    assert!(
        text.starts_with("false") && text.contains("larger than `lua.body_limit`, 4096 bytes"),
        "{text}"
    );
}
