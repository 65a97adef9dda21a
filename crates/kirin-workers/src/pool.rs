//! The idle workers of an application, and the requests that wait for a worker. At any time there
//! are only the one or the other. Clients take turns in the queue ([`FairQueue`]).
//!
//! All event loops share the pool and lock it for a few instructions. It is generic over the
//! worker, so that its rules can be tested without processes.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use kirin_balance::{ClientKey, FairQueue, Ticket};
use kirin_sync::Mutex;
use tokio::sync::oneshot;

/// How much later a request may have come and still overtake another one, if the worker belongs to
/// its event loop. A worker of another loop costs two wake-ups between threads.
const OVERTAKING: Duration = Duration::from_millis(5);

/// How many waiting requests are checked for one of the worker's loop.
const LOOKED_AT: usize = 16;

/// How many idle connections of a process are looked at for one of the request's loop.
const COMPARED: usize = 64;

/// The properties of a worker that the pool needs.
pub(crate) trait Pooled {
    /// An event loop.
    type Home: Copy + PartialEq;

    /// Returns whether `home` is a loop on which using the worker is cheapest.
    fn is_near(&self, home: Self::Home) -> bool;

    /// Returns whether the worker must not get another request.
    fn is_leaving(&self) -> bool;

    /// Returns the process of a worker with several connections, and 0 for all other workers.
    fn process(&self) -> u32;

    /// Returns how many requests this process has already, over its other connections.
    fn load(&self) -> usize;
}

/// The pool of one application, or of its code that is on trial. `W` is a worker's connection.
pub(crate) struct Pool<W: Pooled> {
    state: Mutex<PoolState<W>>,
    /// The pool that gets the workers that are released while this one is closed. Without it they
    /// are dropped.
    fallback: Option<Arc<Self>>,
}

struct PoolState<W: Pooled> {
    idle: Vec<IdleOfProcess<W>>,
    waiting: FairQueue<Waiter<W>>,
    closed: bool,
}

/// The idle workers of a process, or all those that have one connection.
struct IdleOfProcess<W> {
    process: u32,
    /// The worker that was used last is last. Its memory is warm, and workers that are not needed
    /// stay idle.
    workers: Vec<W>,
}

struct Waiter<W: Pooled> {
    home: W::Home,
    since: Instant,
    sender: oneshot::Sender<Result<W, Refused>>,
}

/// Why a request gets no worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refused {
    /// The queue is full, and the client does not have a smaller share of it than others.
    Full,
    /// The request has waited too long.
    WaitedTooLong,
    /// The application is not running.
    Closed,
    /// The client has gone while the request waited.
    ClientGone,
}

/// The result of asking for a worker.
pub(crate) enum Acquired<W: Pooled> {
    Worker(W),
    Wait(Wait<W>),
}

impl<W: Pooled> Pool<W> {
    /// Returns a pool in which at most `limit` requests wait.
    pub(crate) fn new(limit: usize) -> Arc<Self> {
        Arc::new(Self { state: Mutex::new(PoolState::new(limit, false)), fallback: None })
    }

    /// Returns a closed pool beside `fallback`. [`Pool::open`] opens it.
    pub(crate) fn beside(fallback: &Arc<Self>, limit: usize) -> Arc<Self> {
        let state = Mutex::new(PoolState::new(limit, true));
        Arc::new(Self { state, fallback: Some(Arc::clone(fallback)) })
    }

    /// Takes requests and workers from now on.
    pub(crate) fn open(&self) {
        self.state.lock().closed = false;
    }

