//! The cache of a route in front of an application that notes each call.
//!
//! The application says whatever the query asks it to: `cc` is its `Cache-Control`, other arguments are fields of those names. No
//! test waits for time to pass: what is to be stale says that it is old (`Age`).

use base64::Engine as _;
use kirin_tests::{Client, Kirin, Memcached, Reply, Site, run_kirin, wait_for};
use std::io::Read;
use std::process::Command;
use std::thread;

const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:0\"\naccess_log = \"access.log\"\n[store]\n\
    memory = \"16MB\"\nmemcached = [\"unix:m.sock\"]\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 8\n\
    [[route]]\npath = \"/\"\ntry = [\"app:web\"]\ncache = true\n\
    [[route]]\npath = \"/zip\"\ntry = [\"app:web\"]\ncache = true\ncompress = true\n\
    [[route]]\npath = \"/ssi\"\ntry = [\"app:web\"]\ncache = true\nssi = true\n\
    [[route]]\npath = \"/reload\"\ntry = [\"app:web\"]\ncache = { reload = true }\n\
    [[route]]\npath = \"/anonymous\"\ntry = [\"app:web\"]\ncache = { cookies = \"ignore\" }\n\
    [[route]]\npath = \"/some\"\ntry = [\"app:web\"]\n\
    cache = { ttl = \"1h\", negative_ttl = \"10m\", stale_if_error = \"1h\", item_limit = \"10KB\", \
    bypass = [\"cookie:admin\", \"header:X-Preview\", \"query:preview\"], ignore_query = [\"utm_*\"] }\n\
    [[route]]\npath = \"/hasty\"\ntry = [\"app:web\"]\ncache = { wait = \"1s\" }\n\
    [[route]]\npath = \"/off\"\ntry = [\"app:web\"]\n";

const APP: &str = r#"
use v5.16; use warnings; use Fcntl ':flock'; use Plack::Request;
sub calls { my $path = shift; open my $in, '<', 'calls' or return 0; return scalar grep { (split ' ')[1] eq $path } <$in> }
sub until_there { my $file = shift; until (-e $file) { select undef, undef, undef, 0.01 } }
sub {
    my $env = shift;
    my $path = $env->{PATH_INFO};
    my %said = map { $_ => $env->{"HTTP_$_"} // '-' } qw(IF_NONE_MATCH IF_MODIFIED_SINCE COOKIE RANGE);
    open my $out, '>>', 'calls' or die $!;
    flock $out, LOCK_EX;
    syswrite $out, "$env->{REQUEST_METHOD} $path $env->{QUERY_STRING} $said{IF_NONE_MATCH} $said{COOKIE} $said{RANGE}\n";
    my $call = calls($path);
    close $out;
    my $query = Plack::Request->new($env)->query_parameters;
    my @fields = ('Content-Type' => 'text/html', 'X-Call' => $call);
    my ($wait, $until, $status, $body, $bytes, $all) = (0, undef, 200, "call $call", 0, 0);
    $query->each(sub {
        my ($name, $value) = @_;
        if ($name eq 'cc') { push @fields, 'Cache-Control' => $value }
        elsif ($name eq 'wait') { $until = $value }
        elsif ($name eq 'status') { $status = $value }
        elsif ($name eq 'bytes') { $body = substr("$call " . ('0123456789 ' x ($value / 10 + 1)), 0, $value) }
        elsif ($name eq 'all') { $all = $value }
        elsif ($name eq 'text') { $body .= $value }
        elsif ($name =~ /^[A-Z]/) { push @fields, $name => $value }
    });
    until_there($until) if defined $until && $env->{REQUEST_METHOD} eq 'GET';
    if ($all && $call > 1) { until (calls($path) >= $all) { select undef, undef, undef, 0.01 } }
    return [500, ['Content-Type' => 'text/plain'], ['it has failed']] if -e 'fail';
    my %fields = @fields;
    return [304, \@fields, []] if $fields{ETag} && $said{IF_NONE_MATCH} eq $fields{ETag} && !-e 'changed';
    my $kind = $query->get('kind') // '';
    return sub {
        my $writer = shift->([$status, \@fields]);
        $writer->write("first ");
        until_there('go');
        die 'in the middle' if $kind eq 'cut';
        $writer->write($body) for 1 .. ($query->get('times') || 1);
        $writer->close;
    } if $kind eq 'stream' || $kind eq 'cut';
    return [$status, \@fields, [$env->{REQUEST_METHOD} eq 'HEAD' ? () : $body]];
};
"#;

struct Tested {
    site: Site,
    kirin: Kirin,
}

fn serve() -> Tested {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, CONFIG);
    Tested { site, kirin }
}

impl Tested {
    fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.site.path("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    fn count(&self, path: &str) -> usize {
        self.calls().iter().filter(|line| line.split(' ').nth(1) == Some(path)).count()
    }

    fn touch(&self, name: &str) {
        std::fs::write(self.site.path(name), "").expect("a file");
    }

    fn memcached(&self) -> Memcached {
        Memcached::connect(&self.site.path("m.sock"))
    }
}

