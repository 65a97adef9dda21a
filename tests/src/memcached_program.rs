//! `kirin memcached` as a process, and a client of it over TCP.

use std::fs;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddrV4, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::net::{AddressFamily, SocketFlags, SocketType, connect, socket_with, sockopt};
use rustix::process::{Pid, Signal, kill_process};

use crate::{binary, wait_for, wait_limit};

/// Returns the command `kirin memcached` with `arguments`.
pub fn memcached_command(arguments: &[&str]) -> Command {
    let mut command = Command::new(binary());
    command.arg("memcached").args(arguments).env_remove("KIRIN_LOG");
    command
}

/// A started `kirin memcached`, killed at the end.
pub struct MemcachedProgram(Child);

impl MemcachedProgram {
    /// Starts it. It writes its ports to `port_file`.
    ///
    /// # Panics
    /// When there is no program.
    pub fn start(arguments: &[&str], port_file: Option<&Path>) -> Self {
        let mut command = memcached_command(arguments);
        command.stderr(Stdio::null());
        if let Some(path) = port_file {
            command.env("MEMCACHED_PORT_FILENAME", path);
        }
        Self(command.spawn().expect("the program starts"))
    }

    /// Returns what it has in memory, in bytes.
    ///
    /// # Panics
    /// When it has ended.
    pub fn resident_bytes(&self) -> usize {
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.0.id())).expect("statm");
        let pages: usize =
            statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("pages");
        pages * rustix::param::page_size()
    }

    /// Stops it as an operator does and waits for its end.
    ///
    /// # Panics
    /// When it ends with an error.
    pub fn terminate(mut self) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::TERM).expect("it is there");
        let status = self.0.wait().expect("its end");
        assert!(status.success(), "{status}");
    }
}

impl Drop for MemcachedProgram {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Returns the port in a file that the program writes.
///
/// # Panics
/// When there is no port in it.
pub fn memcached_port(path: &Path) -> u16 {
    wait_for("the port file", || path.exists().then_some(()));
    let text = fs::read_to_string(path).expect("the port file");
    text.trim()
        .strip_prefix("TCP INET: ")
        .and_then(|port| port.parse().ok())
        .unwrap_or_else(|| panic!("{text:?}"))
}

/// A connection that sends bytes and collects answers.
pub struct MemcachedClient {
    /// The connection.
    pub stream: TcpStream,
}

impl MemcachedClient {
    /// Connects to a port of this machine.
    ///
    /// # Panics
    /// When nobody listens.
    pub fn connect(port: u16) -> Self {
        Self::over(TcpStream::connect(("127.0.0.1", port)).expect("a connection"))
    }

    /// Connects as one that takes little before it reads: the kernel keeps a few KiB for it.
    ///
    /// # Panics
    /// When nobody listens.
    pub fn connect_with_small_window(port: u16) -> Self {
        let socket =
            socket_with(AddressFamily::INET, SocketType::STREAM, SocketFlags::CLOEXEC, None)
                .expect("a socket");
        // The window is announced with the connection.
        sockopt::set_socket_recv_buffer_size(&socket, 4096).expect("a size");
        connect(&socket, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, port)).expect("a connection");
        Self::over(socket.into())
    }

    fn over(stream: TcpStream) -> Self {
        stream.set_read_timeout(Some(wait_limit())).expect("a read timeout");
        stream.set_nodelay(true).expect("no delay");
        Self { stream }
    }

    /// Sends `bytes`.
    ///
    /// # Panics
    /// When the connection is closed.
    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the server takes the command");
    }

    /// Sends `bytes` and a no-op, and returns the answer to `bytes`.
    ///
    /// # Panics
    /// When no answer comes.
    pub fn ask(&mut self, bytes: &[u8]) -> Vec<u8> {
        const END: &[u8] = b"MN\r\n";
        // The server may have hung up already. Reading shows it.
        let _ = self.stream.write_all(&[bytes, b"mn\r\n"].concat());
        let mut answer = Vec::new();
        let mut part = vec![0; 64 << 10];
        while !answer.ends_with(END) {
            match self.stream.read(&mut part) {
                Ok(0) => {
                    answer.extend_from_slice(b"<closed>");
                    return answer;
                }
                Ok(count) => answer.extend_from_slice(&part[..count]),
                Err(error) => panic!("after {}: {error}", bytes.escape_ascii()),
            }
        }
        answer.truncate(answer.len() - END.len());
        answer
    }

    /// Returns everything until the server closes the connection.
    ///
    /// # Panics
    /// When it does not.
    pub fn read_to_end(&mut self) -> Vec<u8> {
        let mut answer = Vec::new();
        match self.stream.read_to_end(&mut answer) {
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => {}
            Err(error) => panic!("{error}; got {}", answer.escape_ascii()),
        }
        answer
    }
}
