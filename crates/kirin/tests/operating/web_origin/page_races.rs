//! Pages that were begun before something else happened on another machine.

use std::sync::atomic::{AtomicBool, Ordering};

use kirin_tests::{Client, SetAtEnd, wait_for};

use super::{Machine, Two};

/// Lets the application of `a` begin a page with the tag `memo-7`, carries out `meanwhile` with
/// `b`, and lets the page end. Returns what the machines have under its key then.
fn stored_after(two: &Two, target: &str, meanwhile: impl FnOnce(&Machine)) -> [Option<Vec<u8>>; 2] {
    let mut slow = two.a.connect();
    for name in ["begun", "go"] {
        drop(std::fs::remove_file(two.a.site.path(name)));
    }
    slow.send(format!(
        "GET {target} HTTP/1.1\r\nHost: a\r\nX-Value: slow\r\n\
         X-Fields: Kirin-Store: ttl=300, tags=\"memo-7\"\r\n\r\n"
    ));
    two.a.wait_until_begun();
    meanwhile(&two.b);
    two.a.go();
    let reply = slow.read_reply();
    assert!(reply.status == 200 && reply.text().starts_with("slow"), "{}", reply.head);
    // The client has the end, so the page is stored or never will be.
    [&two.a, &two.b].map(|machine| machine.memcached().get(target))
}

/// Purges the page with a target on a machine.
type Purge = fn(&Machine, &str);

/// The ways to purge a page.
const PURGES: [(&str, Purge); 8] = [
    ("Kirin-Purge of the tag", |b, _| assert_eq!(b.purge("tags=\"memo-7\"").status, 200)),
    ("Kirin-Purge of the key", |b, target| {
        assert_eq!(b.purge(&format!("keys=\"{target}\"")).status, 200);
    }),
    ("Kirin-Purge of a prefix", |b, target| {
        assert_eq!(b.purge(&format!("prefixes=\"{}\"", &target[..4])).status, 200);
    }),
    ("PURGE", |b, target| assert_eq!(b.ask("PURGE", target, "").status, 200)),
    ("delete", |b, target| drop(b.memcached().delete(target))),
    ("md of the tag", |b, _| drop(b.memcached().send("md memo-7 Ptag\r\n").line())),
    ("flush_all", |b, _| assert_eq!(b.memcached().send("flush_all\r\n").line(), "OK")),
    ("Kirin::Store", |b, target| drop(b.perl("delete", target, ""))),
];

#[test]
fn a_page_that_was_begun_before_a_purge_elsewhere_is_stored_on_no_machine() {
    let two = Two::start();
    let mut kept = Vec::new();
    for (title, purge) in PURGES {
        for target in ["/slow/wait", "/slow/stream/waiting"] {
            let stored = stored_after(&two, target, |b| purge(b, target));
            if stored != [None, None] {
                kept.push(format!("{title}, {target}"));
            }
            // The next one is stored.
            two.a.memcached().delete(target);
            wait_for("the next page", || {
                let text = two.a.get_with(target, "Kirin-Store: ttl=300, tags=\"memo-7\"");
                assert!(text.starts_with("a "), "{text}");
                two.b.memcached().get(target)
            });
            assert_eq!(two.b.memcached().delete(target), "DELETED");
            two.a.wait_for_item(target, None);
        }
    }
    assert!(kept.is_empty(), "{kept:#?}");
}

#[test]
fn a_page_that_was_begun_before_a_purge_on_its_own_machine_is_stored_on_no_machine() {
    let two = Two::start();
    let mut kept = Vec::new();
    for (title, purge) in PURGES {
        // This needs no third worker.
        if title == "Kirin::Store" {
            continue;
        }
        if stored_after(&two, "/slow/wait", |_| purge(&two.a, "/slow/wait")) != [None, None] {
            kept.push(title);
        }
        two.b.memcached().delete("/slow/wait");
        two.a.wait_for_item("/slow/wait", None);
    }
    assert!(kept.is_empty(), "{kept:#?}");
}

#[test]
fn a_page_that_was_begun_before_a_soft_purge_elsewhere_is_stored_on_no_machine() {
    let two = Two::start();
    let mut kept = Vec::new();
    for names in ["tags=\"memo-7\"", "keys=\"/slow/wait\"", "prefixes=\"/slow/\""] {
        two.b.push("/other", "other", "ttl=300, tags=\"memo-7\"");
        let stored = stored_after(&two, "/slow/wait", |b| {
            assert_eq!(b.purge(&format!("{names}, soft")).status, 200);
        });
        if stored != [None, None] {
            kept.push(names);
        }
        for target in ["/slow/wait", "/other"] {
            two.b.memcached().delete(target);
            two.a.wait_for_item(target, None);
        }
    }
    assert!(kept.is_empty(), "{kept:#?}");
}

