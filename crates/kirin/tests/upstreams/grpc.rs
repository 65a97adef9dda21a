//! gRPC through Kirin with Debian's python3-grpcio as client and server (`tests/grpc`). The same
//! calls first go past Kirin, so that a failure is Kirin's.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use kirin_tests::{Authority, Kirin, Site};

/// The number of calls that a connection to the server accepts at the same time. The tests make
/// more.
const STREAMS: &str = "5";

fn python(script: &str) -> Command {
    let directory: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/grpc");
    let mut command = Command::new("/usr/bin/python3");
    command.arg(directory.join(script)).env("GRPC_ENABLE_FORK_SUPPORT", "0");
    command
}

/// The server. It ends when it is dropped.
struct Service {
    child: Child,
    ports: Vec<u16>,
}

impl Service {
    /// Starts the server with the certificate `a` of the site for its second port.
    fn start(site: &Site) -> Self {
        let mut child = python("service.py")
            .arg(STREAMS)
            .args([site.path("a.pem"), site.path("a.key")])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("Python");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output"))
            .read_line(&mut line)
            .expect("its ports");
        let ports: Vec<u16> =
            line.split_whitespace().filter_map(|port| port.parse().ok()).collect();
        assert_eq!(ports.len(), 2, "package python3-grpcio: {line:?}");
        Self { child, ports }
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs the client with its calls to `address`.
fn make_calls(address: &str, more: &[&str], log: impl Fn() -> String) {
    let output = python("calls.py").args(more).arg(address).output().expect("Python");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}\n{}", log());
    assert!(text.contains("\nOK"), "no test was run: {text}");
}

fn site() -> Site {
    let authority = Authority::new("inside");
    let site = Site::new().with("ca.pem", authority.pem());
    authority.issue(&["localhost"]).write(&site, "a");
    site
}

fn proxy(site: &Site, server: &str, listener: &str) -> Kirin {
    Kirin::start(
        site,
        &format!(
            "threads = 1\n[[listener]]\naddress = \"127.0.0.1:0\"\n{listener}\
             [[upstream]]\nname = \"api\"\nservers = [\"{server}\"]\n\
             [[route]]\npath = \"/\"\ntry = [\"proxy:api\"]\n"
        ),
    )
}

#[test]
fn the_calls_succeed_without_kirin() {
    let site = site();
    let service = Service::start(&site);
    make_calls(&format!("127.0.0.1:{}", service.ports[0]), &["-direct"], String::new);
}

#[test]
fn every_kind_of_call_goes_through_without_tls() {
    let site = site();
    let service = Service::start(&site);
    let kirin = proxy(&site, &format!("h2c://127.0.0.1:{}", service.ports[0]), "");
    make_calls(&kirin.address().to_string(), &[], || kirin.log());
}

#[test]
fn every_kind_of_call_goes_through_by_tls_on_both_sides() {
    let site = site();
    let service = Service::start(&site);
    let server =
        format!("https://localhost:{}\"]\ntls = {{ ca = \"ca.pem\" }} # [\"", service.ports[1]);
    let tls = "[listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }]\n";
    let kirin = proxy(&site, &server, tls);
    let address = format!("localhost:{}", kirin.address().port());
    let ca = site.path("ca.pem");
    make_calls(&address, &["-ca", ca.to_str().expect("UTF-8")], || kirin.log());
}
