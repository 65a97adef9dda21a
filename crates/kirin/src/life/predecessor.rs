//! The predecessor: the old program of an upgrade, as the new one sees it.

use std::io::{self, BufReader};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc;

use kirin_observe::program_state::ProgramState;
use kirin_sockets::PredecessorSockets;
use kirin_store::{Follower, HandOverError, HandOverStep, Now, Store};

use crate::admin::operator_changes::OperatorChange;
use crate::life::own_thread::on_own_thread;
use crate::life::ticket_secrets::ListenerSecret;
use crate::life::upgrade_channel::{Message, StoreStart, UpgradeChannel, UpgradeError};
use crate::serve::handed::{self, HandedSenders};

/// The bytes of the store that are received together.
const BUFFER_BYTES: usize = 1 << 20;

const NANOS_PER_SECOND: i64 = 1_000_000_000;

/// The Kirin that this one takes over from.
pub struct Predecessor {
    channel: UpgradeChannel,
    /// The socket of the store, until the store follows.
    socket: Option<UnixStream>,
    /// What it has told at first.
    store: StoreStart,
    /// Where its connections come from.
    connections: UnixStream,
    /// Its process id, once it has told it.
    pid: u32,
    following: Option<StoreFollowing>,
    /// Threads that begin when this program serves.
    waiting: Vec<mpsc::Sender<()>>,
}

/// The store that follows that of the predecessor.
struct StoreFollowing {
    follower: Follower,
    from: BufReader<UnixStream>,
}

impl Predecessor {
    /// Takes over the sockets that were inherited.
    pub fn new(sockets: PredecessorSockets) -> io::Result<Self> {
        let PredecessorSockets { channel, store, connections } = sockets;
        let channel = UpgradeChannel::new(channel)?;
        let start = StoreStart::default();
        let (socket, following, waiting) = (Some(store), None, Vec::new());
        Ok(Self { channel, socket, store: start, connections, pid: 0, following, waiting })
    }

    /// Begins the upgrade.
    pub async fn greet(&mut self) -> Result<(), UpgradeError> {
        self.send(&Message::hello()).await?;
        self.pid = self.receive().await?.into_peer()?;
        match self.receive().await? {
            Message::Store(start) => self.store = start,
            other => return Err(UpgradeError::unexpected(&other)),
        }
        Ok(())
    }

    /// Returns the first sequence number of this program's store.
    pub fn first_sequence(&self) -> u64 {
        self.store.first_sequence
    }

    /// Waits until the predecessor ends. It sends no message before this program is ready.
    pub async fn gone(&mut self) -> UpgradeError {
        match self.channel.peek().await {
            Ok([]) | Err(_) => UpgradeError::PredecessorGone,
            Ok(sent) => UpgradeError::Unexpected(String::from_utf8_lossy(sent).into_owned()),
        }
    }

