//! Requests that wait because all servers that could take them are at their limit: one queue an
//! upstream, in which clients take turns ([`FairQueue`]).
//!
//! A request does not wait for one server: the first slot that is freed of a server that may take
//! it is its own. (Only a visitor with a server of its own waits for that one.) Who frees a slot
//! gives it to the request whose turn it is.
//!
//! Requests that find room neither lock nor count here. For that, two sides have to see each other:
//! who frees a slot does so and then looks whether anybody waits; who waits says so and then looks
//! whether a slot is free. These four are in one order for all threads (`SeqCst`), so that at least
//! one of the two sees the other, and no slot is free while somebody waits for it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::attempt::Attempt;
use crate::balancer::Criteria;
use crate::candidates::Claim;
use crate::fair_queue::{FairQueue, Ticket};
use crate::server::Servers;

/// The requests that wait for a server of one upstream, on all event loops.
pub struct Queue {
    /// How many wait; changed under the lock, read without.
    waiting: AtomicUsize,
    state: Mutex<State>,
    full: AtomicU64,
    timeouts: AtomicU64,
    clients_gone: AtomicU64,
    waited: AtomicU64,
    waited_micros: AtomicU64,
    longest_micros: AtomicU64,
}

struct State {
    waiting: FairQueue<Waiter>,
    /// Of the servers that are there now.
    generation: u64,
}

struct Waiter {
    servers: Arc<Servers>,
    criteria: Criteria,
    sender: oneshot::Sender<Result<Attempt, Refused>>,
}

/// What coming to the queue came to.
#[derive(Debug)]
pub enum Entered {
    /// There was room after all.
    Given(Attempt),
    /// The request waits.
    Waits(Wait),
}

/// Why a request gets no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// As many wait as may, and the client has no smaller share of them than others.
    Full,
    /// None is left that could answer.
    NoServer,
    /// The servers are no longer those that the request knows. With its ticket it has the same
    /// place in the queue for others.
    Exchanged,
}

/// Why a request leaves the queue without a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// It has waited for too long.
    TimedOut,
    /// Its client has gone.
    ClientGone,
}

/// What has been seen of the requests that wait. Counts are since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStatus {
    /// Requests that wait now.
    pub waiting: usize,
    /// Requests that got a server after they had waited.
    pub waited: u64,
    /// How long these have waited, together.
    pub wait_total: Duration,
    /// How long one of them has waited at most.
    pub wait_longest: Duration,
    /// Requests that found the queue full.
    pub full: u64,
    /// Requests that have waited for too long.
    pub timeouts: u64,
    /// Requests whose clients have gone while they waited.
    pub clients_gone: u64,
}

