//! The process of a new program, as long as it does not serve. If the upgrade is given up, it is
//! told to end, and killed if it does not.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::fstat;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::Child;

use crate::life::upgrade_channel::UpgradeError;

/// How long a new program may take to end after TERM.
const TERM_TIME: Timespec = Timespec { tv_sec: 5, tv_nsec: 0 };

/// How long the status of a new program is waited for that has closed the channel.
const STATUS_WAIT: Duration = Duration::from_secs(2);

/// How long the launcher may take to end when the new program serves.
const LAUNCHER_TIME: Duration = Duration::from_secs(1);

/// The process of a new program. It is told to end if this is dropped before it serves.
pub struct NewProcess {
    /// The process that has started it, and ends as it does.
    launcher: Child,
    /// Has the launcher end when it is closed.
    control: UnixStream,
    /// The name of its end of the channel in `/proc`.
    channel: String,
    /// Names the process, also when its number has been given to another one.
    descriptor: Option<OwnedFd>,
    given_up: Arc<GivenUpProcesses>,
    reached: Reached,
}

/// How far a new program has come.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reached {
    Start,
    /// It was told to serve, and may have begun.
    Go,
    Serving,
}

/// The processes that have been told to end.
#[derive(Default)]
pub struct GivenUpProcesses(Mutex<Vec<JoinHandle<()>>>);

impl NewProcess {
    /// Takes a process that `launcher` starts with `channel`. `given_up` gets it if it does not
    /// serve. The launcher has the other end of `control`.
    pub fn new(
        launcher: Child,
        control: std::os::unix::net::UnixStream,
        channel: impl AsFd,
        given_up: Arc<GivenUpProcesses>,
    ) -> io::Result<Self> {
        control.set_nonblocking(true)?;
        let control = UnixStream::from_std(control)?;
        let channel = format!("socket:[{}]", fstat(channel)?.st_ino);
        let (descriptor, reached) = (None, Reached::Start);
        Ok(Self { launcher, control, channel, descriptor, given_up, reached })
    }

    /// Waits until the process is started. Returns its process id.
    pub async fn started(&mut self) -> io::Result<u32> {
        let mut line = String::new();
        BufReader::new(&mut self.control).read_line(&mut line).await?;
        if let Some(number) = line.strip_prefix('!').and_then(|text| text.trim().parse().ok()) {
            return Err(io::Error::from_raw_os_error(number));
        }
        let pid = line.trim().parse().map_err(|_| io::Error::other("the launcher has ended"))?;
        self.descriptor =
            Pid::from_raw(pid).and_then(|pid| pidfd_open(pid, PidfdFlags::empty()).ok());
        Ok(pid.cast_unsigned())
    }

    /// Notes the process id that the new program has told. It is another one than that of the
    /// started process if that has started the program once more, in the background.
    pub fn is(&mut self, told: u32) {
        let Some(pid) = Pid::from_raw(told.cast_signed()) else { return };
        let Ok(descriptor) = pidfd_open(pid, PidfdFlags::empty()) else { return };
        // Numbers differ between containers: it is the process that has the channel.
        let open = std::fs::read_dir(format!("/proc/{told}/fd")).into_iter().flatten().flatten();
        let mut names = open.filter_map(|entry| std::fs::read_link(entry.path()).ok());
        if names.any(|name| name.as_os_str() == self.channel.as_str()) {
            self.descriptor = Some(descriptor);
        }
    }

    /// Notes that the program is told to serve. If it is given up, it is killed at once: by TERM it
    /// would end as a program does that has served, and remove the files of its sockets.
    pub fn goes(&mut self) {
        self.reached = Reached::Go;
    }

    /// Notes that the program serves. It goes on by itself. Returns when it is no descendant of
    /// this process any more.
    pub async fn serves(&mut self) {
        self.reached = Reached::Serving;
        _ = self.control.shutdown().await;
        if tokio::time::timeout(LAUNCHER_TIME, self.launcher.wait()).await.is_err() {
            tracing::warn!("the launcher of the new program does not end");
        }
    }

    /// Returns the error of a program that has closed its channel before it served.
    pub async fn ended(&mut self) -> UpgradeError {
        let status = tokio::time::timeout(STATUS_WAIT, self.launcher.wait()).await;
        UpgradeError::Ended(match status {
            Ok(Ok(status)) => format!(" ({status})"),
            _ => String::new(),
        })
    }
}

impl Drop for NewProcess {
    fn drop(&mut self) {
        // Without one it has not begun, or has ended.
        let Some(descriptor) = self.descriptor.take() else { return };
        match self.reached {
            Reached::Start => {}
            Reached::Go => {
                let _ = pidfd_send_signal(&descriptor, Signal::KILL);
                return;
            }
            Reached::Serving => return,
        }
        // TERM and not KILL at first: it has applications to end, which may still be loading, and a
        // directory to remove. The calls fail if the process has ended.
        let _ = pidfd_send_signal(&descriptor, Signal::TERM);
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
