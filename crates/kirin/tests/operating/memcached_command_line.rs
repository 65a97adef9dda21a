//! `kirin memcached`, started as scripts written for memcached start it.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::net::UnixStream;
use std::process::Output;

use kirin_tests::{MemcachedClient, MemcachedProgram, memcached_command, memcached_port, wait_for};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};

/// Returns bytes as a person can read them.
fn show(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string()
}

fn finished(arguments: &[&str]) -> Output {
    memcached_command(arguments).output().expect("the program runs")
}

#[test]
fn help_and_version_are_printed() {
    let help = finished(&["-h"]);
    assert!(
        help.status.success() && String::from_utf8_lossy(&help.stdout).contains("--max-item-size")
    );
    let version = finished(&["-V"]);
    assert!(
        version.status.success() && version.stdout.starts_with(b"memcached 1.6."),
        "{version:?}"
    );
}

#[test]
fn a_wrong_option_is_named() {
    let refused = finished(&["-p", "x"]);
    assert_eq!(refused.status.code(), Some(64));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("-p x"), "{refused:?}");
}

#[test]
fn a_port_that_is_taken_is_named() {
    let taken = std::net::TcpListener::bind(("127.0.0.1", 0)).expect("a port");
    let port = taken.local_addr().expect("its address").port().to_string();
    let refused = finished(&["-p", &port]);
    assert_eq!(refused.status.code(), Some(1));
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(said.contains(&format!("cannot listen on 127.0.0.1:{port}")), "{said}");
}

#[test]
fn a_free_port_is_taken_and_written_down() {
    let directory = tempfile::tempdir().expect("a directory");
    let port_file = directory.path().join("port");
    let program =
        MemcachedProgram::start(&["-p", "-1", "-t", "2", "-c", "10", "-m", "16"], Some(&port_file));
    let port = memcached_port(&port_file);
    let mut client = MemcachedClient::connect(port);
    let settings = String::from_utf8(client.ask(b"stats settings\r\n")).expect("text");
    for row in ["maxconns 10", "num_threads 2", "maxbytes 16777216", &format!("tcpport {port}")] {
        assert!(settings.contains(&format!("STAT {row}\r\n")), "no {row} in {settings}");
    }
    program.terminate();
    assert_eq!(client.read_to_end(), b"", "the connection is closed at the end");
}

#[test]
fn a_unix_socket_has_its_mode_and_goes_with_the_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("m.sock");
    let text = path.display().to_string();
    // A socket that was left behind is replaced.
    drop(std::os::unix::net::UnixListener::bind(&path).expect("a socket"));
    let program = MemcachedProgram::start(&["-s", &text, "-a", "0770"], None);
    wait_for("the socket", || (UnixStream::connect(&path).is_ok()).then_some(()));
    let mode = fs::metadata(&path).expect("the socket").permissions().mode() & 0o777;
    assert_eq!(mode, 0o770, "{mode:o}");
    program.terminate();
    assert!(!path.exists());
    // Any other file is kept.
    fs::write(&path, "precious").expect("a file");
    let refused = finished(&["-s", &text]);
    assert_eq!(refused.status.code(), Some(1));
    assert_eq!(fs::read(&path).expect("still there"), b"precious");
}

#[test]
fn in_the_background_it_listens_before_the_command_returns() {
    let directory = tempfile::tempdir().expect("a directory");
    let socket = directory.path().join("m.sock");
    let pid_file = directory.path().join("m.pid");
    // Relative paths keep their meaning although the process leaves the directory.
    let status = memcached_command(&["-d", "-s", "m.sock", "-P", "m.pid"])
        .current_dir(directory.path())
        .status()
        .expect("the command returns");
    assert!(status.success());
    UnixStream::connect(&socket).expect("it listens already");
    let pid: i32 =
        fs::read_to_string(&pid_file).expect("a pid file").trim().parse().expect("a number");
    let pid = Pid::from_raw(pid).expect("a process id");
    assert_eq!(
        rustix::process::getsid(Some(pid)).expect("a session"),
        pid,
        "it has a session of its own"
    );
    kill_process(pid, Signal::TERM).expect("it runs");
    wait_for("its end", || (test_kill_process(pid).is_err() || is_zombie(pid)).then_some(()));
    assert!(!pid_file.exists() && !socket.exists());

    let failed = finished(&["-d", "-s", "/nonexistent/m.sock"]);
    assert_eq!(failed.status.code(), Some(1));
    let said = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert!(said.contains("cannot listen on /nonexistent/m.sock"), "{said}");
}