impl Queue {
    /// One in which at most `limit` requests wait.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            state: Mutex::new(State { waiting: FairQueue::new(limit), generation: 0 }),
            full: AtomicU64::new(0),
            timeouts: AtomicU64::new(0),
            clients_gone: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            waited_micros: AtomicU64::new(0),
            longest_micros: AtomicU64::new(0),
        }
    }

    /// Whether anybody waits.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(SeqCst) > 0
    }

    /// A server of `servers` for a request, or a place in the queue, behind all or, with `ticket`,
    /// where it was.
    pub fn enter(
        self: &Arc<Self>,
        servers: &Arc<Servers>,
        criteria: &Criteria,
        ticket: Option<Ticket>,
        now: Instant,
    ) -> Result<Entered, Refused> {
        self.enter_between(servers, criteria, ticket, now, || ())
    }

    /// The same; `between` is what others may do after it was seen that there is no room, and
    /// before they can see who waits.
    fn enter_between(
        self: &Arc<Self>,
        servers: &Arc<Servers>,
        criteria: &Criteria,
        ticket: Option<Ticket>,
        now: Instant,
        between: impl FnOnce(),
    ) -> Result<Entered, Refused> {
        // Dropping attempts takes the lock: this goes after it, at each end of this function.
        let mut unsent = Vec::new();
        let mut state = self.state.lock();
        if servers.generation < state.generation {
            return Err(Refused::Exchanged);
        }
        // Who has waited longer comes first, whatever may have happened since somebody looked.
        unsent.extend(self.serve_locked(&mut state, now, false));
        match servers.claim(criteria, now) {
            Claim::Given(attempt) => return Ok(Entered::Given(attempt)),
            Claim::NoServer => return Err(Refused::NoServer),
            Claim::Full => {}
        }
        between();
        let (sender, receiver) = oneshot::channel();
        let waiter = Waiter { servers: Arc::clone(servers), criteria: *criteria, sender };
        let ticket = match ticket {
            Some(ticket) => {
                state.waiting.enter_again(ticket, criteria.client, waiter);
                ticket
            }
            None => {
                let entered = state.waiting.enter(criteria.client, waiter);
                let displaced = match &entered {
                    Ok(place) => place.displaced.is_some(),
                    Err(_) => true,
                };
                self.full.fetch_add(u64::from(displaced), Relaxed);
                let place = entered.map_err(|_| Refused::Full)?;
                if let Some(displaced) = place.displaced {
                    let _ = displaced.sender.send(Err(Refused::Full));
                }
                place.ticket
            }
        };
        self.waiting.store(state.waiting.len(), SeqCst);
        // What was freed by somebody who did not see it wait.
        unsent.extend(self.serve_locked(&mut state, now, false));
        Ok(Entered::Waits(Wait { queue: Arc::clone(self), ticket, receiver, is_over: false }))
    }

    /// Gives the slots that are free to those that wait.
    pub(crate) fn serve(&self, now: Instant) {
        let unsent = self.serve_locked(&mut self.state.lock(), now, false);
        drop(unsent);
    }

    /// The same when servers may have come or gone: looks at each that waits, also if no slot is
    /// free. To be called now and then, since an ejected server may be tried after a time.
    pub fn serve_all(&self, now: Instant) {
        if self.has_waiting() {
            let unsent = self.serve_locked(&mut self.state.lock(), now, true);
            drop(unsent);
        }
    }

    /// Returns what could not be given, to be dropped without the lock.
    #[must_use]
    fn serve_locked(&self, state: &mut State, now: Instant, all: bool) -> Vec<Attempt> {
        let (mut unsent, mut index) = (Vec::new(), 0);
        while let Some(waiter) = state.waiting.get(index) {
            if !all && !waiter.servers.has_room() {
                break;
            }
            let given = match waiter.servers.claim(&waiter.criteria, now) {
                Claim::Full => {
                    index += 1;
                    continue;
                }
                Claim::Given(attempt) => Ok(attempt),
                Claim::NoServer => Err(Refused::NoServer),
            };
            // A receiver leaves the queue before it goes, so this does not fail.
            if let Some(waiter) = state.waiting.serve(index)
                && let Err(Ok(attempt)) = waiter.sender.send(given)
            {
                unsent.push(attempt);
            }
        }
        self.waiting.store(state.waiting.len(), SeqCst);
        unsent
    }

    /// Has all that wait for servers of an earlier generation look at the new ones.
    pub(crate) fn exchange(&self, generation: u64) {
        let mut state = self.state.lock();
        state.generation = generation;
        for waiter in state.waiting.drain() {
            let _ = waiter.sender.send(Err(Refused::Exchanged));
        }
        self.waiting.store(0, SeqCst);
    }

    /// Counts a request that got a server after so long a time.
    pub fn count_waited(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.waited.fetch_add(1, Relaxed);
        self.waited_micros.fetch_add(micros, Relaxed);
        self.longest_micros.fetch_max(micros, Relaxed);
    }

    /// Counts a request that has given up.
    pub fn count_leaving(&self, why: Leaving) {
        let count = match why {
            Leaving::TimedOut => &self.timeouts,
            Leaving::ClientGone => &self.clients_gone,
        };
        count.fetch_add(1, Relaxed);
    }

    pub(crate) fn status(&self) -> QueueStatus {
        QueueStatus {
            waiting: self.waiting.load(Relaxed),
            waited: self.waited.load(Relaxed),
            wait_total: Duration::from_micros(self.waited_micros.load(Relaxed)),
            wait_longest: Duration::from_micros(self.longest_micros.load(Relaxed)),
            full: self.full.load(Relaxed),
            timeouts: self.timeouts.load(Relaxed),
            clients_gone: self.clients_gone.load(Relaxed),
        }
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("status", &self.status()).finish_non_exhaustive()
    }
}

/// A request's place in the queue. Dropping it leaves the queue; a server that was on its way goes
/// to the next.
#[derive(Debug)]
pub struct Wait {
    queue: Arc<Queue>,
    ticket: Ticket,
    receiver: oneshot::Receiver<Result<Attempt, Refused>>,
    is_over: bool,
}

impl Wait {
    /// To come back to the same place with.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }
}

impl Future for Wait {
    type Output = Result<Attempt, Refused>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // The sender is dropped unused only with the queue itself.
        let given =
            ready!(Pin::new(&mut self.receiver).poll(context)).unwrap_or(Err(Refused::NoServer));
        self.is_over = true;
        Poll::Ready(given)
    }
}

impl Drop for Wait {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.queue.state.lock();
        if let Some(waiter) = state.waiting.leave(self.ticket) {
            self.queue.waiting.store(state.waiting.len(), SeqCst);
            drop(state);
            drop(waiter);
            return;
        }
        drop(state);
        // Senders send under the lock: what this request was given is here already. Dropping it
        // serves the next.
        drop(self.receiver.try_recv());
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