#[test]
fn a_page_is_stored_if_something_else_was_purged_meanwhile() {
    let two = Two::start();
    for target in ["/slow/wait", "/slow/stream/waiting"] {
        let stored = stored_after(&two, target, |b| {
            assert_eq!(b.purge("tags=\"memo-8\", keys=\"/\", prefixes=\"/slower\"").status, 200);
            b.push("/other", "other", "ttl=300");
        });
        assert!(stored.iter().all(Option::is_some), "{target}: {stored:?}");
        assert_eq!(two.b.memcached().delete(target), "DELETED");
        two.a.wait_for_item(target, None);
    }
}

#[test]
fn a_page_replaces_none_that_another_machine_has_stored_meanwhile() {
    let two = Two::start();
    for target in ["/slow/wait", "/slow/stream/waiting"] {
        let newer = b"text/html\r\nnewer".to_vec();
        let stored = stored_after(&two, target, |b| b.memcached().set(target, &newer));
        assert_eq!(stored, [Some(newer.clone()), Some(newer)], "{target}");
        assert_eq!((two.a.get(target), two.b.get(target)), ("newer".into(), "newer".into()));
    }
}

#[test]
fn a_page_that_purges_itself_is_stored_on_no_machine() {
    let Two { redis: _redis, a, b } = Two::start();
    let fields = "Kirin-Store: tags=\"memo-7\"|Kirin-Purge: tags=\"memo-7\"";
    assert_eq!(a.get_with("/page", fields), "a 1");
    assert_eq!((a.memcached().get("/page"), b.memcached().get("/page")), (None, None));
    let fields = "Kirin-Store: tags=\"memo-7\"|Kirin-Purge: tags=\"recent\"";
    assert_eq!(a.get_with("/page", fields), "a 2");
    // One that purges something else is.
    b.wait_for_text("/page", "a 2");
}

#[test]
fn a_change_is_shown_by_all_machines_however_many_readers_store_pages() {
    let Two { redis: _redis, a, b } = Two::start();
    let data = tempfile::tempdir().expect("a directory");
    let (file, next) = (data.path().join("value"), data.path().join("next"));
    let change = |value: usize| {
        std::fs::write(&next, value.to_string()).expect("a file");
        std::fs::rename(&next, &file).expect("the new data");
    };
    change(0);
    let store = "Kirin-Store: ttl=300, tags=\"value\"";
    let fields = format!("X-File: {}\r\nX-Fields: {store}\r\n", file.display());
    let show = |client: &mut Client| -> usize {
        let reply = client.request("GET", "/p/value", &fields);
        reply.text().parse().unwrap_or_else(|_| panic!("{}\n{}", reply.head, reply.text()))
    };
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for machine in [&a, &b, &a, &b] {
            let (is_over, show) = (&is_over, &show);
            scope.spawn(move || {
                let mut client = machine.connect();
                while !is_over.load(Ordering::Relaxed) {
                    show(&mut client);
                }
            });
        }
        let _over = SetAtEnd(&is_over);
        let names = ["tags=\"value\"", "keys=\"/p/value\"", "prefixes=\"/p/\""];
        let mut clients = [a.connect(), b.connect()];
        for value in 1..=100 {
            change(value);
            let own = value % 2;
            let purged = if own == 0 { &a } else { &b }.purge(names[value % 3]);
            assert_eq!(purged.status, 200);
            // Nothing that was made of older data is left, whoever has made it.
            assert_eq!(show(&mut clients[own]), value, "{}", names[value % 3]);
            wait_for("the change", || (show(&mut clients[1 - own]) == value).then_some(()));
            for client in &mut clients {
                assert_eq!(show(client), value, "it goes back, {}", names[value % 3]);
            }
        }
    });
    assert_eq!((a.get("/p/value"), b.get("/p/value")), ("100".into(), "100".into()));
}

#[test]
fn a_reader_sees_the_pages_of_both_machines_in_their_order() {
    let Two { redis: _redis, a, b } = Two::start();
    for round in 0..20 {
        // Each machine purges what the other has stored, and stores its own.
        for (own, other) in [(&a, &b), (&b, &a)] {
            assert_eq!(own.purge("keys=\"/page\"").status, 200);
            let text = format!("{round} of {}", own.runs());
            own.push("/page", &text, "ttl=300");
            assert_eq!(own.get("/page"), text);
            other.wait_for_text("/page", &text);
        }
    }
}
