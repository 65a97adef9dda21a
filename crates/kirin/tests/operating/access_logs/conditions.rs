//! Which requests get a line.

use kirin_tests::{Kirin, Site, wait_for};

fn lines(condition: &str, targets: &[&str]) -> Vec<String> {
    let site = Site::new().with("public/a", "a").with("public/health/x", "x");
    let config = format!(
        "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n\
         access_log = {{ path = \"access.log\", format = '%U %s', {condition} }}\n\
         [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n\
         [[route]]\npath = \"/end\"\ntry = [\"files:public\"]\naccess_log = \"end.log\"\n"
    );
    let kirin = Kirin::start(&site, &config);
    for target in targets {
        kirin.get(target);
    }
    kirin.get("/end");
    // Both logs are written once a second, and the one of the listener first.
    wait_for("the end", || {
        let log = std::fs::read_to_string(site.path("end.log")).ok()?;
        log.contains("/end").then_some(())
    });
    drop(kirin);
    let log = std::fs::read_to_string(site.path("access.log")).unwrap_or_default();
    log.lines().map(str::to_owned).collect()
}

#[test]
fn conditions_choose_the_lines() {
    let targets = ["/a", "/none", "/health/x", "/health/none"];
    for (condition, expected) in [
        ("except = []", vec!["/a 200", "/none 404", "/health/x 200", "/health/none 404"]),
        ("except = [\"/health\"]", vec!["/a 200", "/none 404"]),
        ("status = [\"4xx\"]", vec!["/none 404", "/health/none 404"]),
        ("status = [404], except = [\"/health\"]", vec!["/none 404"]),
        ("status = [\"5xx\"]", vec![]),
        ("slower_than = \"60s\"", vec![]),
        ("slower_than = \"60s\", status = [200]", vec!["/a 200", "/health/x 200"]),
        ("sample = 1.0", vec!["/a 200", "/none 404", "/health/x 200", "/health/none 404"]),
    ] {
        assert_eq!(lines(condition, &targets), expected, "{condition}");
    }
}

#[test]
fn a_sample_has_its_share_and_every_error() {
    let mut targets = vec!["/a"; 200];
    targets.extend(["/none"; 5]);
    let lines = lines("sample = 0.1, status = [\"4xx\"]", &targets);
    let of = |line: &str| lines.iter().filter(|other| *other == line).count();
    assert!((18..=22).contains(&of("/a 200")), "{lines:?}");
    assert_eq!(of("/none 404"), 5, "{lines:?}");
}
