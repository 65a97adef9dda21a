//! Responses to requests whose bodies no place reads. Real clients get them, although they are
//! still sending.

use std::path::Path;
use std::process::Command;

use kirin_tests::{Authority, Backend, Kirin, Site};

const CONFIG: &str = r#"
threads = 2
[[listener]]
address = "127.0.0.1:0"
[[listener]]
address = "127.0.0.1:0"
[listener.tls]
certificates = [{ chain = "a.pem", key = "a.key" }]
[[app]]
name = "web"
load = "app.psgi"
workers = 1
body_limit = "100KB"
[[upstream]]
name = "nobody"
servers = ["127.0.0.1:1"]
[[upstream]]
name = "early"
servers = ["BACKEND"]
[[route]]
path = "/app"
try = ["app:web"]
[[route]]
path = "/old"
redirect = "/new"
[[route]]
path = "/nobody"
try = ["proxy:nobody"]
[[route]]
path = "/early"
try = ["proxy:early"]
[[route]]
path = "/"
try = ["files:public"]
"#;

/// Targets, and the statuses that a large POST to them gets.
const EARLY: [(&str, &str); 5] = [
    ("/app", "413"),
    ("/page.html", "405"),
    ("/old", "308"),
    ("/nobody", "502"),
    ("/early", "403"),
];

/// Uses a server that answers after it has read a head, and reads nothing else.
fn serve() -> (Site, Kirin, Backend) {
    let backend = Backend::start(|mut connection| {
        if connection.read_head().is_some() {
            connection.send(
                "HTTP/1.1 403 Forbidden\r\nConnection: close\r\nContent-Length: 15\r\n\r\nnot for anybody",
            );
            std::thread::sleep(kirin_tests::wait_limit());
        }
    });
    let site = Site::new()
        .with("app.psgi", "sub { [200, [], ['read']] }")
        .with("public/page.html", "page")
        .with("upload", vec![b'x'; 20 << 20]);
    Authority::new("Kirin test authority").issue(&["localhost"]).write(&site, "a");
    let kirin = Kirin::start(&site, &CONFIG.replace("BACKEND", &backend.address().to_string()));
    (site, kirin, backend)
}

#[test]
fn curl_gets_early_answers() {
    let (site, kirin, _backend) = serve();
    let (plain, tls) = (kirin.address(), kirin.address_of(1));
    for (arguments, url) in [
        (&["--http2-prior-knowledge"][..], format!("http://{plain}")),
        (&["--http2", "-k"], format!("https://{tls}")),
        (&["--http1.1"], format!("http://{plain}")),
        (&["--http1.1", "-k"], format!("https://{tls}")),
    ] {
        for (target, status) in EARLY {
            let output = Command::new("curl")
                .args(["-sS", "-m", "20", "-H", "Expect:", "--data-binary", "@upload"])
                .args(["-o", "/dev/null", "-w", "%{http_code}"])
                .args(arguments)
                .arg(format!("{url}{target}"))
                .current_dir(site.root())
                .output()
                .expect("curl");
            let shown = String::from_utf8_lossy(&output.stdout).into_owned();
            assert!(
                output.status.success() && shown == status,
                "{arguments:?} {target}: {output:?}"
            );
        }
    }
}

/// Sends the complete body before it reads, as Python's own client does.
const PYTHON: &str = r#"
import http.client, ssl, sys
for target, status in zip(sys.argv[2::2], sys.argv[3::2]):
    context = ssl._create_unverified_context()
    connection = http.client.HTTPSConnection(sys.argv[1], context=context, timeout=20)
    connection.request("POST", target, b"x" * (20 << 20))
    response = connection.getresponse()
    response.read()
    assert response.status == int(status), (target, response.status)
"#;

#[test]
fn clients_that_read_after_sending_get_early_answers_over_tls() {
    let (site, kirin, _backend) = serve();
    let arguments = EARLY.iter().flat_map(|(target, status)| [*target, *status]);
    let output = Command::new("/usr/bin/python3")
        .args(["-c", PYTHON, &kirin.address_of(1).to_string()])
        .args(arguments)
        .current_dir(site.root())
        .output()
        .expect("python3");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn h2spec_passes_before_an_origin_that_answers_early() {
    let (_site, kirin, _backend) = serve();
    let h2spec = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target/h2spec/h2spec");
    let output = Command::new(&h2spec)
        .args(["--strict", "-t", "-k", "-P", "/early", "-h", "127.0.0.1"])
        .args(["-p", &kirin.address_of(1).port().to_string()])
        .output()
        .unwrap_or_else(|error| {
            panic!("{}: {error}: run tests/install_h2spec.sh", h2spec.display())
        });
    let report = String::from_utf8_lossy(&output.stdout);
    assert!(report.contains(" 0 skipped, 0 failed"), "{report}");
}
