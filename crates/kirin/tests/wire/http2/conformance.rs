//! HTTP/2 as h2spec, curl and HTTP/1 have it.

use super::*;

fn h2spec() -> PathBuf {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/h2spec/h2spec");
    assert!(path.exists(), "{} is not there: run tests/install_h2spec.sh", path.display());
    path
}

/// Runs h2spec. Returns its report if it ends well.
fn run_h2spec(arguments: &[&str], port: u16) -> Result<String, String> {
    let output = Command::new(h2spec())
        .args(["--strict", "-h", "127.0.0.1", "-p", &port.to_string()])
        .args(arguments)
        .output()
        .expect("h2spec runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    if output.status.success() { Ok(text) } else { Err(text) }
}

#[test]
fn h2spec_passes_over_tls() {
    let (_site, kirin) = serve();
    let report = run_h2spec(&["-t", "-k"], kirin.address_of(1).port())
        .unwrap_or_else(|report| panic!("{report}"));
    assert!(report.contains(" 0 skipped, 0 failed"), "{report}");
}

#[test]
fn h2spec_passes_by_prior_knowledge() {
    let (_site, kirin) = serve();
    let report =
        run_h2spec(&[], kirin.address().port()).expect_err("one case asks for what HTTP/1 forbids");
    // 3.5.2 sends "INVALID CONNECTION PREFACE" and expects the connection to end without an answer.
    // This port also speaks HTTP/1, and answers an invalid request line with 400 before the end.
    assert!(report.contains(" 0 skipped, 1 failed"), "{report}");
    let failures = report.split("Failures:").nth(1).expect("failures");
    assert!(failures.contains("2: Sends invalid connection preface"), "{report}");
    assert!(failures.contains("looked like an HTTP/1.1 header"), "{report}");
}

#[test]
fn curl_speaks_http2_over_tls_and_by_prior_knowledge() {
    let (site, kirin) = serve();
    let (plain, tls) = (kirin.address(), kirin.address_of(1));
    for (arguments, url) in [
        (&["--http2-prior-knowledge"][..], format!("http://{plain}")),
        (&["--http2", "-k"], format!("https://{tls}")),
    ] {
        std::fs::write(site.path("upload"), large()).expect("write");
        let output = Command::new("curl")
            .args(["-sS", "--data-binary", "@upload", "-w", " %{http_version}"])
            .args(arguments)
            .arg(format!("{url}/app/body"))
            .current_dir(site.root())
            .output()
            .expect("curl");
        let shown = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(
            shown.starts_with("3000000 ") && shown.ends_with(" 2"),
            "{arguments:?}: {shown} {output:?}"
        );
    }
}
