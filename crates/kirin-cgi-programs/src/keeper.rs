//! The task that keeps a running program: it learns when the program has ended, stops it if its
//! response is given up, and reaps it. The slot of the pool is free after that.

use std::time::Duration;

use kirin_spool::SpooledBody;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::failure::ProgramEnd;
use crate::pool::Slot;
use crate::process::WatchedProgram;

/// How long the error output of a program is read after its end. Another process may hold it open.
const LAST_ERRORS: Duration = Duration::from_secs(1);

/// A program with all that it holds while it runs.
pub(crate) struct KeptProgram {
    pub(crate) program: WatchedProgram,
    pub(crate) slot: Slot,
    /// The body of the request, which counts for its client.
    pub(crate) body: SpooledBody,
    /// The task that reads the error output.
    pub(crate) errors: JoinHandle<()>,
}

/// The reader's half of the connection to the keeper.
pub(crate) struct KeeperHandle {
    /// Says how the program has ended.
    pub(crate) end: oneshot::Receiver<ProgramEnd>,
    /// Takes the time that the program still has after its response. If it is dropped without that,
    /// the program is stopped.
    pub(crate) release: oneshot::Sender<Duration>,
}

/// Starts the task on this event loop.
pub(crate) fn keep(kept: KeptProgram) -> KeeperHandle {
    let (report, end) = oneshot::channel();
    let (release, released) = oneshot::channel();
    tokio::task::spawn_local(watch(kept, report, released));
    KeeperHandle { end, release }
}

async fn watch(
    kept: KeptProgram,
    report: oneshot::Sender<ProgramEnd>,
    mut released: oneshot::Receiver<Duration>,
) {
    let KeptProgram { program, slot, body, mut errors } = kept;
    let released = tokio::select! {
        biased;
        released = &mut released => released,
        end = program.ended() => {
            let _ = report.send(end);
            // Its children may still send the rest of the response.
            released.await
        }
    };
    let has_ended = match released {
        Ok(left) => timeout(left, program.ended()).await.is_ok(),
        Err(_) => false,
    };
    if !has_ended {
        program.stop().await;
    }
    program.reap();
    drop((slot, body));
    if timeout(LAST_ERRORS, &mut errors).await.is_err() {
        errors.abort();
    }
}
