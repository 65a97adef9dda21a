//! The adapter suite: the cases of `adapters/suite/cases`, for each adapter and each way in which
//! requests reach a worker.
//!
//! `adapters/suite/README.md` describes the table and the applications.

mod adapters;
mod cases;
mod connection;
mod expected;
mod groups;
mod steps;
mod texts;
mod websocket;

use std::collections::{BTreeMap, BTreeSet};

use adapters::{Adapter, HandOver};

/// Declares a test for each file of cases, in each of the ways, or over sockets only.
macro_rules! suite {
    ($($file:ident),*; over_sockets: $($socket_file:ident),*) => {
        /// The files of cases.
        const FILES: &[&str] = &[$(stringify!($file),)* $(stringify!($socket_file)),*];

        /// The cases over the ring.
        mod over_the_ring {
            $(#[test] fn $file() { super::run(stringify!($file), super::HandOver::Ring); })*
        }

        /// The cases over sockets, to workers that could use a ring or have no other way.
        mod over_sockets {
            $(#[test] fn $file() { super::run(stringify!($file), super::HandOver::Socket); })*
            $(#[test] fn $socket_file() {
                super::run(stringify!($socket_file), super::HandOver::Socket);
            })*
        }

        /// The cases over sockets, to workers that have nothing of the compiled part.
        mod without_the_compiled_part {
            $(#[test] fn $file() { super::run(stringify!($file), super::HandOver::Plain); })*
        }
    };
}

suite! {
    bodies, cleanup, deadlines, early_hints, encoding, errors, files, forks, head, hostile_fields,
    kills, leaving, loading, odd_responses, recycling, reloads, requests, signals, streaming,
    upgrades, uploads;
    over_sockets: concurrency, trailers, websockets
}

/// Runs the cases of a file in one way, with all adapters.
fn run(file: &str, hand_over: HandOver) {
    let cases = cases::read(file);
    let mut failures = Vec::new();
    for adapter in Adapter::ALL.into_iter().filter(|one| one.ways().contains(&hand_over)) {
        groups::run(&cases, adapter, hand_over, &mut failures);
    }
    assert!(failures.is_empty(), "{} failures\n\n{}", failures.len(), failures.join("\n\n"));
}

#[test]
fn every_file_of_cases_is_run_and_every_name_is_used_once() {
    let found = std::fs::read_dir(cases::directory()).expect("the cases").map(|entry| {
        let name = entry.expect("an entry").file_name().into_string().expect("UTF-8");
        name.strip_suffix(".toml").expect("a file of cases").to_owned()
    });
    let listed: BTreeSet<String> = FILES.iter().map(|&file| file.to_owned()).collect();
    assert_eq!(found.collect::<BTreeSet<_>>(), listed);
    let mut file_of = BTreeMap::new();
    for file in FILES {
        for case in cases::read(file).cases {
            if let Some(other) = file_of.insert(case.name.clone(), file) {
                panic!("`{}` is in {other} and in {file}", case.name);
            }
        }
    }
}

#[test]
fn a_case_that_is_left_out_says_why() {
    let languages = Adapter::ALL.map(Adapter::name);
    let ways = HandOver::ALL.map(HandOver::name);
    for file in FILES {
        for case in cases::read(file).cases {
            for (known, reasons) in [(&languages[..], &case.not_for), (&ways[..], &case.not_over)] {
                for (name, reason) in reasons {
                    assert!(known.contains(&name.as_str()), "{}: {name}", case.name);
                    assert!(reason.contains(' '), "{}: {name}: {reason:?}", case.name);
                }
            }
            let runs = Adapter::ALL
                .into_iter()
                .any(|adapter| adapter.ways().iter().any(|&way| case.is_for(adapter, way)));
            assert!(runs, "{}: left out everywhere", case.name);
        }
    }
}
