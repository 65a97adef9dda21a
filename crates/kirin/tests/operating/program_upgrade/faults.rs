//! A new program that ends, hangs or talks nonsense at each step of the hand-over. The old one
//! serves on, and has its store.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::process::Command;

use kirin_tests::{Client, Kirin, Memcached, Site, kirin_command, wait_for};
use rustix::process::{Pid, Signal, geteuid, kill_process};

use super::{APP, CONFIG, Service, begin_upgrade, has_ended, service_command};
use crate::user::program_for_everybody;

/// Puts a program in the place of Kirin that talks as a new one does, as far as `steps` says.
fn impostor(service: &Service, steps: &str) {
    let program = format!(
        r#"#!/usr/bin/perl
use v5.16; use warnings; use IO::Handle;
my ($channel, $store) = map {{ open my $socket, '+<&=', $_ or die; $socket->autoflush; $socket }} split /:/, $ENV{{KIRIN_PREDECESSOR}};
sub say_it {{ print {{$channel}} "$_[0]\n" }}
sub hello {{ say_it('{{"hello":{{"hand_over":5,"program":"9.9","pid":' . $$ . '}}}}'); <$channel>; <$channel> }}
sub loaded {{ say_it('"loaded"') }}
sub ready {{ receive(); <$channel>; <$channel>; say_it('"ready"'); <$channel> =~ /go/ or die }}
sub write_pid {{ open my $file, '>', 'pid' or die; say {{$file}} $$; close $file }}
sub receive {{ my $all = ''; while (sysread $store, $all, 65536, length $all) {{ last if $all =~ /\x08\0\0\0\0\z/ }} }}
{steps}
"#
    );
    service.replace_program(|path| {
        std::fs::write(&path, program).expect("a program");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("chmod");
    });
}

#[test]
fn a_new_program_that_fails_at_any_step_costs_nothing() {
    let service = Service::start(CONFIG);
    let program = kirin_command(&service.site).get_program().to_owned();
    let first = service.pid();
    let mut client = Memcached::connect(&service.site.path("store.sock"));
    for number in 0..2000 {
        client.set(&format!("item{number}"), &[b'x'; 1000]);
    }
    for (steps, timeout, reason) in [
        ("exit 4;", "20", "ended before it served (exit status: 4)"),
        ("hello(); kill 9, $$;", "20", "ended before it served (signal: 9 (SIGKILL))"),
        ("hello(); loaded(); kill 9, $$; ", "20", "signal: 9"),
        ("hello(); loaded(); receive(); kill 9, $$;", "20", "signal: 9"),
        ("hello(); loaded(); receive(); say_it('nonsense'); sleep 60;", "20", "nonsense"),
        ("hello(); loaded(); receive(); say_it('\"loaded\"'); sleep 60;", "20", "Loaded"),
        (
            r#"say_it('{"hello":{"hand_over":99,"program":"9.9","pid":1}}'); sleep 60;"#,
            "20",
            "kirin 9.9 and kirin",
        ),
        (
            r#"hello(); say_it('{"failed":{"reason":"no disk"}}'); sleep 60;"#,
            "20",
            "does not start: no disk",
        ),
        ("sleep 60;", "1", "not ready within 1s"),
        ("hello(); kill 'STOP', $$;", "1", "not ready within 1s"),
        ("hello(); loaded(); kill 'STOP', $$;", "1", "not ready within 1s"),
        ("hello(); loaded(); receive(); kill 'STOP', $$;", "1", "not ready within 1s"),
        ("hello(); loaded(); ready(); kill 9, $$;", "20", "signal: 9"),
        ("hello(); loaded(); ready(); write_pid(); kill 9, $$;", "20", "signal: 9"),
        (
            "hello(); loaded(); ready(); unlink 'pid'; say_it('\"loaded\"'); sleep 60;",
            "20",
            "Loaded",
        ),
        (
            r#"hello(); loaded(); ready(); say_it('{"failed":{"reason":"no disk"}}'); sleep 60;"#,
            "20",
            "does not start: no disk",
        ),
        // It may have begun to serve, so the time for loading does not hold. It has started itself
        // once more, as it does in the background.
        (
            "exit if fork; hello(); loaded(); ready(); write_pid(); rename 'pid', 'forked'; kill 'STOP', $$;",
            "1",
            "not ready within 10s",
        ),
    ] {
        impostor(&service, steps);
        let (code, said) = service.command(&["upgrade", "--timeout", timeout]);
        assert!(code == Some(1) && said.contains(reason), "{steps}: {code:?} {said}");
        assert_eq!(service.pid(), first, "{steps}");
        // The connection of before is there, and its commands are carried out.
        client.set("after", steps.as_bytes());
        assert_eq!(client.get("after").as_deref(), Some(steps.as_bytes()));
        assert_eq!(client.get("item7").map(|value| value.len()), Some(1000));
        assert!(service.get("/").starts_with(&format!("{} ", first.expect("a pid"))));
    }
    let forked = std::fs::read_to_string(service.site.path("forked")).expect("a pid");
    let forked = forked.trim().parse().expect("a pid");
    wait_for("the end of the program that hangs", || has_ended(forked).then_some(()));
    service.replace_program(|path| std::os::unix::fs::symlink(&program, path).expect("a link"));
    let second = service.upgrade();
    assert!(service.get("/").starts_with(&format!("{second} ")));
    let mut client = Memcached::connect(&service.site.path("store.sock"));
    assert_eq!(client.get("item1999").map(|value| value.len()), Some(1000));
}

