//! What an operator has changed goes on in the new program, unless its file says something else.

use kirin_tests::{Backend, wait_for};

use super::{CONFIG, Service};

fn config(backend: &Backend) -> String {
    let address = backend.address();
    format!(
        "{CONFIG}[[route]]\npath = \"/held\"\ntry = [\"app:web\"]\n\
         [[route]]\npath = \"/proxied\"\ntry = [\"proxy:api\"]\n\
         [[upstream]]\nname = \"api\"\nservers = [\"{address}\", \"127.0.0.1:1\"]\n"
    )
}

#[test]
fn changes_by_hand_go_on() {
    let backend =
        Backend::answering(|_| "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok".to_owned());
    let service = Service::start(&config(&backend));
    let server = backend.address().to_string();
    for words in [
        &["maintenance", "on", "--route", "/held", "--retry-after", "5m"][..],
        &["block", "192.0.2.0/24", "--for", "1h"],
        &["block", "2001:db8::7"],
        &["upstream", "disable", "api", "127.0.0.1:1"],
        &["upstream", "weigh", "api", &server, "7"],
        &["workers", "web", "3"],
    ] {
        let (code, said) = service.command(words);
        assert_eq!(code, Some(0), "{said}");
    }
    let expected = [
        "! route /held: in maintenance by an operator",
        "! blocked by an operator: 192.0.2.0/24 for ",
        ", 2001:db8::7 for ",
        "127.0.0.1:1 is disabled by an operator",
        "has the weight 7 by an operator, configured is 1",
        "application web: 3 workers by an operator, configured are 2",
    ];
    let shows = |expected: &[&str]| {
        wait_for("the changes in the status", || {
            let (_, status) = service.command(&["status"]);
            expected.iter().all(|line| status.contains(line)).then_some(())
        });
    };
    shows(&expected);
    service.upgrade();
    shows(&expected);
    assert_eq!(kirin_tests::Client::connect(service.address()).get("/held").status, 503);
    // The file says something else about two of them, and has no such route any more.
    let other = config(&backend)
        .replace("workers = 2", "workers = 1")
        .replace(&format!("\"{server}\""), &format!("{{ address = \"{server}\", weight = 2 }}"))
        .replace("\"/held\"", "\"/other\"");
    std::fs::write(service.site.path("kirin.toml"), other).expect("kirin.toml");
    service.upgrade();
    shows(&expected[1..4]);
    let (_, status) = service.command(&["status"]);
    for gone in ["/held", "has the weight", "application web: 3 workers"] {
        assert!(!status.contains(gone), "{gone}: {status}");
    }
}
