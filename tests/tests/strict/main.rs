//! Strict HTTP/1 (RFC 9112), through the built program and over raw sockets: a table of inputs, and what becomes of them.
//!
//! Each is sent whole, and cut into two pieces at every place. What comes back, and what the application behind has seen,
//! must be the same each time.

mod bodies;
mod differential;
mod fields;
mod request_lines;
mod runner;

use runner::{Case, run};

/// A case: its name, what is sent, and what comes of it in order: a status of Kirin's own, or the request as the application
/// has seen it.
fn case(name: &'static str, input: impl AsRef<[u8]>, outcomes: &[&str]) -> Case {
    let outcomes = outcomes.iter().map(|outcome| (*outcome).to_owned()).collect();
    Case { name, input: input.as_ref().to_vec(), outcomes }
}

#[test]
fn request_lines_and_targets_have_one_reading() {
    run(&request_lines::cases());
}

#[test]
fn field_lines_and_hosts_have_one_reading() {
    run(&fields::cases());
}

#[test]
fn bodies_end_in_one_place() {
    run(&bodies::cases());
}

#[test]
fn the_table_has_not_become_shorter() {
    let cases = [request_lines::cases(), fields::cases(), bodies::cases()].concat();
    assert!(cases.len() >= 150, "{} cases", cases.len());
    let mut names: Vec<_> = cases.iter().map(|case| case.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "each has a name of its own");
}
