//! The requests of a route that the place is answering now: one for each key. Other requests for
//! the same key wait for its response.
//!
//! All loops share them. A waiter learns that a response has begun, which it then reads too, or how
//! the fetch ended. It then searches the store itself. A fetch ends when it is ended or dropped. So
//! no request waits for a fetch that does not exist any more.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use http::StatusCode;
use kirin_cache::Unstorable;
use kirin_origin::Lease;
use kirin_sync::Mutex;
use kirin_sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

use super::shared_response::SharedResponse;

/// The most requests that wait for one fetch. A further one is forwarded to the place.
const MAX_WAITING: usize = 4096;

/// The number of parts, each with a lock of its own.
const PARTS: usize = 16;

/// The end of a fetch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FetchOutcome {
    /// The response is in the store.
    Stored,
    /// Other requests cannot use the response. All of them are forwarded to the place at once.
    NotStored,
    /// The response was for one visitor with credentials. Requests of other visitors with
    /// credentials are forwarded to the place. Of the other requests, one is forwarded. Otherwise a
    /// client with a cookie could cause all of them to be forwarded.
    PerVisitor,
    /// The place has failed with this status. Requests that may have a stale response get that.
    Failed(StatusCode),
    /// There is no response, or a purge has removed it on its way. One of the waiting requests is
    /// forwarded.
    Lost,
}

impl FetchOutcome {
    /// Returns how a fetch ends whose response is stored, or is not for this reason.
    pub fn from_stored(stored: Result<(), Unstorable>) -> Self {
        match stored {
            Ok(()) | Err(Unstorable::NewerStored) => FetchOutcome::Stored,
            Err(Unstorable::Cookie | Unstorable::Authorization) => FetchOutcome::PerVisitor,
            // A response that is fetched now can be stored.
            Err(
                Unstorable::PurgedWhileFetched
                | Unstorable::TooManyPurges
                | Unstorable::PurgesUnknown,
            ) => FetchOutcome::Lost,
            Err(_) => FetchOutcome::NotStored,
        }
    }
}

/// The progress of a fetch.
#[derive(Clone, Debug, Default)]
enum FetchProgress {
    /// The place was asked.
    #[default]
    BackendAsked,
    /// Its response arrives and is stored.
    Filling(Arc<SharedResponse>),
    /// It has ended.
    FetchOutcome(FetchOutcome),
}

/// An event that a waiter learns.
pub enum FetchEvent {
    /// A response arrives.
    Filling(Arc<SharedResponse>),
    /// The fetch has ended.
    FetchOutcome(FetchOutcome),
}

/// All fetches of a route.
#[derive(Debug, Default)]
pub struct PendingFetches {
    hasher: RandomState,
    parts: [Mutex<ByKey>; PARTS],
}

type ByKey = HashMap<Box<[u8]>, Arc<SharedFetch>>;

#[derive(Debug, Default)]
struct SharedFetch {
    progress: watch::Sender<FetchProgress>,
    waiting: AtomicUsize,
}

/// The part of a request in the fetch of its key.
pub enum Joined {
    /// It is forwarded to the place.
    Leads(PendingFetch),
    /// It waits.
    Waits(WaitingRequest),
    /// Too many requests wait already.
    Full,
}

/// The request that is forwarded to the place.
pub struct PendingFetch {
    pending_fetches: Arc<PendingFetches>,
    /// For which other machines wait.
    pub lease: Lease,
    key: Box<[u8]>,
    shared: Arc<SharedFetch>,
}

/// A request that waits for another.
pub struct WaitingRequest {
    progress: watch::Receiver<FetchProgress>,
    shared: Arc<SharedFetch>,
    is_early: bool,
}

impl PendingFetches {
    /// Joins the requests for `key`.
    pub fn join(self: &Arc<Self>, key: &[u8]) -> Joined {
        self.join_unless(key, None)
    }

