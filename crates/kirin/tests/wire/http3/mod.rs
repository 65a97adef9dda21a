//! HTTP/3 through the built program, by clients that share no code with it: aioquic in Python, and
//! quic-go.
//!
//! scripts/install-tools installs them. A missing client fails the test.

mod attacks;
pub mod client;
mod clients;
mod early_data;
mod ends;
mod loss;
mod mirrored;
mod upgrades;

use std::path::PathBuf;
use std::process::{Command, Output, Stdio};

use kirin_tests::{ADMIN, Authority, Backend, Client, Issued, Kirin, LeasedPort, Site};
use kirin_tests::{repository, run_kirin, wait_for};
use serde_json::{Value, json};

use client::{Http3Client, Http3Reply};

/// A listener, whose port is `PORT`, and the places of the tests.
const CONFIG: &str = "threads = 2\n[[listener]]\naddress = \"127.0.0.1:PORT\"\n\
    access_log = \"access.log\"\n\
    [listener.tls]\ncertificates = [{ chain = \"a.pem\", key = \"a.key\" }]\nhttp3 = true\n\
    [[app]]\nname = \"web\"\nload = \"app.psgi\"\nworkers = 2\nbody_limit = \"8MB\"\n\
    [[route]]\npath = \"/app\"\ntry = [\"app:web\"]\n\
    [[route]]\npath = \"/\"\ntry = [\"files:public\"]\n";

const APP: &str = r#"
use v5.16; use warnings; use Digest::MD5;
sub {
    my $env = shift;
    my ($path, $text) = ($env->{PATH_INFO}, ['Content-Type' => 'text/plain']);
    if ($path eq '/app/echo') {
        my $io = $env->{'psgix.io'};
        return sub {
            my $writer = shift->([101, [Upgrade => 'websocket', 'Sec-WebSocket-Accept' => 'x']]);
            while (sysread $io, my $bytes, 65536) { $writer->write($bytes) }
        };
    }
    return [200, $text, [map { "$_=" . ($env->{$_} // '') . "\n" } 'psgi.url_scheme', qw(SERVER_PROTOCOL REQUEST_METHOD
        REQUEST_URI HTTP_HOST HTTP_COOKIE HTTP_X_A HTTP_EARLY_DATA REMOTE_ADDR), grep { /^SSL_/ } sort keys %$env]] if $path eq '/app/env';
    return [200, $text, [$env->{SERVER_PROTOCOL}]] if $path eq '/app/protocol';
    return [200, [@$text, 'Content-Length' => 500_000], ['much ' x 100_000]] if $path eq '/app/much';
    if ($path eq '/app/hints') { $env->{'psgix.informational'}->(103, [Link => '</a.css>; rel=preload']); return [200, $text, ['done']] }
    if ($path eq '/app/endless') {
        return sub {
            my $writer = shift->([200, $text]);
            open my $begun, '>', "begun.$$";
            while (eval { $writer->write("a line\n" x 100); 1 }) { select undef, undef, undef, 0.01 }
            open my $gone, '>', 'gone.1';
        };
    }
    if ($path eq '/app/count') {
        open my $asked, '>>', 'asked';
        print {$asked} "$env->{REQUEST_METHOD}\n";
        return [200, $text, ['counted']];
    }
    if ($path eq '/app/wait') {
        open my $begun, '>', "begun.$$." . ($env->{QUERY_STRING} || 'x');
        select undef, undef, undef, 0.01 until -e 'go';
        return [200, $text, ['waited']];
    }
    my $body = do { local $/; my $input = $env->{'psgi.input'}; <$input> } // '';
    return [200, $text, [length($body) . ' ' . Digest::MD5::md5_hex($body)]] if $path eq '/app/body';
    [404, $text, ['not here']];
};
"#;

/// A running Kirin with HTTP/3.
struct Served {
    kirin: Kirin,
    site: Site,
    port: LeasedPort,
    authority: Authority,
}

/// Starts Kirin with a configuration. Its `PORT` becomes a port that is free for TCP and UDP.
fn serve(config: &str) -> Served {
    let authority = Authority::new("Kirin test authority");
    let site = Site::new()
        .with("app.psgi", APP)
        .with("public/hello.txt", "hello\n")
        .with("public/large.bin", large())
        .with("public/middle.bin", large().split_off(2_600_000))
        .with("public/page.html", "<p>page</p>".repeat(400));
    authority.issue(&["localhost"]).write(&site, "a");
    let port = LeasedPort::lease();
    let kirin = Kirin::start(&site, &with_port(config, &port));
    Served { kirin, site, port, authority }
}

/// Returns a configuration with a port.
fn with_port(config: &str, port: &LeasedPort) -> String {
    config.replace("PORT", &port.number().to_string())
}

impl Served {
    /// Returns the URL of the site.
    fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port.number())
    }

    /// Returns a client with a connection.
    fn connect(&self) -> Http3Client {
        let mut client = Http3Client::start();
        client.ask(&json!({ "do": "connect", "url": self.url() }));
        client
    }

    /// Returns the value of a metric whose line begins with this. The configuration must have
    /// [`ADMIN`].
    fn metric(&self, start: &str) -> u64 {
        let admin = wait_for("the admin listener", || {
            let log = self.kirin.log();
            let (_, rest) = log.split_once("admin on http://")?;
            rest.split_once('/')?.0.parse().ok()
        });
        let mut client = Client::connect(admin);
        client.send(format!("GET /metrics HTTP/1.1\r\nHost: {admin}\r\n\r\n"));
        let text = client.read_reply().text();
        let line = text.lines().find(|line| line.starts_with(start));
        let number = line.and_then(|line| line.rsplit_once(' ')?.1.parse().ok());
        number.unwrap_or_else(|| panic!("{start} is not in\n{text}"))
    }

    /// Waits for a line of the access log.
    fn wait_for_line(&self, part: &str) {
        let log = || std::fs::read_to_string(self.site.path("access.log")).unwrap_or_default();
        wait_for(&format!("{part} in the access log"), || log().contains(part).then_some(()));
    }

    /// Checks that the program serves, and that nothing in it has panicked.
    fn assert_is_well(&self) {
        let reply = self.connect().get("/hello.txt");
        assert_eq!((reply.status(), reply.text()), (200, "hello\n"), "{reply:?}");
        let log = self.kirin.whole_log();
        assert!(!log.contains("panic"), "{log}");
    }
}

