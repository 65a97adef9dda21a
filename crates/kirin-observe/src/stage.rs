//! What the event loops are to do: prepare, serve, drain or give up. The main thread decides, and
//! all loops watch.

use std::time::Duration;

use tokio::sync::watch;

/// What all loops are to do. It only ever goes forward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Accept nothing yet, since applications are starting.
    Prepare,
    /// Accept connections and serve them.
    Serve,
    /// End: idle connections soon, busy ones within this time.
    Drain(Duration),
    /// End without having served. Clients that wait in the queue of a listening socket belong to
    /// the program that has given the socket, or to the next one that it starts.
    GiveUp,
}

/// Waits until the loops serve. Returns whether they do: a program that gives up never serves. A
/// loop that learns late of a short life still serves those who wait.
pub async fn wait_to_serve(stage: &mut watch::Receiver<Stage>) -> bool {
    let reached = stage.wait_for(|stage| *stage >= Stage::Serve).await;
    reached.is_ok_and(|stage| *stage != Stage::GiveUp)
}

/// Waits until the loops drain, and returns how long that may take.
pub async fn drain_limit(mut stage: watch::Receiver<Stage>) -> Duration {
    match stage.wait_for(|stage| *stage > Stage::Serve).await.as_deref() {
        Ok(Stage::Drain(limit)) => *limit,
        _ => Duration::ZERO,
    }
}