    /// Takes an idle worker: one with the fewest requests, and of these one of the loop `here`. If
    /// there is none, enters the queue in the turn of `client`. A request that was taken back has
    /// waited `since` then. It comes before later ones of its client, and finds room even if the
    /// queue is full.
    pub(crate) fn take(
        self: &Arc<Self>,
        here: W::Home,
        client: ClientKey,
        since: Option<Instant>,
    ) -> Result<Acquired<W>, Refused> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(Refused::Closed);
        }
        if let Some(worker) = state.take_idle(here) {
            return Ok(Acquired::Worker(worker));
        }
        let (sender, receiver) = oneshot::channel();
        let waiter = |since| Waiter { home: here, since, sender };
        let (since, ticket) = match since {
            Some(since) => {
                let is_later = |other: &Waiter<W>| other.since > since;
                (since, state.waiting.enter_before(client, waiter(since), is_later))
            }
            None => {
                let since = Instant::now();
                let place =
                    state.waiting.enter(client, waiter(since)).map_err(|_| Refused::Full)?;
                if let Some(displaced) = place.displaced {
                    let _ = displaced.sender.send(Err(Refused::Full));
                }
                (since, place.ticket)
            }
        };
        let pool = Arc::clone(self);
        Ok(Acquired::Wait(Wait { pool, since, ticket, receiver, answered: false }))
    }

    /// Gives a worker to a waiting request, or keeps it as idle. A worker that is leaving is
    /// dropped. A closed pool passes it on to its fallback, or drops it.
    pub(crate) fn release(&self, worker: W) {
        let mut state = self.state.lock();
        // This is checked under the lock. A caller marks a worker and then removes it from the idle
        // ones, so one of the two sees the mark.
        if worker.is_leaving() {
            drop(state);
            return;
        }
        let mut worker = worker;
        while let Some(waiter) = state.next_for(&worker) {
            // A receiver leaves the queue before it is dropped, so this does not fail.
            match waiter.sender.send(Ok(worker)) {
                Ok(()) => return,
                Err(Ok(returned)) => worker = returned,
                Err(Err(_)) => return,
            }
        }
        if !state.closed {
            state.keep(worker);
            return;
        }
        // Dropping a worker calls other code, so the lock is released first.
        drop(state);
        match &self.fallback {
            Some(fallback) => fallback.release(worker),
            None => drop(worker),
        }
    }

    /// Returns how many requests may wait.
    pub(crate) fn queue_length(&self) -> usize {
        self.state.lock().waiting.limit()
    }

    /// Lets at most `length` requests wait from now on.
    pub(crate) fn set_queue_length(&self, length: usize) {
        self.state.lock().waiting.set_limit(length);
    }

    /// Removes the idle workers for which `is_lost` is true.
    pub(crate) fn remove_idle(&self, is_lost: impl Fn(&W) -> bool) -> Vec<W> {
        let mut state = self.state.lock();
        let mut lost = Vec::new();
        for idle in &mut state.idle {
            lost.extend(idle.workers.extract_if(.., |worker| is_lost(worker)));
        }
        // The process may have ended.
        state.idle.retain(|idle| !idle.workers.is_empty());
        lost
    }

    /// Refuses the requests that have waited longer than `limit`. Returns how many.
    pub(crate) fn expire(&self, now: Instant, limit: Duration) -> usize {
        let is_overdue = |waiter: &Waiter<W>| now.duration_since(waiter.since) > limit;
        let expired = self.state.lock().waiting.leave_if(is_overdue);
        let count = expired.len();
        for waiter in expired {
            let _ = waiter.sender.send(Err(Refused::WaitedTooLong));
        }
        count
    }

    /// Refuses all requests from now on, and those that wait. Returns the idle workers.
    pub(crate) fn close(&self) -> Vec<W> {
        let mut state = self.state.lock();
        state.closed = true;
        for waiter in state.waiting.drain() {
            let _ = waiter.sender.send(Err(Refused::Closed));
        }
        std::mem::take(&mut state.idle).into_iter().flat_map(|idle| idle.workers).collect()
    }

    /// Returns what `describe` returns for the idle workers.
    pub(crate) fn idle<T>(&self, describe: impl Fn(&W) -> Option<T>) -> Vec<T> {
        let state = self.state.lock();
        state.idle.iter().flat_map(|idle| &idle.workers).filter_map(describe).collect()
    }

    /// Returns how many requests wait.
    pub(crate) fn waiting(&self) -> usize {
        self.state.lock().waiting.len()
    }
}

impl<W: Pooled> PoolState<W> {
    fn new(limit: usize, closed: bool) -> Self {
        Self { idle: Vec::new(), waiting: FairQueue::new(limit), closed }
    }

    /// Takes an idle worker for a request of the loop `here`, from the process that has the fewest
    /// requests.
    fn take_idle(&mut self, here: W::Home) -> Option<W> {
        let idle = self.idle.iter_mut();
        let loads = idle.filter_map(|idle| Some((idle.workers.last()?.load(), &mut idle.workers)));
        let (_, workers) = loads.min_by_key(|(load, _)| *load)?;
        let last = workers.len() - 1;
        let mut next = (0..=last).rev().take(COMPARED);
        let index = next.find(|index| workers[*index].is_near(here)).unwrap_or(last);
        Some(workers.remove(index))
    }

    /// Keeps a worker as idle.
    fn keep(&mut self, worker: W) {
        let process = worker.process();
        match self.idle.iter_mut().find(|idle| idle.process == process) {
            Some(idle) => idle.workers.push(worker),
            None => self.idle.push(IdleOfProcess { process, workers: vec![worker] }),
        }
    }

    /// Takes the next request out of the queue: the one whose turn it is, or a nearly as old one of
    /// a loop that is near to the worker. The client of that one has its turn, too.
    fn next_for(&mut self, worker: &W) -> Option<Waiter<W>> {
        let first = self.waiting.get(0)?.since;
        let is_near = |waiter: &Waiter<W>| {
            let apart = waiter.since.max(first).duration_since(waiter.since.min(first));
            worker.is_near(waiter.home) && apart <= OVERTAKING
        };
        let near = {
            let mut next = self.waiting.iter().take(LOOKED_AT).enumerate();
            next.find(|(index, waiter)| is_near(waiter) && self.waiting.has_turn(*index))
        };
        let index = near.map_or(0, |(index, _)| index);
        self.waiting.serve(index)
    }
}

/// A request's place in the queue. Dropping it leaves the queue. A worker that was already assigned
/// goes to the next request.
pub(crate) struct Wait<W: Pooled> {
    pool: Arc<Pool<W>>,
    /// When the request began to wait.
    pub(crate) since: Instant,
    ticket: Ticket,
    receiver: oneshot::Receiver<Result<W, Refused>>,
    answered: bool,
}

impl<W: Pooled> Future for Wait<W> {
    type Output = Result<W, Refused>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        // The sender is dropped unused only with the pool.
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
        // Senders send under the lock, so an assigned worker has arrived here.
        if let Ok(Ok(worker)) = self.receiver.try_recv() {
            self.pool.release(worker);
        }
    }
}

#[cfg(feature = "loom")]
#[cfg(test)]
#[path = "pool_loom_tests.rs"]
mod loom_tests;
#[cfg(test)]
#[path = "pool_tests.rs"]
mod tests;
