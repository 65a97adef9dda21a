//! Purges: each way to purge, by each site. The items of all other sites stay.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use kirin_tests::run_kirin;

use super::pages::WRITERS;
use super::world::{HOSTS, World};

/// A way to purge items of a host.
type Way = fn(&World, &str);

/// The items that every site has. All have the tag `t`.
const TARGETS: [&str; 3] = ["/k", "/cached/c", "/far/c"];

/// The ways to purge, and the items that each takes.
const WAYS: [(&str, Way, &[&str]); 20] = [
    (
        "Kirin-Purge of keys",
        |world, host| by_app(world, host, "keys=\"/k /cached/c\""),
        &["/k", "/cached/c"],
    ),
    ("Kirin-Purge of a prefix", |world, host| by_app(world, host, "prefixes=\"/\""), &TARGETS),
    ("Kirin-Purge of a tag", |world, host| by_app(world, host, "tags=\"t\""), &TARGETS),
    ("PURGE of a page", |world, host| by_url(world, host, "/k", ""), &["/k"]),
    ("PURGE of a cached response", |world, host| by_url(world, host, "/far/c", ""), &["/far/c"]),
    ("PURGE of a prefix", |world, host| by_url(world, host, "/*", ""), &TARGETS),
    (
        "PURGE of a tag",
        |world, host| by_url(world, host, "/", "Kirin-Purge: tags=\"t\"\r\n"),
        &TARGETS,
    ),
    ("kirin.store.delete", |world, host| by_code(world, host, "/lua/delete"), &["/k"]),
    ("kirin.store.invalidate_prefix", |world, host| by_lua(world, host, "prefix", "/"), &["/k"]),
    ("kirin.store.invalidate_tag", |world, host| by_lua(world, host, "tag", "t"), &TARGETS),
    ("Kirin::Store, delete", |world, host| by_code(world, host, "/perl/delete"), &["/k"]),
    ("Kirin::Store, a key", |world, host| by_code(world, host, "/perl/key"), &["/k"]),
    ("Kirin::Store, a prefix", |world, host| by_code(world, host, "/perl/prefix"), &TARGETS),
    ("Kirin::Store, a tag", |world, host| by_code(world, host, "/perl/tag"), &TARGETS),
    (
        "kirin purge of keys",
        |world, host| by_command(world, host, "kirin.toml", &["--key", "/k", "--key", "/far/c"]),
        &["/k", "/far/c"],
    ),
    (
        "kirin purge of a prefix and a tag",
        |world, host| {
            by_command(world, host, "kirin.toml", &["--prefix", "/far/", "--tag", "t"]);
        },
        &TARGETS,
    ),
    (
        "kirin purge of keys by memcached",
        |world, host| by_command(world, host, "m.toml", &["--key", "/k", "--key", "/far/c"]),
        &["/k", "/far/c"],
    ),
    (
        "kirin purge of a prefix by memcached",
        |world, host| by_command(world, host, "m.toml", &["--prefix", "/"]),
        &TARGETS,
    ),
    (
        "kirin purge of a tag by memcached",
        |world, host| by_command(world, host, "m.toml", &["--tag", "t"]),
        &TARGETS,
    ),
    ("POST /purge", |world, host| by_admin(world, host, "key=/k&prefix=/far/"), &["/k", "/far/c"]),
];

fn by_app(world: &World, host: &str, names: &str) {
    let fields = format!("X-Value: purged\r\nX-Fields: Kirin-Purge: {names}\r\n");
    assert_eq!(world.ask(host, "POST", "/x", &fields).text(), "purged");
}

fn by_url(world: &World, host: &str, target: &str, fields: &str) {
    let reply = world.ask(host, "PURGE", target, fields);
    assert!(reply.status == 200 && reply.text().contains(":1"), "{target}: {reply:?}");
}

fn by_code(world: &World, host: &str, target: &str) {
    let reply = world.ask(host, "GET", target, "");
    assert!(reply.status == 200 && reply.text() != "0", "{target}: {reply:?}");
}

fn by_lua(world: &World, host: &str, command: &str, name: &str) {
    let reply = world.ask(host, "GET", &format!("/lua/{command}"), &format!("X-Key: {name}\r\n"));
    assert_eq!(reply.text(), "true", "{}", world.kirin.log());
}

fn name_of(host: &str) -> Option<&str> {
    World::prefix(host).strip_suffix(':')
}

fn by_command(world: &World, host: &str, config: &str, names: &[&str]) {
    let memcached_only = "[store]\nmemcached = [\"unix:m.sock\"]\n";
    std::fs::write(world.site.path("m.toml"), memcached_only).expect("m.toml");
    let mut arguments = vec!["purge", "--config", config];
    if let Some(site) = name_of(host) {
        arguments.extend(["--site", site]);
    }
    arguments.extend(names);
    let output = run_kirin(&world.site, &arguments);
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    assert!(said.contains('1') || said.contains('2'), "{arguments:?}: {said}");
}

fn by_admin(world: &World, host: &str, form: &str) {
    let site = name_of(host).map(|name| format!("&site={name}")).unwrap_or_default();
    let (status, body) = post_purge(world, &format!("{form}{site}"));
    let body: String = body.split_whitespace().collect();
    assert_eq!((status, &*body), (200, "{\"keys\":1,\"prefixes\":1,\"tags\":0}"), "{host}");
}

