//! Signals as commands of an operator. `docs/signals.md` is the operator's page on them.

use std::io;

use rustix::process::Signal as KernelSignal;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// The command of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignalCommand {
    /// TERM, QUIT or INT: end the program.
    Stop(Stop),
    /// HUP: reload applications and certificates.
    Reload,
    /// TTIN: give each application one more worker.
    AddWorker,
    /// TTOU: take one worker from each application.
    RemoveWorker,
    /// USR1: reopen the access logs.
    ReopenLogs,
    /// USR2: hand over to a new program.
    Upgrade,
}

/// How the program is told to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// TERM or QUIT: finish responses in progress.
    Graceful,
    /// INT: end at once.
    Fast,
}

impl Stop {
    /// Returns a description for the log.
    pub fn description(self) -> &'static str {
        match self {
            Self::Graceful => "responses in progress are finished",
            Self::Fast => "at once",
        }
    }
}

/// The signals that the program handles.
pub struct Signals {
    terminate: Signal,
    quit: Signal,
    interrupt: Signal,
    hangup: Signal,
    add_worker: Signal,
    remove_worker: Signal,
    reopen_logs: Signal,
    upgrade: Signal,
    /// XFSZ, which would end the program: a file has become larger than `RLIMIT_FSIZE` allows. The
    /// write that failed is the error.
    _too_large: Signal,
}

impl Signals {
    /// Handles signals from now on.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            add_worker: signal(SignalKind::from_raw(KernelSignal::TTIN.as_raw()))?,
            remove_worker: signal(SignalKind::from_raw(KernelSignal::TTOU.as_raw()))?,
            reopen_logs: signal(SignalKind::user_defined1())?,
            upgrade: signal(SignalKind::user_defined2())?,
            _too_large: signal(SignalKind::from_raw(KernelSignal::XFSZ.as_raw()))?,
        })
    }

    /// Waits for the next command.
    pub async fn next(&mut self) -> SignalCommand {
        tokio::select! {
            _ = self.terminate.recv() => SignalCommand::Stop(Stop::Graceful),
            _ = self.quit.recv() => SignalCommand::Stop(Stop::Graceful),
            _ = self.interrupt.recv() => SignalCommand::Stop(Stop::Fast),
            _ = self.hangup.recv() => SignalCommand::Reload,
            _ = self.add_worker.recv() => SignalCommand::AddWorker,
            _ = self.remove_worker.recv() => SignalCommand::RemoveWorker,
            _ = self.reopen_logs.recv() => SignalCommand::ReopenLogs,
            _ = self.upgrade.recv() => SignalCommand::Upgrade,
        }
    }

    /// Waits for the next command to stop. Logs and ignores all others.
    pub async fn stop(&mut self) -> Stop {
        loop {
            match self.next().await {
                SignalCommand::Stop(stop) => return stop,
                command => tracing::warn!(
                    ?command,
                    "a signal has no effect while the program starts or stops"
                ),
            }
        }
    }
}
