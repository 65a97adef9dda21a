//! The adapter suite: the cases of `adapters/suite/cases`, for each adapter and each way in which
//! requests reach a worker.
//!
//! `adapters/suite/README.md` describes the table and the applications.

mod adapters;
mod cases;
mod connection;
mod expected;
mod groups;
mod left_out;
mod steps;
mod texts;
mod websocket;

use std::collections::{BTreeMap, BTreeSet};

use adapters::{Adapter, HandOver};
use left_out::LeftOut;

/// Declares a test for each file of cases, in each of the ways, or over sockets only. The files of
/// the core also have a test with the small adapters.
macro_rules! suite {
    ($($file:ident),*; over_sockets: $($socket_file:ident),*; core: $($core_file:ident),*) => {
        /// The files of cases.
        const FILES: &[&str] = &[$(stringify!($file),)* $(stringify!($socket_file)),*];

        /// The files that have cases of the core.
        const CORE_FILES: &[&str] = &[$(stringify!($core_file)),*];

        /// The cases over the ring.
        mod over_the_ring {
            $(#[test] fn $file() { super::run(stringify!($file), super::HandOver::Ring); })*
        }

        /// The core, with the small adapters.
        mod small_adapters {
            $(#[test] fn $core_file() { super::run_core(stringify!($core_file)); })*
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
    over_sockets: concurrency, trailers, websockets;
    core: bodies, cleanup, concurrency, deadlines, encoding, errors, forks, head, hostile_fields,
    kills, leaving, loading, odd_responses, recycling, reloads, requests, signals, streaming,
    uploads
}

/// Runs the cases of a file in one way, with all adapters of Kirin.
fn run(file: &str, hand_over: HandOver) {
    let adapters = Adapter::OWN.into_iter().filter(|one| one.ways().contains(&hand_over));
    run_with(file, adapters, hand_over);
}

/// Runs the cases of a file that belong to the core, with the small adapters.
fn run_core(file: &str) {
    run_with(file, Adapter::SMALL.into_iter(), HandOver::Socket);
}

fn run_with(file: &str, adapters: impl Iterator<Item = Adapter>, hand_over: HandOver) {
    let cases = cases::read(file);
    let mut failures = Vec::new();
    for adapter in adapters {
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
    let languages: Vec<&str> =
        Adapter::OWN.into_iter().chain(Adapter::SMALL).map(Adapter::name).collect();
    let ways = HandOver::ALL.map(HandOver::name);
    for file in FILES {
        for case in cases::read(file).cases {
            for (known, reasons) in [(&languages[..], &case.not_for), (&ways[..], &case.not_over)] {
                for (name, reason) in reasons {
                    assert!(known.contains(&name.as_str()), "{}: {name}", case.name);
                    assert!(reason.contains(' '), "{}: {name}: {reason:?}", case.name);
                }
            }
            let runs = Adapter::OWN
                .into_iter()
                .any(|adapter| adapter.ways().iter().any(|&way| case.is_for(adapter, way)));
            assert!(runs, "{}: left out everywhere", case.name);
        }
    }
}

#[test]
fn what_the_core_leaves_out_exists_and_all_the_rest_runs() {
    let mut names: BTreeSet<String> = BTreeSet::new();
    for &file in FILES {
        let cases = cases::read(file).cases;
        let is_core = cases.iter().any(|case| {
            Adapter::SMALL.into_iter().any(|adapter| case.is_for(adapter, HandOver::Socket))
        });
        assert_eq!(is_core, CORE_FILES.contains(&file), "{file}");
        names.extend(cases.into_iter().map(|case| case.name));
    }
    for entry in LeftOut::read().entries() {
        for file in &entry.files {
            assert!(FILES.contains(&file.as_str()), "no file {file}");
        }
        for case in &entry.cases {
            assert!(names.contains(case), "no case `{case}`");
        }
    }
}
