//! The app parent, as Kirin sees it: a process, its control channel, and the socket on which its
//! workers accept connections.

use std::collections::HashSet;
use std::fs::File;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use kirin_faults::Point;
use kirin_files::SendfileRoots;
use kirin_sockets::ProcessStart;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, BufReader};
use tokio::net::unix::pipe;
use tokio::process::{Child, Command};
use tokio::sync::mpsc::UnboundedSender;

use crate::adapter::Adapter;
use crate::app_code::Language;
use crate::config::{AppConfig, ParentInvocation};
use crate::control::{self, ControlLine, MAX_LINE_BYTES};
use crate::error::AppError;
use crate::event::Event;

static START: Point = Point::new("app.start", &[Errno::AGAIN, Errno::NOMEM]);

/// The pause between two checks whether a process has ended.
const WAIT_PAUSE: Duration = Duration::from_millis(10);

/// The socket of one generation, in a directory that only this user can enter. It outlives the
/// parent: the workers of the next parent accept the connections that wait on it.
pub(crate) struct WorkerSocket {
    path: PathBuf,
    /// The listener and its directory; `None` if the parent has made the socket.
    bound: Option<(UnixListener, tempfile::TempDir)>,
}

impl WorkerSocket {
    pub(crate) fn bind(config: &AppConfig) -> Result<Self, AppError> {
        let failed = |error: std::io::Error| {
            AppError::system(&config.name, "socket for the workers", &error)
        };
        let place = config.run_directory.clone().unwrap_or_else(std::env::temp_dir);
        let private = std::fs::Permissions::from_mode(0o700);
        let directory =
            tempfile::Builder::new().prefix("kirin-").permissions(private).tempdir_in(place);
        let directory = directory.map_err(failed)?;
        let path = directory.path().join("workers");
        let listener = UnixListener::bind(&path).map_err(failed)?;
        Ok(Self { path, bound: Some((listener, directory)) })
    }

    /// Returns the socket of a parent that was loaded before Kirin.
    pub(crate) fn of_parent(path: &Path) -> Self {
        Self { path: path.to_owned(), bound: None }
    }

