//! The thread that keeps the connection to the origin of the store.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use kirin_origin::StoreOrigin;
use tokio::runtime::Builder;

use crate::serve::event_loop::LoopError;

/// The pause after a panic.
const PAUSE: Duration = Duration::from_secs(1);

/// Starts the thread. It ends with the process.
///
/// It has a runtime of its own, so that neither a busy event loop nor the work of an operator keeps
/// an invalidation from being applied.
pub fn start(origin: Arc<StoreOrigin>) -> Result<(), LoopError> {
    let runtime = Builder::new_current_thread().enable_io().enable_time().build()?;
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
    Ok(())
}
