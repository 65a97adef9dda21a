//! Sessions: made on one machine, they are those of the visitor on all.

use kirin_tests::{Reply, wait_for};

use super::{Machine, Two, address_of, count_of_commands, count_of_writes};

/// A page that shows the visitor.
const BAR: &str = "text/html\r\n<!--# if expr=\"$session.name\" -->hello \
    <!--# echo var=\"session.name\" --><!--# else -->sign in<!--# endif -->.";

/// Signs a visitor in, and returns the cookie.
fn sign_in(machine: &Machine, name: &str) -> String {
    let reply = machine.ask("GET", "/direct/session/in", &format!("X-Value: {name}\r\n"));
    assert_eq!(reply.text(), name, "{}", machine.kirin.log());
    let cookie = reply.field("set-cookie").expect("a cookie");
    cookie.split(';').next().expect("its value").to_owned()
}

fn id_of(cookie: &str) -> &str {
    cookie.strip_prefix("sid=").expect("the cookie of sessions")
}

fn ask(machine: &Machine, target: &str, cookie: &str) -> Reply {
    machine.ask("GET", target, &format!("Cookie: a=b; {cookie}\r\n"))
}

fn show(machine: &Machine, cookie: &str) -> String {
    ask(machine, "/only/bar", cookie).text()
}

fn wait_until_shown(machine: &Machine, cookie: &str, text: &str) {
    let shown = std::fmt::from_fn(|f| write!(f, "{text:?}, not {:?}", show(machine, cookie)));
    wait_for(&shown, || (show(machine, cookie) == text).then_some(()));
}

#[test]
fn a_visitor_who_signed_in_on_one_machine_is_known_to_all() {
    let Two { redis, a, b } = Two::start();
    a.memcached().set("/only/bar", BAR.as_bytes());
    let (mari, bea) = (sign_in(&a, "mari"), sign_in(&b, "bea"));
    for machine in [&b, &a, &b] {
        assert_eq!(show(machine, &mari), "hello mari.");
        assert_eq!(show(machine, &bea), "hello bea.");
        assert_eq!(show(machine, ""), "sign in.");
        assert_eq!(ask(machine, "/only/bar", &mari).field("cache-control"), Some("private"));
        assert_eq!(ask(machine, "/direct/session/look", &mari).text(), "mari");
    }
    let commands = count_of_commands(&redis);
    assert_eq!(show(&a, &bea), "hello bea.");
    assert_eq!(show(&b, &mari), "hello mari.");
    assert_eq!(count_of_commands(&redis), commands, "the copies answer");
    // The visitor changes the name on the other machine.
    let fields = format!("Cookie: {mari}\r\nX-Value: maria\r\n");
    assert_eq!(b.ask("GET", "/direct/session/in", &fields).text(), "maria");
    assert_eq!(show(&b, &mari), "hello maria.");
    wait_until_shown(&a, &mari, "hello maria.");
    assert_eq!(ask(&a, "/direct/session/look", &mari).text(), "maria");
}

#[test]
fn a_visitor_who_signed_out_on_one_machine_is_signed_out_on_all() {
    let Two { redis: _redis, a, b } = Two::start();
    a.memcached().set("/only/bar", BAR.as_bytes());
    let (mari, bea) = (sign_in(&a, "mari"), sign_in(&a, "bea"));
    for machine in [&a, &b] {
        assert_eq!(show(machine, &mari), "hello mari.");
    }
    ask(&a, "/direct/session/out", &mari);
    assert_eq!(show(&a, &mari), "sign in.");
    wait_until_shown(&b, &mari, "sign in.");
    assert_eq!(ask(&b, "/direct/session/look", &mari).text(), "a stranger");
    assert_eq!(show(&b, &bea), "hello bea.");
    // A purge ends a session as well, also a soft one.
    assert_eq!(a.purge(&format!("keys=\"{}\", soft", id_of(&bea))).status, 200);
    assert_eq!(show(&a, &bea), "sign in.");
    wait_until_shown(&b, &bea, "sign in.");
}

