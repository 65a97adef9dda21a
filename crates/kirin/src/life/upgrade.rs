//! USR2: a new Kirin takes the place of this one, and no request is lost. `upgrade_channel.rs`
//! describes how the two programs talk.

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
use kirin_sockets::{LISTENERS_VARIABLE, NotifySocket, PREDECESSOR_VARIABLE};
use kirin_store::{SnapshotTime, Store, save_snapshot_file};
use kirin_workers::ParentInvocation;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::{Child, Command};

use crate::life::upgrade_channel::{LOADED, SERVING, STORE, UpgradeChannel, UpgradeError};
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
    /// Starts the new program and hands over to it. Returns its process id when it serves.
    pub async fn hand_over(
        &self,
        store: &Arc<Store>,
        sockets: &RefCell<Sockets>,
    ) -> Result<u32, UpgradeError> {
        let mut successor = self.start(&sockets.borrow())?;
        let _store_file = RemovedAtEnd(&self.store_file);
        let taken_over = successor.take_over(store, &self.store_file);
        let pid = tokio::time::timeout(self.limit, taken_over).await;
        let pid = pid.map_err(|_| UpgradeError::TooSlow(self.limit))??;
        successor.serves = true;
        Ok(pid)
    }

    /// Starts the new program. No other thread may start a process at the same time, since that
    /// process would inherit the sockets as well.
    fn start(&self, sockets: &Sockets) -> Result<Successor, UpgradeError> {
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
        Ok(Successor { child, channel: UpgradeChannel::new(ours)?, serves: false })
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

/// The new program as the old one sees it. It is told to end if this is dropped before it serves.
struct Successor {
    child: Child,
    channel: UpgradeChannel,
    serves: bool,
}

impl Successor {
    /// Waits until the new program serves. Returns its process id, which is another than that of
    /// the child if the child has forked.
    async fn take_over(&mut self, store: &Arc<Store>, file: &Path) -> Result<u32, UpgradeError> {
        let line = self.receive().await?;
        if line != LOADED {
            return Err(UpgradeError::unexpected(&line));
        }
        let (from, to) = (Arc::clone(store), file.to_owned());
        let save = move || save_snapshot_file(&from, &to, SnapshotTime::on_steady_clock(), || true);
        let saved = tokio::task::spawn_blocking(save).await;
        let saved = saved.map_err(|error| io::Error::other(error.to_string()))??;
        tracing::info!(
            items = saved.unwrap_or_default().items,
            "upgrading: the new program gets the store"
        );
        self.channel.send(&[STORE, file.as_os_str().as_bytes()].concat()).await?;
        let line = self.receive().await?;
        let pid =
            line.strip_prefix(SERVING).and_then(|pid| std::str::from_utf8(pid).ok()?.parse().ok());
        pid.ok_or_else(|| UpgradeError::unexpected(&line))
    }

    async fn receive(&mut self) -> Result<Vec<u8>, UpgradeError> {
        self.channel.receive().await?.ok_or(UpgradeError::Ended)
    }
}

impl Drop for Successor {
    fn drop(&mut self) {
        if !self.serves
            && let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()))
        {
            // TERM and not KILL: it has applications to end, which may still be loading, and a
            // directory to remove. The call fails if the process has ended.
            let _ = kill_process(pid, Signal::TERM);
        }
    }
}
