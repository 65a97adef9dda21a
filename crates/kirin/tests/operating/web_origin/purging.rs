//! Purges on one machine: no machine serves what they name any more.

use std::fmt;

use kirin_tests::{RedisServer, run_kirin, wait_for};

use super::{Machine, Two, count_of_writes};

/// What a purge names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    Keys,
    Prefixes,
    Tags,
}

impl fmt::Display for Names {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Keys => "keys",
            Self::Prefixes => "prefixes",
            Self::Tags => "tags",
        })
    }
}

/// A way to purge what has a name, hard or softly. It returns what it was answered.
pub type Way = fn(&Machine, Names, &str, bool) -> String;

pub const WAYS: [(&str, Way); 5] = [
    ("Kirin-Purge", by_application),
    ("PURGE", by_method),
    ("kirin purge", by_command),
    ("Kirin::Store", by_perl),
    ("a memcached client", by_memcached),
];

fn by_application(machine: &Machine, names: Names, name: &str, soft: bool) -> String {
    let soft = if soft { ", soft" } else { "" };
    let reply = machine.purge(&format!("{names}=\"{name}\"{soft}"));
    assert_eq!(reply.status, 200, "{}", reply.head);
    assert!(!reply.head.to_ascii_lowercase().contains("kirin-"), "{}", reply.head);
    String::new()
}

fn by_method(machine: &Machine, names: Names, name: &str, soft: bool) -> String {
    let (target, mut field) = match names {
        Names::Keys => (name.to_owned(), String::new()),
        Names::Prefixes => (format!("{name}*"), String::new()),
        Names::Tags => ("/".to_owned(), format!("tags=\"{name}\"")),
    };
    if soft {
        field.push_str(if field.is_empty() { "soft" } else { ", soft" });
    }
    let fields = if field.is_empty() { field } else { format!("Kirin-Purge: {field}\r\n") };
    let reply = machine.ask("PURGE", &target, &fields);
    assert_eq!(reply.status, 200, "{target}: {}", reply.text());
    reply.text()
}

