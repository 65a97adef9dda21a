//! The predecessor: the old program of an upgrade, as the new one sees it.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::Arc;

use kirin_store::{SnapshotTime, Store, load_snapshot_file};

use crate::life::upgrade_channel::{LOADED, SERVING, STORE, UpgradeChannel, UpgradeError};

/// The Kirin that this one takes over from.
pub struct Predecessor {
    channel: UpgradeChannel,
}

impl Predecessor {
    /// Takes over the channel that was inherited.
    pub fn new(channel: UnixStream) -> io::Result<Self> {
        Ok(Self { channel: UpgradeChannel::new(channel)? })
    }

    /// Waits until the predecessor ends. It sends no line before this program is ready.
    pub async fn gone(&mut self) -> UpgradeError {
        match self.channel.peek().await {
            Ok([]) | Err(_) => UpgradeError::PredecessorGone,
            Ok(sent) => UpgradeError::unexpected(sent),
        }
    }

    /// Tells the predecessor that the applications are ready, and fills `store` with its items.
    /// Items that the applications have stored while they were loaded stay.
    pub async fn carry_over(&mut self, store: &Arc<Store>) -> Result<(), UpgradeError> {
        let gone = |_| UpgradeError::PredecessorGone;
        self.channel.send(LOADED).await.map_err(gone)?;
        let line =
            self.channel.receive().await.map_err(gone)?.ok_or(UpgradeError::PredecessorGone)?;
        let path = line.strip_prefix(STORE).ok_or(UpgradeError::PredecessorGone)?.to_vec();
        let (into, path) = (Arc::clone(store), PathBuf::from(OsString::from_vec(path)));
        let load = move || load_snapshot_file(&into, &path, SnapshotTime::on_steady_clock());
        let loaded = tokio::task::spawn_blocking(load).await;
        let loaded = loaded.map_err(|error| io::Error::other(error.to_string()))??;
        tracing::info!(items = loaded.items, "the store is carried over");
        Ok(())
    }

    /// Tells the predecessor that this program accepts connections. The predecessor then ends.
    pub async fn dismiss(mut self) -> Result<(), UpgradeError> {
        let line = [SERVING, std::process::id().to_string().as_bytes()].concat();
        self.channel.send(&line).await.map_err(|_| UpgradeError::PredecessorGone)
    }
}