    fn listener(&self) -> std::io::Result<UnixListener> {
        match &self.bound {
            Some((listener, _)) => listener.try_clone(),
            None => Err(std::io::ErrorKind::NotConnected.into()),
        }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

/// The identity of a parent, and the number of its workers.
#[derive(Clone, Copy)]
pub(crate) struct ParentSpec {
    /// The generation of the application's code.
    pub(crate) generation: u64,
    /// The number of this parent. It tells the lines of a parent from those of an earlier one.
    pub(crate) incarnation: u64,
    /// How many workers the parent keeps.
    pub(crate) workers: usize,
}

/// A running app parent, and the process group of the parent and its workers.
pub(crate) struct Parent {
    process: Process,
    group: Pid,
}

/// The origin of the process.
enum Process {
    /// Kirin has started it.
    Spawned(Child),
    /// The program that has become Kirin had started it; see [`crate::launch`].
    Adopted,
}

impl Parent {
    /// Starts a parent. Its lines arrive as events with its incarnation.
    pub(crate) fn spawn(
        config: &AppConfig,
        adapter: &Adapter,
        socket: &WorkerSocket,
        sendfile: &SendfileRoots,
        ParentSpec { generation, incarnation, workers }: ParentSpec,
        events: UnboundedSender<Event>,
    ) -> Result<Self, AppError> {
        let failed =
            |what: &str, error: std::io::Error| AppError::system(&config.name, what, &error);
        let listener =
            socket.listener().map_err(|error| failed("socket for the workers", error))?;
        let file = config.code.file().map(|file| readable_file(config, file)).transpose()?;
        let mut command = Command::new(&adapter.program);
        command.args(&adapter.arguments);
        command.args(["--workers", &workers.to_string()]);
        command.args(["--generation", &generation.to_string()]);
        // A name may begin with a hyphen.
        command.arg(format!("--name={}", config.name));
        command.args(["--front", &std::process::id().to_string()]);
        command.args(["--deadline", &seconds(config.request_deadline)]);
        if let Some(requests) = config.max_requests {
            command.args(["--max-requests", &requests.to_string()]);
        }
        command.args(["--preload", config.preload.argument()]);
        for root in sendfile.paths() {
            command.arg("--sendfile").arg(root);
        }
        command.arg("--").arg(config.code.argument(file));
        if let Some(directory) = &config.directory {
            command.current_dir(directory);
        }
        let is_perl = config.code.language() == Language::Perl;
        if is_perl && std::env::var_os("PLACK_ENV").is_none() {
            command.env("PLACK_ENV", "deployment");
        }
        command.envs(config.env.iter().map(|(name, value)| (name, value)));
        command.stdin(Stdio::from(OwnedFd::from(listener))).stdout(Stdio::piped());
        // The process has a group of its own. So an interrupt from the terminal reaches only Kirin,
        // which then stops the application in order. The group also identifies workers whose parent
        // has ended.
        command.process_group(0).kill_on_drop(true);

        let mut child =
            START.pass().and_then(|()| command.spawn()).map_err(|error| match error.kind() {
                std::io::ErrorKind::NotFound => AppError::no_interpreter(config, &adapter.program),
                _ => failed(&format!("cannot start {}", adapter.program.display()), error),
            })?;
        let no_pid = || {
            let error = std::io::Error::other("it has no process id");
            failed("cannot start the adapter", error)
        };
        let group =
            child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).ok_or_else(no_pid)?;
        if let Some(control) = child.stdout.take() {
            tokio::spawn(read_control(control, incarnation, events));
        }
        Ok(Self { process: Process::Spawned(child), group })
    }

    /// Starts a parent by a command that becomes one. Its lines arrive as with [`Parent::spawn`].
    pub(crate) fn invoke(
        config: &AppConfig,
        invocation: &ParentInvocation,
        socket: &WorkerSocket,
        ParentSpec { generation, incarnation, workers }: ParentSpec,
        events: UnboundedSender<Event>,
    ) -> Result<Self, AppError> {
        let failed =
            |what: &str, error: std::io::Error| AppError::system(&config.name, what, &error);
        let cannot_start = |error| failed("cannot start it again", error);
        let (control, its_end) = std::io::pipe().map_err(cannot_start)?;
        let listener =
            socket.listener().map_err(|error| failed("socket for the workers", error))?;
        // These copies are not closed on exec(2); this process closes them when the function ends.
        // No other thread may start a process before that.
        let _start = ProcessStart::begin();
        // The standard streams belong to the application, which may use them while it is loaded.
        let listener = rustix::io::dup(&listener).map_err(|error| cannot_start(error.into()))?;
        let its_end = rustix::io::dup(&its_end).map_err(|error| cannot_start(error.into()))?;
        let seat = format!(
            "listener={} control={} front={} generation={generation} name={} workers={workers} \
             deadline={}",
            listener.as_raw_fd(),
            its_end.as_raw_fd(),
            std::process::id(),
            config.name,
            seconds(config.request_deadline),
        );
        let mut command = Command::new(&invocation.program);
        command.args(&invocation.arguments).current_dir(&invocation.directory).env_clear();
        command.envs(invocation.environment.iter().map(|(name, value)| (name, value)));
        command
            .envs(config.env.iter().map(|(name, value)| (name, value)))
            .env("KIRIN_APP_PARENT", seat);
        command.stdin(Stdio::null()).process_group(0).kill_on_drop(true);
        let child = command.spawn().map_err(cannot_start)?;
        let no_pid = || cannot_start(std::io::Error::other("it has no process id"));
        let group =
            child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())).ok_or_else(no_pid)?;
        let control = pipe::Receiver::from_owned_fd(control.into()).map_err(cannot_start)?;
        tokio::spawn(read_control(control, incarnation, events));
        Ok(Self { process: Process::Spawned(child), group })
    }

    /// Adopts a child process that has loaded the application already.
    pub(crate) fn adopt(
        pid: Pid,
        control: impl AsyncRead + Unpin + Send + 'static,
        incarnation: u64,
        events: UnboundedSender<Event>,
    ) -> Self {
        tokio::spawn(read_control(control, incarnation, events));
        Self { process: Process::Adopted, group: pid }
    }

    pub(crate) fn pid(&self) -> Pid {
        self.group
    }

    /// Signals the parent alone.
    pub(crate) fn signal(&self, signal: Signal) {
        // This fails if the parent has ended.
        let _ = rustix::process::kill_process(self.group, signal);
    }

    /// Returns whether the process has ended. [`Parent::wait`] can still get the status.
    pub(crate) fn has_ended(&mut self) -> bool {
        match &mut self.process {
            Process::Spawned(child) => !matches!(child.try_wait(), Ok(None)),
            Process::Adopted => {
                let options = WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT;
                !matches!(waitid(WaitId::Pid(self.group), options), Ok(None))
            }
        }
    }

    pub(crate) async fn wait(&mut self) -> std::io::Result<ExitStatus> {
        match &mut self.process {
            Process::Spawned(child) => child.wait().await,
            Process::Adopted => wait_for_child(self.group).await,
        }
    }
}

