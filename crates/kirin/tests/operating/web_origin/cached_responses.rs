//! Responses that the cache of a route keeps. What one machine has stored, all machines serve, and
//! what makes it invalid does so on all machines.

use std::thread;

use kirin_tests::{RedisServer, Reply, wait_for};

use super::purging::{Names, WAYS};
use super::{CALM, Machine, Two, address_of, count_of_commands};

/// Returns the fields for a response with a tag that the cache keeps.
fn fields(tag: &str) -> String {
    format!("X-Fields: Cache-Control: max-age=300|Surrogate-Key: {tag}\r\n")
}

fn ask(machine: &Machine, target: &str, tag: &str) -> Reply {
    machine.ask("GET", target, &fields(tag))
}

fn is_hit(reply: &Reply) -> bool {
    let status = reply.field("cache-status");
    status.unwrap_or_else(|| panic!("no Cache-Status: {}", reply.head)).starts_with("Kirin; hit")
}

/// Lets the cache of a machine keep a response.
fn keep(machine: &Machine, target: &str, tag: &str) {
    let missing = format!("{target} to be kept");
    wait_for(&missing, || is_hit(&ask(machine, target, tag)).then_some(()));
}

/// Waits until the server has a response with this body.
fn wait_until_shared(redis: &RedisServer, target: &str, text: &str) {
    const FIND: &str = "local found = ''
        for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
            found = found .. redis.call('GET', key)
        end
        return found";
    let pattern = format!("kirin:i:*{target}*");
    let is_there = || redis.command(&["EVAL", FIND, "0", &pattern]).contains(text);
    wait_for(&format!("{target} to be shared"), || is_there().then_some(()));
}

/// Lets all machines have a response in their caches. Returns its body.
fn keep_everywhere(two: &Two, target: &str, tag: &str) -> String {
    let text = ask(&two.a, target, tag).text();
    wait_until_shared(&two.redis, target, &text);
    for machine in [&two.a, &two.b] {
        let missing = format!("{text:?} of {target} everywhere");
        wait_for(&missing, || {
            let reply = ask(machine, target, tag);
            (is_hit(&reply) && reply.text() == text).then_some(())
        });
    }
    text
}

/// Waits until a machine does not serve the response with this body any more.
fn wait_until_dropped(machine: &Machine, target: &str, tag: &str, text: &str, what: &str) {
    let missing = format!("{target} to be dropped after {what}");
    wait_for(&missing, || (ask(machine, target, tag).text() != text).then_some(()));
}

#[test]
fn a_response_that_one_machine_has_cached_is_served_by_all() {
    let two = Two::start();
    let Two { redis, a, b } = &two;
    assert_eq!(ask(a, "/cached/page", "t").text(), "a 1");
    wait_until_shared(redis, "/cached/page", "a 1");
    let reply = ask(b, "/cached/page", "t");
    assert_eq!((is_hit(&reply), reply.text().as_str()), (true, "a 1"), "{}", reply.head);
    assert!(reply.field("age").is_some(), "{}", reply.head);
    assert_eq!((a.runs(), b.runs()), (1, 0));
    // Conditions and ranges are answered by what another machine has made, too.
    let range = b.ask("GET", "/cached/page", "Range: bytes=2-2\r\n");
    assert_eq!((range.status, range.text().as_str()), (206, "1"));
    assert_eq!(keep_everywhere(&two, "/cached/page", "t"), "a 1");
    let commands = count_of_commands(redis);
    for machine in [a, b] {
        assert!(is_hit(&ask(machine, "/cached/page", "t")));
    }
    assert_eq!(count_of_commands(redis), commands, "a hit costs no trip");
}

#[test]
fn a_part_of_what_another_machine_has_cached_is_served_by_all() {
    let Two { redis, a, b } = Two::start();
    assert_eq!(ask(&a, "/cached/page", "t").text(), "a 1");
    wait_until_shared(&redis, "/cached/page", "a 1");
    let range = b.ask("GET", "/cached/page", "Range: bytes=0-0\r\n");
    assert_eq!((range.status, range.text().as_str()), (206, "a"));
    assert_eq!(b.runs(), 0);
}

