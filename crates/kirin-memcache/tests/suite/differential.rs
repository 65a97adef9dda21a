//! The same bytes to Debian's memcached 1.6 and to Kirin: the answers are the same bytes.
//!
//! Three things are compared by their pattern instead. These are CAS uniques (each server counts
//! its own), times to live (the clocks tick at different times), and the internals that `me` shows.
//! The commands that answer differently are listed in `docs/memcached.md` and are not in here.

use std::collections::HashMap;

use kirin_memcache::ServerOptions;
use kirin_tests::RedisServer;
use proptest::test_runner::{RngAlgorithm, TestRng};

use crate::peer::{Client, Kirin, Memcached, show};
use rand_like::Choose;

const SCRIPTS: &str = include_str!("differential_scripts.txt");
const LISTS: &str = include_str!("differential_lists.txt");

/// A command that is sent after each step. The empty line ends an unfinished data block, so that
/// the server reads commands again. No step has the answer in its own, however the answers are cut
/// into packets.
const NO_OP: (&[u8], &[u8]) = (b"\r\nmg end_of_step\r\nmn\r\n", b"EN\r\nMN\r\n");

/// Makes CAS uniques comparable: each becomes the number of its first appearance.
#[derive(Default)]
struct Normal {
    cas: HashMap<String, usize>,
    last_cas: String,
    /// Whether it does not matter if an item was fetched before. Each near cache knows only of its
    /// own copy.
    ignores_fetches: bool,
}

impl Normal {
    fn cas(&mut self, cas: &str) -> String {
        if cas == "0" {
            return "0".into();
        }
        self.last_cas = cas.to_owned();
        let next = self.cas.len() + 1;
        format!("#{}", self.cas.entry(cas.to_owned()).or_insert(next))
    }

    /// Returns the answer with the variable parts of every line replaced.
    fn answer(&mut self, answer: &[u8]) -> String {
        let shown = show(answer);
        let mut lines: Vec<String> = shown
            .split("\\r\\n")
            .flat_map(|line| line.split("\\n"))
            .map(|line| self.line(line))
            .collect();
        // The lines of a list have no order.
        if ["key=", "ITEM ", "PREFIX "].iter().any(|start| lines[0].starts_with(start)) {
            lines.sort();
        }
        for at in 1..lines.len() {
            let (before, rest) = lines.split_at_mut(at);
            unpad(&mut before[at - 1], &mut rest[0]);
        }
        lines.join("\n")
    }

    fn line(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split(' ').collect();
        match words.as_slice() {
            ["VALUE", key, flags, length, cas] => {
                format!("VALUE {key} {flags} {length} {}", self.cas(cas))
            }
            ["HD" | "VA" | "NS" | "EX" | "NF" | "EN", flags @ ..] => {
                let flags: Vec<String> = flags
                    .iter()
                    .map(|flag| match flag.split_at_checked(1) {
                        Some(("c", cas)) => format!("c{}", self.cas(cas)),
                        Some(("h", _)) if self.ignores_fetches => "h".to_owned(),
                        // They may differ by two seconds: one for each clock.
                        Some(("t", ttl)) => match ttl.parse::<i64>() {
                            Ok(seconds @ 3..) => format!("t~{}", (seconds + 50) / 100),
                            _ => format!("t{ttl}"),
                        },
                        _ => (*flag).to_owned(),
                    })
                    .collect();
                format!("{} {}", words[0], flags.join(" "))
            }
            ["ME", key, ..] => {
                let shown: Vec<&str> = words[2..]
                    .iter()
                    .map(|word| match word.split_once('=') {
                        Some((name @ ("la" | "cas" | "cls" | "size" | "exp"), _)) => name,
                        Some((name @ "fetch", _)) if self.ignores_fetches => name,
                        _ => word,
                    })
                    .collect();
                format!("ME {key} {}", shown.join(" "))
            }
            // A line of `metadump`. Each server counts memory and CAS uniques in its own way.
            [key, exp, _, _, fetch, ..] if key.starts_with("key=") => {
                let exp = if *exp == "exp=-1" { exp } else { "exp" };
                format!("{key} {exp} la cas {fetch} cls size {}", words.len())
            }
            // A line of `stats cachedump`.
            ["ITEM", key, length, "b;", expires, "s]"] => {
                let expires = if *expires == "0" { "0" } else { "then" };
                format!("ITEM {key} {length} b; {expires} s]")
            }
            _ => line.to_owned(),
        }
    }
}

/// Removes the spaces that pad a number which `decr` made shorter. memcached pads only if nothing
/// else holds the item at that moment, such as the answer to another `get`.
fn unpad(line: &mut String, data: &mut String) {
    let number = data.trim_end_matches(' ');
    let padding = data.len() - number.len();
    if padding == 0 || number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
        return;
    }
    let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let at = if words[0] == "VALUE" { 3 } else { 1 };
    let Some(length) = words.get(at).and_then(|length| length.parse::<usize>().ok()) else {
        return;
    };
    words[at] = (length - padding).to_string();
    *line = words.join(" ");
    data.truncate(data.len() - padding);
}