#[test]
fn a_killed_old_program_takes_the_new_one_along() {
    let mut service = Service::start(CONFIG);
    let successor = begin_upgrade(&service);
    kill_process(Pid::from_raw(service.first.pid() as i32).expect("a pid"), Signal::KILL)
        .expect("kill");
    service.first.wait();
    wait_for("the end of the new program", || has_ended(successor).then_some(()));
    service.first.wait_for_log("the kirin that this one was to follow has ended");
}

#[test]
fn an_old_program_that_is_stopped_and_goes_on_hands_over() {
    let service = Service::start(CONFIG);
    let first = service.pid().and_then(Pid::from_raw).expect("a pid");
    let slow = format!(
        "open my $f, '>', 'loading'; close $f; select undef, undef, undef, 0.01 until -e 'load';\n{APP}"
    );
    std::fs::write(service.site.path("app.psgi"), slow).expect("app.psgi");
    service.signal(Signal::USR2);
    service.site.wait_for_files("loading", 1);
    kill_process(first, Signal::STOP).expect("kill");
    std::fs::write(service.site.path("load"), "").expect("a file");
    service.first.wait_for_log("app is loaded");
    kill_process(first, Signal::CONT).expect("kill");
    wait_for("the next program", || {
        service.pid().filter(|pid| *pid != first.as_raw_nonzero().get())
    });
    wait_for("the end of the first", || has_ended(first.as_raw_nonzero().get()).then_some(()));
    assert!(service.get("/").starts_with(&format!("{} ", service.pid().expect("a pid"))));
}

#[test]
fn without_descriptors_the_old_program_serves_on() {
    let service = Service::start(CONFIG);
    let pid = service.first.pid().to_string();
    // Kirin finds its descriptors in the table from the lowest number on.
    let limit = |number: &str| {
        let set = std::process::Command::new("prlimit")
            .args(["--pid", &pid, &format!("--nofile={number}:")])
            .status()
            .expect("prlimit is part of util-linux");
        assert!(set.success());
    };
    let mut kept = Memcached::connect(&service.site.path("store.sock"));
    kept.set("key", b"value");
    let mut admin = kirin_tests::Client::connect(service.address());
    assert_eq!(admin.get("/").status, 200);
    let open = std::fs::read_dir(format!("/proc/{pid}/fd")).expect("descriptors").count();
    limit(&(open + 2).to_string());
    service.signal(Signal::USR2);
    service.first.wait_for_log("upgrade failed; this program keeps serving");
    assert_eq!(kept.get("key").as_deref(), Some(&b"value"[..]));
    assert_eq!(admin.get("/").status, 200);
    limit("1024");
    let second = service.upgrade();
    assert!(service.get("/").starts_with(&format!("{second} ")));
}

