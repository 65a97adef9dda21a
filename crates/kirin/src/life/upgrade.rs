//! `kirin upgrade` and USR2: a new Kirin takes the place of this one, and no request is lost.
//! `upgrade_channel.rs` describes how the two programs talk.

use std::cell::RefCell;
use std::ffi::{OsStr, OsString};
use std::io;
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use kirin_http::ListenAddress;
use kirin_observe::program_state::ProgramState;
use kirin_sockets::{
    DATAGRAMS_VARIABLE, DatagramSockets, LISTENERS_VARIABLE, NotifySocket, PREDECESSOR_VARIABLE,
    ProcessStart,
};
use kirin_store::{HandOver, HandOverError};
use kirin_workers::ParentInvocation;
use tokio::process::Command;

use crate::admin::{Admin, operator_changes};
use crate::life::background::Foreground;
use crate::life::configured::Configured;
use crate::life::launch::Launch;
use crate::life::launcher;
use crate::life::memcached_pause::MemcachedPause;
use crate::life::new_process::NewProcess;
use crate::life::own_thread::on_own_thread;
use crate::life::parts::Parts;
use crate::life::store_giving::StoreGiving;
use crate::life::ticket_secrets;
use crate::life::upgrade_channel::{Message, StoreStart, UpgradeChannel, UpgradeError};
use crate::serve::handed::SuccessorSocket;
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

    /// Returns the command that starts the program by a launcher. `control` is for the launcher.
    fn command(&self, control: OwnedFd) -> Command {
        // The program file may have been replaced or removed.
        let mut command = Command::new("/proc/self/exe");
        command.arg0("kirin").arg(launcher::COMMAND);
        command.arg(&self.program).args(&self.arguments).stdin(control);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        if let Some(environment) = &self.environment {
            command.env_clear();
            command.envs(environment.iter().map(|(name, value)| (name, value)));
        }
        command
    }
}

/// How long memcached clients wait for the new program to serve. It has nothing to do any more but
/// to begin.
const SWITCH_LIMIT: Duration = Duration::from_secs(10);

/// What an upgrade needs.
pub struct Upgrade {
    /// How the new program is started.
    pub invocation: Invocation,
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
        admin: &Admin,
        configured: &RefCell<Configured>,
        sockets: &RefCell<Sockets>,
    ) -> Result<Succession, UpgradeError> {
        let successor = self.start(&sockets.borrow(), parts)?;
        let limit = limit.unwrap_or(self.limit);
        let ready = within(limit, successor.get_ready(parts, admin, configured)).await?;
        ready.go().await
    }

    /// Starts the new program.
    fn start<'a>(
        &'a self,
        sockets: &Sockets,
        parts: &'a Parts,
    ) -> Result<Successor<'a>, UpgradeError> {
        let (ours, theirs) = UnixStream::pair()?;
        let (store, their_store) = UnixStream::pair()?;
        let (connections, their_connections) = UnixStream::pair()?;
        // The copies stay open over exec(2). They are closed here when this function ends. No other
        // thread may start a process before that.
        let _start = ProcessStart::begin();
        let channel = rustix::io::dup(&theirs).map_err(io::Error::from)?;
        let store_socket = rustix::io::dup(&their_store).map_err(io::Error::from)?;
        let connection_socket = rustix::io::dup(&their_connections).map_err(io::Error::from)?;
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
        let mut datagrams = Vec::new();
        for DatagramSockets { link, sockets } in sockets.datagrams_for_successor() {
            let mut numbers = Vec::new();
            for socket in std::iter::once(link).chain(sockets) {
                let copy = rustix::io::dup(socket).map_err(io::Error::from)?;
                numbers.push(copy.as_raw_fd().to_string());
                copies.push(copy);
            }
            datagrams.push(numbers.join(":"));
        }
        let (control, their_control) = UnixStream::pair()?;
        let mut command = self.invocation.command(their_control.into());
        command.env(LISTENERS_VARIABLE, OsString::from_vec(listeners.join(&b';')));
        command.env(DATAGRAMS_VARIABLE, datagrams.join(";"));
        let own = [&channel, &store_socket, &connection_socket];
        let own = own.map(|socket| socket.as_raw_fd().to_string()).join(":");
        command.env(PREDECESSOR_VARIABLE, own);
        if let Some((name, value)) = self.notify.as_ref().map(NotifySocket::variable) {
            command.env(name, value);
        }
        let failed = |error| {
            UpgradeError::Start(self.invocation.program.to_string_lossy().into_owned(), error)
        };
        let launcher = command.spawn().map_err(failed)?;
        // The command has a copy of the launcher's end.
        drop(command);
        Ok(Successor {
            process: NewProcess::new(launcher, control, &theirs, Arc::clone(&parts.given_up))?,
            channel: UpgradeChannel::new(ours)?,
            store: StoreSocket(Some(store)),
            connections,
            state: &parts.program,
            program: &self.invocation.program,
        })
    }
}

/// The new program as the old one sees it.
struct Successor<'a> {
    process: NewProcess,
    channel: UpgradeChannel,
    store: StoreSocket,
    /// Where connections go.
    connections: UnixStream,
    state: &'a ProgramState,
    /// The program file.
    program: &'a OsStr,
}

/// The socket of the store. If the new program is given up, nobody waits any more until it reads.
struct StoreSocket(Option<UnixStream>);

