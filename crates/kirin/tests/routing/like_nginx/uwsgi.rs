//! Configurations of uWSGI's documentation for PSGI, imported and compared with uWSGI itself.

use std::net::{SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};

use kirin_tests::{Kirin, LeasedPort, Site, run_kirin, wait_for};

use super::answers::{Answer, ask};

const APP: &str = "sub {
    my $env = shift;
    my $body = '';
    $env->{'psgi.input'}->read($body, $env->{CONTENT_LENGTH}) if $env->{CONTENT_LENGTH};
    my $text = join ' ', map { $env->{$_} // '' } qw(REQUEST_METHOD PATH_INFO QUERY_STRING);
    return [200, ['Content-Type' => 'text/plain'], [\"$text $body\"]];
}";

/// The settings after those of the application, and the targets of requests.
const CONFIGURATIONS: &[(&str, &[&str])] = &[
    (
        "processes = 1\nvacuum = true\ndie-on-term = true\n",
        &["GET /", "GET /a/b?c=d", "POST /form\n\nx=y", "GET /%C3%BC", "DELETE /x"],
    ),
    (
        "processes = 1\nstatic-map = /static=public\nharakiri = 30\n",
        &["GET /static/a.txt", "GET /static/deep/b.txt", "GET /other", "GET /static.txt"],
    ),
    (
        "processes = 1\ncheck-static = public\nroute = ^/private/ break:403 Forbidden\n",
        &["GET /a.txt", "GET /deep/b.txt", "GET /none", "GET /private/x", "GET /privately"],
    ),
];

/// A running uWSGI. It is killed when it is dropped.
struct Uwsgi(Child);

impl Uwsgi {
    fn start(site: &Site, address: SocketAddr) -> Self {
        let child = Command::new("uwsgi")
            .args(["--plugin", "psgi", "--ini", "uwsgi.ini"])
            .current_dir(site.root())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("packages uwsgi-core and uwsgi-plugin-psgi");
        let mut started = Self(child);
        wait_for("uWSGI", || {
            let ended = started.0.try_wait().expect("wait");
            assert!(ended.is_none(), "uWSGI has ended");
            TcpStream::connect(address).ok()
        });
        started
    }
}

impl Drop for Uwsgi {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Returns what of an answer is compared: the other fields are those of the servers.
fn compared(answer: &Answer) -> [Option<&String>; 3] {
    ["status", "location", "body"].map(|part| answer.parts.get(part))
}

#[test]
fn imported_configurations_of_uwsgi_answer_as_uwsgi() {
    for (settings, requests) in CONFIGURATIONS {
        let port = LeasedPort::lease();
        let site = Site::new()
            .with("app.psgi", APP)
            .with("public/a.txt", "a file")
            .with("public/deep/b.txt", "another file");
        let settings = settings.replace("public", &site.path("public").display().to_string());
        let address = port.address();
        let ini = format!("[uwsgi]\npsgi = app.psgi\nhttp-socket = {address}\n{settings}");
        std::fs::write(site.path("uwsgi.ini"), ini).expect("uwsgi.ini");
        let imported = run_kirin(&site, &["import", "uwsgi.ini"]);
        let report = String::from_utf8_lossy(&imported.stderr);
        let config = String::from_utf8_lossy(&imported.stdout);
        let kirin = Kirin::start(&site, &config.replace(&address.to_string(), "127.0.0.1:0"));
        let _uwsgi = Uwsgi::start(&site, address);
        for request in *requests {
            let (of_uwsgi, of_kirin) = (ask(address, request), ask(kirin.address(), request));
            assert_eq!(
                compared(&of_kirin),
                compared(&of_uwsgi),
                "{request:?}\n{config}\n{report}\n{}\n{}",
                of_uwsgi.received,
                of_kirin.received
            );
        }
    }
}
