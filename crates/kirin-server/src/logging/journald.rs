//! The journal of systemd, by its own protocol: a datagram for each line, with `NAME=VALUE LF` for
//! each field (<https://systemd.io/JOURNAL_NATIVE_PROTOCOL/>).

use std::io;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;

use super::daemon_line::{DaemonLine, send_each};
use super::log_sink::{log_failure, log_recovery};
use super::queued_writer::{LogOutput, WriteError};

/// The socket of the journal.
pub const SOCKET: &str = "/run/systemd/journal/socket";

/// Writes to the journal.
pub struct Journald {
    path: PathBuf,
    socket: Option<UnixDatagram>,
    datagram: Vec<u8>,
}

impl Journald {
    /// Returns the output for the journal at `path`. It connects with the first line.
    pub fn new(path: PathBuf) -> Self {
        Self { path, socket: None, datagram: Vec::new() }
    }

    fn send(&mut self, line: DaemonLine<'_>) -> io::Result<()> {
        self.datagram.clear();
        self.datagram.extend_from_slice(b"MESSAGE=");
        self.datagram.extend_from_slice(line.text());
        self.datagram.extend_from_slice(b"\nSYSLOG_IDENTIFIER=kirin\n");
        for value in line.values() {
            self.datagram.extend_from_slice(value);
            self.datagram.push(b'\n');
        }
        send_again(&mut self.socket, &self.datagram, || {
            let socket = UnixDatagram::unbound()?;
            socket.connect(&self.path)?;
            Ok(socket)
        })
    }
}

impl LogOutput for Journald {
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

/// Sends a datagram. If that fails, connects and tries again, because the daemon may have been
/// restarted.
pub(super) fn send_again(
    socket: &mut Option<UnixDatagram>,
    datagram: &[u8],
    connect: impl Fn() -> io::Result<UnixDatagram>,
) -> io::Result<()> {
    let is_too_long = |error: &io::Error| {
        rustix::io::Errno::from_io_error(error) == Some(rustix::io::Errno::MSGSIZE)
    };
    if let Some(connected) = socket {
        match connected.send(datagram) {
            Ok(_) => return Ok(()),
            Err(error) if is_too_long(&error) => return Err(error),
            Err(_) => *socket = None,
        }
    }
    let connected = connect()?;
    connected.send(datagram)?;
    *socket = Some(connected);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_becomes_a_datagram_with_fields() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let mut output = Journald::new(path.clone());
        let lines = b"one\x1fPRIORITY=6\x1fKIRIN_STATUS=200\ntwo\x1fPRIORITY=4\n";
        let lost = output.write(lines).unwrap_err().lost_lines;
        assert_eq!(lost, 2, "without a journal");
        let journal = UnixDatagram::bind(&path).unwrap();
        assert!(output.write(lines).is_ok());
        let mut buffer = [0; 4096];
        for expected in [
            "MESSAGE=one\nSYSLOG_IDENTIFIER=kirin\nPRIORITY=6\nKIRIN_STATUS=200\n",
            "MESSAGE=two\nSYSLOG_IDENTIFIER=kirin\nPRIORITY=4\n",
        ] {
            let count = journal.recv(&mut buffer).unwrap();
            assert_eq!(String::from_utf8_lossy(&buffer[..count]), expected);
        }
        // It is started again.
        drop(journal);
        std::fs::remove_file(&path).unwrap();
        let journal = UnixDatagram::bind(&path).unwrap();
        assert!(output.write(b"three\n").is_ok());
        let count = journal.recv(&mut buffer).unwrap();
        assert!(buffer[..count].starts_with(b"MESSAGE=three\n"));
    }

    #[test]
    fn a_line_that_no_datagram_can_hold_is_lost_alone() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let journal = UnixDatagram::bind(&path).unwrap();
        let lines = [b"one\n", &[b'x'; 1 << 22][..], b"\nthree\n"].concat();
        assert_eq!(Journald::new(path).write(&lines).unwrap_err().lost_lines, 1);
        let mut buffer = [0; 4096];
        for expected in ["MESSAGE=one\n", "MESSAGE=three\n"] {
            let count = journal.recv(&mut buffer).unwrap();
            assert!(buffer[..count].starts_with(expected.as_bytes()));
        }
    }
}
