//! The thread that keeps the connection to the origin of the store.

use std::sync::Arc;

use kirin_origin::StoreOrigin;
use tokio::runtime::Builder;

use crate::serve::event_loop::LoopError;

/// Starts the thread. It ends with the process.
///
/// It has a runtime of its own, so that neither a busy event loop nor the work of an operator keeps
/// an invalidation from being applied.
pub fn start(origin: Arc<StoreOrigin>) -> Result<(), LoopError> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
    let run = move || runtime.block_on(origin.run());
    std::thread::Builder::new().name("origin".into()).spawn(run)?;
    Ok(())
}
