//! Plack's own tests for PSGI servers.

use crate::support::Site;

#[test]
fn every_test_that_plack_has_for_servers_passes() {
    let site = Site::start_with(
        "use Plack::Test::Suite; Plack::Test::Suite->test_app_handler",
        // Plack's own clients keep no connection; two workers show that none depends on the other.
        |config| config.workers = 2,
    )
    .unwrap();
    let output = std::process::Command::new("perl")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/suite/plack_suite.pl"))
        .arg(site.address.port().to_string())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}\n{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.lines().filter(|line| line.starts_with("ok ")).count() > 30, "{text}");
}