    /// Tells the predecessor that the applications are ready, and has `store` follow its store.
    /// Returns when both have the same items, with the secrets of session tickets and with what
    /// operators have changed there. Items that the applications have stored while they were loaded
    /// stay.
    pub async fn carry_over(
        &mut self,
        store: &Arc<Store>,
    ) -> Result<(Vec<ListenerSecret>, Vec<OperatorChange>), UpgradeError> {
        let socket = self.socket.take().ok_or(UpgradeError::PredecessorGone)?;
        let ahead = kirin_clock::nanos_ahead_of_boot().saturating_sub(self.store.clock_nanos);
        // Rounded to the nearest second.
        let ahead_seconds = (ahead + NANOS_PER_SECOND / 2).div_euclid(NANOS_PER_SECOND);
        let follower = Follower::new(Arc::clone(store), ahead_seconds, Now::on_steady_clock());
        let from = BufReader::with_capacity(BUFFER_BYTES, socket);
        let mut following = StoreFollowing { follower, from };
        self.send(&Message::Loaded).await?;
        let follow = move || following.follow_to(HandOverStep::Switched).map(|()| following);
        let followed = on_own_thread("store-following", follow).await?;
        self.following = Some(followed.map_err(|error| match error {
            // It has ended, and not in this program's fault.
            HandOverError::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                UpgradeError::PredecessorGone
            }
            other => other.into(),
        })?);
        tracing::info!(items = store.stats().curr_items, "the store is handed over");
        let tickets = match self.receive().await? {
            Message::Tickets(tickets) => tickets,
            other => return Err(UpgradeError::unexpected(&other)),
        };
        match self.receive().await? {
            Message::Changes(changes) => Ok((tickets, changes)),
            other => Err(UpgradeError::unexpected(&other)),
        }
    }

    /// Tells the predecessor that this program can serve, and waits until it may. The connections
    /// of the predecessor will go to `loops`.
    pub async fn wait_for_go(&mut self, loops: HandedSenders) -> Result<(), UpgradeError> {
        // Afterwards nothing may fail any more.
        self.start_threads(loops)?;
        self.send(&Message::Ready).await?;
        match self.receive().await? {
            Message::Go => Ok(()),
            other => Err(UpgradeError::unexpected(&other)),
        }
    }

    /// Starts the threads that take what the predecessor sends when this program serves.
    fn start_threads(&mut self, loops: HandedSenders) -> io::Result<()> {
        let mut rounds = Arc::default();
        if let Some(mut following) = self.following.take() {
            rounds = following.follower.rounds();
            let ended = Arc::clone(&rounds);
            self.start_thread("store-following", move || {
                if let Err(error) = following.follow_to(HandOverStep::Ended) {
                    // Nobody waits for what does not come.
                    ended.store(u64::MAX, Ordering::Release);
                    tracing::error!(%error, "what the old program still changes in the store is lost");
                }
            })?;
        }
        let connections = self.connections.try_clone()?;
        self.start_thread("connections", move || handed::receive(&connections, &loops, &rounds))
    }

    /// Starts a thread that waits until this program serves.
    fn start_thread(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> io::Result<()> {
        let (begin, begins) = mpsc::channel();
        let run = move || {
            // It fails if this program does not come to serve.
            if begins.recv().is_ok() {
                run();
            }
        };
        std::thread::Builder::new().name(name.to_owned()).spawn(run)?;
        self.waiting.push(begin);
        Ok(())
    }

    /// Tells the predecessor that this program accepts connections. The predecessor then ends, and
    /// hands over its connections. `state` shows what it does until then.
    pub async fn dismiss(mut self, state: Arc<ProgramState>) -> Result<(), UpgradeError> {
        for thread in self.waiting.drain(..) {
            // It has nothing to do if it has ended.
            _ = thread.send(());
        }
        self.send(&Message::Serving { pid: std::process::id() }).await?;
        state.predecessor(self.pid, None);
        tokio::spawn(async move {
            while let Ok(Some(message)) = self.channel.receive().await {
                if let Message::Draining { connections } = message {
                    state.predecessor(self.pid, Some(connections));
                }
            }
            state.predecessor_ended();
            tracing::info!(pid = self.pid, "the program before this one has ended");
        });
        Ok(())
    }

    async fn send(&mut self, message: &Message) -> Result<(), UpgradeError> {
        self.channel.send(message).await.map_err(|_| UpgradeError::PredecessorGone)
    }

    async fn receive(&mut self) -> Result<Message, UpgradeError> {
        self.channel.receive().await?.ok_or(UpgradeError::PredecessorGone)
    }
}

impl StoreFollowing {
    /// Applies what comes, up to this step of the predecessor.
    fn follow_to(&mut self, wanted: HandOverStep) -> Result<(), HandOverError> {
        loop {
            match self.follower.follow(&mut self.from, Now::on_steady_clock)? {
                step if step == wanted => return Ok(()),
                HandOverStep::Ended => {
                    return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
                }
                _ => {}
            }
        }
    }
}
