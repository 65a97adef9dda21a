//! `kirin launch`, an internal command: the process between the two programs of an upgrade.
//!
//! The old program does not start the new one itself. A service manager takes a process as its main
//! one only if it is a child of its own, and otherwise neither waits for its end nor notices it
//! (systemd: "Supervising process … which is not our child"). So the old program starts this one,
//! which starts the new program and ends when that serves. The new program then is a child of the
//! service manager, before that hears of it.
//!
//! The launcher's standard input is a socket to the old program. It writes one line there: the
//! process id of the new program, or `!` and the number of the error. When the old program closes
//! the socket, the launcher ends. If the new program ends before, it ends in the same way.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::os::unix::process::ExitStatusExt;
use std::process::{Command, ExitCode, ExitStatus, Stdio};
use std::sync::mpsc;

use rustix::process::{Signal, getpid, kill_process};

/// The name of the command.
pub const COMMAND: &str = "launch";

/// Starts a program, the first of `words`, with the others as its arguments. Returns when it ends.
pub fn run(words: &[OsString]) -> ExitCode {
    match launch(words) {
        Ok(code) => code,
        Err(error) => {
            tracing::error!(%error, "the launcher of an upgrade");
            ExitCode::FAILURE
        }
    }
}

fn launch(words: &[OsString]) -> io::Result<ExitCode> {
    let mut control = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let [program, arguments @ ..] = words else { return Ok(ExitCode::FAILURE) };
    let started = Command::new(program).args(arguments).stdin(Stdio::null()).spawn();
    let mut child = match started {
        Ok(child) => child,
        Err(error) => {
            writeln!(control, "!{}", error.raw_os_error().unwrap_or_default())?;
            return Ok(ExitCode::FAILURE);
        }
    };
    writeln!(control, "{}", child.id())?;
    let (sender, ended) = mpsc::channel();
    let closed = sender.clone();
    std::thread::Builder::new().spawn(move || {
        // Nothing comes but the end. It is an error if the old program was killed.
        _ = control.read(&mut [0]);
        _ = closed.send(Ok(ExitStatus::default()));
    })?;
    std::thread::Builder::new().spawn(move || _ = sender.send(child.wait()))?;
    let status = ended.recv().map_err(io::Error::other)??;
    if let Some(signal) = status.signal().and_then(Signal::from_named_raw) {
        kill_process(getpid(), signal)?;
    }
    Ok(status
        .code()
        .and_then(|code| u8::try_from(code).ok())
        .map_or(ExitCode::FAILURE, ExitCode::from))
}
