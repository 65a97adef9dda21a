//! Chaos with an origin: three Kirins share one Redis server, and a dozen clients write, read,
//! count, tag and purge, and look at pages that include the items. Meanwhile connections are cut,
//! swallow bytes and hold them, processes are stopped and killed. Each operation is written down,
//! and a checker judges all of them by the promises of docs/memcached.md.
//!
//! `make test` runs a short form. `make chaos` runs the long one (`KIRIN_CHAOS=long`).

mod checker;
mod checker_tests;
mod clients;
mod history;
mod machines;
pub mod proxy;

use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::thread::sleep;
use std::time::{Duration, Instant};

use kirin_tests::{MemcachedClient, RedisSentinels, SetAtEnd, wait_for, wait_limit};

use checker::{Limits, Promise, Violation, check};
use clients::{COUNTED, Client, Random, keys};
use history::{History, Kind, Operation, Outcome};
use machines::{Machines, Place};
use proxy::Mode;

/// How many clients each machine has.
const CLIENTS: u64 = 4;

/// Longer than copies are served without a proof.
const LONG_HOLE: Duration = Duration::from_millis(5500);

/// Returns how often each fault comes.
fn rounds() -> usize {
    match std::env::var("KIRIN_CHAOS").as_deref() {
        Ok("long") => 12,
        _ => 1,
    }
}

/// Lets clients of all machines act at random while `faults` runs.
fn with_clients(machines: &Machines, counts: bool, faults: impl FnOnce()) {
    let is_over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        for (place, number) in machines.places.iter().zip(0u64..) {
            for seed in number * CLIENTS..(number + 1) * CLIENTS {
                let is_over = &is_over;
                scope.spawn(move || {
                    Client::new(machines, place, seed).act_until(is_over, counts);
                });
            }
        }
        let _over = SetAtEnd(&is_over);
        faults();
    });
}

/// Lets each fault come once. The server keeps its data.
fn every_fault(machines: &Machines, random: &mut Random) {
    let millis = Duration::from_millis;
    let all = [0, 1, 2];
    let proxy = |place: usize| &machines.places[place].proxy;
    // The server hangs for less, and for more than a trip may take.
    for least in [200, 600] {
        machines.fault(&all, || {
            machines.redis.lock().pause();
            sleep(random.time(millis(least)));
            machines.redis.lock().resume();
        });
    }
    machines.fault(&all, || {
        machines.redis.lock().command(&["CLIENT", "KILL", "TYPE", "normal"]);
    });
    std::thread::scope(|scope| {
        scope.spawn(|| {
            machines.fault(&[1], || {
                proxy(1).set(Mode::BlackHole);
                sleep(LONG_HOLE);
                proxy(1).set(Mode::Pass);
            });
        });
        for (mode, least) in
            [(Mode::Cut, 200), (Mode::Hold, 100), (Mode::Hold, 600), (Mode::Delay(millis(20)), 300)]
        {
            machines.fault(&[0], || {
                proxy(0).set(mode);
                sleep(random.time(millis(least)));
                proxy(0).set(Mode::Pass);
            });
        }
        machines.fault(&[2], || machines.places[2].stop_for(random.time(millis(600))));
        machines.fault(&[2], || machines.restart(2));
    });
}

/// Reads every key by a machine that has no copies, and writes down what it finds. Then waits until
/// all machines find the same.
fn read_in_the_end(machines: &Machines) {
    let last = machines.place();
    let mut reader = Client::new(machines, &last, 0);
    for key in keys() {
        reader.act(key, Kind::Get);
        for place in &machines.places {
            let read = |place: &Place| {
                let mut client = MemcachedClient::connect(place.address().0);
                String::from_utf8(client.ask(format!("gets {key}\r\n").as_bytes())).expect("text")
            };
            let differs = std::fmt::from_fn(|output| {
                write!(output, "{:?} instead of {:?}", read(&last), read(place))
            });
            wait_for(&differs, || (read(place) == read(&last)).then_some(()));
        }
    }
}

/// Writes a page for each item, which includes it.
fn write_pages(machines: &Machines) {
    let mut client = MemcachedClient::connect(machines.places[0].address().0);
    for key in keys() {
        let page = format!("text/html\r\n<!--# include {key} -->");
        let set = format!("set /{key} 0 0 {}\r\n{page}\r\n", page.len());
        assert_eq!(client.ask(set.as_bytes()), b"STORED\r\n");
    }
}

/// Counts from zero.
fn begin_to_count(machines: &Machines) {
    let mut client = MemcachedClient::connect(machines.places[0].address().0);
    for key in COUNTED {
        assert_eq!(client.ask(format!("set {key} 0 0 1\r\n0\r\n").as_bytes()), b"STORED\r\n");
    }
}

/// Fails with the first violations. The whole history is in a file then.
fn assert_kept(history: &History, violations: &[Violation]) {
    if violations.is_empty() {
        return;
    }
    let file = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = file.join(format!("origin_chaos_{}.txt", std::process::id()));
    let violations: Vec<String> = violations.iter().map(ToString::to_string).collect();
    let operations = history.operations.iter().map(ToString::to_string);
    let text = format!(
        "{}\n\n{:#?}\n{:#?}\n\n{}\n",
        violations.join("\n"),
        history.machines,
        history.faults,
        operations.collect::<Vec<_>>().join("\n")
    );
    std::fs::write(&file, text).expect("a file");
    panic!(
        "{} violations in {} operations, see {}\n{}",
        violations.len(),
        history.operations.len(),
        file.display(),
        violations[..violations.len().min(10)].join("\n")
    );
}

