//! Requests that wait because all servers that could take them are at their limit. Each upstream
//! has one queue, in which clients take turns ([`FairQueue`]).
//!
//! A request does not wait for a certain server. It gets the first free slot of any server that may
//! take it. Only a visitor with a sticky server waits for that one. A request that frees a slot
//! gives it to the waiting request whose turn it is.
//!
//! A request that finds room neither locks nor counts here. For that, the two sides must see each
//! other. One side frees a slot and then checks whether a request waits. The other side announces
//! that it waits and then checks whether a slot is free. These four steps have one order for all
//! threads (`SeqCst`). So at least one side sees the other, and no slot stays free while a request
//! waits for it.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use kirin_sync::Mutex;
use kirin_sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed, Ordering::SeqCst};
use tokio::sync::oneshot;

use crate::attempt::Attempt;
use crate::balancer::Criteria;
use crate::candidates::SlotClaim;
use crate::fair_queue::{FairQueue, Ticket};
use crate::server::Servers;

/// The requests that wait for a server of one upstream, on all event loops.
pub struct RequestQueue {
    /// How many requests wait. Changed under the lock, read without it.
    waiting: AtomicUsize,
    state: Mutex<QueueState>,
    full: AtomicU64,
    timeouts: AtomicU64,
    clients_gone: AtomicU64,
    waited: AtomicU64,
    waited_micros: AtomicU64,
    longest_micros: AtomicU64,
}

struct QueueState {
    waiting: FairQueue<WaitingTask>,
    /// The generation of the present servers.
    generation: u64,
}

struct WaitingTask {
    servers: Arc<Servers>,
    criteria: Criteria,
    sender: oneshot::Sender<Result<Attempt, QueueRefusal>>,
}

/// The result of entering the queue.
#[derive(Debug)]
pub enum Entered {
    /// There was room after all.
    Given(Attempt),
    /// The request waits.
    Waits(QueuePlace),
}

/// Why a request gets no server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueRefusal {
    /// The queue is full, and the client does not have a smaller share of it than others.
    Full,
    /// No server is left that could respond.
    NoServer,
    /// The servers have been replaced. With its ticket, the request keeps its place for the new
    /// servers.
    Exchanged,
}

/// Why a request leaves the queue without a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leaving {
    /// The request has waited too long.
    TimedOut,
    /// The client has gone.
    ClientGone,
}

/// The state of the queue. Counts are since the start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueStatus {
    /// Requests that wait now.
    pub waiting: usize,
    /// Requests that got a server after a wait.
    pub waited: u64,
    /// The sum of their waiting times.
    pub wait_total: Duration,
    /// The longest of their waiting times.
    pub wait_longest: Duration,
    /// Requests that found the queue full.
    pub full: u64,
    /// Requests that have waited too long.
    pub timeouts: u64,
    /// Requests whose clients have gone while they waited.
    pub clients_gone: u64,
}