#[test]
fn in_the_background_an_upgrade_keeps_the_items() {
    let directory = tempfile::tempdir().expect("a directory");
    let (port_file, pid_file) = (directory.path().join("port"), directory.path().join("m.pid"));
    // The path is relative to a directory that the first program has left.
    let status = memcached_command(&["-d", "-p", "-1", "-P", "m.pid"])
        .env("MEMCACHED_PORT_FILENAME", &port_file)
        .current_dir(directory.path())
        .status()
        .expect("the command returns");
    assert!(status.success());
    let pid = || fs::read_to_string(&pid_file).ok()?.trim().parse().ok().and_then(Pid::from_raw);
    let first = pid().expect("a pid file");
    let port = memcached_port(&port_file);
    assert_eq!(MemcachedClient::connect(port).ask(b"set a 0 0 1\r\nx\r\n"), b"STORED\r\n");
    kill_process(first, Signal::USR2).expect("it runs");
    let second = wait_for("the successor", || pid().filter(|pid| *pid != first));
    wait_for("the end of the first", || {
        (test_kill_process(first).is_err() || is_zombie(first)).then_some(())
    });
    let answer = MemcachedClient::connect(port).ask(b"get a\r\n");
    assert_eq!(show(&answer), show(b"VALUE a 0 1\r\nx\r\nEND\r\n"));
    kill_process(second, Signal::TERM).expect("it runs");
    wait_for("the end of the second", || (!pid_file.exists()).then_some(()));
}

#[test]
fn root_becomes_the_user_and_follows_none_of_its_links() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let directory = tempfile::tempdir().expect("a directory");
    let all = fs::Permissions::from_mode(0o777);
    fs::set_permissions(directory.path(), all).expect("a mode");
    let start = |pid_file: &str| {
        let mut command =
            memcached_command(&["-s", "m.sock", "-a", "0770", "-u", "nobody", "-P", pid_file]);
        command.current_dir(directory.path()).stderr(std::process::Stdio::null());
        command.spawn().expect("the program starts")
    };
    let mut program = start("m.pid");
    let path = directory.path().join("m.sock");
    // It answers when it has become the user.
    let mut client = wait_for("the socket", || UnixStream::connect(&path).ok());
    client.write_all(b"mn\r\n").expect("a command");
    client.read_exact(&mut [0; 4]).expect("an answer");
    let socket = fs::metadata(&path).expect("the socket");
    let uid = socket.uid();
    assert_ne!(uid, 0);
    assert_eq!(socket.permissions().mode() & 0o777, 0o770);
    let status = fs::read_to_string(format!("/proc/{}/status", program.id())).expect("a status");
    assert!(status.contains(&format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}\n")), "{status}");
    kill_process(Pid::from_child(&program), Signal::TERM).expect("it runs");
    assert!(program.wait().expect("its end").success());

    let target = directory.path().join("target");
    std::os::unix::fs::symlink(&target, directory.path().join("link.pid")).expect("a link");
    assert_eq!(start("link.pid").wait().expect("its end").code(), Some(1));
    assert!(!target.exists());
}

/// Returns whether a process is a zombie. In the background, there may be no parent to collect it.
fn is_zombie(pid: Pid) -> bool {
    let stat =
        fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero())).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, fields)| fields.starts_with('Z'))
}

#[test]
fn with_a_snapshot_items_outlive_the_program() {
    let directory = tempfile::tempdir().expect("a directory");
    let port_file = directory.path().join("port");
    let snapshot = directory.path().join("items");
    let option = format!("snapshot={}", snapshot.display());
    let program = MemcachedProgram::start(&["-p", "-1", "-o", &option], Some(&port_file));
    let mut client = MemcachedClient::connect(memcached_port(&port_file));
    assert_eq!(client.ask(b"set a 7 1000 5\r\nhello\r\n"), b"STORED\r\n");
    program.terminate();

    fs::remove_file(&port_file).expect("the port file");
    let program = MemcachedProgram::start(&["-p", "-1", "-o", &option], Some(&port_file));
    let answer = MemcachedClient::connect(memcached_port(&port_file)).ask(b"get a\r\n");
    assert_eq!(show(&answer), show(b"VALUE a 7 5\r\nhello\r\nEND\r\n"));
    program.terminate();

    // A file that is no snapshot is set aside, and the store starts empty.
    fs::write(&snapshot, "something else").expect("a file");
    fs::remove_file(&port_file).expect("the port file");
    let program = MemcachedProgram::start(&["-p", "-1", "-o", &option], Some(&port_file));
    assert_eq!(MemcachedClient::connect(memcached_port(&port_file)).ask(b"get a\r\n"), b"END\r\n");
    assert_eq!(fs::read(directory.path().join("items.bad")).expect("set aside"), b"something else");
    program.terminate();
}

#[test]
fn with_no_evictions_a_full_store_says_so() {
    let directory = tempfile::tempdir().expect("a directory");
    let port_file = directory.path().join("port");
    let _program = MemcachedProgram::start(&["-p", "-1", "-M", "-m", "8"], Some(&port_file));
    let mut client = MemcachedClient::connect(memcached_port(&port_file));
    let value = "x".repeat(500_000);
    let answers: Vec<Vec<u8>> = (0..30)
        .map(|i| client.ask(format!("set k{i} 0 0 500000\r\n{value}\r\n").as_bytes()))
        .collect();
    assert_eq!(answers[0], b"STORED\r\n");
    assert_eq!(show(&answers[29]), show(b"SERVER_ERROR out of memory storing object\r\n"));
}