fn summary(history: &History, began: Instant) -> String {
    let count = |is_meant: fn(&Outcome) -> bool| {
        history.operations.iter().filter(|operation| is_meant(&operation.outcome)).count()
    };
    format!(
        "\n{} operations in {:.1} s, and {} faults of machines: {} were refused, the outcome of \
         {} is unknown. No promise was broken.",
        history.operations.len(),
        began.elapsed().as_secs_f64(),
        history.faults.len(),
        count(|outcome| *outcome == Outcome::NotDone),
        count(|outcome| *outcome == Outcome::Unknown)
    )
}

#[test]
fn chaos() {
    let began = Instant::now();
    let machines = Machines::start(3);
    begin_to_count(&machines);
    write_pages(&machines);
    with_clients(&machines, true, || {
        let mut random = Random(0);
        (0..rounds()).for_each(|_| every_fault(&machines, &mut random));
    });
    read_in_the_end(&machines);
    let history = machines.history();
    assert_kept(&history, &check(&history, &Limits::default()));
    let is_met =
        |outcome: Outcome| history.operations.iter().any(|operation| operation.outcome == outcome);
    // The machine whose connection is cut refuses, and the black hole swallows commands.
    assert!(is_met(Outcome::NotDone) && is_met(Outcome::Unknown), "{}", summary(&history, began));
    let is_shown = |operation: &Operation| matches!(operation.outcome, Outcome::Shown(_));
    assert!(history.operations.iter().any(is_shown), "{}", summary(&history, began));
    println!("{}", summary(&history, began));
}

/// Checks what clients see while the server loses data by `lose` again and again.
fn chaos_of_losses(machines: &Machines, mut lose: impl FnMut()) {
    let began = Instant::now();
    write_pages(machines);
    with_clients(machines, false, || {
        for _ in 0..2 * rounds() {
            sleep(Duration::from_millis(500));
            lose();
        }
        sleep(Duration::from_millis(500));
    });
    read_in_the_end(machines);
    let history = machines.history();
    let limits = Limits { server_loses: true, ..Limits::default() };
    assert_kept(&history, &check(&history, &limits));
    println!("{}", summary(&history, began));
}

#[test]
fn chaos_with_a_server_that_loses_its_data() {
    let machines = Machines::start(3);
    chaos_of_losses(&machines, || {
        machines.fault(&[0, 1, 2], || {
            let start = machines.now();
            machines.redis.lock().restart();
            machines.add([checker::loss(machines.next_id(), start, machines.now())]);
        });
    });
}

#[test]
fn chaos_with_failovers() {
    let sentinels = RedisSentinels::start();
    let machines = Machines::of(sentinels.address(), 3);
    chaos_of_losses(&machines, || {
        let start = machines.now();
        machines.fault(&[0, 1, 2], || {
            sentinels.fail_over();
            sentinels.wait_for_replica();
        });
        // Each machine that follows purges everything.
        machines.add([checker::loss(machines.next_id(), start, machines.now())]);
    });
}

#[test]
fn a_machine_that_is_told_nothing_is_found_out() {
    for kind in [Kind::Get, Kind::Show] {
        let machines = Machines::start(2);
        write_pages(&machines);
        let [told, untold] = &machines.places[..] else { panic!("two machines") };
        untold.proxy.drop_invalidations();
        let limits = Limits { steady: Duration::from_millis(500), ..Limits::default() };
        let began = Instant::now();
        loop {
            let mut writer = Client::new(&machines, told, 0);
            let mut reader = Client::new(&machines, untold, 0);
            let set = || Kind::Set { tags: Vec::new() };
            assert_eq!(writer.act("k0", set()), Outcome::Done);
            // It keeps a copy, unless a write has crossed the reading.
            reader.act("k0", kind.clone());
            assert_eq!(writer.act("k0", set()), Outcome::Done);
            sleep(2 * limits.steady);
            reader.act("k0", kind.clone());
            drop((writer, reader));
            let violations = check(&machines.history(), &limits);
            if violations.iter().any(|violation| violation.promise == Promise::Fresh) {
                break;
            }
            assert!(began.elapsed() < wait_limit(), "{violations:?}");
        }
    }
}

#[test]
fn a_server_that_drops_acknowledged_writes_is_found_out() {
    let machines = Machines::start(1);
    begin_to_count(&machines);
    let mut client = Client::new(&machines, &machines.places[0], 0);
    assert_eq!(client.act("k0", Kind::Set { tags: Vec::new() }), Outcome::Done);
    machines.places[0].proxy.forge_puts();
    for (key, kind) in [("k0", Kind::Append), ("k1", Kind::Set { tags: Vec::new() })] {
        assert_eq!(client.act(key, kind), Outcome::Done, "{key}");
    }
    assert_eq!(client.act("n0", Kind::Count), Outcome::Number(1));
    drop(client);
    let last = machines.place();
    for key in ["k0", "k1", "n0"] {
        Client::new(&machines, &last, 0).act(key, Kind::Get);
    }
    let history = machines.history();
    let violations = check(&history, &Limits::default());
    let promises: Vec<Promise> = violations.iter().map(|violation| violation.promise).collect();
    assert_eq!(promises, [Promise::Kept; 3], "{violations:?}");
}

#[test]
fn a_machine_that_serves_an_older_value_of_its_own_is_found_out() {
    let machines = Machines::start(1);
    let place = &machines.places[0];
    let mut client = Client::new(&machines, place, 0);
    assert_eq!(client.act("k0", Kind::Set { tags: Vec::new() }), Outcome::Done);
    place.proxy.forge_puts();
    assert_eq!(client.act("k0", Kind::Set { tags: Vec::new() }), Outcome::Done);
    client.act("k0", Kind::Get);
    drop(client);
    let violations = check(&machines.history(), &Limits::default());
    assert!(
        violations.iter().any(|violation| violation.promise == Promise::OwnWrites),
        "{violations:?}"
    );
}
