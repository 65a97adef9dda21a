//! USR2: a new Kirin takes the place of this one, and no request is lost.
//!
//! The old one starts the program file anew, as it was started itself, and gives it the listening
//! sockets and one end of a channel. The new one starts everything but accepting. Then they talk, a
//! line each:
//!
//! | from | line | meaning |
//! |---|---|---|
//! | new | `loaded` | its applications are ready |
//! | old | `store PATH` | what was in its store when it read `loaded` is in that file |
//! | new | `serving PID` | it has the store and accepts connections; the old one ends |
//!
//! If the channel ends before, or the time is over, the new one is ended and the old one goes on.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use kirin_http::ListenAddress;
use kirin_sockets::{LISTENERS_VARIABLE, NotifySocket, PREDECESSOR_VARIABLE};
use kirin_store::{
    Now, SnapshotError, SnapshotTime, Store, load_snapshot_file, save_snapshot_file,
};
use kirin_workers::ParentInvocation;
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;
use tokio::process::{Child, Command};

/// A line of the channel is no longer than a path may be.
const LINE_BYTES: u64 = 8192;

/// How long the new program may take, beside the time that its applications may take to load.
pub const LIMIT: Duration = Duration::from_secs(60);

const LOADED: &[u8] = b"loaded";
const STORE: &[u8] = b"store ";
const SERVING: &[u8] = b"serving ";

/// Why an upgrade does not happen.
#[derive(Debug, thiserror::Error)]
pub enum UpgradeError {
    /// The program file is gone, or is no program.
    #[error("{0} cannot be started: {1}")]
    Start(String, #[source] io::Error),
    /// It ended; it has said why.
    #[error("the new program ended before it served")]
    Ended,
    /// It said something else.
    #[error("the new program does not take over; is it another program than kirin? It said {0:?}")]
    Unexpected(String),
    /// It took too long.
    #[error("the new program was not ready within {0:?}")]
    TooSlow(Duration),
    /// The contents of the store cannot be written or read.
    #[error("the store cannot be carried over: {0}")]
    Store(#[from] SnapshotError),
    /// The old program has gone.
    #[error("the kirin that this one was to follow has ended, or has not handed over")]
    PredecessorGone,
    /// The channel.
    #[error("channel between the old and the new program: {0}")]
    Channel(#[from] io::Error),
}

/// How the program is started again.
pub struct Invocation {
    /// The program, as it was called.
    pub program: OsString,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Where it runs and its whole environment, if not as this process.
    surroundings: Option<(PathBuf, Vec<(OsString, OsString)>)>,
}

/// Of the program that has loaded the application, and becomes Kirin then.
impl From<ParentInvocation> for Invocation {
    fn from(of: ParentInvocation) -> Self {
        let surroundings = Some((of.directory, of.environment));
        Self { program: of.program, arguments: of.arguments, surroundings }
    }
}

impl Invocation {
    /// That of this process.
    pub fn of_this_process() -> Option<Self> {
        let mut arguments = std::env::args_os();
        Some(Self {
            program: arguments.next()?,
            arguments: arguments.collect(),
            surroundings: None,
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments);
        if let Some((directory, environment)) = &self.surroundings {
            // Its standard input would be our control channel.
            command.current_dir(directory).env_clear().stdin(Stdio::null());
            command.envs(environment.iter().map(|(name, value)| (name, value)));
        }
        command
    }
}

/// What the old program needs.
pub struct Upgrade {
    /// How to start the new one.
    pub invocation: Invocation,
    /// What it gets, under the names of the configuration.
    pub sockets: Vec<(ListenAddress, OwnedFd)>,
    /// Where the store's contents are put meanwhile.
    pub store_file: PathBuf,
    /// For the new program.
    pub notify: Option<NotifySocket>,
    /// How long it may take.
    pub limit: Duration,
}

impl Upgrade {
    /// Starts the new program and hands over to it. Returns its process id when it serves.
    pub async fn hand_over(&self, store: &Arc<Store>) -> Result<u32, UpgradeError> {
        let mut successor = self.start()?;
        let _store_file = RemovedAtEnd(&self.store_file);
        let done =
            tokio::time::timeout(self.limit, successor.take_over(store, &self.store_file)).await;
        let pid = done.map_err(|_| UpgradeError::TooSlow(self.limit))??;
        successor.serves = true;
        Ok(pid)
    }

    /// Must not be called while another thread starts processes: they would get the sockets as
    /// well.
    fn start(&self) -> Result<Successor, UpgradeError> {
        let (ours, theirs) = std::os::unix::net::UnixStream::pair()?;
        ours.set_nonblocking(true)?;
        // Copies that are not closed on exec(2); they are gone when this function ends.
        let channel = rustix::io::dup(&theirs).map_err(io::Error::from)?;
        let mut copies = Vec::with_capacity(self.sockets.len());
        let mut listeners = Vec::new();
        for (address, socket) in &self.sockets {
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
        Ok(Successor { child, channel: Channel::new(ours)?, serves: false })
    }
}

/// The file with the contents of the store. At the end it has been read, or nobody will read it:
/// also when the upgrade is abandoned because the old program is told to end.
struct RemovedAtEnd<'a>(&'a Path);

impl Drop for RemovedAtEnd<'_> {
    fn drop(&mut self) {
        // Fails if it has not been written yet.
        let _ = std::fs::remove_file(self.0);
    }
}

/// The new program as the old one sees it; told to end when dropped before it serves.
struct Successor {
    child: Child,
    channel: Channel,
    serves: bool,
}

impl Successor {
    /// Returns its process id: it may have been forked by what was started.
    async fn take_over(&mut self, store: &Arc<Store>, file: &Path) -> Result<u32, UpgradeError> {
        let line = self.hear().await?;
        if line != LOADED {
            return Err(unexpected(&line));
        }
        let (from, to) = (Arc::clone(store), file.to_owned());
        let save = move || save_snapshot_file(&from, &to, now(), || true);
        let saved = tokio::task::spawn_blocking(save).await;
        let saved = saved.map_err(|error| io::Error::other(error.to_string()))??;
        tracing::info!(
            items = saved.unwrap_or_default().items,
            "upgrading: the new program gets the store"
        );
        self.channel.say(&[STORE, file.as_os_str().as_bytes()].concat()).await?;
        let line = self.hear().await?;
        let pid =
            line.strip_prefix(SERVING).and_then(|pid| std::str::from_utf8(pid).ok()?.parse().ok());
        pid.ok_or_else(|| unexpected(&line))
    }

    async fn hear(&mut self) -> Result<Vec<u8>, UpgradeError> {
        self.channel.hear().await?.ok_or(UpgradeError::Ended)
    }
}

fn unexpected(line: &[u8]) -> UpgradeError {
    UpgradeError::Unexpected(String::from_utf8_lossy(line).into_owned())
}

impl Drop for Successor {
    fn drop(&mut self) {
        if !self.serves {
            // Not KILL: it has applications to end, which may still be loading, and a directory to
            // remove.
            if let Some(pid) = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed())) {
                // Fails if it has ended.
                let _ = kill_process(pid, Signal::TERM);
            }
        }
    }
}

/// The old program as the new one sees it.
pub struct Predecessor {
    channel: Channel,
}

impl Predecessor {
    /// Over the channel that was inherited.
    pub fn new(channel: std::os::unix::net::UnixStream) -> io::Result<Self> {
        channel.set_nonblocking(true)?;
        Ok(Self { channel: Channel::new(channel)? })
    }

