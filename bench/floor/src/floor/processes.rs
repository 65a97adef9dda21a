//! One process with an event loop for each core. All processes listen on one port.
//!
//! The processes are not forked: this program starts itself again for each. The kernel spreads new
//! connections over the listening sockets (`SO_REUSEPORT`), so the processes share nothing.

use std::io::{self, BufRead, BufReader};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, WaitOptions};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

use crate::listener;

/// Serves until one of the processes ends. The others end with this one.
pub fn serve(port: u16, body_bytes: usize) -> io::Result<()> {
    let reserved = listener::bind(port, true)?;
    let address =
        reserved.local_addr()?.as_socket().ok_or_else(|| io::Error::other("not an IP address"))?;
    let allowed = sched_getaffinity(None)?;
    let cores = (0..CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
    let processes = cores
        .map(|core| start(address.port(), body_bytes, core))
        .collect::<io::Result<Vec<Child>>>()?;
    println!("listening on {address}");
    // The end of any process ends the run. With fewer processes than cores, the measured number
    // would be wrong.
    rustix::process::wait(WaitOptions::empty())?;
    Err(io::Error::other(format!("one of the {} processes ended", processes.len())))
}

/// Starts one process, pins it to its core and waits until it listens.
fn start(port: u16, body_bytes: usize, core: usize) -> io::Result<Child> {
    let mut process = Command::new(std::env::current_exe()?)
        .args(["--mode", "epoll", "--reuse-port", "--end-with-parent"])
        .args(["--port", &port.to_string(), "--body", &body_bytes.to_string()])
        .stdout(Stdio::piped())
        .spawn()?;
    let mut only_this_core = CpuSet::new();
    only_this_core.set(core);
    sched_setaffinity(Some(Pid::from_child(&process)), &only_this_core)?;
    let mut line = String::new();
    if let Some(stdout) = process.stdout.take() {
        BufReader::new(stdout).read_line(&mut line)?;
    }
    if line.is_empty() {
        return Err(io::Error::other(format!("the process for core {core} did not start")));
    }
    Ok(process)
}
