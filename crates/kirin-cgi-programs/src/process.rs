//! The process of a program, and the process group that it leads.
//!
//! The id of a group stays taken until its leader is reaped. So Kirin reaps the leader last: a
//! signal to the group can never reach other processes.

use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use kirin_faults::{Errno, Point};
use kirin_sockets::ProcessStart;
use rustix::process::{
    Pid, PidfdFlags, Signal, WaitId, WaitIdOptions, kill_process_group, pidfd_open, waitid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::net::unix::pipe;
use tokio::time::timeout;

use crate::environment::Variables;
use crate::failure::ProgramEnd;
use crate::running;

static START: Point = Point::new("program.start", &[Errno::AGAIN, Errno::NOMEM, Errno::MFILE]);

/// How long a program may take to end after SIGTERM.
const GRACE: Duration = Duration::from_secs(1);

/// The pause between two looks at a process that cannot be watched.
const LOOK_PAUSE: Duration = Duration::from_millis(10);

/// The most looks at a process that was killed when Kirin ends.
const LAST_LOOKS: usize = 20;

/// What is started.
pub(crate) struct ProgramCommand {
    pub(crate) file: PathBuf,
    pub(crate) variables: Variables,
    pub(crate) input: Stdio,
}

/// A process group. Dropping it kills it.
pub(crate) struct ProcessGroup {
    leader: Pid,
    is_reaped: bool,
}

/// A program that was started, before an event loop watches it.
pub(crate) struct StartedProgram {
    group: ProcessGroup,
    exit: OwnedFd,
    output: OwnedFd,
    errors: OwnedFd,
}

/// A program as its event loop watches it.
pub(crate) struct WatchedProgram {
    group: ProcessGroup,
    /// Becomes readable when the leader has ended.
    exit: AsyncFd<OwnedFd>,
}

impl ProgramCommand {
    /// Starts the program. This waits until the kernel has loaded it, so it must not run on an
    /// event loop.
    pub(crate) fn start(self) -> io::Result<StartedProgram> {
        let mut command = Command::new(&self.file);
        command.env_clear().envs(self.variables);
        // RFC 3875 section 7.2.
        command.current_dir(self.file.parent().unwrap_or(Path::new("/")));
        command.stdin(self.input).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
        // A file system that hangs must not hang while others wait for the lock.
        std::fs::metadata(&self.file)?;
        START.pass()?;
        let start = ProcessStart::begin();
        start.close_unknown_on_exec();
        let child = command.spawn()?;
        drop(start);
        StartedProgram::new(child)
    }
}

impl StartedProgram {
    fn new(mut child: Child) -> io::Result<Self> {
        let missing = || io::Error::other("the process has no id or no pipe");
        let leader = Pid::from_raw(child.id().cast_signed()).ok_or_else(missing)?;
        running::add(leader);
        let group = ProcessGroup { leader, is_reaped: false };
        let exit = pidfd_open(leader, PidfdFlags::empty())?;
        let output = child.stdout.take().ok_or_else(missing)?.into();
        let errors = child.stderr.take().ok_or_else(missing)?.into();
        Ok(Self { group, exit, output, errors })
    }

    /// Returns the process id.
    pub(crate) fn id(&self) -> u32 {
        self.group.leader.as_raw_nonzero().get().cast_unsigned()
    }

    /// Lets this event loop watch the program. Returns it with its output and its error output.
    pub(crate) fn watch(self) -> io::Result<(WatchedProgram, pipe::Receiver, pipe::Receiver)> {
        #[expect(
            deprecated,
            reason = "the other constructor is unsafe, for types that close early"
        )]
        let exit = AsyncFd::with_interest(self.exit, Interest::READABLE)?;
        let output = pipe::Receiver::from_owned_fd(self.output)?;
        let errors = pipe::Receiver::from_owned_fd(self.errors)?;
        Ok((WatchedProgram { group: self.group, exit }, output, errors))
    }
}