/// Returns the absolute path of the application's file, if it can be read.
fn readable_file(config: &AppConfig, file: &Path) -> Result<PathBuf, AppError> {
    let path = config.directory.clone().unwrap_or_default().join(file);
    let path = std::path::absolute(&path)
        .map_err(|error| AppError::system(&config.name, "path of the application", &error))?;
    File::open(&path).map_err(|error| AppError::NoSuchFile {
        app: config.name.clone(),
        path: path.clone(),
        reason: error.to_string(),
    })?;
    Ok(path)
}

/// Returns a time as the adapter reads it: decimal seconds.
fn seconds(time: Duration) -> String {
    time.as_secs_f64().to_string()
}

/// Signals the workers of a parent that has ended. Returns whether there were any.
///
/// Only processes of `workers` in the parent's process group are signalled. A process id may have
/// been reused, but not in this group. Background processes of the application are in the group
/// too, but not in `workers`.
pub(crate) fn signal_workers(group: Pid, workers: &HashSet<u32>, signal: Signal) -> bool {
    let mut found = false;
    for worker in workers_in(group, workers) {
        found |= rustix::process::kill_process(worker, signal).is_ok();
    }
    found
}

/// Returns whether workers of a parent that has ended are left.
pub(crate) fn has_workers(group: Pid, workers: &HashSet<u32>) -> bool {
    workers_in(group, workers).next().is_some()
}

fn workers_in(group: Pid, workers: &HashSet<u32>) -> impl Iterator<Item = Pid> {
    let pids = workers.iter().filter_map(|pid| Pid::from_raw(pid.cast_signed()));
    pids.filter(move |pid| rustix::process::getpgid(Some(*pid)) == Ok(group))
}

async fn read_control(
    control: impl AsyncRead + Unpin,
    incarnation: u64,
    events: UnboundedSender<Event>,
) {
    let mut control = BufReader::new(control);
    let mut line = Vec::new();
    loop {
        line.clear();
        match (&mut control).take(MAX_LINE_BYTES as u64).read_until(b'\n', &mut line).await {
            Ok(1..) => {}
            _ => break,
        }
        let parsed = control::parse(line.trim_ascii_end());
        if parsed == ControlLine::Unknown {
            tracing::debug!(line = %String::from_utf8_lossy(&line), "control line is not known");
        }
        if events.send(Event::Control { incarnation, line: parsed }).is_err() {
            return;
        }
    }
    let _ = events.send(Event::ControlClosed { incarnation });
}

/// Waits for the end of a child that the runtime does not manage. The future may be dropped and
/// created again.
async fn wait_for_child(pid: Pid) -> std::io::Result<ExitStatus> {
    loop {
        match waitpid(Some(pid), WaitOptions::NOHANG) {
            Ok(Some((_, status))) => return Ok(ExitStatus::from_raw(status.as_raw())),
            // The status has been collected before.
            Err(Errno::CHILD) => return Ok(ExitStatus::default()),
            Ok(None) | Err(Errno::INTR) => tokio::time::sleep(WAIT_PAUSE).await,
            Err(error) => return Err(error.into()),
        }
    }
}
