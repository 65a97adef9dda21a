//! `Plack::Handler::Kirin` with the program that was built beside this test: Plack's own tests of servers, and the life of
//! `plackup -s Kirin`.

use std::path::{Path, PathBuf};
use std::process::Command;

/// `target/debug/kirin`, beside which this test was built, or what `KIRIN_BINARY` says.
fn binary() -> PathBuf {
    if let Some(binary) = std::env::var_os("KIRIN_BINARY") {
        return binary.into();
    }
    let test = std::env::current_exe().expect("the test's own path");
    test.ancestors().nth(2).expect("target/debug").join("kirin")
}

fn prove(test: &str) {
    let adapter = Path::new(env!("CARGO_MANIFEST_DIR")).join("../adapters/perl");
    let output = Command::new("prove")
        .args(["-lv", test])
        .current_dir(adapter)
        .env("KIRIN_BINARY", binary())
        .output()
        .expect("prove is part of Perl");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("Result: PASS"), "the tests were skipped: {text}");
}

#[test]
fn plack_s_own_tests_of_servers_pass_under_http_1_0_and_1_1() {
    prove("t/handler_suite.t");
}

#[test]
fn plackup_starts_and_ends_kirin_with_all_its_processes() {
    prove("t/handler_life.t");
}

#[test]
fn start_server_in_front_of_plackup_replaces_programs_without_a_lost_request() {
    prove("t/handler_start_server.t");
}
