//! The pool of a route: how many programs may run at the same time, and the queue of the requests
//! that wait for one to end. All event loops share it.
//!
//! To `kirin-balance` it is an upstream with one server.

use std::num::NonZeroU32;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use kirin_balance::{
    Attempt, ClientKey, Criteria, Entered, Leaving, QueueRefusal, QueueStatus, ServerSettings,
    Servers, Settings,
};
use kirin_http::{ClientWatch, client_gone};

use crate::failure::ProgramFailure;

/// The limits of a pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolLimits {
    /// The most programs that run at the same time, counted over all event loops.
    pub max_in_flight: NonZeroU32,
    /// The most requests that wait.
    pub queue: usize,
    /// The longest time that a request waits.
    pub queue_wait: Duration,
}

impl Default for PoolLimits {
    fn default() -> Self {
        Self {
            max_in_flight: NonZeroU32::MIN.saturating_add(7),
            queue: 1024,
            queue_wait: Duration::from_secs(30),
        }
    }
}

/// The right to run one program. Dropping it gives the right to the next request.
pub(crate) type Slot = Attempt;

/// The pool of one route.
#[derive(Debug)]
pub struct ProgramPool {
    limits: PoolLimits,
    servers: Arc<Servers>,
    failures: AtomicU64,
}

/// The state of a pool. Counts are since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PoolStatus {
    /// Programs that run now.
    pub running: u32,
    /// Requests that got the right to run a program.
    pub requests: u64,
    /// Requests that got no complete response from their program.
    pub failures: u64,
    /// The queue.
    pub queue: QueueStatus,
}

impl ProgramPool {
    /// Returns a pool in which nothing runs.
    pub fn new(limits: PoolLimits, now: Instant) -> Self {
        let only = ServerSettings {
            name: String::new(),
            weight: 1,
            backup: false,
            max_in_flight: Some(limits.max_in_flight),
        };
        let settings = Settings {
            // A program that fails is asked again.
            max_failures: 0,
            ejection_time: Duration::ZERO,
            healthy_after: 1,
            unhealthy_after: 1,
            slow_start: Duration::ZERO,
            queue_length: limits.queue,
        };
        let servers = Arc::new(Servers::new([only], settings, now));
        Self { limits, servers, failures: AtomicU64::new(0) }
    }

    /// Returns the limits.
    pub fn limits(&self) -> PoolLimits {
        self.limits
    }

    /// Returns the present state.
    pub fn status(&self, now: Instant) -> PoolStatus {
        let only = self.servers.server_status(now).pop();
        PoolStatus {
            running: only.as_ref().map_or(0, |only| only.in_flight),
            requests: only.as_ref().map_or(0, |only| only.requests),
            failures: self.failures.load(Relaxed),
            queue: self.servers.queue_status(),
        }
    }

    pub(crate) fn count_failure(&self) {
        self.failures.fetch_add(1, Relaxed);
    }

    /// Takes a slot, or waits for one. Clients take turns. The wait ends if the client goes. Calls
    /// `step` if the request must wait, and holds the result meanwhile.
    pub(crate) async fn slot<S>(
        &self,
        client: ClientKey,
        watch: Option<&ClientWatch>,
        step: impl FnOnce() -> S,
    ) -> Result<Slot, ProgramFailure> {
        let since = Instant::now();
        let queue = self.servers.queue();
        let criteria = Criteria { client, ..Criteria::default() };
        let wait = match queue.enter(&self.servers, &criteria, None, since) {
            Ok(Entered::Given(slot)) => return Ok(slot),
            Ok(Entered::Waits(wait)) => wait,
            Err(refused) => return Err(refusal(refused)),
        };
        let _step = step();
        let mut overdue = pin!(tokio::time::sleep(self.limits.queue_wait));
        tokio::select! {
            biased;
            given = wait => {
                let slot = given.map_err(refusal)?;
                queue.count_waited(since.elapsed());
                Ok(slot)
            }
            () = client_gone(watch) => {
                queue.count_leaving(Leaving::ClientGone);
                Err(ProgramFailure::ClientGone)
            }
            () = &mut overdue => {
                queue.count_leaving(Leaving::TimedOut);
                Err(ProgramFailure::QueueTimeout)
            }
        }
    }
}

/// Returns the failure of a request that may not wait. The only server is always there and never
/// replaced, so the queue is full.
fn refusal(refused: QueueRefusal) -> ProgramFailure {
    match refused {
        QueueRefusal::Full | QueueRefusal::NoServer | QueueRefusal::Exchanged => {
            ProgramFailure::QueueFull
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(queue: usize, queue_wait: Duration) -> ProgramPool {
        let max_in_flight = NonZeroU32::MIN;
        ProgramPool::new(PoolLimits { max_in_flight, queue, queue_wait }, Instant::now())
    }

    #[tokio::test]
    async fn a_request_waits_until_a_program_has_ended() {
        let pool = pool(1, Duration::from_secs(60));
        let first = pool.slot(None, None, || ()).await.unwrap();
        let mut second = pin!(pool.slot(Some(1), None, || ()));
        let is_waiting = tokio::select! {
            biased;
            _ = &mut second => false,
            () = std::future::ready(()) => true,
        };
        assert!(is_waiting && pool.status(Instant::now()).queue.waiting == 1);
        let refused = pool.slot(Some(1), None, || ()).await;
        assert!(matches!(refused, Err(ProgramFailure::QueueFull)), "{refused:?}");
        drop(first);
        let second = second.await.unwrap();
        let status = pool.status(Instant::now());
        assert_eq!((status.running, status.requests, status.queue.waited), (1, 2, 1));
        drop(second);
        assert_eq!(pool.status(Instant::now()).running, 0);
    }

    #[tokio::test]
    async fn a_request_does_not_wait_for_ever() {
        let pool = pool(1, Duration::ZERO);
        let _first = pool.slot(None, None, || ()).await.unwrap();
        let refused = pool.slot(None, None, || ()).await;
        assert!(matches!(refused, Err(ProgramFailure::QueueTimeout)), "{refused:?}");
        let queue = pool.status(Instant::now()).queue;
        assert_eq!((queue.waiting, queue.timeouts), (0, 1));
    }
}
