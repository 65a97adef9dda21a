//! A syslog daemon: on this machine by a unix socket, or on another by UDP.
//!
//! Local daemons read the form that the C library writes: `<190>Nov  6 08:49:37 kirin[17]: TEXT`.
//! Other machines get RFC 5424, in which the zone and the host are clear.

use std::io::{self, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, ToSocketAddrs, UdpSocket};
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use jiff::Zoned;

use super::daemon_line::{DaemonLine, send_each};
use super::journald::send_again;
use super::log_sink::{log_failure, log_recovery};
use super::queued_writer::{LogOutput, WriteError};

/// The socket of the daemon on this machine.
pub const SOCKET: &str = "/dev/log";

/// The facility `local7`, as nginx has it, times eight.
const FACILITY: u8 = 23 << 3;

/// A syslog daemon.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum SyslogServer {
    /// On this machine, at the socket with this path.
    Local(PathBuf),
    /// At `HOST:PORT` by UDP.
    Udp(String),
}

/// Writes to a syslog daemon.
pub struct Syslog {
    connection: SyslogSocket,
    datagram: Vec<u8>,
}

enum SyslogSocket {
    Local { path: PathBuf, socket: Option<UnixDatagram> },
    Udp { server: String, socket: Option<UdpSocket>, host: String },
}

impl Syslog {
    /// Returns the output for a daemon. It connects with the first line.
    pub fn new(server: SyslogServer) -> Self {
        let connection = match server {
            SyslogServer::Local(path) => SyslogSocket::Local { path, socket: None },
            SyslogServer::Udp(server) => {
                SyslogSocket::Udp { server, socket: None, host: host_name() }
            }
        };
        Self { connection, datagram: Vec::new() }
    }

    fn send(&mut self, line: DaemonLine<'_>) -> io::Result<()> {
        let (priority, process) = (FACILITY | line.priority(), std::process::id());
        let datagram = &mut self.datagram;
        datagram.clear();
        match &mut self.connection {
            SyslogSocket::Local { path, socket } => {
                let time = Zoned::now().strftime("%b %e %H:%M:%S").to_string();
                write!(datagram, "<{priority}>{time} kirin[{process}]: ")?;
                datagram.extend_from_slice(line.text());
                send_again(socket, datagram, || {
                    let socket = UnixDatagram::unbound()?;
                    socket.connect(&*path)?;
                    Ok(socket)
                })
            }
            SyslogSocket::Udp { server, socket, host } => {
                let time = Zoned::now().strftime("%Y-%m-%dT%H:%M:%S.%6f%:z").to_string();
                write!(datagram, "<{priority}>1 {time} {host} kirin {process} - - ")?;
                datagram.extend_from_slice(line.text());
                let connected = match socket.take() {
                    Some(connected) => connected,
                    None => connect(server)?,
                };
                match connected.send(datagram) {
                    // If the network reports that a datagram was not received, it does so later.
                    Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
                        socket.insert(connected).send(datagram)?;
                    }
                    Err(error) => return Err(error),
                    Ok(_) => *socket = Some(connected),
                }
                Ok(())
            }
        }
    }
}

fn connect(server: &str) -> io::Result<UdpSocket> {
    let address = server.to_socket_addrs()?.next();
    let address = address.ok_or_else(|| io::Error::other(format!("{server} has no address")))?;
    let any = match address {
        SocketAddr::V4(_) => SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
        SocketAddr::V6(_) => SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
    };
    let socket = UdpSocket::bind(any)?;
    socket.connect(address)?;
    Ok(socket)
}

/// Returns the name of this machine, or `-` as RFC 5424 has it.
fn host_name() -> String {
    let name = rustix::system::uname();
    let name = name.nodename().to_string_lossy();
    match name.bytes().all(|byte| byte.is_ascii_graphic()) && !name.is_empty() {
        true => name.into_owned(),
        false => "-".into(),
    }
}

impl LogOutput for Syslog {
    fn write(&mut self, lines: &[u8]) -> Result<(), WriteError> {
        send_each(lines, |line| self.send(line))
    }

    fn failed(&mut self, error: &io::Error) {
        log_failure(error);
    }

    fn recovered(&mut self, lost_lines: u64) {
        log_recovery(lost_lines);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINES: &[u8] = b"one\x1fPRIORITY=6\x1fKIRIN_STATUS=200\ntwo\x1fPRIORITY=4\n";

    #[test]
    fn a_local_daemon_gets_the_form_of_the_c_library() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        let daemon = UnixDatagram::bind(&path).unwrap();
        assert!(Syslog::new(SyslogServer::Local(path)).write(LINES).is_ok());
        let mut buffer = [0; 4096];
        for (start, text) in [("<190>", "one"), ("<188>", "two")] {
            let count = daemon.recv(&mut buffer).unwrap();
            let line = String::from_utf8_lossy(&buffer[..count]).into_owned();
            assert!(line.starts_with(start), "{line}");
            // `<190>Nov  6 08:49:37 kirin[17]: one`
            let rest = format!(" kirin[{}]: {text}", std::process::id());
            assert_eq!(&line[5 + 15..], rest, "{line}");
        }
    }

    #[test]
    fn another_machine_gets_rfc_5424() {
        let daemon = UdpSocket::bind("127.0.0.1:0").unwrap();
        let server = daemon.local_addr().unwrap().to_string();
        assert!(Syslog::new(SyslogServer::Udp(server)).write(LINES).is_ok());
        let mut buffer = [0; 4096];
        for (start, text) in [("<190>1", "one"), ("<188>1", "two")] {
            let count = daemon.recv(&mut buffer).unwrap();
            let line = String::from_utf8_lossy(&buffer[..count]).into_owned();
            let parts: Vec<&str> = line.split(' ').collect();
            let process = std::process::id().to_string();
            let [version, time, _host, "kirin", id, "-", "-", message] = parts[..] else {
                panic!("{line}")
            };
            assert_eq!((version, id, message), (start, &*process, text), "{line}");
            assert!(time.parse::<jiff::Timestamp>().is_ok(), "{line}");
        }
    }
}