fn status(reply: &Reply) -> &str {
    reply.field("cache-status").unwrap_or_else(|| panic!("no Cache-Status: {}", reply.head))
}

fn is_hit(reply: &Reply) -> bool {
    status(reply).starts_with("Kirin; hit")
}

/// Seconds in a parameter of `Cache-Status`.
fn ttl(reply: &Reply) -> i64 {
    let (_, rest) = status(reply).split_once("ttl=").expect("a ttl");
    rest.split(';').next().unwrap().parse().expect("a number")
}

#[test]
fn what_is_fresh_comes_from_memory_with_its_age() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/a?cc=max-age=3600";
    let first = client.get(target);
    assert_eq!(first.text(), "call 1");
    assert!(status(&first).starts_with("Kirin; fwd=uri-miss; ttl=3600; stored"), "{}", first.head);
    for _ in 0..3 {
        let next = client.get(target);
        assert_eq!(
            (next.status, next.text().as_str(), is_hit(&next)),
            (200, "call 1", true),
            "{}",
            next.head
        );
        assert!(next.field("age").unwrap().parse::<i64>().unwrap() <= 3600 - ttl(&next));
        assert_eq!(next.field("date"), first.field("date"));
        assert_eq!(next.field("x-call"), Some("1"));
    }
    // By another connection, which may be on the other loop; and not for another host or query.
    assert!(is_hit(&tested.kirin.get(target)));
    client.send(format!("GET {target} HTTP/1.1\r\nHost: other\r\n\r\n"));
    assert_eq!(client.read_reply().text(), "call 2");
    assert_eq!(client.get("/a?cc=max-age=3600&x").text(), "call 3");
    assert_eq!(tested.count("/a"), 3);
    wait_for("the access log", || {
        std::fs::read_to_string(tested.site.path("access.log")).ok()?.contains(" cache ").then_some(())
    });
    // A route without the cache has nothing of it.
    client.get("/off?cc=max-age=3600");
    let reply = client.get("/off?cc=max-age=3600");
    assert_eq!((reply.text().as_str(), reply.field("cache-status")), ("call 2", None));
}

#[test]
fn what_may_not_be_kept_is_asked_for_each_time() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    for (index, (query, why)) in [
        ("", "no-freshness"),
        ("ETag=\"a\"", "no-freshness"),
        ("cc=no-store,max-age=60", "no-store"),
        ("cc=private,max-age=60", "private"),
        ("cc=max-age=60&Set-Cookie=a=b", "set-cookie"),
        ("cc=public,max-age=60&Set-Cookie=a=b", "set-cookie"),
        ("cc=max-age=60&Vary=*", "vary"),
        ("cc=max-age=0", "stale"),
        ("cc=max-age=60&Age=61", "stale"),
        ("cc=max-age=60&status=206", "status"),
        ("status=500", "no-freshness"),
        ("status=404", "no-freshness"),
    ]
    .into_iter()
    .enumerate()
    {
        let path = format!("/no/{index}");
        for call in 1..=3 {
            let reply = client.get(&format!("{path}?{query}"));
            assert_eq!(reply.text(), format!("call {call}"), "{query}: {}", reply.head);
            assert!(status(&reply).ends_with(&format!("detail={why}")), "{query}: {}", reply.head);
            if query.contains("Set-Cookie") {
                assert_eq!(reply.field("set-cookie"), Some("a=b"));
            }
        }
    }
}

#[test]
fn a_response_that_hides_a_field_is_kept_without_it() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/a?cc=max-age=60,no-cache=%22Set-Cookie%22&Set-Cookie=a=b";
    assert_eq!(client.get(target).field("set-cookie"), Some("a=b"));
    let hit = client.get(target);
    assert!(is_hit(&hit));
    assert_eq!(hit.field("set-cookie"), None);
}

#[test]
fn each_variant_is_for_those_who_ask_for_it() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/v?cc=max-age=60&Vary=Accept-Language,X-Device";
    let mut get = |fields: &str| client.request("GET", target, fields);
    assert_eq!(get("Accept-Language: ja\r\n").text(), "call 1");
    let other = get("Accept-Language: en\r\n");
    assert_eq!(other.text(), "call 2");
    assert!(status(&other).starts_with("Kirin; fwd=vary-miss"), "{}", other.head);
    assert_eq!(get("Accept-Language: ja\r\nX-Device: phone\r\n").text(), "call 3");
    for (fields, text) in [
        ("Accept-Language:  ja \r\n", "call 1"),
        ("Accept-Language: en\r\nAccept: */*\r\n", "call 2"),
        ("X-Device: phone\r\nAccept-Language: ja\r\n", "call 3"),
    ] {
        let reply = get(fields);
        assert_eq!((reply.text().as_str(), is_hit(&reply)), (text, true), "{fields}");
    }
    assert_eq!(get("").text(), "call 4");
}