fn by_command(machine: &Machine, names: Names, name: &str, soft: bool) -> String {
    let option = match names {
        Names::Keys => "--key",
        Names::Prefixes => "--prefix",
        Names::Tags => "--tag",
    };
    let mut arguments = vec!["purge", option, name];
    if soft {
        arguments.push("--soft");
    }
    let output = run_kirin(&machine.site, &arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    let said = String::from_utf8(output.stdout).expect("text");
    // Only with an origin it says on how many machines.
    said.split(" on ").next().unwrap_or_default().trim_end().to_owned()
}

fn by_perl(machine: &Machine, names: Names, name: &str, soft: bool) -> String {
    machine.perl(if soft { "soften" } else { "purge" }, &format!("{names} {name}"), "")
}

fn by_memcached(machine: &Machine, names: Names, name: &str, soft: bool) -> String {
    let kind = match names {
        Names::Keys => "",
        Names::Prefixes => " Pprefix",
        Names::Tags => " Ptag",
    };
    let soft = if soft { " I" } else { "" };
    machine.memcached().send(format!("md {name}{kind}{soft}\r\n")).line()
}

/// Returns whether an item is there and stale, as a machine sees it.
fn is_stale(machine: &Machine, key: &str) -> Option<bool> {
    let line = machine.memcached().send(format!("mg {key} t\r\n")).line();
    line.starts_with("HD").then(|| line.contains(" X"))
}

/// Calls `check` with two pages and a name for each way and each kind of name. The name is that of
/// the first page only.
fn for_each_way(mut check: impl FnMut(&str, Way, Names, &str, [&str; 2])) {
    for (number, (title, way)) in WAYS.iter().enumerate() {
        for names in [Names::Keys, Names::Prefixes, Names::Tags] {
            let page = format!("/{names}-{number}/page");
            let name = match names {
                Names::Keys => page.clone(),
                Names::Prefixes => format!("/{names}-{number}/p"),
                Names::Tags => format!("tag-{number}"),
            };
            check(title, *way, names, &name, [&page, &format!("/{names}-{number}/other")]);
        }
    }
}

fn store_field(names: Names, name: &str) -> String {
    match names {
        Names::Tags => format!("ttl=300, tags=\"some {name}\""),
        _ => "ttl=300, tags=\"some more\"".to_owned(),
    }
}

#[test]
fn a_purge_by_any_way_holds_for_all_machines_and_is_answered_as_without_an_origin() {
    let Two { redis: _redis, a, b } = Two::start();
    let alone = Machine::alone("c");
    for_each_way(|title, way, names, name, [page, other]| {
        let what = format!("{title} of {names} {name}");
        let store = store_field(names, name);
        for machine in [&a, &alone] {
            machine.push(page, "old", &store);
            machine.push(other, "kept", "ttl=300");
        }
        assert_eq!((b.get(page).as_str(), b.get(other).as_str()), ("old", "kept"), "{what}");
        assert_eq!(way(&a, names, name, false), way(&alone, names, name, false), "{what}");
        // The answer is here, so this machine serves no older copy.
        assert!(a.get(page).starts_with("a "), "{what}");
        let missing = format!("the page to be gone after {what}");
        wait_for(&missing, || b.get(page).starts_with("b ").then_some(()));
        assert_eq!(b.memcached().get(page), None, "{what}");
        for machine in [&a, &b] {
            assert_eq!(machine.get(other), "kept", "{what}");
        }
        // What is stored after the purge stays.
        for machine in [&b, &alone] {
            machine.push(page, "new", &store);
            assert_eq!(machine.get(page), "new", "{what}");
        }
        a.wait_for_text(page, "new");
        assert_eq!(way(&a, names, name, false), way(&alone, names, name, false), "again: {what}");
        b.wait_for_item(page, None);
    });
}

#[test]
fn a_machine_purges_what_only_others_have() {
    let Two { redis: _redis, a, b } = Two::start();
    let alone = Machine::alone("c");
    for_each_way(|title, way, names, name, [page, other]| {
        let what = format!("{title} of {names} {name}");
        for machine in [&b, &alone] {
            machine.push(page, "old", &store_field(names, name));
            machine.push(other, "kept", "ttl=300");
            assert_eq!(machine.get(page), "old", "a copy: {what}");
        }
        // Neither the page nor its tag has ever been on the machine that purges.
        assert_eq!(way(&a, names, name, false), way(&alone, names, name, false), "{what}");
        assert!(a.get(page).starts_with("a "), "{what}");
        let missing = format!("the page to be gone after {what}");
        wait_for(&missing, || b.get(page).starts_with("b ").then_some(()));
        assert_eq!((a.get(other).as_str(), b.get(other).as_str()), ("kept", "kept"), "{what}");
        // Now there is nothing any more, which the answers say.
        let never = format!("{name}-never");
        assert_eq!(way(&a, names, &never, false), way(&alone, names, &never, false), "{what}");
    });
}

#[test]
fn a_soft_purge_by_any_way_lets_any_machine_renew_the_page() {
    let Two { redis: _redis, a, b } = Two::start();
    let alone = Machine::alone("c");
    for_each_way(|title, way, names, name, [page, other]| {
        let what = format!("{title} of {names} {name}");
        for machine in [&a, &alone] {
            machine.push(page, "old", &store_field(names, name));
            machine.push(other, "kept", "ttl=300");
        }
        assert_eq!(b.get(page), "old", "{what}");
        assert_eq!(way(&a, names, name, true), way(&alone, names, name, true), "{what}");
        assert_eq!(is_stale(&a, page), Some(true), "{what}");
        let missing = format!("the page to be stale after {what}");
        wait_for(&missing, || (is_stale(&b, page) == Some(true)).then_some(()));
        assert_eq!(is_stale(&b, other), Some(false), "{what}");
        // A HEAD cannot renew it, so it is served.
        assert_eq!(b.ask("HEAD", page, "").field("content-length"), Some("3"), "{what}");
        let runs = b.runs();
        let renewed = "X-Value: new\r\nX-Fields: Kirin-Store: ttl=300\r\n";
        wait_for(&format!("the page to be renewed after {what}"), || {
            (b.ask("GET", page, renewed).text() == "new").then_some(())
        });
        assert_eq!((b.get(page), b.runs()), ("new".to_owned(), runs + 1), "{what}");
        assert_eq!(is_stale(&b, page), Some(false), "{what}");
        a.wait_for_text(page, "new");
        assert_eq!(is_stale(&a, page), Some(false), "{what}");
        for machine in [&a, &b] {
            assert_eq!(machine.get(other), "kept", "{what}");
        }
    });
}

#[test]
fn a_stale_page_is_served_by_a_machine_that_nobody_can_renew_it_on() {
    let Two { redis: _redis, a, b } = Two::start();
    a.memcached().set("/only/page", b"text/plain\r\nold");
    a.memcached().set("/only/all", b"text/html\r\n(<!--# include /only/page -->)");
    assert_eq!(a.purge("prefixes=\"/only/p\", soft").status, 200);
    for _ in 0..3 {
        // It was stale before this machine has seen it.
        assert_eq!(b.get("/only/page"), "old");
        assert_eq!(b.get("/only/all"), "(old)");
    }
    assert_eq!(a.purge("prefixes=\"/only/p\"").status, 200);
    wait_for("the page to be gone", || (b.reply("/only/page").status == 404).then_some(()));
}

#[test]
fn one_purge_names_many_things() {
    let Two { redis: _redis, a, b } = Two::start();
    let pages = ["/a", "/b?x=1", "/recent/0", "/recent/1", "/tagged", "/kept"];
    for page in pages {
        let tags = if page == "/tagged" { "memo-7" } else { "memo-8" };
        b.push(page, page, &format!("ttl=300, tags=\"{tags}\""));
        assert_eq!((a.get(page).as_str(), b.get(page).as_str()), (page, page));
    }
    let names = "tags=\"memo-7 never\", keys=\"/a /b?x=1 /none\", prefixes=\"/recent/ /nothing/\"";
    let reply = a.ask("PURGE", "/", &format!("Kirin-Purge: {names}\r\n"));
    assert_eq!(
        (reply.status, reply.text().as_str()),
        (200, "{\"keys\":2,\"prefixes\":2,\"tags\":1}\n")
    );
    let left = |machine: &Machine| {
        let mut memcached = machine.memcached();
        pages.into_iter().filter(|page| memcached.get(page).is_some()).collect::<Vec<_>>()
    };
    assert_eq!(left(&a), ["/kept"]);
    wait_for("the pages to be gone", || (left(&b) == ["/kept"]).then_some(()));
}

#[test]
fn a_purge_by_an_admin_request_holds_for_all_machines() {
    let Two { redis: _redis, a, b } = Two::start();
    for page in ["/a", "/b"] {
        a.push(page, "old", "ttl=300");
        assert_eq!(b.get(page), "old");
    }
    let output = run_kirin(&a.site, &["purge", "--key", "/a", "--key", "/none"]);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success() && said.contains("1 of 2 keys"), "{output:?}");
    wait_for("the page to be gone", || b.get("/a").starts_with("b ").then_some(()));
    // Without its admin listener the command uses the memcached port.
    let memcached_only = "[store]\nmemcached = [\"unix:m.sock\"]\n";
    std::fs::write(b.site.path("m.toml"), memcached_only).expect("m.toml");
    let output = run_kirin(&b.site, &["purge", "--config", "m.toml", "--key", "/b"]);
    assert!(output.status.success(), "{output:?}");
    wait_for("the page to be gone", || a.get("/b").starts_with("a ").then_some(()));
}

/// Returns how often the server has changed anything for a purge of the tag of that many pages.
fn writes_of_a_purge(redis: &RedisServer, a: &Machine, pages: usize) -> u64 {
    let mut memcached = a.memcached();
    let tag = format!("of-{pages}");
    for page in 0..pages {
        memcached.send(format!("ms /{tag}/{page} 13 Ptags={tag}\r\ntext/plain\r\np\r\n"));
        assert_eq!(memcached.line(), "HD");
    }
    let before = count_of_writes(redis);
    assert_eq!(a.purge(&format!("tags=\"{tag}\"")).status, 200);
    count_of_writes(redis) - before
}

#[test]
fn a_purge_costs_the_same_however_many_pages_it_names() {
    let Two { redis, a, b: _b } = Two::start();
    let writes = [1, 300].map(|pages| writes_of_a_purge(&redis, &a, pages));
    assert_eq!(writes[0], writes[1]);
}
