//! A new program that ends, hangs or talks nonsense at each step of the hand-over. The old one
//! serves on, and has its store.

use std::os::unix::fs::PermissionsExt;

use kirin_tests::{Memcached, Site, kirin_command, wait_for};
use rustix::process::{Pid, Signal, kill_process};

use super::{APP, CONFIG, Service, begin_upgrade, has_ended};

/// Puts a program in the place of Kirin that talks as a new one does, as far as `steps` says.
fn impostor(service: &Service, steps: &str) {
    let program = format!(
        r#"#!/usr/bin/perl
use v5.16; use warnings; use IO::Handle;
my ($channel, $store) = map {{ open my $socket, '+<&=', $_ or die; $socket->autoflush; $socket }} split /:/, $ENV{{KIRIN_PREDECESSOR}};
sub say_it {{ print {{$channel}} "$_[0]\n" }}
sub hello {{ say_it('{{"hello":{{"hand_over":2,"program":"9.9","pid":' . $$ . '}}}}'); <$channel>; <$channel> }}
sub loaded {{ say_it('"loaded"') }}
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
            r#"say_it('{"hello":{"hand_over":3,"program":"9.9","pid":1}}'); sleep 60;"#,
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
        ("hello(2);", "has ended, or has not handed over"),
        ("hello(3); <$channel>;", "hand over in different ways"),
        ("hello(2); loaded();", "has ended, or has not handed over"),
        ("hello(2); loaded(); give(qq{\\x02\\x03\\0\\0\\0abc});", "has not handed over"),
        ("hello(2); loaded(); give(qq{\\x02\\x03\\0\\0\\0a});", "has not handed over"),
        ("hello(2); loaded(); give(qq{\\x63\\0\\0\\0\\0}); <$channel>;", "an unreadable frame"),
        ("hello(2); loaded(); give(qq{\\x08\\0\\0\\0\\0});", "has not handed over"),
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