#[test]
fn conditions_ranges_and_head_are_answered_from_memory() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    // The first request has a condition and is HEAD: the cache asks for all of it all the same.
    let target = "/r?cc=max-age=60&ETag=%22e%22&bytes=1000";
    let head = client.request("HEAD", target, "If-None-Match: \"x\"\r\n");
    assert_eq!((head.status, head.field("content-length")), (200, Some("1000")), "{}", head.head);
    assert!(
        tested.calls()[0].starts_with("GET /r") && tested.calls()[0].ends_with(" - - -"),
        "{:?}",
        tested.calls()
    );
    let whole = client.get(target);
    assert!(is_hit(&whole) && whole.body.len() == 1000);
    let not_modified = client.request("GET", target, "If-None-Match: W/\"e\"\r\n");
    assert_eq!((not_modified.status, not_modified.field("etag")), (304, Some("\"e\"")));
    assert!(not_modified.field("age").is_some() && is_hit(&not_modified), "{}", not_modified.head);
    let failed = client.request("GET", target, "If-Match: \"x\"\r\n");
    assert_eq!(failed.status, 412);
    let part = client.request("GET", target, "Range: bytes=2-11\r\n");
    assert_eq!((part.status, part.body.as_slice()), (206, &whole.body[2..12]));
    assert_eq!(part.field("content-range"), Some("bytes 2-11/1000"));
    let part = client.request("GET", target, "Range: bytes=2-11\r\nIf-Range: \"e\"\r\n");
    assert_eq!(part.status, 206);
    let whole_again = client.request("GET", target, "Range: bytes=2-11\r\nIf-Range: \"x\"\r\n");
    assert_eq!((whole_again.status, whole_again.body.len()), (200, 1000));
    let none = client.request("GET", target, "Range: bytes=2000-\r\n");
    assert_eq!(none.status, 416);
    assert_eq!(tested.count("/r"), 1);
    // A part of what is not there is asked for as a part, and tells nothing of the whole.
    client.request("GET", "/part?cc=max-age=60", "Range: bytes=0-1\r\n");
    assert!(tested.calls().last().unwrap().ends_with("bytes=0-1"));
    assert_eq!(client.get("/part?cc=max-age=60").text(), "call 2");
}

#[test]
fn what_is_stale_is_used_again_when_the_application_says_that_it_is_still_good() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    for (path, cc) in [("/n", "no-cache"), ("/z", "max-age=0")] {
        let target = format!("{path}?cc={cc}&ETag=%22e%22");
        assert_eq!(client.get(&target).text(), "call 1");
        let second = client.get(&target);
        assert_eq!((second.status, second.text().as_str()), (200, "call 1"), "{}", second.head);
        assert_eq!(second.field("x-call"), Some("2"), "the fields are those of the 304");
        assert!(status(&second).starts_with("Kirin; fwd=stale; fwd-status=304"), "{}", second.head);
        assert!(tested.calls().last().unwrap().contains(" \"e\" "), "{:?}", tested.calls());
        // The client's own condition is another matter.
        let third = client.request("GET", &target, "If-None-Match: \"e\"\r\n");
        assert_eq!((third.status, third.field("x-call")), (304, Some("3")), "{}", third.head);
        let fourth = client.request("GET", &target, "If-None-Match: \"other\"\r\n");
        assert_eq!((fourth.status, fourth.text().as_str()), (200, "call 1"));
    }
    tested.touch("changed");
    let target = "/n?cc=no-cache&ETag=%22e%22";
    assert_eq!(client.get(target).text(), "call 5");
}

#[test]
fn who_shows_who_he_is_gets_only_what_is_for_everybody() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    for (index, (field, query, is_shared)) in [
        ("Authorization: Basic eDp5\r\n", "cc=max-age=60", false),
        ("Authorization: Basic eDp5\r\n", "cc=max-age=60,public", true),
        ("Authorization: Basic eDp5\r\n", "cc=max-age=60,must-revalidate", true),
        ("Authorization: Basic eDp5\r\n", "cc=s-maxage=60", true),
        ("Cookie: a=b\r\n", "cc=max-age=60", false),
        ("Cookie: a=b\r\n", "cc=max-age=60,must-revalidate", false),
        ("Cookie: a=b\r\n", "cc=max-age=60,public", true),
        ("Cookie: a=b\r\n", "cc=s-maxage=60", true),
        ("Cookie: a=b\r\n", "cc=no-store&CDN-Cache-Control=max-age=60", true),
    ]
    .into_iter()
    .enumerate()
    {
        // First by one who does: the next anonymous one must not get it.
        let target = format!("/who/{index}?{query}");
        assert_eq!(client.request("GET", &target, field).text(), "call 1");
        assert_eq!(is_hit(&client.get(&target)), is_shared, "{field} {query}");
        // First by an anonymous one: he must not get that.
        let target = format!("/anybody/{index}?{query}");
        assert_eq!(client.get(&target).text(), "call 1");
        let reply = client.request("GET", &target, field);
        assert_eq!(is_hit(&reply), is_shared, "{field} {query}: {}", reply.head);
        assert!(is_hit(&client.get(&target)), "and it is still there for others");
    }
    // With `Vary: Cookie` each has his own.
    let target = "/own?cc=max-age=60&Vary=Cookie";
    for (cookie, text) in [("a=1", "call 1"), ("a=2", "call 2"), ("a=1", "call 1"), ("a=2", "call 2")] {
        assert_eq!(client.request("GET", target, &format!("Cookie: {cookie}\r\n")).text(), text);
    }
}

