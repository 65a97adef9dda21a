//! Pages and fragments: each way to store an item, against each way to read it, for each pair of
//! sites.

use super::world::{HOSTS, World};

/// A way to store the text `value` under the key `/k` with the tag `t`, as the site of `host` sees
/// both.
pub type Writer = fn(&World, &str, &str);

/// A way to read the item `/k` as the site of a host. `None`: it is not there.
type Reader = fn(&World, &str) -> Option<String>;

/// The ways to store an item.
pub const WRITERS: [(&str, Writer); 7] = [
    ("a memcached client", |world, host, value| {
        let value = format!("text/html\r\n{value}");
        let key = format!("{}/k", World::prefix(host));
        let mut memcached = world.memcached();
        memcached.send(format!(
            "ms {key} {} Ptags={}t\r\n{value}\r\n",
            value.len(),
            World::prefix(host)
        ));
        assert_eq!(memcached.line(), "HD", "{key}");
    }),
    ("Kirin-Store of the page itself", |world, host, value| {
        // A page that is there would be the response.
        world.ask(host, "GET", "/perl/delete", "");
        store(world, host, "GET", "/k", "Kirin-Store: ttl=3600, tags=\"t\"", value);
    }),
    ("Kirin-Store with a key", |world, host, value| {
        store(world, host, "POST", "/x", "Kirin-Store: key=\"/k\", ttl=3600, tags=\"t\"", value);
    }),
    ("Lua", |world, host, value| {
        let reply = world.ask(host, "GET", "/lua/set", &format!("X-Value: {value}\r\n"));
        assert_eq!(reply.text(), "set", "{}", world.kirin.log());
    }),
    ("Kirin::Store", |world, host, value| {
        let reply = world.ask(host, "GET", "/perl/set", &format!("X-Value: {value}\r\n"));
        assert_eq!(reply.text(), "set", "{}", world.kirin.log());
    }),
    ("Kirin::Store, a page", |world, host, value| {
        let reply = world.ask(host, "GET", "/perl/page", &format!("X-Value: {value}\r\n"));
        assert_eq!(reply.text(), "set", "{}", world.kirin.log());
    }),
    ("a second connection to the wildcard's neighbour", |world, host, value| {
        // The spelling of the host makes no difference.
        let spelled = format!("{}.:443", host.to_uppercase());
        let fields = format!(
            "X-Value: {value}\r\nX-Fields: Kirin-Store: key=\"/k\", ttl=3600, tags=\"t\"\r\n"
        );
        world.ask_by(host, &spelled, "POST", "/x", &fields);
    }),
];

/// The ways to read it.
const READERS: [(&str, Reader); 12] = [
    ("GET", |world, host| world.get(host, "/k", "")),
    ("GET of an absolute target", |world, host| world.get(host, &format!("https://{host}/k"), "")),
    ("include key", |world, host| shown(world, host, "/", "<!--# include key=\"/k\" -->")),
    ("include virtual", |world, host| shown(world, host, "/", "<!--# include virtual=\"/k\" -->")),
    ("esi:include", |world, host| shown(world, host, "/esi", "<esi:include src=\"/k\"/>")),
    ("esi:include of a URL", |world, host| {
        shown(world, host, "/esi", &format!("<esi:include src=\"https://{host}/k\"/>"))
    }),
    ("kirin.store.get", |world, host| without_type(world.get(host, "/lua/get", ""))),
    ("kirin.store.get_multi", |world, host| without_type(world.get(host, "/lua/multi", ""))),
    ("kirin.store.piece", |world, host| without_type(world.get(host, "/lua/piece", ""))),
    ("kirin.fetch", |world, host| world.get(host, "/lua/fetch", "")),
    ("Kirin::Store", |world, host| without_type(world.get(host, "/perl/get", ""))),
    ("a memcached client", |world, host| {
        let value = world.memcached().get(&format!("{}/k", World::prefix(host)));
        without_type(value.map(|value| String::from_utf8_lossy(&value).into_owned()))
    }),
];

/// Lets the application of a host answer with `value` and with a field for the store.
fn store(world: &World, host: &str, method: &str, target: &str, field: &str, value: &str) {
    let fields = format!("X-Value: {value}\r\nX-Fields: {field}\r\n");
    let reply = world.ask(host, method, target, &fields);
    assert_eq!((reply.status, reply.text()), (200, value.to_owned()), "{}", world.kirin.log());
}

/// Returns what a page of the application shows in place of a directive.
fn shown(world: &World, host: &str, target: &str, directive: &str) -> Option<String> {
    let page = world.get(host, target, &format!("X-Value: {directive}\r\n"))?;
    // A part that is not there leaves a text for the visitor, or the application's own.
    (page.starts_with("value of ")).then_some(page)
}

