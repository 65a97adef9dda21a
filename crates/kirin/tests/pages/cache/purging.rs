//! Purges and invalidation of stored responses.

use std::process::Command;

use base64::Engine as _;
use kirin_tests::{Client, Kirin, Site, run_kirin, wait_for};

use super::{APP, CONFIG, Tested, at_once, is_hit, serve, status};

#[test]
fn an_unsafe_request_invalidates_the_targets_that_it_names() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let (list, post, other) =
        ("/list?cc=max-age=60", "/posts/7?cc=max-age=60", "/other?cc=max-age=60");
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
    client.post(
        "/new?status=303&Location=http://elsewhere/posts/7%3Fcc%3Dmax-age%3D60",
        "text/plain",
        b"x",
    );
    assert!(is_hit(&client.get(post)));
}

#[test]
fn cached_responses_can_be_purged_by_tag_and_by_target() {
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
    // No request finds them by their targets.
    assert_eq!(memcached.get(target), None);
    assert_eq!(memcached.send("flush_all\r\n").line(), "OK");
    assert_eq!(hits(&mut client), [false; 2]);
}

#[test]
fn a_soft_purge_only_marks_a_response_as_stale() {
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
    assert!(
        status(&validated).starts_with("Kirin; fwd=stale; fwd-status=304"),
        "{}",
        validated.head
    );
    assert!(is_hit(&client.get(good)));
    assert_eq!(client.get(swr).text(), "call 1");
    wait_for("it to be made again", || (client.get(swr).text() == "call 2").then_some(()));
    // A validated response still has its tags.
    assert_eq!(memcached.send("md k Ptag\r\n").line(), "HD");
    assert!(!is_hit(&client.get(good)));
}

#[test]
fn a_soft_purge_works_alike_from_an_application_the_command_and_perl() {
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
                    // The purge uses the memcached port, because there is no admin listener.
                    let output = run_kirin(&tested.site, &["purge", "--soft", "--key", target]);
                    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat())
                        .into_owned();
                    assert_eq!(said, "purged softly 1 of 1 keys\n");
                }
                2 => perl_purges(&tested, &format!("soft => 1, keys => ['{target}']")),
                _ => perl_purges(&tested, &format!("soft => 1, prefixes => '{}'", &target[..5])),
            }
            let next = client.get(target);
            assert!(
                status(&next).starts_with("Kirin; fwd=stale"),
                "{kind} {target}: {}",
                next.head
            );
            call += 1;
        }
    }
}

#[test]
fn a_purge_of_one_key_from_perl_reaches_its_cached_responses() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let target = "/blog/a?cc=max-age=60";
    for what in ["'TARGET'", "keys => 'TARGET'"] {
        client.get(target);
        assert!(is_hit(&client.get(target)));
        perl_purges(&tested, &what.replace("TARGET", target));
        assert!(!is_hit(&client.get(target)), "{what}");
    }
}