#[test]
fn cookies_can_be_kept_from_an_application_that_does_not_need_them() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/anonymous?cc=max-age=60&Set-Cookie=a=b";
    let first = client.request("GET", target, "Cookie: tracking=1\r\n");
    assert_eq!((first.text().as_str(), first.field("set-cookie")), ("call 1", None), "{}", first.head);
    assert!(tested.calls()[0].contains(" - - -"), "{:?}", tested.calls());
    assert!(is_hit(&client.request("GET", target, "Cookie: tracking=2\r\n")));
    // What changes something has them, and so has what is not kept.
    client.request("DELETE", "/anonymous/x?Set-Cookie=a=b", "Cookie: session=1\r\n");
    assert!(tested.calls().last().unwrap().contains(" session=1 "), "{:?}", tested.calls());
    assert_eq!(client.get("/anonymous/y?Set-Cookie=a=b").field("set-cookie"), Some("a=b"));
}

#[test]
fn clients_say_what_they_want_and_are_heard_as_far_as_the_route_allows() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let mut get = |target: &str, cc: &str| client.request("GET", target, &format!("Cache-Control: {cc}\r\n"));
    let missing = get("/q?cc=max-age=60", "only-if-cached");
    assert_eq!((missing.status, tested.count("/q")), (504, 0));
    assert_eq!(get("/q?cc=max-age=60", "no-store").text(), "call 1");
    assert_eq!(get("/q?cc=max-age=60", "max-age=60").text(), "call 2", "no-store kept it out");
    for cc in ["no-cache", "max-age=0", "min-fresh=61", "only-if-cached", "no-store"] {
        assert_eq!(get("/q?cc=max-age=60", cc).text(), "call 2", "{cc}");
    }
    // Stale by what it says itself, and kept since it can be validated.
    let stale = "/s?cc=max-age=60&Age=100&ETag=%22e%22";
    assert_eq!(get(stale, "x").text(), "call 1");
    for (cc, calls) in [("max-stale", 1), ("max-stale=4000", 1), ("max-stale=9", 2), ("x", 3)] {
        get(stale, cc);
        assert_eq!(tested.count("/s"), calls, "{cc}");
    }
    // A route that lets clients reload.
    let target = "/reload?cc=max-age=60";
    assert_eq!(get(target, "x").text(), "call 1");
    for (cc, text) in [
        ("x", "call 1"),
        ("no-cache", "call 2"),
        ("x", "call 2"),
        ("max-age=0, min-fresh=100", "call 3"),
        ("max-age=60", "call 3"),
        ("min-fresh=61", "call 4"),
    ] {
        let reply = get(target, cc);
        assert_eq!(reply.text(), text, "{cc}: {}", reply.head);
    }
    assert!(status(&get(target, "no-cache")).starts_with("Kirin; fwd=request"));
    client.request("GET", target, "Pragma: no-cache\r\n");
    assert_eq!(tested.count("/reload"), 6);
}

#[test]
fn what_is_stale_is_served_while_one_request_makes_it_anew() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/swr?cc=max-age=60,stale-while-revalidate=1000&Age=100&wait=go";
    tested.touch("go");
    assert_eq!(client.get(target).text(), "call 1");
    std::fs::remove_file(tested.site.path("go")).unwrap();
    // The application hangs in the second call, and nobody waits for it.
    for _ in 0..5 {
        let reply = client.get(target);
        assert_eq!(reply.text(), "call 1");
        assert!(is_hit(&reply) && ttl(&reply) < 0, "{}", reply.head);
    }
    wait_for("the second call", || (tested.count("/swr") == 2).then_some(()));
    tested.touch("go");
    wait_for("what it brought", || (client.get(target).text() != "call 1").then_some(()));
}

#[test]
fn what_is_stale_covers_up_for_an_application_that_fails() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let covered = "/sie?cc=max-age=60,stale-if-error=1000&Age=100";
    let strict = "/strict?cc=max-age=60,stale-if-error=1000,must-revalidate&Age=100&ETag=%22e%22";
    let short = "/short?cc=max-age=60,stale-if-error=10&Age=100&ETag=%22e%22";
    let configured = "/some/sie?cc=max-age=60&Age=100";
    for target in [covered, strict, short, configured] {
        assert_eq!(client.get(target).text(), "call 1", "{target}");
    }
    tested.touch("fail");
    for target in [covered, configured] {
        let reply = client.get(target);
        assert_eq!((reply.status, reply.text().as_str()), (200, "call 1"), "{}", reply.head);
        assert!(status(&reply).starts_with("Kirin; fwd=stale; fwd-status=500; ttl=-"), "{}", reply.head);
    }
    for target in [strict, short] {
        assert_eq!(client.get(target).status, 500, "{target}");
    }
    std::fs::remove_file(tested.site.path("fail")).unwrap();
    assert_eq!(client.get(covered).text(), "call 3");
    assert_eq!(client.get(short).text(), "call 1", "what failed has thrown nothing out");
}