#[test]
fn a_new_program_ends_when_the_old_one_ends_at_any_step() {
    let site = Site::new().with("app.psgi", APP).with("kirin.toml", CONFIG);
    let program = kirin_command(&site).get_program().to_string_lossy().into_owned();
    for (steps, reason) in [
        ("", "has ended, or has not handed over"),
        ("hello(5);", "has ended, or has not handed over"),
        ("hello(99); <$channel>;", "hand over in different ways"),
        ("hello(5); loaded();", "has ended, or has not handed over"),
        ("hello(5); loaded(); give(qq{\\x02\\x03\\0\\0\\0abc});", "has not handed over"),
        ("hello(5); loaded(); give(qq{\\x02\\x03\\0\\0\\0a});", "has not handed over"),
        ("hello(5); loaded(); give(qq{\\x63\\0\\0\\0\\0}); <$channel>;", "an unreadable frame"),
        ("hello(5); loaded(); give(qq{\\x08\\0\\0\\0\\0});", "has not handed over"),
        ("hello(5); loaded(); give(qq{\\x08\\0\\0\\0\\0}); tickets();", "has not handed over"),
        // It does not serve before it is told to.
        (
            "hello(5); loaded(); give(qq{\\x08\\0\\0\\0\\0}); changes(); <$channel> =~ /ready/ or die;",
            "has not handed over",
        ),
    ] {
        // It talks as an old Kirin does, as far as the steps say.
        let old = format!(
            r#"use v5.16; use warnings; use Socket; use IO::Handle;
            $^F = 255;
            my (@ours, @theirs);
            for (1 .. 3) {{ socketpair my $one, my $other, AF_UNIX, SOCK_STREAM, 0 or die; $one->autoflush; push @ours, $one; push @theirs, $other }}
            my $pid = fork // die;
            if (!$pid) {{
                close $_ for @ours;
                $ENV{{KIRIN_PREDECESSOR}} = join ':', map {{ fileno $_ }} @theirs;
                exec '{program}', 'serve', '--config', 'kirin.toml' or die;
            }}
            @theirs = ();
            my ($channel, $store, $connections) = @ours;
            sub hello {{ <$channel>; print {{$channel}} qq({{"hello":{{"hand_over":$_[0],"program":"9.9","pid":$$}}}}\n{{"store":{{"first_sequence":5,"clock_nanos":0}}}}\n) }}
            sub loaded {{ <$channel> }}
            sub tickets {{ say {{$channel}} '{{"tickets":[]}}' }}
            sub changes {{ tickets(); say {{$channel}} '{{"changes":[]}}' }}
            sub give {{ print {{$store}} $_[0] }}
            {steps}
            undef $_ for $channel, $store, $connections; @ours = ();
            waitpid $pid, 0;
            exit $? >> 8;"#
        );
        let output = std::process::Command::new("perl")
            .args(["-e", &old])
            .current_dir(site.root())
            .env("KIRIN_ADMIN_DIRECTORY", site.admin_directory())
            .output()
            .expect("perl");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && said.contains(reason), "{steps}: {said}");
        assert!(!said.contains("serving on"), "{steps}: {said}");
    }
}

