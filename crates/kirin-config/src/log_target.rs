//! The target of an access log, as the configuration writes it.

use std::fmt;
use std::path::PathBuf;

use kirin_server::SyslogServer;
use kirin_server::logging::{journald, syslog};

use crate::source::ConfigSource;

/// Where log lines go.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum LogTarget {
    /// Standard output.
    Stdout,
    /// Standard error.
    Stderr,
    /// Appended to a file.
    File(PathBuf),
    /// The journal that listens at a socket.
    Journald(PathBuf),
    /// A syslog daemon.
    Syslog(SyslogServer),
}

impl LogTarget {
    /// Reads the value of `path`.
    pub fn read(text: &str, source: &ConfigSource) -> Result<Self, String> {
        let socket =
            |path: &str| Some(path).filter(|path| !path.is_empty()).map(|p| source.path(p));
        Ok(match text {
            "" => return Err("the access log has no path".into()),
            "stdout" => Self::Stdout,
            "stderr" => Self::Stderr,
            "journald" => Self::Journald(journald::SOCKET.into()),
            "syslog" => Self::Syslog(SyslogServer::Local(syslog::SOCKET.into())),
            _ => match text.split_once(':') {
                Some(("journald", socket_of)) => {
                    let path = socket_of.strip_prefix("unix:").and_then(socket);
                    Self::Journald(path.ok_or(format!(
                        "`{text}` is no journal; write \"journald\" or \"journald:unix:PATH\""
                    ))?)
                }
                Some(("syslog", server)) => Self::Syslog(match server.strip_prefix("unix:") {
                    Some(path) if !path.is_empty() => SyslogServer::Local(source.path(path)),
                    None if has_port(server) => SyslogServer::Udp(server.to_owned()),
                    _ => {
                        return Err(format!(
                            "`{text}` is no syslog daemon; write \"syslog\", \"syslog:HOST:PORT\" \
                             or \"syslog:unix:PATH\""
                        ));
                    }
                }),
                _ => Self::File(source.path(text)),
            },
        })
    }
}

/// Returns whether `server` is `HOST:PORT`.
fn has_port(server: &str) -> bool {
    server.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
    })
}

/// As a user writes it.
impl fmt::Display for LogTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Stdout => f.write_str("stdout"),
            Self::Stderr => f.write_str("stderr"),
            Self::File(path) => path.display().fmt(f),
            Self::Journald(path) => write!(f, "journald at {}", path.display()),
            Self::Syslog(SyslogServer::Local(path)) => write!(f, "syslog at {}", path.display()),
            Self::Syslog(SyslogServer::Udp(server)) => write!(f, "syslog at {server} by UDP"),
        }
    }
}
