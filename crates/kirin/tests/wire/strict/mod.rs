//! Strict HTTP/1 (RFC 9112), through the built program and over raw sockets: a table of inputs and
//! their results ([`kirin_tests::strict`]).
//!
//! Each input is sent complete, and cut into two pieces at every place. The responses, and the
//! requests that the application has seen, must be the same each time.

mod runner;

use kirin_tests::strict;

use runner::run;

#[test]
fn request_lines_and_targets_have_one_reading() {
    run(&strict::request_lines());
}

#[test]
fn field_lines_and_hosts_have_one_reading() {
    run(&strict::fields());
}

#[test]
fn bodies_end_in_one_place() {
    run(&strict::bodies());
}

#[test]
fn the_table_has_not_become_shorter() {
    let cases = strict::all();
    assert!(cases.len() >= 150, "{} cases", cases.len());
    let mut names: Vec<_> = cases.iter().map(|case| case.name).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), cases.len(), "each has a name of its own");
}
