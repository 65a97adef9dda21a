//! What the log says about an application that cannot be loaded.

use std::os::unix::fs::PermissionsExt;

use kirin_tests::{Kirin, Site, run_kirin, wait_for};
use rustix::process::Signal;

#[test]
fn the_error_of_an_application_that_cannot_be_loaded_is_printed_once() {
    let site = Site::new().with("app.psgi", "die qq(no database\n);\n");
    let output = run_kirin(&site, &["serve", "app.psgi", "--listen", "127.0.0.1:0"]);
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(said.matches("no database").count(), 1, "{said}");
}

/// Returns how many rings the process has open.
fn rings(kirin: &Kirin) -> usize {
    let descriptors = std::fs::read_dir(format!("/proc/{}/fd", kirin.pid())).expect("descriptors");
    let targets = descriptors.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    targets.filter(|target| target.to_string_lossy().contains("kirin-ring")).count()
}

#[test]
fn reloads_that_cannot_start_leave_nothing_open() {
    let site = Site::new()
        .with("app.psgi", "sub { [200, [], ['x']] }")
        .with("interpreter", "#!/bin/sh\nexec perl \"$@\"\n");
    let interpreter = site.path("interpreter");
    let set_mode = |mode| {
        let permissions = std::fs::Permissions::from_mode(mode);
        std::fs::set_permissions(&interpreter, permissions).expect("the mode");
    };
    set_mode(0o755);
    let config = format!(
        "[[listener]]\naddress = \"127.0.0.1:0\"\n[[app]]\nname = \"web\"\nload = \"app.psgi\"\n\
         interpreter = \"{}\"\n[[route]]\npath = \"/\"\ntry = [\"app:web\"]\n",
        interpreter.display()
    );
    let kirin = Kirin::start(&site, &config);
    let before = rings(&kirin);
    set_mode(0o644);
    for reload in 1..=3 {
        kirin.signal(Signal::HUP);
        wait_for("a reload that fails", || {
            let log = kirin.log();
            (log.matches("the old generation keeps serving").count() == reload).then_some(())
        });
    }
    assert_eq!(rings(&kirin), before, "{}", kirin.log());
    assert_eq!(kirin.get("/").text(), "x");
}

#[test]
fn the_error_of_a_reload_is_printed_once() {
    let site = Site::new().with("app.psgi", "sub { [200, [], ['x']] }");
    let kirin = Kirin::start_with(&site, &["serve", "app.psgi", "--listen", "127.0.0.1:0"]);
    std::fs::write(site.path("app.psgi"), "die qq(no database\n);\n").expect("app.psgi");
    kirin.signal(Signal::HUP);
    kirin.wait_for_log("reload failed");
    let log = kirin.log();
    assert_eq!(log.matches("no database").count(), 1, "{log}");
    // Seconds are there, with no more digits than milliseconds have.
    let seconds = wait_for("the time of the load", || {
        let log = kirin.log();
        let rest = log.split("seconds=").nth(1)?;
        Some(rest.split_whitespace().next()?.to_owned())
    });
    let digits = seconds.split('.').nth(1).map_or(0, str::len);
    assert!(digits <= 3, "{seconds}");
}
