//! `-d`: the program goes to the background.
//!
//! A process with threads cannot fork itself safely. So it starts itself again with the same
//! arguments: the second process takes a session of its own, and tells the first one through its
//! standard output when it listens or why it cannot. Only then does the first one return, so that a
//! script that started it can connect.

use std::env;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use rustix::process::setsid;

/// The variable that is set for the process in the background.
const MARK: &str = "KIRIN_MEMCACHED_BACKGROUND";

const READY: &str = "ready";

/// Why the program is not in the background.
#[derive(Debug, thiserror::Error)]
pub enum BackgroundError {
    /// The second process cannot be started.
    #[error("cannot go to the background: {0}")]
    Start(#[from] io::Error),
    /// The second process cannot serve.
    #[error("in the background: {0}")]
    Failed(String),
}

/// Returns whether this is the process in the background.
pub fn is_background() -> bool {
    env::var_os(MARK).is_some()
}

/// Starts this program again in the background and waits until it listens.
pub fn start_in_background() -> Result<(), BackgroundError> {
    let mut child = Command::new(env::current_exe()?)
        .args(env::args_os().skip(1))
        .env(MARK, "1")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()?;
    let mut report = String::new();
    if let Some(mut output) = child.stdout.take() {
        output.read_to_string(&mut report)?;
    }
    match report.trim() {
        READY => Ok(()),
        "" => Err(BackgroundError::Failed("it died before it listened".into())),
        reason => Err(BackgroundError::Failed(reason.into())),
    }
}

/// The process in front, as the one in the background sees it.
pub struct Foreground {
    directory: PathBuf,
}

impl Foreground {
    /// Returns the process that waits for this one.
    pub fn new() -> io::Result<Self> {
        Ok(Self { directory: env::current_dir()? })
    }

    /// Returns the directory in which the program was started.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// Tells the process in front that this one listens, and detaches from it.
    pub fn ready(&self) {
        report(READY);
        let _ = setsid();
        let _ = env::set_current_dir("/");
        close_standard_output();
    }

    /// Tells the process in front why this one cannot listen.
    pub fn failed(reason: &str) {
        report(reason);
    }
}

fn report(text: &str) {
    // The process in front may have been killed. Nobody needs the report then.
    let _ = io::stdout().write_all(text.as_bytes());
    let _ = io::stdout().flush();
}

/// Puts `/dev/null` in place of the pipe: the process in front waits for the end of the pipe.
fn close_standard_output() {
    if let Ok(null) = std::fs::OpenOptions::new().write(true).open("/dev/null") {
        let _ = rustix::stdio::dup2_stdout(null);
    }
}
