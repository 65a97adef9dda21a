//! The list of all watchers of a store.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{SystemTime, UNIX_EPOCH};

use kirin_store::Store;
use parking_lot::Mutex;

use super::event::WatchEvent;
use super::observed::ObservedBits;
use super::ring::WatcherRing;
use crate::codec::EventKinds;

/// The most watchers at the same time (`WATCHER_LIMIT` of memcached).
const WATCHER_LIMIT: usize = 20;

/// All watchers of a store.
#[derive(Debug)]
pub(crate) struct Watchers {
    store: Arc<Store>,
    observed: Arc<ObservedBits>,
    list: Mutex<Vec<(EventKinds, Arc<WatcherRing>)>>,
    /// The number of the last event.
    last_number: AtomicU64,
    sent: AtomicU64,
    skipped: AtomicU64,
}

/// The numbers of the watchers for `stats`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WatcherCounts {
    /// Lines that were put into rings.
    pub(crate) sent: u64,
    /// Lines that found no room.
    pub(crate) skipped: u64,
    /// The number of watchers.
    pub(crate) watchers: u64,
}

impl Watchers {
    /// Creates an empty list. It is shown the evictions of `store` while a watcher wants them.
    pub(crate) fn new(store: Arc<Store>, observed: Arc<ObservedBits>) -> Arc<Watchers> {
        let watchers = Arc::new(Watchers {
            store,
            observed,
            list: Mutex::default(),
            last_number: AtomicU64::new(0),
            sent: AtomicU64::new(0),
            skipped: AtomicU64::new(0),
        });
        // The store must not own the list, which owns the store.
        let listeners = Arc::downgrade(&watchers);
        watchers.store.set_eviction_observer(Arc::new(move |eviction| {
            if let Some(watchers) = listeners.upgrade() {
                watchers.publish(&WatchEvent::Evict(*eviction));
            }
        }));
        watchers
    }

    /// Shows an event to the watchers that want its kind.
    pub(crate) fn publish(&self, event: &WatchEvent<'_>) {
        let time = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let kind = event.kind();
        let list = self.list.lock();
        if !list.iter().any(|(kinds, _)| kinds.overlaps(kind)) {
            return;
        }
        let line = event.line(time, self.last_number.fetch_add(1, Ordering::Relaxed) + 1);
        for (_, ring) in list.iter().filter(|(kinds, _)| kinds.overlaps(kind)) {
            let count = if ring.push(&line) { &self.sent } else { &self.skipped };
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Adds a watcher. Returns `None` if there are too many.
    pub(crate) fn add(self: &Arc<Self>, kinds: EventKinds) -> Option<Watcher> {
        let mut list = self.list.lock();
        if list.len() >= WATCHER_LIMIT {
            return None;
        }
        let ring = Arc::<WatcherRing>::default();
        list.push((kinds, Arc::clone(&ring)));
        debug_assert!(list.len() <= WATCHER_LIMIT, "{} watchers", list.len());
        self.note_kinds(&list);
        Some(Watcher { ring, watchers: Arc::clone(self) })
    }

    fn remove(&self, ring: &Arc<WatcherRing>) {
        let mut list = self.list.lock();
        debug_assert!(!list.is_empty(), "a watcher is not in the list");
        list.retain(|(_, other)| !Arc::ptr_eq(other, ring));
        self.note_kinds(&list);
    }

    /// Tells the loops and the store which events any watcher wants.
    fn note_kinds(&self, list: &[(EventKinds, Arc<WatcherRing>)]) {
        let kinds = list.iter().fold(EventKinds::default(), |all, (kinds, _)| all | *kinds);
        self.observed.set_kinds(kinds);
        self.store.watch_evictions(kinds.overlaps(EventKinds::EVICTIONS));
    }

    /// Returns the numbers for `stats`.
    pub(crate) fn counts(&self) -> WatcherCounts {
        WatcherCounts {
            sent: self.sent.load(Ordering::Relaxed),
            skipped: self.skipped.load(Ordering::Relaxed),
            watchers: self.list.lock().len() as u64,
        }
    }

    /// Sets the counters to 0 (`stats reset`).
    pub(crate) fn reset_counts(&self) {
        self.sent.store(0, Ordering::Relaxed);
        self.skipped.store(0, Ordering::Relaxed);
    }
}

/// A client that watches. It is in the list as long as it lives.
#[derive(Debug)]
pub struct Watcher {
    ring: Arc<WatcherRing>,
    watchers: Arc<Watchers>,
}

impl Watcher {
    /// Takes the lines that have come in. Pending if there are none.
    pub fn poll_lines(&self, cx: &mut Context<'_>) -> Poll<String> {
        self.ring.poll_take(cx)
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.watchers.remove(&self.ring);
    }
}

#[cfg(test)]
mod tests {
    use std::task::Waker;

    use kirin_store::{KeyState, StoreConfig};

    use super::*;

    #[test]
    fn a_watcher_is_shown_the_kinds_that_it_chose() {
        let observed = Arc::<ObservedBits>::default();
        let store = Arc::new(Store::new(StoreConfig::default()));
        let watchers = Watchers::new(store, Arc::clone(&observed));
        let fetch = WatchEvent::Fetch { key: b"a", state: KeyState::NotFound, descriptor: 1 };
        watchers.publish(&fetch);
        let fetchers = watchers.add(EventKinds::FETCHERS).expect("a watcher");
        let others = EventKinds::MUTATIONS | EventKinds::EVICTIONS;
        let others = watchers.add(others).expect("a watcher");
        watchers.publish(&fetch);
        let mut cx = Context::from_waker(Waker::noop());
        let Poll::Ready(lines) = fetchers.poll_lines(&mut cx) else { panic!("no line") };
        assert!(lines.contains(" gid=1 type=item_get key=a "), "{lines}");
        assert!(others.poll_lines(&mut cx).is_pending());
        assert!(observed.load().watches(EventKinds::FETCHERS));
        drop(fetchers);
        assert!(!observed.load().watches(EventKinds::FETCHERS));
        assert!(observed.load().watches(EventKinds::MUTATIONS));
        drop(others);
        assert!(!observed.load().is_any());
        let expected = WatcherCounts { sent: 1, skipped: 0, watchers: 0 };
        assert_eq!(watchers.counts(), expected);
    }

    #[test]
    fn the_number_of_watchers_is_limited() {
        let store = Arc::new(Store::new(StoreConfig::default()));
        let watchers = Watchers::new(store, Arc::default());
        let all: Vec<_> = (0..=WATCHER_LIMIT).map(|_| watchers.add(EventKinds::FETCHERS)).collect();
        assert_eq!(all.iter().flatten().count(), WATCHER_LIMIT);
        drop(all);
        assert!(watchers.add(EventKinds::FETCHERS).is_some());
    }
}