#[test]
fn a_request_that_changes_something_throws_out_what_it_names() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let (list, post, other) = ("/list?cc=max-age=60", "/posts/7?cc=max-age=60", "/other?cc=max-age=60");
    let fill = |client: &mut Client| {
        [list, post, other].map(|target| {
            client.get(target);
            is_hit(&client.get(target))
        })
    };
    assert_eq!(fill(&mut client), [true; 3]);
    let (location, failing) = ("Location=/posts/7%3Fcc%3Dmax-age%3D60", "status=400");
    client.post(&format!("{list}&{failing}"), "text/plain", b"x");
    client.request("OPTIONS", list, "");
    assert!(is_hit(&client.get(list)));
    let reply = client.post(list, "text/plain", b"x");
    assert_eq!(status(&reply), "Kirin; fwd=method");
    assert!(!is_hit(&client.get(list)));
    let reply = client.post(&format!("/new?status=303&{location}"), "text/plain", b"x");
    assert_eq!(reply.field("location"), Some("/posts/7?cc=max-age=60"));
    assert!(!is_hit(&client.get(post)) && is_hit(&client.get(other)) && is_hit(&client.get(list)));
    client.post("/new?status=303&Location=http://elsewhere/posts/7%3Fcc%3Dmax-age%3D60", "text/plain", b"x");
    assert!(is_hit(&client.get(post)));
}

#[test]
fn cached_responses_can_be_purged_by_what_the_application_calls_them_and_by_their_target() {
    let tested = serve();
    let (mut client, mut memcached) = (tested.kirin.connect(), tested.memcached());
    let target = "/p?cc=max-age=60&Surrogate-Key=post-7+front&Cache-Tag=all&Vary=Accept-Language";
    let variants = ["Accept-Language: ja\r\n", "Accept-Language: en\r\n"];
    let hits = |client: &mut Client| {
        variants.map(|fields| {
            let reply = client.request("GET", target, fields);
            assert_eq!(
                (reply.field("surrogate-key"), reply.field("cache-tag")),
                (None, None),
                "{}",
                reply.head
            );
            is_hit(&reply)
        })
    };
    assert_eq!(hits(&mut client), [false; 2]);
    assert_eq!(hits(&mut client), [true; 2]);
    let key = b"\0c/p?cc=max-age=60&Surrogate-Key=post-7+front&Cache-Tag=all&Vary=Accept-Language";
    let by_target = base64::engine::general_purpose::STANDARD.encode(key);
    let by_prefix = base64::engine::general_purpose::STANDARD.encode(b"\0c/p");
    for command in [
        "md front Ptag".to_owned(),
        "md all Ptag".into(),
        format!("md {by_target} b Ptag"),
        format!("md {by_prefix} b Pprefix"),
    ] {
        assert_eq!(memcached.send(format!("{command}\r\n")).line(), "HD", "{command}");
        assert_eq!(hits(&mut client), [false; 2], "{command}");
        assert_eq!(hits(&mut client), [true; 2], "{command}");
    }
    memcached.send("md other Ptag\r\n").line();
    assert_eq!(hits(&mut client), [true; 2]);
    // Nobody comes upon them by their targets.
    assert_eq!(memcached.get(target), None);
    assert_eq!(memcached.send("flush_all\r\n").line(), "OK");
    assert_eq!(hits(&mut client), [false; 2]);
}

#[test]
fn a_soft_purge_makes_it_stale_and_no_more() {
    let tested = serve();
    let (mut client, mut memcached) = (tested.kirin.connect(), tested.memcached());
    let (good, swr) = (
        "/soft?cc=max-age=60&ETag=%22e%22&Surrogate-Key=k",
        "/swr?cc=max-age=60,stale-while-revalidate=60&Surrogate-Key=k",
    );
    for target in [good, swr] {
        assert_eq!(client.get(target).text(), "call 1");
    }
    assert_eq!(memcached.send("md k Ptag I\r\n").line(), "HD");
    let validated = client.get(good);
    assert_eq!(validated.text(), "call 1");
    assert!(status(&validated).starts_with("Kirin; fwd=stale; fwd-status=304"), "{}", validated.head);
    assert!(is_hit(&client.get(good)));
    assert_eq!(client.get(swr).text(), "call 1");
    wait_for("it to be made anew", || (client.get(swr).text() == "call 2").then_some(()));
    // What was validated still has its names.
    assert_eq!(memcached.send("md k Ptag\r\n").line(), "HD");
    assert!(!is_hit(&client.get(good)));
}

