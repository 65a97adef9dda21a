//! The thread that keeps the connection to the origin of the store, and makes this machine known to
//! the others with the same origin.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use kirin_http::panics::catch_in;
use kirin_observe::machines::Machines;
use kirin_observe::machines::question::MachineQuestion;
use kirin_observe::stage::Stage;
use kirin_observe::top;
use kirin_origin::StoreOrigin;
use kirin_server::BlockedAddresses;
use tokio::runtime::{Builder, Handle};
use tokio::sync::watch;

use crate::admin::{Admin, shared_blocks};
use crate::serve::event_loop::LoopError;

/// The pause after a panic.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts the thread. It ends with the process. Returns its runtime, for tasks that are short.
///
/// It has a runtime of its own, so that neither a busy event loop nor the work of an operator keeps
/// an invalidation from being applied.
pub fn start(origin: Arc<StoreOrigin>) -> Result<Handle, LoopError> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let handle = runtime.handle().clone();
    let run = move || {
        loop {
            // The copies are forgotten meanwhile, because nothing proves them.
            let run = || runtime.block_on(Arc::clone(&origin).run());
            if catch_unwind(AssertUnwindSafe(run)).is_err() {
                tracing::error!("a mistake in Kirin ended the connection to the origin");
                std::thread::sleep(PAUSE);
            }
        }
    };
    std::thread::Builder::new().name("origin".into()).spawn(run)?;
    Ok(handle)
}

/// Announces this machine while it serves, and answers the questions of operators of the others. It
/// makes the answers on threads of their own.
pub fn join(
    runtime: &Handle,
    machines: &Arc<Machines>,
    admin: &Admin,
    stage: &watch::Receiver<Stage>,
) {
    let (announced, stage) = (Arc::clone(machines), stage.clone());
    runtime.spawn(async move {
        while catch_in(announced.announce(stage.clone())).await.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    });
    let admin = admin.clone();
    let snapshots = Arc::new(move |question| {
        let parts = admin.current();
        match question {
            MachineQuestion::Status => top::summary(&parts.observed),
            MachineQuestion::Top => top::addable_snapshot(&parts.observed),
        }
    });
    for question in MachineQuestion::ALL {
        let (machines, snapshots) = (Arc::clone(machines), Arc::clone(&snapshots));
        runtime.spawn(async move {
            while catch_in(machines.answer(question, Arc::clone(&snapshots))).await.is_err() {
                tokio::time::sleep(PAUSE).await;
            }
        });
    }
}

/// Blocks on this machine what operators block on all machines.
pub fn follow_blocks(runtime: &Handle, origin: &Arc<StoreOrigin>, blocked: &Arc<BlockedAddresses>) {
    let (origin, blocked) = (Arc::clone(origin), Arc::clone(blocked));
    runtime.spawn(async move {
        while catch_in(shared_blocks::follow(&origin, &blocked)).await.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    });
}