    /// Waits until the old program is gone. It says nothing before this one says that it is ready.
    pub async fn gone(&mut self) -> UpgradeError {
        match self.channel.stream.fill_buf().await {
            Ok([]) | Err(_) => UpgradeError::PredecessorGone,
            Ok(said) => unexpected(said),
        }
    }

    /// Says that the applications are ready, and fills `store` with what the old program has. What
    /// the applications have put there while they were loaded stays.
    pub async fn carry_over(&mut self, store: &Arc<Store>) -> Result<(), UpgradeError> {
        let gone = |_| UpgradeError::PredecessorGone;
        self.channel.say(LOADED).await.map_err(gone)?;
        let line = self.channel.hear().await.map_err(gone)?.ok_or(UpgradeError::PredecessorGone)?;
        let path = line.strip_prefix(STORE).ok_or(UpgradeError::PredecessorGone)?.to_vec();
        let (into, path) = (Arc::clone(store), PathBuf::from(OsString::from_vec(path)));
        let loaded =
            tokio::task::spawn_blocking(move || load_snapshot_file(&into, &path, now())).await;
        let loaded = loaded.map_err(|error| io::Error::other(error.to_string()))??;
        tracing::info!(items = loaded.items, "the store is carried over");
        Ok(())
    }

    /// Says that connections are accepted, upon which the old program ends.
    pub async fn dismiss(mut self) -> Result<(), UpgradeError> {
        let line = [SERVING, std::process::id().to_string().as_bytes()].concat();
        self.channel.say(&line).await.map_err(|_| UpgradeError::PredecessorGone)
    }
}

/// Lines between the two.
struct Channel {
    stream: BufReader<UnixStream>,
}

impl Channel {
    fn new(stream: std::os::unix::net::UnixStream) -> io::Result<Self> {
        UnixStream::from_std(stream).map(|stream| Self { stream: BufReader::new(stream) })
    }

    async fn say(&mut self, line: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(&[line, b"\n"].concat()).await
    }

    /// The next line, or `None` at the end.
    async fn hear(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut line = Vec::new();
        match (&mut self.stream).take(LINE_BYTES).read_until(b'\n', &mut line).await {
            Ok(_) if line.pop() == Some(b'\n') => Ok(Some(line)),
            Ok(_) => Ok(None),
            // What it has not read it cannot have wanted.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The two programs' store clocks may differ. They translate to and from the wall clock, which is
/// the same for both.
fn now() -> SnapshotTime {
    SnapshotTime {
        now: Now::from_unix_seconds(kirin_clock::steady_seconds()),
        wall: Now::from_unix_seconds(kirin_clock::wall_seconds()),
    }
}
