//! Clients that people use, from Debian, PyPI and Go's module proxy, over TCP and over a unix
//! socket. `install_clients.sh` beside this file installs them. A missing client fails the test.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::peer::Kirin;

/// Returns the path of a client that no package installs and that `install_clients.sh` does.
fn installed(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/clients").join(name);
    assert!(
        path.exists(),
        "{} is missing: run crates/kirin-memcache/tests/install_clients.sh",
        path.display()
    );
    path
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/suite/client_scripts").join(name)
}

/// Runs a client to its end.
fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap_or_else(|error| {
        let program = command.get_program().display();
        panic!(
            "{program} does not start ({error}): run crates/kirin-memcache/tests/install_clients.sh"
        )
    })
}

fn assert_ok(what: &str, output: &Output) {
    let said = String::from_utf8_lossy(&output.stdout);
    let complained = String::from_utf8_lossy(&output.stderr);
    let ok = output.status.success() && said.trim_end().ends_with("OK");
    assert!(ok, "{what}: {}\n{said}\n{complained}", output.status);
}

/// Runs a client's script against TCP, and against a unix socket if the client can use one.
fn both_ways(client: impl Fn(&str) -> Command, unix: bool) {
    let kirin = Kirin::with(Default::default(), 2);
    let address = kirin.address.to_string();
    assert_ok(&address, &run(&mut client(&address)));
    if unix {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("kirin.sock");
        let _kirin = Kirin::on_unix_socket(&path, 2);
        let address = path.display().to_string();
        assert_ok(&address, &run(&mut client(&address)));
    }
}

#[test]
fn pymemcache_gets_the_answers_it_expects() {
    both_ways(
        |address| {
            let mut command = Command::new(installed("python/bin/python"));
            command.arg(script("pymemcache_client.py")).arg(address);
            command
        },
        true,
    );
}

#[test]
fn pylibmc_gets_the_answers_it_expects() {
    both_ways(
        |address| {
            let mut command = Command::new(installed("python/bin/python"));
            command.arg(script("pylibmc_client.py")).arg(address);
            command
        },
        true,
    );
}

#[test]
fn cache_memcached_fast_gets_the_answers_it_expects() {
    both_ways(
        |address| {
            let mut command = Command::new("perl");
            command.arg(script("cache_memcached_fast.pl")).arg(address);
            command
        },
        true,
    );
}

#[test]
fn cache_memcached_gets_the_answers_it_expects() {
    both_ways(
        |address| {
            let mut command = Command::new("perl");
            command.arg(script("cache_memcached.pl")).arg(address);
            command
        },
        true,
    );
}

#[test]
fn gomemcache_gets_the_answers_it_expects() {
    both_ways(
        |address| {
            let mut command = Command::new(installed("go_client"));
            command.arg(address);
            command
        },
        true,
    );
}

fn at(address: SocketAddr) -> [String; 4] {
    ["-h".into(), address.ip().to_string(), "-p".into(), address.port().to_string()]
}

#[test]
fn libmemcacheds_own_test_of_servers_passes() {
    let kirin = Kirin::start();
    let output = run(Command::new("memccapable").args(at(kirin.address)).arg("-a"));
    let said = String::from_utf8_lossy(&output.stdout);
    let failed = said.lines().filter(|line| line.contains("[FAIL]")).count();
    assert!(
        output.status.success() && failed == 0,
        "{said}\n{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let passed = said.lines().filter(|line| line.contains("[pass]")).count();
    assert!(passed > 20, "{passed} passed:\n{said}");
}

#[test]
fn libmemcacheds_tools_store_and_fetch_a_file() {
    let kirin = Kirin::start();
    let directory = tempfile::tempdir().expect("a directory");
    let file = directory.path().join("page");
    std::fs::write(&file, "a page\n").expect("a file");
    let servers = format!("--servers={}", kirin.address);
    let copied = run(Command::new("memccp").arg(&servers).arg(&file));
    assert!(copied.status.success(), "{copied:?}");
    let fetched = run(Command::new("memccat").arg(&servers).arg("page"));
    assert_eq!(String::from_utf8_lossy(&fetched.stdout).trim_end(), "a page");
    for tool in ["memcping", "memcstat", "memcflush"] {
        let output = run(Command::new(tool).arg(&servers));
        assert!(output.status.success(), "{tool}: {output:?}");
    }
    let gone = run(Command::new("memccat").arg(&servers).arg("page"));
    assert!(!gone.status.success(), "memcflush left the page there");
}

#[test]
fn memcached_tool_shows_its_tables() {
    let kirin = Kirin::start();
    assert_eq!(kirin.connect().ask(b"set a 0 0 3\r\nabc\r\n"), b"STORED\r\n");
    let tool = "/usr/share/memcached/scripts/memcached-tool";
    assert!(Path::new(tool).exists(), "{tool}: run crates/kirin-memcache/tests/install_clients.sh");
    for (mode, expected) in [
        ("display", "#  Item_Size"),
        ("stats", "curr_items"),
        ("settings", "maxconns"),
        ("sizes", "Count"),
    ] {
        let output = run(Command::new("perl").arg(tool).arg(kirin.address.to_string()).arg(mode));
        let said = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success() && said.contains(expected), "{mode}: {output:?}");
    }
}