#[test]
fn a_soft_purge_is_the_same_from_an_application_the_command_and_perl() {
    let tested = serve();
    std::fs::write(tested.site.path("kirin.toml"), CONFIG).expect("a configuration");
    let mut client = tested.kirin.connect();
    let long = format!("/{}?cc=max-age=60", "x".repeat(200));
    for (index, target) in ["/soft/a?cc=max-age=60", long.as_str()].into_iter().enumerate() {
        let mut call = 0;
        let kinds = if index == 0 { 0..4 } else { 1..4 };
        for kind in kinds {
            let stale = loop {
                let reply = client.get(target);
                if is_hit(&reply) {
                    break reply;
                }
                call += 1;
                assert_eq!(reply.text(), format!("call {call}"));
            };
            assert_eq!(stale.text(), format!("call {call}"));
            match kind {
                0 => drop(client.get("/purge?Kirin-Purge=prefixes=%22/soft/%22,soft")),
                1 => {
                    // By the memcached port: there is no admin listener.
                    let output = run_kirin(&tested.site, &["purge", "--soft", "--key", target]);
                    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
                    assert_eq!(said, "purged softly 1 of 1 keys\n");
                }
                2 => perl_purges(&tested, &format!("soft => 1, keys => ['{target}']")),
                _ => perl_purges(&tested, &format!("soft => 1, prefixes => '{}'", &target[..5])),
            }
            let next = client.get(target);
            assert!(status(&next).starts_with("Kirin; fwd=stale"), "{kind} {target}: {}", next.head);
            call += 1;
        }
    }
}

fn perl_purges(tested: &Tested, what: &str) {
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../adapters/perl/lib");
    let address = format!("unix:{}", tested.site.path("m.sock").display());
    let code = format!(
        "my $s = Kirin::Store->new(address => '{address}'); my $n = $s->purge({what}) // die $s->error; print $n"
    );
    let output =
        Command::new("perl").args(["-I", library, "-MKirin::Store", "-e", &code]).output().expect("perl");
    assert_eq!(String::from_utf8_lossy(&output.stdout), "1", "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn an_application_purges_by_key_prefix_and_tag() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    for (purge, is_left) in [
        ("keys=%22/blog/a?cc=max-age=60%26Surrogate-Key=t%22", [false, true]),
        ("prefixes=%22/blog/%22", [false, false]),
        ("prefixes=%22/news/%22", [true, true]),
        ("tags=%22t%22", [false, true]),
    ] {
        let pages = ["/blog/a?cc=max-age=60&Surrogate-Key=t", "/blog/b?cc=max-age=60"];
        for page in pages {
            client.get(page);
        }
        let reply = client.post(&format!("/purge?Kirin-Purge={purge}"), "text/plain", b"x");
        assert_eq!((reply.status, reply.field("kirin-purge")), (200, None));
        assert_eq!(pages.map(|page| is_hit(&client.get(page))), is_left, "{purge}");
    }
}

#[test]
fn what_was_purged_while_it_was_made_is_not_kept() {
    let tested = serve();
    let target = "/race?cc=max-age=60&wait=go";
    let clients = at_once(&tested, 1, target);
    wait_for("the call", || (tested.count("/race") == 1).then_some(()));
    // What it is made from changes.
    assert_eq!(tested.kirin.connect().post(target, "text/plain", b"x").status, 200);
    tested.touch("go");
    clients.into_iter().for_each(|client| assert_eq!(client.join().unwrap().text(), "call 1"));
    assert_eq!(tested.kirin.get(target).text(), "call 3");
    assert!(is_hit(&tested.kirin.get(target)));
}

/// Many GETs of `target` at once, each by a connection of its own.
fn at_once(tested: &Tested, count: usize, target: &str) -> Vec<thread::JoinHandle<Reply>> {
    (0..count)
        .map(|_| {
            let (mut client, target) = (tested.kirin.connect(), target.to_owned());
            thread::spawn(move || client.get(&target))
        })
        .collect()
}

#[test]
fn one_request_goes_to_the_application_and_all_get_what_it_brings() {
    let tested = serve();
    let target = "/one?cc=max-age=60&wait=go";
    let clients = at_once(&tested, 30, target);
    wait_for("the call", || (tested.count("/one") == 1).then_some(()));
    let others = at_once(&tested, 30, target);
    tested.touch("go");
    let replies: Vec<Reply> =
        clients.into_iter().chain(others).map(|client| client.join().unwrap()).collect();
    for reply in &replies {
        assert_eq!((reply.status, reply.text().as_str()), (200, "call 1"));
    }
    assert_eq!(tested.count("/one"), 1);
    assert_eq!(replies.iter().filter(|reply| status(reply).contains("stored")).count(), 1);
}

#[test]
fn those_who_waited_for_what_is_not_for_them_go_all_at_once() {
    let tested = serve();
    // Each call but the first waits until there are four: one after the other they would never end.
    let target = "/each?cc=private&wait=go&all=4";
    let first = at_once(&tested, 1, target);
    wait_for("the call", || (tested.count("/each") == 1).then_some(()));
    let others = at_once(&tested, 3, target);
    tested.touch("go");
    let mut texts: Vec<String> =
        first.into_iter().chain(others).map(|client| client.join().unwrap().text()).collect();
    texts.sort_unstable();
    assert_eq!(texts, ["call 1", "call 2", "call 3", "call 4"]);
    // From now on nobody waits at all.
    let target = "/known?cc=private&wait=free";
    tested.touch("free");
    tested.kirin.get(target);
    std::fs::remove_file(tested.site.path("free")).unwrap();
    let clients = at_once(&tested, 5, target);
    wait_for("all of them at the application", || (tested.count("/known") == 6).then_some(()));
    tested.touch("free");
    clients.into_iter().for_each(|client| assert_eq!(client.join().unwrap().status, 200));
}

