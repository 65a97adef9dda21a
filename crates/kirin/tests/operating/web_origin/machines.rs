//! All machines of an origin, as an operator sees them at any of them.

use std::fmt::from_fn;
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

use kirin_tests::{RedisCluster, RedisServer, kirin_command, run_kirin, wait_for, wait_long};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{CALM, Machine, address_of};

/// Longer than a machine counts after it has died.
const LEASE: Duration = Duration::from_secs(30);

/// Three machines and the server between them.
struct Three {
    redis: RedisServer,
    machines: [Machine; 3],
}

impl Three {
    fn start() -> Self {
        Self::start_with(CALM)
    }

    fn start_with(store: &str) -> Self {
        let redis = RedisServer::start();
        let machine = |name| Machine::with_origin(name, &address_of(&redis), store).connected(1);
        let three = Self { machines: ["a", "b", "c"].map(machine), redis };
        three.machines[0].wait_for_machines(3);
        three
    }
}

/// What a command has said.
struct Said {
    is_success: bool,
    text: String,
}

impl Machine {
    fn command(&self, words: &[&str]) -> Said {
        let output = run_kirin(&self.site, words);
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(text).expect("text");
        Said { is_success: output.status.success(), text }
    }

    /// Returns what a command prints that succeeds.
    fn printed(&self, words: &[&str]) -> String {
        let said = self.command(words);
        assert!(said.is_success, "{words:?}: {}\n{}", said.text, self.kirin.log());
        said.text
    }

    /// Returns why a command fails.
    fn refused(&self, words: &[&str]) -> String {
        let said = self.command(words);
        assert!(!said.is_success, "{words:?}: {}", said.text);
        said.text
    }

    fn status_of_all(&self) -> Value {
        let text = self.printed(&["status", "--all", "--json"]);
        serde_json::from_str(&text).expect("JSON")
    }

    /// Waits until so many machines are known, and all of them answer.
    fn wait_for_machines(&self, count: usize) -> Value {
        let missing = from_fn(|f| write!(f, "{count} machines in {:#}", self.status_of_all()));
        wait_long(LEASE, &missing, || {
            let status = self.status_of_all();
            (pids(&status, true).len() == count && pids(&status, false).is_empty())
                .then_some(status)
        })
    }

    /// Returns a snapshot of all machines.
    fn top_of_all(&self) -> Value {
        let command = &mut kirin_command(&self.site);
        let command = command.args(["top", "--all", "--stream"]).stdout(Stdio::piped());
        let mut child = command.spawn().expect("kirin top");
        let mut line = String::new();
        let mut output = std::io::BufReader::new(child.stdout.take().expect("its output"));
        std::io::BufRead::read_line(&mut output, &mut line).expect("a line");
        child.kill().expect("kill");
        child.wait().expect("wait");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line}"))
    }
}

/// Returns the processes that have answered, or those that have not, in their order.
fn pids(status: &Value, has_answered: bool) -> Vec<u64> {
    let machines = status["machines"].as_array().expect("machines").iter();
    let machines = machines.filter(|machine| machine["answered"] == has_answered);
    let mut pids: Vec<_> =
        machines.map(|machine| machine["pid"].as_u64().expect("a pid")).collect();
    pids.sort_unstable();
    pids
}

fn pids_of<'a>(machines: impl IntoIterator<Item = &'a Machine>) -> Vec<u64> {
    let mut pids: Vec<_> =
        machines.into_iter().map(|machine| u64::from(machine.kirin.pid())).collect();
    pids.sort_unstable();
    pids
}

#[test]
fn each_machine_has_a_line_and_their_numbers_add_up() {
    let Three { redis: _redis, machines } = Three::start();
    let [a, b, _] = &machines;
    for machine in [a, a, a, b] {
        machine.get("/direct/page");
    }
    let status = wait_for("all requests", || {
        let status = b.wait_for_machines(3);
        (status["sum"]["requests"] == 4).then_some(status)
    });
    assert_eq!(pids(&status, true), pids_of(&machines), "{status:#}");
    for machine in status["machines"].as_array().expect("machines") {
        let expected = match machine["pid"].as_u64() {
            pid if pid == Some(a.kirin.pid().into()) => 3,
            pid if pid == Some(b.kirin.pid().into()) => 1,
            _ => 0,
        };
        assert_eq!(machine["requests"], expected, "{machine:#}");
        assert_eq!(machine["workers"], 2, "{machine:#}");
        assert_eq!(machine["version"], machine["status"]["version"], "{machine:#}");
        assert_eq!(machine["status"]["origin"]["state"], "connected", "{machine:#}");
        assert!(machine["serves"].as_str().expect("text").ends_with("/kirin.toml"), "{machine:#}");
    }
    let sum = &status["sum"];
    assert_eq!((&sum["workers"], &sum["answered"]), (&6.into(), &3.into()), "{sum:#}");
    let app = &sum["status"]["apps"][0];
    assert_eq!((&app["name"], &app["counters"]["requests"]), (&"web".into(), &4.into()), "{app:#}");
    let text = a.printed(&["status", "--all"]);
    assert!(text.starts_with("3 machines\nconfigurations differ: "), "{text}");
    assert_eq!(text.matches("  answers  ").count(), 3, "{text}");
    assert!(text.lines().last().expect("lines").starts_with("all "), "{text}");
    let host = status["machines"][0]["host"].as_str().expect("a host");
    let names = pids_of(&machines).iter().map(|pid| format!("{host}/{pid}")).collect::<Vec<_>>();
    let line = format!("\nmachines      3 ({})\n", names.join(", "));
    let text = a.printed(&["status"]);
    assert!(text.contains(&line), "{line} in {text}");
}

