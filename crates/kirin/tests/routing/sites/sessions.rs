//! Sessions: the same cookie is another visitor on another site.

use super::world::{HOSTS, World};

const ID: &str = "0123456789abcdef0123456789abcdef01234567";

type Reader = fn(&World, &str, &str) -> Option<String>;

/// The ways to read the member `name` of the session that a `Cookie` field names.
const READERS: [(&str, Reader); 4] = [
    ("SSI", |world, host, cookie| {
        let page =
            "<!--# if expr=\"$session\" --><!--# echo var=\"session.name\" --><!--# endif -->";
        let shown = world.get(host, "/", &format!("X-Value: {page}\r\n{cookie}"));
        shown.filter(|text| !text.is_empty())
    }),
    ("ESI", |world, host, cookie| {
        let page = "<esi:vars>$(SESSION{name}|none)</esi:vars>";
        let shown = world.get(host, "/esi", &format!("X-Value: {page}\r\n{cookie}"));
        shown.filter(|text| text != "none")
    }),
    ("Lua", |world, host, cookie| world.get(host, "/lua/session", cookie)),
    ("Session::Kirin", |world, host, cookie| world.get(host, "/session", cookie)),
];

/// Stores a session as Session::Kirin does. The client flags 8 mean JSON.
fn store(world: &World, host: &str, name: &str) {
    let (key, value) = (format!("{}{ID}", World::prefix(host)), format!("{{\"name\":\"{name}\"}}"));
    let mut memcached = world.memcached();
    memcached.send(format!("set {key} 8 0 {}\r\n{value}\r\n", value.len()));
    assert_eq!(memcached.line(), "STORED", "{key}");
}

#[test]
fn a_session_of_one_site_is_seen_by_no_other() {
    let world = World::start();
    let cookie = format!("Cookie: sid={ID}\r\n");
    for storing in HOSTS {
        let name = format!("visitor of {storing}");
        store(&world, storing, &name);
        for (reader, read) in READERS {
            for reading in HOSTS {
                let expected = (reading == storing).then(|| name.clone());
                assert_eq!(
                    read(&world, reading, &cookie),
                    expected,
                    "session of {storing}, read for {reading} by {reader}\n{}",
                    world.kirin.log()
                );
            }
        }
        let key = format!("{}{ID}", World::prefix(storing));
        assert_eq!(world.memcached().delete(&key), "DELETED");
    }
}

#[test]
fn one_id_is_a_session_on_every_site_and_ends_on_one() {
    let world = World::start();
    let cookie = format!("Cookie: sid={ID}\r\n");
    HOSTS.iter().for_each(|host| store(&world, host, host));
    for ended in HOSTS {
        for (reader, read) in READERS {
            let seen = HOSTS.map(|host| read(&world, host, &cookie));
            assert_eq!(seen, HOSTS.map(|host| Some(host.to_owned())), "{reader}");
        }
        let field = format!("X-Value: x\r\nX-Fields: Kirin-Purge: keys=\"{ID}\"\r\n");
        world.ask(ended, "POST", "/x", &field);
        for (reader, read) in READERS {
            let seen = HOSTS.map(|host| read(&world, host, &cookie).is_some());
            assert_eq!(seen, HOSTS.map(|host| host != ended), "{reader}, ended on {ended}");
        }
        store(&world, ended, ended);
    }
}

#[test]
fn the_middleware_writes_sessions_of_the_site_of_each_request() {
    let world = World::start();
    for host in HOSTS {
        let reply = world.ask(host, "GET", "/session", &format!("X-Value: {host}\r\n"));
        let set = reply.field("set-cookie").expect("a cookie");
        let id = set.split(['=', ';']).nth(1).expect("an id");
        for other in HOSTS {
            let item = world.memcached().get(&format!("{}{id}", World::prefix(other)));
            assert_eq!(item.is_some(), other == host, "session of {host} for {other}");
        }
        let cookie = format!("Cookie: sid={id}\r\n");
        for (reader, read) in READERS {
            assert_eq!(read(&world, host, &cookie).as_deref(), Some(host), "{reader}");
        }
    }
}