#[test]
fn a_long_response_stays_on_its_machine() {
    let redis = RedisServer::start();
    let store = format!("origin = {:?}\n{CALM}", address_of(&redis));
    let [a, b] = ["a", "b"].map(|name| {
        let roomy = |config: String| config.replace("100KB", "4MB");
        Machine::start_with(name, &store, "", roomy).connected(1)
    });
    let fields = "X-File: long\r\nX-Fields: Cache-Control: max-age=300\r\n";
    for (machine, letter) in [(&a, "a"), (&b, "b")] {
        std::fs::write(machine.site.path("long"), letter.repeat((1 << 20) + 1)).expect("a file");
        let text = machine.ask("GET", "/cached/value", fields).text();
        assert!(text.starts_with(letter) && text.len() == (1 << 20) + 1);
        let reply = machine.ask("GET", "/cached/value", fields);
        assert!(is_hit(&reply) && reply.text() == text, "{}", reply.head);
    }
    // What comes later is there.
    let text = ask(&b, "/cached/short", "t").text();
    wait_until_shared(&redis, "/cached/short", &text);
    assert_eq!(redis.command(&["KEYS", "kirin:i:*/cached/value*"]), "");
}

#[test]
fn each_variant_is_made_by_one_machine() {
    let Two { redis, a, b } = Two::start();
    let in_language = |machine: &Machine, language: &str| {
        let fields = "X-Fields: Cache-Control: max-age=300|Vary: Accept-Language\r\n";
        machine.ask("GET", "/cached/page", &format!("{fields}Accept-Language: {language}\r\n"))
    };
    assert_eq!(in_language(&a, "ja").text(), "a 1");
    // Kirin writes the names of the fields after the response.
    wait_until_shared(&redis, "/cached/page", "a 1");
    wait_until_shared(&redis, "/cached/page", "accept-language");
    assert_eq!(in_language(&b, "en").text(), "b 1");
    assert_eq!(in_language(&b, "ja").text(), "a 1");
    wait_until_shared(&redis, "/cached/page", "b 1");
    assert_eq!(in_language(&a, "en").text(), "b 1");
    assert_eq!((a.runs(), b.runs()), (1, 1));
}

#[test]
fn what_may_not_be_shared_is_not_on_the_server() {
    let Two { redis, a, b } = Two::start();
    for fields in
        ["Cache-Control: private, max-age=300", "Cache-Control: no-store", "Set-Cookie: a=b"]
    {
        let fields = format!("X-Fields: {fields}\r\n");
        for machine in [&a, &b] {
            let runs = machine.runs();
            assert!(!is_hit(&machine.ask("GET", "/cached/own", &fields)), "{fields}");
            assert_eq!(machine.runs(), runs + 1, "{fields}");
        }
    }
    assert_eq!(redis.command(&["KEYS", "kirin:i:*"]), "");
}

#[test]
fn a_response_that_one_machine_has_revalidated_is_fresh_on_all() {
    let Two { redis, a, b } = Two::start();
    let with_tag = "X-Fields: Cache-Control: max-age=300|ETag: \"v\"|Surrogate-Key: t\r\n";
    assert_eq!(a.ask("GET", "/cached/page", with_tag).text(), "a 1");
    wait_until_shared(&redis, "/cached/page", "a 1");
    assert!(is_hit(&b.ask("GET", "/cached/page", with_tag)));
    assert_eq!(a.purge("tags=\"t\", soft").status, 200);
    let missing = "the response to be stale on the other machine";
    let revalidated = wait_for(missing, || {
        let reply = b.ask("GET", "/cached/page", &format!("X-Status: 304\r\n{with_tag}"));
        (!is_hit(&reply)).then_some(reply)
    });
    let status = revalidated.field("cache-status").unwrap_or_default().to_owned();
    assert!(status.contains("fwd=stale; fwd-status=304"), "{status}");
    assert_eq!((revalidated.status, revalidated.text().as_str()), (200, "a 1"));
    let runs = a.runs();
    let missing = "the response to be fresh on the first machine";
    wait_for(missing, || {
        // Without the status, a request that comes too early would get another body.
        let reply = a.ask("GET", "/cached/page", &format!("X-Status: 304\r\n{with_tag}"));
        assert_eq!(reply.text(), "a 1");
        is_hit(&reply).then_some(())
    });
    assert!(a.runs() <= runs + 1, "{} runs", a.runs() - runs);
}