/// Returns 3 MB in which every place differs.
fn large() -> Vec<u8> {
    (0..3_000_000u32).map(|n| (n.wrapping_mul(2_654_435_761) >> 24) as u8).collect()
}

/// Returns the path of a client that no package installs.
fn installed(name: &str) -> PathBuf {
    let path = repository().join("target/http3-clients").join(name);
    assert!(path.exists(), "{} is missing: run scripts/install-tools", path.display());
    path
}

/// Returns the command of a Python program beside this file.
fn python(script: &str) -> Command {
    let mut command = Command::new(installed("python/bin/python"));
    // The tests run at the same time, and would write the same files of compiled code.
    command.arg("-B");
    command.arg(repository().join("crates/kirin/tests/wire/http3/client_programs").join(script));
    command
}

/// Runs a program to its end. Returns what it printed.
fn run(command: &mut Command) -> Output {
    let output = command.stdin(Stdio::null()).output();
    output.unwrap_or_else(|error| panic!("{command:?} does not start: {error}"))
}

/// Runs a command of kirin. Returns whether it succeeded, and what it has said.
fn said(site: &Site, words: &[&str]) -> (bool, String) {
    let output = run_kirin(site, words);
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}

/// Returns a description of a run, for the message of a failure.
fn described(command: &Command, output: &Output) -> String {
    let [printed, errors] =
        [&output.stdout, &output.stderr].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    format!("{command:?} ended with {}\n{printed}\n{errors}", output.status)
}
