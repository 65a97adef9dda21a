//! The predecessor: the old program of an upgrade, as the new one sees it.

use std::io;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use kirin_observe::program_state::ProgramState;
use kirin_store::{SnapshotTime, Store, load_snapshot_file};

use crate::life::upgrade_channel::{Message, UpgradeChannel, UpgradeError};

/// The Kirin that this one takes over from.
pub struct Predecessor {
    channel: UpgradeChannel,
    /// Its process id, once it has told it.
    pid: u32,
}

impl Predecessor {
    /// Takes over the channel that was inherited.
    pub fn new(channel: UnixStream) -> io::Result<Self> {
        Ok(Self { channel: UpgradeChannel::new(channel)?, pid: 0 })
    }

    /// Begins the upgrade.
    pub async fn greet(&mut self) -> Result<(), UpgradeError> {
        self.send(&Message::hello()).await?;
        self.pid = self.receive().await?.into_peer()?;
        Ok(())
    }

    /// Waits until the predecessor ends. It sends no message before this program is ready.
    pub async fn gone(&mut self) -> UpgradeError {
        match self.channel.peek().await {
            Ok([]) | Err(_) => UpgradeError::PredecessorGone,
            Ok(sent) => UpgradeError::Unexpected(String::from_utf8_lossy(sent).into_owned()),
        }
    }

    /// Tells the predecessor that the applications are ready, and fills `store` with its items.
    /// Items that the applications have stored while they were loaded stay.
    pub async fn carry_over(&mut self, store: &Arc<Store>) -> Result<(), UpgradeError> {
        self.send(&Message::Loaded).await?;
        let path = match self.receive().await? {
            Message::Store { path } => PathBuf::from(path),
            other => return Err(UpgradeError::unexpected(&other)),
        };
        let into = Arc::clone(store);
        let load = move || load_snapshot_file(&into, &path, SnapshotTime::on_steady_clock());
        let loaded = tokio::task::spawn_blocking(load).await;
        let loaded = loaded.map_err(|error| io::Error::other(error.to_string()))??;
        tracing::info!(items = loaded.items, "the store is carried over");
        Ok(())
    }

    /// Tells the predecessor that this program accepts connections. The predecessor then ends.
    /// `state` shows what it does until then.
    pub async fn dismiss(mut self, state: Arc<ProgramState>) -> Result<(), UpgradeError> {
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
