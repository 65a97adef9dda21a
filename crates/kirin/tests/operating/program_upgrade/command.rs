//! `kirin upgrade`: it waits, and says how it went.

use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use kirin_tests::{Client, kirin_command, run_kirin, wait_for};
use rustix::process::Signal;
use serde_json::Value;

use super::{APP, CONFIG, Service, has_ended};

impl Service {
    /// Runs a command. Returns its exit status and what it has printed.
    pub(super) fn command(&self, words: &[&str]) -> (Option<i32>, String) {
        let output = run_kirin(&self.site, words);
        let said = [&output.stdout[..], &output.stderr[..]].concat();
        (output.status.code(), String::from_utf8_lossy(&said).into_owned())
    }

    pub(super) fn status(&self) -> Value {
        let (code, said) = self.command(&["status", "--json"]);
        assert_eq!(code, Some(0), "{said}");
        serde_json::from_str(&said).expect(&said)
    }

    /// Runs `kirin upgrade`, which fails. Returns what it has said.
    fn failing_upgrade(&self, words: &[&str]) -> String {
        let before = self.pid();
        let (code, said) = self.command(&[&["upgrade"], words].concat());
        assert_eq!(code, Some(1), "{said}");
        assert!(said.ends_with("the program of before serves on\n"), "{said}");
        assert_eq!(self.pid(), before);
        assert!(self.get("/").starts_with(&format!("{} ", before.expect("a pid"))));
        said
    }

    fn write_app(&self, text: &str) {
        std::fs::write(self.site.path("app.psgi"), text).expect("app.psgi");
    }
}

fn write_program(path: &Path, script: &str) {
    std::fs::write(path, format!("#!/bin/sh\n{script}\n")).expect("a program");
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).expect("chmod");
}

#[test]
fn the_command_ends_when_the_new_program_serves() {
    let mut service = Service::start(CONFIG);
    let (code, said) = service.command(&["upgrade"]);
    let second = service.pid().expect("a pid");
    assert_eq!((code, said), (Some(0), format!("upgraded: process {second} serves\n")));
    assert_ne!(second as u32, service.first.pid());
    // A loop of the old program may accept one more connection before it knows.
    wait_for("an answer of the new program", || {
        service.get("/").starts_with(&format!("{second} ")).then_some(())
    });
    let status = service.status();
    assert_eq!(status["pid"], second);
    assert!(status["program"]["serving_seconds"].is_u64(), "{status}");
    assert_eq!(service.first.wait().code(), Some(0));
    wait_for("the end of the first in the status", || {
        service.status()["program"]["predecessor"].is_null().then_some(())
    });
}

#[test]
fn the_command_says_why_the_old_program_serves_on() {
    let service = Service::start(CONFIG);
    let program = kirin_command(&service.site).get_program().to_owned();
    service.replace_program(|_| {});
    assert!(service.failing_upgrade(&[]).contains("./kirin cannot be started: No such file"));
    service.replace_program(|path| write_program(&path, "exit 3"));
    assert!(service.failing_upgrade(&[]).contains("ended before it served (exit status: 3)"));
    service.replace_program(|path| write_program(&path, "kill -9 $$"));
    assert!(service.failing_upgrade(&[]).contains("before it served (signal: 9 (SIGKILL))"));
    service.replace_program(|path| symlink(&program, path).expect("a link"));
    // The command reads only what it needs to find the running program. The new program reads all.
    std::fs::write(service.site.path("kirin.toml"), format!("{CONFIG}nonsense = 1\n"))
        .expect("kirin.toml");
    let line = format!("kirin.toml:{}:1: unknown key `nonsense`", CONFIG.lines().count() + 1);
    let (code, said) = service.command(&["upgrade"]);
    assert!(code == Some(1) && said.contains(&line), "{said}");
    service.signal(Signal::USR2);
    let failure = format!("does not start: {line}");
    wait_for("the failure of both", || {
        let is_over = service.status()["program"]["successor"].is_null();
        (is_over && service.first.whole_log().matches(&failure).count() == 2).then_some(())
    });
    std::fs::write(service.site.path("kirin.toml"), CONFIG).expect("kirin.toml");
    service.write_app("die 'no such table: memo'");
    let said = service.failing_upgrade(&[]);
    assert!(said.contains("the new program does not start: "), "{said}");
    let (_, status) = service.command(&["status"]);
    assert!(status.contains("! the upgrade ") && status.contains(" ago has failed: "), "{status}");
    service.write_app("sleep 1 while 1;");
    let said = service.failing_upgrade(&["--timeout", "1"]);
    assert!(said.contains("the new program was not ready within 1s"), "{said}");
    service.write_app(APP);
    let (code, said) = service.command(&["upgrade", "--timeout", "60"]);
    assert_eq!(code, Some(0), "{said}");
}

