//! The servers behind nginx and Kirin.

use std::fmt::Write as _;
use std::process::{Child, Command, Stdio};

use kirin_tests::{Backend, LeasedPort, PhpFpm, ReceivedRequest, Site, wait_for};

/// The servers. Configurations name their addresses as `{echo}`, `{second}`, `{broken}` and
/// `{dead}`, and the sockets of php-fpm
/// and fcgiwrap as `{php}` and `{fcgiwrap}`.
pub struct Backends {
    /// Tells what it has received.
    echo: Backend,
    /// The same with another name.
    second: Backend,
    /// Gives no valid response, in a way that the path names.
    broken: Backend,
    /// A port that no process listens on.
    dead: LeasedPort,
    /// Runs PHP scripts of any directory.
    _php: PhpFpm,
    /// Runs CGI programs for nginx.
    fcgiwrap: Child,
    /// The directory of the sockets of both.
    php_site: Site,
}

impl Drop for Backends {
    fn drop(&mut self) {
        let _ = self.fcgiwrap.kill();
        let _ = self.fcgiwrap.wait();
    }
}

impl Backends {
    /// Starts all of them.
    pub fn start() -> Self {
        let php_site = Site::new();
        Self {
            echo: Backend::answering(|asked| answer("echo", asked)),
            second: Backend::answering(|asked| answer("second", asked)),
            broken: Backend::start(|mut connection| {
                while let Some(asked) = connection.read_request() {
                    match asked.target() {
                        "/silent" => connection.wait_for_end(),
                        "/fine" => {
                            connection.send(answer("broken", &asked));
                        }
                        path => {
                            connection.send(broken_answer(path));
                            return;
                        }
                    }
                }
            }),
            dead: LeasedPort::lease(),
            _php: PhpFpm::start(&php_site),
            fcgiwrap: start_fcgiwrap(&php_site),
            php_site,
        }
    }

    /// Returns a configuration with the addresses of the servers.
    pub fn fill(&self, config: &str) -> String {
        let replace = |text: String, (name, address): &(&str, String)| text.replace(name, address);
        self.names().iter().fold(config.to_owned(), replace)
    }

    /// Returns a text with the names of the servers in place of their addresses.
    pub fn without_addresses(&self, text: &str) -> String {
        let replace = |text: String, (name, address): &(&str, String)| text.replace(address, name);
        self.names().iter().fold(text.to_owned(), replace)
    }

    /// Returns the names in configurations and the addresses.
    fn names(&self) -> [(&'static str, String); 6] {
        [
            ("{echo}", self.echo.address().to_string()),
            ("{second}", self.second.address().to_string()),
            ("{broken}", self.broken.address().to_string()),
            ("{dead}", self.dead.address().to_string()),
            ("{php}", self.php_site.path("php.sock").display().to_string()),
            ("{fcgiwrap}", self.php_site.path("fcgiwrap.sock").display().to_string()),
        ]
    }
}

/// Starts fcgiwrap on a socket of the site.
fn start_fcgiwrap(site: &Site) -> Child {
    let socket = site.path("fcgiwrap.sock");
    let address = format!("unix:{}", socket.display());
    let mut command = Command::new("fcgiwrap");
    let process = command.args(["-s", &address]).stderr(Stdio::null()).spawn().expect("fcgiwrap");
    wait_for("fcgiwrap", || socket.exists().then_some(()));
    process
}

/// Returns what the server sends that closes the connection too early.
fn broken_answer(path: &str) -> &'static str {
    match path {
        "/garbage" => "no http\r\n\r\n",
        "/early" => "HTTP/1.1 200 OK\r\nContent-Le",
        "/cut" => "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n12345",
        _ => "",
    }
}

/// Fields that the echo does not show: they belong to the connection or have another value each
/// time.
const NOT_TOLD: &[&str] = &["connection", "traceparent", "via", "x-request-id"];

/// Returns the response of the server called `name`. The first part of the path chooses it.
fn answer(name: &str, asked: &ReceivedRequest) -> String {
    let method = asked.head.split(' ').next().unwrap_or_default();
    let target = asked.target();
    let body = String::from_utf8_lossy(&asked.body);
    let host = asked.field("host").unwrap_or("none");
    let mut text = format!("{name} got {method} {target} for {host}");
    if !body.is_empty() {
        let _ = write!(text, " with {body}");
    }
    let (mut status, mut fields) = ("200 OK".to_owned(), String::new());
    let path = target.split('?').next().unwrap_or_default();
    let path = path.trim_start_matches('/');
    match path.split_once('/').unwrap_or((path, "")) {
        ("status", rest) => status = format!("{} Chosen", rest.get(..3).unwrap_or("200")),
        ("digest", _) => {
            "500 Chosen".clone_into(&mut status);
            fields = "Repr-Digest: sha-256=:AAAA:\r\nContent-Location: /other\r\n".into();
        }
        ("fields", _) => text = received_fields(asked),
        ("location", rest) => {
            "302 Found".clone_into(&mut status);
            fields = format!("Location: http://{host}/{rest}\r\n");
        }
        ("cookies", _) => fields = "Set-Cookie: a=1; Path=/inner\r\nSet-Cookie: b=2\r\n".into(),
        ("private", _) => {
            fields = "X-Accel-Buffering: no\r\nX-Accel-Expires: 0\r\nX-Pad: a\r\n".into();
        }
        _ => {}
    }
    let _ = write!(fields, "X-From: {name}\r\n");
    if status.starts_with("204") || status.starts_with("304") {
        return format!("HTTP/1.1 {status}\r\n{fields}\r\n");
    }
    let length = text.len();
    if method == "HEAD" {
        text.clear();
    }
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\n{fields}\
         Content-Length: {length}\r\n\r\n{text}"
    )
}

/// Returns the lines of the fields that a server has received, sorted.
fn received_fields(asked: &ReceivedRequest) -> String {
    let line = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let name = name.to_ascii_lowercase();
        (!NOT_TOLD.contains(&name.as_str())).then(|| format!("{name}={}", value.trim()))
    };
    let mut lines: Vec<_> = asked.head.lines().skip(1).filter_map(line).collect();
    lines.sort();
    lines.join(" ")
}
