//! `-d`: into the background.
//!
//! A process with threads cannot fork itself safely, so it starts itself again with the same words:
//! that one takes a session of its own, and tells through its standard output when it listens or
//! why it cannot. Only then does the first one return, so a script that started `-d` can connect.

use std::env;
use std::io::{Read, Write};
use std::process::{Command, Stdio};

use rustix::process::setsid;

use super::StartError;

/// Set for the process in the background.
const MARK: &str = "KIRIN_MEMCACHED_BACKGROUND";

const READY: &str = "ready";

/// Whether this is the process in the background.
pub(super) fn is_background() -> bool {
    env::var_os(MARK).is_some()
}

/// Starts this program again in the background and waits until it listens.
pub(super) fn start_in_background() -> Result<(), StartError> {
    let program = env::current_exe().map_err(StartError::Daemon)?;
    let mut child = Command::new(program)
        .args(env::args_os().skip(1))
        .env(MARK, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .map_err(StartError::Daemon)?;
    let mut word = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut word).map_err(StartError::Daemon)?;
    }
    match word.trim() {
        READY => Ok(()),
        "" => Err(StartError::InBackground("it died before it listened".into())),
        reason => Err(StartError::InBackground(reason.into())),
    }
}

/// Tells the process in front how the start went, and lets go of it. Nothing in the foreground.
pub(super) fn report(started: Result<(), &str>) {
    if !is_background() {
        return;
    }
    let word = started.err().unwrap_or(READY);
    // Nobody may be listening any more, and then nobody needs to know.
    let _ = std::io::stdout().write_all(word.as_bytes());
    let _ = std::io::stdout().flush();
    if started.is_ok() {
        let _ = setsid();
        let _ = env::set_current_dir("/");
        close_standard_output();
    }
}

/// Puts `/dev/null` in place of the pipe: its end is what the process in front waits for.
fn close_standard_output() {
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}