#[test]
fn an_upgrade_ends_a_trial_with_the_code_of_the_disk() {
    let trial = "workers = 2\ntrial = { share = \"50%\", time = \"1h\" }";
    let service = Service::start(&CONFIG.replace("workers = 2", trial));
    let old = service.get("/");
    service.write_app("sub { [200, ['Content-Type' => 'text/plain'], ['new']] };");
    let (code, said) = service.command(&["reload", "--app", "web"]);
    assert!(code == Some(0) && said.contains("on trial with 50% of the visitors"), "{said}");
    // All requests come from one address, so they are on one side.
    let seen = service.get("/");
    assert!(seen == "new" || seen == old, "{seen}");
    service.upgrade();
    assert_eq!(service.get("/"), "new");
    service.first.wait_for_log("trial: undecided, because the application stops");
    let (code, said) = service.command(&["reload", "--promote"]);
    assert!(code == Some(1) && said.contains("no application has new code on trial"), "{said}");
}

#[test]
fn a_new_program_that_is_stopped_is_killed() {
    let service = Service::start(CONFIG);
    service.write_app(&format!("kill 'STOP', getppid;\n{APP}"));
    service.signal(Signal::USR2);
    let successor =
        wait_for("the new program", || service.status()["program"]["successor"]["pid"].as_i64());
    wait_for("the new program to be stopped", || {
        let stat = std::fs::read_to_string(format!("/proc/{successor}/stat")).ok()?;
        stat.contains(") T ").then_some(())
    });
    let (code, said) = service.command(&["upgrade"]);
    assert_eq!((code, said.as_str()), (Some(1), "kirin: an upgrade is going on\n"));
    let (code, said) = service.command(&["reload"]);
    assert!(code == Some(1) && said.contains("an upgrade is going on"), "{said}");
    let (_, status) = service.command(&["status"]);
    assert!(status.contains(&format!(": process {successor} reads its conf")), "{status}");
    // It would be ended in the same way when its time is over. TERM alone does not reach it.
    service.signal(Signal::TERM);
    wait_for("the end of the new program", || has_ended(successor as i32).then_some(()));
}

#[test]
fn the_status_shows_both_programs() {
    let service = Service::start(CONFIG);
    let first = service.pid().expect("a pid");
    let mut waiting = Client::connect(service.address());
    waiting.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    service.site.wait_for_files("begun.", 1);
    let (code, said) = service.command(&["upgrade"]);
    assert_eq!(code, Some(0), "{said}");
    let line = format!("! the program before this one, process {first}, finishes 1 connection\n");
    wait_for("the old program in the status", || {
        service.command(&["status"]).1.contains(&line).then_some(())
    });
    std::fs::write(service.site.path("go"), "").expect("go");
    assert!(waiting.read_reply().text().starts_with(&format!("{first} ")));
    wait_for("its end", || (!service.command(&["status"]).1.contains("before this")).then_some(()));
}

#[test]
fn a_reload_upgrades_if_the_program_was_replaced() {
    let service = Service::start(CONFIG);
    let reload = || service.command(&["reload", "--apps", "--or-upgrade"]);
    let first = service.pid().expect("a pid");
    let (code, said) = reload();
    assert!(code == Some(0) && said.ends_with("reloaded\n"), "{said}");
    let program = kirin_command(&service.site).get_program().to_string_lossy().into_owned();
    service.replace_program(|path| write_program(&path, &format!("exec {program} \"$@\"")));
    let (_, status) = service.command(&["status"]);
    assert!(status.contains("kirin is another program now: `kirin upgrade` starts it"), "{status}");
    let (code, said) = reload();
    assert!(code == Some(0) && said.starts_with("upgraded: process "), "{said}");
    assert_ne!(service.pid(), Some(first));
    let (code, said) = reload();
    assert!(code == Some(0) && said.ends_with("reloaded\n"), "{said}");
}
