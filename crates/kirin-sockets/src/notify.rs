//! Messages to systemd about the state of the program (sd_notify(3)). Each is one datagram.

use std::ffi::OsString;
use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The longest time that a message waits for a full socket.
const WAIT_LIMIT: Duration = Duration::from_secs(2);

/// The socket of systemd.
#[derive(Clone, Debug)]
pub struct NotifySocket {
    variable: OsString,
    address: SocketAddr,
}

impl NotifySocket {
    /// Parses the value of `NOTIFY_SOCKET`: a path, or `@` and an abstract name. Other forms name
    /// sockets of another machine, and are ignored.
    pub(crate) fn new(variable: OsString) -> Option<Self> {
        let address = match variable.as_bytes() {
            [b'@', name @ ..] => SocketAddr::from_abstract_name(name),
            [b'/', ..] => SocketAddr::from_pathname(&variable),
            _ => return None,
        };
        Some(Self { address: address.ok()?, variable })
    }

    /// Returns the variable's name and value, for a process that sends messages, too.
    pub fn variable(&self) -> (&'static str, &OsString) {
        ("NOTIFY_SOCKET", &self.variable)
    }

    /// Sends lines of the form `NAME=VALUE`.
    pub fn send(&self, lines: &str) -> io::Result<()> {
        let socket = UnixDatagram::unbound()?;
        // A reader that is stuck must not block the program.
        socket.set_write_timeout(Some(WAIT_LIMIT))?;
        socket.send_to_addr(lines.as_bytes(), &self.address).map(|_| ())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_arrive_at_a_path_and_at_an_abstract_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("notify");
        let name = format!("kirin-test-{}", std::process::id());
        let abstract_address = SocketAddr::from_abstract_name(&name).unwrap();
        for (variable, receiver) in [
            (path.clone().into_os_string(), UnixDatagram::bind(&path).unwrap()),
            (format!("@{name}").into(), UnixDatagram::bind_addr(&abstract_address).unwrap()),
        ] {
            NotifySocket::new(variable).unwrap().send("READY=1\nSTATUS=x").unwrap();
            let mut buffer = [0; 64];
            let count = receiver.recv(&mut buffer).unwrap();
            assert_eq!(&buffer[..count], b"READY=1\nSTATUS=x");
        }
    }

    #[test]
    fn other_forms_of_notify_socket_are_ignored() {
        assert!(NotifySocket::new("vsock:2:1".into()).is_none());
        assert!(NotifySocket::new("".into()).is_none());
    }
}
