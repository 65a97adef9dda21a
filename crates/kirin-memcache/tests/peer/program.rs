//! The program of `examples/memcached.rs` as a process.

use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{Client, example, wait_until};

/// A started program, which is killed when the test ends.
pub struct Program(Child);

impl Program {
    pub fn start(arguments: &[&str], port_file: Option<&Path>) -> Program {
        let mut command = Command::new(example());
        command.args(arguments).stderr(Stdio::null());
        if let Some(path) = port_file {
            command.env("MEMCACHED_PORT_FILENAME", path);
        }
        Program(command.spawn().expect("the program starts"))
    }

    /// Returns its resident memory in bytes.
    pub fn resident_bytes(&self) -> usize {
        let statm = fs::read_to_string(format!("/proc/{}/statm", self.0.id())).expect("statm");
        let pages: usize =
            statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).expect("pages");
        pages * 4096
    }

    /// Stops it with a signal, as an operator does, and waits for its end.
    pub fn terminate(mut self) {
        let pid = Pid::from_child(&self.0);
        kill_process(pid, Signal::TERM).expect("it is there");
        let status = self.0.wait().expect("its end");
        assert!(status.success(), "{status}");
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        drop(self.0.kill());
        drop(self.0.wait());
    }
}

/// Returns the port in a file that the program writes.
pub fn port_in(path: &Path) -> u16 {
    wait_until("the port file", || path.exists());
    let text = fs::read_to_string(path).expect("the port file");
    text.trim()
        .strip_prefix("TCP INET: ")
        .and_then(|port| port.parse().ok())
        .unwrap_or_else(|| panic!("{text:?}"))
}

pub fn connect(port: u16) -> Client {
    Client::connect(([127, 0, 0, 1], port).into())
}
