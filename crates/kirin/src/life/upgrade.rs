//! `kirin upgrade` and USR2: a new Kirin takes the place of this one, and no request is lost.
//! `upgrade_channel.rs` describes how the two programs talk.

use std::cell::RefCell;
use std::ffi::OsString;
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use kirin_http::ListenAddress;
use kirin_observe::program_state::ProgramState;
use kirin_sockets::{LISTENERS_VARIABLE, NotifySocket, PREDECESSOR_VARIABLE};
use kirin_store::{SnapshotTime, Store, save_snapshot_file};
use kirin_workers::ParentInvocation;
use tokio::process::Command;

use crate::life::background::Foreground;
use crate::life::launch::Launch;
use crate::life::new_process::{GivenUpProcesses, NewProcess};
use crate::life::parts::Parts;
use crate::life::upgrade_channel::{Message, UpgradeChannel, UpgradeError};
use crate::serve::sockets::Sockets;

/// How long the new program may take, in addition to the time that its applications may take to
/// load.
pub const LIMIT: Duration = Duration::from_secs(60);

/// How the program is started again.
pub struct Invocation {
    /// The program, as it was called.
    program: OsString,
    /// The arguments.
    arguments: Vec<OsString>,
    /// The directory in which the program was started, if it is another one now.
    directory: Option<PathBuf>,
    /// Every variable and its value, if they are not those of this process.
    environment: Option<Vec<(OsString, OsString)>>,
}

/// Returns how the program is started again. `None`: it is not known, or cannot be done.
pub fn invocation(launch: &Launch) -> Option<Invocation> {
    match &launch.loaded {
        None => {
            let directory = launch.foreground.as_ref().map(Foreground::directory);
            Invocation::of_this_process(directory)
        }
        Some(loaded) => loaded.invocation.clone().map(Invocation::from),
    }
}

/// The invocation of the program that loaded the application and then became Kirin.
impl From<ParentInvocation> for Invocation {
    fn from(parent: ParentInvocation) -> Self {
        let ParentInvocation { directory, environment, program, arguments } = parent;
        Self { program, arguments, directory: Some(directory), environment: Some(environment) }
    }
}

impl Invocation {
    /// Returns the invocation of this process, which has left `directory` since.
    pub fn of_this_process(directory: Option<&Path>) -> Option<Self> {
        let mut arguments = std::env::args_os();
        Some(Self {
            program: arguments.next()?,
            arguments: arguments.collect(),
            directory: directory.map(Path::to_owned),
            environment: None,
        })
    }

    /// Returns the file that is started, if it is that of this program: an application that became
    /// Kirin is started by another one.
    pub fn file(&self) -> Option<PathBuf> {
        if self.environment.is_some() {
            return None;
        }
        let program = Path::new(&self.program);
        let directory = self.directory.as_deref().unwrap_or(Path::new("."));
        if program.components().count() > 1 {
            return std::path::absolute(directory.join(program)).ok();
        }
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|part| part.join(program)).find(|file| file.is_file())
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if let Some(environment) = &self.environment {
            // This process has the control channel of the application as its standard input.
            command.env_clear().stdin(Stdio::null());
            command.envs(environment.iter().map(|(name, value)| (name, value)));
        }
        command
    }
}

/// What an upgrade needs.
pub struct Upgrade {
    /// How the new program is started.
    pub invocation: Invocation,
    /// The file that carries the contents of the store over.
    pub store_file: PathBuf,
    /// Where the new program finds systemd.
    pub notify: Option<NotifySocket>,
    /// How long the new program may take.
    pub limit: Duration,
}

impl Upgrade {
    /// Starts the new program and hands over to it. `limit` replaces the time that it may take.
    pub async fn hand_over(
        &self,
        limit: Option<Duration>,
        parts: &Parts,
        sockets: &RefCell<Sockets>,
    ) -> Result<Succession, UpgradeError> {
        let successor = self.start(&sockets.borrow(), &parts.program, &parts.given_up)?;
        let _store_file = RemovedAtEnd(&self.store_file);
        let limit = limit.unwrap_or(self.limit);
        let taken_over = successor.take_over(&parts.store, &self.store_file);
        tokio::time::timeout(limit, taken_over).await.map_err(|_| UpgradeError::TooSlow(limit))?
    }