#[test]
fn waiting_ends_when_the_route_says_so() {
    let tested = serve();
    let target = "/hasty?cc=max-age=60&wait=go";
    let clients = at_once(&tested, 3, target);
    wait_for("all of them at the application", || (tested.count("/hasty") == 3).then_some(()));
    tested.touch("go");
    clients.into_iter().for_each(|client| assert_eq!(client.join().unwrap().status, 200));
}

#[test]
fn a_body_is_sent_as_it_comes_and_whole_to_all_others() {
    let tested = serve();
    let target = "/stream?cc=max-age=60&kind=stream";
    let mut first = tested.kirin.connect();
    first.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
    // The application has not gone on.
    first.read_until(b"first ");
    let others = at_once(&tested, 3, target);
    tested.touch("go");
    first.read_until(b"call 1");
    for other in others {
        assert_eq!(other.join().unwrap().text(), "first call 1");
    }
    assert!(is_hit(&tested.kirin.get(target)));
    assert_eq!(tested.count("/stream"), 1);
}

#[test]
fn a_client_that_goes_takes_nothing_from_others() {
    let tested = serve();
    let target = "/gone?cc=max-age=60&kind=stream";
    let mut first = tested.kirin.connect();
    first.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
    first.read_until(b"first ");
    first.reset();
    let others = at_once(&tested, 3, target);
    tested.touch("go");
    for other in others {
        assert_eq!(other.join().unwrap().text(), "first call 1");
    }
    assert_eq!(tested.count("/gone"), 1);
}

#[test]
fn a_body_that_is_cut_is_cut_for_the_client_and_never_kept() {
    let tested = serve();
    let target = "/cut?cc=max-age=60&kind=cut";
    tested.touch("go");
    for call in 1..=2 {
        let mut client = tested.kirin.connect();
        client.send(format!("GET {target} HTTP/1.1\r\nHost: test\r\n\r\n"));
        let received = String::from_utf8_lossy(&client.read_to_end()).into_owned();
        assert!(received.contains("first ") && !received.ends_with("0\r\n\r\n"), "{received}");
        assert_eq!(tested.count("/cut"), call);
    }
}

#[test]
fn what_is_too_large_goes_through_and_is_not_kept() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    tested.touch("go");
    for (target, bytes) in [
        ("/some/large?bytes=20000", 20_000),
        ("/some/stream?bytes=5000&kind=stream&times=10", 50_006),
        ("/huge?cc=max-age=60&bytes=1000000&kind=stream&times=5", 5_000_006),
    ] {
        for _ in 0..2 {
            let reply = client.get(target);
            assert_eq!(reply.body.len(), bytes, "{target}");
            assert!(!is_hit(&reply), "{target}");
        }
    }
    assert_eq!(client.get("/some/small?bytes=5000").body.len(), 5000);
    assert!(is_hit(&client.get("/some/small?bytes=5000")));
}

#[test]
fn a_route_says_what_is_kept_of_responses_that_do_not() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    client.get("/some/plain");
    assert!((3500..=3600).contains(&ttl(&client.get("/some/plain"))));
    client.get("/some/missing?status=404");
    let missing = client.get("/some/missing?status=404");
    assert!(missing.status == 404 && (590..=600).contains(&ttl(&missing)), "{}", missing.head);
    client.get("/some/error?status=500");
    assert!(!is_hit(&client.get("/some/error?status=500")));
    client.get("/some/private?cc=private");
    assert!(!is_hit(&client.get("/some/private?cc=private")));
}

#[test]
fn a_route_says_what_goes_past_and_what_makes_no_difference() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    assert_eq!(client.get("/some/page?x=1&utm_source=a").text(), "call 1");
    assert!(tested.calls()[0].starts_with("GET /some/page x=1 "), "{:?}", tested.calls());
    for target in ["/some/page?x=1", "/some/page?utm_medium=b&x=1", "/some/page?x=1&utm_source=c"] {
        assert!(is_hit(&client.get(target)), "{target}");
    }
    for (target, field) in [
        ("/some/page?x=1&preview", ""),
        ("/some/page?x=1", "Cookie: a=b; admin=1\r\n"),
        ("/some/page?x=1", "x-preview: yes\r\n"),
    ] {
        let reply = client.request("GET", target, field);
        assert_eq!(status(&reply), "Kirin; fwd=bypass", "{target} {field}");
    }
    assert!(is_hit(&client.get("/some/page?x=1")));
}