#[test]
fn an_upgrade_begins_when_a_reload_is_done() {
    let service = Service::start(CONFIG);
    let first = service.pid().expect("a pid");
    let slow = format!(
        "open my $f, '>', \"loading.$$\"; close $f; select undef, undef, undef, 0.01 until -e 'load';\n{APP}"
    );
    std::fs::write(service.site.path("app.psgi"), slow).expect("app.psgi");
    service.signal(Signal::HUP);
    service.site.wait_for_files("loading.", 1);
    service.signal(Signal::USR2);
    service.first.wait_for_log("the upgrade begins when the reload is done");
    std::fs::write(service.site.path("load"), "").expect("a file");
    let second = wait_for("the next program", || service.pid().filter(|pid| *pid != first));
    service.first.wait_for_log("upgrading: the new program starts");
    let log = service.first.log();
    let reloaded = log.find(" reloaded").expect("a line about the reload");
    assert!(Some(reloaded) < log.find("upgrading: the new program starts"), "{log}");
    wait_for("its answer", || service.get("/").starts_with(&format!("{second} ")).then_some(()));
}

#[test]
fn a_new_program_that_hangs_does_not_keep_the_old_one() {
    let mut service = Service::start(CONFIG);
    let first = service.pid().expect("a pid");
    let kept = kirin_tests::Client::connect(service.address());
    let mut busy = kirin_tests::Client::connect(service.address());
    busy.send("GET /wait HTTP/1.1\r\nHost: a\r\n\r\n");
    service.site.wait_for_files("begun.", 1);
    service.signal(Signal::USR2);
    let second = wait_for("the next program", || service.pid().filter(|pid| *pid != first));
    service.first.wait_for_log("upgraded: the new program serves");
    let second = Pid::from_raw(second).expect("a pid");
    kill_process(second, Signal::STOP).expect("kill");
    kill_process(Pid::from_raw(first).expect("a pid"), Signal::TERM).expect("kill");
    assert_eq!(service.first.wait().code(), Some(0));
    kill_process(second, Signal::CONT).expect("kill");
    drop(kept);
}

/// Sets a limit of a process, as `prlimit` has it, as the user of the process: root in a container
/// may not.
fn limit_process(pid: u32, limit: &str) {
    let ids = fs::metadata(format!("/proc/{pid}")).expect("a process");
    let mut command = Command::new("setpriv");
    if geteuid().is_root() {
        command.arg(format!("--reuid={}", ids.uid()));
        command.args([&format!("--regid={}", ids.gid()), "--clear-groups"]);
    }
    command.args(["prlimit", "--pid", &pid.to_string(), limit]);
    assert!(command.status().expect("setpriv is part of util-linux").success());
}

#[test]
fn a_program_that_can_start_no_process_serves_on() {
    // The limit does not hold for root.
    let user = if geteuid().is_root() { "user = \"nobody\"\n" } else { "" };
    let config = format!(
        "{user}threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n[store]\nmemcached = [\"127.0.0.1:0\"]\n\
         [[route]]\npath = \"/\"\ntry = [\"store\"]\n"
    );
    let site = Site::new().with("kirin.toml", config);
    fs::set_permissions(site.root(), PermissionsExt::from_mode(0o755)).expect("a mode");
    program_for_everybody(&site);
    let first = Kirin::start_command(&mut service_command(&site));
    let service = Service { site, first };
    let mut client = Client::connect(service.address());
    assert_eq!(client.get("/").status, 404);
    limit_process(service.first.pid(), "--nproc=1:");
    service.signal(Signal::USR2);
    service.first.wait_for_log("./kirin cannot be started: Resource temporarily unavailable");
    service.first.wait_for_log("upgrade failed; this program keeps serving");
    assert_eq!(client.get("/").status, 404);
    assert_eq!(Client::connect(service.address()).get("/").status, 404);
    limit_process(service.first.pid(), "--nproc=1000:");
    service.upgrade();
    assert_eq!(client.get("/").status, 404);
}