#[test]
fn the_first_look_at_a_page_shows_the_session_of_another_machine() {
    let Two { redis: _redis, a, b } = Two::start();
    // Neither the page, nor its parts, nor the session has been on this machine.
    a.memcached().set("/only/page", b"text/html\r\n<!--# include bar --> <!--# include bar -->");
    let bar = BAR.strip_prefix("text/html\r\n").expect("a media type");
    a.memcached().set("bar", bar.as_bytes());
    let mari = sign_in(&a, "mari");
    assert_eq!(ask(&b, "/only/page", &mari).text(), "hello mari. hello mari.");
    // The application makes the page here.
    let bea = sign_in(&a, "bea");
    let fields = format!("Cookie: {bea}\r\nX-Value: {bar}\r\n");
    assert_eq!(b.ask("GET", "/ssi/page", &fields).text(), "hello bea.");
}

#[test]
fn a_cookie_cannot_name_another_item_of_the_server() {
    let Two { redis: _redis, a, b } = Two::start();
    let ids = ["1", "2", "3", "4"].map(|digit| digit.repeat(40));
    let mut memcached = a.memcached();
    memcached.set("/only/bar", BAR.as_bytes());
    memcached.set("secret", br#"{"name":"mari"}"#);
    memcached.set(&ids[0], br#"["name","mari"]"#);
    memcached.set(&ids[1], b"text/html\r\n{\"name\":\"mari\"}");
    memcached.set(&ids[2], format!(r#"{{"name":"mari","x":"{}"}}"#, "x".repeat(70_000)).as_bytes());
    memcached.set(&ids[3], br#"{"name":"mari"}"#);
    assert_eq!(show(&b, &format!("sid={}", ids[3])), "hello mari.", "this one is a session");
    for _ in 0..2 {
        for id in ["secret", "/only/bar", &ids[0], &ids[1], &ids[2], "", "x y", &"0".repeat(129)] {
            assert_eq!(show(&b, &format!("sid={id}")), "sign in.", "{id}");
        }
    }
    assert_eq!(memcached.send(format!("md {} I\r\n", ids[3])).line(), "HD");
    wait_until_shown(&b, &format!("sid={}", ids[3]), "sign in.");
}

/// Returns for how many milliseconds the server keeps a session.
fn left(redis: &kirin_tests::RedisServer, cookie: &str) -> i64 {
    redis.command(&["PTTL", &format!("kirin:i:{}", id_of(cookie))]).parse().expect("a number")
}

#[test]
fn a_session_that_is_only_looked_at_is_rarely_written() {
    let redis = kirin_tests::RedisServer::start();
    let origin = format!("origin = {:?}\n{}", address_of(&redis), super::CALM);
    let machine = |name, seconds: u32| {
        let variables = format!("env = {{ SESSION_SECONDS = \"{seconds}\", ");
        Machine::start_with(name, &origin, "", |config| config.replace("env = { ", &variables))
            .connected(1)
    };
    let (long, short) = (machine("a", 1000), machine("b", 20));
    let look = |machine: &Machine, cookie: &str| {
        assert_eq!(ask(machine, "/direct/session/look", cookie).text(), "mari");
    };
    let mari = sign_in(&long, "mari");
    look(&long, &mari);
    // In the same second nothing would change.
    wait_for("a second to pass", || (left(&redis, &mari) < 998_500).then_some(()));
    let writes = count_of_writes(&redis);
    for _ in 0..20 {
        look(&long, &mari);
    }
    let more = count_of_writes(&redis) - writes;
    assert!(more <= 1, "{more}: in a tenth of its life each of the two workers touches it once");
    // A tenth of 20 seconds later it is, so that a visitor who comes often stays signed in.
    let mari = sign_in(&short, "mari");
    let writes = count_of_writes(&redis);
    wait_for("a tenth of the life to pass", || (left(&redis, &mari) < 17_000).then_some(()));
    assert_eq!(count_of_writes(&redis), writes);
    look(&short, &mari);
    wait_for("the session to live longer", || (left(&redis, &mari) > 17_500).then_some(()));
    assert!(left(&redis, &mari) <= 20_000);
}