/// Sends a form to the admin listener. Returns status and body.
fn post_purge(world: &World, form: &str) -> (u16, String) {
    let mut stream = UnixStream::connect(world.site.path("admin.sock")).expect("the admin socket");
    let length = form.len();
    let head = format!(
        "POST /purge HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nKirin-Admin: 1\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {length}\r\n\r\n"
    );
    stream.write_all(format!("{head}{form}").as_bytes()).expect("send");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let status = answer.get(9..12).and_then(|status| status.parse().ok()).expect(&answer);
    (status, answer.split_once("\r\n\r\n").expect("a body").1.to_owned())
}

fn store(world: &World, host: &str) {
    let (_, write) = WRITERS[0];
    write(world, host, host);
    for target in &TARGETS[1..] {
        let fields = "X-Fields: Cache-Control: max-age=3600|Surrogate-Key: t\r\n";
        let reply = world.ask(host, "GET", target, &format!("X-Value: {host}\r\n{fields}"));
        assert_eq!(reply.text(), host, "{target}");
    }
}

fn is_there(world: &World, host: &str, target: &str) -> bool {
    let reply = world.ask(host, "GET", target, "Cache-Control: only-if-cached\r\n");
    match reply.status {
        200 => assert_eq!(reply.text(), host, "{target}"),
        status => assert!([404, 504].contains(&status), "{host} {target}: {reply:?}"),
    }
    reply.status == 200
}

#[test]
fn a_purge_by_one_site_leaves_the_items_of_all_others() {
    let world = World::start();
    HOSTS.iter().for_each(|host| store(&world, host));
    for (way, purge, taken) in WAYS {
        for purging in HOSTS {
            purge(&world, purging);
            for host in HOSTS {
                for target in TARGETS {
                    assert_eq!(
                        is_there(&world, host, target),
                        host != purging || !taken.contains(&target),
                        "purged for {purging} by {way}; {target} of {host}\n{}",
                        world.kirin.log()
                    );
                }
            }
            store(&world, purging);
        }
    }
}

#[test]
fn a_soft_purge_by_one_site_leaves_the_items_of_all_others_fresh() {
    let ways: [(&str, Way); 6] = [
        ("Kirin-Purge", |world, host| by_app(world, host, "keys=\"/k\", soft")),
        ("Kirin-Purge of a tag", |world, host| by_app(world, host, "tags=\"t\", soft")),
        ("PURGE", |world, host| by_url(world, host, "/k", "Kirin-Purge: soft\r\n")),
        ("kirin purge", |world, host| {
            by_command(world, host, "kirin.toml", &["--prefix", "/", "--soft"]);
        }),
        ("kirin purge by memcached", |world, host| {
            by_command(world, host, "m.toml", &["--tag", "t", "--soft"]);
        }),
        ("POST /purge", |world, host| by_admin(world, host, "key=/k&prefix=/far/&soft=1")),
    ];
    let world = World::start();
    HOSTS.iter().for_each(|host| store(&world, host));
    for (way, purge) in ways {
        for purging in HOSTS {
            purge(&world, purging);
            let mut memcached = world.memcached();
            for host in HOSTS {
                memcached.send(format!("mg {}/k t\r\n", World::prefix(host)));
                let line = memcached.line();
                assert!(line.starts_with("HD"), "{line}");
                let is_stale = line.contains(" X");
                assert_eq!(is_stale, host == purging, "by {purging} with {way}; {host}: {line}");
            }
            store(&world, purging);
        }
    }
}

#[test]
fn an_operator_names_a_site_by_any_of_its_hosts() {
    let world = World::start();
    for (site, purged) in [
        ("www.example.test", "example.test"),
        ("Example.Test.", "example.test"),
        ("shop", "shop.test"),
        ("shop.test", "shop.test"),
        ("A.WILD.test", "a.wild.test"),
    ] {
        HOSTS.iter().for_each(|host| store(&world, host));
        let output = run_kirin(&world.site, &["purge", "--site", site, "--prefix", "/"]);
        assert!(output.status.success(), "{site}: {output:?}");
        for host in HOSTS {
            for target in TARGETS {
                assert_eq!(is_there(&world, host, target), host != purged, "{site} {host}{target}");
            }
        }
    }
    for site in ["other.test", "wild.test", "nobody", "", "*", "shop:", "a/b"] {
        let (status, message) = post_purge(&world, &format!("key=/k&site={site}"));
        if site == "shop:" {
            assert_eq!(status, 200, "an empty port: {message}");
        } else {
            assert_eq!(status, 400, "{site}: {message}");
            assert!(message.contains("example.test, shop"), "{site}: {message}");
        }
    }
}

#[test]
fn a_name_that_is_too_long_with_its_site_is_purged_from_the_cache() {
    let world = World::start();
    let target = format!("/cached/{}", "x".repeat(235));
    for config in ["kirin.toml", "m.toml"] {
        for host in HOSTS {
            let fields = "X-Fields: Cache-Control: max-age=3600\r\n";
            world.ask(host, "GET", &target, &format!("X-Value: {host}\r\n{fields}"));
        }
        by_command(&world, "example.test", config, &["--key", &target]);
        for host in HOSTS {
            assert_eq!(is_there(&world, host, &target), host != "example.test", "{config} {host}");
        }
    }
}