impl RequestQueue {
    /// Returns a queue in which at most `limit` requests wait.
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            waiting: AtomicUsize::new(0),
            state: Mutex::new(QueueState { waiting: FairQueue::new(limit), generation: 0 }),
            full: AtomicU64::new(0),
            timeouts: AtomicU64::new(0),
            clients_gone: AtomicU64::new(0),
            waited: AtomicU64::new(0),
            waited_micros: AtomicU64::new(0),
            longest_micros: AtomicU64::new(0),
        }
    }

    /// Returns whether a request waits.
    pub(crate) fn has_waiting(&self) -> bool {
        self.waiting.load(SeqCst) > 0
    }

    /// Claims a server of `servers` for a request, or enters the queue: at its old place with
    /// `ticket`, and otherwise behind the others. A new request that finds the queue full goes to a
    /// backup with room.
    pub fn enter(
        self: &Arc<Self>,
        servers: &Arc<Servers>,
        criteria: &Criteria,
        ticket: Option<Ticket>,
        now: Instant,
    ) -> Result<Entered, QueueRefusal> {
        self.enter_with(servers, criteria, ticket, now, || ())
    }

    /// Does the same as [`RequestQueue::enter`]. `between` runs after no room was found, and before
    /// others can see that the request waits.
    fn enter_with(
        self: &Arc<Self>,
        servers: &Arc<Servers>,
        criteria: &Criteria,
        ticket: Option<Ticket>,
        now: Instant,
        between: impl FnOnce(),
    ) -> Result<Entered, QueueRefusal> {
        // Dropping attempts takes the lock. So this is dropped after the lock, at each end of this
        // function.
        let mut unsent = Vec::new();
        let mut state = self.state.lock();
        if servers.generation < state.generation {
            return Err(QueueRefusal::Exchanged);
        }
        // Requests that have waited longer come first, even if a slot was freed since the last
        // check.
        unsent.extend(self.serve_locked(&mut state, now, false));
        match servers.claim(criteria, now) {
            SlotClaim::Given(attempt) => return Ok(Entered::Given(attempt)),
            SlotClaim::NoServer => return Err(QueueRefusal::NoServer),
            SlotClaim::Full => {}
        }
        if ticket.is_none()
            && state.waiting.is_full()
            && let Some(attempt) = servers.claim_backup(criteria, now)
        {
            return Ok(Entered::Given(attempt));
        }
        between();
        let (sender, receiver) = oneshot::channel();
        let waiter = WaitingTask { servers: Arc::clone(servers), criteria: *criteria, sender };
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
                let place = entered.map_err(|_| QueueRefusal::Full)?;
                if let Some(displaced) = place.displaced {
                    let _ = displaced.sender.send(Err(QueueRefusal::Full));
                }
                place.ticket
            }
        };
        self.waiting.store(state.waiting.len(), SeqCst);
        // A slot may have been freed by a request that did not see this one wait.
        unsent.extend(self.serve_locked(&mut state, now, false));
        Ok(Entered::Waits(QueuePlace { queue: Arc::clone(self), ticket, receiver, is_over: false }))
    }

    /// Gives free slots to the waiting requests.
    pub(crate) fn serve(&self, now: Instant) {
        let unsent = self.serve_locked(&mut self.state.lock(), now, false);
        drop(unsent);
    }

    /// Checks every waiting request, even if no slot is free. This is for servers that come or go.
    /// It must be called now and then, because an ejected server may be tried after a time.
    pub fn serve_all(&self, now: Instant) {
        if self.has_waiting() {
            let unsent = self.serve_locked(&mut self.state.lock(), now, true);
            drop(unsent);
        }
    }

    /// Returns the attempts that could not be given. The caller drops them without the lock.
    #[must_use]
    fn serve_locked(&self, state: &mut QueueState, now: Instant, all: bool) -> Vec<Attempt> {
        let (mut unsent, mut index) = (Vec::new(), 0);
        debug_assert!(self.is_counted(state), "others see another number of waiting requests");
        while let Some(waiter) = state.waiting.get(index) {
            if !all && !waiter.servers.has_room() {
                break;
            }
            let given = match waiter.servers.claim(&waiter.criteria, now) {
                SlotClaim::Full => {
                    index += 1;
                    continue;
                }
                SlotClaim::Given(attempt) => Ok(attempt),
                SlotClaim::NoServer => Err(QueueRefusal::NoServer),
            };
            // A receiver leaves the queue before it is dropped, so this does not fail.
            if let Some(waiter) = state.waiting.serve(index)
                && let Err(Ok(attempt)) = waiter.sender.send(given)
            {
                unsent.push(attempt);
            }
        }
        self.waiting.store(state.waiting.len(), SeqCst);
        unsent
    }

    /// Returns whether those without the lock see how many requests wait.
    fn is_counted(&self, state: &QueueState) -> bool {
        self.waiting.load(SeqCst) == state.waiting.len()
    }

    /// Sends all requests that wait for earlier servers to the new ones.
    pub(crate) fn exchange(&self, generation: u64) {
        let mut state = self.state.lock();
        debug_assert!(generation >= state.generation, "servers of {generation} come back");
        state.generation = generation;
        for waiter in state.waiting.drain() {
            let _ = waiter.sender.send(Err(QueueRefusal::Exchanged));
        }
        self.waiting.store(0, SeqCst);
    }

    /// Counts a request that got a server after waiting for `time`.
    pub fn count_waited(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.waited.fetch_add(1, Relaxed);
        self.waited_micros.fetch_add(micros, Relaxed);
        self.longest_micros.fetch_max(micros, Relaxed);
    }

    /// Counts a request that has left the queue.
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

impl fmt::Debug for RequestQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue").field("status", &self.status()).finish_non_exhaustive()
    }
}

/// A request's place in the queue. Dropping it leaves the queue. A slot that was already assigned
/// goes to the next request.
#[derive(Debug)]
pub struct QueuePlace {
    queue: Arc<RequestQueue>,
    ticket: Ticket,
    receiver: oneshot::Receiver<Result<Attempt, QueueRefusal>>,
    is_over: bool,
}

impl QueuePlace {
    /// Returns the ticket, with which the request can come back to this place.
    pub fn ticket(&self) -> Ticket {
        self.ticket
    }
}

impl Future for QueuePlace {
    type Output = Result<Attempt, QueueRefusal>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // The sender is dropped unused only with the queue.
        let given = ready!(Pin::new(&mut self.receiver).poll(context))
            .unwrap_or(Err(QueueRefusal::NoServer));
        self.is_over = true;
        Poll::Ready(given)
    }
}

impl Drop for QueuePlace {
    fn drop(&mut self) {
        if self.is_over {
            return;
        }
        let mut state = self.queue.state.lock();
        debug_assert!(self.queue.is_counted(&state), "others see another number of requests");
        if let Some(waiter) = state.waiting.leave(self.ticket) {
            self.queue.waiting.store(state.waiting.len(), SeqCst);
            drop(state);
            drop(waiter);
            return;
        }
        drop(state);
        // Senders send under the lock, so an assigned slot has arrived here. Dropping it serves the
        // next request.
        drop(self.receiver.try_recv());
    }
}

#[cfg(test)]
#[path = "queue_tests.rs"]
mod tests;