/// Replaces `$CAS` by the last CAS unique that this server gave, and escapes by bytes.
fn bytes_of(step: &str, last_cas: &str) -> Vec<u8> {
    let text = step.replace("$CAS", if last_cas.is_empty() { "1" } else { last_cas });
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        rest = after;
        match (first, after) {
            (b'\\', [b'r', after @ ..]) => (bytes.push(b'\r'), rest = after).1,
            (b'\\', [b'n', after @ ..]) => (bytes.push(b'\n'), rest = after).1,
            (b'\\', [b't', after @ ..]) => (bytes.push(b'\t'), rest = after).1,
            (b'\\', [b'0', after @ ..]) => (bytes.push(0), rest = after).1,
            // `\*NUM*c` is NUM times the character c.
            (b'\\', [b'*', after @ ..]) => {
                let digits = after.iter().take_while(|byte| byte.is_ascii_digit()).count();
                let count: usize =
                    String::from_utf8_lossy(&after[..digits]).parse().expect("a count");
                bytes.extend(std::iter::repeat_n(after[digits + 1], count));
                rest = &after[digits + 2..];
            }
            (byte, _) => bytes.push(*byte),
        }
    }
    bytes
}

/// Sends a step and returns its answer. memcached leaves commands behind a list unread until there
/// are more, so a list goes alone. A line with an error is no list.
fn ask(client: &mut Client, step: &[u8]) -> Vec<u8> {
    const LISTED: &[&[u8]] = &[b"all", b"hash", b"1", b"2,1", b",,1,", b"4294967297"];
    let classes = step.strip_prefix(b"lru_crawler metadump ").map(<[u8]>::trim_ascii_end);
    if classes.is_some_and(|classes| LISTED.contains(&classes)) {
        return client.ask_until(step, b"\r\n");
    }
    client.ask_before(step, NO_OP)
}

/// Runs the steps on a new connection to each server and compares each answer.
fn compare(name: &str, steps: &[String], theirs: &mut Client, ours: &mut Client) {
    let normal = || Normal { ignores_fetches: ours.is_near_cache, ..Normal::default() };
    let (mut their_normal, mut our_normal) = (normal(), normal());
    let mut so_far = String::new();
    for step in steps {
        let their_bytes = bytes_of(step, &their_normal.last_cas);
        let our_bytes = bytes_of(step, &our_normal.last_cas);
        let their_answer = ask(theirs, &their_bytes);
        let our_answer = ask(ours, &our_bytes);
        so_far.push_str(&format!("  {}\n", show(&our_bytes)));
        assert_eq!(
            our_normal.answer(&our_answer),
            their_normal.answer(&their_answer),
            "{name}: ours (left) is not memcached's (right), after\n{so_far}"
        );
        if their_answer.ends_with(b"<closed>") {
            return;
        }
    }
}

/// Runs each script on new connections and empty stores. Returns the number of steps.
fn compare_scripts(scripts: &str, memcached: &Memcached, kirin: &Kirin) -> usize {
    let mut steps = 0;
    for script in scripts.split("\n## ").skip(1) {
        let (name, body) = script.split_once('\n').expect("a script under its name");
        let lines: Vec<String> = body
            .lines()
            .filter(|line| !line.is_empty() && !line.starts_with("# "))
            .map(str::to_owned)
            .collect();
        compare(name, &lines, &mut memcached.connect(), &mut kirin.connect());
        // Later scripts find empty stores.
        for mut client in [memcached.connect(), kirin.connect()] {
            assert_eq!(client.ask(b"flush_all\r\n"), b"OK\r\n");
        }
        steps += lines.len();
    }
    steps
}

#[test]
fn scripts_are_answered_as_memcached_answers_them() {
    let steps = compare_scripts(SCRIPTS, &Memcached::start(), &Kirin::start());
    assert!(steps > 300, "{steps} steps: was the file read?");
}

#[test]
fn lists_of_items_are_those_of_memcached() {
    // Its thread would move items between the queues that the commands list.
    let memcached = Memcached::with(&["-o", "no_lru_maintainer"]);
    let steps = compare_scripts(LISTS, &memcached, &Kirin::start());
    assert!(steps > 20, "{steps} steps: was the file read?");
}

#[test]
fn generated_commands_are_answered_as_memcached_answers_them() {
    compare_generated(250, &Kirin::start());
}

#[test]
fn a_near_cache_answers_scripts_as_memcached_does() {
    let redis = RedisServer::start();
    let kirin = Kirin::before(&redis, ServerOptions::default());
    let steps = compare_scripts(SCRIPTS, &Memcached::start(), &kirin);
    assert!(steps > 300, "{steps} steps: was the file read?");
}

