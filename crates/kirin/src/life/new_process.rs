//! The process of a new program, as long as it does not serve. If the upgrade is given up, it is
//! told to end, and killed if it does not.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::process::Child;

use crate::life::upgrade_channel::UpgradeError;

/// How long a new program may take to end after TERM.
const TERM_TIME: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// How long the status of a new program is waited for that has closed the channel.
const STATUS_WAIT: Duration = Duration::from_secs(2);

/// The process of a new program. It is told to end if this is dropped before it serves.
pub struct NewProcess {
    child: Child,
    /// Names the process, also when its number has been given to another one.
    descriptor: OwnedFd,
    given_up: Arc<GivenUpProcesses>,
    serves: bool,
}

/// The processes that have been told to end.
#[derive(Default)]
pub struct GivenUpProcesses(Mutex<Vec<JoinHandle<()>>>);

impl NewProcess {
    /// Takes a process that has just been started. `given_up` gets it if it does not serve.
    pub fn new(child: Child, given_up: Arc<GivenUpProcesses>) -> io::Result<Self> {
        let pid = child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        let pid = pid.ok_or_else(|| io::Error::other("the new process has ended"))?;
        let descriptor = pidfd_open(pid, PidfdFlags::empty())?;
        Ok(Self { child, descriptor, given_up, serves: false })
    }

    /// Notes that the program serves. It goes on by itself.
    pub fn serves(&mut self) {
        self.serves = true;
    }

    /// Returns the error of a program that has closed its channel before it served.
    pub async fn ended(&mut self) -> UpgradeError {
        let status = tokio::time::timeout(STATUS_WAIT, self.child.wait()).await;
        UpgradeError::Ended(match status {
            Ok(Ok(status)) => format!(" ({status})"),
            _ => String::new(),
        })
    }
}

impl Drop for NewProcess {
    fn drop(&mut self) {
        if self.serves {
            return;
        }
        // TERM and not KILL at first: it has applications to end, which may still be loading, and a
        // directory to remove. The calls fail if the process has ended.
        let _ = pidfd_send_signal(&self.descriptor, Signal::TERM);
        let Ok(descriptor) = self.descriptor.try_clone() else { return };
        // It may have been stopped, or hang.
        let wait = move || {
            let mut ended = [PollFd::new(&descriptor, PollFlags::IN)];
            if !matches!(poll(&mut ended, Some(&TERM_TIME)), Ok(1..)) {
                let _ = pidfd_send_signal(&descriptor, Signal::KILL);
            }
        };
        match std::thread::Builder::new().name("given-up".into()).spawn(wait) {
            Ok(thread) => self.given_up.add(thread),
            Err(error) => tracing::warn!(%error, "the new program is not killed if it hangs"),
        }
    }
}

impl GivenUpProcesses {
    fn add(&self, thread: JoinHandle<()>) {
        let mut threads = self.0.lock();
        threads.retain(|thread| !thread.is_finished());
        threads.push(thread);
    }

    /// Waits until all of them have ended or were killed.
    pub fn wait(&self) {
        let threads = std::mem::take(&mut *self.0.lock());
        for thread in threads {
            // It does nothing that could panic.
            let _ = thread.join();
        }
    }
}