    /// Joins the requests for `key`, but not the fetch that `old` waits for: its response cannot be
    /// used any more.
    pub fn join_anew(self: &Arc<Self>, key: &[u8], old: &WaitingRequest) -> Joined {
        self.join_unless(key, Some(&old.shared))
    }

    fn join_unless(self: &Arc<Self>, key: &[u8], old: Option<&Arc<SharedFetch>>) -> Joined {
        let mut part = self.part(key).lock();
        if let Some(found) = part.get(key)
            && !old.is_some_and(|old| Arc::ptr_eq(old, found))
        {
            return Joined::waits(found);
        }
        let shared = Arc::<SharedFetch>::default();
        part.insert(key.into(), Arc::clone(&shared));
        let (pending_fetches, lease) = (Arc::clone(self), Lease::default());
        Joined::Leads(PendingFetch { pending_fetches, lease, key: key.into(), shared })
    }

    /// Returns the response for `key` that arrives now.
    pub fn filling(&self, key: &[u8]) -> Option<Arc<SharedResponse>> {
        match &*self.part(key).lock().get(key)?.progress.borrow() {
            FetchProgress::Filling(response) => Some(Arc::clone(response)),
            FetchProgress::BackendAsked | FetchProgress::FetchOutcome(_) => None,
        }
    }

    fn part(&self, key: &[u8]) -> &Mutex<ByKey> {
        &self.parts[self.hasher.hash_one(key) as usize % PARTS]
    }
}

impl Joined {
    fn waits(shared: &Arc<SharedFetch>) -> Self {
        if shared.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            shared.waiting.fetch_sub(1, Ordering::Relaxed);
            return Joined::Full;
        }
        let progress = shared.progress.subscribe();
        let is_early = matches!(*progress.borrow(), FetchProgress::BackendAsked);
        Joined::Waits(WaitingRequest { progress, shared: Arc::clone(shared), is_early })
    }
}

impl PendingFetch {
    /// Tells the waiters that a response has begun, which they can read.
    pub fn fills(&self, response: Arc<SharedResponse>) {
        self.shared.progress.send_replace(FetchProgress::Filling(response));
    }

    /// Ends the fetch. Its response must be in the store by now.
    pub fn finish(self, outcome: FetchOutcome) {
        if !matches!(outcome, FetchOutcome::Stored | FetchOutcome::Lost) {
            self.lease.note_useless();
        }
        self.end(outcome);
    }

    fn end(&self, outcome: FetchOutcome) {
        self.shared.progress.send_if_modified(|progress| {
            let is_first = !matches!(progress, FetchProgress::FetchOutcome(_));
            if is_first {
                *progress = FetchProgress::FetchOutcome(outcome);
            }
            is_first
        });
    }
}

impl Drop for PendingFetch {
    fn drop(&mut self) {
        // The fetch leaves the table first: a request that comes then finds the store filled, or
        // leads. Another fetch may have taken its place in the table.
        let mut part = self.pending_fetches.part(&self.key).lock();
        if part.get(&self.key).is_some_and(|shared| Arc::ptr_eq(shared, &self.shared)) {
            part.remove(&self.key);
        }
        drop(part);
        self.end(FetchOutcome::Lost);
    }
}

impl WaitingRequest {
    /// Returns whether the request began to wait before a response arrived.
    pub fn is_early(&self) -> bool {
        self.is_early
    }

    /// Waits for a response to begin, or for the end.
    pub async fn event(&mut self) -> FetchEvent {
        match self.wait_for(|progress| !matches!(progress, FetchProgress::BackendAsked)).await {
            Some(FetchProgress::Filling(response)) => FetchEvent::Filling(response),
            Some(FetchProgress::FetchOutcome(outcome)) => FetchEvent::FetchOutcome(outcome),
            Some(FetchProgress::BackendAsked) | None => {
                FetchEvent::FetchOutcome(FetchOutcome::Lost)
            }
        }
    }