fn perl_purges(tested: &Tested, what: &str) {
    let library = concat!(env!("CARGO_MANIFEST_DIR"), "/../../adapters/perl/lib");
    let address = format!("unix:{}", tested.site.path("m.sock").display());
    let code = format!(
        "my $s = Kirin::Store->new(address => '{address}'); my $n = $s->purge({what}) // die $s->error; print $n"
    );
    let output = Command::new("perl")
        .args(["-I", library, "-MKirin::Store", "-e", &code])
        .output()
        .expect("perl");
    assert_eq!(
        String::from_utf8_lossy(&output.stdout),
        "1",
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
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
fn a_response_purged_while_it_is_made_is_not_kept() {
    let tested = serve();
    let target = "/race?cc=max-age=60&wait=go";
    let clients = at_once(&tested, 1, target);
    wait_for("the call", || (tested.count("/race") == 1).then_some(()));
    // The application's data changes.
    assert_eq!(tested.kirin.connect().post(target, "text/plain", b"x").status, 200);
    tested.touch("go");
    clients.into_iter().for_each(|client| assert_eq!(client.join().unwrap().text(), "call 1"));
    assert_eq!(tested.kirin.get(target).text(), "call 3");
    assert!(is_hit(&tested.kirin.get(target)));
}

#[test]
fn purges_of_other_names_prevent_no_storing_and_end_no_waiting() {
    let tested = serve();
    let mut memcached = tested.memcached();
    let pages: Vec<String> = (0..4)
        .map(|page| format!("/busy/{page}?cc=max-age=60&Surrogate-Key=k{page}&wait=go"))
        .collect();
    let clients: Vec<_> = pages.iter().flat_map(|page| at_once(&tested, 4, page)).collect();
    wait_for("all pages to be asked for", || (tested.calls().len() == 4).then_some(()));
    let commands: Vec<String> = (0..2000)
        .map(|n| format!("delete other{n}\r\nmd other{n} Ptag\r\nmd /other/{n} Pprefix\r\n"))
        .collect();
    memcached.send(commands.concat());
    (0..6000).for_each(|_| drop(memcached.line()));
    assert_eq!(tested.kirin.connect().post("/busy/0?other", "text/plain", b"x").status, 200);
    let late: Vec<_> = pages.iter().flat_map(|page| at_once(&tested, 4, page)).collect();
    tested.touch("go");
    for client in clients.into_iter().chain(late) {
        let reply = client.join().unwrap();
        assert!(!status(&reply).contains("detail"), "{}", reply.head);
    }
    assert_eq!(tested.calls().len(), 5, "one for each page, and a POST: {:?}", tested.calls());
    for page in &pages {
        assert!(is_hit(&tested.kirin.get(page)), "{page}");
    }
}

#[test]
fn after_a_purge_one_of_the_waiting_requests_goes() {
    let tested = serve();
    let target = "/herd?cc=max-age=60&wait=go";
    let first = at_once(&tested, 1, target);
    wait_for("the call", || (tested.count("/herd") == 1).then_some(()));
    let others = at_once(&tested, 10, target);
    assert_eq!(tested.kirin.connect().post(target, "text/plain", b"x").status, 200);
    tested.touch("go");
    for client in first {
        let reply = client.join().unwrap();
        assert_eq!(
            (reply.text().as_str(), status(&reply)),
            ("call 1", "Kirin; fwd=uri-miss; detail=purged-while-fetched")
        );
    }
    others.into_iter().for_each(|client| assert_eq!(client.join().unwrap().text(), "call 3"));
    assert_eq!(tested.count("/herd"), 3);
}

#[test]
fn a_target_is_purged_however_it_is_spelt() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    let query = "cc=max-age=60";
    for (kept, named) in [
        ("/n/%e3%81%82", "/n/%E3%81%82"),
        ("/n/%E3%81%82", "/n/%e3%81%82"),
        ("/n/%7Eme", "/n/~me"),
        ("/n/~me", "/n/%7eme"),
        ("/n/%e3%81%82/%7E", "/n/%e3%81%82/%7E"),
    ] {
        let (kept, named) = (format!("{kept}?{query}"), format!("{named}?{query}"));
        let is_kept = |client: &mut Client| {
            client.get(&kept);
            is_hit(&client.get(&kept))
        };
        assert!(is_kept(&mut client), "{kept}");
        client.post(&named, "text/plain", b"x");
        assert!(!is_hit(&client.get(&kept)), "POST {named}");
        assert!(is_kept(&mut client), "{kept}");
        let purge = named.replace('%', "%25").replace('&', "%26");
        client.get(&format!("/purge?Kirin-Purge=keys=%22{purge}%22"));
        assert!(!is_hit(&client.get(&kept)), "{named}");
    }
    // Other targets must stay.
    assert!(!is_hit(&client.get("/n/a%2fb?cc=max-age=60")));
    client.post("/n/a/b?cc=max-age=60", "text/plain", b"x");
    assert!(is_hit(&client.get("/n/a%2fb?cc=max-age=60")));
}

#[test]
fn ignored_arguments_make_no_difference_to_an_unsafe_request() {
    let tested = serve();
    let mut client = tested.kirin.connect();
    client.get("/some/page?x=1&utm_source=a");
    assert!(is_hit(&client.get("/some/page?x=1")));
    client.post("/some/page?x=2&utm_source=b", "text/plain", b"x");
    assert!(is_hit(&client.get("/some/page?x=1")));
    client.post("/some/page?utm_source=b&x=1", "text/plain", b"x");
    assert!(!is_hit(&client.get("/some/page?x=1")));
}

#[test]
fn the_method_purge_names_both_targets_behind_a_rewrite() {
    let site = Site::new().with("app.psgi", APP);
    let config = format!(
        "{}[[route]]\npath = \"/pub\"\ntry = [\"app:web\"]\nrewrite = \"/app\"\ncache = true\n",
        CONFIG.replace("[store]\n", "[store]\npurge_from = [\"127.0.0.1\"]\n")
    );
    let kirin = Kirin::start(&site, &config);
    let mut client = kirin.connect();
    let target = "/pub/a?cc=max-age=60";
    let long = format!("/pub/{}?cc=max-age=60", "x".repeat(300));
    for (target, purged) in [
        (target, target),
        (target, "/pub/*"),
        (target, "http://test/pub/a?cc=max-age=60"),
        (&long, &long),
        ("/pub/%7Ea?cc=max-age=60", "/pub/~a?cc=max-age=60"),
    ] {
        client.get(target);
        assert!(is_hit(&client.get(target)), "{target}");
        let reply = client.request("PURGE", purged, "");
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert!(!is_hit(&client.get(target)), "{purged}: {}", reply.text());
    }
}