#[test]
fn a_machine_that_was_killed_is_shown_without_an_answer_until_it_is_forgotten() {
    let Three { redis: _redis, machines: [a, b, mut c] } = Three::start();
    c.kirin.signal(Signal::KILL);
    c.kirin.wait();
    let status = a.status_of_all();
    assert_eq!(pids(&status, true), pids_of([&a, &b]), "{status:#}");
    assert_eq!(pids(&status, false), pids_of([&c]), "{status:#}");
    assert_eq!((&status["sum"]["machines"], &status["sum"]["answered"]), (&3.into(), &2.into()));
    let text = a.printed(&["status", "--all"]);
    assert!(text.contains("\n! no answer: ") && text.contains("  no answer  "), "{text}");
    let text = a.printed(&["top", "--all", "--once"]);
    assert!(text.lines().next().expect("lines").contains("3 machines  no answer: "), "{text}");
    let status = b.wait_for_machines(2);
    assert_eq!(pids(&status, true), pids_of([&a, &b]), "{status:#}");
}

#[test]
fn a_machine_that_ends_leaves_the_others_at_once() {
    let Three { redis: _redis, machines: [a, mut b, mut c] } = Three::start();
    for (machine, signal) in [(&mut b, Signal::QUIT), (&mut c, Signal::TERM)] {
        machine.kirin.signal(signal);
        assert!(machine.kirin.wait().success());
    }
    let status = a.status_of_all();
    assert_eq!((pids(&status, true), pids(&status, false)), (pids_of([&a]), vec![]), "{status:#}");
}

#[test]
fn a_machine_that_hangs_is_shown_without_an_answer() {
    let Three { redis: _redis, machines } = Three::start();
    let [a, b, c] = &machines;
    c.kirin.signal(Signal::STOP);
    let status = a.status_of_all();
    let top = a.top_of_all();
    c.kirin.signal(Signal::CONT);
    assert_eq!(pids(&status, true), pids_of([a, b]), "{status:#}");
    assert_eq!(pids(&status, false), pids_of([c]), "{status:#}");
    assert_eq!(top["machines"]["answered"].as_array().map(Vec::len), Some(2), "{top:#}");
    assert_eq!(top["machines"]["silent"].as_array().map(Vec::len), Some(1), "{top:#}");
    assert_eq!(pids(&a.wait_for_machines(3), true), pids_of(&machines));
}

#[test]
fn the_rows_of_all_machines_are_one_table() {
    let Three { redis: _redis, machines } = Three::start();
    let [a, b, c] = &machines;
    for machine in [a, b, b] {
        machine.get("/direct/page");
    }
    c.get("/direct/other");
    let top = wait_for("all requests", || {
        let top = c.top_of_all();
        (top["live"]["requests"] == 4).then_some(top)
    });
    let urls = top["live"]["urls"].as_array().expect("URLs");
    let rows: Vec<_> = urls
        .iter()
        .map(|url| (url["pattern"].as_str(), url["total"]["requests"].as_u64()))
        .collect();
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows.contains(&(Some("/direct/page"), Some(3))), "{rows:?}");
    assert!(rows.contains(&(Some("/direct/other"), Some(1))), "{rows:?}");
    assert_eq!(top["live"]["total"]["requests"], 4, "{top:#}");
    assert!(urls[0]["total"]["p50_ms"].as_f64() > Some(0.0), "{top:#}");
    let mut machines: Vec<_> = top["workers"]
        .as_array()
        .expect("workers")
        .iter()
        .map(|worker| worker["machine"].as_str().expect("a machine").to_owned())
        .collect();
    assert_eq!(machines.len(), 6, "{top:#}");
    machines.dedup();
    assert_eq!(top["machines"]["answered"], Value::from(machines), "{top:#}");
    let text = a.printed(&["top", "--all"]);
    assert!(text.lines().next().expect("lines").ends_with("3 machines"), "{text}");
    assert!(text.contains("machine") && text.contains("GET /direct/page"), "{text}");
}

#[test]
fn without_an_origin_there_are_no_other_machines() {
    let alone = Machine::alone("a");
    let refusal = "this Kirin knows no other machines: its [store] has no `origin`";
    for command in ["status", "top"] {
        let said = alone.refused(&[command, "--all"]);
        assert!(said.contains(refusal) && !said.contains("409"), "{command}: {said}");
    }
    assert!(!alone.printed(&["status"]).contains("machines"));
}