impl StoreSocket {
    fn share(&self) -> io::Result<UnixStream> {
        match &self.0 {
            Some(socket) => socket.try_clone(),
            None => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Leaves the socket open for those who share it.
    fn keep(mut self) {
        self.0 = None;
    }
}

impl Drop for StoreSocket {
    fn drop(&mut self) {
        if let Some(socket) = &self.0 {
            // It fails if the other side has ended.
            let _ = socket.shutdown(Shutdown::Both);
        }
    }
}

/// The program that serves now.
pub struct Succession {
    /// Its process id.
    pub pid: u32,
    /// Where it hears what this program still does.
    pub channel: UpgradeChannel,
    /// Sends what the last requests change in the store.
    pub giving: StoreGiving,
    /// Where connections go.
    pub connections: Arc<SuccessorSocket>,
    /// Memcached clients wait until they can leave.
    pub pause: MemcachedPause,
}

impl<'a> Successor<'a> {
    /// Waits until the new program can serve.
    async fn get_ready(
        mut self,
        parts: &Parts,
        admin: &Admin,
        configured: &RefCell<Configured>,
    ) -> Result<ReadySuccessor<'a>, UpgradeError> {
        let started = self.process.started().await;
        let pid = started.map_err(|error| {
            UpgradeError::Start(self.program.to_string_lossy().into_owned(), error)
        })?;
        tracing::info!(pid, "upgrading: the new program starts");
        self.state.successor(pid, "starts");
        let pid = self.receive().await?.into_peer()?;
        self.process.is(pid);
        self.send(&Message::hello()).await?;
        let start = StoreStart {
            first_sequence: HandOver::following_sequence(&parts.store),
            clock_nanos: kirin_clock::nanos_ahead_of_boot(),
        };
        self.send(&Message::Store(start)).await?;
        self.state.successor(pid, "reads its configuration and loads its applications");
        match self.receive().await? {
            Message::Loaded => {}
            other => return Err(UpgradeError::unexpected(&other)),
        }
        self.state.successor(pid, "takes over the store");
        let giving = StoreGiving::begin(Arc::clone(&parts.store), self.store.share()?)?;
        let copied = on_own_thread("store-giving", || giving.copy()).await?;
        let (giving, items) = self.unless_ended(copied).await?;
        tracing::info!(items, "upgrading: the new program has the store");
        self.state.successor(pid, "is about to serve");
        let pause = MemcachedPause::begin(&parts.memcached, &parts.handles).await;
        let giving = within(SWITCH_LIMIT, self.switch(giving, admin, configured)).await?;
        Ok(ReadySuccessor { successor: self, giving, pause })
    }

    /// Sends the last changes, and waits until the new program has them.
    async fn switch(
        &mut self,
        giving: StoreGiving,
        admin: &Admin,
        configured: &RefCell<Configured>,
    ) -> Result<StoreGiving, UpgradeError> {
        let switched = on_own_thread("store-giving", || giving.switch()).await?;
        let giving = self.unless_ended(switched).await?;
        // The new program reads this when it has the store.
        let tickets = ticket_secrets::collect(&configured.borrow().config.listeners);
        self.send(&Message::Tickets(tickets)).await?;
        self.send(&Message::Changes(operator_changes::collect(&admin.current()))).await?;
        match self.receive().await? {
            Message::Ready => Ok(giving),
            other => Err(UpgradeError::unexpected(&other)),
        }
    }

    /// Tells the new program to serve, and waits until it does. Returns its process id.
    async fn go(&mut self) -> Result<u32, UpgradeError> {
        self.process.goes();
        self.send(&Message::Go).await?;
        match self.receive().await? {
            Message::Serving { pid } => Ok(pid),
            other => Err(UpgradeError::unexpected(&other)),
        }
    }

    /// Returns the result of a step of the store. If that failed because the new program has ended,
    /// returns how it has ended.
    async fn unless_ended<T>(
        &mut self,
        result: Result<T, HandOverError>,
    ) -> Result<T, UpgradeError> {
        match result {
            Err(HandOverError::Io(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
                Err(self.last_words().await)
            }
            result => Ok(result?),
        }
    }

    async fn send(&mut self, message: &Message) -> Result<(), UpgradeError> {
        match self.channel.send(message).await {
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Err(self.last_words().await),
            sent => Ok(sent?),
        }
    }

    /// Returns why the new program has ended: as it has told, or as its process has ended.
    async fn last_words(&mut self) -> UpgradeError {
        match self.receive().await {
            Err(error) => error,
            Ok(_) => self.process.ended().await,
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

/// A new program that can serve.
struct ReadySuccessor<'a> {
    successor: Successor<'a>,
    giving: StoreGiving,
    pause: MemcachedPause,
}

impl ReadySuccessor<'_> {
    /// Has it serve. Until it does, this program can still give it up.
    async fn go(self) -> Result<Succession, UpgradeError> {
        let Self { mut successor, giving, pause } = self;
        let pid = within(SWITCH_LIMIT, successor.go()).await?;
        successor.process.serves().await;
        successor.store.keep();
        let (socket, rounds) = (successor.connections, giving.rounds());
        let connections = Arc::new(SuccessorSocket { socket, rounds });
        Ok(Succession { pid, channel: successor.channel, giving, connections, pause })
    }
}

async fn within<T>(
    limit: Duration,
    step: impl Future<Output = Result<T, UpgradeError>>,
) -> Result<T, UpgradeError> {
    tokio::time::timeout(limit, step).await.map_err(|_| UpgradeError::TooSlow(limit))?
}