#[test]
fn clients_that_ask_together_are_one_call_of_the_application() {
    let Two { redis: _redis, a: _a, b } = Two::start();
    let mut clients: Vec<_> = (0..10).map(|_| b.connect()).collect();
    for client in &mut clients {
        let fields = fields("t");
        client.send(format!("GET /cached/wait HTTP/1.1\r\nHost: test\r\n{fields}\r\n"));
    }
    b.wait_until_begun();
    b.go();
    for client in &mut clients {
        assert_eq!(client.read_reply().text(), "b 1");
    }
    assert_eq!(b.runs(), 1);
    assert!(is_hit(&ask(&b, "/cached/wait", "t")));
}

#[test]
fn a_route_with_a_cache_serves_the_pages_of_the_server() {
    let Two { redis: _redis, a, b } = Two::start();
    // The cache keeps what the application has made here, until a page is there.
    keep(&b, "/both/page", "t");
    let store = "Kirin-Store: ttl=300, tags=\"t\"|Surrogate-Key: t|Cache-Control: max-age=300";
    assert_eq!(a.get_with("/both/other", store), "a 1");
    assert_eq!(b.get("/both/other"), "a 1");
    assert_eq!(b.runs(), 1);
    assert_eq!(a.purge("tags=\"t\"").status, 200);
    wait_for("the page to be gone", || b.get("/both/other").starts_with("b ").then_some(()));
    wait_until_dropped(&b, "/both/page", "t", "b 1", "Kirin-Purge");
}

#[test]
fn a_purge_by_any_way_drops_the_cached_responses_of_all_machines() {
    let two = Two::start();
    let Two { a, b, .. } = &two;
    for (number, (title, way)) in WAYS.iter().enumerate() {
        for names in [Names::Keys, Names::Prefixes, Names::Tags] {
            // A memcached client names them by their tags only (docs/purge.md).
            if *title == "a memcached client" && names != Names::Tags {
                continue;
            }
            let what = format!("{title} of {names}");
            let page = format!("/cached/{names}-{number}/page");
            let other = format!("/cached/{names}-{number}/other");
            let tag = format!("tag-{number}");
            let old = keep_everywhere(&two, &page, &tag);
            let kept = keep_everywhere(&two, &other, "another");
            let name = match names {
                Names::Keys => page.clone(),
                Names::Prefixes => format!("/cached/{names}-{number}/p"),
                Names::Tags => tag.clone(),
            };
            way(a, names, &name, false);
            assert_ne!(ask(a, &page, &tag).text(), old, "{what}");
            wait_until_dropped(b, &page, &tag, &old, &what);
            for machine in [a, b] {
                let reply = ask(machine, &other, "another");
                assert_eq!((is_hit(&reply), reply.text()), (true, kept.clone()), "{what}");
            }
            // The machine that purges has never had this one.
            let (target, tag) = (format!("{page}?b"), format!("only-b-{number}"));
            let old = ask(b, &target, &tag).text();
            keep(b, &target, &tag);
            let name = match names {
                Names::Keys => target.clone(),
                Names::Prefixes => name,
                Names::Tags => tag.clone(),
            };
            way(a, names, &name, false);
            wait_until_dropped(b, &target, &tag, &old, &what);
        }
    }
}

#[test]
fn a_soft_purge_makes_the_cached_responses_of_all_machines_stale() {
    let two = Two::start();
    let Two { a, b, .. } = &two;
    for names in [Names::Keys, Names::Prefixes, Names::Tags] {
        let target = format!("/cached/{names}");
        let name = if names == Names::Tags { "t" } else { &target };
        let old = keep_everywhere(&two, &target, "t");
        let reply = a.purge(&format!("{names}=\"{name}\", soft"));
        assert_eq!(reply.status, 200);
        for machine in [a, b] {
            wait_until_dropped(machine, &target, "t", &old, &format!("{names}"));
        }
    }
}

#[test]
fn a_stale_response_of_another_machine_is_served_while_it_is_renewed() {
    let Two { redis, a, b } = Two::start();
    let fields = "X-Fields: Surrogate-Key: t|Cache-Control: max-age=300, \
                  stale-while-revalidate=300\r\n";
    assert_eq!(a.ask("GET", "/cached/page", fields).text(), "a 1");
    wait_until_shared(&redis, "/cached/page", "a 1");
    assert_eq!(a.purge("tags=\"t\", soft").status, 200);
    // It has no copy, so it loads the stale one.
    let reply = b.ask("GET", "/cached/page", fields);
    assert_eq!((is_hit(&reply), reply.text().as_str()), (true, "a 1"), "{}", reply.head);
    wait_for("the response to be renewed", || {
        (b.ask("GET", "/cached/page", fields).text() == "b 1").then_some(())
    });
    wait_until_shared(&redis, "/cached/page", "b 1");
    assert_eq!(a.ask("GET", "/cached/page", fields).text(), "b 1");
}

