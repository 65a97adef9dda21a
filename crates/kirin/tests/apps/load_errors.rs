//! What the log says about an application that cannot be loaded.

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
    let site = Site::new().with("app.psgi", "sub { [200, [], ['x']] }");
    let kirin = Kirin::start_with(&site, &["serve", "app.psgi", "--listen", "127.0.0.1:0"]);
    let before = rings(&kirin);
    std::fs::remove_file(site.path("app.psgi")).expect("app.psgi");
    for reload in 1..=3 {
        kirin.signal(Signal::HUP);
        wait_for("a reload that fails", || {
            (kirin.log().matches("reload failed").count() == reload).then_some(())
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