#[test]
fn what_is_asked_for_once_takes_memory_once_and_pushes_out_nothing_that_visitors_come_back_for() {
    let site = Site::new().with("app.psgi", APP);
    let kirin = Kirin::start(&site, &CONFIG.replace("16MB", "2MB"));
    let tested = Tested { site, kirin };
    let mut client = tested.kirin.connect();
    let target_of = |page: usize, bytes: usize| format!("/page?cc=max-age=3600&bytes={bytes}&page={page}");
    let target = |page: usize| target_of(page, 8000);
    let bytes = || -> usize {
        let mut memcached = tested.memcached();
        memcached.send("stats\r\n");
        let line =
            std::iter::repeat_with(|| memcached.line()).find(|line| line.starts_with("STAT bytes ")).unwrap();
        line["STAT bytes ".len()..].trim().parse().expect("a number")
    };
    for _ in 0..3 {
        (0..20).for_each(|page| assert_eq!(client.get(&target(page)).body.len(), 8000));
    }
    let before = bytes();
    // So small that they share the store's pages.
    for page in 1000..1100 {
        client.get(&target_of(page, 3500));
    }
    let grown = bytes() - before;
    assert!(grown < 100 * 6_000, "{grown} bytes more for 100 pages of 3,500");
    // A crawler, through four times as much as there is room for.
    for page in 2000..3000 {
        client.get(&target(page));
    }
    let kept = (0..20).filter(|&page| is_hit(&client.get(&target(page)))).count();
    assert!(kept >= 18, "{kept} of 20 are still there");
}

#[test]
fn hits_are_compressed_once_and_validated_by_the_tag_that_the_client_has() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/zip?cc=max-age=60&ETag=%22e%22&bytes=5000";
    let plain = client.get(target);
    assert_eq!(plain.body.len(), 5000);
    let reply = client.request("GET", target, "Accept-Encoding: gzip\r\n");
    assert!(is_hit(&reply), "{}", reply.head);
    assert_eq!((reply.field("content-encoding"), reply.field("etag")), (Some("gzip"), Some("\"e-gzip\"")));
    assert!(reply.field("vary").is_some_and(|vary| vary.contains("Accept-Encoding")), "{}", reply.head);
    let mut body = Vec::new();
    flate2::read::GzDecoder::new(&reply.body[..]).read_to_end(&mut body).expect("gzip");
    assert_eq!(body, plain.body);
    let fields = "Accept-Encoding: gzip\r\nIf-None-Match: \"e-gzip\"\r\n";
    let not_modified = client.request("GET", target, fields);
    assert_eq!((not_modified.status, not_modified.field("etag")), (304, Some("\"e-gzip\"")));
    // The same where the answer is not from memory.
    let other = "/zip/n?cc=no-cache&ETag=%22e%22&bytes=5000";
    client.get(other);
    let not_modified = client.request("GET", other, fields);
    assert_eq!(
        (not_modified.status, not_modified.field("etag")),
        (304, Some("\"e-gzip\"")),
        "{}",
        not_modified.head
    );
    let coded = client.request("GET", other, "Accept-Encoding: gzip\r\n");
    assert_eq!((coded.status, coded.field("content-encoding")), (200, Some("gzip")), "{}", coded.head);
    assert_eq!(tested.count("/zip"), 1);
}

#[test]
fn directives_in_what_is_kept_are_carried_out_for_each_request() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/ssi?cc=max-age=60&text=:%3C!--%23include+virtual=%22/part%22--%3E";
    assert_eq!(client.get(target).text(), "call 1:call 1");
    let reply = client.get(target);
    assert_eq!((reply.text().as_str(), is_hit(&reply)), ("call 1:call 2", true), "{}", reply.head);
    let part = client.request("GET", target, "Range: bytes=0-1\r\n");
    assert_eq!((part.status, part.text().as_str()), (200, "call 1:call 3"));
    assert_eq!(tested.count("/ssi"), 1);
}

#[test]
fn what_another_server_answers_is_kept_as_well() {
    let tested = serve();
    let site = Site::new();
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[[upstream]]\nname = \"web\"\nservers = [\"{}\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"proxy:web\"]\ncache = {{ ignore_query = [\"x\"] }}\n",
        tested.kirin.address()
    );
    let proxy = Kirin::start(&site, &config);
    let mut client = proxy.connect();
    // A route that keeps nothing itself.
    let target = "/off?cc=max-age=60&ETag=%22e%22&bytes=1000";
    let first = client.get(&format!("{target}&x=1"));
    assert!(first.body.len() == 1000 && status(&first).ends_with("stored"), "{}", first.head);
    let hit = client.get(&format!("{target}&x=2"));
    assert_eq!((is_hit(&hit), hit.body), (true, first.body));
    assert_eq!(client.request("GET", target, "If-None-Match: \"e\"\r\n").status, 304);
    assert_eq!(client.request("GET", target, "Range: bytes=0-9\r\n").status, 206);
    assert_eq!(tested.calls().len(), 1);
    assert!(!tested.calls()[0].contains("x="), "{:?}", tested.calls());
    for text in ["call 1", "call 1"] {
        assert_eq!(client.get("/off/n?cc=no-cache&ETag=%22e%22").text(), text);
    }
    assert_eq!(tested.count("/off/n"), 2);
}
