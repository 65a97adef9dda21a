//! Responses that the cache of a route keeps. They stay on their machine, but what makes them
//! invalid does so on all machines.

use std::thread;

use kirin_tests::{Reply, wait_for};

use super::purging::{Names, WAYS};
use super::{Machine, Two, count_of_commands};

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

/// Waits until the cache of a machine does not have a response any more. That it asks for it makes
/// a new one.
fn wait_until_dropped(machine: &Machine, target: &str, tag: &str, what: &str) {
    let missing = format!("{target} to be dropped after {what}");
    wait_for(&missing, || (!is_hit(&ask(machine, target, tag))).then_some(()));
}

#[test]
fn cached_responses_stay_on_their_machine() {
    let Two { redis, a, b } = Two::start();
    for _ in 0..2 {
        assert_eq!(ask(&a, "/cached/page", "t").text(), "a 1");
        assert_eq!(ask(&b, "/cached/page", "t").text(), "b 1");
    }
    assert_eq!(redis.command(&["KEYS", "kirin:i:*"]), "", "no response is on the server");
    let commands = count_of_commands(&redis);
    for machine in [&a, &b] {
        assert!(is_hit(&ask(machine, "/cached/page", "t")));
    }
    assert_eq!(count_of_commands(&redis), commands, "a hit costs no trip");
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
    let store = "Kirin-Store: ttl=300, tags=\"t\"|Cache-Control: max-age=300";
    assert_eq!(a.get_with("/both/other", store), "a 1");
    assert_eq!(b.get("/both/other"), "a 1");
    assert_eq!(b.runs(), 1);
    assert_eq!(a.purge("tags=\"t\"").status, 200);
    wait_for("the page to be gone", || b.get("/both/other").starts_with("b ").then_some(()));
    wait_until_dropped(&b, "/both/page", "t", "Kirin-Purge");
}

#[test]
fn a_purge_by_any_way_drops_the_cached_responses_of_all_machines() {
    let Two { redis: _redis, a, b } = Two::start();
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
            for machine in [&a, &b] {
                keep(machine, &page, &tag);
                keep(machine, &other, "another");
            }
            let name = match names {
                Names::Keys => page.clone(),
                Names::Prefixes => format!("/cached/{names}-{number}/p"),
                Names::Tags => tag.clone(),
            };
            way(&a, names, &name, false);
            assert!(!is_hit(&ask(&a, &page, &tag)), "{what}");
            wait_until_dropped(&b, &page, &tag, &what);
            for machine in [&a, &b] {
                assert!(is_hit(&ask(machine, &other, "another")), "{what}");
                keep(machine, &page, &tag);
            }
            // Only the machine that purges has never had this one.
            let (target, tag) = (format!("{page}?b"), format!("only-b-{number}"));
            keep(&b, &target, &tag);
            let name = match names {
                Names::Keys => target.clone(),
                Names::Prefixes => name,
                Names::Tags => tag.clone(),
            };
            way(&a, names, &name, false);
            wait_until_dropped(&b, &target, &tag, &what);
        }
    }
}

#[test]
fn a_soft_purge_drops_the_cached_responses_of_all_machines() {
    let Two { redis: _redis, a, b } = Two::start();
    let target = "/cached/page";
    for names in [Names::Keys, Names::Prefixes, Names::Tags] {
        let name = if names == Names::Tags { "t" } else { target };
        for machine in [&a, &b] {
            keep(machine, target, "t");
        }
        let reply = a.purge(&format!("{names}=\"{name}\", soft"));
        assert_eq!(reply.status, 200);
        for machine in [&a, &b] {
            wait_until_dropped(machine, target, "t", &format!("{names}"));
        }
    }
}

#[test]
fn an_unsafe_request_on_one_machine_drops_the_response_on_all() {
    let Two { redis: _redis, a, b } = Two::start();
    let (list, post, other) = ("/cached/list", "/cached/posts/7", "/cached/other");
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        for machine in [&a, &b] {
            [list, post, other].iter().for_each(|target| keep(machine, target, "t"));
        }
        let failing = a.ask(method, other, "X-Status: 400\r\nContent-Length: 0\r\n");
        assert_eq!(failing.status, 400);
        let fields =
            format!("X-Status: 201\r\nX-Fields: Location: {post}\r\nContent-Length: 0\r\n");
        assert_eq!(a.ask(method, list, &fields).status, 201);
        for target in [list, post] {
            assert!(!is_hit(&ask(&a, target, "t")), "{method} {target}");
            wait_until_dropped(&b, target, "t", method);
        }
        for machine in [&a, &b] {
            assert!(
                is_hit(&ask(machine, other, "t")),
                "{method}: a failed request changes nothing"
            );
        }
    }
    // A target that this machine has never been asked for.
    keep(&b, "/cached/only-b", "t");
    a.ask("POST", "/cached/only-b", "Content-Length: 0\r\n");
    wait_until_dropped(&b, "/cached/only-b", "t", "POST");
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
