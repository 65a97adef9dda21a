//! Sites that share a server: the names of one never reach those of another.

use kirin_tests::{RedisServer, Reply, run_kirin, wait_for};

use super::{CALM, Machine, ROUTES, address_of};

/// The hosts of two sites and of the top level, and the names of the sites in the store.
const HOSTS: [(&str, &str); 3] =
    [("example.test", "example.test:"), ("shop.test", "shop:"), ("other.test", "")];

const SITES: &str = "[[site]]\nhosts = [\"example.test\"]\nROUTES\
    [[site]]\nname = \"shop\"\nhosts = [\"shop.test\"]\nROUTES";

fn machine(name: &str, redis: &RedisServer) -> Machine {
    let more = SITES.replace("ROUTES", &ROUTES.replace("ROUTE", "site.route"));
    let store = format!("origin = {:?}\n{CALM}", address_of(redis));
    Machine::start(name, &store, &more).connected(1)
}

fn get(machine: &Machine, host: &str, target: &str) -> String {
    machine.ask_host(host, "GET", target, "").text()
}

fn push(machine: &Machine, host: &str, target: &str) {
    let fields = format!("X-Value: of {host}\r\nX-Fields: Kirin-Store: ttl=300, tags=\"t\"\r\n");
    assert_eq!(machine.ask_host(host, "GET", target, &fields).text(), format!("of {host}"));
}

#[test]
fn a_page_of_one_site_is_on_all_machines_and_on_no_other_site() {
    let redis = RedisServer::start();
    let (a, b) = (machine("a", &redis), machine("b", &redis));
    for (host, _) in HOSTS {
        let target = format!("/page-of-{host}");
        push(&a, host, &target);
        for (other, _) in HOSTS {
            let text = get(&b, other, &target);
            assert_eq!(text == format!("of {host}"), other == host, "{host} {other}: {text}");
            let include = format!("X-Value: (<!--# include key=\"{target}\" -->)\r\n");
            let text = b.ask_host(other, "GET", "/ssi/page", &include).text();
            assert_eq!(text == format!("(of {host})"), other == host, "{host} {other}: {text}");
        }
    }
}

#[test]
fn a_purge_of_one_site_takes_nothing_of_another_on_any_machine() {
    let redis = RedisServer::start();
    let (a, b) = (machine("a", &redis), machine("b", &redis));
    type Way = fn(&Machine, &str, &str) -> Reply;
    let by_application: Way = |machine, host, names| {
        let fields = format!("X-Fields: Kirin-Purge: {names}\r\n");
        machine.ask_host(host, "GET", "/direct/purge", &fields)
    };
    let by_method: Way = |machine, host, names| {
        machine.ask_host(host, "PURGE", "/", &format!("Kirin-Purge: {names}\r\n"))
    };
    let cached = "X-Fields: Cache-Control: max-age=300|Surrogate-Key: t\r\n";
    let get_cached = |machine: &Machine, host: &str| {
        machine.ask_host(host, "GET", "/cached/page", cached).text()
    };
    for way in [by_application, by_method] {
        for names in ["keys=\"/page /cached/page\"", "prefixes=\"/\"", "tags=\"t\""] {
            for (purging, _) in HOSTS {
                let mut kept = Vec::new();
                for (host, _) in HOSTS {
                    if get(&b, host, "/page") != format!("of {host}") {
                        push(&b, host, "/page");
                    }
                    wait_for("the page", || {
                        (get(&a, host, "/page") == format!("of {host}")).then_some(())
                    });
                    get_cached(&b, host);
                    kept.push(get_cached(&b, host));
                }
                assert_eq!(way(&a, purging, names).status, 200);
                for ((host, _), kept) in HOSTS.into_iter().zip(kept) {
                    let what = format!("{names} of {purging}, seen at {host}");
                    if host == purging {
                        let is_old = |text: &str| text == format!("of {host}");
                        assert!(!is_old(&get(&a, host, "/page")), "{what}");
                        wait_for(&what, || (!is_old(&get(&b, host, "/page"))).then_some(()));
                        wait_for(&what, || (get_cached(&b, host) != kept).then_some(()));
                    } else {
                        for machine in [&a, &b] {
                            assert_eq!(get(machine, host, "/page"), format!("of {host}"), "{what}");
                        }
                        assert_eq!(get_cached(&b, host), kept, "{what}");
                    }
                }
            }
        }
    }
}

