//! The task of the event loops: prepare, serve, drain or give up. The main thread decides, and all
//! loops watch.

use std::time::Duration;

use tokio::sync::watch;

/// The task of all event loops. It only ever goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Accept nothing yet, since applications are starting.
    Prepare,
    /// Accept connections and serve them.
    Serve,
    /// End: idle connections soon, busy ones within this time.
    Drain(Duration),
    /// The same, while another Kirin accepts connections on the same sockets.
    HandOver(Duration),
    /// End without having served. Clients that wait in the queue of a listening socket belong to
    /// the program that has given the socket, or to the next one that it starts.
    GiveUp,
}

/// Waits until the loops serve. Returns whether they do: a program that gives up never serves. If
/// the program drains already when a loop learns of it, the loop still serves the clients that
/// wait.
pub async fn wait_to_serve(stage: &mut watch::Receiver<Stage>) -> bool {
    let reached = stage.wait_for(|stage| *stage >= Stage::Serve).await;
    reached.is_ok_and(|stage| *stage != Stage::GiveUp)
}

/// Waits until the loops drain, and returns how long that may take.
pub async fn drain_limit(mut stage: watch::Receiver<Stage>) -> Duration {
    match stage.wait_for(|stage| *stage > Stage::Serve).await.as_deref() {
        Ok(Stage::Drain(limit) | Stage::HandOver(limit)) => *limit,
        _ => Duration::ZERO,
    }
}