impl WatchedProgram {
    /// Waits until the leader has ended. It is not reaped.
    pub(crate) async fn ended(&self) -> ProgramEnd {
        loop {
            let ready = self.exit.readable().await;
            if let Some(end) = self.group.end() {
                return end;
            }
            match ready {
                Ok(mut ready) => ready.clear_ready(),
                Err(_) => tokio::time::sleep(LOOK_PAUSE).await,
            }
        }
    }

    /// Ends all processes of the group: by SIGTERM, and by SIGKILL as soon as the leader has ended,
    /// or after a second.
    pub(crate) async fn stop(&self) {
        self.group.signal(Signal::TERM);
        let _ = timeout(GRACE, self.ended()).await;
        self.group.signal(Signal::KILL);
        self.ended().await;
    }

    /// Reaps the leader, which has ended. Other processes of the group go on, if there are any.
    pub(crate) fn reap(mut self) {
        self.group.reap();
    }
}

impl ProcessGroup {
    fn signal(&self, signal: Signal) {
        // The leader is not reaped, so the group exists.
        let _ = kill_process_group(self.leader, signal);
    }

    /// Returns how the leader has ended, if it has.
    fn end(&self) -> Option<ProgramEnd> {
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
        match waitid(WaitId::Pid(self.leader), options) {
            Ok(None) => None,
            Ok(Some(status)) => Some(match (status.terminating_signal(), status.exit_status()) {
                (Some(signal), _) => ProgramEnd::Killed(signal),
                (None, code) => ProgramEnd::Exited(code.unwrap_or_default()),
            }),
            // It is not there, so it has ended.
            Err(_) => Some(ProgramEnd::Exited(0)),
        }
    }

    fn reap(&mut self) {
        self.is_reaped = running::reap(self.leader);
    }
}

impl Drop for ProcessGroup {
    /// Kills the group if nobody has reaped its leader: it could not be watched, or Kirin ends.
    fn drop(&mut self) {
        if self.is_reaped {
            return;
        }
        self.signal(Signal::KILL);
        for _ in 0..LAST_LOOKS {
            self.reap();
            if self.is_reaped {
                return;
            }
            std::thread::sleep(LOOK_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Read;
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::PermissionsExt;
    use std::sync::mpsc;

    use rustix::io::dup;
    use rustix::thread::gettid;

    use super::*;

    /// A program that prints the numbers of its descriptors.
    const DESCRIPTORS: &str = "#!/bin/sh\necho /proc/$$/fd/*\n";

    /// Returns whether a thread of this process waits for something.
    fn is_waiting(thread: Pid) -> bool {
        let path = format!("/proc/self/task/{}/stat", thread.as_raw_nonzero());
        fs::read_to_string(path).is_ok_and(|stat| stat.contains(") S "))
    }

    #[test]
    fn a_program_waits_while_another_start_has_descriptors_that_are_inherited() {
        let directory = std::env::temp_dir().join(format!("kirin-cgi-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let file = directory.join("descriptors");
        fs::write(&file, DESCRIPTORS).unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        let other_start = ProcessStart::begin();
        // A shell opens its script by a number of its own, which is lower.
        let null = File::open("/dev/null").unwrap();
        let mut inherited = Vec::new();
        while inherited.last().is_none_or(|last: &OwnedFd| last.as_raw_fd() < 50) {
            inherited.push(dup(&null).unwrap());
        }
        let (sender, threads) = mpsc::channel();
        let starting = std::thread::spawn(move || {
            sender.send(gettid()).unwrap();
            ProgramCommand { file, variables: Vec::new(), input: Stdio::null() }.start()
        });
        let thread = threads.recv().unwrap();
        while !is_waiting(thread) && !starting.is_finished() {
            std::thread::yield_now();
        }
        let number = inherited.last().unwrap().as_raw_fd();
        drop((inherited, other_start));
        let started = starting.join().unwrap().unwrap();
        let mut text = String::new();
        File::from(started.output.try_clone().unwrap()).read_to_string(&mut text).unwrap();
        fs::remove_dir_all(&directory).unwrap();
        let has = |number: i32| {
            text.split_whitespace().any(|path| path.ends_with(&format!("/fd/{number}")))
        };
        assert!(has(0) && !has(number), "{number} in {text}");
    }
}
