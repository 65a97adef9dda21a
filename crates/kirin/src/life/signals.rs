//! Signals as an operator's wishes. `docs/signals.md` is the operator's page on them.

use std::io;

use rustix::process::Signal as KernelSignal;
use tokio::signal::unix::{Signal, SignalKind, signal};

/// What a signal asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// To end.
    End(End),
    /// HUP: applications are loaded anew.
    Reload,
    /// TTIN: each application gets one worker more.
    MoreWorkers,
    /// TTOU: each application gets one worker less.
    FewerWorkers,
    /// USR1: access logs are opened anew.
    ReopenLogs,
    /// USR2: a new program takes over.
    Upgrade,
}

/// How the program is asked to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// TERM or QUIT: responses in progress are finished.
    Graceful,
    /// INT: at once.
    Fast,
}

impl End {
    /// For the log.
    pub fn description(self) -> &'static str {
        match self {
            End::Graceful => "responses in progress are finished",
            End::Fast => "at once",
        }
    }
}

/// The signals that the program listens to.
pub struct Signals {
    terminate: Signal,
    quit: Signal,
    interrupt: Signal,
    hangup: Signal,
    more: Signal,
    fewer: Signal,
    reopen: Signal,
    upgrade: Signal,
}

impl Signals {
    /// Listens from now on.
    pub fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            quit: signal(SignalKind::quit())?,
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            more: signal(SignalKind::from_raw(KernelSignal::TTIN.as_raw()))?,
            fewer: signal(SignalKind::from_raw(KernelSignal::TTOU.as_raw()))?,
            reopen: signal(SignalKind::user_defined1())?,
            upgrade: signal(SignalKind::user_defined2())?,
        })
    }

    /// The next wish.
    pub async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.terminate.recv() => Wish::End(End::Graceful),
            _ = self.quit.recv() => Wish::End(End::Graceful),
            _ = self.interrupt.recv() => Wish::End(End::Fast),
            _ = self.hangup.recv() => Wish::Reload,
            _ = self.more.recv() => Wish::MoreWorkers,
            _ = self.fewer.recv() => Wish::FewerWorkers,
            _ = self.reopen.recv() => Wish::ReopenLogs,
            _ = self.upgrade.recv() => Wish::Upgrade,
        }
    }

    /// The next wish to end; others have no effect.
    pub async fn end(&mut self) -> End {
        loop {
            match self.next().await {
                Wish::End(end) => return end,
                wish => tracing::warn!(
                    ?wish,
                    "a signal has no effect while the program starts or stops"
                ),
            }
        }
    }
}
