//! What the event loops are to do: prepare, serve or drain. The main thread decides, and all loops
//! watch.

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
}

/// Waits until the loops drain, and returns how long that may take.
pub async fn drain_limit(mut stage: watch::Receiver<Stage>) -> Duration {
    match stage.wait_for(|stage| matches!(stage, Stage::Drain(_))).await.as_deref() {
        Ok(Stage::Drain(limit)) => *limit,
        _ => Duration::ZERO,
    }
}