    /// Starts the new program. No other thread may start a process at the same time, since that
    /// process would inherit the sockets as well.
    fn start<'a>(
        &self,
        sockets: &Sockets,
        state: &'a ProgramState,
        given_up: &Arc<GivenUpProcesses>,
    ) -> Result<Successor<'a>, UpgradeError> {
        let (ours, theirs) = UnixStream::pair()?;
        // The copies stay open over exec(2). They are closed here when this function ends.
        let channel = rustix::io::dup(&theirs).map_err(io::Error::from)?;
        let mut copies = Vec::new();
        let mut listeners = Vec::new();
        for (address, socket) in sockets.for_successor() {
            let copy = rustix::io::dup(socket).map_err(io::Error::from)?;
            let name = match address {
                ListenAddress::Tcp(address) => address.to_string().into_bytes(),
                ListenAddress::Unix(path) => path.as_os_str().as_bytes().to_vec(),
            };
            listeners.push([name, format!("={}", copy.as_raw_fd()).into_bytes()].concat());
            copies.push(copy);
        }
        let mut command = self.invocation.command();
        command.env(LISTENERS_VARIABLE, OsString::from_vec(listeners.join(&b';')));
        command.env(PREDECESSOR_VARIABLE, channel.as_raw_fd().to_string());
        if let Some((name, value)) = self.notify.as_ref().map(NotifySocket::variable) {
            command.env(name, value);
        }
        let failed = |error| {
            UpgradeError::Start(self.invocation.program.to_string_lossy().into_owned(), error)
        };
        let child = command.spawn().map_err(failed)?;
        tracing::info!(pid = child.id(), "upgrading: the new program starts");
        state.successor(child.id().unwrap_or_default(), "starts");
        Ok(Successor {
            process: NewProcess::new(child, Arc::clone(given_up))?,
            channel: UpgradeChannel::new(ours)?,
            state,
        })
    }
}

/// The file with the contents of the store. It is removed when the upgrade is over, also when it is
/// abandoned because the old program is told to end.
struct RemovedAtEnd<'a>(&'a Path);

impl Drop for RemovedAtEnd<'_> {
    fn drop(&mut self) {
        // This fails if the file has not been written yet.
        let _ = std::fs::remove_file(self.0);
    }
}

/// The new program as the old one sees it.
struct Successor<'a> {
    process: NewProcess,
    channel: UpgradeChannel,
    state: &'a ProgramState,
}

/// The program that serves now.
pub struct Succession {
    /// Its process id.
    pub pid: u32,
    /// Where it hears what this program still does.
    pub channel: UpgradeChannel,
}

impl Successor<'_> {
    /// Waits until the new program serves. Its process id is another than that of the child if the
    /// child has forked.
    async fn take_over(
        mut self,
        store: &Arc<Store>,
        file: &Path,
    ) -> Result<Succession, UpgradeError> {
        let pid = self.receive().await?.into_peer()?;
        self.channel.send(&Message::hello()).await?;
        self.state.successor(pid, "reads its configuration and loads its applications");
        match self.receive().await? {
            Message::Loaded => {}
            other => return Err(UpgradeError::unexpected(&other)),
        }
        self.state.successor(pid, "takes over the store");
        let (from, to) = (Arc::clone(store), file.to_owned());
        let save = move || save_snapshot_file(&from, &to, SnapshotTime::on_steady_clock(), || true);
        let saved = tokio::task::spawn_blocking(save).await;
        let saved = saved.map_err(|error| io::Error::other(error.to_string()))??;
        tracing::info!(
            items = saved.unwrap_or_default().items,
            "upgrading: the new program gets the store"
        );
        self.channel.send(&Message::Store { path: file.to_string_lossy().into_owned() }).await?;
        match self.receive().await? {
            Message::Serving { pid } => {
                self.process.serves();
                Ok(Succession { pid, channel: self.channel })
            }
            other => Err(UpgradeError::unexpected(&other)),
        }
    }

    async fn receive(&mut self) -> Result<Message, UpgradeError> {
        match self.channel.receive().await? {
            Some(Message::Failed { reason }) => Err(UpgradeError::Failed(reason)),
            Some(message) => Ok(message),
            None => Err(self.process.ended().await),
        }
    }
}
