//! The client of the admin listener, for the commands that ask a running Kirin.
//!
//! [`CommandTarget`] is the running Kirin. The command line chooses it ([`RunningKirin`]), and
//! [`default_sockets`] finds its socket if the configuration has no address.
//!
//! [`RunningKirin`]: super::RunningKirin

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use kirin_config::{ConfigErrors, ConfigSource};
use kirin_http::ListenAddress;
use kirin_http::response_head::{self, Field};
use kirin_observe::served::Served;

use super::default_sockets;

/// How long a client waits for Kirin's answer.
const WAIT_LIMIT: Duration = Duration::from_secs(10);

/// The largest answer in bytes.
const ANSWER_LIMIT_BYTES: u64 = 64 << 20;

/// A running Kirin, or why there is none.
pub struct CommandTarget {
    /// The admin listener. Without one, the message for the operator.
    admin: Result<ListenAddress, String>,
    /// The memcached ports of the configuration.
    memcached: Vec<ListenAddress>,
}

impl CommandTarget {
    /// Returns the Kirin at an address of the command line. It may be written as the log has it:
    /// `http://127.0.0.1:9000/`.
    pub fn at(address: &str) -> Result<Self, String> {
        let plain = address.strip_prefix("http://").map(|rest| rest.trim_end_matches('/'));
        let address = plain.unwrap_or(address);
        let admin =
            address.parse().map_err(|error: kirin_http::InvalidListenAddress| error.to_string())?;
        Ok(Self::at_listener(admin))
    }

    /// Returns the Kirin at an address.
    pub fn at_listener(address: ListenAddress) -> Self {
        Self { admin: Ok(address), memcached: Vec::new() }
    }

    /// Returns the Kirin that serves a configuration file.
    pub fn of_config(path: &Path) -> Result<Self, String> {
        let read = || kirin_config::read_command_addresses(&ConfigSource::read(path)?);
        let (admin, memcached) = read().map_err(|errors: ConfigErrors| errors.to_string())?;
        let admin = admin.map_or_else(|| default_sockets::find(&Served::from_config(path)), Ok);
        Ok(Self { admin, memcached })
    }

    /// Returns the Kirin that serves `served` and has the default socket.
    pub fn of_served(served: &Served) -> Self {
        Self { admin: default_sockets::find(served), memcached: Vec::new() }
    }

    /// Returns the address of the admin listener, or why there is none.
    pub fn address(&self) -> Result<&ListenAddress, String> {
        self.admin.as_ref().map_err(String::clone)
    }

    /// Returns the memcached ports of the configuration.
    pub fn memcached(&self) -> &[ListenAddress] {
        &self.memcached
    }

    /// Sends `GET`, and returns the body of the answer. The error is for the operator: it says what
    /// to do if nothing listens.
    pub fn get(&self, path: &str) -> Result<String, String> {
        self.ask("GET", path, "", WAIT_LIMIT)
    }

    /// Sends `GET` as [`CommandTarget::get`] does, and waits no longer than `limit`.
    pub fn get_within(&self, path: &str, limit: Duration) -> Result<String, String> {
        self.ask("GET", path, "", limit)
    }

    /// Sends `POST` with a body of the type `application/json`, and returns the body of the answer,
    /// as [`CommandTarget::get`] does.
    pub fn post(&self, path: &str, body: &str) -> Result<String, String> {
        self.ask("POST", path, body, WAIT_LIMIT)
    }

    /// Sends `POST` as [`CommandTarget::post`] does, for an answer that takes `time` to make.
    pub fn post_within(&self, path: &str, body: &str, time: Duration) -> Result<String, String> {
        self.ask("POST", path, body, WAIT_LIMIT + time)
    }

    /// Sends `POST` with a change of the running program, and returns what was done. A refusal is a
    /// sentence for the operator, which says it all.
    pub fn post_change(&self, path: &str, change: &serde_json::Value) -> Result<String, String> {
        without_conflict(self.post(path, &change.to_string()))
    }