#[test]
fn an_unsafe_request_on_one_machine_drops_the_response_on_all() {
    let two = Two::start();
    let Two { a, b, .. } = &two;
    let (list, post, other) = ("/cached/list", "/cached/posts/7", "/cached/other");
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let [old_list, old_post, kept] =
            [list, post, other].map(|target| keep_everywhere(&two, target, "t"));
        let failing = a.ask(method, other, "X-Status: 400\r\nContent-Length: 0\r\n");
        assert_eq!(failing.status, 400);
        let fields =
            format!("X-Status: 201\r\nX-Fields: Location: {post}\r\nContent-Length: 0\r\n");
        assert_eq!(a.ask(method, list, &fields).status, 201);
        for (target, old) in [(list, &old_list), (post, &old_post)] {
            assert_ne!(&ask(a, target, "t").text(), old, "{method} {target}");
            wait_until_dropped(b, target, "t", old, method);
        }
        for machine in [a, b] {
            let reply = ask(machine, other, "t");
            let found = (is_hit(&reply), reply.text());
            assert_eq!(found, (true, kept.clone()), "{method}: a failed request changes nothing");
        }
    }
    // A target that this machine has never been asked for.
    let old = ask(b, "/cached/only-b", "t").text();
    keep(b, "/cached/only-b", "t");
    a.ask("POST", "/cached/only-b", "Content-Length: 0\r\n");
    wait_until_dropped(b, "/cached/only-b", "t", &old, "POST");
}

/// Returns how the body of a response that is fetched on `b` differs from the next one, if `change`
/// is carried out on `a` meanwhile.
fn bodies_around(two: &Two, target: &str, change: impl FnOnce(&Machine)) -> [String; 2] {
    for name in ["begun", "go"] {
        drop(std::fs::remove_file(two.b.site.path(name)));
    }
    let mut client = two.b.connect();
    let request = format!("GET {target} HTTP/1.1\r\nHost: test\r\n{}\r\n", fields("race"));
    client.send(request);
    two.b.wait_until_begun();
    change(&two.a);
    two.b.go();
    let first = client.read_reply().text();
    wait_for("the response to be made again", || {
        let text = ask(&two.b, target, "race").text();
        (text != first).then_some(())
    });
    keep(&two.b, target, "race");
    [first, ask(&two.b, target, "race").text()]
}

#[test]
fn a_response_that_is_purged_elsewhere_while_it_is_fetched_is_not_kept() {
    let two = Two::start();
    type Purge = fn(&Machine);
    let changes: [(&str, Purge); 4] = [
        ("the tag", |a| assert_eq!(a.purge("tags=\"race\"").status, 200)),
        ("the key", |a| assert_eq!(a.purge("keys=\"/cached/key/wait\"").status, 200)),
        ("a prefix", |a| assert_eq!(a.ask("PURGE", "/cached/prefix/*", "").status, 200)),
        ("POST", |a| {
            // Its application need not wait.
            a.go();
            let reply = a.ask("POST", "/cached/post/wait", "Content-Length: 0\r\n");
            assert_eq!(reply.status, 200);
        }),
    ];
    let targets =
        ["/cached/tag/wait", "/cached/key/wait", "/cached/prefix/wait", "/cached/post/wait"];
    for ((title, change), target) in changes.into_iter().zip(targets) {
        let [first, second] = bodies_around(&two, target, change);
        assert_ne!(first, second, "{title}");
    }
}

#[test]
fn purges_of_other_names_keep_no_response_from_the_cache() {
    let two = Two::start();
    let target = "/cached/wait";
    let (b, request) = (&two.b, fields("own"));
    thread::scope(|scope| {
        let slow = scope.spawn(|| b.ask("GET", target, &request).text());
        b.wait_until_begun();
        for number in 0..50 {
            let names = format!("tags=\"t{number}\", keys=\"/other/{number}\"");
            assert_eq!(two.a.purge(&names).status, 200);
        }
        b.go();
        assert_eq!(slow.join().expect("a text"), "b 1");
    });
    let reply = ask(b, target, "own");
    assert!(is_hit(&reply) && reply.text() == "b 1", "{}", reply.head);
}
