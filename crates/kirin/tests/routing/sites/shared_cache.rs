//! The cache of routes, in front of an application and of an upstream.

use super::world::{HOSTS, World};

const CACHES: [&str; 2] = ["/cached/c", "/far/c"];

/// Returns the status and the body that the cache has.
fn cached(world: &World, host: &str, method: &str, target: &str, fields: &str) -> (u16, String) {
    let fields = format!("Cache-Control: only-if-cached\r\n{fields}");
    let reply = world.ask(host, method, target, &fields);
    (reply.status, reply.text())
}

fn store(world: &World, host: &str, target: &str, value: &str, fields: &str) {
    let more = format!("X-Value: {value}\r\nX-Fields: Cache-Control: max-age=3600{fields}\r\n");
    assert_eq!(world.ask(host, "GET", target, &more).text(), value, "{host} {target}");
}

#[test]
fn a_response_of_one_site_is_served_for_no_other() {
    let world = World::start();
    for target in CACHES {
        for storing in HOSTS {
            store(&world, storing, target, storing, "");
            for reading in HOSTS {
                // A site behind the first has its own response already.
                let has = HOSTS.iter().position(|host| *host == reading)
                    <= HOSTS.iter().position(|host| *host == storing);
                let expected = if has { (200, reading.to_owned()) } else { (504, String::new()) };
                let (status, body) = cached(&world, reading, "GET", target, "");
                let body = if status == 200 { body } else { String::new() };
                assert_eq!((status, body), expected, "{target}: {storing} and {reading}");
                let (status, _) = cached(&world, reading, "HEAD", target, "");
                assert_eq!(status, expected.0, "HEAD {target}: {storing} and {reading}");
            }
        }
    }
}

#[test]
fn variants_of_one_site_are_served_for_no_other() {
    let world = World::start();
    for target in CACHES {
        for host in HOSTS {
            for color in ["red", "blue"] {
                let value = format!("{color} of {host}");
                let fields = format!("|Vary: X-Color\r\nX-Color: {color}");
                store(&world, host, target, &value, &fields);
            }
        }
        for host in HOSTS {
            for color in ["red", "blue"] {
                let (status, body) =
                    cached(&world, host, "GET", target, &format!("X-Color: {color}\r\n"));
                assert_eq!((status, body), (200, format!("{color} of {host}")), "{target}");
            }
        }
    }
}

#[test]
fn a_change_on_one_site_invalidates_its_own_responses() {
    let world = World::start();
    for target in CACHES {
        let beside = format!("{target}/beside");
        for host in HOSTS {
            store(&world, host, target, host, "");
            store(&world, host, &beside, host, "");
        }
        for changing in HOSTS {
            let fields = format!("X-Value: changed\r\nX-Fields: Location: {beside}\r\n");
            assert_eq!(world.ask(changing, "POST", target, &fields).text(), "changed");
            for host in HOSTS {
                let expected = if host == changing { 504 } else { 200 };
                for target in [target, &beside] {
                    let (status, _) = cached(&world, host, "GET", target, "");
                    assert_eq!(status, expected, "{target}: changed on {changing}; {host}");
                }
            }
            store(&world, changing, target, changing, "");
            store(&world, changing, &beside, changing, "");
        }
    }
}

#[test]
fn requests_of_two_sites_do_not_wait_for_each_others_response() {
    let world = World::start();
    // The upstream answers when the requests of all hosts have arrived.
    std::thread::scope(|scope| {
        for host in HOSTS {
            let world = &world;
            scope.spawn(move || store(world, host, "/far/all", host, ""));
        }
    });
    for host in HOSTS {
        assert_eq!(cached(&world, host, "GET", "/far/all", ""), (200, host.to_owned()));
    }
}