    /// Waits for the end.
    pub async fn outcome(&mut self) -> FetchOutcome {
        match self.wait_for(|progress| matches!(progress, FetchProgress::FetchOutcome(_))).await {
            Some(FetchProgress::FetchOutcome(outcome)) => outcome,
            _ => FetchOutcome::Lost,
        }
    }

    async fn wait_for(
        &mut self,
        is_it: impl FnMut(&FetchProgress) -> bool,
    ) -> Option<FetchProgress> {
        self.progress.wait_for(is_it).await.ok().map(|progress| progress.clone())
    }
}

impl Drop for WaitingRequest {
    fn drop(&mut self) {
        self.shared.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(pending_fetches: &Arc<PendingFetches>, key: &[u8]) -> PendingFetch {
        let Joined::Leads(pending) = pending_fetches.join(key) else {
            panic!("another fetch is in progress")
        };
        pending
    }

    fn wait(pending_fetches: &Arc<PendingFetches>, key: &[u8]) -> WaitingRequest {
        let Joined::Waits(waiting) = pending_fetches.join(key) else {
            panic!("no fetch is in progress")
        };
        waiting
    }

    #[tokio::test]
    async fn waiters_learn_the_outcome_of_the_first_request() {
        let pending_fetches = Arc::new(PendingFetches::default());
        for outcome in [FetchOutcome::Stored, FetchOutcome::NotStored, FetchOutcome::PerVisitor] {
            let pending = lead(&pending_fetches, b"a");
            let others = [wait(&pending_fetches, b"a"), wait(&pending_fetches, b"a")];
            let other = lead(&pending_fetches, b"b");
            pending.finish(outcome);
            for mut waiting in others {
                assert_eq!(waiting.outcome().await, outcome);
            }
            drop(other);
        }
    }

    #[tokio::test]
    async fn waiters_are_released_when_the_first_request_is_abandoned() {
        let pending_fetches = Arc::new(PendingFetches::default());
        let pending = lead(&pending_fetches, b"a");
        let mut waiting = wait(&pending_fetches, b"a");
        drop(pending);
        assert_eq!(waiting.outcome().await, FetchOutcome::Lost);
        drop(lead(&pending_fetches, b"a"));
    }

    #[test]
    fn the_number_of_waiters_is_limited() {
        let pending_fetches = Arc::new(PendingFetches::default());
        let _flight = lead(&pending_fetches, b"a");
        let mut others: Vec<_> = (0..MAX_WAITING).map(|_| wait(&pending_fetches, b"a")).collect();
        assert!(matches!(pending_fetches.join(b"a"), Joined::Full));
        others.pop();
        assert!(matches!(pending_fetches.join(b"a"), Joined::Waits(_)));
    }

    #[tokio::test]
    async fn waiters_wait_for_the_request_that_replaces_the_first() {
        let pending_fetches = Arc::new(PendingFetches::default());
        let old = lead(&pending_fetches, b"a");
        let (mut first, second) = (wait(&pending_fetches, b"a"), wait(&pending_fetches, b"a"));
        let Joined::Leads(new) = pending_fetches.join_anew(b"a", &first) else {
            panic!("nobody was before")
        };
        let Joined::Waits(mut third) = pending_fetches.join_anew(b"a", &second) else {
            panic!("the first was")
        };
        let mut fourth = wait(&pending_fetches, b"a");
        // The old fetch ends, and the new one stays in the table.
        old.finish(FetchOutcome::NotStored);
        assert_eq!(first.outcome().await, FetchOutcome::NotStored);
        drop(wait(&pending_fetches, b"a"));
        new.finish(FetchOutcome::Stored);
        assert_eq!(
            (third.outcome().await, fourth.outcome().await),
            (FetchOutcome::Stored, FetchOutcome::Stored)
        );
        drop(lead(&pending_fetches, b"a"));
    }
}
