//! One request a key at the place: the others wait for what it brings.
//!
//! Shared by all loops. A waiter learns how it ended and looks into the store itself, so that nothing but a word goes from one
//! loop to another. A flight ends when it is told to or dropped, so that nobody waits for what has gone.

use parking_lot::Mutex;
use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tokio::sync::watch;

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
    /// There is none: somebody else goes.
    Lost,
}

/// All that are under way.
#[derive(Debug, Default)]
pub struct Flights {
    hasher: RandomState,
    parts: [Mutex<HashMap<Box<[u8]>, UnderWay>>; PARTS],
}

#[derive(Debug)]
struct UnderWay {
    landed: watch::Receiver<Option<Landed>>,
    waiting: Arc<AtomicUsize>,
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
    landing: watch::Sender<Option<Landed>>,
}

/// One that waits.
pub struct Waiting {
    landed: watch::Receiver<Option<Landed>>,
    waiting: Arc<AtomicUsize>,
}

impl Flights {
    /// Joins the requests for `key`.
    pub fn join(self: &Arc<Self>, key: &[u8]) -> Joined {
        let mut part = self.part(key).lock();
        if let Some(under_way) = part.get(key) {
            if under_way.waiting.fetch_add(1, Ordering::Relaxed) >= MAX_WAITING {
                under_way.waiting.fetch_sub(1, Ordering::Relaxed);
                return Joined::Full;
            }
            let (landed, waiting) = (under_way.landed.clone(), Arc::clone(&under_way.waiting));
            return Joined::Waits(Waiting { landed, waiting });
        }
        let (landing, landed) = watch::channel(None);
        part.insert(key.into(), UnderWay { landed, waiting: Arc::default() });
        Joined::Leads(Flight { flights: Arc::clone(self), key: key.into(), landing })
    }

    fn part(&self, key: &[u8]) -> &Mutex<HashMap<Box<[u8]>, UnderWay>> {
        &self.parts[self.hasher.hash_one(key) as usize % PARTS]
    }
}

impl Flight {
    /// Ends it. What it has brought must be in the store by now.
    pub fn land(self, landed: Landed) {
        self.end(landed);
    }

    fn end(&self, landed: Landed) {
        self.landing.send_if_modified(|state| {
            let is_first = state.is_none();
            state.get_or_insert(landed);
            is_first
        });
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        // First out of the table: who looks afterwards finds the store filled or leads.
        self.flights.part(&self.key).lock().remove(&self.key);
        self.end(Landed::Lost);
    }
}

impl Waiting {
    /// Waits for the end.
    pub async fn landed(mut self) -> Landed {
        let landed = self.landed.wait_for(Option::is_some).await;
        landed.ok().and_then(|landed| *landed).unwrap_or(Landed::Lost)
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.waiting.fetch_sub(1, Ordering::Relaxed);
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
        for landed in [Landed::Stored, Landed::NotStored] {
            let flight = lead(&flights, b"a");
            let others = [wait(&flights, b"a"), wait(&flights, b"a")];
            let other = lead(&flights, b"b");
            flight.land(landed);
            for waiting in others {
                assert_eq!(waiting.landed().await, landed);
            }
            drop(other);
        }
    }

    #[tokio::test]
    async fn a_request_that_is_given_up_holds_nobody() {
        let flights = Arc::new(Flights::default());
        let flight = lead(&flights, b"a");
        let waiting = wait(&flights, b"a");
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
}