#[test]
fn while_the_origin_is_away_the_reason_is_said() {
    let mut redis = RedisServer::start();
    let a = Machine::with_origin("a", &address_of(&redis), "stale_limit = \"2s\"\n").connected(1);
    a.wait_for_machines(1);
    redis.kill();
    wait_for("the origin to be away", || {
        let said = a.command(&["status", "--all"]);
        (!said.is_success && said.text.contains("503 Service Unavailable: the origin is away: "))
            .then_some(())
    });
    let said = a.refused(&["top", "--all"]);
    assert!(said.contains("503 Service Unavailable: the origin is away: "), "{said}");
    // The status of this machine does not need it.
    let status = a.printed(&["status"]);
    assert!(status.contains(" is away: ") && !status.contains("\nmachines "), "{status}");
    redis.restart();
    a.wait_for_connections(2);
    assert_eq!(pids(&a.wait_for_machines(1), true), pids_of([&a]));
}

/// A program that another one has started. It is ended when this is dropped.
struct Successor(Pid);

impl Drop for Successor {
    fn drop(&mut self) {
        // It fails if it has ended already.
        let _ = kill_process(self.0, Signal::TERM);
    }
}

#[test]
fn an_upgraded_machine_counts_once() {
    let Three { redis: _redis, machines: [a, b, mut c] } = Three::start();
    let old = u64::from(c.kirin.pid());
    let said = c.printed(&["upgrade"]);
    let pid = said.split_whitespace().find_map(|word| word.parse::<i32>().ok()).expect(&said);
    let _successor = Successor(Pid::from_raw(pid).expect("a pid"));
    assert!(c.kirin.wait().success());
    let status = wait_for("the new program", || {
        let status = a.wait_for_machines(3);
        pids(&status, true).contains(&(pid as u64)).then_some(status)
    });
    let mut expected = pids_of([&a, &b]);
    expected.push(pid as u64);
    expected.sort_unstable();
    assert_eq!(pids(&status, true), expected, "without {old}: {status:#}");
}

#[test]
fn a_purge_says_on_how_many_machines_it_holds() {
    let Three { redis: _redis, machines: [a, _b, mut c] } = Three::start();
    let said = a.printed(&["purge", "--key", "/a", "--tag", "b"]);
    assert_eq!(said, "purged 0 of 1 keys, 0 of 1 tags on 3 machines\n");
    c.kirin.signal(Signal::TERM);
    c.kirin.wait();
    let said = a.printed(&["purge", "--soft", "--prefix", "/a"]);
    assert_eq!(said, "purged softly 1 of 1 prefixes on 2 machines\n");
    let alone = Machine::alone("d");
    assert_eq!(alone.printed(&["purge", "--prefix", "/a"]), "purged 1 of 1 prefixes\n");
}

#[test]
fn operators_that_ask_at_once_all_get_all_answers() {
    let Three { redis: _redis, machines } = Three::start();
    let expected = pids_of(&machines);
    thread::scope(|scope| {
        let asking: Vec<_> = (0..9)
            .map(|number| {
                let machine = &machines[number % 3];
                scope.spawn(move || match number % 2 {
                    0 => pids(&machine.status_of_all(), true).len(),
                    _ => {
                        machine.top_of_all()["machines"]["answered"].as_array().map_or(0, Vec::len)
                    }
                })
            })
            .collect();
        for asked in asking {
            assert_eq!(asked.join().expect("an answer"), expected.len());
        }
    });
}

#[test]
fn many_questions_have_few_answers() {
    let redis = RedisServer::start();
    let a = Machine::with_origin("a", &address_of(&redis), CALM).connected(1);
    a.wait_for_machines(1);
    redis.command(&["CONFIG", "RESETSTAT"]);
    let (begun, mut questions) = (Instant::now(), 0);
    while begun.elapsed() < Duration::from_secs(2) {
        questions += 1;
        redis.command(&["SET", "kirin:r:question/top", &questions.to_string(), "PX", "1000"]);
    }
    let written = super::count_of(&redis, |name| name == "set") - questions;
    // The first one may have begun before.
    let most = 2 + begun.elapsed().as_millis() as u64 / 500;
    assert!((1..=most).contains(&written), "{written} answers to {questions} questions");
    assert_eq!(pids(&a.wait_for_machines(1), true), pids_of([&a]));
}

#[test]
fn machines_of_a_cluster_know_each_other() {
    let cluster = RedisCluster::start();
    let machine = |name| Machine::with_origin(name, &cluster.address(), CALM).connected(1);
    let machines = ["a", "b"].map(machine);
    let status = machines[0].wait_for_machines(2);
    assert_eq!(pids(&status, true), pids_of(&machines), "{status:#}");
    assert_eq!(machines[1].top_of_all()["machines"]["answered"].as_array().map(Vec::len), Some(2));
}
