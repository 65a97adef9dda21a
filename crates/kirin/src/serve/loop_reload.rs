//! How an event loop takes over another configuration: it prepares it, says whether it can serve
//! it, and puts it into force when all loops can.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use kirin_gateway::places::opening::PlaceError;
use kirin_http::panics::catch;
use kirin_observe::metrics::counters::LoopCounters;
use tokio::sync::{mpsc, oneshot};

use crate::serve::event_loop::LoopResources;
use crate::serve::http_listeners::HttpListeners;
use crate::serve::listeners::BoundListener;

/// Another configuration for one event loop.
pub struct LoopReload {
    /// What all loops share.
    pub resources: LoopResources,
    /// The counters of the loop.
    pub counters: Arc<LoopCounters>,
    /// The indices of the present listeners in the other configuration.
    pub numbers: Arc<[Option<usize>]>,
    /// The sockets of the listeners that it has besides.
    pub bound: Vec<BoundListener>,
    /// Gets the result of the preparation.
    pub prepared: oneshot::Sender<Result<(), LoopReloadError>>,
    /// Says that the configuration comes into force. Dropped: it does not.
    pub commit: oneshot::Receiver<()>,
    /// Gets word when it is in force.
    pub committed: oneshot::Sender<()>,
}

/// Why an event loop cannot serve a configuration.
#[derive(Debug, thiserror::Error)]
pub enum LoopReloadError {
    /// A place of a route cannot be opened.
    #[error(transparent)]
    Place(#[from] PlaceError),
    /// The routes cannot be opened because of a fault in Kirin.
    #[error("the routes cannot be opened: Kirin has a fault, which its log shows")]
    Panic,
}

/// Takes over configurations, one after the other, until the program ends.
pub async fn take_over(
    listeners: Rc<RefCell<Option<HttpListeners>>>,
    mut reloads: mpsc::UnboundedReceiver<LoopReload>,
) {
    while let Some(reload) = reloads.recv().await {
        let LoopReload { resources, counters, numbers, bound, prepared, commit, committed } =
            reload;
        let result = catch(|| match &*listeners.borrow() {
            Some(listeners) => Ok(Some(listeners.prepare(resources, &counters, &numbers, bound)?)),
            // The loop drains.
            None => Ok(None),
        });
        let ready = match result.unwrap_or(Err(LoopReloadError::Panic)) {
            Ok(ready) => {
                _ = prepared.send(Ok(()));
                ready
            }
            Err(error) => {
                _ = prepared.send(Err(error));
                continue;
            }
        };
        if commit.await.is_err() {
            continue;
        }
        if let (Some(listeners), Some(ready)) = (&mut *listeners.borrow_mut(), ready) {
            listeners.commit(ready);
        }
        _ = committed.send(());
    }
}