/// Returns the content of an item: what follows the media type or the stored head.
fn without_type(value: Option<String>) -> Option<String> {
    let value = value?;
    let start = value.rfind("\r\n").map_or(0, |end| end + 2);
    Some(value[start..].to_owned())
}

fn value_of(host: &str) -> String {
    format!("value of {host}")
}

#[test]
fn an_item_that_one_site_stores_is_read_by_no_other() {
    let world = World::start();
    for (writer, write) in WRITERS {
        for storing in HOSTS {
            write(&world, storing, &value_of(storing));
            for (reader, read) in READERS {
                for reading in HOSTS {
                    let expected = (reading == storing).then(|| value_of(storing));
                    assert_eq!(
                        read(&world, reading),
                        expected,
                        "stored for {storing} by {writer}, read for {reading} by {reader}\n{}",
                        world.kirin.log()
                    );
                }
            }
            assert_eq!(
                world.memcached().delete(&format!("{}/k", World::prefix(storing))),
                "DELETED",
                "{writer} {storing}"
            );
        }
    }
}

#[test]
fn the_names_of_a_site_share_its_items() {
    let world = World::start();
    for (_, write) in WRITERS {
        write(&world, "example.test", "value of both");
        assert_eq!(world.get("www.example.test", "/k", ""), Some("value of both".into()));
        assert!(world.get("www.example.test", "/lua/get", "").is_some());
        assert!(world.get("www.example.test", "/perl/get", "").is_some());
        world.memcached().delete("example.test:/k");
    }
}

#[test]
fn files_that_look_alike_are_pages_of_their_own_sites() {
    let world = World::start();
    for _ in 0..2 {
        for (host, name) in [
            ("other.test", "root"),
            ("example.test", "example"),
            ("shop.test", "shop"),
            ("a.wild.test", "wild"),
            ("b.wild.test", "wild"),
        ] {
            let expected = format!("{name:-<9}!");
            assert_eq!(world.get(host, "/files/page.html", ""), Some(expected), "{host}");
        }
    }
}

#[test]
fn the_root_cannot_name_items_of_a_site() {
    let world = World::start();
    let mut memcached = world.memcached();
    for name in ["shop:", "example.test:", "a.wild.test:", "c.wild.test:"] {
        memcached.set(&format!("{name}k"), b"value of a site");
        let page = shown(&world, "other.test", "/", &format!("<!--# include key=\"{name}k\" -->"));
        assert_eq!(page, None, "{name}");
        for command in ["get", "set", "multi", "piece", "delete", "prefix"] {
            let (target, key) = (format!("/lua/{command}"), format!("X-Key: {name}k\r\n"));
            let reply = world.ask("other.test", "GET", &target, &format!("X-Value: x\r\n{key}"));
            assert_eq!(reply.status, 500, "{target} {key}");
        }
        for field in [
            format!("Kirin-Store: key=\"{name}k\", ttl=60"),
            format!("Kirin-Store: key=\"/mine\", tags=\"{name}t\", ttl=60"),
            format!("Kirin-Purge: keys=\"{name}k\""),
            format!("Kirin-Purge: prefixes=\"{name}\""),
            format!("Kirin-Purge: prefixes=\"{}\"", &name[..2]),
            format!("Kirin-Purge: tags=\"{name}t\""),
        ] {
            let fields = format!("X-Value: of the root\r\nX-Fields: {field}\r\n");
            assert_eq!(world.ask("other.test", "POST", "/x", &fields).status, 200, "{field}");
            assert_eq!(memcached.get(&format!("{name}k")).unwrap(), b"value of a site", "{field}");
            assert_eq!(memcached.get("/mine"), None, "{field}");
        }
    }
    world.kirin.wait_for_log("Kirin-Purge has no effect");
    // In a site the same names are its own.
    let field = "Kirin-Store: key=\"/mine\", tags=\"shop:t\", ttl=60";
    store(&world, "example.test", "POST", "/x", field, "of the other");
    let field = "Kirin-Purge: tags=\"shop:t\", keys=\"shop:k\", prefixes=\"s\"";
    memcached.send("ms shop:tagged 2 Ptags=shop:t\r\nof\r\n").line();
    store(&world, "example.test", "POST", "/x", field, "of the other");
    assert_eq!(memcached.get("example.test:/mine"), None, "purged by its tag");
    assert_eq!(memcached.get("shop:tagged").unwrap(), b"of");
    assert_eq!(memcached.get("shop:k").unwrap(), b"value of a site");
}