#[test]
fn a_near_cache_answers_generated_commands_as_memcached_does() {
    let redis = RedisServer::start();
    compare_generated(100, &Kirin::before(&redis, ServerOptions::default()));
}

/// Compares the answers to commands that are made from each of these seeds.
fn compare_generated(seeds: u8, kirin: &Kirin) {
    let memcached = Memcached::start();
    for seed in 0..seeds {
        let mut rng = TestRng::from_seed(RngAlgorithm::ChaCha, &[seed; 32]);
        let steps: Vec<String> = (0..40).map(|_| command(&mut rng, seed)).collect();
        compare(&format!("seed {seed}"), &steps, &mut memcached.connect(), &mut kirin.connect());
    }
}

/// Makes a command that may be valid or have a mistake in it.
fn command(rng: &mut TestRng, seed: u8) -> String {
    const NUMBERS: &[&str] =
        &["0", "1", "5", "100", "-1", "x", "18446744073709551615", "$CAS", "+3", "7\\tx"];
    const TTLS: &[&str] =
        &["0", "0", "1000", "-1", "2592000", "2592001", "4294967296", "x", "99999999999999999999"];
    const VALUES: &[&str] =
        &["", "a", "10", "99", "0", "18446744073709551615", "hello world", "-5", " 7", "12x"];
    const META_GET: &[&str] = &[
        "v", "t", "s", "c", "f", "k", "Oabc", "q", "u", "N0", "N1000", "T1000", "R30", "T0", "Lx",
        "Pz", "v", "!",
    ];
    const META_SET: &[&str] = &[
        "c", "k", "O1", "q", "F7", "T1000", "ME", "MS", "MR", "MS", "I", "C$CAS", "C1", "C0",
        "T-1", "Fx", "M",
    ];
    const META_DELETE: &[&str] = &["k", "O9", "q", "I", "C$CAS", "C1", "T1000", "v"];
    const META_ARITHMETIC: &[&str] = &[
        "v", "t", "c", "k", "O2", "q", "N0", "N1000", "J5", "D3", "MD", "MI", "M+", "M-", "T1000",
        "Dx", "Mz",
    ];

    let key = format!("{}_{seed}", rng.one(&["a", "b", "c", "d"]));
    let noreply = rng.one(&["", "", "", " noreply"]);
    let value = rng.one(VALUES);
    let length = match rng.below(12) {
        0 => value.len() + 1,
        _ => value.len(),
    };
    let flags = |rng: &mut TestRng, from: &[&str]| {
        (0..rng.below(5)).map(|_| format!(" {}", rng.one(from))).collect::<String>()
    };
    match rng.below(16) {
        0 | 1 => {
            // The effect of append on a stale item differs: see docs/memcached.md.
            let key = format!("e{seed}");
            let verb = rng.one(&["set", "add", "replace", "append", "prepend"]);
            let (client_flags, ttl) = (rng.one(&["0", "5", "4294967295", "x"]), rng.one(TTLS));
            format!("{verb} {key} {client_flags} {ttl} {length}{noreply}\\r\\n{value}\\r\\n")
        }
        2 | 3 => format!("set {key} 3 0 {}\\r\\n{value}\\r\\n", value.len()),
        4 => {
            let cas = rng.one(NUMBERS);
            format!("gets {key}\\r\\ncas {key} 1 0 {length} {cas}{noreply}\\r\\n{value}\\r\\n")
        }
        5 => format!("{} {key} {}{noreply}\\r\\n", rng.one(&["incr", "decr"]), rng.one(NUMBERS)),
        6 => format!("delete {key}{}{noreply}\\r\\n", rng.one(&["", " 0", " 1"])),
        7 => format!("touch {key} {}{noreply}\\r\\n", rng.one(TTLS)),
        8 => format!("{} {key} e{seed} {key}\\r\\n", rng.one(&["get", "gets"])),
        9 => format!("{} {} {key}\\r\\n", rng.one(&["gat", "gats"]), rng.one(TTLS)),
        10 | 11 => format!("mg {key}{}\\r\\n", flags(rng, META_GET)),
        12 => format!("ms {key} {length}{}\\r\\n{value}\\r\\n", flags(rng, META_SET)),
        13 => format!("md {key}{}\\r\\n", flags(rng, META_DELETE)),
        14 => format!("ma {key}{}\\r\\n", flags(rng, META_ARITHMETIC)),
        _ => format!("get {key}\\r\\nmg {key} s v t\\r\\n"),
    }
}

mod rand_like {
    use proptest::prelude::Rng;

    pub trait Choose {
        fn below(&mut self, end: u32) -> u32;
        fn one<'a>(&mut self, from: &[&'a str]) -> &'a str;
    }

    impl<R: Rng> Choose for R {
        fn below(&mut self, end: u32) -> u32 {
            self.next_u32() % end
        }

        fn one<'a>(&mut self, from: &[&'a str]) -> &'a str {
            from[self.below(from.len() as u32) as usize]
        }
    }
}
