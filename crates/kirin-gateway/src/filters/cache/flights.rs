//! One request a key at the place: the others wait for what it brings.
//!
//! Shared by all loops. A waiter learns that a response has begun, which it then reads along, or
//! how it ended, and looks into the store itself. A flight ends when it is told to or dropped, so
//! that nobody waits for what has gone.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::StatusCode;
use kirin_cache::Unstorable;
use parking_lot::Mutex;
use tokio::sync::watch;

use super::shared_response::SharedResponse;

/// Requests that wait for one at most; one more goes to the place itself.
const MAX_WAITING: usize = 4096;

/// Parts with a lock of their own.
const PARTS: usize = 16;

/// How a flight ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Landed {
    /// The response is in the store.
    Stored,
    /// It is of no use to others: they go themselves, all at once.
    NotStored,
    /// It was for one visitor, who has shown who he is: those who have done so, too, go themselves.
    /// For the others somebody else goes, or anybody with a cookie could send all of them to the
    /// place.
    Personal,
    /// The place has failed with this status. Those who may have what is stale get that in its
    /// place.
    Failed(StatusCode),
    /// There is none, or it has been purged on its way: somebody else goes.
    Lost,
}

impl Landed {
    /// How it ends when the response is stored, or not for this reason.
    pub fn of(stored: Result<(), Unstorable>) -> Self {
        match stored {
            Ok(()) | Err(Unstorable::NewerStored) => Landed::Stored,
            Err(Unstorable::Cookie | Unstorable::Authorization) => Landed::Personal,
            // What somebody else fetches now can be stored.
            Err(Unstorable::PurgedWhileFetched | Unstorable::TooManyPurges) => Landed::Lost,
            Err(_) => Landed::NotStored,
        }
    }
}

/// How far one is.
#[derive(Clone, Debug, Default)]
enum Progress {
    /// The place was asked.
    #[default]
    Asked,
    /// Its response comes, and is stored.
    Filling(Arc<SharedResponse>),
    /// It is over.
    Landed(Landed),
}

/// What one that waits learns.
pub enum News {
    /// A response comes.
    Filling(Arc<SharedResponse>),
    /// That it is over.
    Landed(Landed),
}

/// All that are under way.
#[derive(Debug, Default)]
pub struct Flights {
    hasher: RandomState,
    parts: [Mutex<ByKey>; PARTS],
}

type ByKey = HashMap<Box<[u8]>, Arc<UnderWay>>;

#[derive(Debug, Default)]
struct UnderWay {
    progress: watch::Sender<Progress>,
    waiting: AtomicUsize,
}

/// What a request for a key comes to.
pub enum Joined {
    /// It goes to the place.
    Leads(Flight),
    /// It waits.
    Waits(Waiting),
    /// Too many wait already.
    Full,
}

/// The one that goes.
pub struct Flight {
    flights: Arc<Flights>,
    key: Box<[u8]>,
    under_way: Arc<UnderWay>,
}

/// One that waits.
pub struct Waiting {
    progress: watch::Receiver<Progress>,
    under_way: Arc<UnderWay>,
    is_early: bool,
}

impl Flights {
    /// Joins the requests for `key`.
    pub fn join(self: &Arc<Self>, key: &[u8]) -> Joined {
        self.join_any_but(key, None)
    }

    /// Joins them without the one waited for, which brings what is of no use any more.
    pub fn join_anew(self: &Arc<Self>, key: &[u8], old: &Waiting) -> Joined {
        self.join_any_but(key, Some(&old.under_way))
    }

    fn join_any_but(self: &Arc<Self>, key: &[u8], old: Option<&Arc<UnderWay>>) -> Joined {
        let mut part = self.part(key).lock();
        if let Some(found) = part.get(key)
            && !old.is_some_and(|old| Arc::ptr_eq(old, found))
        {
            return Joined::waits(found);
        }
        let under_way = Arc::<UnderWay>::default();
        part.insert(key.into(), Arc::clone(&under_way));
        Joined::Leads(Flight { flights: Arc::clone(self), key: key.into(), under_way })
    }

    /// The response for `key` that comes just now.
    pub fn filling(&self, key: &[u8]) -> Option<Arc<SharedResponse>> {
        match &*self.part(key).lock().get(key)?.progress.borrow() {
            Progress::Filling(response) => Some(Arc::clone(response)),
            Progress::Asked | Progress::Landed(_) => None,
        }
    }

    fn part(&self, key: &[u8]) -> &Mutex<ByKey> {
        &self.parts[self.hasher.hash_one(key) as usize % PARTS]
    }
}

