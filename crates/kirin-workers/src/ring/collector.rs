//! The task of each event loop that learns which requests are finished.
//!
//! While answers come, it is polled once for each round of the loop's other tasks. When nothing has
//! come in a round, it notes in the ring that the loop sleeps, and waits for the eventfd. If
//! requests wait then for a worker, it looks again a little later: the worker that was to take them
//! may have been stopped, or may have got a slow one. If they wait for long, most of them go back
//! to the queue of the application.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use tokio::io::unix::AsyncFd;
use tokio::runtime::Handle;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::ring::owner::{Parked, RingOwner};
use crate::ring::shared_ring::SharedRing;

/// How long requests may wait in the ring before another worker is woken for them.
const LOOK_AGAIN: Duration = Duration::from_millis(1);

/// The collectors of a ring. Dropping this ends them.
pub(crate) struct Collectors(Vec<AbortHandle>);

impl Collectors {
    /// Starts a collector on each loop.
    pub(crate) fn start<C: Parked>(
        app: &Arc<impl RingOwner<C>>,
        ring: &Arc<SharedRing<C>>,
        loops: &[Handle],
    ) -> Self {
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

/// Runs until the application has gone.
async fn run<C: Parked>(app: Weak<impl RingOwner<C>>, ring: Arc<SharedRing<C>>, event_loop: usize) {
    #[expect(deprecated, reason = "the other constructor is unsafe, for types that close early")]
    let eventfd = ring.loops[event_loop].eventfd.try_clone().and_then(AsyncFd::new);
    let eventfd = match eventfd {
        Ok(eventfd) => eventfd,
        Err(error) => {
            tracing::error!(%error, "event loop cannot wait for answers of workers");
            return;
        }
    };
    let mut again = pin!(tokio::time::sleep(Duration::ZERO));
    let mut is_set = false;
    poll_fn(|context| {
        // Each addition to the counter is an event of its own, since tokio's registrations are
        // edge-triggered. So it is never read.
        while let Poll::Ready(Ok(mut guard)) = eventfd.poll_read_ready(context) {
            guard.clear_ready();
        }
        let Some(app) = app.upgrade() else { return Poll::Ready(()) };
        ring.set_collector(event_loop, context.waker());
        ring.announce(event_loop);
        if is_set && again.as_mut().poll(context).is_ready() {
            is_set = false;
            ring.ring.wake_for_waiting();
            ring.withdraw_late(&*app);
        }
        if ring.collect(&*app, event_loop) || !ring.ring.fall_asleep(event_loop) {
            // Other tasks come first, those of the collected requests among them.
            context.waker().wake_by_ref();
        } else if !is_set && ring.ring.has_waiting() {
            again.as_mut().reset(Instant::now() + LOOK_AGAIN);
            // It is not over, and now it has the waker.
            is_set = again.as_mut().poll(context).is_pending();
        }
        Poll::Pending
    })
    .await;
}
