//! The task of each event loop that learns which requests are finished.
//!
//! While answers come, it is polled once for each round of the loop's other tasks. When nothing has
//! come in a round, it notes in the ring that the loop sleeps, and waits for the eventfd.

use std::future::poll_fn;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::task::{Context, Poll};

use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;

use crate::app::App;
use crate::ring::shared_ring::SharedRing;

/// The collectors of a ring. Dropping this ends them.
pub(crate) struct Collectors(Vec<AbortHandle>);

impl Collectors {
    /// Starts a collector on each loop.
    pub(crate) fn start(app: &Arc<App>, ring: &Arc<SharedRing>, loops: &[Handle]) -> Self {
        let start = |(index, runtime): (usize, &Handle)| {
            let task = run(Arc::downgrade(app), Arc::clone(ring), index);
            runtime.spawn(task).abort_handle()
        };
        Self(loops.iter().enumerate().map(start).collect())
    }
}

impl Drop for Collectors {
    fn drop(&mut self) {
        self.0.iter().for_each(AbortHandle::abort);
    }
}

async fn run(app: Weak<App>, ring: Arc<SharedRing>, event_loop: usize) {
    #[expect(deprecated, reason = "the other constructor is unsafe, for types that close early")]
    let eventfd = ring.loops[event_loop].eventfd.try_clone().and_then(AsyncFd::new);
    let eventfd = match eventfd {
        Ok(eventfd) => eventfd,
        Err(error) => {
            tracing::error!(%error, "event loop cannot wait for answers of workers");
            return;
        }
    };
    poll_fn(|context| poll(&app, &ring, event_loop, &eventfd, context)).await;
}

/// Ends when the application has gone.
fn poll(
    app: &Weak<App>,
    ring: &Arc<SharedRing>,
    event_loop: usize,
    eventfd: &AsyncFd<OwnedFd>,
    context: &mut Context<'_>,
) -> Poll<()> {
    let Some(app) = app.upgrade() else { return Poll::Ready(()) };
    // The counter is never read: each addition to it is an event of its own, since tokio's
    // registrations are edge-triggered.
    while let Poll::Ready(Ok(mut guard)) = eventfd.poll_read_ready(context) {
        guard.clear_ready();
    }
    ring.set_collector(event_loop, context.waker());
    if ring.collect(&app, event_loop) || !ring.ring.fall_asleep(event_loop) {
        // Other tasks come first, those of the collected requests among them.
        context.waker().wake_by_ref();
    }
    Poll::Pending
}
