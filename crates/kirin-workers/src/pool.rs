//! The workers that wait for a request and the requests that wait for a worker. At most one of the
//! two at a time. Clients take turns in the queue ([`FairQueue`]).
//!
//! Shared by all event loops; the lock is held for a few instructions. Generic over what a worker
//! is, so that its rules are tested without processes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use kirin_balance::{ClientKey, FairQueue, Ticket};
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// A request may be overtaken by those that came at most this much later, if they are at home where
/// the worker is: a worker of another event loop costs two wake-ups between threads.
const OVERTAKING: Duration = Duration::from_millis(5);

/// Waiting requests looked at for one that is at home.
const LOOKED_AT: usize = 16;

/// What the pool must know of a worker.
pub(crate) trait Pooled {
    /// An event loop.
    type Home: Copy + PartialEq;

    /// Where it is at home: cheaper to use than elsewhere.
    fn home(&self) -> Self::Home;

    /// Whether it is to get no further request.
    fn is_leaving(&self) -> bool;
}

/// The queue of one application. `W` is a worker's connection.
pub(crate) struct Pool<W: Pooled> {
    state: Mutex<State<W>>,
}

struct State<W: Pooled> {
    /// The one that worked last is last: its memory is warm, and those that are not needed stay
    /// idle.
    idle: Vec<W>,
    waiting: FairQueue<Waiter<W>>,
    closed: bool,
}

struct Waiter<W: Pooled> {
    home: W::Home,
    since: Instant,
    sender: oneshot::Sender<Result<W, Refused>>,
}

/// Why a request gets no worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The queue is full, and the client has no smaller share of it than others.
    Full,
    /// It has waited as long as it may.
    WaitedTooLong,
    /// The application is not running.
    Closed,
    /// Its client has gone while it waited.
    ClientGone,
}

/// What asking for a worker came to.
pub(crate) enum Taken<W: Pooled> {
    Worker(W),
    Wait(Wait<W>),
}

impl<W: Pooled> Pool<W> {
    /// A pool in which at most `limit` requests wait.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        let state = State { idle: Vec::new(), waiting: FairQueue::new(limit), closed: false };
        Arc::new(Self { state: Mutex::new(state) })
    }

    /// Takes an idle worker, preferably one that is at home `here`, or a place in the queue, where
    /// `client` has its turns.
    pub(crate) fn take(
        self: &Arc<Self>,
        here: W::Home,
        client: ClientKey,
    ) -> Result<Taken<W>, Refused> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        if let Some(last) = state.idle.len().checked_sub(1) {
            let index = state.idle.iter().rposition(|worker| worker.home() == here).unwrap_or(last);
            return Ok(Taken::Worker(state.idle.remove(index)));
        }
        let (sender, receiver) = oneshot::channel();
        let waiter = Waiter { home: here, since: Instant::now(), sender };
        let place = state.waiting.enter(client, waiter).map_err(|_| Refused::Full)?;
        if let Some(displaced) = place.displaced {
            let _ = displaced.sender.send(Err(Refused::Full));
        }
        let ticket = place.ticket;
        Ok(Taken::Wait(Wait { pool: Arc::clone(self), ticket, receiver, answered: false }))
    }

    /// Gives a worker to a request that waits, or keeps it. A closed pool drops it, and a worker
    /// that is leaving is dropped.
    pub(crate) fn release(&self, worker: W) {
        let mut state = self.state.lock();
        // Under the lock: who marks a worker and then takes it out of the idle ones does not miss
        // it.
        if worker.is_leaving() {
            drop(state);
            return;
        }
        let mut worker = worker;
        while let Some(waiter) = state.next_for(worker.home()) {
            // A receiver leaves the queue before it goes, so this does not fail.
            match waiter.sender.send(Ok(worker)) {
                Ok(()) => return,
                Err(Ok(returned)) => worker = returned,
                Err(Err(_)) => return,
            }
        }
        if !state.closed {
            state.idle.push(worker);
            return;
        }
        // Outside the lock: dropping a worker has consequences.
        drop(state);
        drop(worker);
    }

    /// Takes out the idle workers that `is_lost` names.
    pub(crate) fn remove_idle(&self, is_lost: impl Fn(&W) -> bool) -> Vec<W> {
        self.state.lock().idle.extract_if(.., |worker| is_lost(worker)).collect()
    }

    /// Refuses the requests that have waited longer than `limit`; returns how many.
    pub(crate) fn expire(&self, now: Instant, limit: Duration) -> usize {
        let is_overdue = |waiter: &Waiter<W>| now.duration_since(waiter.since) > limit;
        let expired = self.state.lock().waiting.leave_if(is_overdue);
        let count = expired.len();
        for waiter in expired {
            let _ = waiter.sender.send(Err(Refused::WaitedTooLong));
        }
        count
    }

    /// Refuses all requests from now on and gives up the idle workers.
    pub(crate) fn close(&self) -> Vec<W> {
        let mut state = self.state.lock();
        state.closed = true;
        for waiter in state.waiting.drain() {
            let _ = waiter.sender.send(Err(Refused::Closed));
        }
        std::mem::take(&mut state.idle)
    }

    /// Workers that wait.
    pub(crate) fn idle(&self) -> usize {
        self.state.lock().idle.len()
    }

    /// Requests that wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }
}

impl<W: Pooled> State<W> {
    /// The request whose turn it is, or one that came at nearly the same time and is at home
    /// `here`.
    fn next_for(&mut self, here: W::Home) -> Option<Waiter<W>> {
        let first = self.waiting.get(0)?.since;
        let near = |waiter: &&Waiter<W>| {
            let apart = waiter.since.max(first).duration_since(waiter.since.min(first));
            waiter.home == here && apart <= OVERTAKING
        };
        let index =
            self.waiting.iter().take(LOOKED_AT).position(|waiter| near(&waiter)).unwrap_or(0);
        self.waiting.serve(index)
    }
}

/// A request's place in the queue. Dropping it leaves the queue; a worker that was on its way goes
/// to the next.
pub(crate) struct Wait<W: Pooled> {
    pool: Arc<Pool<W>>,
    ticket: Ticket,
    receiver: oneshot::Receiver<Result<W, Refused>>,
    answered: bool,
}

impl<W: Pooled> Future for Wait<W> {
    type Output = Result<W, Refused>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // The sender is dropped unused only with the pool itself.
        let result =
            ready!(Pin::new(&mut self.receiver).poll(context)).unwrap_or(Err(Refused::Closed));
        self.answered = true;
        Poll::Ready(result)
    }
}

impl<W: Pooled> Drop for Wait<W> {
    fn drop(&mut self) {
        if self.answered {
            return;
        }
        let mut state = self.pool.state.lock();
        if state.waiting.leave(self.ticket).is_some() {
            return;
        }
        drop(state);
        // Senders send under the lock: what this request was given is here already.
        if let Ok(Ok(worker)) = self.receiver.try_recv() {
            self.pool.release(worker);
        }
    }
}

#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
