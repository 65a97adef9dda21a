//! Scripts: `kirin.store` and the session of the visitor are those of all machines.

use kirin_tests::wait_for;

use super::{Machine, Two, count_of_commands};

/// Calls a function in the script of a machine. Returns its first two values.
fn call(machine: &Machine, name: &str, arguments: &str) -> String {
    let reply = machine.reply(&format!("/script/{name}?{arguments}"));
    assert_eq!(reply.status, 200, "{name} {arguments}");
    reply.text()
}

/// Returns the first value.
fn first(machine: &Machine, name: &str, arguments: &str) -> String {
    call(machine, name, arguments).split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn what_a_script_stores_the_scripts_of_all_machines_read() {
    let Two { redis, a, b } = Two::start();
    assert_ne!(first(&a, "set", "key=k&value=one"), "nil", "a CAS");
    for (name, value) in [("get", "one"), ("piece", "one"), ("many", "one"), ("within", "one")] {
        assert_eq!(first(&b, name, "key=k"), value, "{name}");
    }
    let commands = count_of_commands(&redis);
    for name in ["get", "piece", "within"] {
        assert_eq!(first(&b, name, "key=k"), "one");
    }
    assert_eq!(count_of_commands(&redis), commands, "the copies answer");
    // A machine reads its own writes.
    assert_ne!(first(&b, "append", "key=k&value=-two"), "nil");
    assert_eq!(first(&b, "get", "key=k"), "one-two");
    wait_for("the new value", || (first(&a, "get", "key=k") == "one-two").then_some(()));
    assert_eq!(b.memcached().get("k").as_deref(), Some(&b"one-two"[..]));
}

#[test]
fn each_function_of_the_store_has_the_values_that_it_has_without_an_origin() {
    let Two { redis: _redis, a, b: _b } = Two::start();
    let alone = Machine::alone("c");
    let calls = [
        ("get", "key=k"),
        ("piece", "key=k"),
        ("append", "key=k&value=x"),
        ("replace", "key=k&value=x"),
        ("touch", "key=k&value=10"),
        ("delete", "key=k"),
        ("incr", "key=k"),
        ("count", "key=n"),
        ("count", "key=n"),
        ("decr", "key=n&value=100"),
        ("guarded", "key=n&value=x"),
        ("get", "key=n"),
        ("prepend", "key=n&value=x"),
        ("incr", "key=n"),
        ("touch", "key=n&value=10"),
        ("many", "key=n"),
        ("delete", "key=n"),
        ("delete", "key=n"),
        ("tag", "key=none"),
        ("prefix", "key=p"),
    ];
    for (name, arguments) in calls {
        let (here, there) = (call(&alone, name, arguments), call(&a, name, arguments));
        // A CAS is another number.
        let without_cas = |values: &str| match (name, values.split_once(' ')) {
            ("get", Some((value, _))) => value.to_owned(),
            ("prepend", Some((cas, reason))) => format!("{} {reason}", cas == "nil"),
            _ => values.to_owned(),
        };
        assert_eq!(without_cas(&there), without_cas(&here), "{name} {arguments}");
    }
}

#[test]
fn counters_of_all_scripts_are_added_up() {
    let Two { redis: _redis, a, b } = Two::start();
    assert_eq!(first(&a, "count", "key=n"), "5");
    std::thread::scope(|scope| {
        for machine in [&a, &b, &a, &b] {
            scope.spawn(move || {
                for _ in 0..10 {
                    assert_ne!(first(machine, "count", "key=n"), "nil");
                }
            });
        }
    });
    assert_eq!(a.memcached().get("n").as_deref(), Some(&b"85"[..]));
}

#[test]
fn a_script_invalidates_on_all_machines() {
    let Two { redis: _redis, a, b } = Two::start();
    call(&a, "set", "key=k&value=one");
    assert_eq!(first(&b, "get", "key=k"), "one");
    assert_eq!(call(&a, "tag", "key=t"), "true nil");
    assert_eq!(first(&a, "get", "key=k"), "nil");
    wait_for("the item to be gone", || (first(&b, "get", "key=k") == "nil").then_some(()));
    assert_eq!(call(&a, "tag", "key=unheard"), "false nil");
}

#[test]
fn a_script_knows_the_visitor_of_another_machine() {
    let Two { redis: _redis, a, b } = Two::start();
    let reply = a.ask("GET", "/direct/session/in", "X-Value: mari\r\n");
    let cookie = reply.field("set-cookie").expect("a cookie").split(';').next().expect("one");
    let cookie = format!("Cookie: {cookie}\r\n");
    assert_eq!(b.ask("GET", "/script/session", &cookie).text(), "mari");
    assert_eq!(b.ask("GET", "/script/session", "").text(), "nobody");
}

#[test]
fn without_the_server_a_script_goes_on_and_learns_the_reason() {
    let Two { mut redis, a, b: _b } = Two::start();
    call(&a, "set", "key=k&value=one");
    // No copy is kept of what a report has crossed, and then the next read makes one.
    wait_for("a read without a trip", || {
        let before = count_of_commands(&redis);
        assert_eq!(first(&a, "get", "key=k"), "one");
        (count_of_commands(&redis) == before).then_some(())
    });
    redis.kill();
    a.kirin.wait_for_log("origin is away");
    assert_eq!(first(&a, "get", "key=k"), "one", "the copy");
    assert_eq!(call(&a, "get", "key=unknown"), "nil nil");
    for (name, start) in [
        ("set", "nil the origin is away"),
        ("incr", "nil the origin is away"),
        ("delete", "false the origin is away"),
        ("tag", "false the origin is away"),
    ] {
        let values = call(&a, name, "key=k&value=1");
        assert!(values.starts_with(start), "{name}: {values}");
    }
}

#[test]
fn a_script_that_reads_more_than_its_memory_has_room_for_fails_alone() {
    let Two { redis, a, b } = Two::start();
    let value = "x".repeat(90_000);
    let mut memcached = a.memcached();
    (1..=1000).for_each(|number| memcached.set(&format!("n{number}"), value.as_bytes()));
    let reads = || super::count_of(&redis, |name| name == "get");
    let before = reads();
    assert_eq!(first(&b, "numbered", "key=n&value=100"), "100");
    let taken = reads() - before;
    assert!(taken < 150, "{taken} reads: a name that is given twice is read once");
    let before = reads();
    assert_eq!(b.reply("/script/numbered?key=n&value=1000").status, 500);
    let taken = reads() - before;
    assert!(taken < 900, "{taken} reads, though the first 64 MB are too much");
    assert_eq!(first(&b, "numbered", "key=n&value=10"), "10");
}

#[test]
fn names_that_the_store_refuses_do_not_reach_the_server() {
    let Two { redis, a, b: _b } = Two::start();
    let alone = Machine::alone("c");
    let (key, tag) = ("k".repeat(2049), "t".repeat(251));
    let writes = super::count_of_writes(&redis);
    for (name, arguments) in [
        ("set", format!("key={key}&value=x")),
        ("delete", format!("key={key}")),
        ("count", format!("key={key}")),
        ("tag", format!("key={tag}")),
        ("prefix", format!("key={tag}")),
    ] {
        assert_eq!(call(&a, name, &arguments), call(&alone, name, &arguments), "{name}");
    }
    assert_eq!(super::count_of_writes(&redis), writes);
}