#[test]
fn a_new_program_without_memory_costs_nothing() {
    let service = Service::start(CONFIG);
    let program = kirin_command(&service.site).get_program().to_owned();
    let first = service.pid();
    Memcached::connect(&service.site.path("store.sock")).set("/page", b"text/plain\r\nkept");
    // With little memory the loader fails, then threads, then applications.
    let mut failures = 0;
    for kilobytes in (8_000..).step_by(10_000) {
        service.replace_program(|path| {
            let limited = format!("#!/bin/sh\nulimit -v {kilobytes}\nexec {program:?} \"$@\"\n");
            fs::write(&path, limited).expect("a program");
            fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("chmod");
        });
        let (code, said) = service.command(&["upgrade", "--timeout", "20"]);
        if code == Some(0) {
            // It may have no memory for the next request.
            break;
        }
        assert!(code == Some(1) && said.contains("the new program"), "{code:?} {said}");
        assert_eq!((service.pid(), service.get("/page")), (first, "kept".to_owned()), "{said}");
        failures += 1;
    }
    assert!(failures > 0);
}

/// A library that moves the clock of the day by the seconds in the file `clock`.
const CLOCK: &str = r#"
#define _GNU_SOURCE
#include <stdio.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
static long moved_by(void) {
    long seconds = 0;
    FILE *file = fopen("CLOCK", "re");
    if (file) { if (fscanf(file, "%ld", &seconds) != 1) seconds = 0; fclose(file); }
    return seconds;
}
int clock_gettime(clockid_t id, struct timespec *now) {
    int result = syscall(SYS_clock_gettime, id, now);
    if (result == 0 && id == CLOCK_REALTIME) now->tv_sec += moved_by();
    return result;
}
"#;

#[test]
fn a_clock_that_jumps_changes_no_lifetime() {
    let site = Site::new().with("app.psgi", APP).with("kirin.toml", CONFIG);
    let file = site.path("clock").to_string_lossy().into_owned();
    fs::write(site.path("clock.c"), CLOCK.replace("CLOCK\"", &format!("{file}\"")))
        .expect("a file");
    let compiled = Command::new("cc")
        .args(["-O1", "-Wall", "-Werror", "-shared", "-fPIC", "-o", "clock.so", "clock.c"])
        .current_dir(site.root())
        .status();
    assert!(compiled.expect("a C compiler").success());
    std::os::unix::fs::symlink(kirin_command(&site).get_program(), site.path("kirin"))
        .expect("a link");
    let library = site.path("clock.so");
    let first = Kirin::start_command(service_command(&site).env("LD_PRELOAD", library));
    let service = Service { site, first };
    let store = service.site.path("store.sock");
    let mut client = Memcached::connect(&store);
    client.send("set page 0 1000 4\r\nkept\r\n").line();
    client.send("set ends 0 1 4\r\ngone\r\n").line();
    let real = || std::time::SystemTime::UNIX_EPOCH.elapsed().expect("a clock").as_secs();
    client.send(format!("set absolute 0 {} 4\r\nkept\r\n", real() + 1000)).line();
    let left = |key: &str| -> u64 {
        let line = Memcached::connect(&store).send(format!("mg {key} t\r\n")).line();
        let seconds = line.strip_prefix("HD t").and_then(|seconds| seconds.parse().ok());
        seconds.unwrap_or_else(|| panic!("{line}"))
    };
    for moved in ["3600", "-3600"] {
        fs::write(service.site.path("clock"), moved).expect("a file");
        service.upgrade();
        for key in ["page", "absolute"] {
            assert!((900..=1000).contains(&left(key)), "{key}: {}", left(key));
        }
    }
    // What is stored under the other clock is measured by it.
    let absolute = real() - 3600 + 500;
    Memcached::connect(&store).send(format!("set absolute 0 {absolute} 4\r\nkept\r\n")).line();
    assert!((400..=500).contains(&left("absolute")), "{}", left("absolute"));
    wait_for("the end of an item", || {
        (Memcached::connect(&store).send("mg ends t\r\n").line() == "EN").then_some(())
    });
}