#[test]
fn the_command_purges_one_site_on_all_machines() {
    let redis = RedisServer::start();
    let (a, b) = (machine("a", &redis), machine("b", &redis));
    for (host, _) in HOSTS {
        push(&b, host, "/page");
    }
    let output = run_kirin(&a.site, &["purge", "--site", "shop.test", "--prefix", "/"]);
    assert!(output.status.success(), "{output:?}");
    wait_for("the page to be gone", || {
        (get(&b, "shop.test", "/page") != "of shop.test").then_some(())
    });
    for host in ["example.test", "other.test"] {
        assert_eq!(get(&b, host, "/page"), format!("of {host}"));
    }
}

#[test]
fn one_session_id_is_another_visitor_on_another_site() {
    let redis = RedisServer::start();
    let (a, b) = (machine("a", &redis), machine("b", &redis));
    let id = "0123456789abcdef0123456789abcdef01234567";
    let show = |machine: &Machine, host: &str| {
        let bar = "X-Value: <!--# echo var=\"session.name\" default=\"a stranger\" -->\r\n";
        let fields = format!("Cookie: sid={id}\r\n{bar}");
        machine.ask_host(host, "GET", "/ssi/bar", &fields).text()
    };
    for (host, prefix) in HOSTS {
        let session = format!("{{\"name\":\"visitor of {host}\"}}");
        a.memcached().set(&format!("{prefix}{id}"), session.as_bytes());
    }
    for (host, _) in HOSTS {
        assert_eq!(show(&b, host), format!("visitor of {host}"));
    }
    let fields = format!("X-Fields: Kirin-Purge: keys=\"{id}\"\r\n");
    a.ask_host("shop.test", "GET", "/direct/out", &fields);
    wait_for("the session to end", || (show(&b, "shop.test") == "a stranger").then_some(()));
    for host in ["example.test", "other.test"] {
        assert_eq!(show(&b, host), format!("visitor of {host}"));
    }
}

#[test]
fn the_top_level_cannot_name_what_a_site_has_on_the_server() {
    let redis = RedisServer::start();
    let (a, b) = (machine("a", &redis), machine("b", &redis));
    a.memcached().set("shop:k", b"value of a site");
    let include = "X-Value: (<!--# include key=\"shop:k\" -->)\r\n";
    for machine in [&b, &a] {
        let text = machine.ask_host("other.test", "GET", "/ssi/page", include).text();
        assert!(!text.contains("value"), "{text}");
        for field in [
            "Kirin-Store: key=\"shop:k\", ttl=60",
            "Kirin-Purge: keys=\"shop:k\"",
            "Kirin-Purge: prefixes=\"shop:\"",
            "Kirin-Purge: prefixes=\"sh\"",
        ] {
            let fields = format!("X-Value: mine\r\nContent-Length: 0\r\nX-Fields: {field}\r\n");
            let reply = machine.ask_host("other.test", "POST", "/direct/x", &fields);
            assert_eq!(reply.text(), "mine");
            for machine in [&a, &b] {
                let value = machine.memcached().get("shop:k");
                assert_eq!(value.as_deref(), Some(&b"value of a site"[..]), "{field}");
            }
        }
    }
}

#[test]
fn kirins_with_other_key_prefixes_share_nothing() {
    let redis = RedisServer::start();
    let start = |name: &str, prefix: &str| {
        let store = format!("{CALM}origin_prefix = {prefix:?}\n");
        Machine::with_origin(name, &address_of(&redis), &store).connected(1)
    };
    let (a, b, same) = (start("a", "one:"), start("b", "two:"), start("c", "one:"));
    a.push("/page", "old", "ttl=300, tags=\"t\"");
    assert_eq!(same.get("/page"), "old");
    assert_eq!(b.get("/page"), "b 1");
    b.push("/page", "of b", "ttl=300, tags=\"t\"");
    for names in ["tags=\"t\"", "prefixes=\"/\"", "keys=\"/page\""] {
        assert_eq!(b.purge(names).status, 200);
        assert_eq!((a.get("/page"), same.get("/page")), ("old".into(), "old".into()), "{names}");
    }
    assert_eq!(b.memcached().send("flush_all\r\n").line(), "OK");
    assert_eq!((a.get("/page"), same.get("/page")), ("old".into(), "old".into()));
    assert!(!redis.command(&["KEYS", "*"]).contains("kirin:"), "{}", redis.command(&["KEYS", "*"]));
}