impl Joined {
    fn waits(under_way: &Arc<UnderWay>) -> Self {
        if under_way.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
            under_way.waiting.fetch_sub(1, Ordering::Relaxed);
            return Joined::Full;
        }
        let progress = under_way.progress.subscribe();
        let is_early = matches!(*progress.borrow(), Progress::Asked);
        Joined::Waits(Waiting { progress, under_way: Arc::clone(under_way), is_early })
    }
}

impl Flight {
    /// A response has begun that others can read along.
    pub fn fills(&self, response: Arc<SharedResponse>) {
        self.under_way.progress.send_replace(Progress::Filling(response));
    }

    /// Ends it. What it has brought must be in the store by now.
    pub fn land(self, landed: Landed) {
        self.end(landed);
    }

    fn end(&self, landed: Landed) {
        self.under_way.progress.send_if_modified(|progress| {
            let is_first = !matches!(progress, Progress::Landed(_));
            if is_first {
                *progress = Progress::Landed(landed);
            }
            is_first
        });
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // First out of the table: who looks afterwards finds the store filled or leads. Another may
        // be there in its place.
        let mut part = self.flights.part(&self.key).lock();
        if part.get(&self.key).is_some_and(|under_way| Arc::ptr_eq(under_way, &self.under_way)) {
            part.remove(&self.key);
        }
        drop(part);
        self.end(Landed::Lost);
    }
}

impl Waiting {
    /// Whether it began before a response had.
    pub fn is_early(&self) -> bool {
        self.is_early
    }

    /// Waits for a response to begin, or for the end.
    pub async fn news(&mut self) -> News {
        match self.wait_for(|progress| !matches!(progress, Progress::Asked)).await {
            Some(Progress::Filling(response)) => News::Filling(response),
            Some(Progress::Landed(landed)) => News::Landed(landed),
            Some(Progress::Asked) | None => News::Landed(Landed::Lost),
        }
    }

    /// Waits for the end.
    pub async fn landed(&mut self) -> Landed {
        match self.wait_for(|progress| matches!(progress, Progress::Landed(_))).await {
            Some(Progress::Landed(landed)) => landed,
            _ => Landed::Lost,
        }
    }

    async fn wait_for(&mut self, is_it: impl FnMut(&Progress) -> bool) -> Option<Progress> {
        self.progress.wait_for(is_it).await.ok().map(|progress| progress.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.under_way.waiting.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(flights: &Arc<Flights>, key: &[u8]) -> Flight {
        let Joined::Leads(flight) = flights.join(key) else { panic!("somebody is under way") };
        flight
    }

    fn wait(flights: &Arc<Flights>, key: &[u8]) -> Waiting {
        let Joined::Waits(waiting) = flights.join(key) else { panic!("nobody is under way") };
        waiting
    }

    #[tokio::test]
    async fn others_learn_how_the_first_one_fared() {
        let flights = Arc::new(Flights::default());
        for landed in [Landed::Stored, Landed::NotStored, Landed::Personal] {
            let flight = lead(&flights, b"a");
            let others = [wait(&flights, b"a"), wait(&flights, b"a")];
            let other = lead(&flights, b"b");
            flight.land(landed);
            for mut waiting in others {
                assert_eq!(waiting.landed().await, landed);
            }
            drop(other);
        }
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_holds_nobody() {
        let flights = Arc::new(Flights::default());
        let flight = lead(&flights, b"a");
        let mut waiting = wait(&flights, b"a");
        drop(flight);
        assert_eq!(waiting.landed().await, Landed::Lost);
        drop(lead(&flights, b"a"));
    }

    #[test]
    fn only_so_many_wait() {
        let flights = Arc::new(Flights::default());
        let _flight = lead(&flights, b"a");
        let mut others: Vec<_> = (0..MAX_WAITING).map(|_| wait(&flights, b"a")).collect();
        assert!(matches!(flights.join(b"a"), Joined::Full));
        others.pop();
        assert!(matches!(flights.join(b"a"), Joined::Waits(_)));
    }

    #[tokio::test]
    async fn a_request_in_the_place_of_another_is_one_that_all_wait_for() {
        let flights = Arc::new(Flights::default());
        let old = lead(&flights, b"a");
        let (mut first, second) = (wait(&flights, b"a"), wait(&flights, b"a"));
        let Joined::Leads(new) = flights.join_anew(b"a", &first) else {
            panic!("nobody was before")
        };
        let Joined::Waits(mut third) = flights.join_anew(b"a", &second) else {
            panic!("the first was")
        };
        let mut fourth = wait(&flights, b"a");
        // The old one ends, and takes nothing with it.
        old.land(Landed::NotStored);
        assert_eq!(first.landed().await, Landed::NotStored);
        drop(wait(&flights, b"a"));
        new.land(Landed::Stored);
        assert_eq!((third.landed().await, fourth.landed().await), (Landed::Stored, Landed::Stored));
        drop(lead(&flights, b"a"));
    }
}