    /// Sends `DELETE`, and returns the body of the answer, as [`CommandTarget::get`] does.
    pub fn delete(&self, path: &str) -> Result<String, String> {
        self.ask("DELETE", path, "", WAIT_LIMIT)
    }

    fn ask(&self, method: &str, path: &str, body: &str, limit: Duration) -> Result<String, String> {
        let address = self.admin.as_ref().map_err(String::clone)?;
        ask(address, method, path, body, limit).map_err(|failure| {
            let advice = failure.advice();
            match failure {
                AskError::Status(status, text) => format!("{status}: {text}{advice}"),
                failure => format!("no Kirin answers at {address}: {failure}{advice}"),
            }
        })
    }
}

/// Takes the status away from a refusal with 409.
pub fn without_conflict(answer: Result<String, String>) -> Result<String, String> {
    answer.map_err(|error| match error.strip_prefix("409 Conflict: ") {
        Some(refusal) => refusal.to_owned(),
        None => error,
    })
}

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
enum AskError {
    /// Nothing listens, or what listens does not answer in time.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// What came is not HTTP.
    #[error("what came is no answer of Kirin: {0}")]
    Head(String),
    /// The connection ended.
    #[error("the connection was closed without an answer")]
    Closed,
    /// The program does not do what was asked.
    #[error("{0}, {1}")]
    Status(http::StatusCode, String),
}

impl AskError {
    /// Returns what the operator can do, if that is known.
    fn advice(&self) -> &'static str {
        match self {
            Self::Io(error) => match error.kind() {
                io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused => {
                    "; start it, or name another one with --config, --target or --admin"
                }
                io::ErrorKind::PermissionDenied => {
                    "; run the command as the user that Kirin serves as, or as root"
                }
                // The errors of a socket with a timeout (socket(7)).
                io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                    "; it listens and does not answer: its log may say why"
                }
                _ => "",
            },
            Self::Status(http::StatusCode::NOT_FOUND, _) => {
                "; the running Kirin is of another version, which does not know this command"
            }
            Self::Head(_) | Self::Closed | Self::Status(..) => "",
        }
    }
}

/// A connection of either kind.
pub trait ReadWrite: Read + Write {}
impl<T: Read + Write> ReadWrite for T {}

/// Connects to a listener. Reading and writing have a time limit.
pub fn connect(address: &ListenAddress) -> io::Result<Box<dyn ReadWrite>> {
    connect_within(address, WAIT_LIMIT)
}

fn connect_within(address: &ListenAddress, limit: Duration) -> io::Result<Box<dyn ReadWrite>> {
    match address {
        ListenAddress::Unix(path) => {
            let stream = UnixStream::connect(path)?;
            stream.set_read_timeout(Some(limit))?;
            stream.set_write_timeout(Some(limit))?;
            Ok(Box::new(stream))
        }
        ListenAddress::Tcp(address) => {
            let stream = TcpStream::connect_timeout(address, limit)?;
            stream.set_read_timeout(Some(limit))?;
            stream.set_write_timeout(Some(limit))?;
            Ok(Box::new(stream))
        }
    }
}

/// Sends one request on a connection of its own, and returns the body of the answer.
fn ask(
    address: &ListenAddress,
    method: &str,
    path: &str,
    body: &str,
    limit: Duration,
) -> Result<String, AskError> {
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = connect_within(address, limit)?;
    stream.write_all(request.as_bytes())?;
    let mut answer = Vec::new();
    stream.take(ANSWER_LIMIT_BYTES).read_to_end(&mut answer)?;
    let parsed = response_head::parse(&answer, |_, _| Field::Keep)
        .map_err(|error| AskError::Head(error.to_string()))?;
    let Some((head, length)) = parsed else { return Err(AskError::Closed) };
    let body = String::from_utf8_lossy(&answer[length..]).into_owned();
    if !head.status.is_success() {
        return Err(AskError::Status(head.status, body.trim_end().to_owned()));
    }
    Ok(body)
}
