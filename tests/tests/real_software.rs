//! Frameworks that Debian packages, unmodified, behind the built program: Mojolicious, Dancer2 and Catalyst. The tests are in
//! Perl (`tests/perl-software`), since their clients are.

use kirin_tests::Site;
use kirin_tests::kirin_command;
use std::path::Path;
use std::process::Command;

fn prove(test: &str) {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("perl-software");
    let output = Command::new("prove")
        .args(["-lv", test])
        .current_dir(directory)
        .env("KIRIN_BINARY", kirin_command(&Site::new()).get_program())
        .output()
        .expect("prove is part of Perl");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("Result: PASS"), "the tests were skipped: {text}");
}

#[test]
fn a_mojolicious_application_answers_as_it_does_behind_starlet() {
    prove("t/mojolicious.t");
}

#[test]
fn a_dancer2_application_answers_as_it_does_behind_starlet() {
    prove("t/dancer2.t");
}

#[test]
fn a_catalyst_application_answers_as_it_does_behind_starlet() {
    prove("t/catalyst.t");
}

#[test]
fn generated_and_packaged_applications_pass_their_own_tests() {
    prove("t/own_tests.t");
}
